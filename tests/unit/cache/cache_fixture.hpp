// A folder of its own for each test, and keys and entries to put in it.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "cache/cache_key.hpp"
#include "cache/entry_format.hpp"
#include "cache/entry_store.hpp"

namespace hmmjit::cache {

class CacheFolderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "hmmjit-cache-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    base_ = pattern;
    root_ = base_ + "/kernels";
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(base_, ignored);
  }

  std::string base_, root_;
};

/// A key as the compiler layer builds it; every argument is one component.
inline CacheKey make_key(const std::string& source = "__global__ void kernel() {}\n",
                         const std::string& target = "sm_90",
                         const std::string& options = "-lineinfo -std=c++17") {
  CacheKey key;
  key.add("launch_abi", "1")
      .add("source", source)
      .add("options", options)
      .add("target", target)
      .add("output", "cubin")
      .add("compiler", "13.0.88")
      .add("names", "kernel");
  return key;
}

/// `size` bytes that do not compress and depend on `seed`.
inline std::string noise(std::size_t size, std::uint64_t seed) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(seed >> 56);
  }
  return bytes;
}

inline Entry make_entry(std::size_t payload = 3000, std::uint64_t seed = 1) {
  Entry entry;
  entry.attributes = {{"registers", "64"}, {"spill_bytes", "0"}, {"shared_bytes", "1024"}};
  entry.log = "ptxas info: used 64 registers\n";
  entry.attachments = {{"plan", std::string(2000, 'p')}, {"ptx", ".version 8.0\n"}};
  entry.payload = noise(payload, seed);
  return entry;
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void set_age(const std::string& path, std::int64_t seconds) {
  timespec times[2];
  times[0].tv_sec = times[1].tv_sec = std::time(nullptr) - seconds;
  times[0].tv_nsec = times[1].tv_nsec = 0;
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  // Whatever the umask of the test run: entries writable by the group are refused.
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
}

inline EntryStore open_store(const std::string& root, StoreOptions options = {}) {
  auto store = EntryStore::open(root, std::move(options));
  if (!store) ADD_FAILURE() << store.error().to_string();
  return std::move(store).value();
}

}  // namespace hmmjit::cache
