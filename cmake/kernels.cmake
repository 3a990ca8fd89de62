# Precompiled kernels: the target `kernels` compiles them into a folder of the build; it needs NVRTC, but no GPU.
# `cmake --install` installs the folder where the program and the library look before the user's own cache
# (docs/cache-format.md, "Folder"), and cpack packages it.
# Those of an architecture serve all its devices.
set(HMMJIT_KERNEL_TARGETS "sm_75,sm_80,sm_86,sm_89,sm_90,sm_100,sm_120" CACHE STRING
    "Devices or architectures (H200, sm_90, ...) that the target `kernels` compiles for, with commas")
set(HMMJIT_KERNEL_LENGTHS 2048 CACHE STRING
    "The target `kernels` compiles for every size class of models up to this length")
set(kernel_folder ${PROJECT_BINARY_DIR}/kernels)
add_custom_target(kernels
  COMMAND ${CMAKE_COMMAND} -E env HMMJIT_CACHE_SYSTEM_DIR= HMMJIT_CACHE_MODE=rw HMMJIT_CACHE_MAX_SIZE=8G
          HMMJIT_TUNED=off $<TARGET_FILE:hmmjit> cache --cache-dir ${kernel_folder} warm
          --target ${HMMJIT_KERNEL_TARGETS} --up-to ${HMMJIT_KERNEL_LENGTHS}
  COMMENT "Compiling kernels for ${HMMJIT_KERNEL_TARGETS}, models of up to ${HMMJIT_KERNEL_LENGTHS} positions"
  USES_TERMINAL VERBATIM)
