// Plans the kernels of a search, one size class of models after the other.
//
// Models of one size class share their kernels. A class is planned when its first model arrives,
// by threads of its own: planning, rendering and cache look-ups take milliseconds, and a library
// needs all its classes at once.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "core/mutex.hpp"
#include "gpu/chain_loader.hpp"
#include "gpu/kernel_slot.hpp"
#include "gpu/kernel_source.hpp"
#include "model/profile.hpp"

namespace hmmjit::gpu {

/// Thread-safe.
class ChainPlanner {
 public:
  /// Threads of this object call `on_planned` after each class, and `out_of_memory` when one of
  /// them ends for lack of it.
  ChainPlanner(KernelFailures& failures, ChainLoader& loader, std::function<void()> on_planned,
               std::function<void()> out_of_memory)
      : failures_(failures),
        loader_(loader),
        on_planned_(std::move(on_planned)),
        out_of_memory_(std::move(out_of_memory)) {}
  ~ChainPlanner();
  ChainPlanner(const ChainPlanner&) = delete;
  ChainPlanner& operator=(const ChainPlanner&) = delete;

  /// From now on classes are planned, for devices like this one. `source` outlives this object.
  void start(KernelSource& source, const plan::DeviceTraits& device);
  void stop();

  /// The kernels of a model's class; null while it has not been planned, which the first call
  /// requests. Valid as long as this object.
  const KernelSlots* of(const SearchModel& model);
  /// Requests a kernel that has a plan.
  void request(KernelSlotPtr slot);
  /// Model lengths, ascending, of protein classes that have not been planned yet or have a kernel
  /// that is still being compiled. Empty before start().
  std::vector<int> unfinished_lengths() const;

 private:
  using SizeClass = std::pair<int, int>;  // class length, size of the alphabet

  void run();
  KernelSlots plan_class(const SizeClass& key);
  KernelSlotPtr plan_link(Link link, const SizeClass& key);
  KernelSlotPtr slot_for(Link link, int length, int alphabet_codes);
  std::optional<KernelSlot::Planned> plan(Link link, int length, int alphabet_codes);

  KernelFailures& failures_;
  ChainLoader& loader_;
  const std::function<void()> on_planned_, out_of_memory_;
  // Set once, before the threads that use them start.
  KernelSource* source_ = nullptr;
  plan::DeviceTraits device_;

  mutable Mutex mutex_;
  std::condition_variable wake_;
  bool stop_ HMMJIT_GUARDED_BY(mutex_) = false;
  // By link, length and alphabet that the kernel is planned for.
  std::map<std::tuple<Link, int, int>, KernelSlotPtr> slots_ HMMJIT_GUARDED_BY(mutex_);
  std::set<SizeClass> unplanned_ HMMJIT_GUARDED_BY(mutex_), in_planning_ HMMJIT_GUARDED_BY(mutex_);
  std::map<SizeClass, KernelSlots> classes_ HMMJIT_GUARDED_BY(mutex_);
  std::deque<KernelSlotPtr> wanted_ HMMJIT_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ HMMJIT_GUARDED_BY(mutex_);
};

}  // namespace hmmjit::gpu
