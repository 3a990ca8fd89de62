// Which sampled segments are linked, for any instruction set. Included once per Highway target.
#if defined(HMMJIT_DOMAIN_CLUSTERING_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef HMMJIT_DOMAIN_CLUSTERING_INL_HPP
#undef HMMJIT_DOMAIN_CLUSTERING_INL_HPP
#else
#define HMMJIT_DOMAIN_CLUSTERING_INL_HPP
#endif

#include "domain/kernels.hpp"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace hmmjit::domain::HWY_NAMESPACE {
namespace {

inline std::int32_t smaller(std::int32_t a, std::int32_t b) { return a < b ? a : b; }
inline std::int32_t larger(std::int32_t a, std::int32_t b) { return a > b ? a : b; }

// Two segments are linked when they overlap by four fifths of the shorter one on the target and on
// the model, where the overlap is counted one short as in the reference, and lie on about the same
// diagonal at one end.
void link_segments(const SegmentArrays& s, std::size_t count, std::int32_t i, std::int32_t j,
                   std::int32_t k, std::int32_t m, std::uint8_t* __restrict linked) {
  const std::int32_t* const __restrict si = s.i;
  const std::int32_t* const __restrict sj = s.j;
  const std::int32_t* const __restrict sk = s.k;
  const std::int32_t* const __restrict sm = s.m;
  for (std::size_t p = 0; p < count; ++p) {
    const std::int32_t residues = smaller(sj[p], j) - larger(si[p], i) + 1;
    const std::int32_t shorter = smaller(sj[p] - si[p], j - i) + 1;
    const std::int32_t nodes = smaller(sm[p], m) - larger(sk[p], k);
    const std::int32_t fewer = smaller(sm[p] - sk[p], m - k) + 1;
    // |shift| <= 4 as one unsigned comparison.
    const auto first = static_cast<std::uint32_t>((si[p] - sk[p]) - (i - k) + 4);
    const auto last = static_cast<std::uint32_t>((sj[p] - sm[p]) - (j - m) + 4);
    const int close = (first <= 8u) | (last <= 8u);
    const bool same = static_cast<float>(residues) / static_cast<float>(shorter) >= 0.8f;
    const bool same_nodes = static_cast<float>(nodes) / static_cast<float>(fewer) >= 0.8f;
    linked[p] = static_cast<std::uint8_t>(same & same_nodes & close);
  }
}

}  // namespace
}  // namespace hmmjit::domain::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
