#include <array>
#include <chrono>
#include <optional>

#include "gpu/gpu_filters_state.hpp"

namespace hmmjit::gpu {
namespace {

// Bytes of workspace for each byte of the first segment, and how many there are at least.
constexpr std::size_t kWorkspacePerByte = 4, kUsualWorkspace = std::size_t{96} << 20;

// Where a class has no kernel of a shared length it has one of its own, so that two models with the
// same parser need not have the same kernels after it.
bool same_kernels(const DomainWork& a, const DomainWork& b) {
  return std::ranges::all_of(
      std::array{Link::kParser, Link::kEnsemble, Link::kEnvelope},
      [&](Link link) { return of_link(*a.model->slots, link) == of_link(*b.model->slots, link); });
}

}  // namespace

GpuFilters::State::LargestLaunch GpuFilters::State::largest_launch(const DeviceState& d) {
  std::vector<LargestLaunch> launches;
  for (const DomainWorkPtr& work : d.domain_work) {
    auto same = std::ranges::find_if(
        launches, [&](const LargestLaunch& l) { return same_kernels(*l.first, *work); });
    if (same == launches.end()) same = launches.insert(same, {.first = work.get()});
    if (same->chains == DomainStage::kMostRequests) continue;
    ++same->chains;
    same->targets += work->found.passed_targets.size();
  }
  return std::ranges::max(launches, {}, &LargestLaunch::targets);
}

std::vector<DomainWorkPtr> GpuFilters::State::take_launch(DeviceState& d, const DomainWork& first) {
  std::vector<DomainWorkPtr> batch;
  for (auto at = d.domain_work.begin();
       at != d.domain_work.end() && batch.size() < DomainStage::kMostRequests;) {
    if (same_kernels(**at, first)) {
      d.domain_targets -= (*at)->found.passed_targets.size();
      batch.push_back(std::move(*at));
      at = d.domain_work.erase(at);
    } else {
      ++at;
    }
  }
  return batch;
}

bool GpuFilters::State::hand_over(DeviceState& d, DomainWorkPtr& work) {
  if (d.domain_lanes == 0 || work->found.passed_targets.empty()) return false;
  const HostLoad host = work->client->load();
  {
    const std::lock_guard lock(mutex);
    if (!waits_for_domain_stage(host, load_of(d)) ||
        !kernels.soon(*work->model->slots, Link::kParser))
      return false;
  }
  work->request.model = work->model->search;
  deliver_early(*work, kLongestDomainLaunch);
  if (work->found.passed_targets.empty()) return false;
  {
    const std::lock_guard lock(mutex);
    if (d.lost) return false;
    ++client_calls;
    ++holders;
    ++work->segment->running;
    d.domain_targets += work->found.passed_targets.size();
    work->queued = Trace::now();
    d.domain_work.push_back(std::move(work));
  }
  wake.notify_all();
  return true;
}

void GpuFilters::State::deliver_early(DomainWork& work, double patience) {
  CascadeResult& found = work.found;
  const layout::PackedTargets& targets = work.request.targets->packed().targets;
  const int M = work.model->search->hmm.M;
  const auto mine = [&](const PassedTarget& p) {
    return DomainStage::takes(targets.length[p.target], M, patience);
  };
  std::vector<FilteredBlock> early(found.blocks.size()), late(found.blocks.size());
  for (std::size_t b = 0; b < found.blocks.size(); ++b) early[b].open = found.blocks[b].open;
  for (const PassedTarget& p : found.passed_targets)
    (mine(p) ? late : early)[p.block].passed.push_back(p.index);
  std::vector<EarlyDelivery> delivered;
  const auto used = std::make_shared<const std::vector<UsedKernel>>(work.kernels);
  for (std::size_t b = 0; b < early.size(); ++b) {
    if (!work.claims[b] || (early[b].open.empty() && early[b].passed.empty())) continue;
    early[b].sample.kernels = used;
    delivered.push_back({work.claims[b].targets(), std::move(early[b])});
  }
  if (delivered.empty() || !work.client->deliver_early(work.model->id, std::move(delivered)))
    return;
  for (std::size_t b = 0; b < found.blocks.size(); ++b) {
    found.blocks[b].open.clear();
    found.blocks[b].passed = std::move(late[b].passed);
  }
  std::erase_if(found.passed_targets, [&](const PassedTarget& p) { return !mine(p); });
}

void GpuFilters::State::deliver(DomainWork& work) {
  std::vector<FilteredBlock>& results = work.found.blocks;
  auto& parsed = work.request.parsed;
  for (std::size_t i = 0; i < parsed.size(); ++i)
    results[work.found.passed_targets[i].block].parsed.push_back(std::move(parsed[i]));
  std::vector<Delivery> delivered;
  const auto used = std::make_shared<const std::vector<UsedKernel>>(std::move(work.kernels));
  for (std::size_t i = 0; i < work.claims.size(); ++i) {
    if (!work.claims[i]) continue;
    delivered.push_back(
        {std::move(work.claims[i]), i < results.size() ? std::move(results[i]) : FilteredBlock{}});
    delivered.back().found.sample.kernels = used;
  }
  const std::size_t count = delivered.size();
  work.client->deliver(work.model->id, std::move(delivered));
  const std::lock_guard lock(mutex);
  stats.blocks_done += count;
}

DeviceLoad GpuFilters::State::load_of(const DeviceState& d) const {
  std::size_t pairs = 0;
  for (const SegmentPtr& s : segments) {
    if (s->device == d.position && board != nullptr) pairs += board->open_models(s->shard);
  }
  const double each =
      (Trace::now() - d.first_chain) / static_cast<double>(std::max<std::uint64_t>(d.chains, 1));
  return {.filter_seconds_left = static_cast<double>(pairs) * each,
          .domain_chains = d.domain_work.size(),
          .domain_targets = d.domain_targets};
}

void GpuFilters::State::run_domain_lane(DeviceState& d, int number) {
  reach_ahead_in_heap(kLaneHeap);
  // Made when there is work: its buffers can wait, the first launches cannot, and the driver does
  // one thing at a time.
  std::optional<Result<std::unique_ptr<DomainStage>>> stage;
  std::unique_lock lock(mutex);
  for (;;) {
    wake.wait(lock, [&] { return stop || !d.domain_work.empty(); });
    if (d.domain_work.empty()) return;
    if (!stop && !d.lost && kernels.coming()) {
      wake.wait_for(lock, std::chrono::milliseconds(1));
      continue;
    }
    const DeviceLoad load = load_of(d);
    const LargestLaunch largest = largest_launch(d);
    if (!stop && !d.lost &&
        waits_for_more_targets(load, largest.targets,
                               Trace::now() - d.domain_work.front()->queued)) {
      wake.wait_for(lock, std::chrono::milliseconds(1));
      continue;
    }
    std::vector<DomainWorkPtr> batch = take_launch(d, *largest.first);
    const bool lost = d.lost;
    lock.unlock();
    if (!stage && !lost) {
      // Few targets have few hits: no more memory than is in proportion to them.
      const std::size_t wanted =
          kWorkspacePerByte * batch.front()->request.targets->residue_bytes();
      stage = DomainStage::create(
          d.device, d.origin, resize_on(d),
          std::min<std::size_t>(std::max(wanted, kUsualWorkspace), d.domain_workspace));
      if (!*stage && stage->error().code != ErrorCode::kResources) lose_device(d, stage->error());
    }
    // Without one what comes is passed on.
    if (stage && *stage && !lost)
      surviving(d, [&] { run_domains(d, number, ***stage, batch, load); });
    for (DomainWorkPtr& work : batch) finish(std::move(work));
    release_after_loss(d);
    lock.lock();
  }
}

void GpuFilters::State::finish(DomainWorkPtr work) {
  deliver(*work);
  SegmentPtr segment = std::move(work->segment);
  work.reset();
  std::unique_lock lock(mutex);
  --client_calls;
  --segment->running;
  forget_if_done(segment);
  wake.notify_all();
  let_go(lock, segment);
}

void GpuFilters::State::run_relief() {
  std::unique_lock lock(mutex);
  for (;;) {
    const auto busiest = std::ranges::max_element(
        devices, {}, [](const auto& device) { return device->domain_work.size(); });
    const bool any = busiest != devices.end() && !(*busiest)->domain_work.empty();
    if (stop) return;
    if (!any) {
      wake.wait(lock);
      continue;
    }
    lock.unlock();
    bool idle = false;
    call_client([&](Client& c, WorkBoard&) { idle = host_is_idle(c.load()); });
    lock.lock();
    auto& work = (*busiest)->domain_work;
    if (!idle || settings.patient || work.empty()) {
      wake.wait_for(lock, std::chrono::milliseconds(2));
      continue;
    }
    DomainWorkPtr last = std::move(work.back());
    work.pop_back();
    (*busiest)->domain_targets -= last->found.passed_targets.size();
    lock.unlock();
    finish(std::move(last));
    lock.lock();
  }
}

void GpuFilters::State::run_domains(DeviceState& d, int number, DomainStage& stage,
                                    const std::vector<DomainWorkPtr>& batch,
                                    const DeviceLoad& load) {
  const Model& front = *batch.front()->model;
  const auto ready = kernels.ready(*d.device, *front.slots, *front.search);
  if (!ready) return;
  const DomainKernels chosen{of_link(*ready, Link::kParser), of_link(*ready, Link::kEnsemble),
                             of_link(*ready, Link::kEnvelope)};
  if (!chosen.parser) return;
  const double patience = settings.patient
                              ? settings.launch_timeout
                              : domain_launch_seconds(batch.front()->client->load(), load);
  std::vector<DomainRequest*> requests;
  for (const DomainWorkPtr& work : batch) {
    for (const Link link : {Link::kParser, Link::kEnsemble, Link::kEnvelope}) {
      if (const ReadyKernel& kernel = of_link(*ready, link))
        work->kernels.push_back({link, kernel.name()});
    }
    deliver_early(*work, patience);
    for (const PassedTarget& passed : work->found.passed_targets)
      work->request.passed.push_back(passed.target);
    if (!work->request.passed.empty()) requests.push_back(&work->request);
  }
  const auto result =
      stage.run(requests, chosen, {.trace_seed = limits.trace_seed, .patience = patience},
                {.timeout = settings.launch_timeout, .progress = &d.progress});
  if (!result) {
    for (DomainRequest* request : requests) request->parsed.clear();
    if (result.error().code != ErrorCode::kResources) lose_device(d, result.error());
    return;
  }
  if (result->launches == 0) return;
  note_stages(d, d.lanes + number, kDomainStages, fmt::format("of {} models", batch.size()),
              result->begin, result->end, stats.domain_seconds);
  const std::lock_guard lock(mutex);
  stats.launches += result->launches;
  stats.parsed += result->targets;
  stats.sampled += result->regions;
  stats.envelopes += result->envelopes;
}

}  // namespace hmmjit::gpu
