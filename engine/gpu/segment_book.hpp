// What is known of the segments of a search: which blocks they have, which device each is for, and
// where it is.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

#include "core/mutex.hpp"
#include "gpu/active_device.hpp"
#include "gpu/block_groups.hpp"
#include "gpu/change_signal.hpp"
#include "gpu/counters.hpp"
#include "work/work_board.hpp"

namespace hmmjit::gpu {

/// Blocks that a device takes together. A segment waits to be packed, is packed, loaded, and then
/// resident until it is evicted; it must then be packed again. Where there is no memory for it, it
/// is abandoned, and its pairs are left to the host.
class Segment {
 public:
  Segment(std::vector<BlockRef> blocks, WorkBoard& board);
  const std::vector<BlockRef>& blocks() const { return blocks_; }
  ShardId shard() const { return shard_; }  ///< on the board, of these blocks
  std::uint64_t residues() const { return residues_; }

 private:
  friend class SegmentTable;
  friend class Segments;
  friend class ResidentSegments;
  friend struct SegmentBook;
  const std::vector<BlockRef> blocks_;
  const ShardId shard_;
  const std::uint64_t residues_;
  // Under the lock of SegmentBook.
  ActiveDevice* device_ = nullptr;  // null: not assigned yet
  std::shared_ptr<PackedSegment> packed_;
  std::shared_ptr<DeviceTargets> resident_;
  int in_use_ = 0;  // by lanes that work on it or load it
  bool loading_ = false, has_been_resident_ = false, abandoned_ = false;
  std::uint64_t last_use_ = 0;
};
using SegmentPtr = std::shared_ptr<Segment>;

/// All segments of a search. It has no lock of its own: SegmentBook's guards it.
class SegmentTable {
 public:
  void make(std::vector<BlockRef> blocks, WorkBoard& board);
  /// Two halves take the place of a segment, on the same device.
  void split(const SegmentPtr& segment, WorkBoard& board);
  /// Assigns all segments, those made before and those to come, to these devices.
  void use_devices(std::vector<ActiveDevice*> devices);
  /// Assigns a segment to the device with the fewest residues; to none when all have been lost.
  void assign(Segment& segment);
  /// Evicts the least recently used segment that no lane works on; false when there is none.
  bool evict(const ActiveDevice& device);
  void remove(const SegmentPtr& segment);

  std::vector<SegmentPtr> all;
  std::map<BlockId, SegmentPtr> by_block;
  std::list<SegmentPtr> to_pack;  // a deque would allocate memory to be cleared

 private:
  void add(SegmentPtr segment);
  std::vector<ActiveDevice*> devices_;
};

/// The data that Segments and ResidentSegments share, and the lock that guards it.
struct SegmentBook {
  SegmentBook(Counters& c, ChangeSignal& s) : counters(c), changed(s) {}

  /// Drops a segment whose work is done, where segments are dropped at all. Returns whether it did.
  bool drop_if_done(const SegmentPtr& segment) HMMJIT_REQUIRES(mutex);
  /// Moves all segments whose work is done to `dropped`; the caller destroys their blocks without
  /// the lock.
  void drop_finished(std::vector<SegmentPtr>& dropped) HMMJIT_REQUIRES(mutex);

  Counters& counters;
  ChangeSignal& changed;
  mutable Mutex mutex;
  WorkBoard* board HMMJIT_GUARDED_BY(mutex) = nullptr;  // null: nothing more is taken
  bool streaming HMMJIT_GUARDED_BY(mutex) = false;      // segments whose work is done are dropped
  SegmentTable table HMMJIT_GUARDED_BY(mutex);
  std::uint64_t uses HMMJIT_GUARDED_BY(mutex) = 0;
};

}  // namespace hmmjit::gpu
