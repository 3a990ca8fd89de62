#include "gpu/lane_work.hpp"

#include <algorithm>
#include <utility>

#include "gpu/search_parts.hpp"

namespace hmmjit::gpu {
namespace {

// The segment and model to do next.
struct Choice {
  SegmentPtr segment;             // of the model; null: none can begin
  ActiveModelPtr model;           // the lowest over all resident segments
  bool reserve = false;           // only prepare for it: kernels are still being loaded
  std::vector<ModelId> declined;  // models without a kernel, which fall back to the CPU
};

Choice choose(SearchParts& parts, const WorkBoard& board, const std::vector<SegmentPtr>& resident,
              bool reserved, Wait& wait) {
  Choice out;
  const bool loaded = parts.kernels.initial_load_done();
  for (const SegmentPtr& segment : resident) {
    for (std::optional<ModelId> id = board.next_open(segment->shard, 0);
         id && (out.model == nullptr || *id < out.model->id());
         id = board.next_open(segment->shard, *id + 1)) {
      const ActiveModelPtr model = parts.models.find(*id);
      if (model == nullptr) continue;
      if (!loaded) {
        wait.pending = true;
        if (reserved) break;
        return {.segment = segment, .model = model, .reserve = true, .declined = {}};
      }
      const ActiveModel::State state = model->refresh(parts.kernels, &wait.until);
      if (state == ActiveModel::State::kReady) {
        out.segment = segment;
        out.model = model;
      }
      wait.pending |= state == ActiveModel::State::kWaiting;
      if (state == ActiveModel::State::kDeclined && model->decline()) out.declined.push_back(*id);
    }
  }
  return out;
}

void count_wait(SearchParts& parts, LaneTimes Statistics::*lanes, bool pending, double begun) {
  const double seconds = Trace::now() - begun;
  parts.counters.update(
      [&](Statistics& s) { (pending ? (s.*lanes).waiting : (s.*lanes).idle) += seconds; });
}

}  // namespace

DeviceLoad load_of(const SearchParts& parts, const ActiveDevice& device) {
  DeviceLoad load = device.domain_queue.load();
  load.filter_seconds_left =
      static_cast<double>(parts.targets.open_pairs(device)) * device.pace.seconds_each();
  return load;
}

bool ends(const SearchParts& parts, const ActiveDevice& device) {
  return parts.stop || device.lost || parts.phase() == Phase::kFailed;
}

// Models without a kernel leave first. Then one lane loads segments into the free memory while the
// others work. The lowest model comes first, so that results leave in order.
std::optional<FilterWork> try_next_filter_work(SearchParts& parts, ActiveDevice& device,
                                               bool& reserved, Wait& wait) {
  for (;;) {
    wait = {};
    if (ends(parts, device)) return Stop{};
    ClientUse use = parts.clients.use();
    if (!use) return std::nullopt;
    const TargetStore::Offer offer = parts.targets.offer(device);
    Choice choice = choose(parts, use->board, offer.resident, reserved, wait);
    if (!choice.declined.empty()) return RefuseModels{std::move(use), std::move(choice.declined)};
    if (offer.to_load != nullptr && !choice.reserve) {
      const bool beside_work = choice.model != nullptr;
      if (auto loading = parts.targets.begin_load(device, offer.to_load, beside_work))
        return LoadSegment{std::move(use), offer.to_load, *std::move(loading)};
      wait.pending = true;
    }
    if (choice.model == nullptr) return std::nullopt;
    auto targets = parts.targets.begin_work(device, choice.segment);
    if (targets == nullptr) continue;  // it has been evicted meanwhile
    reserved = true;
    if (choice.reserve)
      return ReserveBuffers{std::move(use), std::move(targets), std::move(choice.model)};
    std::vector<Claim> claims = use->board.claim(choice.model->id(), choice.segment->shard);
    if (std::ranges::none_of(claims, [](const Claim& claim) { return bool(claim); })) continue;
    // Fewer pairs are left, which a launch of the domain stage may have waited for.
    if (device.domain_queue.chains() > 0) parts.handed_over.raise();
    return FilterPairs{std::move(use), std::move(targets), std::move(choice.model),
                       std::move(claims)};
  }
}

FilterWork next_filter_work(SearchParts& parts, ActiveDevice& device, bool& reserved) {
  for (;;) {
    const std::uint64_t seen = parts.changed.count();
    const double begun = Trace::now();
    Wait wait;
    if (auto work = try_next_filter_work(parts, device, reserved, wait)) return *std::move(work);
    parts.changed.wait_beyond(seen, wait.until);
    count_wait(parts, &Statistics::filter_lanes, wait.pending, begun);
  }
}

std::optional<DomainBatch> next_domain_batch(SearchParts& parts, ActiveDevice& device) {
  for (;;) {
    const std::uint64_t seen = parts.handed_over.count();
    const bool stop = parts.stop, lost = device.lost;
    const double begun = Trace::now();
    Wait wait;
    if (device.domain_queue.chains() > 0) {
      wait.pending = true;
      DomainBatch work{.batch = {}, .load = load_of(parts, device), .lost = lost};
      if (stop || lost || !parts.kernels.has_pending_loads())
        work.batch = device.domain_queue.take_launch(work.load, stop || lost, wait.until);
      if (!work.batch.empty()) return work;
    } else if (stop) {
      return std::nullopt;
    }
    parts.handed_over.wait_beyond(seen, wait.until);
    count_wait(parts, &Statistics::domain_lanes, wait.pending, begun);
  }
}

std::optional<PackSegment> next_to_pack(SearchParts& parts) {
  for (;;) {
    const std::uint64_t seen = parts.changed.count();
    if (parts.stop) return std::nullopt;
    parts.packer_waits = true;
    if (ClientUse use = parts.clients.use()) {
      if (SegmentPtr segment = parts.targets.take_to_pack()) {
        parts.packer_waits = false;
        return PackSegment{std::move(use), std::move(segment)};
      }
    }
    parts.changed.wait_beyond(seen);
  }
}

}  // namespace hmmjit::gpu
