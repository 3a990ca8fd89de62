#include "gpu/filter_lane.hpp"

#include <algorithm>
#include <utility>

#include "gpu/engine_state.hpp"

namespace hmmjit::gpu {
namespace {

// The fraction of usable device memory that one lane's scratch may take.
constexpr std::uint64_t kScratchPart = 16;

}  // namespace

void FilterLane::run() {
  if (!ends(engine_, device_)) {
    if (const Status opened = open(); !opened) engine_.lose(device_, opened.error());
  }
  for (;;) {
    FilterWork work = next_filter_work(engine_, device_, buffers_);
    if (std::holds_alternative<Stop>(work)) break;
    const double begun = Trace::now();
    std::visit([this](auto& w) { perform(w); }, work);
    const double seconds = Trace::now() - begun;
    engine_.counters.update([&](Statistics& s) { s.filter_lanes.working += seconds; });
  }
  engine_.leave_if_lost(device_);
}

Status FilterLane::open() {
  HMMJIT_ASSIGN(cascade_,
                Cascade::create(device_.device, device_.origin, resize_on(device_, engine_.targets),
                                static_cast<std::size_t>(device_.memory.budget() / kScratchPart)));
  return {};
}

void FilterLane::perform(const RefuseModels& work) {
  engine_.counters.update([&](Statistics& s) { s.models_declined += work.models.size(); });
  if (engine_.settings.demanded && !engine_.warned_kernel.exchange(true))
    engine_.warn("no kernel for some models, their filters run on the CPU: " + engine_.reason());
  for (const ModelId id : work.models) work.use->board.refuse_model(id);
}

void FilterLane::perform(const ReserveBuffers& work) {
  const Status reserved = cascade_->reserve(*work.targets, work.model->search()->bytes.M);
  buffers_.targets = reserved ? work.targets->packed().targets.size() : 0;
  if (reserved) return;
  if (reserved.error().code != ErrorCode::kResources) {
    engine_.lose(device_, reserved.error());
  } else {
    engine_.warn_of_memory(reserved.error(), "fewer chains at a time");
    if (engine_.targets.has_no_room(work.segment, number_))
      work.use->board.refuse_segment(work.segment->id);
  }
}

void FilterLane::perform(const LoadSegment& work) {
  const double begun = Trace::now();
  auto made = [&]() -> Result<std::unique_ptr<DeviceTargets>> {
    const MutexLock uploading(device_.upload_mutex);
    if (device_.uploader == nullptr) {
      HMMJIT_ASSIGN(Uploader uploader, Uploader::create(device_.device));
      device_.uploader = std::make_unique<Uploader>(std::move(uploader));
    }
    return DeviceTargets::create(device_.device, work.loading.packed, *device_.uploader);
  }();
  engine_.span("gpu upload", device_.position, "segment", begun, Trace::now());
  if (made) {
    engine_.targets.loaded(work.segment, *std::move(made));
  } else if (made.error().code != ErrorCode::kResources) {
    engine_.lose(device_, made.error());
  } else {
    const auto left = device_.device->memory();
    const bool abandoned = engine_.targets.did_not_fit(work.segment, left ? left->free : 0);
    engine_.warn_of_memory(made.error(),
                           abandoned ? "the CPU for a part of the targets" : "smaller pieces");
    if (abandoned) work.use->board.refuse_segment(work.segment->id);
  }
  engine_.targets.end_load(work.segment, work.loading);
}

void FilterLane::perform(FilterPairs& work) {
  auto chain_work = std::make_unique<DomainWork>();
  chain_work->chain = std::make_shared<FilteredChain>();
  FilteredChain& chain = *chain_work->chain;
  chain.use = work.use;
  chain.model = work.model;
  auto found = filter(chain, *work.targets, work.claims);
  if (found) {
    take_found(*chain_work, *std::move(found), std::move(work.claims));
    chain_work->request.model = work.model->search();
    chain_work->request.targets = work.targets;
    if (!hand_over(chain_work)) engine_.deliver_and_count(*chain_work);
    return;
  }
  failed(work, found.error());
  // If a chain fails, its pairs fall back to the CPU.
  const auto given_back =
      std::ranges::count_if(work.claims, [](const Claim& c) { return bool(c); });
  engine_.counters.update(
      [&](Statistics& s) { s.blocks_given_back += static_cast<std::uint64_t>(given_back); });
}

void FilterLane::failed(const FilterPairs& work, const Error& error) {
  if (error.code == ErrorCode::kResources) {
    engine_.warn_of_memory(error, "the CPU for some targets");
  } else if (error.code == ErrorCode::kCompile) {
    const bool first = work.model->refuse();
    engine_.counters.update([&](Statistics& s) {
      s.models_declined += first;
      if (s.reason.empty()) s.reason = error.to_string();
    });
    work.use->board.refuse_model(work.model->id());
  } else {
    engine_.lose(device_, error);
  }
}

Result<CascadeResult> FilterLane::filter(FilteredChain& chain, DeviceTargets& targets,
                                         const std::vector<Claim>& claims) {
  const double begun = Trace::now();
  const ActiveModel& model = *chain.model;
  const SearchModel& search = *model.search();
  HMMJIT_ASSIGN(const auto ready, engine_.kernels.ready(*device_.device, *model.kernels(), search));
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
  // On a T4, a target takes up to 4 us per residue for every 256 positions of the model.
  const auto& lengths = targets.packed().targets.class_lengths;
  const double longest = lengths.empty() ? 0 : 1e-5 * lengths.front();
  const double timeout =
      engine_.settings.launch_timeout + longest * std::max(1.0, search.hmm.M / 256.0);
  HMMJIT_ASSIGN(CascadeResult found, cascade_->run({.model = search,
                                                    .kernels = ready,
                                                    .limits = chain.use->limits,
                                                    .targets = targets,
                                                    .claimed = claimed,
                                                    .wait = {timeout, &device_.progress},
                                                    .sample = sample}));
  if (found.launches > 0) note(found, targets, model, begun);
  return found;
}

void FilterLane::note(const CascadeResult& result, DeviceTargets& targets, const ActiveModel& model,
                      double begun) {
  const SearchModel& search = *model.search();
  const std::string& name = search.hmm.name;
  const double end = Trace::now();
  engine_.span("gpu lanes", device_.position * 100 + number_, name, begun, end);
  const std::vector<double> seconds = engine_.note_stages(
      device_, number_, kTimedStages, name, result.begin, result.end, device_.filter_busy);
  device_.filters_busy.add(result.begin * 1e-3, result.end.back() * 1e-3);
  engine_.kernels.ssv_took(*model.kernels(), (result.end.front() - result.begin) * 1e-3);
  device_.pace.add(begun, end);
  const layout::PackedTargets& packed = targets.packed().targets;
  engine_.counters.update([&](Statistics& s) {
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
  const std::uint64_t cells = cells_of(*work);
  if (!engine_.settings.wait_for_device &&
      host_is_sooner(use->client.load(), load_of(engine_, device_), cells)) {
    engine_.count_fallback(HostReason::kTime, cells);
    return false;
  }
  if (!device_.domain_queue.put(work)) return false;
  engine_.handed_over.raise();
  use->client.targets_wait();
  return true;
}

}  // namespace hmmjit::gpu
