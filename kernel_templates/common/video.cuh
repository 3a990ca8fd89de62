// Four bytes or two halves per word with the SIMD video operations used by CUDAMPF and its successors: single
// instructions on Kepler, short sequences on later devices.
#ifndef HMMJIT_KERNEL_VIDEO_CUH_
#define HMMJIT_KERNEL_VIDEO_CUH_

#include "common/intrinsics.cuh"

namespace hmmjit_device {

#ifdef HMMJIT_LOCKSTEP

HMMJIT_DEVICE int signed_byte(u32 word, int b) {
  return static_cast<int>((word >> (8 * b)) & 0xffu) - static_cast<int>((word >> (8 * b + 7)) & 1u) * 256;
}
/// Signed sum of each byte, limited to -128..127.
HMMJIT_DEVICE u32 add_saturate_s8x4(u32 a, u32 b) {
  u32 out = 0;
  for (int i = 0; i < 4; ++i) {
    int sum = signed_byte(a, i) + signed_byte(b, i);
    sum = sum > 127 ? 127 : sum < -128 ? -128 : sum;
    out |= (static_cast<u32>(sum) & 0xffu) << (8 * i);
  }
  return out;
}
/// Signed maximum of each byte.
HMMJIT_DEVICE u32 max_s8x4(u32 a, u32 b) {
  u32 out = 0;
  for (int i = 0; i < 4; ++i) {
    const int x = signed_byte(a, i), y = signed_byte(b, i);
    out |= (static_cast<u32>(x > y ? x : y) & 0xffu) << (8 * i);
  }
  return out;
}

/// Unsigned per byte: sum limited to 255; difference limited to 0; maximum.
HMMJIT_DEVICE u32 add_saturate_u8x4(u32 a, u32 b) {
  u32 out = 0;
  for (int i = 0; i < 32; i += 8) {
    const u32 sum = ((a >> i) & 0xffu) + ((b >> i) & 0xffu);
    out |= (sum > 255 ? 255 : sum) << i;
  }
  return out;
}
HMMJIT_DEVICE u32 subtract_saturate_u8x4(u32 a, u32 b) {
  u32 out = 0;
  for (int i = 0; i < 32; i += 8) {
    const u32 x = (a >> i) & 0xffu, y = (b >> i) & 0xffu;
    out |= (x > y ? x - y : 0) << i;
  }
  return out;
}
HMMJIT_DEVICE u32 max_u8x4(u32 a, u32 b) {
  u32 out = 0;
  for (int i = 0; i < 32; i += 8) {
    const u32 x = (a >> i) & 0xffu, y = (b >> i) & 0xffu;
    out |= (x > y ? x : y) << i;
  }
  return out;
}

/// Signed sum of each half, limited to -32768..32767.
HMMJIT_DEVICE u32 add_saturate_s16x2(u32 a, u32 b) {
  u32 out = 0;
  for (int i = 0; i < 32; i += 16) {
    int sum = static_cast<s16>((a >> i) & 0xffffu) + static_cast<s16>((b >> i) & 0xffffu);
    sum = sum > 32767 ? 32767 : sum < -32768 ? -32768 : sum;
    out |= (static_cast<u32>(sum) & 0xffffu) << i;
  }
  return out;
}

#else

HMMJIT_DEVICE u32 add_saturate_s16x2(u32 a, u32 b) { return __vaddss2(a, b); }
HMMJIT_DEVICE u32 add_saturate_u8x4(u32 a, u32 b) { return __vaddus4(a, b); }
HMMJIT_DEVICE u32 subtract_saturate_u8x4(u32 a, u32 b) { return __vsubus4(a, b); }
HMMJIT_DEVICE u32 max_u8x4(u32 a, u32 b) { return __vmaxu4(a, b); }
HMMJIT_DEVICE u32 add_saturate_s8x4(u32 a, u32 b) { return __vaddss4(a, b); }
HMMJIT_DEVICE u32 max_s8x4(u32 a, u32 b) { return __vmaxs4(a, b); }

#endif

/// The largest of four unsigned bytes.
HMMJIT_DEVICE u32 largest_byte(u32 word) {
  return max_u32(max_u32(word & 0xffu, (word >> 8) & 0xffu),
                 max_u32((word >> 16) & 0xffu, word >> 24));
}

/// Four MSV cells from their diagonal predecessors, with saturating byte arithmetic.
HMMJIT_DEVICE u32 msv_step_u8x4(u32 diagonal, u32 begin, u32 bias, u32 cost) {
  return subtract_saturate_u8x4(add_saturate_u8x4(max_u8x4(diagonal, begin), bias), cost);
}

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_VIDEO_CUH_
