// Turns the blocks of a search into segments, and has these packed for the devices.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gpu/segment_book.hpp"

namespace hmmjit::gpu {

/// Thread-safe. A caller of any function but attach(), clear() and use_devices() holds a ClientUse
/// for as long as it holds segments. Blocks are destroyed without the lock.
class Segments {
 public:
  /// `copies`: of packed segments that may wait for their upload.
  Segments(std::size_t copies, SegmentBook& book) : copies_(copies), book_(book) {}

  /// Segments from now on belong to a client with this board.
  void attach(WorkBoard& board);
  /// Forgets all segments, and takes no blocks before the next client is attached.
  void clear();
  void use_devices(std::vector<ActiveDevice*> devices);
  void make(BlockGroups::Groups groups);
  /// From now on segments whose work is done are dropped.
  void set_streaming();

  /// The next segment, for the caller to pack; null where there is none, or where enough of them
  /// wait for their upload. In the latter case `wait` is set, since no signal comes when the host
  /// has done the work of these. A segment of a database is not copied, only indexed.
  SegmentPtr take_to_pack(bool& wait);
  /// `packed` is null where there was no memory for it: no device will have the segment.
  void packed(const SegmentPtr& segment, std::shared_ptr<PackedSegment> packed);

  /// Gives the segments of a lost device that no lane works on to other devices. Returns those that
  /// no device will have.
  std::vector<SegmentPtr> leave(const ActiveDevice& device);
  bool has_been_resident(BlockId block) const;

 private:
  const std::size_t copies_;
  SegmentBook& book_;
};

}  // namespace hmmjit::gpu
