// The segments of a search: which blocks they have, which device each is for, and where it is.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
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
/// its pairs are the host's, where there is no memory for it.
class Segment {
 public:
  Segment(std::vector<BlockRef> blocks, WorkBoard& board);
  const std::vector<BlockRef>& blocks() const { return blocks_; }
  ShardId shard() const { return shard_; }  ///< on the board, of these blocks
  std::uint64_t residues() const { return residues_; }

 private:
  friend class SegmentTable;
  friend class Segments;
  const std::vector<BlockRef> blocks_;
  const ShardId shard_;
  const std::uint64_t residues_;
  // Under the lock of Segments.
  ActiveDevice* device_ = nullptr;  // null: not assigned yet
  std::shared_ptr<PackedSegment> packed_;
  std::shared_ptr<DeviceTargets> resident_;
  int in_use_ = 0;  // by lanes that work on it or load it
  bool loading_ = false, has_been_resident_ = false, abandoned_ = false;
  std::uint64_t last_use_ = 0;
};
using SegmentPtr = std::shared_ptr<Segment>;

/// What Segments keeps. Without a lock.
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
  std::deque<SegmentPtr> to_pack;

 private:
  void add(SegmentPtr segment);
  std::vector<ActiveDevice*> devices_;
};

/// Thread-safe. Whoever calls it, but for attach(), clear() and use_devices(), holds a ClientUse
/// until it has let go of the segments it was given. Blocks are destroyed without the lock.
class Segments {
 public:
  /// `copies`: of packed segments that may wait for their upload.
  Segments(std::size_t copies, Counters& counters, ChangeSignal& changed)
      : copies_(copies), counters_(counters), changed_(changed) {}

  /// Segments are now of a client whose board this is.
  void attach(WorkBoard& board);
  /// Forgets all there is, and takes nothing more before the next client comes.
  void clear();
  void use_devices(std::vector<ActiveDevice*> devices);
  void make(BlockGroups::Groups groups);
  /// From now on segments whose work is done are dropped.
  void set_streaming();

  /// The next to be packed, which is the caller's to pack; null where there is none, or where
  /// enough wait for their upload: `wait` is set then, since nobody says when the host has done
  /// what these have. A segment of a database is not copied, only indexed.
  SegmentPtr take_to_pack(bool& wait);
  /// Null: there was no memory for it, and no device will have it.
  void packed(const SegmentPtr& segment, std::shared_ptr<PackedSegment> packed);

  /// What a device could do next, all of it with open pairs.
  struct Offer {
    std::vector<SegmentPtr> resident;
    SegmentPtr to_load;  ///< or null
  };
  Offer offer(const ActiveDevice& device);
  /// The targets, which stay resident until end(); null where they are not.
  std::shared_ptr<DeviceTargets> begin_work(const ActiveDevice& device, const SegmentPtr& segment);
  struct Loading {
    std::shared_ptr<PackedSegment> packed;
    DeviceMemory::Load load;
  };
  /// Sets memory aside until end(). Where the device has nothing else to do, the segments that no
  /// lane is at give way, least recently used first. nullopt: not now.
  std::optional<Loading> begin_load(ActiveDevice& device, const SegmentPtr& segment,
                                    bool beside_work);
  void loaded(const SegmentPtr& segment, std::unique_ptr<DeviceTargets> targets);
  /// The device had no room: smaller segments take its place, or no device will have it. Whether
  /// that is so.
  bool did_not_fit(const SegmentPtr& segment);
  /// A work or a load has ended.
  void end(SegmentPtr segment, const Loading* loading = nullptr);

  /// Of a device that has been lost: what no lane is at goes to the others. Returns what no device
  /// will have.
  std::vector<SegmentPtr> leave(const ActiveDevice& device);

  /// Pairs of a model and a segment of the device that are open.
  std::size_t open_pairs(const ActiveDevice& device) const;
  bool has_been_resident(BlockId block) const;

 private:
  void drop_finished(std::vector<SegmentPtr>& dropped) HMMJIT_REQUIRES(mutex_);
  bool drop_if_done(const SegmentPtr& segment) HMMJIT_REQUIRES(mutex_);

  const std::size_t copies_;
  Counters& counters_;
  ChangeSignal& changed_;
  mutable Mutex mutex_;
  WorkBoard* board_ HMMJIT_GUARDED_BY(mutex_) = nullptr;  // null: nothing more is taken
  bool streaming_ HMMJIT_GUARDED_BY(mutex_) = false;
  SegmentTable table_ HMMJIT_GUARDED_BY(mutex_);
  std::uint64_t uses_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace hmmjit::gpu
