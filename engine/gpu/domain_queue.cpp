#include "gpu/domain_queue.hpp"

#include <algorithm>
#include <numeric>

#include "core/trace.hpp"
#include "gpu/active_models.hpp"

namespace hmmjit::gpu {
namespace {

// A class for which no kernel of a shared length exists has its own, so two models with the same
// parser need not have the same kernels after it.
bool same_kernels(const DomainWork& a, const DomainWork& b) {
  return std::ranges::all_of(kDomainLinks, [&](Link link) {
    return of_link(*a.chain->model->kernels(), link) == of_link(*b.chain->model->kernels(), link);
  });
}

std::uint64_t cells_of(const DomainWork& work, const PassedTarget& passed) {
  return std::uint64_t{work.request.targets->packed().targets.length[passed.target]} *
         static_cast<std::uint64_t>(work.request.model->hmm.M);
}

bool kernels_are_pending(const DomainWork& work) {
  return std::ranges::any_of(kDomainLinks, [&](Link link) {
    return of_link(*work.chain->model->kernels(), link)->state == KernelState::kMaking;
  });
}

}  // namespace

FilteredChain::~FilteredChain() {
  if (begun && std::ranges::any_of(claims, [](const Claim& claim) { return bool(claim); }))
    use->client.stopped({ErrorCode::kResources, "out of memory", {}, {}}, true);
}

std::uint64_t cells_of(const DomainWork& work) {
  std::uint64_t sum = 0;
  for (const PassedTarget& passed : work.passed) sum += cells_of(work, passed);
  return sum;
}

DomainWorkPtr split_off(DomainWork& work, const std::vector<bool>& taken) {
  auto part = std::make_unique<DomainWork>();
  part->chain = work.chain;
  ++part->chain->parts;
  part->request.model = work.request.model;
  part->request.targets = work.request.targets;
  part->queued = work.queued;
  std::vector<PassedTarget> stay;
  for (std::size_t i = 0; i < work.passed.size(); ++i)
    (taken[i] ? part->passed : stay).push_back(work.passed[i]);
  work.passed = std::move(stay);
  return part;
}

bool DomainQueue::put(DomainWorkPtr& work) {
  const MutexLock lock(mutex_);
  if (!open_) return false;
  work->queued = Trace::now();
  targets_ += work->passed.size();
  cells_ += cells_of(*work);
  work_.push_back(std::move(work));
  return true;
}

void DomainQueue::close() {
  DomainWorkPtr dropped;  // to be destroyed without the lock
  MutexLock lock(mutex_);
  open_ = false;
  while (!work_.empty()) {
    dropped = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    dropped.reset();
    lock.lock();
  }
  targets_ = 0;
  cells_ = 0;
}

void DomainQueue::open() {
  const MutexLock lock(mutex_);
  open_ = true;
}

DomainQueue::Launch DomainQueue::largest_launch(bool all) const {
  std::vector<Launch> launches;
  for (const DomainWorkPtr& work : work_) {
    if (!all && kernels_are_pending(*work)) continue;
    auto same = std::ranges::find_if(
        launches, [&](const Launch& launch) { return same_kernels(*launch.first, *work); });
    if (same == launches.end()) same = launches.insert(same, {.first = work.get()});
    if (same->chains == DomainStage::kMostRequests) continue;
    ++same->chains;
    same->targets += work->passed.size();
  }
  return launches.empty() ? Launch{} : std::ranges::max(launches, {}, &Launch::targets);
}

std::vector<DomainWorkPtr> DomainQueue::take_launch(const DeviceLoad& device, bool all,
                                                    double& until) {
  std::vector<DomainWorkPtr> batch;
  const MutexLock lock(mutex_);
  const Launch largest = largest_launch(all);
  if (largest.first == nullptr) return batch;
  const double queued = work_.front()->queued;
  if (!all && waits_for_more_targets(device, largest.targets, Trace::now() - queued)) {
    until = queued + kMostDomainWait;
    return batch;
  }
  const DomainWork& first = *largest.first;
  std::size_t room = DomainStage::kMostLaunchTargets;
  for (auto at = work_.begin();
       at != work_.end() && room > 0 && batch.size() < DomainStage::kMostRequests;) {
    if (!same_kernels(**at, first)) {
      ++at;
      continue;
    }
    const std::size_t has = (*at)->passed.size();
    const std::size_t takes = std::min({has, room, DomainStage::kMostTargets});
    if (takes < has) {
      std::vector<bool> taken(has);
      std::fill_n(taken.begin(), takes, true);
      batch.push_back(split_off(**at, taken));
    } else {
      batch.push_back(std::move(*at));
      at = work_.erase(at);
    }
    room -= takes;
    targets_ -= takes;
    cells_ -= cells_of(*batch.back());
  }
  return batch;
}

DomainWorkPtr DomainQueue::take_longest(std::uint64_t cells) {
  const MutexLock lock(mutex_);
  if (work_.empty()) return nullptr;
  DomainWork& last = *work_.back();
  // Targets are sorted, longest first.
  const auto shorter = [&](std::size_t a, std::size_t b) {
    return last.passed[a].target > last.passed[b].target;
  };
  std::vector<std::size_t> heap(last.passed.size());
  std::iota(heap.begin(), heap.end(), std::size_t{0});
  std::ranges::make_heap(heap, shorter);
  std::vector<bool> taken(heap.size());
  std::uint64_t sum = 0;
  while (!heap.empty() && sum < cells) {
    std::ranges::pop_heap(heap, shorter);
    taken[heap.back()] = true;
    sum += cells_of(last, last.passed[heap.back()]);
    heap.pop_back();
  }
  DomainWorkPtr out;
  if (!heap.empty()) {
    out = split_off(last, taken);
  } else {
    out = std::move(work_.back());
    work_.pop_back();
  }
  targets_ -= out->passed.size();
  cells_ -= sum;
  return out;
}

std::size_t DomainQueue::chains() const {
  const MutexLock lock(mutex_);
  return work_.size();
}

DeviceLoad DomainQueue::load() const {
  const MutexLock lock(mutex_);
  return {.domain_chains = work_.size(), .domain_targets = targets_, .domain_cells = cells_};
}

}  // namespace hmmjit::gpu
