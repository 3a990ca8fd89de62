// One kernel of a search, from the planner through cache or compiler to the chains that use it.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "compile/kernel_provider.hpp"
#include "core/error.hpp"
#include "core/mutex.hpp"
#include "gpu/chain_plans.hpp"
#include "plan/plan.hpp"

namespace hmmjit::gpu {

/// The reasons why kernels of a search are not used. Thread-safe.
class KernelFailures {
 public:
  void note(const Error& error);
  /// The first failure; empty: there was none.
  std::string reason() const;

 private:
  mutable Mutex mutex_;
  std::string reason_ HMMJIT_GUARDED_BY(mutex_);
};

/// The state of a kernel at one moment.
struct KernelProgress {
  compile::KernelPtr kernel;  ///< null while it is being made, and once it has failed
  bool failed = false;
  bool requested = false;    ///< from the cache or the compiler
  bool cached = false;       ///< it needs no compile
  double ready_seconds = 0;  ///< since it was first seen ready; 0: it is not

  /// Whether it is ready or has failed.
  bool ended() const { return kernel != nullptr || failed; }
  /// Whether it is ready or being made.
  bool expected() const { return !failed && (kernel != nullptr || requested); }
  /// Whether it is being made.
  bool pending() const { return !ended() && requested; }
  /// Whether it is ready, or will be without a compile.
  bool needs_no_compile() const { return kernel != nullptr || (cached && !failed); }
};

/// The kernel of one link for one model length and alphabet. Thread-safe.
class KernelSlot {
 public:
  using Future = compile::KernelProvider::Future;
  using PlanPtr = std::shared_ptr<const plan::Plan>;

  explicit KernelSlot(KernelFailures& failures) : failures_(failures) {}

  struct Planned {
    plan::Plan plan;
    bool cached = false;  ///< it needs no compile
    Future future = {};   ///< invalid: it has not been requested
  };
  /// Calls `make` unless it has been called before, and returns whether there is a plan.
  bool plan_once(const std::function<std::optional<Planned>()>& make);
  /// The plan of its kernel; null: no kernel takes this length.
  PlanPtr plan() const;

  /// The kernel has been requested.
  void set_future(Future future);
  /// True once, if this kernel is finer than one for `class_length` and has not been requested;
  /// the caller must then request it.
  bool claim_request(int class_length);

  KernelProgress progress();
  /// There is no kernel from now on.
  void fail();
  /// `accepted`, made for `plan`, replaces `kernel`, unless another thread has replaced it
  /// already. Returns the plan of the kernel in this slot.
  PlanPtr replace(const compile::KernelPtr& kernel, const compile::KernelPtr& accepted,
                  plan::Plan plan);

  /// Device time that stages have taken with this kernel, these seconds included.
  double add_seconds(double seconds);

 private:
  KernelFailures& failures_;
  Mutex planning_;  // held during plan_once(), and locked before the other
  bool planned_ HMMJIT_GUARDED_BY(planning_) = false;
  mutable Mutex mutex_;
  PlanPtr plan_ HMMJIT_GUARDED_BY(mutex_);
  bool cached_ HMMJIT_GUARDED_BY(mutex_) = false;
  bool claimed_ HMMJIT_GUARDED_BY(mutex_) = false;
  bool failed_ HMMJIT_GUARDED_BY(mutex_) = false;
  Future future_ HMMJIT_GUARDED_BY(mutex_);
  compile::KernelPtr kernel_ HMMJIT_GUARDED_BY(mutex_);
  double ready_since_ HMMJIT_GUARDED_BY(mutex_) = 0;  // Trace::now
  double seconds_ HMMJIT_GUARDED_BY(mutex_) = 0;
};
using KernelSlotPtr = std::shared_ptr<KernelSlot>;
/// The kernels of a size class, by link.
using KernelSlots = std::array<KernelSlotPtr, kLinks>;

}  // namespace hmmjit::gpu
