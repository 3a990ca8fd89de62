#include "gpu/chain_loader.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/threads.hpp"

namespace hmmjit::gpu {
namespace {

// With two threads the driver loads 77 kernels in 5.6 instead of 7 to 9 ms; more do not help.
constexpr int kLoaders = 2;
// For how long the first chains wait for kernels to be loaded.
constexpr double kInitialLoadSeconds = 0.1;

}  // namespace

ChainLoader::~ChainLoader() {
  stop();
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void ChainLoader::start(std::shared_ptr<driver::Driver> driver,
                        std::vector<driver::DevicePtr> devices, KernelSource& source) {
  const MutexLock lock(mutex_);
  if (stop_) return;
  loader_.emplace(std::move(driver));
  devices_ = std::move(devices);
  source_ = &source;
  initial_load_until_ = Trace::now() + kInitialLoadSeconds;
  threads_.reserve(kLoaders);
  for (int i = 0; i < kLoaders; ++i)
    threads_.push_back(thread_until_out_of_memory([this, i] { run(3 + i); }, out_of_memory_));
}

void ChainLoader::stop() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
}

void ChainLoader::expect_class() {
  const MutexLock lock(mutex_);
  ++expected_classes_;
}

void ChainLoader::add_class(const KernelSlots& slots) {
  {
    const MutexLock lock(mutex_);
    --expected_classes_;
    for (const KernelSlotPtr& slot : slots) {
      if (slot->progress().requested && known_.insert(slot).second) to_load_.push_back(slot);
    }
  }
  wake_.notify_all();
}

void ChainLoader::add(const KernelSlotPtr& slot) {
  {
    const MutexLock lock(mutex_);
    if (known_.insert(slot).second) to_load_.push_back(slot);
  }
  wake_.notify_all();
}

bool ChainLoader::initial_load_done() const {
  const MutexLock lock(mutex_);
  return initial_load_done_;
}

bool ChainLoader::has_pending_loads() const {
  const MutexLock lock(mutex_);
  return any_pending();
}

bool ChainLoader::any_pending() const {
  const auto needs_no_compile = [](const KernelSlotPtr& slot) {
    return slot->progress().needs_no_compile();
  };
  return expected_classes_ > 0 || std::ranges::any_of(to_load_, needs_no_compile) ||
         std::ranges::any_of(loading_, needs_no_compile);
}

std::uint64_t ChainLoader::loaded_kernels() const {
  const MutexLock lock(mutex_);
  return loader_ ? loader_->loaded() : 0;
}

// Opening a kernel as a library needs no context, yet the driver does it only after creating
// contexts.
void ChainLoader::run(int row) {
  MutexLock lock(mutex_);
  for (;;) {
    while (!stop_ && initial_load_done_ && to_load_.empty()) lock.wait(wake_);
    if (stop_) return;
    if (!initial_load_done_ && (!any_pending() || Trace::now() > initial_load_until_)) {
      initial_load_done_ = true;
      const double begun = initial_load_until_ - kInitialLoadSeconds;
      lock.unlock();
      if (trace_ != nullptr) trace_->add("gpu start", 2, "kernels", begun, Trace::now());
      if (on_initial_load_) on_initial_load_();
      lock.lock();
      continue;
    }
    const auto ended = std::ranges::find_if(
        to_load_, [](const KernelSlotPtr& slot) { return slot->progress().ended(); });
    if (ended == to_load_.end()) {
      lock.wait_for(wake_, std::chrono::milliseconds(1));  // a finished compile gives no signal
      continue;
    }
    const KernelSlotPtr slot = *ended;
    to_load_.erase(ended);
    loading_.push_back(slot);
    lock.unlock();
    if (const compile::KernelPtr kernel = slot->progress().kernel; kernel != nullptr) {
      const double begun = Trace::now();
      // An error here recurs for the lane that needs the kernel, which handles it.
      for (const driver::DevicePtr& device : devices_) {
        if (!device->abandoned()) (void)load(*device, *slot, kernel);
      }
      if (trace_ != nullptr) trace_->add("gpu start", row, kernel->name, begun, Trace::now());
    }
    lock.lock();
    std::erase(loading_, slot);
  }
}

Result<ReadyKernel> ChainLoader::load(const driver::Device& device, KernelSlot& slot,
                                      const compile::KernelPtr& kernel) {
  std::optional<AcceptedKernel> accepted = loader_->find(kernel, device);
  KernelSlot::PlanPtr plan = slot.plan();
  if (!accepted) {
    plan::Plan accepted_plan = *plan;
    HMMJIT_ASSIGN(accepted, loader_->load_accepted(accepted_plan, kernel, device, *source_));
    plan = slot.replace(kernel, accepted->kernel, std::move(accepted_plan));
  }
  return ReadyKernel(*plan, accepted->kernel, accepted->loaded, accepted->resources.blocks_per_sm);
}

}  // namespace hmmjit::gpu
