// A temporary folder for each test, and keys and entries.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <string>

#include "cache/cache_key.hpp"
#include "cache/entry_format.hpp"
#include "cache/entry_store.hpp"
#include "tests/support/folder.hpp"

namespace hmmjit::cache {

class CacheFolderTest : public ::testing::Test {
 protected:
  test_support::TemporaryFolder folder_;
  std::string base_ = folder_.path(), root_ = base_ + "/kernels";
};

/// A key like the compiler's; each argument is a component.
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

/// `size` incompressible bytes that depend on `seed`.
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

using test_support::read_file;

inline void set_age(const std::string& path, std::int64_t seconds) {
  timespec times[2];
  times[0].tv_sec = times[1].tv_sec = std::time(nullptr) - seconds;
  times[0].tv_nsec = times[1].tv_nsec = 0;
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

inline void write_file(const std::string& path, const std::string& bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  // Independent of the umask: entries writable by the group are refused.
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
}

inline EntryStore open_store(const std::string& root, StoreOptions options = {}) {
  auto store = EntryStore::open(root, std::move(options));
  if (!store) ADD_FAILURE() << store.error().to_string();
  return std::move(store).value();
}

}  // namespace hmmjit::cache
