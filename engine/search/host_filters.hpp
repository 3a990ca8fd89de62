// The filters before the domain stage on the threads of the host, and the rest of their work where
// the kernels of a device (engine/gpu) have done the first part. They decide which targets of a
// block survive MSV, bias and Viterbi. Survivors may lack a target that is known to fail the
// Forward filter; it then counts in `viterbi`, but not in `forward`.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/threads.hpp"
#include "cpu/filters.hpp"
#include "gpu/gpu_filters.hpp"
#include "model/score_statistics.hpp"
#include "model/targets.hpp"
#include "search/hits.hpp"
#include "search/options.hpp"
#include "search/prepared_model.hpp"

namespace hmmjit {

/// A target that goes on to Forward.
struct Survivor {
  std::uint32_t index = 0;  ///< in its block
  float filter_nats = 0;    ///< null or bias filter score: what the filters subtract
  std::shared_ptr<const ParsedTarget> parsed = {};  ///< what a device knows already; or null
};

/// Core-seconds (thread CPU time) and cells per filter stage, summed over threads. `msv`: the
/// recurrence for targets that SSV leaves open, SSV included where a device has left them open.
struct FilterTimes {
  double ssv = 0, msv = 0, bias = 0, viterbi = 0;
  double total() const { return ssv + msv + bias + viterbi; }
  std::uint64_t ssv_cells = 0, msv_cells = 0, bias_residues = 0, viterbi_cells = 0;
  FilterTimes& operator+=(const FilterTimes& other);
};

/// The outcome of the filters, which add to it.
struct FilterOutput {
  std::vector<Survivor> survivors;  ///< ascending index
  FilterCounters counters;          ///< all but forward
  FilterTimes times;
};

/// A device's sampled target compared with the CPU.
struct SampleComparison {
  struct Different {
    plan::Stage stage;  ///< whose kernel is at fault
    float device, cpu;  ///< nats; equal: the decision differs
  };
  std::optional<Different> different = {};
  float filter_nats = 0;  ///< as in Survivor, where the target's depth is beyond MSV
};

/// One model, which must outlive this object, made ready for the vector filters of engine/cpu.
/// Called inside a FlushToZeroScope, by several threads at once, each with a scratch of its own.
class HostFilters {
 public:
  HostFilters(const PreparedModel& model, const FilterOptions& options);
  /// Filters targets [begin, end) of `block` with hmmsearch's decisions (Eddy 2011).
  Status run(const TargetBlock& block, std::size_t begin, std::size_t end,
             cpu::FilterScratch& scratch, FilterOutput& output) const;
  /// Does the rest of the filters where a device has done its part of a block. The counters cover
  /// msv, bias and viterbi of the targets that the device reports, not targets and residues.
  Status run_survivors(const TargetBlock& block, const gpu::FilteredBlock& filtered,
                       cpu::FilterScratch& scratch, FilterOutput& output) const;
  /// Compares a device's result for one target with the CPU's, as far as its `depth` up to Viterbi.
  SampleComparison compare(const TargetBlock& block, const gpu::SampledTarget& target,
                           cpu::FilterScratch& scratch) const;

 private:
  struct Candidate {
    std::uint32_t index;
    float filter_nats, msv_nats, bits;
    std::span<const Residue> residues;  // that do not change
  };
  std::vector<float> bias_scores(const std::vector<Candidate>& candidates,
                                 FilterOutput& output) const;
  // Bias and Viterbi for targets that passed MSV.
  void after_msv(const TargetBlock& block, std::vector<Candidate>& candidates, CoreClock& clock,
                 cpu::FilterScratch& scratch, FilterOutput& output) const;
  const Calibration& calibration() const { return model_.hmm().calibration; }
  const Alphabet& alphabet() const { return *model_.hmm().alphabet; }

  const PreparedModel& model_;
  const FilterOptions options_;
  // With both limits at 1 no score can be turned away, so none is computed (--max).
  const bool need_msv_ = options_.F1 < 1.0 || options_.F2 < 1.0;
  const PValueGate msv_gate_, skip_viterbi_gate_, viterbi_gate_;
};

/// "cpu/AVX2": the instruction set of the filters, as shown by --stats.
std::string host_filters_name();

}  // namespace hmmjit
