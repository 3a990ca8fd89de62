#include "gpu/chain_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>
#include <optional>

#include "core/threads.hpp"

namespace hmmjit::gpu {

// What is not said to be the planner's is written with the lock of ChainKernels.
struct KernelSlot {
  std::once_flag planned;
  // The planner's, before others see the slot.
  plan::Plan plan;
  bool cached = false;  // needs no compile

  compile::KernelProvider::Future future;  // invalid: not asked for yet
  compile::KernelPtr kernel;               // once there
  bool failed = false;
  bool asked = false;    // of a finer kernel: it has been asked for
  bool loading = false;  // a thread is at it, or has been
  double seconds = 0;    // device time of the chains' SSV stages with this kernel
};

namespace {

constexpr int kPlanners = 4;
// The driver makes use of two threads, 5.6 instead of 7 to 9 ms for 77 kernels, and not of more.
constexpr int kLoaders = 2;
// What the driver allocates in a thread that loads all of them.
constexpr std::size_t kLoaderHeap = std::size_t{4} << 20;
// For how long the first chains wait for kernels to be loaded.
constexpr double kSettleSeconds = 0.1;

}  // namespace

ChainKernels::ChainKernels(Settings settings) : settings_(std::move(settings)) {}

ChainKernels::~ChainKernels() {
  stop();
  for (std::thread& thread : threads_) thread.join();
}

void ChainKernels::open(std::unique_ptr<KernelSource> source, const plan::DeviceTraits& device) {
  const std::lock_guard lock(mutex_);
  if (stop_) return;
  source_ = std::move(source);
  device_ = device;
  for (int i = 0; i < std::min(kPlanners, available_cores()); ++i)
    threads_.emplace_back([this] { run_planner(); });
}

void ChainKernels::load_on(std::shared_ptr<driver::Driver> driver,
                           std::vector<driver::DevicePtr> devices) {
  const std::lock_guard lock(mutex_);
  if (stop_) return;
  driver_ = std::move(driver);
  devices_ = std::move(devices);
  settle_by_ = Trace::now() + kSettleSeconds;
  for (int i = 0; i < kLoaders; ++i) threads_.emplace_back([this, i] { run_loader(3 + i); });
}

void ChainKernels::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    if (source_ != nullptr) source_->cancel();
  }
  wake_.notify_all();
}

const KernelSlots* ChainKernels::of(const SearchModel& model) {
  const SizeClass key{plan::class_length(model.bytes.M), model.bytes.Kp};
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = classes_.find(key); known != classes_.end()) return &known->second;
    if (in_planning_.contains(key) || !unplanned_.insert(key).second) return nullptr;
  }
  wake_.notify_all();
  return nullptr;
}

void ChainKernels::run_planner() {
  reach_ahead_in_heap(kLoaderHeap);
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stop_ || !wanted_.empty() || !unplanned_.empty(); });
    if (stop_) return;
    if (unplanned_.empty()) {
      const KernelSlotPtr slot = wanted_.front();
      wanted_.pop_front();
      lock.unlock();
      auto future = source_->request(slot->plan, 0);
      lock.lock();
      slot->future = std::move(future);
      to_load_.push_back(slot);
      wake_.notify_all();
      continue;
    }
    const auto next = std::ranges::max_element(
        unplanned_, {}, [](const SizeClass& c) { return link_priority(Link::kSsv, c.first); });
    const SizeClass key = *next;
    unplanned_.erase(next);
    in_planning_.insert(key);
    lock.unlock();
    KernelSlots made;
    constexpr auto kFine = static_cast<std::size_t>(Link::kFineSsv);
    made[kFine] = request(kFine, key);
    // The most urgent first: idle compilers take what comes.
    std::array<std::size_t, kFine> links{};
    std::iota(links.begin(), links.end(), std::size_t{0});
    std::ranges::sort(links, std::greater<>(), [&](std::size_t link) {
      return link_priority(static_cast<Link>(link), key.first);
    });
    for (const std::size_t link : links) {
      // No coarse kernel where the better one needs no compile.
      const bool fine = link == static_cast<std::size_t>(Link::kSsv) && made[kFine]->cached;
      made[link] = fine ? made[kFine] : request(link, key);
    }
    lock.lock();
    in_planning_.erase(key);
    for (const KernelSlotPtr& slot : made) {
      if (slot->future.valid() && !slot->loading &&
          std::ranges::find(to_load_, slot) == to_load_.end())
        to_load_.push_back(slot);
    }
    classes_.emplace(key, std::move(made));
    wake_.notify_all();
    lock.unlock();
    if (settings_.changed) settings_.changed();
    lock.lock();
  }
}

