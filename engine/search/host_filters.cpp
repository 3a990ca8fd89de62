#include "search/host_filters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "core/threads.hpp"
#include "layout/float_tables.hpp"
#include "model/residue_copies.hpp"
#include "reference/filters.hpp"
#include "search/target_counters.hpp"

namespace hmmjit {
namespace {

// Null scores by length: two logarithms per target would cost as much as the filter itself for
// a short model. Longer targets are rare and pay for their own.
float cached_null_score(int L) {
  static const auto table = [] {
    std::vector<float> scores(8192);
    for (std::size_t length = 1; length < scores.size(); ++length)
      scores[length] = null_score(static_cast<int>(length));
    return scores;
  }();
  const auto length = static_cast<std::size_t>(L);
  return length < table.size() ? table[length] : null_score(L);
}

}  // namespace

HostFilters::HostFilters(const PreparedModel& model, const FilterOptions& options)
    : model_(model),
      options_(options),
      msv_gate_(calibration().msv_mu, calibration().msv_lambda, options.F1),
      skip_viterbi_gate_(calibration().msv_mu, calibration().msv_lambda, options.F2),
      viterbi_gate_(calibration().viterbi_mu, calibration().viterbi_lambda, options.F2) {}

Status HostFilters::run(const TargetBlock& block, std::size_t begin, std::size_t end,
                        cpu::FilterScratch& scratch, FilterOutput& output) const {
  const auto M = static_cast<std::uint64_t>(model_.hmm().M);
  std::vector<Candidate> candidates;
  FilterCounters& counters = output.counters;
  ResidueCopies copies;
  const cpu::FilterTables* const kernels = need_msv_ ? &model_.tables() : nullptr;
  const bool copy_all = need_msv_ && !kernels->ssv_takes_any_byte();

  CoreClock clock;
  // Few enough that what SSV has read is still in a cache where it is needed again.
  constexpr std::size_t kBatch = 512;
  std::array<std::span<const Residue>, kBatch> targets;
  std::array<reference::SsvResult, kBatch> ssv;
  for (std::size_t first = begin; first < end; first += kBatch) {
    const std::size_t count = std::min(kBatch, end - first);
    for (std::size_t i = 0; i < count; ++i) {
      targets[i] = block[first + i].residues;
      if (copy_all && !targets[i].empty()) {
        HMMJIT_ASSIGN(targets[i], copies.of(block, first + i, alphabet()));
      }
    }
    if (need_msv_)
      kernels->ssv_batch(std::span(targets).first(count), std::span(ssv).first(count), scratch);
    for (std::size_t i = 0; i < count; ++i) {
      std::span<const Residue> residues = targets[i];
      const int L = static_cast<int>(residues.size());
      ++counters.targets;
      counters.residues += residues.size();
      if (L == 0) continue;
      const std::size_t index = first + i;
      Candidate candidate{static_cast<std::uint32_t>(index), cached_null_score(L), 0, 0, {}};
      if (need_msv_) {
        output.times.ssv_cells += residues.size() * M;
        candidate.msv_nats = ssv[i].nats;
        if (ssv[i].status == reference::SsvStatus::kNoResult) {
          output.times.ssv += clock.lap();
          HMMJIT_ASSIGN(residues, copies.of(block, index, alphabet()));
          candidate.msv_nats = kernels->msv_recurrence(residues, scratch);
          output.times.msv_cells += residues.size() * M;
          output.times.msv += clock.lap();
        }
        candidate.bits = nats_to_bits(candidate.msv_nats - candidate.filter_nats);
        if (msv_gate_.rejects(candidate.bits)) continue;
      }
      ++counters.msv;
      HMMJIT_ASSIGN(candidate.residues, copies.of(block, index, alphabet()));
      if (options_.per_target != nullptr) options_.per_target->msv(block.first_index() + index);
      candidates.push_back(candidate);
    }
  }
  output.times.ssv += clock.lap();
  after_msv(block, candidates, clock, scratch, output);
  return {};
}

Status HostFilters::run_survivors(const TargetBlock& block, const gpu::FilteredBlock& filtered,
                                  cpu::FilterScratch& scratch, FilterOutput& output) const {
  FilterCounters& counters = output.counters;
  const std::uint64_t passed = filtered.passed.size();
  counters.viterbi += passed + filtered.failed_forward;
  counters.bias += passed + filtered.failed_forward + filtered.failed_viterbi;
  counters.msv += passed + filtered.failed_forward + filtered.failed_viterbi + filtered.failed_bias;

  TargetCounters* const each = options_.per_target;
  const auto count = [&](std::uint32_t index, gpu::Fate fate) {
    const std::uint64_t target = block.first_index() + index;
    each->msv(target);
    if (fate >= gpu::Fate::kViterbi) each->bias(target);
    if (fate >= gpu::Fate::kForward) each->viterbi(target);
  };
  if (each != nullptr) {
    for (const gpu::FailedTarget& failed : filtered.failed) count(failed.index, failed.fate);
    for (const std::uint32_t index : filtered.passed) count(index, gpu::Fate::kPassed);
  }

  ResidueCopies copies;
  std::vector<Candidate> candidates;
  candidates.reserve(filtered.open.size());
  CoreClock clock;
  for (const gpu::MsvSurvivor& survivor : filtered.open) {
    HMMJIT_ASSIGN(const std::span<const Residue> residues,
                  copies.of(block, survivor.index, alphabet()));
    Candidate candidate{survivor.index, cached_null_score(static_cast<int>(residues.size())),
                        survivor.nats, 0, residues};
    const bool open = std::isnan(survivor.nats);
    if (open) {
      candidate.msv_nats = model_.tables().msv_filter(residues, scratch);
      output.times.msv_cells += residues.size() * static_cast<std::uint64_t>(model_.hmm().M);
    }
    candidate.bits = nats_to_bits(candidate.msv_nats - candidate.filter_nats);
    if (open && msv_gate_.rejects(candidate.bits)) continue;
    ++counters.msv;
    if (each != nullptr) each->msv(block.first_index() + survivor.index);
    candidates.push_back(candidate);
  }
  output.times.msv += clock.lap();
  after_msv(block, candidates, clock, scratch, output);

  // The Forward filter needs the filter score to the bit.
  candidates.clear();
  for (const std::uint32_t index : filtered.passed) {
    HMMJIT_ASSIGN(const std::span<const Residue> residues, copies.of(block, index, alphabet()));
    candidates.push_back(
        {index, cached_null_score(static_cast<int>(residues.size())), 0, 0, residues});
  }
  if (options_.bias) {
    const std::vector<float> scores = bias_scores(candidates, output);
    for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].filter_nats = scores[i];
  }
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    output.survivors.push_back({candidates[i].index, candidates[i].filter_nats,
                                filtered.parsed.empty() ? nullptr : filtered.parsed[i]});
  }
  std::ranges::sort(output.survivors, {}, &Survivor::index);
  output.times.bias += clock.lap();
  return {};
}

