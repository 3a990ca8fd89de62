// ssv/example.cu, rendered by hmmjit
#line 1 "/kernel_templates/ssv/example.cu"
// A small kernel that uses every feature of the renderer.



#line 1 "/kernel_templates/common/once.cuh"

__device__ int twice(long long x) { return static_cast<int>(2 * x); }
#line 6 "/kernel_templates/ssv/example.cu"
#line 1 "/kernel_templates/plan_constants.h"
namespace plan_constants {
enum : int { kH = 13 };
enum : long long { kBig = 5000000000 };
}  // namespace plan_constants
#line 7 "/kernel_templates/ssv/example.cu"


extern "C" __global__ void example(int* out) {
  constexpr int kWords = plan_constants::kH;
  for (int i = 0; i < kWords; ++i) out[i] = twice(plan_constants::kBig % 7 + i);
}
