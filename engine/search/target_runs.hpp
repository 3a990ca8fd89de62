// Records of targets in a temporary file: runs sorted by target, and all of them merged.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/spool_file.hpp"
#include "search/spool_run.hpp"

namespace hmmjit {

/// Runs are written one after the other, then read side by side. All functions fail with kOutput.
/// One thread at a time.
class TargetRuns {
 public:
  /// `memory`: bytes that the buffers may take.
  explicit TargetRuns(std::uint64_t memory) : memory_(memory) {}

  bool empty() const { return runs_.empty(); }
  /// A run: begin(), append() in ascending order of targets, end().
  Status begin();
  Status append(std::uint64_t target, std::string_view record);
  Status end();

  /// After the last run, once. Then, until at_end(), the next record: of one target those of the
  /// earlier run come first.
  Status open();
  bool at_end() const { return !merged_ || merged_->empty(); }
  std::uint64_t target() { return merged_->front().target; }
  /// Until advance().
  Result<std::string_view> record();
  Status advance() { return merged_->advance(); }

 private:
  struct Header {
    std::uint64_t target, size;  // `size`: of the record that follows, in bytes
  };
  // With its header.
  Result<std::string_view> stored();
  // Several runs become one, so that there is room for a buffer of each.
  Status merge();

  std::uint64_t memory_, begin_ = 0;
  std::optional<SpoolFile> file_;
  std::vector<SpoolRange> runs_;
  std::optional<MergedRuns<Header>> merged_;  // while they are read
};

}  // namespace hmmjit
