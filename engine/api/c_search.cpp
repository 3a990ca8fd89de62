// The C interface: searches and their results.
#include <memory>

#include "api/c_support.hpp"

using namespace hmmjit::c_interface;

namespace hmmjit::c_interface {

hmmjit_search_options default_options() {
  const hmmjit::SearchOptions d;
  hmmjit_search_options o{};
  o.size = sizeof o;
  o.E = d.report.e_value;
  o.domE = d.report_domain.e_value;
  o.incE = d.include.e_value;
  o.incdomE = d.include_domain.e_value;
  o.T = o.domT = o.incT = o.incdomT = kNone;
  o.F1 = d.F1;
  o.F2 = d.F2;
  o.F3 = d.F3;
  o.bias_filter = d.bias_filter;
  o.null2 = d.null2;
  o.seed = d.seed;
  o.keep_alignments = d.keep_alignments;
  o.verify = d.verify;
  o.target_count = -1;
  return o;
}

hmmjit::SearchOptions to_options(const hmmjit_search_options* given_options) {
  const hmmjit_search_options o = read(given_options, default_options());
  hmmjit::SearchOptions out;
  out.report = {o.E, given(o.T)};
  out.report_domain = {o.domE, given(o.domT)};
  out.include = {o.incE, given(o.incT)};
  out.include_domain = {o.incdomE, given(o.incdomT)};
  out.cutoffs = to_enum<hmmjit::ModelCutoffs>(o.cutoffs, HMMJIT_CUT_TC, "kind of cutoffs");
  out.max_sensitivity = o.max_sensitivity != 0;
  out.Z = positive(o.Z);
  out.domZ = positive(o.domZ);
  out.F1 = o.F1;
  out.F2 = o.F2;
  out.F3 = o.F3;
  out.bias_filter = o.bias_filter != 0;
  out.null2 = o.null2 != 0;
  out.seed = o.seed;
  out.keep_alignments = o.keep_alignments != 0;
  out.threads = o.threads;
  out.device = to_enum<hmmjit::DeviceUse>(o.device, HMMJIT_DEVICE_GPU, "kind of device");
  out.memory = o.memory;
  out.vram = o.vram;
  if (o.gpu_count > 0) {
    const std::int32_t* gpus = &required(o.gpus, "gpus");
    out.gpus.assign(gpus, gpus + o.gpu_count);
  }
  out.verify = o.verify;
  if (o.cache != nullptr) out.cache = o.cache->value;
  out.first_target = text_of(o.first_target);
  if (o.target_count < -1) misused("target_count takes a number, or -1 for all");
  if (o.target_count >= 0) out.target_count = static_cast<std::uint64_t>(o.target_count);
  return out;
}

hmmjit_search_options to_c(const hmmjit::SearchOptions& options) {
  hmmjit_search_options o = default_options();
  const auto threshold = [](const hmmjit::Threshold& t, double& e_value, double& score) {
    e_value = t.e_value;
    score = t.score.value_or(kNone);
  };
  threshold(options.report, o.E, o.T);
  threshold(options.report_domain, o.domE, o.domT);
  threshold(options.include, o.incE, o.incT);
  threshold(options.include_domain, o.incdomE, o.incdomT);
  o.cutoffs = static_cast<std::int32_t>(options.cutoffs);
  o.max_sensitivity = options.max_sensitivity;
  o.Z = options.Z.value_or(0);
  o.domZ = options.domZ.value_or(0);
  o.F1 = options.F1;
  o.F2 = options.F2;
  o.F3 = options.F3;
  o.bias_filter = options.bias_filter;
  o.null2 = options.null2;
  o.seed = options.seed;
  o.keep_alignments = options.keep_alignments;
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
      const hmmjit_progress progress{sizeof progress,
                                     p.models_started,
                                     p.models_done,
                                     p.targets,
                                     p.residues,
                                     p.target_bytes_read,
                                     p.target_bytes_total,
                                     p.cells,
                                     p.cells_queued,
                                     p.targets_complete,
                                     0};
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

hmmjit_filter_counts to_c(const hmmjit::FilterCounts& c) {
  return {c.targets, c.residues, c.msv, c.bias, c.viterbi, c.forward};
}

/// Domains of all hits, which lie one after the other.
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

const char* c_text(std::string_view text) { return text.data() != nullptr ? text.data() : ""; }

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
    out.backend = s.backend.c_str();
    out.device = s.device.c_str();
    out.threads = s.threads;
    out.models = s.models;
    out.targets = s.targets;
    out.residues = s.residues;
    out.passes = s.passes;
    out.hits_reported = s.hits_reported;
    out.domains_reported = s.domains_reported;
    out.device_cells = s.device_cells;
    out.device_launches = s.device_launches;
    out.wall_seconds = s.wall_seconds;
    out.read_seconds = s.read_seconds;
    out.setup_seconds = s.setup_seconds;
    out.msv_seconds = s.msv_seconds;
    out.bias_seconds = s.bias_seconds;
    out.viterbi_seconds = s.viterbi_seconds;
    out.scoring_seconds = s.scoring_seconds;
    out.counts = to_c(s.counts);
    out.streamed = s.streamed;
    out.spooled = s.spooled;
    out.ssv_seconds = s.ssv_seconds;
    out.report_seconds = s.report_seconds;
    out.verified = s.verified;
    out.peak_resident_bytes = s.peak_resident_bytes;
    out.device_busy_seconds = s.device_busy_seconds;
    out.device_active_seconds = s.device_active_seconds;
    out.device_peak_bytes = s.device_peak_bytes;
    out.device_upload_bytes = s.device_upload_bytes;
    out.kernels = s.kernels;
    out.kernels_compiled = s.kernels_compiled;
    out.kernels_loaded = s.kernels_loaded;
    out.compile_seconds = s.compile_seconds;
    out.json = s.json.c_str();
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
      out.name = c_text(hit.name);
      out.accession = c_text(hit.accession);
      out.description = c_text(hit.description);
      out.index = hit.index;
      out.e_value = hit.e_value;
      out.score = hit.score;
      out.bias = hit.bias;
      out.expected_domains = hit.expected_domains;
      out.length = hit.length;
      out.reported = hit.reported;
      out.included = hit.included;
      out.regions = hit.regions;
      out.clustered = hit.clustered;
      out.overlaps = hit.overlaps;
      out.envelopes = hit.envelopes;
      out.best_domain = hit.best_domain;
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
    // The hit that the first of them belongs to: domains lie in the order of the hits.
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
      out.hit = hit;
      out.envelope_from = d.envelope_from;
      out.envelope_to = d.envelope_to;
      out.alignment_from = d.alignment_from;
      out.alignment_to = d.alignment_to;
      out.model_from = d.model_from;
      out.model_to = d.model_to;
      out.reported = d.reported;
      out.included = d.included;
      out.score = d.score;
      out.bias = d.bias;
      out.conditional_e_value = d.conditional_e_value;
      out.independent_e_value = d.independent_e_value;
      out.accuracy = d.accuracy;
      out.model = c_text(d.alignment.model);
      out.match = c_text(d.alignment.match);
      out.sequence = c_text(d.alignment.sequence);
      out.posterior = c_text(d.alignment.posterior);
      out.reference = c_text(d.alignment.reference);
      out.structure = c_text(d.alignment.structure);
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
