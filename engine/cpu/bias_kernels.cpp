// Composition bias filter, one target per lane; each pass of foreach_target is an instruction set.
//
// A single target waits for its recurrence (a division per residue) and for a library logarithm;
// concurrent targets hide both latencies. Each lane performs the operations of
// reference::bias_filter in order, so it rounds identically.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "cpu/bias_kernels.cpp"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include <algorithm>
#include <limits>

#include "cpu/kernels.hpp"
#include "cpu/lanes-inl.h"
#include "hwy/highway.h"

#if HMMJIT_CPU_TARGET
HWY_BEFORE_NAMESPACE();
namespace hmmjit::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The widest vectors: logarithms and divisions fill them.
using Floats = hn::ScalableTag<float>;
using Doubles = hn::Repartition<double, Floats>;
using FloatVector = hn::Vec<Floats>;
using FloatMask = hn::Mask<Floats>;
using DoubleVector = hn::Vec<Doubles>;
using HalfVector = hn::Vec<hn::Half<Floats>>;
inline constexpr std::size_t kLanes = hn::MaxLanes(Floats());

// log(z * 2^k) for z in [sqrt(1/2), sqrt(2)], where z has a float's mantissa. With s = (z-1)/(z+1),
// log z = 2 atanh(s) = 2s + s^3 (2/3 + 2/5 s^2 + ...), |s| < 0.17158; the constants are a Chebyshev
// fit of the bracket with a relative error of 7e-16. z-1 and z+1 are exact, s and 2s are within
// 2^-53, and the cubic term is below 1 % of the sum, so log z is within 1e-15 relative. |k log 2|
// is at least twice |log z| if k != 0, so cancellation at most doubles the two roundings of k log 2
// and does not affect the part from log z. The total is below 2e-15, with or without fused
// operations.
HWY_INLINE DoubleVector LogOfParts(HalfVector z_float, HalfVector k_float) {
  const Doubles d;
  const auto one = hn::Set(d, 1.0);
  const auto z = hn::PromoteTo(d, z_float);
  const auto k = hn::PromoteTo(d, k_float);
  const auto s = hn::Div(hn::Sub(z, one), hn::Add(z, one));
  const auto w = hn::Mul(s, s);
  const auto w2 = hn::Mul(w, w);
  const auto c01 =
      hn::MulAdd(hn::Set(d, 0x1.9999999b86786p-2), w, hn::Set(d, 0x1.55555555553b8p-1));
  const auto c23 =
      hn::MulAdd(hn::Set(d, 0x1.c71fccda11536p-3), w, hn::Set(d, 0x1.2492462af76b8p-2));
  const auto c45 =
      hn::MulAdd(hn::Set(d, 0x1.546a333f6968ep-3), w, hn::Set(d, 0x1.7382dbd9b3ffcp-3));
  const auto bracket = hn::MulAdd(hn::MulAdd(c45, w2, c23), w2, c01);
  const auto log_z = hn::MulAdd(hn::Mul(s, w), bracket, hn::Add(s, s));
  return hn::MulAdd(k, hn::Set(d, 0x1.62e42fefa39efp-1), log_z);
}

// True if log, with a relative error of up to 1e-14, may round to a different float than the exact
// value. 1e-14 is less than kGuard units in the last place. Rounding changes half way between two
// floats, where the 29 mantissa bits that a float lacks are a one followed by zeros. Elsewhere both
// round alike: the library's logarithm is wrong by less than one unit.
HWY_INLINE hn::Mask<Doubles> NearTie(DoubleVector log) {
  constexpr std::int64_t kGuard = 128;
  const hn::RebindToSigned<Doubles> di;
  const auto distance =
      hn::And(hn::Sub(hn::BitCast(di, log), hn::Set(di, (std::int64_t{1} << 28) - kGuard)),
              hn::Set(di, (std::int64_t{1} << 29) - 1));
  return hn::RebindMask(Doubles(), hn::Lt(distance, hn::Set(di, 2 * kGuard)));
}

// float(log(double(m))) with the bits of the C library, for the lanes in `used`.
HWY_INLINE FloatVector RoundedLog(FloatVector m, FloatMask used) {
  const Floats d;
  const hn::Half<Floats> half;
  const hn::RebindToSigned<Floats> di;
  const auto m_bits = hn::BitCast(di, m);
  // k as an integer: floor of the exponent of m / sqrt(1/2).
  const auto k = hn::ShiftRight<23>(hn::Sub(m_bits, hn::Set(di, 0x3f3504f3)));
  const auto z = hn::BitCast(d, hn::Sub(m_bits, hn::ShiftLeft<23>(k)));
  const auto k_float = hn::ConvertTo(d, k);
  const auto low = LogOfParts(hn::LowerHalf(half, z), hn::LowerHalf(half, k_float));
  const auto high = LogOfParts(hn::UpperHalf(half, z), hn::UpperHalf(half, k_float));
  auto result = hn::Combine(d, hn::DemoteTo(half, high), hn::DemoteTo(half, low));

  // False for zero, subnormal, infinite and NaN values, whose parts are meaningless.
  const auto normal = hn::And(hn::Ge(m, hn::Set(d, std::numeric_limits<float>::min())),
                              hn::Le(m, hn::Set(d, std::numeric_limits<float>::max())));
  const bool tie = !hn::AllFalse(Doubles(), hn::Or(NearTie(low), NearTie(high)));
  if (HWY_UNLIKELY(tie || !hn::AllFalse(d, hn::AndNot(normal, used)))) {
    alignas(64) float values[kLanes];
    hn::Store(m, d, values);
    library_logs(values, kLanes);
    result = hn::Load(d, values);
  }
  return result;
}

