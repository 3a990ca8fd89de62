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

/// Blocks that a device takes together. A segment is to be packed, then packed, then loaded, and
/// resident until it is evicted, which means that it is to be packed again. It is abandoned, and
/// its pairs are left to the host, where there is no memory for it.
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

/// The segments there are. Without a lock of its own.
class SegmentTable {
 public:
  void make(std::vector<BlockRef> blocks, WorkBoard& board);
  /// Two halves take the place of a segment, on the same device.
  void split(const SegmentPtr& segment, WorkBoard& board);
  /// From now on segments are for these devices; those that were made before, too.
  void use_devices(std::vector<ActiveDevice*> devices);
  /// To the device with the fewest residues that has not been lost; to none where there is none.
  void assign(Segment& segment);
  /// Takes the least recently used segment that no lane is at off its device; false: there is none.
  bool evict(const ActiveDevice& device);
  void remove(const SegmentPtr& segment);

  std::vector<SegmentPtr> all;
  std::map<BlockId, SegmentPtr> by_block;
  std::list<SegmentPtr> to_pack;  // a deque would allocate memory to be cleared

 private:
  void add(SegmentPtr segment);
  std::vector<ActiveDevice*> devices_;
};

/// What Segments and ResidentSegments work on, with the lock of both.
struct SegmentBook {
  SegmentBook(Counters& c, ChangeSignal& s) : counters(c), changed(s) {}

  /// Drops a segment whose work is done, if segments are dropped at all; whether it has.
  bool drop_if_done(const SegmentPtr& segment) HMMJIT_REQUIRES(mutex);
  /// Moves all of those to `dropped`, whose blocks are destroyed without the lock.
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
