// External merge sort: sorted runs in a temporary file, read with a k-way merge.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/coding.hpp"
#include "core/error.hpp"
#include "core/spool_file.hpp"

namespace hmmjit {

/// The kOutput error for a temporary file that has changed or lost data.
std::unexpected<Error> damaged_spool_file();

/// K-way merge of sorted sources. Of equal values, the one from the earlier source comes first.
/// `Source` has `Result<bool> next(Value&)`, which returns false at its end.
template <typename Value, typename Source, typename Before>
class KWayMerge {
 public:
  KWayMerge(std::vector<Source> sources, Before before)
      : sources_(std::move(sources)), values_(sources_.size()), before_(std::move(before)) {}

  /// The next value, which stays valid until the next call and may be moved from. Null at the end.
  Result<Value*> next() {
    if (!begun_) {
      begun_ = true;
      for (std::size_t source = 0; source < sources_.size(); ++source) HMMJIT_TRY(read(source));
    } else if (last_) {
      HMMJIT_TRY(read(*std::exchange(last_, std::nullopt)));
    }
    if (heap_.empty()) return nullptr;
    std::ranges::pop_heap(heap_, Later{*this});
    last_ = heap_.back();
    heap_.pop_back();
    return &values_[*last_];
  }

 private:
  // Reversed: the standard heap has its greatest element on top.
  struct Later {
    const KWayMerge& merge;
    bool operator()(std::size_t a, std::size_t b) const {
      const Value &first = merge.values_[a], &second = merge.values_[b];
      if (merge.before_(second, first)) return true;
      return !merge.before_(first, second) && a > b;
    }
  };
  Status read(std::size_t source) {
    HMMJIT_ASSIGN(const bool more, sources_[source].next(values_[source]));
    if (!more) return {};
    heap_.push_back(source);
    std::ranges::push_heap(heap_, Later{*this});
    return {};
  }

  std::vector<Source> sources_;
  std::vector<Value> values_;      // the next value of each source
  std::vector<std::size_t> heap_;  // indices of sources
  std::optional<std::size_t> last_;
  Before before_;
  bool begun_ = false;
};

/// Records in a range of a SpoolFile, read through a buffer.
class SpoolRun {
 public:
  SpoolRun(SpoolFile& file, std::uint64_t begin, std::uint64_t end, std::uint64_t buffer)
      : file_(&file), offset_(begin), end_(end), buffer_(buffer) {}
  static Status append(SpoolFile& file, std::string_view record);
  /// Reads the next record, valid until the next call. Returns false at the end and frees the
  /// buffer. Fails with kOutput.
  Result<bool> next(std::string_view& record);
  /// Takes the next `count` bytes, appended to the file without a size.
  Result<std::string_view> take(std::uint64_t count);

 private:
  SpoolFile* file_;
  std::uint64_t offset_, end_;  // file offset of the buffer's first byte; end of the run
  std::uint64_t buffer_;
  std::string bytes_;
  std::size_t at_ = 0;
};

/// Sorts values that may exceed memory. Equal values keep the order in which they were added.
/// `Order` has `before(a, b)`, `encode(value, std::string&)`, `decode(Decoder&, Value&)` (false:
/// damaged) and `bytes(value)`, the memory that a value takes. One thread at a time. All functions
/// fail with kOutput.
template <typename Value, typename Order>
class Sorted {
 public:
  static constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

  /// `memory`: bound on the bytes of values and buffers.
  explicit Sorted(std::uint64_t memory = kUnbounded, Order order = {})
      : memory_(memory), order_(std::move(order)) {}

  Status add(Value value) {
    held_ += order_.bytes(value);
    values_.push_back(std::move(value));
    // A quarter: a growing vector doubles, and old and new storage coexist during the copy.
    return held_ > memory_ / 4 ? spill() : Status{};
  }
  /// Writes the values in memory to the file, as a run.
  Status spill() {
    HMMJIT_TRY(add_run(values_));
    held_ = 0;
    return {};
  }
  /// Sorts `values`, writes them to the file as a run, and frees them.
  Status add_run(std::vector<Value>& values) {
    if (values.empty()) return {};
    if (!file_) {
      HMMJIT_ASSIGN(file_, SpoolFile::create(kWriteBuffer));
    }
    const std::uint64_t begin = file_->size();
    for (const std::size_t i : sorted_places(values)) HMMJIT_TRY(write(values[i]));
    values = {};
    runs_.push_back({begin, file_->size()});
    return runs_.size() < kMostRuns ? Status{} : merge_youngest();
  }

