// Counts, for each target, the models it passed each filter for: for reports by sequence.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "search/hits.hpp"

namespace hmmjit {

/// Counts of models per target, for targets [first, first + count) of the input. Thread-safe.
class TargetCounters {
 public:
  TargetCounters(std::uint64_t first, std::size_t count) : first_(first), counts_(count) {}

  void msv(std::uint64_t index) { ++counts_[index - first_].msv; }
  void bias(std::uint64_t index) { ++counts_[index - first_].bias; }
  void viterbi(std::uint64_t index) { ++counts_[index - first_].viterbi; }
  void forward(std::uint64_t index) { ++counts_[index - first_].forward; }

  /// The counts of target number `n` of those counted; `targets` and `residues` are zero.
  FilterCounters of(std::size_t n) const {
    const Counts& c = counts_[n];
    FilterCounters counters;
    counters.msv = c.msv;
    counters.bias = c.bias;
    counters.viterbi = c.viterbi;
    counters.forward = c.forward;
    return counters;
  }

 private:
  struct Counts {
    std::atomic<std::uint32_t> msv{0}, bias{0}, viterbi{0}, forward{0};
  };
  std::uint64_t first_;
  std::vector<Counts> counts_;
};

}  // namespace hmmjit
