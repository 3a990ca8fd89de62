#include "gpu/kernel_store.hpp"

#include <algorithm>
#include <new>
#include <numeric>

#include "core/threads.hpp"

namespace hmmjit::gpu {
namespace {

constexpr int kThreads = 4;
// With two threads the driver loads 77 kernels in 5.6 instead of 7 to 9 ms; more do not help.
constexpr int kLoaders = 2;
// How long the first chains wait for kernels to be loaded.
constexpr double kInitialLoadSeconds = 0.1;

// A stage without a kernel falls back to the cores, which are a hundred times slower. A class's
// compiles take half a second each, several at a time; with few cores, a chain does not wait for
// all of them.
constexpr double kOthersSeconds = 1.5;

}  // namespace

KernelStore::~KernelStore() {
  stop();
  std::vector<std::thread> threads;
  {
    const MutexLock lock(mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void KernelStore::open(std::unique_ptr<KernelSource> source, const plan::DeviceTraits& device) {
  const MutexLock lock(mutex_);
  if (stop_) return;
  source_ = std::move(source);
  traits_ = device;
  threads_.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads_.push_back(thread_until_out_of_memory(
        "hmmjit kernels", [this, i] { work(3 + i); }, settings_.out_of_memory));
  }
}

void KernelStore::load_on(std::shared_ptr<driver::Driver> driver,
                          std::vector<driver::DevicePtr> devices) {
  {
    const MutexLock lock(mutex_);
    if (stop_) return;
    devices_ = std::move(devices);
    loader_.emplace(std::move(driver));
    initial_load_begun_ = Trace::now();
  }
  wake_.notify_all();
}

void KernelStore::stop() {
  KernelSource* source = nullptr;
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    source = source_.get();
  }
  if (source != nullptr) source->cancel();  // this calls back
  wake_.notify_all();
}

// ---- what a search asks ------------------------------------------------------------------------

const KernelClass* KernelStore::of(const SearchModel& model) {
  const SizeClass key{plan::class_length(model.bytes.M), model.bytes.Kp};
  {
    const MutexLock lock(mutex_);
    if (const auto known = classes_.find(key); known != classes_.end()) return &known->second;
    if (in_planning_.contains(key) || !unplanned_.insert(key).second) return nullptr;
  }
  wake_.notify_all();
  return nullptr;
}

ChainState KernelStore::state(const KernelClass& kernels) const {
  const MutexLock lock(mutex_);
  const StoredKernel& ssv = *of_link(kernels, Link::kSsv);
  if (ssv.state == KernelState::kRefused) return {ChainState::kRefused};
  if (ssv.state != KernelState::kMade) return {};
  const auto pending = [&](bool decides) {
    for (std::size_t i = 0; i < kLinks; ++i) {
      const auto link = static_cast<Link>(i);
      if (is_filter(link) && link_decides(link) == decides &&
          kernels[i]->state == KernelState::kMaking)
        return true;
    }
    return false;
  };
  if (pending(true)) return {};
  const double until = ssv.made + kOthersSeconds;
  if (Trace::now() < until && pending(false)) return {ChainState::kPending, until};
  return {ChainState::kReady};
}

Result<ReadyKernel> KernelStore::get(Link link, const KernelClass& kernels,
                                     const driver::Device& device) {
  StoredKernel& kernel = *of_link(kernels, link);
  compile::KernelPtr made;
  {
    const MutexLock lock(mutex_);
    if (kernel.state == KernelState::kMade) made = kernel.kernel;
  }
  if (made == nullptr) return ReadyKernel();
  auto loaded = load(kernel, made, device);
  if (loaded || link == Link::kSsv) return loaded;
  // The next chain may find memory for it.
  const bool refused = loaded.error().code == ErrorCode::kCompile;
  if (!refused && loaded.error().code != ErrorCode::kResources) return loaded;
  note(loaded.error());
  // The finer kernel may be the same.
  if (refused && &kernel != of_link(kernels, Link::kSsv)) kernel.state = KernelState::kRefused;
  return ReadyKernel();
}

Result<std::array<ReadyKernel, kLinks>> KernelStore::ready(const driver::Device& device,
                                                           const KernelClass& kernels,
                                                           const SearchModel& model) {
  std::array<ReadyKernel, kLinks> out;
  for (std::size_t i = 0; i < kLinks; ++i) {
    HMMJIT_ASSIGN(out[i], get(static_cast<Link>(i), kernels, device));
  }
  if (of_link(out, Link::kSsv)) return out;
  return fail(ErrorCode::kCompile, "there is no SSV kernel", model.hmm.name);
}

void KernelStore::ssv_took(const KernelClass& kernels, double seconds) {
  StoredKernel& fine = *of_link(kernels, Link::kFineSsv);
  std::shared_ptr<const plan::Plan> plan;
  {
    const MutexLock lock(mutex_);
    StoredKernel& coarse = *of_link(kernels, Link::kSsv);
    coarse.seconds += seconds;
    if (coarse.seconds < settings_.finer_kernel_seconds || fine.state != KernelState::kIdle ||
        fine.plan->class_length >= coarse.plan->class_length)
      return;
    fine.state = KernelState::kMaking;
    plan = fine.plan;
  }
  request(fine, *plan, 0);
}

bool KernelStore::initial_load_done() const {
  const MutexLock lock(mutex_);
  return initial_load_done_;
}

bool KernelStore::has_pending_loads() const {
  const MutexLock lock(mutex_);
  return loads_are_pending();
}

std::string KernelStore::reason() const {
  const MutexLock lock(mutex_);
  return reason_;
}

compile::ProviderStatistics KernelStore::statistics() const {
  const MutexLock lock(mutex_);
  return source_ != nullptr ? source_->statistics() : compile::ProviderStatistics{};
}

std::uint64_t KernelStore::loaded_kernels() const {
  const MutexLock lock(mutex_);
  return loader_ ? loader_->loaded() : 0;
}

std::vector<int> KernelStore::unfinished_lengths() const {
  std::set<SizeClass> unfinished;
  {
    const MutexLock lock(mutex_);
    if (source_ == nullptr) return {};
    unfinished = unplanned_;
    unfinished.insert(in_planning_.begin(), in_planning_.end());
    for (const auto& [key, kernels] : classes_) {
      if (std::ranges::any_of(kernels,
                              [](const auto* k) { return k->state == KernelState::kMaking; }))
        unfinished.insert(key);
    }
  }
  std::vector<int> out;
  for (const auto& [length, codes] : unfinished) {
    if (codes == amino_alphabet().Kp) out.push_back(length);
  }
  return out;
}

// ---- planning ----------------------------------------------------------------------------------

void KernelStore::plan_class(const SizeClass& key) {
  KernelClass made{};
  constexpr auto kFine = static_cast<std::size_t>(Link::kFineSsv);
  made[kFine] = &plan_kernel(Link::kFineSsv, key);
  // Most urgent first, which is the order in which idle compilers take kernels.
  std::array<std::size_t, kFine> links{};
  std::iota(links.begin(), links.end(), std::size_t{0});
  std::ranges::sort(links, std::greater<>(), [&](std::size_t link) {
    return link_priority(static_cast<Link>(link), key.first);
  });
  for (const std::size_t link : links) {
    // The coarse kernel is not needed if the finer one needs no compile.
    const bool fine = link == static_cast<std::size_t>(Link::kSsv) && made[kFine]->found;
    made[link] = fine ? made[kFine] : &plan_kernel(static_cast<Link>(link), key);
  }
  const MutexLock lock(mutex_);
  in_planning_.erase(key);
  classes_.emplace(key, made);
}

StoredKernel& KernelStore::plan_kernel(Link link, const SizeClass& key) {
  const auto [M, Kp] = key;
  std::vector<int> lengths = link_lengths(link, M, Kp, traits_);
  if (link == Link::kFineSsv) {
    // Use the model's own size class if an earlier run has made its kernel.
    const auto own = link_plan(link, M, Kp, traits_, source_->tuning());
    if (own && source_->find(*own) != nullptr) lengths = {M};
  }
  StoredKernel* kernel = nullptr;
  for (const int length : lengths) {
    {
      const MutexLock lock(mutex_);
      kernel = &kernels_[{link, length, Kp}];
    }
    if (plan_once(*kernel, link, length, Kp)) break;
  }
  return *kernel;
}

// Not std::call_once: under the thread sanitizer, the next call waits forever once one has thrown.
bool KernelStore::plan_once(StoredKernel& kernel, Link link, int length, int alphabet_codes) {
  const MutexLock once(kernel.planning);
  if (!kernel.planned) plan_length(kernel, link, length, alphabet_codes);
  kernel.planned = true;
  const MutexLock lock(mutex_);
  return kernel.plan != nullptr;
}

// Plans a kernel for the exact length and alphabet of its key, so that it covers every model that
// finds it.
void KernelStore::plan_length(StoredKernel& kernel, Link link, int length, int alphabet_codes) {
  auto made = link_plan(link, length, alphabet_codes, traits_, source_->tuning());
  if (!made) {
    if (link_stage(link) == plan::Stage::kSsv) note(made.error());
    kernel.state = KernelState::kRefused;
    return;
  }
  const auto plan = std::make_shared<const plan::Plan>(*std::move(made));
  compile::KernelPtr found = source_->find(*plan);
  // A finer kernel is only requested once the coarse one has cost a compile's time.
  const bool wanted = found == nullptr && link != Link::kFineSsv;
  {
    const MutexLock lock(mutex_);
    kernel.plan = plan;
    kernel.found = found != nullptr;
    kernel.kernel = std::move(found);
    kernel.made = Trace::now();
    kernel.state = kernel.found ? KernelState::kMade
                   : wanted     ? KernelState::kMaking
                                : KernelState::kIdle;
  }
  if (wanted) request(kernel, *plan, link_priority(link, length));
  if (kernel.found) wake_.notify_all();
}

void KernelStore::request(StoredKernel& kernel, const plan::Plan& plan, int priority) {
  source_->request(plan, priority, [this, &kernel](const Result<compile::KernelPtr>& made) {
    {
      const MutexLock lock(mutex_);
      if (made) kernel.kernel = *made;
      kernel.made = Trace::now();
      kernel.state = made ? KernelState::kMade : KernelState::kRefused;
    }
    try {
      if (!made) note(made.error());
    } catch (const std::bad_alloc&) {
      if (settings_.out_of_memory) settings_.out_of_memory();
    }
    wake_.notify_all();
    changed();
  });
}

void KernelStore::note(const Error& error) {
  const MutexLock lock(mutex_);
  if (reason_.empty()) reason_ = error.to_string();
}

// ---- loading -----------------------------------------------------------------------------------

StoredKernel* KernelStore::next_to_load() {
  if (!loader_ || loading_ >= kLoaders) return nullptr;
  for (auto& [key, kernel] : kernels_) {
    if (kernel.state == KernelState::kMade && !kernel.loading_begun) return &kernel;
  }
  return nullptr;
}

bool KernelStore::loads_are_pending() const {
  if (loading_ > 0 || !unplanned_.empty() || !in_planning_.empty()) return true;
  return std::ranges::any_of(kernels_, [](const auto& entry) {
    return entry.second.state == KernelState::kMade && !entry.second.loading_begun;
  });
}

void KernelStore::load_everywhere(StoredKernel& kernel, int row) {
  compile::KernelPtr made;
  {
    const MutexLock lock(mutex_);
    made = kernel.kernel;
  }
  const double begun = Trace::now();
  // An error here will recur for the lane that needs the kernel, which handles it.
  for (const driver::DevicePtr& device : devices_) {
    if (!device->abandoned()) (void)load(kernel, made, *device);
  }
  if (settings_.trace != nullptr)
    settings_.trace->add("gpu start", row, made->name, begun, Trace::now());
}

Result<ReadyKernel> KernelStore::load(StoredKernel& kernel, const compile::KernelPtr& made,
                                      const driver::Device& device) {
  std::shared_ptr<const plan::Plan> plan;
  {
    const MutexLock lock(mutex_);
    plan = kernel.plan;
  }
  HMMJIT_ASSIGN(ReadyKernel ready, loader_->load(*plan, made, device, *source_));
  const MutexLock lock(mutex_);
  if (kernel.kernel == made) kernel.kernel = ready.accepted().kernel;
  return ready;
}

// Opening a kernel as a library needs no context, but the driver does it only after creating
// contexts, so load_on() comes after those.
void KernelStore::work(int row) {
  MutexLock lock(mutex_);
  while (!stop_) {
    if (StoredKernel* const kernel = next_to_load()) {
      kernel->loading_begun = true;
      ++loading_;
      lock.unlock();
      load_everywhere(*kernel, row);
      lock.lock();
      --loading_;
    } else if (!unplanned_.empty()) {
      const SizeClass key = *std::ranges::max_element(
          unplanned_, {}, [](const SizeClass& c) { return link_priority(Link::kSsv, c.first); });
      unplanned_.erase(key);
      in_planning_.insert(key);
      lock.unlock();
      plan_class(key);
      changed();
      lock.lock();
    } else if (!loader_ || initial_load_done_) {
      lock.wait(wake_);
      continue;
    } else if (const double end = initial_load_begun_ + kInitialLoadSeconds;
               end > Trace::now() && loads_are_pending()) {
      lock.wait_until(wake_, Trace::time_point(end));
      continue;
    } else {
      initial_load_done_ = true;
      if (settings_.trace != nullptr)
        settings_.trace->add("gpu start", 2, "kernels", initial_load_begun_, Trace::now());
    }
    if (loads_are_pending()) continue;
    lock.unlock();
    wake_.notify_all();
    changed();
    lock.lock();
  }
}

}  // namespace hmmjit::gpu
