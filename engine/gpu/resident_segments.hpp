// The segments on the devices: which of them a device could work on or load next, and eviction.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/segment_book.hpp"

namespace hmmjit::gpu {

/// Thread-safe. A caller holds a ClientUse for as long as it holds segments. Blocks are destroyed
/// without the lock.
class ResidentSegments {
 public:
  explicit ResidentSegments(SegmentBook& book) : book_(book) {}

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
  /// Reserves memory until end_load(). Where the device has nothing else to do, segments that no
  /// lane works on are evicted, the least recently used first. nullopt: there is no room at
  /// present.
  std::optional<Loading> begin_load(ActiveDevice& device, const SegmentPtr& segment,
                                    bool beside_work);
  void loaded(const SegmentPtr& segment, std::unique_ptr<DeviceTargets> targets);
  /// The device had no room: smaller segments take the place of this one, or it is abandoned.
  /// Returns whether it has been abandoned.
  bool did_not_fit(const SegmentPtr& segment);
  void end_load(const SegmentPtr& segment, const Loading& loading);

  /// Pairs of a model and a segment of the device that are open.
  std::size_t open_pairs(const ActiveDevice& device) const;

 private:
  class Work;
  void end_use(const SegmentPtr& segment, const Loading* loading);

  SegmentBook& book_;
};

}  // namespace hmmjit::gpu
