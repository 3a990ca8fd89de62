// The last step of run-time dispatch, as the body of a function of `target`, one of Highway's bits:
// returns the result of HMMJIT_OF_TARGET as compiled for that instruction set; null: not built.
#if HWY_TARGETS & HWY_AVX3
if (target == HWY_AVX3) return &N_AVX3::HMMJIT_OF_TARGET();
#endif
#if HWY_TARGETS & HWY_AVX2
if (target == HWY_AVX2) return &N_AVX2::HMMJIT_OF_TARGET();
#endif
#if HWY_TARGETS & HWY_SSE4
if (target == HWY_SSE4) return &N_SSE4::HMMJIT_OF_TARGET();
#endif
#if HWY_TARGETS & HWY_NEON
if (target == HWY_NEON) return &N_NEON::HMMJIT_OF_TARGET();
#endif
static_cast<void>(target);
return nullptr;
#undef HMMJIT_OF_TARGET
