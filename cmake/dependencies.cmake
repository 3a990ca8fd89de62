find_package(Threads REQUIRED)
# The C library stays shared: the GPU driver and NVRTC are opened at run time and need the machine's.
if(HMMJIT_PORTABLE)
  set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
  # libgcc_s stays shared too: every Linux has it, and the static one needs glibc 2.35. Unused parts of libstdc++ are
  # dropped, because std::random_device needs glibc 2.36.
  add_link_options(-static-libstdc++ -Wl,--gc-sections)
endif()
if(HMMJIT_PORTABLE)  # Debian has no static library of fmt; use its headers alone.
  find_path(HMMJIT_FMT_INCLUDE_DIR fmt/format-inl.h REQUIRED)
  add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
  target_include_directories(fmt::fmt INTERFACE ${HMMJIT_FMT_INCLUDE_DIR})
else()
  find_package(fmt REQUIRED)
endif()
find_package(ZLIB REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd)
# Headers only: see engine/core/simd_targets.hpp.
pkg_check_modules(HWY REQUIRED libhwy)
add_library(hmmjit_highway INTERFACE)
target_include_directories(hmmjit_highway SYSTEM INTERFACE ${HWY_INCLUDE_DIRS})
if(HMMJIT_SANITIZE)  # Under a sanitizer the headers check their arguments, and failed checks call the library.
  target_link_libraries(hmmjit_highway INTERFACE ${HWY_LINK_LIBRARIES})
else()  # Without optimization they would check them as well.
  target_compile_definitions(hmmjit_highway INTERFACE HWY_IS_DEBUG_BUILD=0)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  # SVE vectors have no size at compile time, which tables and four-lane groups of floats need. Every processor has NEON,
  # whose 128 bits match the reference's order of floats.
  target_compile_definitions(hmmjit_highway INTERFACE
    "HWY_DISABLED_TARGETS=(HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")
  # Highway's NEON target includes AES. hmmjit uses no AES and runs on processors without it, but all functions must have
  # the same target as Highway's.
  target_compile_options(hmmjit_highway INTERFACE -march=armv8-a+crypto)
endif()
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
# Headers alone, for hmmjit serve, which says so where they are absent.
find_path(HMMJIT_BOOST_INCLUDE_DIR boost/beast/http/parser.hpp)
if(NOT HMMJIT_BOOST_INCLUDE_DIR)
  message(STATUS "Boost's headers are absent (Debian: libboost-dev): hmmjit serve is not built")
endif()

# Headers only: the driver and NVRTC are opened at run time, so one binary runs with and without a GPU.
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
