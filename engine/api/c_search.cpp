// The C interface: searches, their results, reports and parts.
#include <memory>
#include <span>

#include "api/c_support.hpp"

using namespace hmmjit::c_interface;

namespace hmmjit::c_interface {

hmmjit::SearchCallbacks to_callbacks(const hmmjit_callbacks& c) {
  hmmjit::SearchCallbacks to;
  if (c.result != nullptr) {
    to.result = [&c](const hmmjit::ModelResult& result) {
      const hmmjit_result handle{result};
      if (c.result(c.context, &handle) == 0) return;
      throw Error(ErrorCode::kInterrupted, "the search was cancelled");
    };
  }
  if (c.progress != nullptr) {
    to.progress = [&c](const hmmjit::Progress& p) { return c.progress(c.context, &p) == 0; };
  }
  if (c.warning != nullptr) {
    to.warning = [&c](const Error& warning) {
      const hmmjit_error handle{warning};
      c.warning(c.context, &handle);
    };
  }
  if (c.interval_ms > 0) to.interval = std::chrono::milliseconds(c.interval_ms);
  if (c.cancellation != nullptr) to.cancellation = c.cancellation->value;
  return to;
}

}  // namespace hmmjit::c_interface

namespace {

/// Makes a handle for results.
void give_results(hmmjit_results** out, hmmjit::SearchResults found) {
  auto results = std::make_unique<hmmjit_results>();
  results->statistics = std::move(found.statistics);
  results->options = std::move(found.options);
  for (hmmjit::ModelResult& model : found.models) results->models.push_back({std::move(model)});
  *out = results.release();
}

std::vector<std::string> to_paths(const char* const* files, std::size_t count) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < count; ++i)
    paths.emplace_back(&required((&required(files, "files"))[i], "files"));
  return paths;
}

/// Writes `count` structs of `all`, from number `first` on.
template <typename T>
void write_range(std::span<const T> all, std::size_t first, std::size_t count, T* out) {
  if (first > all.size() || count > all.size() - first)
    misused("a range beyond the " + std::to_string(all.size()) + " there are");
  if (count == 0) return;
  const std::size_t size = required(out, "the array to fill").size;
  check_size(size);
  if (size == sizeof(T)) {
    std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(first), count, out);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) write(element(out, i, size), all[first + i], size);
}

/// Calls `search` with the caller's arguments; `name`: of `targets` in errors.
template <typename Defaults, typename Search, typename Options>
std::int32_t searched(Search search, const hmmjit_models* models, const hmmjit_targets* targets,
                      const char* name, const Options* options, const hmmjit_callbacks* callbacks,
                      hmmjit_results** out, hmmjit_error** error) {
  return run(error, [&] {
    required(out, "the handle to fill");
    const hmmjit_callbacks c = read(callbacks);
    // Callbacks may free the handles.
    const hmmjit::Models own_models = object(models, "models");
    const hmmjit::Targets own_targets = object(targets, name);
    give_results(out, search(own_models, own_targets, read(options, Defaults()), to_callbacks(c)));
  });
}

}  // namespace

extern "C" {

// ---- search ------------------------------------------------------------------------------------

int32_t hmmjit_search_options_init(hmmjit_search_options* options, hmmjit_error** error) {
  return run(error, [&] { write(options, hmmjit::SearchOptions()); });
}

int32_t hmmjit_cancellation_create(hmmjit_cancellation** out, hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::Cancellation()); });
}
void hmmjit_cancellation_cancel(const hmmjit_cancellation* cancellation) {
  if (cancellation == nullptr) return;
  const_cast<hmmjit_cancellation*>(cancellation)->value.cancel();  // atomic
}
void hmmjit_cancellation_free(hmmjit_cancellation* cancellation) { delete cancellation; }

