// Composition bias filter: the two-state HMM's total over a target, L lanes per target.
//
// A residue maps the weights (a0, a1) of the two states linearly to new ones, so a stretch of residues is a 2 x 2
// matrix: every lane multiplies the matrices of its stretch, and the lanes' products are combined in order. Powers
// of two are factored out every few residues and counted, so that one logarithm per target replaces HMMER's
// one per residue. The sum differs from HMMER's by rounding only (layout::bias_guard states the band within
// which the CPU decides).
#include "common/float_filter.cuh"
#include "plan_constants.h"

namespace hmmjit_device {
namespace {

enum : u32 { kL = plan_constants::kL };
static_assert(plan_constants::kS * kL == 32, "a warp holds S targets");
// Odds of one residue are below 2^7 and a stretch starts below 1: no overflow between normalisations.
enum : u32 { kNormalise = 12 };

/// Row s: weights at the end of a stretch entered in state s; times 2^exponent.
struct Stretch {
  float a, b, c, d;
  int exponent;
};

/// 2^n for n in -126..127.
HMMJIT_DEVICE float power_of_two(int n) { return bits_float(static_cast<u32>(n + 127) << 23); }

HMMJIT_DEVICE void normalise(Stretch* s) {
  float most = s->a > s->b ? s->a : s->b;
  most = most > s->c ? most : s->c;
  most = most > s->d ? most : s->d;
  const int exponent = static_cast<int>(float_bits(most) >> 23) - 126;  // most < 2^exponent
  if (exponent <= -126 || exponent > 126) return;  // zero, subnormal or not finite
  const float scale = power_of_two(-exponent);
  s->a = multiply(s->a, scale);
  s->b = multiply(s->b, scale);
  s->c = multiply(s->c, scale);
  s->d = multiply(s->d, scale);
  s->exponent += exponent;
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(plan_constants::kThreads)
    bias_segments(const hmmjit_device::BiasParams p) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(table);
  float* const odds = reinterpret_cast<float*>(table);  // [code][state]
  for (u32 i = threadIdx.x; i < 2u * kSymbolRows; i += blockDim.x) {
    odds[i] = p.odds[i % 2u * kSymbolRows + i / 2u];
  }
  sync_block();
  const u32 lane = threadIdx.x % 32u, in_group = lane % kL, group = lane / kL;
  const u32 count = list_count(p.list);
  for (;;) {
    u32 slot = 0;
    if (lane == 0) slot = atomic_add(&p.counters->next, plan_constants::kS);
    slot = shuffle(slot, 0);
    if (slot >= count) break;
    slot += group;
    const bool valid = slot < count;
    const u32 target = valid ? list_target(p.list, slot) : 0u;
    const u32 length = valid ? p.database.length[target] : 0u;
    const float t00 = p.p1[p.database.length_class[target]], t01 = add(1.0f, -t00);
    const u8* const residues =
        p.database.residues + static_cast<u64>(p.database.start[target]) * kStartUnit;
    // Stretches of whole words, so that every lane loads aligned.
    const u32 words = (length + 3) / 4, share = (words + kL - 1) / kL;
    const u32 begin = in_group * share * 4 < length ? in_group * share * 4 : length;
    const u32 end = begin + share * 4 < length ? begin + share * 4 : length;

    Stretch s;
    s.a = s.d = 1.0f;
    s.b = s.c = 0.0f;
    s.exponent = 0;
    u32 since = 0;
    for (u32 i = begin; i < end; i += 4) {
      u32 now = load_word(residues + i);
      for (u32 q = 0; q < 4 && i + q < end; ++q, now >>= 8) {
        const u32 x = (now & 31u) * 2u;
        const float o0 = odds[x], o1 = odds[x + 1u];
        if (i + q == 0) {  // the first residue follows no transition
          s.a = o0;
          s.d = o1;
          continue;
        }
        const float a = multiply(multiply_add(s.b, p.t10, multiply(s.a, t00)), o0);
        const float b = multiply(multiply_add(s.b, p.t11, multiply(s.a, t01)), o1);
        const float c = multiply(multiply_add(s.d, p.t10, multiply(s.c, t00)), o0);
        const float d = multiply(multiply_add(s.d, p.t11, multiply(s.c, t01)), o1);
        s.a = a;
        s.b = b;
        s.c = c;
        s.d = d;
      }
      since += 4;
      if (since >= kNormalise) {
        normalise(&s);
        since = 0;
      }
    }
    normalise(&s);
    for (u32 o = 1; o < kL; o *= 2) {
      // Lanes with bit o clear take the stretch that follows theirs.
      Stretch next;
      const u32 from = lane + o;
      next.a = shuffle_float(s.a, from);
      next.b = shuffle_float(s.b, from);
      next.c = shuffle_float(s.c, from);
      next.d = shuffle_float(s.d, from);
      next.exponent = static_cast<int>(shuffle(static_cast<u32>(s.exponent), from));
      if ((in_group & (2 * o - 1)) == 0) {
        Stretch joined;
        joined.a = multiply_add(s.a, next.a, multiply(s.b, next.c));
        joined.b = multiply_add(s.a, next.b, multiply(s.b, next.d));
        joined.c = multiply_add(s.c, next.a, multiply(s.d, next.c));
        joined.d = multiply_add(s.c, next.b, multiply(s.d, next.d));
        joined.exponent = s.exponent + next.exponent;
        normalise(&joined);
        s = joined;
      }
    }
    if (valid && in_group == 0) {
      const float from0 = multiply(0.999f, add(s.a, s.b)), from1 = multiply(0.001f, add(s.c, s.d));
      p.results[slot] = static_cast<float>(natural_log(static_cast<double>(add(from0, from1))) +
                                           0.6931471805599453 * s.exponent);
    }
  }
}
