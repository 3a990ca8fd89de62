// Loads the kernels of a search on its devices.
//
// Kernels are loaded as they come, ahead of the chains that need them: an idle device takes one in
// a tenth of a millisecond, a busy one lets each wait until all that runs on it has ended, and all
// lanes with it.
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
  /// From threads of this object: `on_settled` is called once, when settled() becomes true,
  /// `out_of_memory` when a thread ends for lack of it.
  ChainLoader(Trace* trace, std::function<void()> on_settled, std::function<void()> out_of_memory)
      : trace_(trace),
        on_settled_(std::move(on_settled)),
        out_of_memory_(std::move(out_of_memory)) {}
  ~ChainLoader();
  ChainLoader(const ChainLoader&) = delete;
  ChainLoader& operator=(const ChainLoader&) = delete;

  /// From now on kernels are loaded. `source` outlives this object.
  void start(std::shared_ptr<driver::Driver> driver, std::vector<driver::DevicePtr> devices,
             KernelSource& source);
  void stop();

  /// A size class is being planned, and add_class() follows.
  void expect_class();
  void add_class(const KernelSlots& slots);
  /// A kernel that has been asked for later.
  void add(const KernelSlotPtr& slot);

  /// Whether the kernels that needed no compile when the devices became ready have been loaded, or
  /// have had their time for it.
  bool settled() const;
  /// Whether kernels that need no compile are still to be planned or loaded.
  bool coming() const;

  /// The kernel of a slot, ready on a device. After start().
  Result<ReadyKernel> load(const driver::Device& device, KernelSlot& slot,
                           const compile::KernelPtr& kernel);
  std::uint64_t loaded_kernels() const;

 private:
  void run(int row);
  bool any_coming() const HMMJIT_REQUIRES(mutex_);

  Trace* const trace_;
  const std::function<void()> on_settled_, out_of_memory_;
  // Set once, before the threads that use them start.
  std::optional<KernelLoader> loader_;
  std::vector<driver::DevicePtr> devices_;
  KernelSource* source_ = nullptr;

  mutable Mutex mutex_;
  std::condition_variable wake_;
  bool stop_ HMMJIT_GUARDED_BY(mutex_) = false, settled_ HMMJIT_GUARDED_BY(mutex_) = false;
  double settle_by_ HMMJIT_GUARDED_BY(mutex_) = 0;
  int expected_classes_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::set<KernelSlotPtr> known_ HMMJIT_GUARDED_BY(mutex_);
  // On their way from the cache or the compiler, and on their way to the devices.
  std::vector<KernelSlotPtr> to_load_ HMMJIT_GUARDED_BY(mutex_);
  std::vector<KernelSlotPtr> loading_ HMMJIT_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ HMMJIT_GUARDED_BY(mutex_);
};

}  // namespace hmmjit::gpu
