#include "report/run_statistics.hpp"

#include <nlohmann/json.hpp>

#include "core/memory.hpp"

namespace hmmjit {
namespace {

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds / 1e9 : 0.0; }

nlohmann::ordered_json gpu_json(const std::optional<gpu::Statistics>& gpu,
                                const std::string& note) {
  nlohmann::ordered_json json;
  if (!gpu) {
    json["state"] = "off";
    json["reason"] = note;
    return json;
  }
  const gpu::Statistics& g = *gpu;
  json["state"] = g.state;
  if (!g.reason.empty()) json["reason"] = g.reason;
  json["devices"] = g.devices;
  json["ready_after_seconds"] = g.ready_seconds;
  json["driver_seconds"] = g.driver_seconds;
  json["context_seconds"] = g.context_seconds;
  json["pack_seconds"] = g.pack_seconds;
  json["segments"] = g.segments;
  json["evictions"] = g.evictions;
  json["upload_bytes"] = g.upload_bytes;
  json["peak_device_bytes"] = g.peak_device_bytes;
  json["launches"] = g.launches;
  json["cells"] = g.cells;
  json["busy_seconds"] = g.busy_seconds;
  json["active_seconds"] = g.active_seconds;
  json["busy_share"] = g.active_seconds > 0 ? g.busy_seconds / g.active_seconds : 0.0;
  json["gcups"] = rate(static_cast<double>(g.cells), g.busy_seconds);
  json["chains"] = g.chains;
  json["targets"] = g.targets;
  json["passed_msv"] = g.survivors;
  json["undecided"] = g.undecided;
  json["viterbi_targets"] = g.viterbi;
  json["viterbi_flagged"] = g.viterbi_flagged;
  json["forward_targets"] = g.forward;
  json["left_open"] = g.open;
  json["parsed_targets"] = g.parsed;
  json["sampled_regions"] = g.sampled;
  json["scored_envelopes"] = g.envelopes;
  json["passed"] = g.passed;
  auto& seconds = json["stage_seconds"];
  for (std::size_t i = 0; i < gpu::kTimedStages.size(); ++i)
    seconds[gpu::kTimedStages[i]] = g.stage_seconds[i];
  for (std::size_t i = 0; i < gpu::kDomainStages.size(); ++i)
    seconds[gpu::kDomainStages[i]] = g.domain_seconds[i];
  json["blocks_done"] = g.blocks_done;
  json["blocks_given_back"] = g.blocks_given_back;
  json["models_declined"] = g.models_declined;
  json["kernels"] = {{"distinct", g.distinct_kernels},
                     {"compiled", g.kernels.compiled},
                     {"from_memory", g.kernels.memory_hits},
                     {"from_disk", g.kernels.disk_hits},
                     {"rejected", g.kernels.rejected},
                     {"failed", g.kernels.failed},
                     {"compile_seconds", g.kernels.compile_seconds}};
  return json;
}

}  // namespace

std::string run_statistics_json(const RunStatistics& run) {
  const SearchStatistics& s = run.search;
  const double total =
      s.read_seconds + s.setup_seconds + s.filters.total() + s.scoring_seconds + s.report_seconds;
  const auto timed = [total](double seconds) {
    nlohmann::ordered_json entry;
    entry["seconds"] = seconds;
    entry["share"] = total > 0 ? seconds / total : 0.0;
    return entry;
  };
  const auto stage = [&](double seconds, std::uint64_t cells) {
    nlohmann::ordered_json entry = timed(seconds);
    entry["cells"] = cells;
    entry["gcups"] = rate(static_cast<double>(cells), seconds);
    return entry;
  };
  nlohmann::ordered_json json;
  json["program"] = run.program;
  json["version"] = run.version;
  json["backend"] = s.backend;
  json["threads"] = s.threads;
  json["gpu"] = gpu_json(run.gpu, run.gpu_note);
  json["models"] = s.models;
  json["targets"] = s.targets;
  json["residues"] = s.residues;
  json["wall_seconds"] = s.wall_seconds;
  json["peak_resident_bytes"] = peak_resident_memory();
  json["target_passes"] = s.passes;
  json["target_blocks"] = s.blocks;
  json["targets_streamed"] = s.streamed;
  json["targets_spooled"] = s.spooled;
  json["batches_scored_alone"] = s.scored_alone;
  json["verified"] = s.verified;
  json["passed"] = {{"msv", s.counters.msv},
                    {"bias", s.counters.bias},
                    {"viterbi", s.counters.viterbi},
                    {"forward", s.counters.forward}};
  json["targets_reported"] = s.hits_reported;
  json["domains_reported"] = s.domains_reported;
  auto& stages = json["stages"];
  // What shares out the core-seconds comes first; `forward` and the others are parts of scoring.
  stages["read"] = timed(s.read_seconds);
  stages["read"]["bytes"] = s.bytes_read;
  stages["read"]["megabytes_per_second"] =
      1e3 * rate(static_cast<double>(s.bytes_read), s.read_seconds);
  stages["model_setup"] = timed(s.setup_seconds);
  stages["ssv"] = stage(s.filters.ssv, s.filters.ssv_cells);
  stages["msv"] = stage(s.filters.msv, s.filters.msv_cells);
  stages["bias"] = timed(s.filters.bias);
  stages["bias"]["residues"] = s.filters.bias_residues;
  stages["viterbi"] = stage(s.filters.viterbi, s.filters.viterbi_cells);
  stages["scoring"] = timed(s.scoring_seconds);
  stages["report"] = timed(s.report_seconds);
  stages["forward"] = stage(s.domain.forward, s.forward_cells);
  stages["backward"] = timed(s.domain.backward);
  stages["decoding"] = timed(s.domain.decoding);
  stages["ensemble"] = timed(s.domain.ensemble);
  stages["clustering"] = timed(s.domain.clustering);
  stages["envelope"] = timed(s.domain.envelope);
  stages["alignment"] = timed(s.domain.alignment);
  return json.dump(2) + "\n";
}

}  // namespace hmmjit
