# Clang before 19 with GCC's library, and GCC before 12, would fail with a thousand errors.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("#include <expected>
int main() { return std::expected<int, int>(0).value(); }" HMMJIT_HAVE_EXPECTED)
if(NOT HMMJIT_HAVE_EXPECTED)
  message(FATAL_ERROR "${CMAKE_CXX_COMPILER} (${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}) has no std::expected "
                      "of C++23. Use GCC 12 or Clang 19, or a later one: -DCMAKE_CXX_COMPILER=g++-12")
endif()

# The compiler flags of all hmmjit libraries.
add_library(hmmjit_flags INTERFACE)
target_include_directories(hmmjit_flags INTERFACE ${PROJECT_SOURCE_DIR}/engine ${PROJECT_SOURCE_DIR})
target_compile_options(hmmjit_flags INTERFACE
  # Clang says that an alias shadows the same one of another file, which HMMJIT_UNITY_BUILD compiles together with it.
  -Wall -Wextra -Wpedantic $<$<CXX_COMPILER_ID:GNU>:-Wshadow> -Wconversion -Wno-sign-conversion
  # HMMER's results depend on the rounding of every float operation: never contract a*b+c to a fused multiply-add, never
  # reassociate.
  -ffp-contract=off -fno-fast-math
  # Clang warns of GCC's headers: std::stable_sort uses features that C++17 deprecates.
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  # False alarms of GCC 12: with -O1, for std::optional and std::regex; in sources that HMMJIT_UNITY_BUILD compiles together.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>
  $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>
  # GCC 13 and later: for functions that return a reference to what an argument refers to.
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>
  # GCC collects garbage from 512 MiB on, not from some 100: 10 to 20 % less time, at most 920 MB a file.
  "$<$<CXX_COMPILER_ID:GNU>:SHELL:--param ggc-min-heapsize=524288>"
  # See engine/core/mutex.hpp.
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
if(HMMJIT_DEVELOPER_MODE)
  target_compile_options(hmmjit_flags INTERFACE -Werror)
endif()
if(HMMJIT_SANITIZE)
  # -O1 and line tables only: fast enough for real searches, and compiled in reasonable time.
  set(hmmjit_sanitizer_flags -O1 -g1 -fno-omit-frame-pointer)
  if(HMMJIT_SANITIZE STREQUAL "thread")
    list(APPEND hmmjit_sanitizer_flags -fsanitize=thread)
  elseif(HMMJIT_SANITIZE STREQUAL "undefined")
    list(APPEND hmmjit_sanitizer_flags -fsanitize=undefined -fno-sanitize-recover=undefined)
  elseif(HMMJIT_SANITIZE STREQUAL "ON")
    list(APPEND hmmjit_sanitizer_flags -fsanitize=address,undefined -fno-sanitize-recover=undefined)
  else()
    message(FATAL_ERROR "HMMJIT_SANITIZE is ${HMMJIT_SANITIZE}, but must be OFF, ON, undefined or thread")
  endif()
  target_compile_options(hmmjit_flags INTERFACE ${hmmjit_sanitizer_flags})
  target_link_options(hmmjit_flags INTERFACE ${hmmjit_sanitizer_flags})
endif()
if(HMMJIT_LIBFUZZER)  # tests/fuzz: counts edges of the whole engine, not only of the fuzz targets
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    message(FATAL_ERROR "HMMJIT_LIBFUZZER needs Clang: -DCMAKE_CXX_COMPILER=clang++-19")
  endif()
  target_compile_options(hmmjit_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# ccache's manual requires these two relaxations for precompiled headers. With a base folder, other builds and copies of
# this tree share objects if their build folders have the same depth.
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
    # libhmmjit consists of the engine without its benchmarks, and the cache.
    cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE folder)
    if(folder MATCHES "^(engine/|cache$)" AND NOT folder STREQUAL "engine/bench")
      set_property(GLOBAL APPEND PROPERTY HMMJIT_FOLDER_LIBRARIES ${name})
    endif()
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE hmmjit_flags ${arg_LINKS})
  endif()
endfunction()
