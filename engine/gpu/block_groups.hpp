// Groups target blocks into segments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/mutex.hpp"
#include "gpu/gpu_filters.hpp"

namespace hmmjit::gpu {

/// Gathers the blocks of a search until they make a segment for each device. Thread-safe.
class BlockGroups {
 public:
  /// The blocks of each segment to make now; may be empty.
  using Groups = std::vector<std::vector<BlockRef>>;

  explicit BlockGroups(const Settings& settings) : settings_(settings) {}
  /// Begins a search, whose first segments are small. `host_bytes`: see GpuFilters::attach.
  void begin(std::uint64_t host_bytes);
  /// `device_bytes`: usable memory of the smallest device, if known. `models`: begun so far; with
  /// few, the next segment is not larger than the last.
  Groups add(BlockRef block, std::uint64_t device_bytes, std::size_t models);
  /// The remaining blocks, as segments of equal size, however small.
  Groups rest(std::uint64_t device_bytes);
  /// Accepts no more blocks until the next search begins. Returns the remaining ones.
  std::vector<BlockRef> end();

 private:
  std::uint64_t segment_residues(std::uint64_t device_bytes) const HMMJIT_REQUIRES(mutex_);
  Groups take(std::uint64_t rounds) HMMJIT_REQUIRES(mutex_);
  std::uint64_t devices() const;

  const Settings& settings_;
  mutable Mutex mutex_;
  bool open_ HMMJIT_GUARDED_BY(mutex_) = false;
  std::uint64_t host_bytes_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::uint64_t next_residues_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::vector<BlockRef> blocks_ HMMJIT_GUARDED_BY(mutex_);
  std::uint64_t residues_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace hmmjit::gpu
