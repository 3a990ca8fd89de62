#include "search/filter_backend.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <string>

#include "core/per_thread.hpp"
#include "core/threads.hpp"
#include "cpu/filters.hpp"
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

// The vector filters of engine/cpu. Their tables are made when first needed: beside a device many
// models never are.
class VectorKernels {
 public:
  explicit VectorKernels(const SearchModel& model) : model_(model) {}
  // Whether `ssv` may be given bytes that are no codes.
  bool ssv_takes_any_byte() const { return tables().ssv_takes_any_byte(); }
  reference::SsvResult ssv(std::span<const Residue> residues, cpu::FilterScratch& scratch) const {
    return tables().ssv(residues, scratch);
  }
  void ssv(std::span<const std::span<const Residue>> targets,
           std::span<reference::SsvResult> results, cpu::FilterScratch& scratch) const {
    tables().ssv_batch(targets, results, scratch);
  }
  float msv_recurrence(std::span<const Residue> residues, cpu::FilterScratch& scratch) const {
    return tables().msv_recurrence(residues, scratch);
  }
  float msv(std::span<const Residue> residues, cpu::FilterScratch& scratch) const {
    return tables().msv_filter(residues, scratch);
  }
  float viterbi(std::span<const Residue> residues, cpu::FilterScratch& scratch) const {
    return tables().viterbi_filter(residues, scratch);
  }
  void bias(std::span<const std::span<const Residue>> targets, std::span<float> scores) const {
    tables().bias_filter_batch(targets, scores);
  }
  static std::string name() { return "cpu/" + std::string(cpu::available_targets().front()); }

 private:
  const cpu::FilterTables& tables() const {
    std::call_once(made_, [this] { tables_.emplace(model_); });
    return *tables_;
  }
  const SearchModel& model_;
  mutable std::once_flag made_;
  mutable std::optional<cpu::FilterTables> tables_;
};

// Core-seconds from one lap to the next.
class CoreClock {
 public:
  void lap(double& total) {
    const double now = thread_seconds();
    total += now - begun_;
    begun_ = now;
  }

 private:
  double begun_ = thread_seconds();
};

using ThreadScratch = PerThread<cpu::FilterScratch>;

class HostFilters final : public PreparedFilters {
 public:
  HostFilters(const SearchModel& model, const FilterOptions& options, ThreadScratch& scratch)
      : model_(model),
        options_(options),
        kernels_(model),
        scratch_(scratch),
        msv_gate_(calibration().msv_mu, calibration().msv_lambda, options.F1),
        skip_viterbi_gate_(calibration().msv_mu, calibration().msv_lambda, options.F2),
        viterbi_gate_(calibration().viterbi_mu, calibration().viterbi_lambda, options.F2) {}

