#include "gpu/active_models.hpp"

#include <algorithm>

namespace hmmjit::gpu {

ActiveModel::State ActiveModel::refresh(KernelStore& store, double* until) {
  if (state_ != State::kWaiting) return state_;
  const KernelClass* const known = kernels_;
  const KernelClass* const of = known != nullptr ? known : store.of(*search_);
  if (of == nullptr) return State::kWaiting;
  kernels_ = of;
  const ChainState now = store.state(*of);
  if (until != nullptr) *until = std::min(*until, now.until);
  if (now.kind == ChainState::kPending) return State::kWaiting;
  if (now.kind == ChainState::kRefused) return State::kRefused;
  State before = State::kWaiting;
  return state_.compare_exchange_strong(before, State::kReady) ? State::kReady : before;
}

}  // namespace hmmjit::gpu
