#include "gpu/kernel_slot.hpp"

#include <chrono>
#include <utility>

#include "core/trace.hpp"

namespace hmmjit::gpu {

void KernelFailures::note(const Error& error) {
  const MutexLock lock(mutex_);
  if (reason_.empty()) reason_ = error.to_string();
}

std::string KernelFailures::reason() const {
  const MutexLock lock(mutex_);
  return reason_;
}

bool KernelSlot::plan_once(const std::function<std::optional<Planned>()>& make) {
  const MutexLock once(planning_);
  if (!planned_) {
    std::optional<Planned> made = make();
    planned_ = true;
    if (!made) return false;
    const MutexLock lock(mutex_);
    plan_ = std::make_shared<const plan::Plan>(std::move(made->plan));
    cached_ = made->cached;
    future_ = std::move(made->future);
  }
  return plan() != nullptr;
}

KernelSlot::PlanPtr KernelSlot::plan() const {
  const MutexLock lock(mutex_);
  return plan_;
}

void KernelSlot::set_future(Future future) {
  const MutexLock lock(mutex_);
  future_ = std::move(future);
}

bool KernelSlot::claim_request(int class_length) {
  const MutexLock lock(mutex_);
  if (claimed_ || failed_ || future_.valid() || plan_ == nullptr ||
      plan_->class_length >= class_length)
    return false;
  return claimed_ = true;
}

KernelProgress KernelSlot::progress() {
  const MutexLock lock(mutex_);
  if (kernel_ == nullptr && !failed_ && future_.valid() &&
      future_.wait_for(std::chrono::seconds(0)) == std::future_status::ready) {
    const auto& result = future_.get();
    if (result) {
      kernel_ = *result;
      ready_since_ = Trace::now();
    } else {
      failures_.note(result.error());
      failed_ = true;
    }
  }
  return {.kernel = kernel_,
          .failed = failed_,
          .requested = future_.valid(),
          .cached = cached_,
          .ready_seconds = kernel_ != nullptr ? Trace::now() - ready_since_ : 0};
}

void KernelSlot::fail() {
  const MutexLock lock(mutex_);
  kernel_ = nullptr;
  failed_ = true;
}

KernelSlot::PlanPtr KernelSlot::replace(const compile::KernelPtr& kernel,
                                        const compile::KernelPtr& accepted, plan::Plan plan) {
  const MutexLock lock(mutex_);
  if (kernel_ == kernel && accepted != kernel) {
    plan_ = std::make_shared<const plan::Plan>(std::move(plan));
    kernel_ = accepted;
  }
  return plan_;
}

double KernelSlot::add_seconds(double seconds) {
  const MutexLock lock(mutex_);
  return seconds_ += seconds;
}

}  // namespace hmmjit::gpu
