// The interface of a fuzz entry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

/// Feeds one input to a reader; aborts if a property is violated. libFuzzer's entry point.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Seeds of the replay driver, and the folders of edge cases in the reference data that contain
/// more.
std::vector<std::string> fuzz_seeds();
std::vector<std::string> fuzz_folders();

inline void require(bool condition) {
  if (!condition) std::abort();
}
