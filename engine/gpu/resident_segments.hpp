// Segments on the devices: what a device could do next, loads, work and eviction.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "gpu/segment_book.hpp"

namespace hmmjit::gpu {

/// Thread-safe. Whoever calls it holds a ClientUse until it has let go of the segments it was
/// given. Blocks are destroyed without the lock.
class ResidentSegments {
 public:
  explicit ResidentSegments(SegmentBook& book) : book_(book) {}

  /// What a device could do next, all of it with open pairs.
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
  /// Sets memory aside until end_load(). Where the device has nothing else to do, the segments that
  /// no lane works on are evicted, least recently used first. nullopt: not now.
  std::optional<Loading> begin_load(ActiveDevice& device, const SegmentPtr& segment,
                                    bool beside_work);
  void loaded(const SegmentPtr& segment, std::unique_ptr<DeviceTargets> targets);
  /// The device had no room: smaller segments take its place, or no device will have it. Returns
  /// whether the latter is so.
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
