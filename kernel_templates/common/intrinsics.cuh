// The machine operations of filter kernels, one function each, in three forms: inline PTX for sm_90 and later, PTX
// for all supported architectures, and plain C++ for the lockstep tests, which define HMMJIT_LOCKSTEP and provide
// warp-wide operations of their own.
//
// PTX is used where the compiler would choose a longer sequence: it splits a byte permute with sign replication
// into three logical operations and a 16-bit three-way maximum into two.
#ifndef HMMJIT_KERNEL_INTRINSICS_CUH_
#define HMMJIT_KERNEL_INTRINSICS_CUH_

#include "common/launch_params.h"

namespace hmmjit_device {

struct alignas(16) Quad {
  u32 x, y, z, w;
};
struct alignas(8) Pair {
  u32 x, y;
};

#ifdef HMMJIT_LOCKSTEP

// Always inlined: a function of the same name in a kernel with other constants would replace it.
#define HMMJIT_DEVICE inline __attribute__((always_inline))
#define HMMJIT_DYNAMIC_SHARED(name) u8* name = hmmjit_lockstep::dynamic_shared()
#define HMMJIT_UNROLL
#define HMMJIT_UNROLL_BY(times)

inline u32 shuffle(u32 value, u32 lane) { return hmmjit_lockstep::shuffle(value, lane); }
inline u32 shuffle_xor(u32 value, u32 mask) {
  return hmmjit_lockstep::shuffle(value, hmmjit_lockstep::lane() ^ mask);
}
inline u32 shuffle_up(u32 value, u32 delta) {
  const u32 lane = hmmjit_lockstep::lane();
  return hmmjit_lockstep::shuffle(value, lane < delta ? lane : lane - delta);
}
inline u32 warp_ballot(bool predicate) { return hmmjit_lockstep::ballot(predicate); }
inline void sync_warp() { hmmjit_lockstep::sync_warp(); }
inline void sync_block() { hmmjit_lockstep::sync_block(); }
inline u32 atomic_add(u32* p, u32 value) { const u32 old = *p; *p += value; return old; }
inline u32 atomic_max(u32* p, u32 value) { const u32 old = *p; if (value > old) *p = value; return old; }
inline void fence() {}

inline u32 byte_permute(u32 a, u32 b, u32 selector) {
  const u64 bytes = (static_cast<u64>(b) << 32) | a;
  u32 result = 0;
  for (int i = 0; i < 4; ++i) {
    const u32 nibble = (selector >> (4 * i)) & 15u;
    u32 byte = static_cast<u32>(bytes >> (8 * (nibble & 7u))) & 0xffu;
    if (nibble & 8u) byte = (byte & 0x80u) ? 0xffu : 0u;
    result |= byte << (8 * i);
  }
  return result;
}
inline u32 max_u32(u32 a, u32 b) { return a > b ? a : b; }
inline u32 max_u16x2(u32 a, u32 b) {
  return max_u32(a & 0xffffu, b & 0xffffu) | (max_u32(a >> 16, b >> 16) << 16);
}
inline u32 max_s16x2(u32 a, u32 b) { return max_u16x2(a ^ 0x80008000u, b ^ 0x80008000u) ^ 0x80008000u; }
inline u32 max3_u16x2(u32 a, u32 b, u32 c) { return max_u16x2(max_u16x2(a, b), c); }
inline u32 max3_s16x2(u32 a, u32 b, u32 c) { return max_s16x2(max_s16x2(a, b), c); }
inline u32 add_s16x2(u32 a, u32 b) {
  return ((a + b) & 0xffffu) | (((a >> 16) + (b >> 16)) << 16);
}
inline u32 add_max_s16x2(u32 a, u32 b, u32 c) { return max_s16x2(add_s16x2(a, b), c); }
inline u32 clear_negative_bytes(u32 t) { return t & byte_permute(t, t, 0xba98) & 0x7f7f7f7fu; }
inline u32 times256(u32 a) { return a << 8; }
inline u32 joined(u32 a, u32 b) { return a + b; }
inline u32 add_relu_half2(u32 a, u32 b) {
  return hmmjit_lockstep::add_relu_half(static_cast<u16>(a), static_cast<u16>(b)) |
         (static_cast<u32>(hmmjit_lockstep::add_relu_half(static_cast<u16>(a >> 16),
                                                          static_cast<u16>(b >> 16)))
          << 16);
}

#else  // device code

#define HMMJIT_DEVICE __device__ __forceinline__
#define HMMJIT_DYNAMIC_SHARED(name) extern __shared__ __align__(128) hmmjit_device::u8 name[]
#define HMMJIT_UNROLL _Pragma("unroll")
#define HMMJIT_PRAGMA(...) _Pragma(#__VA_ARGS__)
#define HMMJIT_UNROLL_BY(times) HMMJIT_PRAGMA(unroll (times))

HMMJIT_DEVICE u32 shuffle(u32 value, u32 lane) { return __shfl_sync(~0u, value, static_cast<int>(lane)); }
HMMJIT_DEVICE u32 shuffle_xor(u32 value, u32 mask) {
  return __shfl_xor_sync(~0u, value, static_cast<int>(mask));
}
HMMJIT_DEVICE u32 shuffle_up(u32 value, u32 delta) { return __shfl_up_sync(~0u, value, delta); }
HMMJIT_DEVICE u32 warp_ballot(bool predicate) { return __ballot_sync(~0u, predicate); }
HMMJIT_DEVICE void sync_warp() { __syncwarp(); }
HMMJIT_DEVICE void sync_block() { __syncthreads(); }
HMMJIT_DEVICE u32 atomic_add(u32* p, u32 value) { return atomicAdd(p, value); }
HMMJIT_DEVICE u32 atomic_max(u32* p, u32 value) { return atomicMax(p, value); }
HMMJIT_DEVICE void fence() { __threadfence(); }

HMMJIT_DEVICE u32 byte_permute(u32 a, u32 b, u32 selector) {
  u32 d;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(selector));
  return d;
}
HMMJIT_DEVICE u32 max_u32(u32 a, u32 b) { return a > b ? a : b; }
#if __CUDA_ARCH__ >= 900
HMMJIT_DEVICE u32 max_u16x2(u32 a, u32 b) {
  u32 d;
  asm("max.u16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
HMMJIT_DEVICE u32 max_s16x2(u32 a, u32 b) {
  u32 d;
  asm("max.s16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
HMMJIT_DEVICE u32 max3_u16x2(u32 a, u32 b, u32 c) {
  u32 d;
  asm("{.reg .b32 t; max.u16x2 t, %1, %2; max.u16x2 %0, t, %3;}" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
HMMJIT_DEVICE u32 max3_s16x2(u32 a, u32 b, u32 c) {
  u32 d;
  asm("{.reg .b32 t; max.s16x2 t, %1, %2; max.s16x2 %0, t, %3;}" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
HMMJIT_DEVICE u32 add_s16x2(u32 a, u32 b) {
  u32 d;
  asm("add.s16x2 %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
HMMJIT_DEVICE u32 add_max_s16x2(u32 a, u32 b, u32 c) {
  u32 d;
  asm("{.reg .b32 t; add.s16x2 t, %1, %2; max.s16x2 %0, t, %3;}" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
#else
// Halves in a word by ordinary operations; four to seven instructions each.
HMMJIT_DEVICE u32 max_u16x2(u32 a, u32 b) {
  return max_u32(a & 0xffffu, b & 0xffffu) | max_u32(a & 0xffff0000u, b & 0xffff0000u);
}
HMMJIT_DEVICE u32 max_s16x2(u32 a, u32 b) {
  return max_u16x2(a ^ 0x80008000u, b ^ 0x80008000u) ^ 0x80008000u;
}
HMMJIT_DEVICE u32 max3_u16x2(u32 a, u32 b, u32 c) { return max_u16x2(max_u16x2(a, b), c); }
HMMJIT_DEVICE u32 max3_s16x2(u32 a, u32 b, u32 c) { return max_s16x2(max_s16x2(a, b), c); }
HMMJIT_DEVICE u32 add_s16x2(u32 a, u32 b) {
  const u32 low = (a & 0x7fff7fffu) + (b & 0x7fff7fffu);
  return low ^ ((a ^ b) & 0x80008000u);
}
HMMJIT_DEVICE u32 add_max_s16x2(u32 a, u32 b, u32 c) { return max_s16x2(add_s16x2(a, b), c); }
#endif

/// Bytes with the top bit set lose that bit; all other bytes become 0.
HMMJIT_DEVICE u32 clear_negative_bytes(u32 t) {
  u32 mask, d;
  asm("prmt.b32 %0, %1, %1, 0xba98;" : "=r"(mask) : "r"(t));
  asm("lop3.b32 %0, %1, %2, 0x7f7f7f7f, 0x80;" : "=r"(d) : "r"(t), "r"(mask));
  return d;
}
/// On the multiply-add pipe, which the byte kernels leave idle.
HMMJIT_DEVICE u32 times256(u32 a) {
  u32 d;
  asm("mad.lo.u32 %0, %1, 256, 0;" : "=r"(d) : "r"(a));
  return d;
}
/// a + b for words with no common bit, likewise.
HMMJIT_DEVICE u32 joined(u32 a, u32 b) {
  u32 d;
  asm("mad.lo.u32 %0, %1, 1, %2;" : "=r"(d) : "r"(a), "r"(b));
  return d;
}
/// max(a + b, 0) of two halves each.
HMMJIT_DEVICE u32 add_relu_half2(u32 a, u32 b) {
  u32 d;
#if __CUDA_ARCH__ >= 800
  asm("fma.rn.relu.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(0x3c003c00u), "r"(b));
#else
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(0x3c003c00u), "r"(b));
  d &= ~byte_permute(d, d, 0xbb99);
#endif
  return d;
}

#endif  // HMMJIT_LOCKSTEP

HMMJIT_DEVICE u32 load_word(const u8* p) { return *reinterpret_cast<const u32*>(p); }
HMMJIT_DEVICE Quad load_quad(const u8* p) { return *reinterpret_cast<const Quad*>(p); }

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_INTRINSICS_CUH_