int32_t hmmjit_search(const hmmjit_models* models, const hmmjit_targets* targets,
                      const hmmjit_search_options* options, const hmmjit_callbacks* callbacks,
                      hmmjit_results** out, hmmjit_error** error) {
  return searched<hmmjit::SearchOptions>(hmmjit::search, models, targets, "targets", options,
                                         callbacks, out, error);
}
int32_t hmmjit_scan(const hmmjit_models* models, const hmmjit_targets* sequences,
                    const hmmjit_search_options* options, const hmmjit_callbacks* callbacks,
                    hmmjit_results** out, hmmjit_error** error) {
  return searched<hmmjit::SearchOptions>(hmmjit::scan, models, sequences, "sequences", options,
                                         callbacks, out, error);
}
int32_t hmmjit_nhmmer_options_init(hmmjit_nhmmer_options* options, hmmjit_error** error) {
  return run(error, [&] { write(options, hmmjit::NhmmerOptions()); });
}
int32_t hmmjit_nhmmer(const hmmjit_models* models, const hmmjit_targets* targets,
                      const hmmjit_nhmmer_options* options, const hmmjit_callbacks* callbacks,
                      hmmjit_results** out, hmmjit_error** error) {
  return searched<hmmjit::NhmmerOptions>(hmmjit::nhmmer, models, targets, "targets", options,
                                         callbacks, out, error);
}

size_t hmmjit_results_count(const hmmjit_results* results) {
  return results != nullptr ? results->models.size() : 0;
}
const hmmjit_result* hmmjit_results_get(const hmmjit_results* results, size_t index) {
  return results != nullptr && index < results->models.size() ? &results->models[index] : nullptr;
}
int32_t hmmjit_results_statistics(const hmmjit_results* results,
                                  hmmjit_search_statistics* statistics, hmmjit_error** error) {
  return run(error, [&] { write(statistics, required(results, "results").statistics); });
}
int32_t hmmjit_results_get_options(const hmmjit_results* results, hmmjit_search_options* options,
                                   hmmjit_error** error) {
  return run(error, [&] { write(options, required(results, "results").options); });
}
void hmmjit_results_free(hmmjit_results* results) { delete results; }

// ---- results of one model ----------------------------------------------------------------------

int32_t hmmjit_result_get_info(const hmmjit_result* result, hmmjit_result_info* info,
                               hmmjit_error** error) {
  return run(error, [&] { write(info, object(result, "result").info()); });
}
int32_t hmmjit_result_get_hits(const hmmjit_result* result, size_t first, size_t count,
                               hmmjit_hit* hits, hmmjit_error** error) {
  return run(error, [&] { write_range(object(result, "result").hits(), first, count, hits); });
}
int32_t hmmjit_result_get_domains(const hmmjit_result* result, size_t first, size_t count,
                                  hmmjit_domain* domains, hmmjit_error** error) {
  return run(error,
             [&] { write_range(object(result, "result").domains(), first, count, domains); });
}
int32_t hmmjit_result_copy(const hmmjit_result* result, hmmjit_result** out, hmmjit_error** error) {
  return run(error, [&] { give(out, object(result, "result")); });
}
int32_t hmmjit_result_write(const hmmjit_result* result, hmmjit_text** out, hmmjit_error** error) {
  return run(error, [&] { give(out, object(result, "result").bytes()); });
}
int32_t hmmjit_result_read(const void* bytes, size_t size, hmmjit_result** out,
                           hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::ModelResult::from_bytes(view_of(bytes, size))); });
}
int32_t hmmjit_result_merge(const hmmjit_result* const* results, size_t count,
                            const hmmjit_search_options* options, hmmjit_result** out,
                            hmmjit_error** error) {
  return run(error, [&] {
    std::vector<hmmjit::ModelResult> all;
    for (size_t i = 0; i < count; ++i)
      all.push_back(required((&required(results, "results"))[i], "results").value);
    give(out, hmmjit::merge_results(all, read(options, hmmjit::SearchOptions())));
  });
}
void hmmjit_result_free(hmmjit_result* result) { delete result; }

// ---- reports -----------------------------------------------------------------------------------

