#include "gpu/active_models.hpp"

namespace hmmjit::gpu {

ActiveModel::State ActiveModel::refresh(ChainKernels& kernels) {
  if (state_ != State::kWaiting) return state_;
  const KernelSlots* const known = slots_;
  const KernelSlots* const slots = known != nullptr ? known : kernels.of(*search_);
  if (slots == nullptr) return State::kWaiting;
  slots_ = slots;
  switch (kernels.state(*slots)) {
    case ChainKernels::State::kPending:
      return State::kWaiting;
    case ChainKernels::State::kFailed:
      return State::kDeclined;
    case ChainKernels::State::kReady:
      break;
  }
  State before = State::kWaiting;
  return state_.compare_exchange_strong(before, State::kReady) ? State::kReady : before;
}

}  // namespace hmmjit::gpu
