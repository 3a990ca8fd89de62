#include "gpu/active_models.hpp"

namespace hmmjit::gpu {

ActiveModel::State ActiveModel::refresh(ChainKernels& kernels) {
  if (state_ != State::kWaiting) return state_;
  if (slots_ == nullptr) slots_ = kernels.of(*search_);
  if (slots_ == nullptr) return State::kWaiting;
  switch (kernels.state(*slots_)) {
    case ChainKernels::State::kComing:
      return State::kWaiting;
    case ChainKernels::State::kFailed:
      return State::kDeclined;
    case ChainKernels::State::kThere:
      break;
  }
  State before = State::kWaiting;
  return state_.compare_exchange_strong(before, State::kReady) ? State::kReady : before;
}

}  // namespace hmmjit::gpu