SampleComparison HostFilters::compare(const TargetBlock& block, const gpu::SampledTarget& t,
                                      cpu::FilterScratch& scratch) const {
  const cpu::FilterTables& kernels = model_.tables_with_viterbi();
  using gpu::Fate;
  using plan::Stage;
  SampleComparison out;
  ResidueCopies copies;
  const auto copied = copies.of(block, t.index, alphabet());
  if (!copied) return out;  // the search ends with this error elsewhere
  const std::span<const Residue> residues = *copied;
  const auto differs = [&](Stage stage, float device, float cpu) {
    out.different = {stage, device, cpu};
    return out;
  };
  // An open target may pass or fail, but not at a stage before it was left open.
  const bool open = t.fate == Fate::kOpen;

  const reference::SsvResult ssv = kernels.ssv(residues, scratch);
  const bool by_ssv = ssv.status != reference::SsvStatus::kNoResult;
  if (by_ssv == (t.undecided || t.recurrence)) return differs(Stage::kSsv, t.msv, ssv.nats);
  if (t.undecided) return out;  // the CPU runs the MSV recurrence
  const Stage byte_stage = t.recurrence ? Stage::kMsv : Stage::kSsv;
  const float msv = by_ssv ? ssv.nats : kernels.msv_recurrence(residues, scratch);
  if (msv != t.msv) return differs(byte_stage, t.msv, msv);
  const float null_nats = cached_null_score(static_cast<int>(residues.size()));
  const bool fails_msv = msv_gate_.rejects(nats_to_bits(msv - null_nats));
  if (fails_msv != (t.fate == Fate::kMsv)) return differs(byte_stage, t.msv, msv);
  if (t.depth == Stage::kMsv || fails_msv) return out;

  out.filter_nats = null_nats;
  if (options_.bias) {
    const std::span<const Residue> targets[] = {residues};
    kernels.bias_filter_batch(targets, {&out.filter_nats, 1});
    // More than any order of the sum can make.
    constexpr float kGuard = 1e-3f;
    const auto length = static_cast<int>(residues.size());
    const float guard = kGuard + layout::bias_guard(out.filter_nats - null_nats, length);
    if (!std::isnan(t.filter) && !(std::fabs(t.filter - out.filter_nats) <= guard))
      return differs(Stage::kBias, t.filter, out.filter_nats);
  }
  const float bits = nats_to_bits(msv - out.filter_nats);
  const bool fails_bias = options_.bias && msv_gate_.rejects(bits);
  if (!open && fails_bias != (t.fate == Fate::kBias))
    return differs(Stage::kGate, t.filter, out.filter_nats);
  if (t.depth == Stage::kBias || t.fate == Fate::kBias) return out;

  if (std::isnan(t.viterbi)) {
    // Let past Viterbi by its MSV score, unless the gates left it open.
    if (!open && skip_viterbi_gate_.rejects(bits)) return differs(Stage::kGate, t.msv, msv);
    return out;
  }
  if (!open && !skip_viterbi_gate_.rejects(bits)) return differs(Stage::kGate, t.msv, msv);
  const float viterbi = kernels.viterbi_filter(residues, scratch);
  if (viterbi != t.viterbi) return differs(Stage::kViterbi, t.viterbi, viterbi);
  const bool fails = viterbi_gate_.rejects(nats_to_bits(viterbi - out.filter_nats));
  if (!open && fails != (t.fate == Fate::kViterbi))
    return differs(Stage::kGate, t.viterbi, viterbi);
  return out;
}