void RoundedLogs(const float* values, float* logs, std::size_t count) {
  const Floats d;
  for (std::size_t i = 0; i < count; i += kLanes) {
    const std::size_t n = std::min(kLanes, count - i);
    alignas(64) float padded[kLanes];
    std::fill_n(padded, kLanes, 1.0f);
    std::copy_n(values + i, n, padded);
    hn::Store(RoundedLog(hn::Load(d, padded), hn::FirstN(d, n)), d, padded);
    std::copy_n(padded, n, logs + i);
  }
}

void Bias(const BiasModel& model, std::span<const BiasTarget> targets, float* scores) {
  // Long enough to amortise loading the state, short enough for the L1 cache.
  constexpr std::size_t kBlock = 64;
  const Floats d;
  struct Lane {
    const BiasTarget* target = nullptr;  // null: idle
    const Residue* next = nullptr;
    std::size_t left = 0;
  };
  Lane lanes[kLanes];
  // Prediction for both states from the previous step, before emission. Idle lanes hold harmless
  // values.
  alignas(64) float predicted0[kLanes], predicted1[kLanes];
  alignas(64) float t00[kLanes], t01[kLanes], sum[kLanes], ends[kLanes], active[kLanes];
  alignas(64) float last[kLanes];  // scale of the previous step; its logarithm is added next
  alignas(64) float odds[kBlock * kLanes];
  std::fill_n(predicted0, kLanes, 0.999f);
  std::fill_n(predicted1, kLanes, 0.001f);
  std::fill_n(t00, kLanes, 0.5f);
  std::fill_n(t01, kLanes, 0.5f);
  std::fill_n(sum, kLanes, 0.0f);
  std::fill_n(last, kLanes, 1.0f);
  std::fill_n(active, kLanes, 0.0f);
  std::fill_n(odds, kBlock * kLanes, 1.0f);
  const auto t10 = hn::Set(d, model.t10);
  const auto t11 = hn::Set(d, model.t11);

  std::size_t taken = 0;
  for (;;) {
    std::size_t steps = kBlock;
    bool any = false;
    for (std::size_t r = 0; r < kLanes; ++r) {
      Lane& lane = lanes[r];
      if (lane.target == nullptr) {
        if (taken == targets.size()) continue;
        lane.target = &targets[taken++];
        lane.next = lane.target->residues.data();
        lane.left = lane.target->residues.size();
        // The start probabilities act as a step from a fictitious state.
        predicted0[r] = 0.999f;
        predicted1[r] = 0.001f;
        t00[r] = lane.target->p1;
        t01[r] = 1.0f - lane.target->p1;
        sum[r] = 0.0f;
        last[r] = 1.0f;
        active[r] = 1.0f;
      }
      any = true;
      steps = std::min(steps, lane.left);
    }
    if (!any) return;
    for (std::size_t r = 0; r < kLanes; ++r) {
      Lane& lane = lanes[r];
      if (lane.target == nullptr) continue;
      const float* HWY_RESTRICT emission = model.odds[1].data();
      for (std::size_t i = 0; i < steps; ++i) odds[i * kLanes + r] = emission[lane.next[i]];
      lane.next += steps;
      lane.left -= steps;
    }

    const auto used = hn::Gt(hn::Load(d, active), hn::Zero(d));
    const auto stay0 = hn::Load(d, t00);
    const auto leave0 = hn::Load(d, t01);
    auto p0 = hn::Load(d, predicted0);
    auto p1 = hn::Load(d, predicted1);
    auto score = hn::Load(d, sum);
    auto previous = hn::Load(d, last);
    auto a0 = hn::Zero(d);
    auto a1 = hn::Zero(d);
    for (std::size_t i = 0; i < steps; ++i) {
      // The odds of state 0 are 1. Max may treat a NaN unlike the reference, but a NaN stays a NaN,
      // and the reference then scores the target.
      const auto n1 = hn::Mul(p1, hn::Load(d, odds + i * kLanes));
      const auto best = hn::Max(hn::Max(hn::Zero(d), p0), n1);
      a0 = hn::Div(p0, best);
      a1 = hn::Div(n1, best);
      p0 = hn::Add(hn::Mul(a0, stay0), hn::Mul(a1, t10));
      p1 = hn::Add(hn::Mul(a0, leave0), hn::Mul(a1, t11));
      // Add the logarithm one step late: then nothing waits for it, and out-of-order execution
      // reaches the next step of the recurrence. The first logarithm, log 1 = 0, adds nothing.
      score = hn::Add(score, RoundedLog(previous, used));
      previous = best;
    }
    hn::Store(p0, d, predicted0);
    hn::Store(p1, d, predicted1);
    hn::Store(score, d, sum);
    hn::Store(previous, d, last);
    hn::Store(hn::Add(a0, a1), d, ends);
    for (std::size_t r = 0; r < kLanes; ++r) {
      Lane& lane = lanes[r];
      if (lane.target == nullptr || lane.left != 0) continue;
      scores[lane.target->index] = bias_score(model, *lane.target, sum[r], last[r], ends[r]);
      lane.target = nullptr;
      active[r] = 0.0f;
      last[r] = 1.0f;
      predicted0[r] = 0.999f;
      predicted1[r] = 0.001f;
      for (std::size_t i = 0; i < kBlock; ++i) odds[i * kLanes + r] = 1.0f;
    }
  }
}

const BiasKernels& BiasOfTarget() {
  static const BiasKernels kernels = {&Bias, &RoundedLogs};
  return kernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace hmmjit::cpu
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace hmmjit::cpu {

const BiasKernels* bias_kernels(std::int64_t target) {
#define HMMJIT_OF_TARGET BiasOfTarget
#include "cpu/select_kernels-inl.h"
}

}  // namespace hmmjit::cpu
#endif
