// The kernels of a search, for its lanes.
//
// ChainPlanner plans the kernels of each size class, ChainLoader loads them on the devices, and a
// KernelSlot knows how far one kernel is.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/mutex.hpp"
#include "core/trace.hpp"
#include "driver/driver.hpp"
#include "gpu/chain_loader.hpp"
#include "gpu/chain_planner.hpp"
#include "gpu/chain_plans.hpp"
#include "gpu/kernel_slot.hpp"
#include "gpu/kernel_source.hpp"
#include "model/profile.hpp"

namespace hmmjit::gpu {

/// Thread-safe.
class ChainKernels {
 public:
  struct Settings {
    double finer_kernel_seconds = 0.5;  ///< see gpu::Settings
    Trace* trace = nullptr;
    /// A class has been planned, or the kernels of the first chains are loaded.
    std::function<void()> changed = {};
    /// A thread of this object has run out of memory. Must not throw.
    std::function<void()> out_of_memory = {};
  };
  explicit ChainKernels(const Settings& settings);
  ~ChainKernels();
  ChainKernels(const ChainKernels&) = delete;
  ChainKernels& operator=(const ChainKernels&) = delete;

  /// From now on classes are planned for devices like this one.
  void open(std::unique_ptr<KernelSource> source, const plan::DeviceTraits& device);
  /// After open(): from now on kernels are loaded on these devices.
  void load_on(std::shared_ptr<driver::Driver> driver, std::vector<driver::DevicePtr> devices);
  /// Cancels kernels that are being planned or compiled; requests no more.
  void stop();

  /// See ChainPlanner::of.
  const KernelSlots* of(const SearchModel& model) { return planner_.of(model); }

  /// State of a class. kPending: a chain must wait for a kernel that decides most targets and,
  /// for 1.5 seconds after SSV's, for those of the other filters. kFailed: there is no SSV
  /// kernel.
  enum class State { kPending, kReady, kFailed };
  static State state(const KernelSlots& slots);
  /// Whether the kernel is ready or being made.
  static bool expected(const KernelSlots& slots, Link link) {
    return of_link(slots, link)->progress().expected();
  }
  /// See ChainLoader.
  bool initial_load_done() const { return loader_.initial_load_done(); }
  bool has_pending_loads() const { return loader_.has_pending_loads(); }

  /// The kernels that are ready on that device for a model of this class. Kernels after SSV that
  /// cannot be loaded are left out; without SSV it fails with kCompile. After load_on().
  Result<std::array<ReadyKernel, kLinks>> ready(const driver::Device& device,
                                                const KernelSlots& slots, const SearchModel& model);
  /// Counts device seconds of a chain's SSV stage; after enough of them it requests a closer
  /// kernel.
  void ssv_took(const KernelSlots& slots, double seconds);

  /// The first reason why a kernel failed; empty: none has.
  std::string reason() const { return failures_.reason(); }
  compile::ProviderStatistics statistics() const;
  std::uint64_t loaded_kernels() const { return loader_.loaded_kernels(); }
  /// See ChainPlanner.
  std::vector<int> unfinished_lengths() const { return planner_.unfinished_lengths(); }

 private:
  const double finer_kernel_seconds_;
  mutable Mutex mutex_;
  bool stop_ HMMJIT_GUARDED_BY(mutex_) = false;
  std::unique_ptr<KernelSource> source_ HMMJIT_GUARDED_BY(mutex_);  // set once
  KernelFailures failures_;
  // Their threads use what stands above.
  ChainLoader loader_;
  ChainPlanner planner_;
};

}  // namespace hmmjit::gpu
