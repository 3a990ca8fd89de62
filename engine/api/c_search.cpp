// The C interface: searches and their results.
#include <memory>

#include "api/c_support.hpp"

using namespace hmmjit::c_interface;

namespace hmmjit::c_interface {

hmmjit_search_options default_options() { return to_c(hmmjit::SearchOptions()); }

hmmjit::SearchOptions to_options(const hmmjit_search_options* given_options) {
  const hmmjit_search_options o = read(given_options, default_options());
  hmmjit::SearchOptions out;
  // All but the eight thresholds, GPUs and cutoffs with their numbers, and the cache.
  HMMJIT_COPY_MEMBERS(HMMJIT_SEARCH_OPTIONS_MEMBERS, 13)(out, o);
  out.report = {o.E, given(o.T)};
  out.report_domain = {o.domE, given(o.domT)};
  out.include = {o.incE, given(o.incT)};
  out.include_domain = {o.incdomE, given(o.incdomT)};
  out.cutoffs = to_enum<hmmjit::ModelCutoffs>(o.cutoffs, HMMJIT_CUT_TABLE, "kind of cutoffs");
  for (std::size_t i = 0; i < o.cutoff_count; ++i) {
    const hmmjit_cutoff& c = (&required(o.cutoff_table, "cutoff_table"))[i];
    out.cutoff_table[&required(c.model, "model")] = {c.score, c.domain_score};
  }
  out.missing_cutoffs =
      to_enum<hmmjit::MissingCutoffs>(o.missing_cutoffs, HMMJIT_MISSING_DEFAULT, "missing_cutoffs");
  out.device = to_enum<hmmjit::DeviceUse>(o.device, HMMJIT_DEVICE_GPU, "kind of device");
  out.Z = positive(o.Z);
  out.domZ = positive(o.domZ);
  if (o.target_count == -1) out.target_count.reset();
  if (o.gpu_count > 0) {
    const std::int32_t* gpus = &required(o.gpus, "gpus");
    out.gpus.assign(gpus, gpus + o.gpu_count);
  }
  if (o.cache != nullptr) out.cache = o.cache->value;
  if (o.target_count < -1) misused("target_count takes a number, or -1 for all");
  return out;
}

hmmjit_search_options to_c(const hmmjit::SearchOptions& options) {
  hmmjit_search_options o{};
  o.size = sizeof o;
  HMMJIT_COPY_MEMBERS(HMMJIT_SEARCH_OPTIONS_MEMBERS, 14)(o, options);
  const auto threshold = [](const hmmjit::Threshold& t, double& e_value, double& score) {
    e_value = t.e_value;
    score = t.score.value_or(kNone);
  };
  threshold(options.report, o.E, o.T);
  threshold(options.report_domain, o.domE, o.domT);
  threshold(options.include, o.incE, o.incT);
  threshold(options.include_domain, o.incdomE, o.incdomT);
  o.Z = options.Z.value_or(0);
  o.domZ = options.domZ.value_or(0);
  // Options of the machine and of the targets have their defaults.
  const hmmjit::SearchOptions defaults;
  o.threads = defaults.threads;
  o.device = static_cast<std::int32_t>(defaults.device);
  o.memory = defaults.memory;
  o.vram = defaults.vram;
  o.verify = defaults.verify;
  o.first_target = nullptr;
  o.target_count = -1;
  return o;
}

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
    to.progress = [&c](const hmmjit::Progress& p) {
      hmmjit_progress progress{};
      progress.size = sizeof progress;
      HMMJIT_COPY_MEMBERS(HMMJIT_PROGRESS_MEMBERS, 0)(progress, p);
      return c.progress(c.context, &progress) == 0;
    };
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

std::unique_ptr<hmmjit_results> to_results(hmmjit::SearchResults found) {
  auto results = std::make_unique<hmmjit_results>();
  results->statistics = std::move(found.statistics);
  results->options = std::move(found.options);
  for (hmmjit::ModelResult& model : found.models) results->models.push_back({std::move(model)});
  return results;
}

}  // namespace hmmjit::c_interface

