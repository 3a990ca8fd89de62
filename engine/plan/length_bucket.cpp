// Size classes of model lengths.
//
// A kernel is specialised for a class length, not for a model length: one library search then
// needs a few dozen kernels instead of one per distinct length, and every further model of a known
// class costs nothing. Classes lie a power of two apart, the largest that is at most 1/12 of the
// class length (and at least 4, a register word of byte cells): steps between 1/12 and 1/24, so
// that a class is wasted by less than 8 % above 48 positions and 3 % on average. Measured on 349
// Pfam models (M 23 to 673): 49 classes, 2.7 % padded cells; with 1/8, 36 classes and 4.5 %.
// Being multiples of their step, long classes also divide evenly among the lanes of a warp.
#include "plan/plan.hpp"

namespace hmmjit::plan {

int class_length(int model_length) {
  constexpr int kFinest = 4;
  constexpr int kStepDivisor = 12;
  int step = kFinest;
  // A class length is the end of its interval, so the step is fixed by where the interval begins.
  while (step * 2 * kStepDivisor < model_length) step *= 2;
  return (model_length + step - 1) / step * step;
}

}  // namespace hmmjit::plan
