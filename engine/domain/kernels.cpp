// Compiles the recurrences for every instruction set, in one pass of foreach_target each, and
// chooses one at run time. No FMA: every product is rounded (the build sets -ffp-contract=off).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "domain/kernels.cpp"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "core/simd_targets.hpp"
#include "domain/envelope-inl.hpp"
#include "domain/forward_backward-inl.hpp"
#include "domain/kernels.hpp"
#include "hwy/highway.h"

// Vectors of four, eight and sixteen floats; the sets in between add nothing of use here.
#undef HMMJIT_DOMAIN_TARGET
#if HWY_TARGET == HWY_STATIC_TARGET || HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define HMMJIT_DOMAIN_TARGET 1
#else
#define HMMJIT_DOMAIN_TARGET 0
#endif

#if HMMJIT_DOMAIN_TARGET
HWY_BEFORE_NAMESPACE();
namespace hmmjit::domain::HWY_NAMESPACE {

namespace {

inline std::int32_t smaller(std::int32_t a, std::int32_t b) { return a < b ? a : b; }
inline std::int32_t larger(std::int32_t a, std::int32_t b) { return a > b ? a : b; }

// Two segments are linked if they overlap by four fifths of the shorter one on both target and
// model (the overlap is counted one short, as in HMMER) and lie on about the same diagonal
// at one end.
bool link_segments(const SegmentArrays& s, std::size_t count, std::int32_t i, std::int32_t j,
                   std::int32_t k, std::int32_t m, std::uint8_t* __restrict linked) {
  const std::int32_t* const __restrict si = s.i;
  const std::int32_t* const __restrict sj = s.j;
  const std::int32_t* const __restrict sk = s.k;
  const std::int32_t* const __restrict sm = s.m;
  int any = 0;
  for (std::size_t p = 0; p < count; ++p) {
    const std::int32_t residues = smaller(sj[p], j) - larger(si[p], i) + 1;
    const std::int32_t shorter = smaller(sj[p] - si[p], j - i) + 1;
    const std::int32_t nodes = smaller(sm[p], m) - larger(sk[p], k);
    const std::int32_t fewer = smaller(sm[p] - sk[p], m - k) + 1;
    // Tests |shift| <= 4 with one unsigned comparison.
    const auto first = static_cast<std::uint32_t>((si[p] - sk[p]) - (i - k) + 4);
    const auto last = static_cast<std::uint32_t>((sj[p] - sm[p]) - (j - m) + 4);
    const int close = (first <= 8u) | (last <= 8u);
    const bool same = static_cast<float>(residues) / static_cast<float>(shorter) >= 0.8f;
    const bool same_nodes = static_cast<float>(nodes) / static_cast<float>(fewer) >= 0.8f;
    const int link = same & same_nodes & close;
    linked[p] = static_cast<std::uint8_t>(link);
    any |= link;
  }
  return any != 0;
}

template <class V>
constexpr Kernels make_kernels(const char* name) {
  Kernels k{name,          V::kGroups,   V::kMaskBytes,         {},
            &forward<V>,   &backward<V>, &envelope_backward<V>, &decode<V>,
            &link_segments};
  for (int g = 0; g < V::kGroups; ++g) k.first_bit[g] = V::mask_bit(g);
  return k;
}
}  // namespace

// Narrowest first.
std::span<const Kernels> KernelsOfTarget() {
  static const char* const name = hwy::TargetName(HWY_TARGET);
  static const Kernels kernels[] = {
    make_kernels<Groups<1>>(name),
#if HWY_MAX_BYTES <= 16
    make_kernels<Pair<Groups<1>>>(name),
#else
    make_kernels<Groups<2>>(name),
#if HWY_MAX_BYTES == 32
    make_kernels<Pair<Groups<2>>>(name),
#else
    make_kernels<Groups<4>>(name),
    make_kernels<Pair<Groups<4>>>(name),
#endif
#endif
  };
  return kernels;
}

}  // namespace hmmjit::domain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace hmmjit::domain {

std::vector<std::span<const Kernels>> kernel_sets() {
  std::vector<std::span<const Kernels>> sets;
  [[maybe_unused]] const std::int64_t supported = supported_simd_targets();
#if (HWY_TARGETS & HWY_AVX3) && HWY_STATIC_TARGET != HWY_AVX3
  if (supported & HWY_AVX3) sets.push_back(N_AVX3::KernelsOfTarget());
#endif
#if (HWY_TARGETS & HWY_AVX2) && HWY_STATIC_TARGET != HWY_AVX2
  if (supported & HWY_AVX2) sets.push_back(N_AVX2::KernelsOfTarget());
#endif
  sets.push_back(HWY_STATIC_DISPATCH(KernelsOfTarget)());
  return sets;
}

namespace {
std::span<const Kernels> best_set() {
  static const std::span<const Kernels> best = kernel_sets().front();
  return best;
}
}  // namespace

const Kernels& kernels(int groups) {
  const Kernels* chosen = &best_set().front();
  for (const Kernels& k : best_set()) {
    if (k.groups <= groups) chosen = &k;
  }
  return *chosen;
}

const Kernels& deal(const EmissionRows& emission, std::span<Job> jobs, Lanes& lanes, int widest) {
  const Kernels* best = nullptr;
  double least = 0;
  for (const Kernels& k : best_set()) {
    if (k.groups > widest && best != nullptr) break;
    // Measured: a row of G groups takes about as long as 5 + 3 G.
    const double cost = Lanes::rows_for(jobs, k.groups) * (5.0 + 3.0 * k.groups);
    if (best != nullptr && cost >= least) continue;
    best = &k;
    least = cost;
  }
  lanes.deal(emission, jobs, best->groups);
  return *best;
}

void run_forward(const ForwardTables::Tables& tables, const EmissionRows& emission,
                 std::span<Job> jobs, const LengthModel& odds, Lanes& lanes,
                 AlignedArray<float>& cells) {
  const Kernels& kernel = deal(emission, jobs, lanes);
  kernel.forward(tables, lanes, 0, lanes.rows - 1, odds.ec, odds.ej,
                 cells.ensure(kernel.scratch(tables.Q)), 0);
}

}  // namespace hmmjit::domain
#endif
