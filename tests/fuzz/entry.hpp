// What every fuzz entry provides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

/// Feeds one input to a reader; aborts when a property is broken. libFuzzer's entry point.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

/// Starting inputs of the replay driver, and the folders of the reference data's edge cases that
/// give more.
std::vector<std::string> fuzz_seeds();
std::vector<std::string> fuzz_folders();

inline void require(bool condition) {
  if (!condition) std::abort();
}
