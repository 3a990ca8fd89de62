// Size classes of model lengths.
//
// A kernel is specialised for a class length, not for a model length: a library search then needs a
// few dozen kernels instead of one per distinct length, and another model of a known class costs
// nothing. The step between classes is the largest power of two that is at most 1/12 of the class
// length (and at least 4, a register word of byte cells), so that padding stays below 8 % above 48
// positions and is 3 % on average. Longer models are rarer and cost more, so steps are twice as
// fine from kMiddle on and four times as fine from kLong on; otherwise padding would keep such
// kernels below 20 TCUPS on an H200. Measured on 349 Pfam models (M 23 to 673, 91 of them beyond
// kMiddle): 52 classes, 2.5 % padded cells; with 1/8 throughout, 36 classes and 4.5 %. As multiples
// of their step, long classes also divide evenly among the lanes of a warp.
#include "plan/plan.hpp"

namespace hmmjit::plan {

int class_length(int model_length) {
  constexpr int kFinest = 4;
  constexpr int kMiddle = 384, kLong = 768;
  const int divisor = model_length > kLong ? 48 : model_length > kMiddle ? 24 : 12;
  int step = kFinest;
  // A class length is the end of its interval, so the beginning of the interval determines the
  // step.
  while (step <= model_length / 2 / divisor && step * 2 * divisor < model_length) step *= 2;
  const int whole = model_length / step, rest = model_length % step;
  return rest == 0 ? model_length : step * (whole + 1);
}

}  // namespace hmmjit::plan
