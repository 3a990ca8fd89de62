// Loads the kernels of a search on its devices.
//
// Kernels are loaded as soon as they are made: an idle device takes a tenth of a millisecond for
// each; on a busy one each load waits, and all lanes with it, until all running kernels have
// ended.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/mutex.hpp"
#include "core/trace.hpp"
#include "driver/driver.hpp"
#include "gpu/kernel_loader.hpp"
#include "gpu/kernel_slot.hpp"
#include "gpu/kernel_source.hpp"
#include "gpu/ready_kernel.hpp"

namespace hmmjit::gpu {

/// Thread-safe.
class ChainLoader {
 public:
  /// Threads of this object call `on_initial_load` once, when initial_load_done() becomes true, and
  /// `out_of_memory` when one of them ends for lack of it.
  ChainLoader(Trace* trace, std::function<void()> on_initial_load,
              std::function<void()> out_of_memory)
      : trace_(trace),
        on_initial_load_(std::move(on_initial_load)),
        out_of_memory_(std::move(out_of_memory)) {}
  ~ChainLoader();
  ChainLoader(const ChainLoader&) = delete;
  ChainLoader& operator=(const ChainLoader&) = delete;

  /// From now on kernels are loaded. `source` outlives this object.
  void start(std::shared_ptr<driver::Driver> driver, std::vector<driver::DevicePtr> devices,
             KernelSource& source);
  void stop();

  /// A size class is being planned; add_class() follows.
  void expect_class();
  void add_class(const KernelSlots& slots);
  /// A kernel that was requested after its class.
  void add(const KernelSlotPtr& slot);

  /// Whether the kernels that needed no compile when the devices became ready have been loaded,
  /// or the time for that is over.
  bool initial_load_done() const;
  /// Whether kernels that need no compile are still to be planned or loaded.
  bool has_pending_loads() const;

  /// The kernel of a slot, ready on a device. After start().
  Result<ReadyKernel> load(const driver::Device& device, KernelSlot& slot,
                           const compile::KernelPtr& kernel);
  std::uint64_t loaded_kernels() const;

 private:
  void run(int row);
  bool any_pending() const HMMJIT_REQUIRES(mutex_);

  Trace* const trace_;
  const std::function<void()> on_initial_load_, out_of_memory_;
  // Set once, before the threads that use them start.
  std::optional<KernelLoader> loader_;
  std::vector<driver::DevicePtr> devices_;
  KernelSource* source_ = nullptr;

  mutable Mutex mutex_;
  std::condition_variable wake_;
  bool stop_ HMMJIT_GUARDED_BY(mutex_) = false;
  bool initial_load_done_ HMMJIT_GUARDED_BY(mutex_) = false;
  double initial_load_until_ HMMJIT_GUARDED_BY(mutex_) = 0;
  int expected_classes_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::set<KernelSlotPtr> known_ HMMJIT_GUARDED_BY(mutex_);
  // Waiting for the cache or the compiler; being loaded.
  std::vector<KernelSlotPtr> to_load_ HMMJIT_GUARDED_BY(mutex_);
  std::vector<KernelSlotPtr> loading_ HMMJIT_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ HMMJIT_GUARDED_BY(mutex_);
};

}  // namespace hmmjit::gpu
