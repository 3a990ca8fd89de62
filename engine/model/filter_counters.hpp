#pragma once

#include <cstdint>

namespace hmmjit {

/// Number of targets and residues searched, and of targets that passed each filter (for DNA and
/// RNA: residues).
struct FilterCounters {
  std::uint64_t targets = 0, residues = 0;
  std::uint64_t msv = 0, bias = 0, viterbi = 0, forward = 0;

  FilterCounters& operator+=(const FilterCounters& other) {
    targets += other.targets;
    residues += other.residues;
    msv += other.msv;
    bias += other.bias;
    viterbi += other.viterbi;
    forward += other.forward;
    return *this;
  }
};

}  // namespace hmmjit