  Status run(const TargetBlock& block, std::size_t begin, std::size_t end,
             FilterOutput& output) const override {
    cpu::FilterScratch& scratch = scratch_.local();
    const auto M = static_cast<std::uint64_t>(model_.hmm.M);
    // With both limits at 1 no score can be turned away, so none is computed (--max).
    const bool need_msv = options_.F1 < 1.0 || options_.F2 < 1.0;
    std::vector<Candidate> candidates;
    FilterCounters& counters = output.counters;
    ResidueCopies copies;
    const bool copy_all = need_msv && !kernels_.ssv_takes_any_byte();

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
      if (need_msv)
        kernels_.ssv(std::span(targets).first(count), std::span(ssv).first(count), scratch);
      for (std::size_t i = 0; i < count; ++i) {
        std::span<const Residue> residues = targets[i];
        const int L = static_cast<int>(residues.size());
        ++counters.targets;
        counters.residues += residues.size();
        if (L == 0) continue;
        const std::size_t index = first + i;
        Candidate candidate{static_cast<std::uint32_t>(index), cached_null_score(L), 0, 0, {}};
        if (need_msv) {
          output.times.ssv_cells += residues.size() * M;
          candidate.msv_nats = ssv[i].nats;
          if (ssv[i].status == reference::SsvStatus::kNoResult) {
            clock.lap(output.times.ssv);
            HMMJIT_ASSIGN(residues, copies.of(block, index, alphabet()));
            candidate.msv_nats = kernels_.msv_recurrence(residues, scratch);
            output.times.msv_cells += residues.size() * M;
            clock.lap(output.times.msv);
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
    clock.lap(output.times.ssv);
    after_msv(block, candidates, clock, output);
    return {};
  }

  Status run_survivors(const TargetBlock& block, const gpu::FilteredBlock& filtered,
                       FilterOutput& output) const override {
    cpu::FilterScratch& scratch = scratch_.local();
    FilterCounters& counters = output.counters;
    const std::uint64_t passed = filtered.passed.size();
    counters.viterbi += passed + filtered.failed_forward;
    counters.bias += passed + filtered.failed_forward + filtered.failed_viterbi;
    counters.msv +=
        passed + filtered.failed_forward + filtered.failed_viterbi + filtered.failed_bias;

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
        candidate.msv_nats = kernels_.msv(residues, scratch);
        output.times.msv_cells += residues.size() * static_cast<std::uint64_t>(model_.hmm.M);
      }
      candidate.bits = nats_to_bits(candidate.msv_nats - candidate.filter_nats);
      if (open && msv_gate_.rejects(candidate.bits)) continue;
      ++counters.msv;
      candidates.push_back(candidate);
    }
    clock.lap(output.times.msv);
    after_msv(block, candidates, clock, output);

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
    clock.lap(output.times.bias);
    return {};
  }

  SampleComparison compare(const TargetBlock& block, const gpu::SampledTarget& t) const override {
    using gpu::Fate;
    using plan::Stage;
    SampleComparison out;
    ResidueCopies copies;
    const auto copied = copies.of(block, t.index, alphabet());
    if (!copied) return out;  // the search ends with this error elsewhere
    const std::span<const Residue> residues = *copied;
    cpu::FilterScratch& scratch = scratch_.local();
    const auto differs = [&](Stage stage, float device, float cpu) {
      out.different = {stage, device, cpu};
      return out;
    };
    // What a device leaves open may go either way, but not what fails before it came there.
    const bool open = t.fate == Fate::kOpen;

    const reference::SsvResult ssv = kernels_.ssv(residues, scratch);
    const bool by_ssv = ssv.status != reference::SsvStatus::kNoResult;
    if (by_ssv == (t.undecided || t.recurrence)) return differs(Stage::kSsv, t.msv, ssv.nats);
    if (t.undecided) return out;  // the CPU runs the MSV recurrence
    const Stage byte_stage = t.recurrence ? Stage::kMsv : Stage::kSsv;
    const float msv = by_ssv ? ssv.nats : kernels_.msv_recurrence(residues, scratch);
    if (msv != t.msv) return differs(byte_stage, t.msv, msv);
    const float null_nats = cached_null_score(static_cast<int>(residues.size()));
    const bool fails_msv = msv_gate_.rejects(nats_to_bits(msv - null_nats));
    if (fails_msv != (t.fate == Fate::kMsv)) return differs(byte_stage, t.msv, msv);
    if (t.depth == Stage::kMsv || fails_msv) return out;

    out.filter_nats = null_nats;
    if (options_.bias) {
      const std::span<const Residue> targets[] = {residues};
      kernels_.bias(targets, {&out.filter_nats, 1});
      // The guard of the gate kernel, which is wider than what any order of the sum can make.
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
    const float viterbi = kernels_.viterbi(residues, scratch);
    if (viterbi != t.viterbi) return differs(Stage::kViterbi, t.viterbi, viterbi);
    const bool fails = viterbi_gate_.rejects(nats_to_bits(viterbi - out.filter_nats));
    if (!open && fails != (t.fate == Fate::kViterbi))
      return differs(Stage::kGate, t.viterbi, viterbi);
    return out;
  }

  std::size_t bytes() const override {
    // Byte, word and their striped copies; padding to the widest vectors included.
    const auto nodes = static_cast<std::size_t>(model_.hmm.M) + 64;
    return nodes * (kMaxCodes * 4 + 32);
  }

 private:
  struct Candidate {
    std::uint32_t index;
    float filter_nats, msv_nats, bits;
    std::span<const Residue> residues;  // that do not change
  };

  std::vector<float> bias_scores(const std::vector<Candidate>& candidates,
                                 FilterOutput& output) const {
    std::vector<std::span<const Residue>> targets;
    targets.reserve(candidates.size());
    for (const Candidate& candidate : candidates) {
      targets.push_back(candidate.residues);
      output.times.bias_residues += targets.back().size();
    }
    std::vector<float> scores(targets.size());
    kernels_.bias(targets, scores);
    return scores;
  }

  // Bias and Viterbi for targets that passed MSV.
  void after_msv(const TargetBlock& block, std::vector<Candidate>& candidates, CoreClock& clock,
                 FilterOutput& output) const {
    cpu::FilterScratch& scratch = scratch_.local();
    const auto M = static_cast<std::uint64_t>(model_.hmm.M);
    const bool need_msv = options_.F1 < 1.0 || options_.F2 < 1.0;
    FilterCounters& counters = output.counters;
    if (options_.bias) {
      const std::vector<float> scores = bias_scores(candidates, output);
      std::size_t kept = 0;
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        Candidate candidate = candidates[i];
        candidate.filter_nats = scores[i];
        if (need_msv) {
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
    clock.lap(output.times.bias);

    for (const Candidate& candidate : candidates) {
      // A target whose MSV score already satisfies F2 goes straight to Forward.
      if (need_msv && skip_viterbi_gate_.rejects(candidate.bits)) {
        const float nats = kernels_.viterbi(candidate.residues, scratch);
        output.times.viterbi_cells += candidate.residues.size() * M;
        if (viterbi_gate_.rejects(nats_to_bits(nats - candidate.filter_nats))) continue;
      }
      ++counters.viterbi;
      if (options_.per_target != nullptr)
        options_.per_target->viterbi(block.first_index() + candidate.index);
      output.survivors.push_back({candidate.index, candidate.filter_nats});
    }
    clock.lap(output.times.viterbi);
  }

  const Calibration& calibration() const { return model_.hmm.calibration; }
  const Alphabet& alphabet() const { return *model_.hmm.alphabet; }

  const SearchModel& model_;
  FilterOptions options_;
  VectorKernels kernels_;
  ThreadScratch& scratch_;
  PValueGate msv_gate_, skip_viterbi_gate_, viterbi_gate_;
};

class HostBackend final : public FilterBackend {
 public:
  explicit HostBackend(gpu::GpuFilters* device = nullptr) : device_(device) {}
  std::string_view name() const override { return name_; }
  gpu::GpuFilters* device() override { return device_; }
  Result<std::unique_ptr<PreparedFilters>> prepare(const SearchModel& model,
                                                   const FilterOptions& options) override {
    return std::make_unique<HostFilters>(model, options, scratch_);
  }

 private:
  std::string name_ = VectorKernels::name();
  gpu::GpuFilters* device_;
  ThreadScratch scratch_;
};

}  // namespace

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

std::unique_ptr<FilterBackend> make_cpu_backend() { return std::make_unique<HostBackend>(); }

std::unique_ptr<FilterBackend> make_device_backend(gpu::GpuFilters& device) {
  return std::make_unique<HostBackend>(&device);
}

}  // namespace hmmjit
