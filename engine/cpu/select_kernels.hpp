// The last step of run-time dispatch: maps a Highway target bit to the functions compiled for it.
// Include after the passes of foreach_target, within namespace hmmjit::cpu.
#pragma once

#include "hwy/highway.h"

#if HWY_TARGETS & HWY_AVX3
#define HMMJIT_SELECT_AVX3(target, of_target) \
  if ((target) == HWY_AVX3) return &N_AVX3::of_target();
#else
#define HMMJIT_SELECT_AVX3(target, of_target)
#endif
#if HWY_TARGETS & HWY_AVX2
#define HMMJIT_SELECT_AVX2(target, of_target) \
  if ((target) == HWY_AVX2) return &N_AVX2::of_target();
#else
#define HMMJIT_SELECT_AVX2(target, of_target)
#endif
#if HWY_TARGETS & HWY_SSE4
#define HMMJIT_SELECT_SSE4(target, of_target) \
  if ((target) == HWY_SSE4) return &N_SSE4::of_target();
#else
#define HMMJIT_SELECT_SSE4(target, of_target)
#endif

#if HWY_TARGETS & HWY_NEON
#define HMMJIT_SELECT_NEON(target, of_target) \
  if ((target) == HWY_NEON) return &N_NEON::of_target();
#else
#define HMMJIT_SELECT_NEON(target, of_target)
#endif

/// Body of a function that returns the result of `of_target`, as compiled for the instruction set
/// `target`; null: not built.
#define HMMJIT_SELECT_KERNELS(target, of_target) \
  HMMJIT_SELECT_AVX3(target, of_target)          \
  HMMJIT_SELECT_AVX2(target, of_target)          \
  HMMJIT_SELECT_SSE4(target, of_target)          \
  HMMJIT_SELECT_NEON(target, of_target)          \
  static_cast<void>(target);                     \
  return nullptr;
