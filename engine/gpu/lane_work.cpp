#include "gpu/lane_work.hpp"

#include <algorithm>
#include <utility>

#include "gpu/engine_state.hpp"

namespace hmmjit::gpu {
namespace {

// The segment and model to do next.
struct Choice {
  SegmentPtr segment;             // of the model; null: none can begin
  ActiveModelPtr model;           // the lowest one in any resident segment
  bool reserve = false;           // only prepare, because kernels are still being loaded
  std::vector<ModelId> refused;   // models without a kernel, which fall back to the CPU
};

Choice choose(EngineState& engine, const WorkBoard& board, const std::vector<SegmentPtr>& resident,
              const LaneBuffers& buffers, Wait& wait) {
  Choice out;
  const bool loaded = engine.kernels.initial_load_done();
  for (const SegmentPtr& segment : resident) {
    for (std::optional<ModelId> id = board.next_open(segment->id, 0);
         id && (out.model == nullptr || *id < out.model->id());
         id = board.next_open(segment->id, *id + 1)) {
      const ActiveModelPtr model = engine.models.find(*id);
      if (model == nullptr) continue;
      if (!loaded) {
        wait.pending = true;
        if (buffers.targets > 0) break;
        return {.segment = segment, .model = model, .reserve = true, .refused = {}};
      }
      const ActiveModel::State state = model->refresh(engine.kernels, &wait.until);
      if (state == ActiveModel::State::kReady) {
        out.segment = segment;
        out.model = model;
      }
      wait.pending |= state == ActiveModel::State::kWaiting;
      if (state == ActiveModel::State::kRefused && model->refuse()) out.refused.push_back(*id);
    }
  }
  return out;
}

void count_wait(EngineState& engine, LaneTimes Statistics::*lanes, bool pending, double begun) {
  const double seconds = Trace::now() - begun;
  engine.counters.update(
      [&](Statistics& s) { (pending ? (s.*lanes).waiting : (s.*lanes).idle) += seconds; });
}

}  // namespace

DeviceLoad load_of(const EngineState& engine, const ActiveDevice& device) {
  DeviceLoad load = device.domain_queue.load();
  load.filter_seconds_left =
      static_cast<double>(engine.targets.open_pairs(device)) * device.pace.seconds_each();
  return load;
}

bool ends(const EngineState& engine, const ActiveDevice& device) {
  return engine.stop || device.lost || engine.phase() == Phase::kFailed;
}

// Models without a kernel leave first. Then one lane loads segments into free memory while the
// others work. The lowest model comes first, so that results leave in order.
std::optional<FilterWork> try_next_filter_work(EngineState& engine, ActiveDevice& device,
                                               const LaneBuffers& buffers, Wait& wait) {
  for (;;) {
    wait = {};
    if (ends(engine, device)) return Stop{};
    ClientUse use = engine.clients.use();
    if (!use) return std::nullopt;
    const TargetStore::Offer offer = engine.targets.offer(device, buffers.lane);
    Choice choice = choose(engine, use->board, offer.resident, buffers, wait);
    if (!choice.refused.empty()) return RefuseModels{std::move(use), std::move(choice.refused)};
    if (offer.to_load != nullptr && !choice.reserve) {
      // Segments whose kernels are being compiled stay resident, too.
      const bool beside_work = choice.model != nullptr || wait.pending;
      if (auto loading = engine.targets.begin_load(device, offer.to_load, beside_work))
        return LoadSegment{std::move(use), offer.to_load, *std::move(loading)};
      wait.pending = true;
    }
    if (choice.model == nullptr) return std::nullopt;
    auto targets = engine.targets.begin_work(device, choice.segment);
    if (targets == nullptr) continue;  // it has been evicted meanwhile
    if (targets->packed().targets.size() > buffers.targets)
      return ReserveBuffers{std::move(use), std::move(choice.segment), std::move(targets),
                            std::move(choice.model)};
    if (choice.reserve) return std::nullopt;
    std::vector<Claim> claims = use->board.claim(choice.model->id(), choice.segment->id);
    if (std::ranges::none_of(claims, [](const Claim& claim) { return bool(claim); })) continue;
    // Fewer pairs are left; a launch of the domain stage may have waited for that.
    if (device.domain_queue.chains() > 0) engine.handed_over.raise();
    return FilterPairs{std::move(use), std::move(targets), std::move(choice.model),
                       std::move(claims)};
  }
}

FilterWork next_filter_work(EngineState& engine, ActiveDevice& device, const LaneBuffers& buffers) {
  for (;;) {
    const std::uint64_t seen = engine.changed.count();
    const double begun = Trace::now();
    Wait wait;
    if (auto work = try_next_filter_work(engine, device, buffers, wait)) return *std::move(work);
    engine.changed.wait_beyond(seen, wait.until);
    count_wait(engine, &Statistics::filter_lanes, wait.pending, begun);
  }
}

std::optional<DomainBatch> next_domain_batch(EngineState& engine, ActiveDevice& device) {
  for (;;) {
    const std::uint64_t seen = engine.handed_over.count();
    const bool stop = engine.stop, lost = device.lost;
    const double begun = Trace::now();
    Wait wait;
    if (device.domain_queue.chains() > 0) {
      wait.pending = true;
      DomainBatch work{.batch = {}, .load = load_of(engine, device), .lost = lost};
      if (stop || lost || !engine.kernels.has_pending_loads())
        work.batch = device.domain_queue.take_launch(work.load, stop || lost, wait.until);
      if (!work.batch.empty()) return work;
    } else if (stop) {
      return std::nullopt;
    }
    engine.handed_over.wait_beyond(seen, wait.until);
    count_wait(engine, &Statistics::domain_lanes, wait.pending, begun);
  }
}

std::optional<PackSegment> next_to_pack(EngineState& engine) {
  for (;;) {
    const std::uint64_t seen = engine.changed.count();
    if (engine.stop) return std::nullopt;
    engine.packer_waits = true;
    if (ClientUse use = engine.clients.use()) {
      if (SegmentPtr segment = engine.targets.take_to_pack()) {
        engine.packer_waits = false;
        return PackSegment{std::move(use), std::move(segment)};
      }
    }
    engine.changed.wait_beyond(seen);
  }
}

}  // namespace hmmjit::gpu
