// Sorted runs of records in a temporary file, of which several are read side by side and merged.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/spool_file.hpp"

namespace hmmjit {

/// Runs that are read at a time: more are merged first.
inline constexpr std::size_t kMostSpoolRuns = 64;
/// Bytes of a file that wait in memory before they are written.
inline constexpr std::size_t kSpoolWriteBuffer = std::size_t{1} << 14;

/// kOutput: the file does not hold what was written to it.
std::unexpected<Error> damaged_spool_file();

/// Bytes `begin` to `end` of a file.
struct SpoolRange {
  std::uint64_t begin, end;
};

/// Reads a run through a buffer.
class SpoolRun {
 public:
  /// `buffer`: bytes that are read at a time, where no record needs more.
  SpoolRun(SpoolFile& file, SpoolRange range, std::uint64_t buffer)
      : file_(&file), offset_(range.begin), end_(range.end), buffer_(buffer) {}

  bool at_end() const { return offset_ + at_ == end_; }
  /// The next `count` bytes, until the next call. Fails with kOutput where the run ends before.
  Result<std::string_view> peek(std::size_t count);
  void skip(std::size_t count) { at_ += count; }
  /// Both.
  Result<std::string_view> take(std::size_t count) {
    auto found = peek(count);
    if (found) skip(count);
    return found;
  }
  /// Gives the buffer back; for a run at its end.
  void release() {
    offset_ += at_;
    at_ = 0;
    bytes_ = {};
  }

 private:
  SpoolFile* file_;
  std::uint64_t offset_, end_;  // of what the buffer holds, and of the run
  std::uint64_t buffer_;
  std::string bytes_;
  std::size_t at_ = 0;
};

/// Bytes of the buffer of each of so many runs, where `memory` bytes may be taken in all.
std::uint64_t spool_buffer(std::uint64_t memory, std::size_t runs);

/// The records of several sorted runs in order; of equal ones those of the earlier run come first.
template <typename Record>
class MergedRuns {
 public:
  /// Reads the next record of a run, or as much of it as says where it belongs. What it leaves of
  /// the record is read from front_run() before advance().
  using Read = std::function<Status(SpoolRun&, Record&)>;
  using Before = bool (*)(const Record&, const Record&);

  /// `memory`: bytes of which the buffers take about a quarter. The file stays where it is.
  MergedRuns(SpoolFile& file, std::span<const SpoolRange> runs, std::uint64_t memory, Read read,
             Before before)
      : read_(std::move(read)), before_(before) {
    const std::uint64_t buffer = spool_buffer(memory, runs.size());
    for (const SpoolRange& range : runs) entries_.push_back({SpoolRun(file, range, buffer), {}});
  }

  /// Reads the first record. Once, before all others.
  Status open() {
    for (std::size_t run = 0; run < entries_.size(); ++run) HMMJIT_TRY(refill(run));
    return {};
  }
  /// Whether there is no further record.
  bool empty() const { return heap_.empty(); }
  /// The caller may change it, or move from it.
  Record& front() { return entries_[heap_.front()].record; }
  SpoolRun& front_run() { return entries_[heap_.front()].run; }
  /// Goes on to the next record.
  Status advance() {
    std::ranges::pop_heap(heap_, Later{*this});
    const std::size_t run = heap_.back();
    heap_.pop_back();
    return refill(run);
  }

 private:
  struct Entry {
    SpoolRun run;
    Record record;
  };
  // Heaps of the library have the greatest on top.
  struct Later {
    const MergedRuns& runs;
    bool operator()(std::size_t a, std::size_t b) const {
      const Record &first = runs.entries_[a].record, &second = runs.entries_[b].record;
      if (runs.before_(second, first)) return true;
      return !runs.before_(first, second) && a > b;
    }
  };

  // The next record of a run that is not in the heap.
  Status refill(std::size_t run) {
    Entry& entry = entries_[run];
    if (entry.run.at_end()) {
      entry.run.release();
      return {};
    }
    HMMJIT_TRY(read_(entry.run, entry.record));
    heap_.push_back(run);
    std::ranges::push_heap(heap_, Later{*this});
    return {};
  }

  Read read_;
  Before before_;
  std::vector<Entry> entries_;
  std::vector<std::size_t> heap_;
};

}  // namespace hmmjit
