#include <chrono>

#include "gpu/gpu_filters_state.hpp"

namespace hmmjit::gpu {
namespace {

// Of the device memory to be used, what the scratch of one lane may take.
constexpr std::uint64_t kScratchPart = 16;

}  // namespace

bool GpuFilters::State::refresh(Model& model, std::vector<ModelId>& declined) {
  if (model.state != Model::State::kWaiting) return model.state == Model::State::kReady;
  if (model.slots == nullptr) model.slots = kernels.of(*model.search);
  if (model.slots == nullptr) return false;
  switch (kernels.state(*model.slots)) {
    case ChainKernels::State::kThere:
      model.state = Model::State::kReady;
      return true;
    case ChainKernels::State::kComing:
      return false;
    case ChainKernels::State::kFailed:
      model.state = Model::State::kDeclined;
      declined.push_back(model.id);
  }
  return false;
}

void GpuFilters::State::choose_model(const SegmentPtr& segment, const Lane& lane, Task& task,
                                     std::vector<ModelId>& declined, bool& waiting) {
  const bool settled = kernels.settled();
  board->visit_open(segment->shard, [&](ModelId id) {
    const auto found = models.find(id);
    if (found == models.end()) return true;
    const ModelPtr& model = found->second;
    if (!settled) {
      if (!lane.reserved) task = {.segment = segment, .model = model, .reserve = true};
      waiting = true;
      return false;
    }
    // Lowest model first over all resident segments.
    if (task.model != nullptr && task.model->id <= id) return false;
    if (refresh(*model, declined)) {
      task = {.segment = segment, .model = model};
      return false;
    }
    waiting = waiting || model->state == Model::State::kWaiting;
    return true;
  });
}

bool GpuFilters::State::choose(const Lane& lane, Task& task, std::vector<ModelId>& declined,
                               bool& waiting) {
  if (board == nullptr) return false;
  DeviceState& d = *lane.device;
  Task load;
  for (const SegmentPtr& segment : segments) {
    if (segment->device != d.position || segment->abandoned || !has_open(*segment)) continue;
    if (segment->resident != nullptr) {
      choose_model(segment, lane, task, declined, waiting);
      if (task.reserve) return true;
    } else if (segment->packed != nullptr && !segment->loading && load.segment == nullptr) {
      load.segment = segment;
    }
  }
  if (load.segment != nullptr) load.bytes = DeviceTargets::bytes_for(*load.segment->packed);
  // One lane loads what there is room for while the others work.
  if (task.model != nullptr) {
    if (load.segment != nullptr && d.loading_bytes == 0 && has_room(d, load)) task = load;
    return true;
  }
  if (load.segment == nullptr) return false;
  if (make_room(d, load)) {
    task = load;
    return true;
  }
  waiting = true;
  return false;
}

void GpuFilters::State::run_lane(DeviceState& d, int number) {
  reach_ahead_in_heap(kLaneHeap);
  Lane lane;
  lane.device = &d;
  lane.number = number;
  if (const Status made = open_lane(lane); !made) {
    lose_device(d, made.error());
    return;
  }
  std::unique_lock lock(mutex);
  for (;;) {
    if (stop || d.lost || phase == Phase::kFailed) break;
    Task task;
    std::vector<ModelId> declined;
    bool waiting = false;
    const bool found = choose(lane, task, declined, waiting);
    if (!declined.empty()) {
      stats.models_declined += declined.size();
      const bool tell = settings.demanded && !std::exchange(warned_kernel, true);
      const std::string reason = why();
      // Chosen again afterwards: the client may leave while the lock is open.
      task = {};
      lock.unlock();
      if (tell) warn("no kernel for some models, their filters run on the CPU: " + reason);
      call_client([&](Client&, WorkBoard& b) {
        for (const ModelId id : declined) b.refuse_model(id);
      });
      lock.lock();
      continue;
    }
    if (!found) {
      forget_finished();
      if (!dropped.empty()) {
        ++holders;
        SegmentPtr none;
        let_go(lock, none);
        continue;
      }
      // A finished compile has no signal of its own.
      if (waiting) {
        wake.wait_for(lock, std::chrono::milliseconds(1));
      } else {
        wake.wait(lock);
      }
      continue;
    }
    SegmentPtr segment = std::move(task.segment);
    segment->last_use = ++use_clock;
    ++segment->running;
    ++holders;
    if (task.model == nullptr) {
      segment->loading = true;
      d.loading_bytes += task.bytes;
      lock.unlock();
      surviving(d, [&] { load(d, segment); });
      lock.lock();
      d.loading_bytes -= task.bytes;
      segment->loading = false;
    } else {
      std::shared_ptr<DeviceTargets> targets = segment->resident;
      lock.unlock();
      surviving(d, [&] {
        if (task.reserve) {
          lane.cascade->reserve(*targets, task.model->search->bytes.M);
        } else {
          run_pair(lane, segment, targets, task.model);
        }
      });
      lane.reserved = true;
      targets.reset();
      task.model.reset();
      lock.lock();
    }
    --segment->running;
    forget_if_done(segment);
    wake.notify_all();
    let_go(lock, segment);
  }
  lock.unlock();
  release_after_loss(d);
}

Status GpuFilters::State::open_lane(Lane& lane) {
  DeviceState& d = *lane.device;
  HMMJIT_ASSIGN(lane.cascade, Cascade::create(d.device, d.origin, resize_on(d),
                                              static_cast<std::size_t>(d.budget / kScratchPart)));
  return {};
}

void GpuFilters::State::run_pair(Lane& lane, const SegmentPtr& segment,
                                 const std::shared_ptr<DeviceTargets>& targets,
                                 const ModelPtr& model) {
  call_client([&](Client& c, WorkBoard& b) {
    std::vector<Claim> claims = b.claim(model->id, segment->shard);
    if (std::ranges::none_of(claims, [](const Claim& claim) { return bool(claim); })) return;
    Status done;
    try {
      auto work = std::make_unique<DomainWork>();
      done = filter(c, lane, *targets, *model, claims, *work);
      if (done) {
        work->model = model;
        work->segment = segment;
        work->client = &c;
        work->claims = std::move(claims);
        work->request.targets = targets;
        if (!hand_over(*lane.device, work)) deliver(*work);
        return;
      }
    } catch (const std::bad_alloc&) {
      done = fail(ErrorCode::kResources, "out of host memory");
    }
    if (done.error().code == ErrorCode::kResources) {
      bool tell = false;
      {
        const std::lock_guard lock(mutex);
        tell = !std::exchange(warned_memory, true);
      }
      if (tell) warn(done.error().to_string() + "; going on with the CPU for some targets");
    } else if (done.error().code == ErrorCode::kCompile) {
      {
        const std::lock_guard lock(mutex);
        model->state = Model::State::kDeclined;
        ++stats.models_declined;
        if (stats.reason.empty()) stats.reason = done.error().to_string();
      }
      b.refuse_model(model->id);
    } else {
      lose_device(*lane.device, done.error());
    }
    give_back(std::move(claims));
  });
}

Status GpuFilters::State::filter(Client& c, Lane& lane, DeviceTargets& targets, Model& model,
                                 const std::vector<Claim>& claims, DomainWork& work) {
  const double begun = Trace::now();
  DeviceState& d = *lane.device;
  HMMJIT_ASSIGN(const auto ready, kernels.ready(*d.device, *model.slots, *model.search));
  const bool fine = static_cast<bool>(of_link(ready, Link::kFineSsv));
  for (std::size_t i = 0; i < kLinks; ++i) {
    const auto link = static_cast<Link>(i);
    const bool domains =
        link == Link::kParser || link == Link::kEnsemble || link == Link::kEnvelope;
    if (!ready[i] || domains || (link == Link::kSsv && fine)) continue;
    work.kernels.push_back({link == Link::kFineSsv ? Link::kSsv : link, ready[i].name()});
  }
  std::vector<bool> claimed;
  for (const Claim& claim : claims) claimed.push_back(static_cast<bool>(claim));
  const auto blocks = static_cast<std::size_t>(std::ranges::count(claimed, true));
  const SampleRequest sample = c.sample(model.id, work.kernels, blocks);
  HMMJIT_ASSIGN(CascadeResult result,
                lane.cascade->run({.model = *model.search,
                                   .kernels = ready,
                                   .limits = limits,
                                   .targets = targets,
                                   .claimed = claimed,
                                   .wait = {settings.launch_timeout, &d.progress},
                                   .sample = sample}));
  if (result.launches == 0) {
    work.found = std::move(result);
    return {};
  }
  const std::string& name = model.search->hmm.name;
  span("gpu lanes", d.position * 100 + lane.number, name, begun, Trace::now());
  note_stages(d, lane.number, kTimedStages, name, result.begin, result.end, stats.stage_seconds);
  kernels.ssv_took(*model.slots, (result.end.front() - result.begin) * 1e-3);
  const std::lock_guard lock(mutex);
  if (d.chains++ == 0) d.first_chain = begun;
  ++stats.chains;
  stats.launches += result.launches;
  stats.cells +=
      targets.packed().targets.residue_count * static_cast<std::uint64_t>(model.search->bytes.M);
  stats.targets += targets.packed().targets.size();
  stats.survivors += result.survivors;
  stats.undecided += result.undecided;
  stats.viterbi += result.viterbi_targets;
  stats.viterbi_flagged += result.viterbi_flagged;
  stats.forward += result.forward_targets;
  stats.open += result.open;
  stats.passed += result.passed;
  work.found = std::move(result);
  return {};
}

}  // namespace hmmjit::gpu
