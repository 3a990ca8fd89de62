// Decides how many of a device's results are computed again on the CPU, and counts the checks.
//
// By default checks take at most one hundredth of the core-seconds that the search has used so far.
// Within this budget, some targets of every fourth chain are checked. Beyond it, only the first
// target of each stage of each kernel is, so that every kernel of a search is checked.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/mutex.hpp"
#include "gpu/chain_sample.hpp"

namespace hmmjit::search_run {

/// Thread-safe.
class Verification {
 public:
  /// `per_model`: targets to check per model at any cost; none: the default.
  explicit Verification(std::optional<int> per_model) : per_model_(per_model) {}
  bool off() const { return per_model_ == 0; }

  /// The targets that a chain over `blocks` of the `offered` blocks of a model must return.
  gpu::SampleRequest request(std::uint64_t model, const std::vector<gpu::UsedKernel>& kernels,
                             std::size_t blocks, std::size_t offered);
  /// Whether the budget allows a check of `cells` cells.
  bool wanted(gpu::Link link, std::uint64_t cells) const;
  /// Counts a check of a score from this link, which took `seconds` core-seconds.
  void made(gpu::Link link, const std::vector<gpu::UsedKernel>& kernels, std::uint64_t cells,
            double seconds);
  /// Counts the core-seconds spent on choosing targets.
  void took(double seconds) { nanoseconds_ += static_cast<std::uint64_t>(1e9 * seconds); }
  /// Whether a kernel of this link has never been checked.
  bool unchecked(gpu::Link link, const std::vector<gpu::UsedKernel>& kernels) const;
  /// Targets to check in a batch of scored ones; none: the budget decides.
  std::optional<int> per_model() const { return per_model_; }

  std::uint64_t checks() const { return checks_; }
  std::uint64_t chains() const { return chains_; }
  double seconds() const { return 1e-9 * static_cast<double>(nanoseconds_); }

 private:
  double budget_left() const;

  const std::optional<int> per_model_;
  const double begun_ = process_seconds();
  std::atomic<std::uint64_t> checks_{0}, chains_{0}, nanoseconds_{0};
  std::atomic<std::uint64_t> offered_{0};  // chains
  mutable Mutex mutex_;
  std::set<gpu::UsedKernel> checked_ HMMJIT_GUARDED_BY(mutex_);
  // Chains sampled for the first check of each kernel.
  std::map<gpu::UsedKernel, int> asked_ HMMJIT_GUARDED_BY(mutex_);
  struct Cost {
    double seconds, cells;
  };
  std::array<Cost, gpu::kLinks> costs_ HMMJIT_GUARDED_BY(mutex_){};

  static double process_seconds();
};

}  // namespace hmmjit::search_run
