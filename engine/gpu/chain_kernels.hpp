// The kernels of a search's chains on their way from the planner, over cache or compiler, to its
// devices.
//
// Models of one size class share their kernels. A class is planned when its first model comes, by
// threads of their own, since planning, rendering and looking into the cache take milliseconds and
// all classes of a library are wanted at once. Kernels are loaded as they come, ahead of the chains
// that need them: an idle device takes one in a tenth of a millisecond, a busy one lets each wait
// until all that runs on it has ended, and all lanes with it.
#pragma once

#include <array>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/trace.hpp"
#include "driver/driver.hpp"
#include "gpu/cascade.hpp"
#include "gpu/chain_plans.hpp"
#include "gpu/kernel_loader.hpp"
#include "gpu/kernel_source.hpp"
#include "model/profile.hpp"

namespace hmmjit::gpu {

/// A kernel of one size class, or of all, on its way.
struct KernelSlot;
using KernelSlotPtr = std::shared_ptr<KernelSlot>;
using KernelSlots = std::array<KernelSlotPtr, kLinks>;

/// Thread-safe.
class ChainKernels {
 public:
  struct Settings {
    double finer_kernel_seconds = 0.5;  ///< see gpu::Settings
    Trace* trace = nullptr;
    /// A class has been planned, or the kernels of the first chains are loaded.
    std::function<void()> changed = {};
  };
  explicit ChainKernels(Settings settings);
  ~ChainKernels();
  ChainKernels(const ChainKernels&) = delete;
  ChainKernels& operator=(const ChainKernels&) = delete;

  /// From now on classes are planned for devices like this one.
  void open(std::unique_ptr<KernelSource> source, const plan::DeviceTraits& device);
  /// From now on kernels are loaded on these devices.
  void load_on(std::shared_ptr<driver::Driver> driver, std::vector<driver::DevicePtr> devices);
  /// Gives up what is being planned or compiled; nothing is asked for any more.
  void stop();

  /// The kernels of a model's class; null while it has not been planned, which this asks for. Valid
  /// as long as this object.
  const KernelSlots* of(const SearchModel& model);

  /// Of a class: kComing while a chain would have to do without a kernel that decides most targets
  /// and is on its way; kFailed without SSV.
  enum class State { kComing, kThere, kFailed };
  State state(const KernelSlots& slots);
  /// Whether the kernel is there, or comes without a compile.
  bool soon(const KernelSlots& slots, Link link);
  /// Whether the kernels that needed no compile when the devices became ready have been loaded, or
  /// have had their time for it.
  bool settled() const;
  /// Whether kernels that need no compile are still to be loaded.
  bool coming() const;

  /// The kernels that are there, ready on that device, for a model of this class. Those after SSV
  /// that cannot be loaded are done without; without SSV: kCompile.
  Result<std::array<ReadyKernel, kLinks>> ready(const driver::Device& device,
                                                const KernelSlots& slots, const SearchModel& model);
  /// A kernel that computes wrong scores is none: as if it could not be made.
  void exclude(const std::string& name);
  /// Device seconds of a chain's SSV stage: from some number on a closer kernel pays.
  void ssv_took(const KernelSlots& slots, double seconds);

  /// Why a kernel failed, the first that did; empty: none.
  std::string reason() const;
  compile::ProviderStatistics statistics() const;
  std::uint64_t loaded_kernels() const;
  /// Model lengths of classes of proteins for which a kernel has been asked for that is still being
  /// compiled, ascending. Empty before open().
  std::vector<int> unfinished_lengths();

 private:
  using SizeClass = std::pair<int, int>;  // class length, size of the alphabet

  void run_planner();
  void run_loader(int row);
  KernelSlotPtr request(Link link, const SizeClass& key);
  KernelSlotPtr slot_for(Link link, int length, int alphabet_codes);
  void plan_slot(KernelSlot& slot, Link link, int length, int alphabet_codes);
  bool refresh(KernelSlot& slot);
  bool any_coming() const;
  void note_failure(const Error& error);
  Result<ReadyKernel> load(const driver::Device& device, KernelSlot& slot,
                           const compile::KernelPtr& kernel);

  const Settings settings_;
  // Set once, before the threads that use them start.
  std::unique_ptr<KernelSource> source_;
  plan::DeviceTraits device_;
  std::optional<KernelLoader> loader_;
  std::vector<driver::DevicePtr> devices_;

  mutable std::mutex mutex_;  // of what follows, and of the slots
  std::condition_variable wake_;
  bool stop_ = false, settled_ = false;
  double settle_by_ = 0;
  std::string reason_;
  // By link, and by the length and alphabet that its kernel is planned for, no others.
  std::map<std::tuple<Link, int, int>, KernelSlotPtr> slots_;
  std::set<SizeClass> unplanned_, in_planning_;
  std::map<SizeClass, KernelSlots> classes_;
  std::deque<KernelSlotPtr> wanted_;    // finer SSV kernels that pay by now
  std::vector<KernelSlotPtr> to_load_;  // on their way from the cache or the compiler
  std::set<std::string> excluded_;      // names of kernels
  std::vector<std::thread> threads_;
};

}  // namespace hmmjit::gpu
