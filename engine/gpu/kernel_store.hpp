// The kernels of a search: planned, taken from the cache or compiled, and loaded on its devices.
//
// Models of one size class share their kernels. A class is planned when its first model arrives.
// Planning, rendering and cache look-ups take milliseconds, and a library needs all its classes at
// once, so the store's own threads do this. Kernels are loaded as soon as they are made: an idle
// device takes a tenth of a millisecond for each; on a busy one each load waits, and all lanes with
// it, until all running kernels have ended.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/mutex.hpp"
#include "core/trace.hpp"
#include "driver/driver.hpp"
#include "gpu/chain_plans.hpp"
#include "gpu/kernel_loader.hpp"
#include "gpu/ready_kernel.hpp"

namespace hmmjit::gpu {

/// kIdle: not requested. kMaking: being compiled. kMade: it can be loaded.
enum class KernelState : std::uint8_t { kIdle, kMaking, kMade, kRefused };

/// The kernel of one link for one model length and alphabet.
struct StoredKernel {
  std::atomic<KernelState> state{KernelState::kIdle};
  /// True if it has been made or is being made.
  bool expected() const {
    const KernelState now = state;
    return now == KernelState::kMaking || now == KernelState::kMade;
  }

  Mutex planning = {};
  bool planned HMMJIT_GUARDED_BY(planning) = false;
  // Guarded by the lock of the store.
  std::shared_ptr<const plan::Plan> plan = {};  // null: no kernel takes this length
  compile::KernelPtr kernel = {};
  double made = 0;             // Trace::now
  double seconds = 0;          // device time of stages with this kernel
  bool found = false;          // it needed no compile
  bool loading_begun = false;  // on all devices
};
/// The kernels of a size class, by link. Valid as long as the store.
using KernelClass = std::array<StoredKernel*, kLinks>;

/// State that tells whether chains of a class may begin.
struct ChainState {
  enum Kind { kPending, kReady, kRefused } kind = kPending;
  /// kPending: when it may change without a call of Settings::changed (Trace::now).
  double until = std::numeric_limits<double>::infinity();
};

/// Thread-safe.
class KernelStore {
 public:
  struct Settings {
    double finer_kernel_seconds = 0.5;  ///< see gpu::Settings
    Trace* trace = nullptr;
    /// Called without a lock when a class has been planned, a kernel has been made, or no load is
    /// pending any more.
    std::function<void()> changed = {};
    /// Called when a thread of the store has run out of memory. Must not throw.
    std::function<void()> out_of_memory = {};
  };
  explicit KernelStore(Settings settings) : settings_(std::move(settings)) {}
  ~KernelStore();
  KernelStore(const KernelStore&) = delete;
  KernelStore& operator=(const KernelStore&) = delete;

  /// From now on classes are planned for devices like this one.
  void open(std::unique_ptr<KernelSource> source, const plan::DeviceTraits& device);
  /// After open(): from now on kernels are loaded on these devices.
  void load_on(std::shared_ptr<driver::Driver> driver, std::vector<driver::DevicePtr> devices);
  /// Cancels kernels that are being planned or compiled, and requests no more.
  void stop();

  /// The kernels of a model's class; null until the class has been planned, which the first call
  /// requests.
  const KernelClass* of(const SearchModel& model);
  /// A chain waits for the kernels that decide most targets and, up to 1.5 seconds after SSV's is
  /// made, for those of the other filters. It is refused without an SSV kernel.
  ChainState state(const KernelClass& kernels) const;
  /// The kernel of a link on a device; call it after load_on(). Empty if it has not been made, has
  /// been refused, or finds no memory now. An error means that the device cannot be used or, for
  /// SSV, that the model has no kernel (kCompile) or that it finds no memory (kResources).
  Result<ReadyKernel> get(Link link, const KernelClass& kernels, const driver::Device& device);
  /// The same for all links; kCompile without SSV.
  Result<std::array<ReadyKernel, kLinks>> ready(const driver::Device& device,
                                                const KernelClass& kernels,
                                                const SearchModel& model);
  /// Counts a chain's device seconds in the SSV stage. After enough of them, requests a kernel for
  /// a closer length.
  void ssv_took(const KernelClass& kernels, double seconds);

  /// True if the kernels that needed no compile when the devices became ready have been loaded, or
  /// the time for that is over.
  bool initial_load_done() const;
  /// True if kernels that need no compile have still to be planned or loaded.
  bool has_pending_loads() const;
  /// The first reason why a kernel is not used; empty if all are used.
  std::string reason() const;
  compile::ProviderStatistics statistics() const;
  std::uint64_t loaded_kernels() const;
  /// Model lengths, ascending, of protein classes that have not been planned yet or have a kernel
  /// that is still being compiled. Empty before open().
  std::vector<int> unfinished_lengths() const;

 private:
  using SizeClass = std::pair<int, int>;  // class length, size of the alphabet

  void work(int row);
  void plan_class(const SizeClass& key);
  StoredKernel& plan_kernel(Link link, const SizeClass& key);
  // Plans the kernel, once; true if it has a plan.
  bool plan_once(StoredKernel& kernel, Link link, int length, int alphabet_codes);
  void plan_length(StoredKernel& kernel, Link link, int length, int alphabet_codes);
  void request(StoredKernel& kernel, const plan::Plan& plan, int priority);
  void load_everywhere(StoredKernel& kernel, int row);
  Result<ReadyKernel> load(StoredKernel& kernel, const compile::KernelPtr& made,
                           const driver::Device& device);
  void note(const Error& error);
  StoredKernel* next_to_load() HMMJIT_REQUIRES(mutex_);
  bool loads_are_pending() const HMMJIT_REQUIRES(mutex_);
  void changed() const {
    if (settings_.changed) settings_.changed();
  }

  const Settings settings_;
  mutable Mutex mutex_;
  std::condition_variable wake_;
  bool stop_ HMMJIT_GUARDED_BY(mutex_) = false;
  std::string reason_ HMMJIT_GUARDED_BY(mutex_);
  // By link, length and alphabet that the kernel is planned for.
  std::map<std::tuple<Link, int, int>, StoredKernel> kernels_ HMMJIT_GUARDED_BY(mutex_);
  std::map<SizeClass, KernelClass> classes_ HMMJIT_GUARDED_BY(mutex_);
  std::set<SizeClass> unplanned_ HMMJIT_GUARDED_BY(mutex_), in_planning_ HMMJIT_GUARDED_BY(mutex_);
  int loading_ HMMJIT_GUARDED_BY(mutex_) = 0;
  bool initial_load_done_ HMMJIT_GUARDED_BY(mutex_) = false;
  double initial_load_begun_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::vector<std::thread> threads_ HMMJIT_GUARDED_BY(mutex_);
  // Set once, before use. The source calls back until it is destroyed.
  plan::DeviceTraits traits_;
  std::optional<KernelLoader> loader_;
  std::vector<driver::DevicePtr> devices_;
  std::unique_ptr<KernelSource> source_;
};

}  // namespace hmmjit::gpu
