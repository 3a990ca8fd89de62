// The work of a device's threads, as values. Like a worker of the CPU, a thread asks for work, does
// it, and asks again:
//
//   while (work = next_filter_work(engine, device, ...)) perform(work)
//
// Domain lanes call next_domain_batch(), the packer of all devices next_to_pack(). lane_work.cpp is
// the scheduler of a device. It does not offer work that waits for kernels, memory
// or more targets. try_next_*() takes the next work if there is any. Outcomes reach the search
// through its Client. Work that is destroyed before it is done returns its claims, so that the CPU
// does its pairs.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "gpu/active_models.hpp"
#include "gpu/client.hpp"
#include "gpu/domain_queue.hpp"
#include "gpu/target_store.hpp"

namespace hmmjit::gpu {

struct ActiveDevice;
struct EngineState;

/// The device is lost or the engine stops.
struct Stop {};
/// Give models without a kernel back to the CPU.
struct RefuseModels {
  ClientUse use;  // here and below first, so that it is released last
  std::vector<ModelId> models;
};
/// Load a segment, for which memory has been reserved.
struct LoadSegment {
  ClientUse use;
  SegmentPtr segment;
  TargetStore::Loading loading;
};
/// Allocate what chains over a segment need, before the first of them claims pairs.
struct ReserveBuffers {
  ClientUse use;
  SegmentPtr segment;
  std::shared_ptr<DeviceTargets> targets;
  ActiveModelPtr model;
};
/// Take a model through the filters for the pairs of a segment that have been claimed.
struct FilterPairs {
  ClientUse use;
  std::shared_ptr<DeviceTargets> targets;
  ActiveModelPtr model;
  std::vector<Claim> claims;  // one for each block; empty: another thread has the pair
};
using FilterWork = std::variant<Stop, RefuseModels, LoadSegment, ReserveBuffers, FilterPairs>;

/// Take targets through the domain stage in one launch, and deliver them.
struct DomainBatch {
  std::vector<DomainWorkPtr> batch;
  DeviceLoad load;
  bool lost = false;  ///< the device is lost, so the targets are delivered without findings
};
/// Pack a segment's blocks in the device's layout.
struct PackSegment {
  ClientUse use;
  SegmentPtr segment;
};

/// Why a thread that finds no work waits, and until when (Trace::now) at most.
struct Wait {
  bool pending = false;  ///< for a compile, a load, memory or more targets, but not for pairs
  double until = std::numeric_limits<double>::infinity();
};

/// A filter lane of a device, and the largest segment that it has buffers for.
struct LaneBuffers {
  int lane = 0;
  std::size_t targets = 0;
};
std::optional<FilterWork> try_next_filter_work(EngineState& engine, ActiveDevice& device,
                                               const LaneBuffers& buffers, Wait& wait);
/// The same, but waits for work.
FilterWork next_filter_work(EngineState& engine, ActiveDevice& device, const LaneBuffers& buffers);
/// nullopt: the engine stops, and nothing waits for this device.
std::optional<DomainBatch> next_domain_batch(EngineState& engine, ActiveDevice& device);
/// nullopt: the engine stops.
std::optional<PackSegment> next_to_pack(EngineState& engine);

/// The work that waits for a device; see handover_policy.hpp.
DeviceLoad load_of(const EngineState& engine, const ActiveDevice& device);
/// True if the lanes of a device must end.
bool ends(const EngineState& engine, const ActiveDevice& device);

}  // namespace hmmjit::gpu
