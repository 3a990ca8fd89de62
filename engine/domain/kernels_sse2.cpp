#include <immintrin.h>

#define HMMJIT_DOMAIN_ISA sse2
#define HMMJIT_DOMAIN_GROUPS 1
#include "domain/kernels-inl.hpp"
#include "domain/kernels_isa.hpp"

namespace hmmjit::domain {
const Kernels kKernelsSse2[2] = {sse2::make_kernels<sse2::V1>("SSE2"),
                                 sse2::make_kernels<sse2::Pair<sse2::V1>>("SSE2")};
}  // namespace hmmjit::domain
