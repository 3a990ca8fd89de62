// Decides how many of a device's results are computed again on the CPU, and counts the outcome.
//
// By default checks may take one hundredth of the core-seconds the search has used so far. Beyond
// that only the first target of each stage of each kernel is checked, so that every kernel of a
// search is. Where the budget allows it, some targets of one chain in four are.
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
  /// `per_model`: targets of a model to be checked whatever it costs; none: the default.
  explicit Verification(std::optional<int> per_model) : per_model_(per_model) {}
  bool off() const { return per_model_ == 0; }

  /// The targets that a chain over so many of the `offered` blocks of a model is to bring back.
  gpu::SampleRequest request(std::uint64_t model, const std::vector<gpu::UsedKernel>& kernels,
                             std::size_t blocks, std::size_t offered);
  /// Whether a check of so many cells is to be made.
  bool wanted(gpu::Link link, std::uint64_t cells) const;
  /// Notes a check of a score from this link, which took so many core-seconds. `difference`:
  /// whether it found one.
  void made(gpu::Link link, const std::vector<gpu::UsedKernel>& kernels, std::uint64_t cells,
            double seconds, bool difference);
  /// Notes the core-seconds that choosing targets took.
  void took(double seconds) { nanoseconds_ += static_cast<std::uint64_t>(1e9 * seconds); }
  /// Whether one of these kernels, that of the link, has never been checked.
  bool unchecked(gpu::Link link, const std::vector<gpu::UsedKernel>& kernels) const;
  /// Targets of a batch of scored ones to check; the default decides by cost.
  std::optional<int> per_model() const { return per_model_; }

  std::uint64_t checks() const { return checks_; }
  std::uint64_t differences() const { return differences_; }
  std::uint64_t chains() const { return chains_; }
  double seconds() const { return 1e-9 * static_cast<double>(nanoseconds_); }

 private:
  double budget_left() const;

  const std::optional<int> per_model_;
  const double begun_ = process_seconds();
  std::atomic<std::uint64_t> checks_{0}, differences_{0}, chains_{0}, nanoseconds_{0};
  std::atomic<std::uint64_t> offered_{0};  // chains
  mutable Mutex mutex_;
  std::set<gpu::UsedKernel> checked_ HMMJIT_GUARDED_BY(mutex_);
  // Of each kernel:
  std::map<gpu::UsedKernel, int> asked_
      HMMJIT_GUARDED_BY(mutex_);  // chains sampled for the first check of a kernel
  struct Cost {
    double seconds, cells;
  };
  std::array<Cost, gpu::kLinks> costs_ HMMJIT_GUARDED_BY(mutex_){};

  static double process_seconds();
};

}  // namespace hmmjit::search_run
