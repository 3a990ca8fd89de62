// The models of a search in which devices take part.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <utility>

#include "core/mutex.hpp"
#include "gpu/kernel_store.hpp"
#include "work/work_board.hpp"

namespace hmmjit::gpu {

/// A model and the state of its kernels. Thread-safe.
class ActiveModel {
 public:
  ActiveModel(ModelId id, std::shared_ptr<const SearchModel> search)
      : id_(id), search_(std::move(search)) {}

  ModelId id() const { return id_; }
  const std::shared_ptr<const SearchModel>& search() const { return search_; }
  /// The kernels of the model's size class; null until the class has been planned.
  const KernelClass* kernels() const { return kernels_; }

  enum class State { kWaiting, kReady, kRefused };
  State state() const { return state_; }
  /// Checks the state of the model's kernels. kRefused: there are none, or refuse() has been
  /// called. Lowers `until` to the time at which a waiting model may be ready without a signal.
  State refresh(KernelStore& store, double* until = nullptr);
  /// Makes the model fall back to the CPU; false if that has already happened.
  bool refuse() { return state_.exchange(State::kRefused) != State::kRefused; }

 private:
  const ModelId id_;
  const std::shared_ptr<const SearchModel> search_;
  std::atomic<const KernelClass*> kernels_{nullptr};
  std::atomic<State> state_{State::kWaiting};
};
using ActiveModelPtr = std::shared_ptr<ActiveModel>;

/// Models by id. Thread-safe.
class ActiveModels {
 public:
  void add(ActiveModelPtr model) {
    const MutexLock lock(mutex_);
    models_.emplace(model->id(), std::move(model));
  }
  /// Null if no model has this id.
  ActiveModelPtr find(ModelId id) const {
    const MutexLock lock(mutex_);
    const auto found = models_.find(id);
    return found == models_.end() ? nullptr : found->second;
  }
  void remove(ModelId id) {
    ActiveModelPtr gone = find(id);  // destroyed without the lock
    const MutexLock lock(mutex_);
    models_.erase(id);
  }
  void clear() {
    std::map<ModelId, ActiveModelPtr> gone;
    const MutexLock lock(mutex_);
    gone.swap(models_);
  }

 private:
  mutable Mutex mutex_;
  std::map<ModelId, ActiveModelPtr> models_ HMMJIT_GUARDED_BY(mutex_);
};

}  // namespace hmmjit::gpu
