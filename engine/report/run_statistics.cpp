#include "report/run_statistics.hpp"

#include "core/json_object.hpp"
#include "core/memory.hpp"

namespace hmmjit {
namespace {

double rate(double amount, double seconds) { return seconds > 0 ? amount / seconds / 1e9 : 0.0; }

void write_lanes(JsonObject& json, std::string_view name, const gpu::LaneTimes& lanes) {
  JsonObject entry = json.object(name);
  entry.number("working_seconds", lanes.working);
  entry.number("waiting_seconds", lanes.waiting);
  entry.number("idle_seconds", lanes.idle);
  entry.close();
}

// Compares each stage's time with the expected time for its cells, and breaks down the time of
// lanes.
void write_efficiency(JsonObject& json, const gpu::Statistics& g) {
  JsonObject stages = json.object("stages");
  double expected = 0;
  const auto write = [](JsonObject& entry, const gpu::StageTimes& stage) {
    entry.number("seconds", stage.seconds);
    entry.number("busy_seconds", stage.busy_seconds);
    if (stage.cells > 0) {
      entry.number("cells", stage.cells);
      entry.number("expected_seconds", stage.expected_seconds);
    }
  };
  for (std::size_t i = 0; i < gpu::kTimedStages.size(); ++i) {
    JsonObject entry = stages.object(gpu::kTimedStages[i]);
    write(entry, g.stages[i]);
    entry.close();
    expected += g.stages[i].expected_seconds;
  }
  for (std::size_t i = 0; i < gpu::kDomainStages.size(); ++i) {
    const gpu::DomainStageTimes& stage = g.domain_stages[i];
    JsonObject entry = stages.object(gpu::kDomainStages[i]);
    write(entry, stage);
    if (stage.busy_seconds > 0) {
      entry.number("gcups", rate(static_cast<double>(stage.cells), stage.busy_seconds));
      entry.number("efficiency", stage.expected_seconds / stage.busy_seconds);
    }
    JsonObject host = entry.object("host_cells");
    for (std::size_t why = 0; why < gpu::kHostReasons.size(); ++why)
      host.number(gpu::kHostReasons[why], stage.host_cells[why]);
    host.close();
    entry.close();
  }
  stages.close();
  JsonObject filters = json.object("filters");
  filters.number("busy_seconds", g.filters_busy_seconds);
  filters.number("expected_seconds", expected);
  filters.number("efficiency",
                 g.filters_busy_seconds > 0 ? expected / g.filters_busy_seconds : 0.0);
  filters.close();
  write_lanes(json, "filter_lanes", g.filter_lanes);
  write_lanes(json, "domain_lanes", g.domain_lanes);
}

void write_gpu(JsonObject& json, const std::optional<gpu::Statistics>& gpu,
               const std::string& note) {
  if (!gpu) {
    json.text("state", "off");
    json.text("reason", note);
    return;
  }
  const gpu::Statistics& g = *gpu;
  json.text("state", g.state);
  if (const std::string& reason = g.reason.empty() ? note : g.reason; !reason.empty())
    json.text("reason", reason);
  json.array("devices", g.devices, text::json_string);
  json.number("ready_after_seconds", g.ready_seconds);
  json.number("driver_seconds", g.driver_seconds);
  json.number("context_seconds", g.context_seconds);
  json.number("pack_seconds", g.pack_seconds);
  json.number("segments", g.segments);
  json.number("evictions", g.evictions);
  json.number("upload_bytes", g.upload_bytes);
  json.number("peak_device_bytes", g.peak_device_bytes);
  json.number("launches", g.launches);
  json.number("cells", g.cells);
  json.number("busy_seconds", g.busy_seconds);
  json.number("active_seconds", g.active_seconds);
  json.number("busy_share", g.active_seconds > 0 ? g.busy_seconds / g.active_seconds : 0.0);
  json.number("gcups", rate(static_cast<double>(g.cells), g.busy_seconds));
  json.number("chains", g.chains);
  json.number("targets", g.targets);
  json.number("passed_msv", g.survivors);
  json.number("undecided", g.undecided);
  json.number("viterbi_targets", g.viterbi);
  json.number("viterbi_flagged", g.viterbi_flagged);
  json.number("forward_targets", g.forward);
  json.number("left_open", g.open);
  json.number("parsed_targets", g.parsed);
  json.number("sampled_regions", g.sampled);
  json.number("scored_envelopes", g.envelopes);
  json.number("passed", g.passed);
  write_efficiency(json, g);
  json.number("blocks_done", g.blocks_done);
  json.number("blocks_given_back", g.blocks_given_back);
  json.number("models_declined", g.models_declined);
  JsonObject kernels = json.object("kernels");
  kernels.number("distinct", g.distinct_kernels);
  kernels.number("compiled", g.kernels.compiled);
  kernels.number("from_memory", g.kernels.memory_hits);
  kernels.number("from_disk", g.kernels.disk_hits);
  kernels.number("rejected", g.kernels.rejected);
  kernels.number("failed", g.kernels.failed);
  kernels.number("compile_seconds", g.kernels.compile_seconds);
  kernels.close();
}

}  // namespace

std::string run_statistics_json(const RunStatistics& run) {
  const SearchStatistics& s = run.search;
  const double total =
      s.read_seconds + s.setup_seconds + s.filters.total() + s.scoring_seconds + s.report_seconds;
  const auto write_time = [total](JsonObject& entry, double seconds) {
    entry.number("seconds", seconds);
    entry.number("share", total > 0 ? seconds / total : 0.0);
  };
  std::string out;
  JsonObject json(out, JsonObject::Layout::kIndented);
  json.text("program", run.program);
  json.text("version", run.version);
  json.text("backend", s.backend);
  json.number("threads", s.threads);
  JsonObject gpu = json.object("gpu");
  write_gpu(gpu, run.gpu, run.gpu_note);
  gpu.close();
  json.number("models", s.models);
  json.number("targets", s.targets);
  json.number("residues", s.residues);
  json.number("wall_seconds", s.wall_seconds);
  json.number("peak_resident_bytes", peak_resident_memory());
  json.number("target_passes", s.passes);
  json.number("target_blocks", s.blocks);
  json.number("targets_streamed", s.streamed);
  json.number("targets_spooled", s.spooled);
  json.number("batches_scored_alone", s.scored_alone);
  json.number("shared", s.shared);
  if (s.wall_seconds > 0 && s.threads > 0)
    json.number("threads_busy_share", total / (s.threads * s.wall_seconds));
  json.number("verified", s.verified);
  json.number("verified_chains", s.verified_chains);
  json.number("verify_seconds", s.verify_seconds);
  JsonObject passed = json.object("passed");
  passed.number("msv", s.counters.msv);
  passed.number("bias", s.counters.bias);
  passed.number("viterbi", s.counters.viterbi);
  passed.number("forward", s.counters.forward);
  passed.close();
  json.number("targets_reported", s.hits_reported);
  json.number("domains_reported", s.domains_reported);
  JsonObject stages = json.object("stages");
  const auto plain = [&](const char* name, double seconds) {
    JsonObject entry = stages.object(name);
    write_time(entry, seconds);
    entry.close();
  };
  const auto stage = [&](const char* name, double seconds, std::uint64_t cells) {
    JsonObject entry = stages.object(name);
    write_time(entry, seconds);
    entry.number("cells", cells);
    entry.number("gcups", rate(static_cast<double>(cells), seconds));
    entry.close();
  };
  // The stages up to "report" add up to all core-seconds; the later ones are parts of scoring.
  JsonObject read = stages.object("read");
  write_time(read, s.read_seconds);
  read.number("bytes", s.bytes_read);
  read.number("megabytes_per_second",
              1e3 * rate(static_cast<double>(s.bytes_read), s.read_seconds));
  read.close();
  plain("model_setup", s.setup_seconds);
  stage("ssv", s.filters.ssv, s.filters.ssv_cells);
  stage("msv", s.filters.msv, s.filters.msv_cells);
  JsonObject bias = stages.object("bias");
  write_time(bias, s.filters.bias);
  bias.number("residues", s.filters.bias_residues);
  bias.close();
  stage("viterbi", s.filters.viterbi, s.filters.viterbi_cells);
  plain("scoring", s.scoring_seconds);
  plain("report", s.report_seconds);
  stage("forward", s.domain.forward.seconds, s.domain.forward.cells);
  stage("backward", s.domain.backward.seconds, s.domain.backward.cells);
  plain("decoding", s.domain.decoding.seconds);
  stage("ensemble", s.domain.ensemble.seconds, s.domain.ensemble.cells);
  plain("clustering", s.domain.clustering.seconds);
  stage("envelope", s.domain.envelope.seconds, s.domain.envelope.cells);
  plain("alignment", s.domain.alignment.seconds);
  stages.close();
  json.close();
  return out += '\n';
}

}  // namespace hmmjit