std::vector<float> HostFilters::bias_scores(const std::vector<Candidate>& candidates,
                                            FilterOutput& output) const {
  std::vector<std::span<const Residue>> targets;
  targets.reserve(candidates.size());
  for (const Candidate& candidate : candidates) {
    targets.push_back(candidate.residues);
    output.times.bias_residues += targets.back().size();
  }
  std::vector<float> scores(targets.size());
  if (!targets.empty()) model_.tables().bias_filter_batch(targets, scores);
  return scores;
}

void HostFilters::after_msv(const TargetBlock& block, std::vector<Candidate>& candidates,
                            CoreClock& clock, cpu::FilterScratch& scratch,
                            FilterOutput& output) const {
  const auto M = static_cast<std::uint64_t>(model_.hmm().M);
  FilterCounters& counters = output.counters;
  if (options_.bias) {
    const std::vector<float> scores = bias_scores(candidates, output);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      Candidate candidate = candidates[i];
      candidate.filter_nats = scores[i];
      if (need_msv_) {
        candidate.bits = nats_to_bits(candidate.msv_nats - candidate.filter_nats);
        if (msv_gate_.rejects(candidate.bits)) continue;
      }
      candidates[kept++] = candidate;
    }
    candidates.resize(kept);
  }
  counters.bias += candidates.size();
  if (options_.per_target != nullptr) {
    for (const Candidate& candidate : candidates)
      options_.per_target->bias(block.first_index() + candidate.index);
  }
  output.times.bias += clock.lap();

  const cpu::FilterTables* kernels = nullptr;  // made when the first target needs them
  for (const Candidate& candidate : candidates) {
    // A target whose MSV score already satisfies F2 goes straight to Forward.
    if (need_msv_ && skip_viterbi_gate_.rejects(candidate.bits)) {
      if (kernels == nullptr) kernels = &model_.tables_with_viterbi();
      const float nats = kernels->viterbi_filter(candidate.residues, scratch);
      output.times.viterbi_cells += candidate.residues.size() * M;
      if (viterbi_gate_.rejects(nats_to_bits(nats - candidate.filter_nats))) continue;
    }
    ++counters.viterbi;
    if (options_.per_target != nullptr)
      options_.per_target->viterbi(block.first_index() + candidate.index);
    output.survivors.push_back({candidate.index, candidate.filter_nats});
  }
  output.times.viterbi += clock.lap();
}

FilterTimes& FilterTimes::operator+=(const FilterTimes& other) {
  ssv += other.ssv;
  msv += other.msv;
  bias += other.bias;
  viterbi += other.viterbi;
  ssv_cells += other.ssv_cells;
  msv_cells += other.msv_cells;
  bias_residues += other.bias_residues;
  viterbi_cells += other.viterbi_cells;
  return *this;
}

std::string host_filters_name() { return "cpu/" + std::string(cpu::available_targets().front()); }

}  // namespace hmmjit
