// A lane: one thread and one stream of a device that take models through the filters for resident
// segments.
#pragma once

#include <memory>
#include <vector>

#include "gpu/active_device.hpp"
#include "gpu/cascade.hpp"
#include "gpu/lane_work.hpp"

namespace hmmjit::gpu {

/// Used only by the thread that runs it.
class FilterLane {
 public:
  FilterLane(EngineState& engine, ActiveDevice& device, int number)
      : engine_(engine), device_(device), number_(number) {}
  /// Runs until the device is lost or the engine stops.
  void run();

 private:
  Status open();
  void perform(const Stop&) {}
  void perform(const RefuseModels& work);
  void perform(const LoadSegment& work);
  void perform(const ReserveBuffers& work);
  void perform(FilterPairs& work);
  Result<CascadeResult> filter(FilteredChain& chain, DeviceTargets& targets,
                               const std::vector<Claim>& claims);
  void note(const CascadeResult& result, DeviceTargets& targets, const ActiveModel& model,
            double begun);
  // Passes the targets to the domain stage, which delivers them; false if it does not accept them.
  bool hand_over(DomainWorkPtr& work);
  void failed(const FilterPairs& work, const Error& error);

  EngineState& engine_;
  ActiveDevice& device_;
  const int number_;
  LaneBuffers buffers_{number_};
  std::unique_ptr<Cascade> cascade_;
};

}  // namespace hmmjit::gpu
