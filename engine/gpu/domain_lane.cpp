#include "gpu/domain_lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "gpu/engine_state.hpp"

namespace hmmjit::gpu {

void DomainLane::run() {
  while (auto work = next_domain_batch(engine_, device_)) {
    const double begun = Trace::now();
    perform(*work);
    const double seconds = Trace::now() - begun;
    engine_.counters.update([&](Statistics& s) { s.domain_lanes.working += seconds; });
    engine_.leave_if_lost(device_);
  }
}

void DomainLane::perform(DomainBatch& work) {
  if (stage_ == nullptr && !work.lost) open();
  if (stage_ != nullptr && !work.lost) launch(work.batch, work.load);
  for (DomainWorkPtr& part : work.batch) {
    const ClientUse use = part->chain->use;
    if (std::exchange(part->request.left_out, false) && !device_.lost &&
        device_.domain_queue.put(part)) {
      use->client.targets_wait();
      continue;
    }
    engine_.deliver_and_count(*part);
    part.reset();
  }
}

void DomainLane::open() {
  auto made = DomainStage::create(device_.device, device_.origin,
                                  resize_on(device_, engine_.targets), device_.domain_workspace);
  if (made) {
    stage_ = *std::move(made);
  } else if (made.error().code != ErrorCode::kResources) {
    engine_.lose(device_, made.error());
  }
}

void DomainLane::launch(const std::vector<DomainWorkPtr>& batch, const DeviceLoad& load) {
  const Settings& settings = engine_.settings;
  const DomainWork& front = *batch.front();
  const ClientUse& use = front.chain->use;
  const ActiveModel& model = *front.chain->model;
  for (const DomainWorkPtr& work : batch) work->kernels.clear();
  const auto ready = engine_.kernels.ready(*device_.device, *model.kernels(), *model.search());
  if (!ready) return;
  const DomainKernels chosen{of_link(*ready, Link::kParser), of_link(*ready, Link::kEnsemble),
                             of_link(*ready, Link::kEnvelope)};
  if (!chosen.parser) return;
  const double launch_seconds = settings.wait_for_device
                                    ? settings.launch_timeout
                                    : domain_launch_seconds(use->client.load(), load);
  std::uint64_t large = 0;
  std::vector<DomainRequest*> requests;
  for (const DomainWorkPtr& work : batch) {
    for (const Link link : kDomainLinks) {
      if (const ReadyKernel& kernel = of_link(*ready, link))
        work->kernels.push_back({link, kernel.name()});
    }
    large += deliver_large(
        *work, DomainStage::most_cells(chosen.parser, *device_.device,
                                       extent_of(*work->request.model), launch_seconds));
    work->request.passed.clear();
    for (const PassedTarget& passed : work->passed) work->request.passed.push_back(passed.target);
    if (!work->request.passed.empty()) requests.push_back(&work->request);
  }
  engine_.count_fallback(HostReason::kSize, large);
  const auto result = stage_->run(
      requests, chosen, {.trace_seed = use->limits.trace_seed, .launch_seconds = launch_seconds},
      {.timeout = settings.launch_timeout, .progress = &device_.progress});
  if (!result) {
    for (DomainRequest* request : requests) {
      request->parsed.clear();
      request->left_out = false;
    }
    if (result.error().code != ErrorCode::kResources) engine_.lose(device_, result.error());
    return;
  }
  if (result->launches == 0) return;
  engine_.note_stages(device_, device_.lanes + number_, kDomainStages,
                      fmt::format("of {} models", batch.size()), result->begin, result->end,
                      device_.domain_busy);
  engine_.counters.update([&](Statistics& s) { add(s, *result); });
}

bool backfill(EngineState& engine, const HostLoad& load) {
  const std::vector<ActiveDevice*> devices = engine.devices();
  const auto busiest = std::ranges::max_element(
      devices, {}, [](const ActiveDevice* device) { return device->domain_queue.chains(); });
  if (busiest == devices.end() || engine.settings.wait_for_device) return false;
  DomainWorkPtr longest = (*busiest)->domain_queue.take_longest(cells_for_idle_host(load));
  if (longest == nullptr) return false;
  engine.deliver_and_count(*longest);
  longest.reset();
  // If the device was lost meanwhile, its segment must be released by the last user.
  engine.leave_if_lost(**busiest);
  return true;
}

}  // namespace hmmjit::gpu