KernelSlotPtr ChainKernels::request(std::size_t link, const SizeClass& key) {
  const auto role = static_cast<Link>(link);
  const auto [M, Kp] = key;
  const auto make = [&, M = M, Kp = Kp](int length) {
    return link_plan(role, length, M, Kp, device_, source_->tuning());
  };
  int length = link_length(role, M);
  Result<plan::Plan> plan = fail(ErrorCode::kInternal, "not planned");
  std::optional<compile::KernelProvider::Future> found;
  if (role == Link::kFineSsv) {
    // The model's own size class where some run before has made it.
    plan = make(M);
    if (plan) found = source_->find(*plan);
    if (found) length = M;
  }
  KernelSlotPtr slot;
  {
    const std::lock_guard lock(mutex_);
    KernelSlotPtr& known = slots_[{link, length, Kp}];
    if (known == nullptr) known = std::make_shared<KernelSlot>();
    slot = known;
  }
  std::call_once(slot->planned, [&] {
    if (!found) {
      plan = make(length);
      if (plan) found = source_->find(*plan);
    }
    if (!plan) {
      slot->failed = true;
      if (link_stage(role) != plan::Stage::kSsv) return;
      const std::lock_guard lock(mutex_);
      note_failure(plan.error());
      return;
    }
    slot->plan = *std::move(plan);
    slot->cached = found.has_value();
    if (found) {
      slot->future = *std::move(found);
    } else if (role != Link::kFineSsv) {  // until the coarse one has cost a compile's time
      slot->future = source_->request(slot->plan, link_priority(role, M));
    }
  });
  return slot;
}

// Those below with mutex_ held.

void ChainKernels::note_failure(const Error& error) {
  if (reason_.empty()) reason_ = error.to_string();
}

// Whether a kernel is there.
bool ChainKernels::refresh(KernelSlot& slot) {
  if (slot.kernel != nullptr) {
    if (!excluded_.contains(slot.kernel->name)) return true;
    slot.kernel = nullptr;
    slot.failed = true;
  }
  if (slot.failed || !slot.future.valid()) return false;
  if (slot.future.wait_for(std::chrono::seconds(0)) != std::future_status::ready) return false;
  const auto& result = slot.future.get();
  if (result) {
    slot.kernel = *result;
    return refresh(slot);
  }
  note_failure(result.error());
  slot.failed = true;
  return false;
}

bool ChainKernels::any_coming() const {
  return !unplanned_.empty() || !in_planning_.empty() ||
         std::ranges::any_of(to_load_, [](const KernelSlotPtr& slot) {
           return slot->cached || slot->kernel != nullptr;
         });
}

// To open a kernel as a library needs no context, yet the driver does it only once it has made
// those.
void ChainKernels::run_loader(int row) {
  reach_ahead_in_heap(kLoaderHeap);
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stop_ || !settled_ || !to_load_.empty(); });
    if (stop_) return;
    if (!settled_ && (!any_coming() || Trace::now() > settle_by_)) {
      settled_ = true;
      lock.unlock();
      if (settings_.trace != nullptr)
        settings_.trace->add("gpu start", 2, "kernels", settle_by_ - kSettleSeconds, Trace::now());
      if (settings_.changed) settings_.changed();
      lock.lock();
      continue;
    }
    const auto there = std::ranges::find_if(to_load_, [&](const KernelSlotPtr& slot) {
      return !slot->loading && (refresh(*slot) || slot->failed);
    });
    if (there == to_load_.end()) {
      wake_.wait_for(lock, std::chrono::milliseconds(1));  // as lanes do
      continue;
    }
    const KernelSlotPtr slot = *there;
    const compile::KernelPtr kernel = slot->kernel;
    slot->loading = true;
    lock.unlock();
    if (kernel != nullptr) {
      const double begun = Trace::now();
      // What goes wrong here goes wrong again for the lane that wants the kernel, which acts on it.
      for (const driver::DevicePtr& device : devices_) {
        if (!device->abandoned()) (void)load(*device, *slot, kernel);
      }
      if (settings_.trace != nullptr)
        settings_.trace->add("gpu start", row, kernel->name, begun, Trace::now());
    }
    lock.lock();
    std::erase(to_load_, slot);
  }
}

