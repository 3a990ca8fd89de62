// Kernels that have computed wrong scores, and the delivered results they may be part of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "core/mutex.hpp"
#include "search/model_job.hpp"

namespace hmmjit::search_run {

/// Remembers delivered models with their kernels, as many as memory allows, so that they can be
/// searched again should one of their kernels turn out to be wrong. Of models that it has no room
/// for, it remembers the kernels only.
/// Thread-safe.
class DistrustedKernels {
 public:
  /// `most_bytes`: the most that delivered models may take.
  explicit DistrustedKernels(std::uint64_t most_bytes) : most_bytes_(most_bytes) {}

  /// Notes that these kernels are wrong. False where that was known of all of them.
  bool add(std::span<const gpu::UsedKernel> kernels) HMMJIT_EXCLUDES(mutex_);
  /// Whether one of these is wrong.
  bool include_any(const std::set<gpu::UsedKernel>& kernels) const HMMJIT_EXCLUDES(mutex_);
  /// Takes a model whose result is delivered now. Where one of its kernels is known to be wrong,
  /// the model is returned, to be searched again.
  std::optional<Again> keep(Retained&& model) HMMJIT_EXCLUDES(mutex_);

  struct Recalled {
    std::vector<Again> models;
    bool lost = false;  ///< one of the kernels was used by a model that is not kept any more
  };
  /// Removes and returns the delivered models that have used wrong kernels, `added` the last of
  /// them.
  Recalled recall(std::span<const gpu::UsedKernel> added) HMMJIT_EXCLUDES(mutex_);
  /// Of the models that are kept.
  std::size_t bytes() const HMMJIT_EXCLUDES(mutex_);

 private:
  bool wrong(const std::set<gpu::UsedKernel>& kernels) const HMMJIT_REQUIRES(mutex_);

  const std::uint64_t most_bytes_;
  mutable Mutex mutex_;
  std::set<gpu::UsedKernel> wrong_ HMMJIT_GUARDED_BY(mutex_);
  std::deque<Retained> delivered_ HMMJIT_GUARDED_BY(mutex_);
  std::size_t bytes_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::set<gpu::UsedKernel> of_forgotten_ HMMJIT_GUARDED_BY(mutex_);
};

}  // namespace hmmjit::search_run
