// Records of targets that come model by model, to be read target by target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "search/target_runs.hpp"

namespace hmmjit {

/// Keeps records of any bytes in memory as far as they fit; the rest waits in a temporary file
/// without a name, in runs sorted by target. One thread at a time.
class RecordsByTarget {
 public:
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

  /// `memory`: bytes that records and buffers may take. The records of a single target are not
  /// bounded while they are read.
  explicit RecordsByTarget(std::uint64_t memory) : memory_(memory), runs_(memory) {}

  /// `target`: index of the target in the input. Fails with kOutput.
  Status add(std::uint64_t target, std::string_view record);
  /// After the last add, until it returns false: the next target with records, in order of their
  /// indices, and its records in the order in which they were added. Fails with kOutput.
  Result<bool> next(std::uint64_t& target, std::vector<std::string>& records);

 private:
  struct Place {
    std::uint64_t target;
    std::size_t offset, size;  // in bytes_
  };
  void sort();
  Status write_run();

  std::uint64_t memory_;
  std::string bytes_;  // of the records in memory
  std::vector<Place> places_;
  std::size_t next_place_ = 0;
  bool reading_ = false;
  TargetRuns runs_;
};

}  // namespace hmmjit