  /// Rewinds to the first value; call it after the last add. Values in memory can be read again
  /// unless they were moved from.
  Status begin() {
    ahead_.reset();
    place_ = 0;
    if (runs_.empty()) {
      places_ = sorted_places(values_);
      return {};
    }
    HMMJIT_TRY(spill());
    open_runs(0);
    return {};
  }
  /// The next value, which stays valid until the next call and may be moved from. Null at the end.
  Result<Value*> next() {
    if (merged_) return merged_->next();
    return place_ < places_.size() ? &values_[places_[place_++]] : nullptr;
  }
  /// All values equal to the next one; false at the end. Do not mix with next().
  Result<bool> next_group(std::vector<Value>& group) {
    group.clear();
    if (!ahead_) {
      HMMJIT_ASSIGN(ahead_, next());
    }
    while (*ahead_ != nullptr && (group.empty() || !order_.before(group.front(), **ahead_))) {
      group.push_back(std::move(**ahead_));
      HMMJIT_ASSIGN(ahead_, next());
    }
    return !group.empty();
  }
  /// Frees the buffers.
  void end() { merged_.reset(); }

 private:
  // Bound on open runs; fewest runs that a merge takes; write buffer in bytes.
  static constexpr std::size_t kMostRuns = 64, kLeastMerged = 16,
                               kWriteBuffer = std::size_t{1} << 14;

  // Byte range of the file.
  struct Run {
    std::uint64_t begin, end;
    int level = 0;  // how often its values have been merged, at most
  };
  struct OpenRun {
    SpoolRun records;
    const Order* order;
    Result<bool> next(Value& value) {
      std::string_view record;
      HMMJIT_ASSIGN(const bool more, records.next(record));
      if (!more) return false;
      Decoder decoder(record);
      if (!order->decode(decoder, value)) return damaged_spool_file();
      return true;
    }
  };
  struct Before {
    const Order* order;
    bool operator()(const Value& a, const Value& b) const { return order->before(a, b); }
  };

  // The sorted order of `values`, as indices: values are too large to swap.
  std::vector<std::size_t> sorted_places(const std::vector<Value>& values) const {
    std::vector<std::size_t> places(values.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::ranges::sort(places, [&](std::size_t a, std::size_t b) {
      if (order_.before(values[a], values[b])) return true;
      return a < b && !order_.before(values[b], values[a]);
    });
    return places;
  }
  Status write(const Value& value) {
    record_.clear();
    order_.encode(value, record_);
    return SpoolRun::append(*file_, record_);
  }
  void open_runs(std::size_t first) {
    const auto runs = std::span(runs_).subspan(first);
    const std::uint64_t buffer = std::clamp<std::uint64_t>(
        memory_ / 4 / runs.size(), std::uint64_t{1} << 12, std::uint64_t{1} << 18);
    std::vector<OpenRun> open;
    for (const Run& run : runs)
      open.push_back({SpoolRun(*file_, run.begin, run.end, buffer), &order_});
    merged_.emplace(std::move(open), Before{&order_});
  }
  // Keeps the number of runs below kMostRuns. Merges only the last runs, which have the lowest
  // levels, so equal values keep their order. Each merge raises the level, so a value is written
  // O(log n) times for n runs.
  Status merge_youngest() {
    std::size_t first = runs_.size();
    int level = 0;
    for (; runs_.size() - first < kLeastMerged; ++level) {
      while (first > 0 && runs_[first - 1].level <= level) --first;
    }
    open_runs(first);
    const std::uint64_t begin = file_->size();
    for (;;) {
      HMMJIT_ASSIGN(const Value* const value, merged_->next());
      if (value == nullptr) break;
      HMMJIT_TRY(write(*value));
    }
    merged_.reset();
    file_->release(runs_[first].begin, begin);
    runs_.resize(first);
    runs_.push_back({begin, file_->size(), level});
    return {};
  }

  std::uint64_t memory_, held_ = 0;
  Order order_;
  std::vector<Value> values_;
  std::vector<std::size_t> places_;  // indices of the values in memory, in order
  std::size_t place_ = 0;            // index of the next one in places_
  std::optional<SpoolFile> file_;
  std::vector<Run> runs_;                                    // in order; the levels never rise
  std::optional<KWayMerge<Value, OpenRun, Before>> merged_;  // set while runs are read
  std::optional<Value*> ahead_;                          // the first value of the next group
  std::string record_;
};

}  // namespace hmmjit