// ---- what chains ask -------------------------------------------------------------------------

ChainKernels::State ChainKernels::state(const KernelSlots& slots) {
  const std::lock_guard lock(mutex_);
  KernelSlot& ssv = *of_link(slots, Link::kSsv);
  if (!refresh(ssv)) return ssv.failed ? State::kFailed : State::kComing;
  for (std::size_t link = 0; link < kLinks; ++link) {
    KernelSlot& slot = *slots[link];
    if (link_decides(static_cast<Link>(link)) && !refresh(slot) && !slot.failed)
      return State::kComing;
  }
  return State::kThere;
}

bool ChainKernels::soon(const KernelSlots& slots, Link link) {
  const std::lock_guard lock(mutex_);
  KernelSlot& slot = *of_link(slots, link);
  return refresh(slot) || (!slot.failed && slot.cached);
}

bool ChainKernels::settled() const {
  const std::lock_guard lock(mutex_);
  return settled_;
}

bool ChainKernels::coming() const {
  const std::lock_guard lock(mutex_);
  return any_coming();
}

void ChainKernels::exclude(const std::string& name) {
  const std::lock_guard lock(mutex_);
  excluded_.insert(name);
  note_failure({ErrorCode::kCompile, "it computed wrong scores", name, {}});
}

std::string ChainKernels::reason() const {
  const std::lock_guard lock(mutex_);
  return reason_;
}

compile::ProviderStatistics ChainKernels::statistics() const {
  const std::lock_guard lock(mutex_);
  return source_ != nullptr ? source_->statistics() : compile::ProviderStatistics{};
}

void ChainKernels::ssv_took(const KernelSlots& slots, double seconds) {
  {
    const std::lock_guard lock(mutex_);
    KernelSlot& coarse = *of_link(slots, Link::kSsv);
    const KernelSlotPtr& fine = of_link(slots, Link::kFineSsv);
    coarse.seconds += seconds;
    if (coarse.seconds < settings_.finer_kernel_seconds || fine->asked || fine->failed ||
        fine->future.valid() || fine->plan.class_length >= coarse.plan.class_length)
      return;
    fine->asked = true;
    wanted_.push_back(fine);
  }
  wake_.notify_all();
}

// The plan's next variant behind the one of `kernel`, which the driver's compiler served badly.
// Waits for its compile.
Result<compile::KernelPtr> ChainKernels::next_variant(KernelSlot& slot,
                                                      const compile::Kernel& kernel,
                                                      const std::string& reason) {
  plan::Plan plan;
  {
    const std::lock_guard lock(mutex_);
    // Another lane was here, or another link that has the same slot.
    if (slot.kernel != nullptr && slot.kernel.get() != &kernel) return slot.kernel;
    plan = slot.plan;
  }
  const std::string_view rejected = kernel.candidate.variant->name;
  plan.rejected.push_back({std::string(rejected), reason});
  std::erase_if(plan.fallbacks,
                [&](const plan::Candidate& c) { return c.variant->name == rejected; });
  if (plan.fallbacks.empty()) {
    return fail(ErrorCode::kCompile, fmt::format("the driver's code for it {}", reason),
                kernel.name, "search on the CPU, or install an NVRTC that knows this device");
  }
  plan.chosen = std::move(plan.fallbacks.front());
  plan.fallbacks.erase(plan.fallbacks.begin());
  HMMJIT_ASSIGN(compile::KernelPtr next, source_->request(plan, 0).get());
  const std::lock_guard lock(mutex_);
  slot.plan = std::move(plan);
  slot.kernel = next;
  return next;
}

