#include <immintrin.h>

#define HMMJIT_DOMAIN_ISA avx2
#define HMMJIT_DOMAIN_GROUPS 2
#include "domain/kernels-inl.hpp"
#include "domain/kernels_isa.hpp"

namespace hmmjit::domain {
const Kernels kKernelsAvx2[3] = {avx2::make_kernels<avx2::V1>("AVX2"),
                                 avx2::make_kernels<avx2::V2>("AVX2"),
                                 avx2::make_kernels<avx2::Pair<avx2::V2>>("AVX2")};
}  // namespace hmmjit::domain
