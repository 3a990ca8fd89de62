// The filters before the domain stage: the CPU's vector filters (engine/cpu), and the rest of a
// filter's work where the kernels of a device (engine/gpu) have done the first part of it. They say
// which targets of a block survive MSV, bias and Viterbi. A target that is known to fail the
// Forward filter may be left out of the survivors; it then counts in `viterbi`, but not in
// `forward`.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gpu/gpu_filters.hpp"
#include "model/profile.hpp"
#include "model/score_statistics.hpp"
#include "model/targets.hpp"
#include "search/hits.hpp"
#include "search/options.hpp"

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

/// What `PreparedFilters::run` adds to.
struct FilterOutput {
  std::vector<Survivor> survivors;  ///< ascending index
  FilterCounters counters;          ///< all but forward
  FilterTimes times;
};

/// Of a device's sampled target with the CPU.
struct SampleComparison {
  struct Different {
    plan::Stage stage;  ///< whose kernel is at fault
    float device, cpu;  ///< nats; equal: the decision differs
  };
  std::optional<Different> different = {};
  float filter_nats = 0;  ///< as in Survivor, where the target's depth is beyond MSV
};

/// One model made ready for a backend. Immutable; `run` may be called by several threads at once.
class PreparedFilters {
 public:
  virtual ~PreparedFilters() = default;
  /// Filters targets [begin, end) of `block` with hmmsearch's decisions (Eddy 2011).
  /// Called inside a FlushToZeroScope. `block` stays at its address, unchanged, from the first
  /// task on it to the last, so a device copy may be kept by address and first_index().
  virtual Status run(const TargetBlock& block, std::size_t begin, std::size_t end,
                     FilterOutput& output) const = 0;
  /// What is left of the filters where a device has done its part of a block. The counters cover
  /// msv, bias and viterbi of the targets that the device reports, not targets and residues.
  /// Only backends with a device() need it.
  virtual Status run_survivors(const TargetBlock&, const gpu::FilteredBlock&, FilterOutput&) const {
    return fail(ErrorCode::kInternal, "this backend has no device");
  }
  /// Compares what a device says of one target, as far as its `depth` up to Viterbi, with this
  /// CPU. Called inside a FlushToZeroScope.
  virtual SampleComparison compare(const TargetBlock&, const gpu::SampledTarget&) const {
    return {};
  }
  /// Resident bytes of the tables.
  virtual std::size_t bytes() const = 0;
};

class FilterBackend {
 public:
  virtual ~FilterBackend() = default;
  /// "cpu/AVX2", ... as shown by --stats, after the device's where one was used.
  virtual std::string_view name() const = 0;
  /// Thread-safe. `model` must outlive the result.
  virtual Result<std::unique_ptr<PreparedFilters>> prepare(const SearchModel& model,
                                                           const FilterOptions& options) = 0;
  /// Devices that filter beside the threads; null: none. Claimed work comes to run_survivors.
  virtual gpu::GpuFilters* device() { return nullptr; }
};

/// The filters of engine/cpu on the calling thread.
std::unique_ptr<FilterBackend> make_cpu_backend();
/// The same, with filters on the devices of `device` as far as they come to it.
std::unique_ptr<FilterBackend> make_device_backend(gpu::GpuFilters& device);

/// Seconds since an arbitrary point; monotonic.
inline double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace hmmjit
