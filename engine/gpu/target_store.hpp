// The targets of a search on its devices, in segments: which blocks each segment has, for which
// device it is, and whether it is packed, being loaded or resident there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/mutex.hpp"
#include "gpu/device_memory.hpp"
#include "work/work_board.hpp"

namespace hmmjit::gpu {

struct ActiveDevice;
class ChangeSignal;
class Counters;
struct Settings;

/// Collects a search's blocks until they make a segment for each device.
class BlockGroups {
 public:
  /// The blocks of each segment to make now; may be empty.
  using Groups = std::vector<std::vector<BlockRef>>;

  explicit BlockGroups(const Settings& settings) : settings_(settings) {}
  /// Begins a search, whose first segments are small. `host_bytes`: see GpuFilters::attach.
  void begin(std::uint64_t host_bytes);
  /// `device_bytes`: usable memory of the smallest device, if known. `at_once`: a device has no
  /// work, so that a segment need not be larger than the first.
  Groups add(BlockRef block, std::uint64_t device_bytes, bool at_once);
  /// The remaining blocks, as segments of equal size, however small.
  Groups rest(std::uint64_t device_bytes);
  /// Accepts no more blocks until the next search begins; returns those that remain.
  std::vector<BlockRef> end();

 private:
  std::uint64_t segment_residues(std::uint64_t device_bytes, bool at_once) const;
  Groups take(std::uint64_t rounds);
  std::uint64_t devices() const;

  const Settings& settings_;
  bool open_ = false;
  std::uint64_t host_bytes_ = 0, next_residues_ = 0, residues_ = 0;
  std::vector<BlockRef> blocks_;
};

/// Blocks that a device takes together. The store's lock guards everything except the blocks, the
/// id and the residues, which do not change during a search.
struct Segment {
  /// kUnpacked: the packer has it or will get it. An evicted segment is packed again. kAbandoned: a
  /// single block does not fit on its device, two halves have replaced it, or no device is left.
  enum class State : std::uint8_t { kUnpacked, kPacked, kLoading, kResident, kAbandoned };

  std::vector<BlockRef> blocks;
  SegmentId id = 0;  ///< on the board
  std::uint64_t residues = 0;

  State state = State::kUnpacked;
  ActiveDevice* device = nullptr;  ///< null: not assigned yet
  std::shared_ptr<PackedSegment> packed;
  std::shared_ptr<DeviceTargets> resident;
  int in_use = 0;                       ///< lanes that work on it or load it
  std::vector<int> lanes_without_room;  ///< of the device, while it is resident
  bool has_been_resident = false;
  std::uint64_t last_use = 0;
  /// Identifies the block of a view in later searches, as long as the owner lives.
  struct View {
    std::weak_ptr<const void> owner;
    const Residue* residues;
    std::size_t targets;
  };
  /// Once resident, if its blocks are views: one for each of them.
  std::vector<View> views;
};
using SegmentPtr = std::shared_ptr<Segment>;

/// Thread-safe. Callers of functions other than attach(), clear() and use_devices() hold a
/// ClientUse for as long as they hold segments. Blocks are destroyed without the lock.
///
/// Resident segments whose blocks are views of targets in memory stay on their device after a
/// search, while there is room and until a search begins after the targets have been freed. The
/// next search with the same views finds them there.
class TargetStore {
 public:
  TargetStore(const Settings& settings, Counters& counters, ChangeSignal& changed)
      : settings_(settings), counters_(counters), changed_(changed), groups_(settings) {}

  /// New segments belong to a client with this board. `host_bytes`: see GpuFilters::attach.
  void attach(WorkBoard& board, std::uint64_t host_bytes);
  /// Forgets the segments of the search, and accepts no blocks until the next client is attached.
  void clear();
  /// Releases the segments of earlier searches whose targets are gone from memory: no search can
  /// have them again.
  void release_unknown();
  /// As clear(), but keeps nothing.
  void forget();
  void use_devices(std::vector<ActiveDevice*> devices);
  void add(BlockRef block);
  /// Makes segments of all blocks that have been added, however small.
  void flush();
  /// From now on, finished segments are dropped.
  void set_streaming();

  /// The next segment for the caller to pack; null if there is none, or if enough of them wait for
  /// their upload. A segment of a database is indexed, not copied.
  SegmentPtr take_to_pack();
  void packed(const SegmentPtr& segment, std::shared_ptr<PackedSegment> packed);

  /// Assigns to other devices those segments of a lost device on which no lane works. Returns those
  /// that no device will take.
  std::vector<SegmentPtr> leave(const ActiveDevice& device);
  bool has_been_resident(BlockId block) const;