int32_t hmmjit_report_create(int32_t kind, const char* path, const hmmjit_report_options* options,
                             hmmjit_report** out, hmmjit_error** error) {
  return run(error, [&] {
    const auto report_kind = static_cast<hmmjit::ReportKind>(kind);
    const hmmjit_report_options to = read(options, hmmjit::ReportOptions());
    give(out, path != nullptr ? hmmjit::Report::to_file(report_kind, path, to)
                              : hmmjit::Report(report_kind, to));
  });
}
int32_t hmmjit_main_report_header(const hmmjit_run_info* given_run,
                                  const hmmjit_report_options* options, hmmjit_text** out,
                                  hmmjit_error** error) {
  return run(error, [&] {
    give(out, hmmjit::main_report_header(read(given_run), read(options, hmmjit::ReportOptions())));
  });
}
int32_t hmmjit_report_add_text(hmmjit_report* report, const char* text, hmmjit_error** error) {
  return run(error, [&] { object(report, "report").add_text(&required(text, "text")); });
}
int32_t hmmjit_report_add(hmmjit_report* report, const hmmjit_result* result,
                          hmmjit_error** error) {
  return run(error, [&] { object(report, "report").add(object(result, "result")); });
}
int32_t hmmjit_report_complete(hmmjit_report* report, const hmmjit_run_info* given_run,
                               hmmjit_error** error) {
  return run(error, [&] { object(report, "report").complete(read(given_run)); });
}
int32_t hmmjit_report_take_text(hmmjit_report* report, hmmjit_text** out, hmmjit_error** error) {
  return run(error, [&] { give(out, object(report, "report").take_text()); });
}
void hmmjit_report_free(hmmjit_report* report) { delete report; }

// ---- parts of a search over many machines -------------------------------------------------------

int32_t hmmjit_search_part(const hmmjit_models* models, const char* database, uint32_t part,
                           uint32_t parts, const char* output, const hmmjit_search_options* options,
                           const hmmjit_callbacks* callbacks, hmmjit_part_info* info,
                           hmmjit_error** error) {
  return hmmjit_search_model_part(models, database, part, parts, 1, 1, output, options, callbacks,
                                  info, error);
}
int32_t hmmjit_search_model_part(const hmmjit_models* models, const char* database, uint32_t part,
                                 uint32_t parts, uint32_t model_part, uint32_t model_parts,
                                 const char* output, const hmmjit_search_options* options,
                                 const hmmjit_callbacks* callbacks, hmmjit_part_info* info,
                                 hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit_callbacks c = read(callbacks);
    if (info != nullptr) check_size(info->size);  // before the search, which may take hours
    const hmmjit::Models own_models = object(models, "models");  // callbacks may free the handle
    const hmmjit::PartInfo made = hmmjit::search_part(
        own_models, &required(database, "database"), {part, parts, model_part, model_parts},
        &required(output, "output"), read(options, hmmjit::SearchOptions()), to_callbacks(c));
    if (info != nullptr) write(info, made);
  });
}
int32_t hmmjit_merge_parts(const char* const* files, size_t count,
                           const hmmjit_callbacks* callbacks, hmmjit_results** out,
                           hmmjit_error** error) {
  return run(error, [&] {
    required(out, "the handle to fill");
    const hmmjit_callbacks c = read(callbacks);
    give_results(out, hmmjit::merge_parts(to_paths(files, count), to_callbacks(c)));
  });
}
int32_t hmmjit_join_parts(const char* const* files, size_t count, const char* output,
                          hmmjit_part_info* info, hmmjit_error** error) {
  return run(error, [&] {
    if (info != nullptr) check_size(info->size);  // before the file is written
    const hmmjit::PartInfo made =
        hmmjit::join_parts(to_paths(files, count), &required(output, "output"));
    if (info != nullptr) write(info, made);
  });
}
int32_t hmmjit_part_get_info(const char* file, hmmjit_part_info* info, hmmjit_text** settings,
                             hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::PartInfo part = hmmjit::part_info(&required(file, "file"));
    write(info, part);
    if (settings != nullptr) give(settings, part.settings);
  });
}
int32_t hmmjit_part_get_options(const char* file, hmmjit_search_options* options,
                                hmmjit_error** error) {
  return run(error, [&] { write(options, hmmjit::part_info(&required(file, "file")).options); });
}
int32_t hmmjit_part_verify(const char* file, hmmjit_error** error) {
  return run(error, [&] { hmmjit::verify_part(&required(file, "file")); });
}
int32_t hmmjit_parts_missing(const char* const* files, size_t count, hmmjit_text** out,
                             hmmjit_error** error) {
  return run(error, [&] { give(out, hmmjit::missing_parts(to_paths(files, count))); });
}

}  // extern "C"
