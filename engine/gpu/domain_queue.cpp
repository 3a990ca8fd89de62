#include "gpu/domain_queue.hpp"

#include <algorithm>
#include <array>

#include "core/trace.hpp"
#include "gpu/active_models.hpp"

namespace hmmjit::gpu {
namespace {

// Where a class has no kernel of a shared length it has one of its own, so that two models with the
// same parser need not have the same kernels after it.
bool same_kernels(const DomainWork& a, const DomainWork& b) {
  return std::ranges::all_of(
      std::array{Link::kParser, Link::kEnsemble, Link::kEnvelope}, [&](Link link) {
        return of_link(*a.model->slots(), link) == of_link(*b.model->slots(), link);
      });
}

}  // namespace

void DomainQueue::put(DomainWorkPtr work) {
  const MutexLock lock(mutex_);
  work->queued = Trace::now();
  targets_ += work->found.passed_targets.size();
  work_.push_back(std::move(work));
}

DomainQueue::Launch DomainQueue::largest_launch() const {
  std::vector<Launch> launches;
  for (const DomainWorkPtr& work : work_) {
    auto same = std::ranges::find_if(
        launches, [&](const Launch& launch) { return same_kernels(*launch.first, *work); });
    if (same == launches.end()) same = launches.insert(same, {.first = work.get()});
    if (same->chains == DomainStage::kMostRequests) continue;
    ++same->chains;
    same->targets += work->found.passed_targets.size();
  }
  return std::ranges::max(launches, {}, &Launch::targets);
}

std::vector<DomainWorkPtr> DomainQueue::take_launch(const DeviceLoad& device, bool all) {
  std::vector<DomainWorkPtr> batch;
  const MutexLock lock(mutex_);
  if (work_.empty()) return batch;
  const Launch largest = largest_launch();
  const double waited = Trace::now() - work_.front()->queued;
  if (!all && waits_for_more_targets(device, largest.targets, waited)) return batch;
  const DomainWork& first = *largest.first;
  for (auto at = work_.begin(); at != work_.end() && batch.size() < DomainStage::kMostRequests;) {
    if (same_kernels(**at, first)) {
      targets_ -= (*at)->found.passed_targets.size();
      batch.push_back(std::move(*at));
      at = work_.erase(at);
    } else {
      ++at;
    }
  }
  return batch;
}

DomainWorkPtr DomainQueue::take_last() {
  const MutexLock lock(mutex_);
  if (work_.empty()) return nullptr;
  DomainWorkPtr last = std::move(work_.back());
  work_.pop_back();
  targets_ -= last->found.passed_targets.size();
  return last;
}

std::size_t DomainQueue::chains() const {
  const MutexLock lock(mutex_);
  return work_.size();
}

std::size_t DomainQueue::targets() const {
  const MutexLock lock(mutex_);
  return targets_;
}

}  // namespace hmmjit::gpu
