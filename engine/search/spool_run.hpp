// Sorted runs of records in a temporary file, of which several are read side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "core/spool_file.hpp"

namespace hmmjit {

/// Runs that are read at a time: more are merged first.
inline constexpr std::size_t kMostSpoolRuns = 64;
/// Bytes of a file that wait in memory before they are written.
inline constexpr std::size_t kSpoolWriteBuffer = std::size_t{1} << 14;

/// kOutput: the file does not hold what was written to it.
std::unexpected<Error> damaged_spool_file();

/// Reads a run through a buffer.
class SpoolRun {
 public:
  SpoolRun() = default;
  /// Bytes `begin` to `end` of the file.
  SpoolRun(std::uint64_t begin, std::uint64_t end) : offset_(begin), end_(end) {}

  bool at_end() const { return offset_ + at_ == end_; }
  /// The next `count` bytes, until the next call. `memory`: bytes of which the buffers of all
  /// `runs` take about a quarter. Fails with kOutput where the run ends before.
  Result<std::string_view> peek(SpoolFile& file, std::size_t count, std::uint64_t memory,
                                std::size_t runs);
  void skip(std::size_t count) { at_ += count; }
  /// Gives the buffer back; for a run at its end.
  void release() {
    offset_ += at_;
    at_ = 0;
    bytes_ = {};
  }

 private:
  std::uint64_t offset_ = 0, end_ = 0;  // of what the buffer holds, and of the run
  std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace hmmjit
