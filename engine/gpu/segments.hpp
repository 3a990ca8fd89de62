// Segments on their way from the blocks of a search to packed copies.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "gpu/segment_book.hpp"

namespace hmmjit::gpu {

/// Thread-safe. Whoever calls it, but for attach(), clear() and use_devices(), holds a ClientUse
/// until it has let go of the segments it was given. Blocks are destroyed without the lock.
class Segments {
 public:
  /// `copies`: of packed segments that may wait for their upload.
  Segments(std::size_t copies, SegmentBook& book) : copies_(copies), book_(book) {}

  /// Segments are now of a client whose board this is.
  void attach(WorkBoard& board);
  /// Forgets all there is, and takes nothing more before the next client comes.
  void clear();
  void use_devices(std::vector<ActiveDevice*> devices);
  void make(BlockGroups::Groups groups);
  /// From now on segments whose work is done are dropped.
  void set_streaming();

  /// The next to be packed, which is the caller's to pack; null where there is none, or where
  /// enough wait for their upload: `wait` is set then, since nothing signals that the host has done
  /// what these have. A segment of a database is not copied, only indexed.
  SegmentPtr take_to_pack(bool& wait);
  /// Null: there was no memory for it, and no device will have it.
  void packed(const SegmentPtr& segment, std::shared_ptr<PackedSegment> packed);

  /// Of a device that has been lost: segments that no lane works on go to the others. Returns those
  /// that no device will have.
  std::vector<SegmentPtr> leave(const ActiveDevice& device);
  bool has_been_resident(BlockId block) const;

 private:
  const std::size_t copies_;
  SegmentBook& book_;
};

}  // namespace hmmjit::gpu
