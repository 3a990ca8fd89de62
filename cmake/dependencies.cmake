find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
# Headers alone: see engine/core/simd_targets.hpp.
pkg_check_modules(HWY REQUIRED libhwy)
add_library(hmmjit_highway INTERFACE)
target_include_directories(hmmjit_highway SYSTEM INTERFACE ${HWY_INCLUDE_DIRS})
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)

# Only headers are needed: the driver and NVRTC are opened at run time, so that one
# binary starts with and without a GPU.
set(HMMJIT_HAVE_CUDA_HEADERS OFF)
if(HMMJIT_WITH_CUDA)
  find_path(HMMJIT_CUDA_INCLUDE_DIR NAMES nvrtc.h
            HINTS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include
            PATHS /usr/local/cuda/include /opt/cuda/include)
  find_path(HMMJIT_CUDA_DRIVER_INCLUDE_DIR NAMES cuda.h
            HINTS ${HMMJIT_CUDA_INCLUDE_DIR} $ENV{CUDA_HOME}/include
            PATHS /usr/local/cuda/include /opt/cuda/include)
  if(HMMJIT_CUDA_INCLUDE_DIR AND HMMJIT_CUDA_DRIVER_INCLUDE_DIR)
    set(HMMJIT_HAVE_CUDA_HEADERS ON)
    message(STATUS "CUDA headers: ${HMMJIT_CUDA_INCLUDE_DIR}")
  else()
    message(STATUS "CUDA headers not found: CPU-only build; plan and render still work, compile and launch do not")
  endif()
endif()