namespace {

hmmjit_nhmmer_options default_nhmmer_options() {
  hmmjit_nhmmer_options o{};
  o.size = sizeof o;
  HMMJIT_COPY_MEMBERS(HMMJIT_NHMMER_OPTIONS_MEMBERS, 1)(o, hmmjit::NhmmerOptions());
  return o;
}

hmmjit_filter_counts to_c(const hmmjit::FilterCounts& c) {
  hmmjit_filter_counts out{};
  HMMJIT_COPY_MEMBERS(HMMJIT_FILTER_COUNTS_MEMBERS, 0)(out, c);
  return out;
}

/// Domains of all hits, which are contiguous.
std::span<const hmmjit::Domain> all_domains(const hmmjit::ModelResult& result) {
  const auto hits = result.hits();
  if (hits.empty()) return {};
  const hmmjit::Domain* first = hits.front().domains.data();
  return {first, hits.back().domains.data() + hits.back().domains.size()};
}

template <typename T>
void check_range(std::size_t first, std::size_t count, std::size_t all, T* out) {
  if (first > all || count > all - first)
    misused("a range beyond the " + std::to_string(all) + " there are");
  if (count > 0) check_size(required(out, "the array to fill").size);
}

}  // namespace

extern "C" {

// ---- search ------------------------------------------------------------------------------------

int32_t hmmjit_search_options_init(hmmjit_search_options* options, hmmjit_error** error) {
  return run(error, [&] { write(options, default_options()); });
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
  return run(error, [&] {
    required(out, "the handle to fill");
    const hmmjit_callbacks c = read(callbacks);
    // Callbacks may free the handles.
    const hmmjit::Models own_models = required(models, "models").value;
    const hmmjit::Targets own_targets = required(targets, "targets").value;
    *out = to_results(hmmjit::search(own_models, own_targets, to_options(options), to_callbacks(c)))
               .release();
  });
}

int32_t hmmjit_nhmmer_options_init(hmmjit_nhmmer_options* options, hmmjit_error** error) {
  return run(error, [&] { write(options, default_nhmmer_options()); });
}
int32_t hmmjit_nhmmer(const hmmjit_models* models, const hmmjit_targets* targets,
                      const hmmjit_nhmmer_options* options, const hmmjit_callbacks* callbacks,
                      hmmjit_results** out, hmmjit_error** error) {
  return run(error, [&] {
    required(out, "the handle to fill");
    const hmmjit_callbacks c = read(callbacks);
    const hmmjit_nhmmer_options o = read(options, default_nhmmer_options());
    hmmjit::NhmmerOptions to;
    HMMJIT_COPY_MEMBERS(HMMJIT_NHMMER_OPTIONS_MEMBERS, 1)(to, o);
    to.strands = to_enum<hmmjit::Strands>(o.strands, HMMJIT_STRANDS_BOTTOM, "strands");
    if (o.search != nullptr) to.search = to_options(o.search);
    const hmmjit::Models own_models = required(models, "models").value;
    const hmmjit::Targets own_targets = required(targets, "targets").value;
    *out = to_results(hmmjit::nhmmer(own_models, own_targets, to, to_callbacks(c))).release();
  });
}

size_t hmmjit_results_count(const hmmjit_results* results) {
  return results != nullptr ? results->models.size() : 0;
}
const hmmjit_result* hmmjit_results_get(const hmmjit_results* results, size_t index) {
  return results != nullptr && index < results->models.size() ? &results->models[index] : nullptr;
}
int32_t hmmjit_results_statistics(const hmmjit_results* results,
                                  hmmjit_search_statistics* statistics, hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::SearchStatistics& s = required(results, "results").statistics;
    hmmjit_search_statistics out{};
    HMMJIT_COPY_MEMBERS(HMMJIT_SEARCH_STATISTICS_MEMBERS, 1)(out, s);
    out.counts = to_c(s.counts);
    write(statistics, out);
  });
}
int32_t hmmjit_results_get_options(const hmmjit_results* results, hmmjit_search_options* options,
                                   hmmjit_error** error) {
  return run(error, [&] { write(options, to_c(required(results, "results").options)); });
}
void hmmjit_results_free(hmmjit_results* results) { delete results; }

// ---- results of one model ----------------------------------------------------------------------

