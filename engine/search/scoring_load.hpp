// The scoring work that waits (targets that passed the filters), and how fast it is done.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "gpu/handover_policy.hpp"

namespace hmmjit::search_run {

/// Thread-safe.
class ScoringLoad {
 public:
  /// Adds targets that passed the filters, or takes back dropped ones: about so many cells to
  /// score.
  void found(std::uint64_t cells) { left_ += cells; }
  void dropped(std::uint64_t cells) { left_ -= cells; }
  /// Targets have been scored, which took a thread so many seconds.
  void scored(std::uint64_t cells, double seconds) {
    left_ -= cells;
    done_ += cells;
    microseconds_ += static_cast<std::uint64_t>(1e6 * seconds);
  }
  /// The load of a pool with so many threads and so many tasks that wait.
  gpu::HostLoad host_load(std::size_t threads, std::size_t waiting) const {
    const std::uint64_t done = done_;
    const double seconds =
        done > 0 ? 1e-6 * static_cast<double>(microseconds_.load()) / static_cast<double>(done)
                 : kFirstCellSeconds;
    const double cell_seconds = seconds / static_cast<double>(threads);
    return {.seconds_left = cell_seconds * static_cast<double>(left_),
            .waiting = waiting,
            .threads = threads,
            .cell_seconds = cell_seconds};
  }

 private:
  // Assumed seconds of a thread for a cell, until the first have been scored.
  static constexpr double kFirstCellSeconds = 4e-9;

  std::atomic<std::uint64_t> left_{0}, done_{0}, microseconds_{0};
};

}  // namespace hmmjit::search_run
