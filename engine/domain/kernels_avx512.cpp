#include <immintrin.h>

#define HMMJIT_DOMAIN_ISA avx512
#define HMMJIT_DOMAIN_GROUPS 4
#include "domain/kernels-inl.hpp"
#include "domain/kernels_isa.hpp"

namespace hmmjit::domain {
const Kernels kKernelsAvx512[4] = {avx512::make_kernels<avx512::V1>("AVX512"),
                                   avx512::make_kernels<avx512::V2>("AVX512"),
                                   avx512::make_kernels<avx512::V4>("AVX512"),
                                   avx512::make_kernels<avx512::Pair<avx512::V4>>("AVX512")};
}  // namespace hmmjit::domain
