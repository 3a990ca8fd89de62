#include "gpu/chain_kernels.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <numeric>

#include "core/threads.hpp"

namespace hmmjit::gpu {

// What is not said to be the planner's is written with the lock of ChainKernels.
struct KernelSlot {
  std::once_flag planned;
  // The planner's, before others see the slot.
  bool has_plan = false;  // or no kernel takes this length
  plan::Plan plan;        // for the length and the alphabet under which the slot is found
  bool cached = false;    // needs no compile

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
  loader_.emplace(std::move(driver));
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
    made[kFine] = request(Link::kFineSsv, key);
    // The most urgent first: idle compilers take what comes.
    std::array<std::size_t, kFine> links{};
    std::iota(links.begin(), links.end(), std::size_t{0});
    std::ranges::sort(links, std::greater<>(), [&](std::size_t link) {
      return link_priority(static_cast<Link>(link), key.first);
    });
    for (const std::size_t link : links) {
      // No coarse kernel where the better one needs no compile.
      const bool fine = link == static_cast<std::size_t>(Link::kSsv) && made[kFine]->cached;
      made[link] = fine ? made[kFine] : request(static_cast<Link>(link), key);
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

KernelSlotPtr ChainKernels::slot_for(Link link, int length, int alphabet_codes) {
  const std::lock_guard lock(mutex_);
  KernelSlotPtr& known = slots_[{link, length, alphabet_codes}];
  if (known == nullptr) known = std::make_shared<KernelSlot>();
  return known;
}

// A slot is planned for the very length and alphabet it is found under, so that whoever finds it
// has a kernel that covers that length, whichever model came first.
void ChainKernels::plan_slot(KernelSlot& slot, Link link, int length, int alphabet_codes) {
  auto plan = link_plan(link, length, alphabet_codes, device_, source_->tuning());
  if (!plan) {
    if (link_stage(link) != plan::Stage::kSsv) return;
    const std::lock_guard lock(mutex_);
    note_failure(plan.error());
    return;
  }
  slot.plan = *std::move(plan);
  slot.has_plan = true;
  if (auto found = source_->find(slot.plan)) {
    slot.cached = true;
    slot.future = *std::move(found);
  } else if (link != Link::kFineSsv) {  // until the coarse one has cost a compile's time
    slot.future = source_->request(slot.plan, link_priority(link, length));
  }
}

KernelSlotPtr ChainKernels::request(Link link, const SizeClass& key) {
  const auto [M, Kp] = key;
  std::vector<int> lengths = link_lengths(link, M);
  if (link == Link::kFineSsv) {
    // The model's own size class where some run before has made its kernel.
    const auto own = link_plan(link, M, Kp, device_, source_->tuning());
    if (own && source_->find(*own)) lengths = {M};
  }
  KernelSlotPtr slot;
  for (const int length : lengths) {
    slot = slot_for(link, length, Kp);
    std::call_once(slot->planned, [&] { plan_slot(*slot, link, length, Kp); });
    if (slot->has_plan) return slot;
  }
  const std::lock_guard lock(mutex_);
  slot->failed = true;
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

std::uint64_t ChainKernels::loaded_kernels() const {
  const std::lock_guard lock(mutex_);
  return loader_ ? loader_->loaded() : 0;
}

std::vector<int> ChainKernels::unfinished_lengths() {
  const std::lock_guard lock(mutex_);
  if (source_ == nullptr) return {};
  std::set<SizeClass> unfinished = unplanned_;
  unfinished.insert(in_planning_.begin(), in_planning_.end());
  for (auto& [key, slots] : classes_) {
    const auto being_made = [&](const KernelSlotPtr& slot) {
      return !refresh(*slot) && !slot->failed && slot->future.valid();
    };
    if (std::ranges::any_of(slots, being_made)) unfinished.insert(key);
  }
  std::vector<int> out;
  for (const auto& [length, codes] : unfinished) {
    if (codes == amino_alphabet().Kp) out.push_back(length);
  }
  return out;
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

Result<ReadyKernel> ChainKernels::load(const driver::Device& device, KernelSlot& slot,
                                       const compile::KernelPtr& kernel) {
  std::optional<AcceptedKernel> accepted = loader_->find(kernel, device);
  std::unique_lock lock(mutex_);
  if (!accepted) {
    plan::Plan plan = slot.plan;
    lock.unlock();
    HMMJIT_ASSIGN(accepted, loader_->load_accepted(plan, kernel, device, *source_));
    lock.lock();
    // Unless another lane was here, or another link that has the same slot.
    if (slot.kernel == kernel && accepted->kernel != kernel) {
      slot.plan = std::move(plan);
      slot.kernel = accepted->kernel;
    }
  }
  return ReadyKernel(slot.plan, accepted->kernel, accepted->loaded,
                     accepted->resources.blocks_per_sm);
}

Result<std::array<ReadyKernel, kLinks>> ChainKernels::ready(const driver::Device& device,
                                                            const KernelSlots& slots,
                                                            const SearchModel& model) {
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
      // Never so by the way slots are found; if it were, results would still be right.
      if (const Status covered = loaded->require(extent_of(model)); !covered) {
        const std::lock_guard lock(mutex_);
        note_failure(covered.error());
        continue;
      }
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
  if (!of_link(out, Link::kSsv))
    return fail(ErrorCode::kCompile, "there is no SSV kernel", model.hmm.name);
  return out;
}

}  // namespace hmmjit::gpu
