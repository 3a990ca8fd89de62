// A compiler that only sleeps, writes one line to a log and derives its output from the key: counts
// compiles and reveals a wrong kernel.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>

#include "cache/cache_key.hpp"
#include "cache/entry_format.hpp"

namespace hmmjit::cache {

inline CacheKey pretend_key(const std::string& source, const std::string& target = "sm_90") {
  CacheKey key;
  key.add("launch_abi", "1")
      .add("source", source)
      .add("options", "-lineinfo")
      .add("target", target);
  return key;
}

/// About 8 KB derived from the key.
inline std::string pretend_payload(const CacheKey& key) {
  std::string payload;
  for (int i = 0; i < 256; ++i) payload += digest_of(key.digest().hex() + std::to_string(i)).hex();
  return payload;
}

inline Result<Entry> pretend_compile(const CacheKey& key, const std::string& log,
                                     std::chrono::milliseconds duration) {
  const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  const std::string line = key.digest().hex() + "\n";
  if (file < 0 || ::write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return fail(ErrorCode::kInternal, "the test's log cannot be written", log);
  }
  ::close(file);
  std::this_thread::sleep_for(duration);
  Entry entry;
  entry.attributes["registers"] = "64";
  entry.attachments["plan"] = "{\"variant\":\"pretend\"}";
  entry.payload = pretend_payload(key);
  return entry;
}

}  // namespace hmmjit::cache