  /// The segments that a lane of a device could take next; all of them have open pairs.
  struct Offer {
    std::vector<SegmentPtr> resident;
    SegmentPtr to_load;  ///< may be null
  };
  Offer offer(const ActiveDevice& device, int lane);
  /// The targets, which stay resident as long as they are held; null where they are not.
  std::shared_ptr<DeviceTargets> begin_work(const ActiveDevice& device, const SegmentPtr& segment);
  struct Loading {
    std::shared_ptr<PackedSegment> packed;
    DeviceMemory::Reservation load;
  };
  /// Reserves memory until end_load(). Unless there is other work, evicts segments that no lane
  /// works on, least recently used first (LRU). nullopt if there is no room at present.
  std::optional<Loading> begin_load(ActiveDevice& device, const SegmentPtr& segment,
                                    bool beside_work);
  void loaded(const SegmentPtr& segment, std::unique_ptr<DeviceTargets> targets);
  /// The device, with `free` bytes left, had no room: two halves replace the segment, or it is
  /// abandoned. Returns true if it has been abandoned.
  bool did_not_fit(const SegmentPtr& segment, std::uint64_t free);
  void end_load(const SegmentPtr& segment, const Loading& loading) { end_use(segment, &loading); }

  /// The lane has no memory for buffers to work on the segment, and is not offered it any more.
  /// Where no lane has, it is abandoned; returns whether it has been.
  bool has_no_room(const SegmentPtr& segment, int lane);
  /// Evicts a kept segment; false when there is none.
  bool make_room(const ActiveDevice& device);

  /// Number of open pairs of a model and a segment of the device.
  std::size_t open_pairs(const ActiveDevice& device) const;

 private:
  using Segments = std::list<SegmentPtr>;

  std::uint64_t device_bytes() const HMMJIT_REQUIRES(mutex_);
  // True if lanes have begun all pairs of a device's segments.
  bool any_device_waits() const HMMJIT_REQUIRES(mutex_);
  // Makes a segment of each group, for this device or, if null, for the one with the least to do.
  std::size_t make(BlockGroups::Groups groups, ActiveDevice* device = nullptr)
      HMMJIT_REQUIRES(mutex_);
  void insert(SegmentPtr segment) HMMJIT_REQUIRES(mutex_);
  // True if the block is in a kept segment, which is inserted once all of its blocks are found.
  bool find_kept(const BlockRef& block) HMMJIT_REQUIRES(mutex_);
  // Assigns a segment to the device with the fewest residues; to none if all have been lost.
  void assign(Segment& segment) HMMJIT_REQUIRES(mutex_);
  void pack_again(const SegmentPtr& segment) HMMJIT_REQUIRES(mutex_);
  // Replaces a segment by two halves on the same device.
  void split(const SegmentPtr& segment) HMMJIT_REQUIRES(mutex_);
  // Evicts the least recently used segment on which no lane works; false if there is none.
  bool evict(const ActiveDevice& device) HMMJIT_REQUIRES(mutex_);
  bool evict_kept(const ActiveDevice& device) HMMJIT_REQUIRES(mutex_);
  // Drops a finished segment if finished ones are dropped at all; returns true if it did.
  bool drop_if_done(const SegmentPtr& segment) HMMJIT_REQUIRES(mutex_);
  // Moves all finished segments to `dropped`, which the caller destroys without the lock.
  void drop_finished(std::vector<SegmentPtr>& dropped) HMMJIT_REQUIRES(mutex_);
  void end_use(const SegmentPtr& segment, const Loading* loading);

  const Settings& settings_;
  Counters& counters_;
  ChangeSignal& changed_;
  mutable Mutex mutex_;
  WorkBoard* board_ HMMJIT_GUARDED_BY(mutex_) = nullptr;  // null: nothing more is accepted
  BlockGroups groups_ HMMJIT_GUARDED_BY(mutex_);
  bool streaming_ HMMJIT_GUARDED_BY(mutex_) = false;
  std::vector<ActiveDevice*> devices_ HMMJIT_GUARDED_BY(mutex_);
  Segments all_ HMMJIT_GUARDED_BY(mutex_), to_pack_ HMMJIT_GUARDED_BY(mutex_);
  // Segments of earlier searches. Their `blocks` are those found again in this search so far.
  Segments kept_ HMMJIT_GUARDED_BY(mutex_);
  std::map<BlockId, SegmentPtr> by_block_ HMMJIT_GUARDED_BY(mutex_);
  std::uint64_t uses_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

}  // namespace hmmjit::gpu
