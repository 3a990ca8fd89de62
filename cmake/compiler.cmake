# What Clang before 19 has with GCC's library, and GCC before 12, is said here rather than in a thousand errors.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("#include <expected>
int main() { return std::expected<int, int>(0).value(); }" HMMJIT_HAVE_EXPECTED)
if(NOT HMMJIT_HAVE_EXPECTED)
  message(FATAL_ERROR "${CMAKE_CXX_COMPILER} (${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}) has no std::expected "
                      "of C++23. Use GCC 12 or Clang 19, or a later one: -DCMAKE_CXX_COMPILER=g++-12")
endif()

# One interface target carries the flags every hmmjit library is compiled with.
add_library(hmmjit_flags INTERFACE)
target_include_directories(hmmjit_flags INTERFACE ${PROJECT_SOURCE_DIR}/engine ${PROJECT_SOURCE_DIR})
target_compile_options(hmmjit_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
  # HMMER's results depend on every float operation being rounded on its own:
  # never contract a*b+c to a fused multiply-add, never reassociate.
  -ffp-contract=off -fno-fast-math
  # Clang sees into GCC's headers: std::stable_sort there uses what C++17 calls deprecated.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  # See engine/core/mutex.hpp.
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
if(HMMJIT_DEVELOPER_MODE)
  target_compile_options(hmmjit_flags INTERFACE -Werror)
endif()
if(HMMJIT_SANITIZE)
  # -O1 and line tables only: fast enough to run real searches, and compiled in reasonable time.
  set(hmmjit_sanitizer_flags -O1 -g1 -fno-omit-frame-pointer)
  if(HMMJIT_SANITIZE STREQUAL "thread")
    list(APPEND hmmjit_sanitizer_flags -fsanitize=thread)
  elseif(HMMJIT_SANITIZE STREQUAL "undefined")
    list(APPEND hmmjit_sanitizer_flags -fsanitize=undefined -fno-sanitize-recover=undefined)
  else()
    list(APPEND hmmjit_sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=undefined)
  endif()
  target_compile_options(hmmjit_flags INTERFACE ${hmmjit_sanitizer_flags}
    # In instrumented code GCC 12 takes members of std::optional and of std::regex's states for uninitialised.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  target_link_options(hmmjit_flags INTERFACE ${hmmjit_sanitizer_flags})
endif()
if(HMMJIT_LIBFUZZER)  # tests/fuzz: edges of the engine are counted, not those of the fuzz targets alone
  target_compile_options(hmmjit_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Without these two relaxations, which its manual asks for, ccache never serves what uses a
# precompiled header. It writes paths below the base folder relative to the build's, so that other builds of
# this tree (the wheel's, for one) and other copies of it, whose build folders lie as deep, share objects.
find_program(HMMJIT_CCACHE ccache)
if(HMMJIT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} ${HMMJIT_CCACHE})
endif()

# hmmjit_library(<name> SOURCES ... LINKS ...): a static library with the common flags.
function(hmmjit_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  if(arg_SOURCES)
    add_library(${name} STATIC ${arg_SOURCES})
    target_link_libraries(${name} PUBLIC hmmjit_flags ${arg_LINKS} PRIVATE ${arg_PRIVATE_LINKS})
    # What libhmmjit consists of: the engine without its benchmarks, and the cache.
    cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
    if(folder MATCHES "^(engine/|cache$)" AND NOT folder STREQUAL "engine/bench")
      set_property(GLOBAL APPEND PROPERTY HMMJIT_FOLDER_LIBRARIES ${name})
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE hmmjit_flags ${arg_LINKS})
  endif()
endfunction()
