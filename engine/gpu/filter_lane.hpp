// A lane: one thread and one stream of a device, which take models through the filters for resident
// segments.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "gpu/active_device.hpp"
#include "gpu/cascade.hpp"
#include "gpu/search_parts.hpp"

namespace hmmjit::gpu {

/// For the thread that runs it.
class FilterLane {
 public:
  FilterLane(SearchParts& parts, ActiveDevice& device, int number)
      : parts_(parts), device_(device), number_(number) {}
  /// Runs until the device is lost or the engine stops.
  void run();

 private:
  // Does the next piece of work or waits for it; false: the device is lost or the engine stops.
  bool turn();
  // The segment and model to do next.
  struct Choice {
    SegmentPtr segment;    // of the model; null: none can begin
    ActiveModelPtr model;  // the lowest over all resident segments
    bool reserve = false;  // only prepare for it: kernels are still being loaded
    bool waiting = false;  // for kernels
    double until = std::numeric_limits<double>::infinity();  // see ActiveModel::refresh
    std::vector<ModelId> declined;  // models without a kernel, which fall back to the CPU
  };
  Choice choose(const WorkBoard& board, const std::vector<SegmentPtr>& resident);
  // Does the next piece of work; false: there is none. `waiting`: a compile, a load or memory is
  // pending. `until`: as Choice's.
  bool step(const ClientUse& use, bool& waiting, double& until);
  void refuse(const ClientUse& use, const std::vector<ModelId>& models);
  void load(const ClientUse& use, const SegmentPtr& segment, const TargetStore::Loading& loading);
  // A model's pairs with a segment.
  void do_pairs(const ClientUse& use, const SegmentPtr& segment,
                const std::shared_ptr<DeviceTargets>& targets, const ActiveModelPtr& model);
  Result<CascadeResult> filter(FilteredChain& chain, DeviceTargets& targets,
                               const std::vector<Claim>& claims);
  void note(const CascadeResult& result, DeviceTargets& targets, const ActiveModel& model,
            double begun);
  // Passes the targets to the domain stage, which delivers them; false if it does not take them.
  bool hand_over(DomainWorkPtr& work);
  void failed(const ClientUse& use, ActiveModel& model, const Error& error);

  SearchParts& parts_;
  ActiveDevice& device_;
  const int number_;
  std::unique_ptr<Cascade> cascade_;
  bool reserved_ = false;  // what its first chain needs
};

}  // namespace hmmjit::gpu
