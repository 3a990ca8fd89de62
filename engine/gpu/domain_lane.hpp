// One thread and one stream of a device that take the targets that passed the filters through the
// domain stage and deliver them.
#pragma once

#include <memory>
#include <vector>

#include "gpu/active_device.hpp"
#include "gpu/domain_stage.hpp"
#include "gpu/lane_work.hpp"

namespace hmmjit::gpu {

/// Used only by the thread that runs it.
class DomainLane {
 public:
  DomainLane(EngineState& engine, ActiveDevice& device, int number)
      : engine_(engine), device_(device), number_(number) {}
  /// Runs until the engine stops. Once the device is lost, delivers targets without findings.
  void run();

 private:
  void perform(DomainBatch& work);
  void open();
  void launch(const std::vector<DomainWorkPtr>& batch, const DeviceLoad& load);

  EngineState& engine_;
  ActiveDevice& device_;
  const int number_;
  // Created when there is work: its buffers can wait but the first launches cannot, and the driver
  // does one thing at a time.
  std::unique_ptr<DomainStage> stage_;
};

/// See GpuFilters::backfill.
bool backfill(EngineState& engine, const HostLoad& load);

}  // namespace hmmjit::gpu