Result<ReadyKernel> ChainKernels::load(const driver::Device& device, KernelSlot& slot,
                                       compile::KernelPtr kernel) {
  for (bool again = false;;) {
    std::shared_ptr<Variant> variant;
    {
      const std::lock_guard lock(mutex_);
      std::shared_ptr<Variant>& known = variants_[kernel->name];
      if (known == nullptr) known = std::make_shared<Variant>();
      variant = known;
    }
    const std::lock_guard own(variant->mutex);
    if (variant->kernel == nullptr) {
      auto opened =
          driver::LoadedKernel::load(driver_, kernel->image.bytes, kernel->image.entry_name);
      if (!opened) {
        if (opened.error().code != ErrorCode::kCompile || std::exchange(again, true))
          return std::unexpected(opened.error());
        std::unique_lock lock(mutex_);
        const plan::Plan plan = slot.plan;
        lock.unlock();
        HMMJIT_ASSIGN(kernel, source_->refused(plan, kernel, opened.error().to_string()));
        lock.lock();
        slot.kernel = kernel;
        continue;
      }
      variant->kernel = *std::move(opened);
      ++loaded_kernels_;
    }
    auto found = variant->blocks_per_sm.find(device.ordinal());
    if (found == variant->blocks_per_sm.end()) {
      const plan::Candidate& candidate = kernel->candidate;
      auto prepared = variant->kernel->prepare(device, candidate.launch.block_threads,
                                               candidate.launch.dynamic_shared_bytes);
      if (!prepared) {
        // It fits no SM: as good as no kernel for this model.
        if (prepared.error().code == ErrorCode::kResources)
          prepared.error().code = ErrorCode::kCompile;
        return std::unexpected(prepared.error());
      }
      // Only now that the driver has made code of it can PTX be held against its promises.
      if (kernel->image.kind == compile::ImageKind::kPtx) {
        const compile::KernelResources made{.registers = prepared->registers,
                                            .local_bytes = prepared->local_bytes,
                                            .static_shared_bytes = prepared->static_shared_bytes,
                                            .max_threads = prepared->max_threads};
        if (const auto reason = compile::gate(made, candidate, device.traits())) {
          HMMJIT_ASSIGN(kernel, next_variant(slot, *kernel, *reason));
          continue;
        }
      }
      found = variant->blocks_per_sm.emplace(device.ordinal(), prepared->blocks_per_sm).first;
    }
    return ReadyKernel{kernel, variant->kernel, found->second};
  }
}

Result<std::array<ReadyKernel, kLinks>> ChainKernels::ready(const driver::Device& device,
                                                            const KernelSlots& slots,
                                                            const std::string& model_name) {
  std::array<ReadyKernel, kLinks> out;
  std::array<compile::KernelPtr, kLinks> there;
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t link = 0; link < kLinks; ++link) {
      if (refresh(*slots[link])) there[link] = slots[link]->kernel;
    }
  }
  for (std::size_t link = 0; link < kLinks; ++link) {
    if (there[link] == nullptr) continue;
    KernelSlot& slot = *slots[link];
    auto loaded = load(device, slot, there[link]);
    if (loaded) {
      out[link] = *std::move(loaded);
      continue;
    }
    if (link == static_cast<std::size_t>(Link::kSsv) || loaded.error().code != ErrorCode::kCompile)
      return std::unexpected(loaded.error());
    const std::lock_guard lock(mutex_);
    note_failure(loaded.error());
    if (&slot == of_link(slots, Link::kSsv).get()) continue;  // the finer kernel may be the same
    slot.kernel = nullptr;
    slot.failed = true;
  }
  if (of_link(out, Link::kSsv).kernel == nullptr)
    return fail(ErrorCode::kCompile, "there is no SSV kernel", model_name);
  return out;
}

}  // namespace hmmjit::gpu
