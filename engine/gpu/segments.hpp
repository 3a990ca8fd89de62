// The segments of a search: which blocks they have, which device each is for, and whether it is
// packed, being loaded or resident there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
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

/// Blocks that a device takes together. A segment waits to be packed, is packed, loaded, and then
/// resident until it is evicted; it must then be packed again. If a single block does not fit on
/// its device, or if no device is left, the segment is abandoned and its pairs fall back to the
/// CPU.
struct Segment {
  Segment(std::vector<BlockRef> of, WorkBoard& board);

  const std::vector<BlockRef> blocks;
  const ShardId shard;  ///< of these blocks, on the board
  const std::uint64_t residues;

  // Guarded by the lock of SegmentStore.
  ActiveDevice* device = nullptr;  ///< null: not assigned yet
  std::shared_ptr<PackedSegment> packed;
  std::shared_ptr<DeviceTargets> resident;
  int in_use = 0;  ///< lanes that work on it or load it
  bool loading = false, has_been_resident = false, abandoned = false;
  std::uint64_t last_use = 0;
};
using SegmentPtr = std::shared_ptr<Segment>;

/// Thread-safe. A caller of any function but attach(), clear() and use_devices() holds a ClientUse
/// for as long as it holds segments. Blocks are destroyed without the lock.
class SegmentStore {
 public:
  /// `copies`: packed segments that may wait for their upload.
  SegmentStore(std::size_t copies, Counters& counters, ChangeSignal& changed)
      : copies_(copies), counters_(counters), changed_(changed) {}

  /// Segments from now on belong to a client with this board.
  void attach(WorkBoard& board);
  /// Forgets all segments, and takes no blocks before the next client is attached.
  void clear();
  void use_devices(std::vector<ActiveDevice*> devices);
  void make(BlockGroups::Groups groups);
  /// From now on finished segments are dropped.
  void set_streaming();

  /// The next segment, for the caller to pack; null where there is none, or where enough of them
  /// wait for their upload. A segment of a database is indexed, not copied.
  SegmentPtr take_to_pack();
  void packed(const SegmentPtr& segment, std::shared_ptr<PackedSegment> packed);

  /// Assigns the segments of a lost device that no lane works on to other devices. Returns those
  /// that no device will have.
  std::vector<SegmentPtr> leave(const ActiveDevice& device);
  bool has_been_resident(BlockId block) const;

  /// The segments that a device could take next; all of them have open pairs.
  struct Offer {
    std::vector<SegmentPtr> resident;
    SegmentPtr to_load;  ///< or null
  };
  Offer offer(const ActiveDevice& device);
  /// The targets, which stay resident as long as they are held; null where they are not.
  std::shared_ptr<DeviceTargets> begin_work(const ActiveDevice& device, const SegmentPtr& segment);
  struct Loading {
    std::shared_ptr<PackedSegment> packed;
    DeviceMemory::Load load;
  };
  /// Reserves memory until end_load(). Unless there is other work, segments that no lane works on
  /// are evicted, the least recently used first. nullopt: there is no room at present.
  std::optional<Loading> begin_load(ActiveDevice& device, const SegmentPtr& segment,
                                    bool beside_work);
  void loaded(const SegmentPtr& segment, std::unique_ptr<DeviceTargets> targets);
  /// The device had no room: two halves take the place of the segment, or it is abandoned. Returns
  /// whether it has been abandoned.
  bool did_not_fit(const SegmentPtr& segment);
  void end_load(const SegmentPtr& segment, const Loading& loading) { end_use(segment, &loading); }

  /// Open pairs of a model and a segment of the device.
  std::size_t open_pairs(const ActiveDevice& device) const;

 private:
  class Work;
  void add(SegmentPtr segment) HMMJIT_REQUIRES(mutex_);
  // Assigns a segment to the device with the fewest residues; to none when all have been lost.
  void assign(Segment& segment) HMMJIT_REQUIRES(mutex_);
  // Two halves take the place of a segment, on the same device.
  void split(const SegmentPtr& segment) HMMJIT_REQUIRES(mutex_);
  // Evicts the least recently used segment that no lane works on; false when there is none.
  bool evict(const ActiveDevice& device) HMMJIT_REQUIRES(mutex_);
  // Drops a finished segment if these are dropped at all, and returns whether it did.
  bool drop_if_done(const SegmentPtr& segment) HMMJIT_REQUIRES(mutex_);
  // Moves all finished segments to `dropped`, which the caller destroys without the lock.
  void drop_finished(std::vector<SegmentPtr>& dropped) HMMJIT_REQUIRES(mutex_);
  void end_use(const SegmentPtr& segment, const Loading* loading);

  const std::size_t copies_;
  Counters& counters_;
  ChangeSignal& changed_;
  mutable Mutex mutex_;
  WorkBoard* board_ HMMJIT_GUARDED_BY(mutex_) = nullptr;  // null: nothing more is taken
  bool streaming_ HMMJIT_GUARDED_BY(mutex_) = false;
  std::vector<ActiveDevice*> devices_ HMMJIT_GUARDED_BY(mutex_);
  std::vector<SegmentPtr> all_ HMMJIT_GUARDED_BY(mutex_);
  std::map<BlockId, SegmentPtr> by_block_ HMMJIT_GUARDED_BY(mutex_);
  std::list<SegmentPtr> to_pack_ HMMJIT_GUARDED_BY(mutex_);
  std::uint64_t uses_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace hmmjit::gpu