int32_t hmmjit_result_get_info(const hmmjit_result* result, hmmjit_result_info* info,
                               hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::ModelResult& r = required(result, "result").value;
    hmmjit_result_info out{};
    out.model_index = r.index();
    out.model_name = r.model_name().c_str();
    out.model_accession = r.model_accession().c_str();
    out.model_description = r.model_description().c_str();
    out.model_length = r.model_length();
    out.has_alignments = r.has_alignments();
    out.hits = r.hits().size();
    out.reported = r.reported();
    out.included = r.included();
    out.domains = all_domains(r).size();
    out.Z = r.Z();
    out.domZ = r.domZ();
    out.seconds = r.seconds();
    out.long_targets = r.long_targets();
    out.counts = to_c(r.counts());
    write(info, out);
  });
}

int32_t hmmjit_result_get_hits(const hmmjit_result* result, size_t first, size_t count,
                               hmmjit_hit* hits, hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::ModelResult& r = required(result, "result").value;
    check_range(first, count, r.hits().size(), hits);
    const auto domains = all_domains(r);
    const size_t size = count > 0 ? hits->size : 0;
    for (size_t i = 0; i < count; ++i) {
      const hmmjit::Hit& hit = r.hits()[first + i];
      hmmjit_hit out{};
      HMMJIT_COPY_MEMBERS(HMMJIT_HIT_MEMBERS, 2)(out, hit);
      out.first_domain = static_cast<size_t>(hit.domains.data() - domains.data());
      out.domains = hit.domains.size();
      write(element(hits, i, size), out, size);
    }
  });
}

int32_t hmmjit_result_get_domains(const hmmjit_result* result, size_t first, size_t count,
                                  hmmjit_domain* domains, hmmjit_error** error) {
  return run(error, [&] {
    const hmmjit::ModelResult& r = required(result, "result").value;
    const auto all = all_domains(r);
    check_range(first, count, all.size(), domains);
    const size_t size = count > 0 ? domains->size : 0;
    const auto hits = r.hits();
    // The hit of the first domain: domains are in the order of hits.
    size_t hit =
        static_cast<size_t>(std::upper_bound(hits.begin(), hits.end(), all.data() + first,
                                             [](const hmmjit::Domain* d, const hmmjit::Hit& h) {
                                               return d < h.domains.data() + h.domains.size();
                                             }) -
                            hits.begin());
    for (size_t i = 0; i < count; ++i) {
      const hmmjit::Domain& d = all[first + i];
      while (&d >= hits[hit].domains.data() + hits[hit].domains.size()) ++hit;
      hmmjit_domain out{};
      HMMJIT_COPY_MEMBERS(HMMJIT_DOMAIN_MEMBERS, 7)(out, d);
      HMMJIT_COPY_MEMBERS(HMMJIT_DOMAIN_MEMBERS, 15)(out, d.alignment);
      out.hit = hit;
      write(element(domains, i, size), out, size);
    }
  });
}

int32_t hmmjit_result_copy(const hmmjit_result* result, hmmjit_result** out, hmmjit_error** error) {
  return run(error, [&] { give(out, required(result, "result").value); });
}
int32_t hmmjit_result_write(const hmmjit_result* result, hmmjit_text** out, hmmjit_error** error) {
  return run(error, [&] { give(out, required(result, "result").value.bytes()); });
}
int32_t hmmjit_result_read(const void* bytes, size_t size, hmmjit_result** out,
                           hmmjit_error** error) {
  return run(error, [&] {
    const auto* data = static_cast<const char*>(bytes);
    if (size > 0) required(data, "bytes");
    give(out, hmmjit::ModelResult::from_bytes({data, size}));
  });
}
int32_t hmmjit_result_merge(const hmmjit_result* const* results, size_t count,
                            const hmmjit_search_options* options, hmmjit_result** out,
                            hmmjit_error** error) {
  return run(error, [&] {
    std::vector<hmmjit::ModelResult> all;
    for (size_t i = 0; i < count; ++i)
      all.push_back(required((&required(results, "results"))[i], "results").value);
    give(out, hmmjit::merge_results(all, to_options(options)));
  });
}
void hmmjit_result_free(hmmjit_result* result) { delete result; }

}  // extern "C"
