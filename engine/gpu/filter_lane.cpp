#include "gpu/filter_lane.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "gpu/domain_lane.hpp"

namespace hmmjit::gpu {
namespace {

// The scratch of one lane may take this fraction of the usable device memory.
constexpr std::uint64_t kScratchPart = 16;

}  // namespace

void FilterLane::run() {
  while (turn()) {
  }
  parts_.availability.leave_if_lost(device_);
}

bool FilterLane::turn() {
  const std::uint64_t seen = parts_.changed.count();
  if (parts_.stop || device_.lost || parts_.availability.phase() == Availability::Phase::kFailed)
    return false;
  if (cascade_ == nullptr) {
    auto cascade =
        Cascade::create(device_.device, device_.origin, resize_on(device_, parts_.targets),
                        static_cast<std::size_t>(device_.memory.budget() / kScratchPart));
    if (!cascade) {
      parts_.availability.lose(device_, cascade.error());
      return false;
    }
    cascade_ = *std::move(cascade);
  }
  const double begun = Trace::now();
  bool found = false, waiting = false;
  double until = std::numeric_limits<double>::infinity();
  if (const ClientUse use = parts_.clients.use()) found = step(use, waiting, until);
  const double worked = Trace::now();
  if (found) {
    parts_.counters.update([&](Statistics& s) { s.filter_lanes.working += worked - begun; });
    return true;
  }
  parts_.changed.wait_beyond(seen, until);
  const double waited = Trace::now() - begun;
  parts_.counters.update(
      [&](Statistics& s) { (waiting ? s.filter_lanes.waiting : s.filter_lanes.idle) += waited; });
  return true;
}

FilterLane::Choice FilterLane::choose(const WorkBoard& board,
                                      const std::vector<SegmentPtr>& resident) {
  Choice out;
  const bool loaded = parts_.kernels.initial_load_done();
  for (const SegmentPtr& segment : resident) {
    board.visit_open(segment->shard, [&](ModelId id) {
      const ActiveModelPtr model = parts_.models.find(id);
      if (model == nullptr) return true;
      if (!loaded) {
        if (!reserved_ && !out.reserve)
          out.segment = segment, out.model = model, out.reserve = true;
        out.waiting = true;
        return false;
      }
      if (out.model != nullptr && out.model->id() <= id) return false;
      switch (model->refresh(parts_.kernels, &out.until)) {
        case ActiveModel::State::kReady:
          out.segment = segment;
          out.model = model;
          return false;
        case ActiveModel::State::kWaiting:
          out.waiting = true;
          return true;
        case ActiveModel::State::kDeclined:
          if (model->decline()) out.declined.push_back(id);
          return true;
      }
      return true;
    });
    if (out.reserve) break;
  }
  return out;
}

bool FilterLane::step(const ClientUse& use, bool& waiting, double& until) {
  const TargetStore::Offer offer = parts_.targets.offer(device_);
  const Choice choice = choose(use->board, offer.resident);
  waiting = choice.waiting;
  until = choice.until;
  if (!choice.declined.empty()) {
    refuse(use, choice.declined);
    return true;
  }
  // One lane loads what there is room for while the others work.
  if (offer.to_load != nullptr && !choice.reserve) {
    const bool beside_work = choice.model != nullptr;
    if (const auto loading = parts_.targets.begin_load(device_, offer.to_load, beside_work)) {
      load(use, offer.to_load, *loading);
      parts_.targets.end_load(offer.to_load, *loading);
      return true;
    }
    waiting = true;
  }
  if (choice.model == nullptr) return false;
  const std::shared_ptr<DeviceTargets> targets = parts_.targets.begin_work(device_, choice.segment);
  if (targets == nullptr) return true;  // it has been evicted meanwhile
  if (choice.reserve) {
    cascade_->reserve(*targets, choice.model->search()->bytes.M);
  } else {
    do_pairs(use, choice.segment, targets, choice.model);
  }
  reserved_ = true;
  return true;
}

void FilterLane::refuse(const ClientUse& use, const std::vector<ModelId>& models) {
  parts_.counters.update([&](Statistics& s) { s.models_declined += models.size(); });
  if (parts_.settings.demanded && !parts_.warned_kernel.exchange(true))
    parts_.warn("no kernel for some models, their filters run on the CPU: " + parts_.reason());
  for (const ModelId id : models) use->board.refuse_model(id);
}

void FilterLane::load(const ClientUse& use, const SegmentPtr& segment,
                      const TargetStore::Loading& loading) {
  const double begun = Trace::now();
  auto made = [&]() -> Result<std::unique_ptr<DeviceTargets>> {
    const std::lock_guard uploading(device_.upload_mutex);
    if (device_.uploader == nullptr) {
      HMMJIT_ASSIGN(Uploader uploader, Uploader::create(device_.device));
      device_.uploader = std::make_unique<Uploader>(std::move(uploader));
    }
    return DeviceTargets::create(device_.device, loading.packed, *device_.uploader);
  }();
  parts_.span("gpu upload", device_.position, "segment", begun, Trace::now());
  if (made) return parts_.targets.loaded(segment, *std::move(made));
  if (made.error().code != ErrorCode::kResources)
    return parts_.availability.lose(device_, made.error());
  const bool abandoned = parts_.targets.did_not_fit(segment);
  if (!parts_.warned_memory.exchange(true))
    parts_.warn(made.error().to_string() + "; going on with " +
                (abandoned ? "the CPU for a part of the targets" : "smaller pieces"));
  if (abandoned) use->board.refuse_shard(segment->shard);
}

void FilterLane::do_pairs(const ClientUse& use, const SegmentPtr& segment,
                          const std::shared_ptr<DeviceTargets>& targets,
                          const ActiveModelPtr& model) {
  std::vector<Claim> claims = use->board.claim(model->id(), segment->shard);
  if (std::ranges::none_of(claims, [](const Claim& claim) { return bool(claim); })) return;
  // Fewer pairs are left, which a launch of the domain stage may have waited for.
  if (device_.domain_queue.chains() > 0) parts_.handed_over.raise();
  auto work = std::make_unique<DomainWork>();
  work->chain = std::make_shared<FilteredChain>();
  FilteredChain& chain = *work->chain;
  chain.use = use;
  chain.model = model;
  auto found = filter(chain, *targets, claims);
  if (found) {
    take_found(*work, *std::move(found), std::move(claims));
    work->request.model = model->search();
    work->request.targets = targets;
    if (!hand_over(work)) parts_.deliver_and_count(*work);
    return;
  }
  failed(use, *model, found.error());
  // The pairs of a chain that failed fall back to the CPU.
  const auto given_back = std::ranges::count_if(claims, [](const Claim& c) { return bool(c); });
  parts_.counters.update(
      [&](Statistics& s) { s.blocks_given_back += static_cast<std::uint64_t>(given_back); });
}

void FilterLane::failed(const ClientUse& use, ActiveModel& model, const Error& error) {
  if (error.code == ErrorCode::kResources) {
    if (!parts_.warned_memory.exchange(true))
      parts_.warn(error.to_string() + "; going on with the CPU for some targets");
  } else if (error.code == ErrorCode::kCompile) {
    const bool first = model.decline();
    parts_.counters.update([&](Statistics& s) {
      s.models_declined += first;
      if (s.reason.empty()) s.reason = error.to_string();
    });
    use->board.refuse_model(model.id());
  } else {
    parts_.availability.lose(device_, error);
  }
}

Result<CascadeResult> FilterLane::filter(FilteredChain& chain, DeviceTargets& targets,
                                         const std::vector<Claim>& claims) {
  const double begun = Trace::now();
  const ActiveModel& model = *chain.model;
  const SearchModel& search = *model.search();
  HMMJIT_ASSIGN(const auto ready, parts_.kernels.ready(*device_.device, *model.kernels(), search));
  const bool fine = static_cast<bool>(of_link(ready, Link::kFineSsv));
  for (std::size_t i = 0; i < kLinks; ++i) {
    const auto link = static_cast<Link>(i);
    if (!ready[i] || !is_filter(link) || (link == Link::kSsv && fine)) continue;
    chain.kernels.push_back({link == Link::kFineSsv ? Link::kSsv : link, ready[i].name()});
  }
  std::vector<bool> claimed;
  for (const Claim& claim : claims) claimed.push_back(static_cast<bool>(claim));
  const auto blocks = static_cast<std::size_t>(std::ranges::count(claimed, true));
  const SampleRequest sample = chain.use->client.sample(model.id(), chain.kernels, blocks);
  HMMJIT_ASSIGN(CascadeResult found,
                cascade_->run({.model = search,
                               .kernels = ready,
                               .limits = chain.use->limits,
                               .targets = targets,
                               .claimed = claimed,
                               .wait = {parts_.settings.launch_timeout, &device_.progress},
                               .sample = sample}));
  if (found.launches > 0) note(found, targets, model, begun);
  return found;
}

void FilterLane::note(const CascadeResult& result, DeviceTargets& targets, const ActiveModel& model,
                      double begun) {
  const SearchModel& search = *model.search();
  const std::string& name = search.hmm.name;
  parts_.span("gpu lanes", device_.position * 100 + number_, name, begun, Trace::now());
  const std::vector<double> seconds = parts_.note_stages(
      device_, number_, kTimedStages, name, result.begin, result.end, device_.filter_busy);
  device_.filters_busy.add(result.begin * 1e-3, result.end.back() * 1e-3);
  parts_.kernels.ssv_took(*model.kernels(), (result.end.front() - result.begin) * 1e-3);
  device_.pace.ended(begun);
  const layout::PackedTargets& packed = targets.packed().targets;
  parts_.counters.update([&](Statistics& s) {
    for (std::size_t i = 0; i < seconds.size(); ++i) {
      s.stages[i].seconds += seconds[i];
      s.stages[i].cells += result.work[i].cells;
      s.stages[i].expected_seconds += result.work[i].expected_seconds;
    }
    ++s.chains;
    s.launches += result.launches;
    s.cells += packed.residue_count * static_cast<std::uint64_t>(search.bytes.M);
    s.targets += packed.size();
    s.survivors += result.survivors;
    s.undecided += result.undecided;
    s.viterbi += result.viterbi_targets;
    s.viterbi_flagged += result.viterbi_flagged;
    s.forward += result.forward_targets;
    s.open += result.open;
    s.passed += result.passed;
  });
}

bool FilterLane::hand_over(DomainWorkPtr& work) {
  FilteredChain& chain = *work->chain;
  if (device_.domain_lanes == 0 || work->passed.empty() ||
      !of_link(*chain.model->kernels(), Link::kParser)->expected())
    return false;
  deliver_open(chain);
  if (device_.lost) return false;
  const ClientUse use = chain.use;  // another lane may finish the chain
  if (!device_.domain_queue.put(work)) return false;
  parts_.handed_over.raise();
  use->client.targets_wait();
  return true;
}

}  // namespace hmmjit::gpu
