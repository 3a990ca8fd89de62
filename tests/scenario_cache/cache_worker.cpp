// One search process in the view of the cache: requests kernels and checks every byte of them.
// cache_worker LOG MILLISECONDS KILL_STEP FIRST_KEY KEYS ROUNDS [TARGET]; settings from
// HMMJIT_CACHE_*. Exit status 0: every kernel was right; prints warnings to stderr.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include "cache/kernel_cache.hpp"
#include "pretend_compiler.hpp"

int main(int argc, char** argv) {
  using namespace hmmjit::cache;
  if (argc != 7 && argc != 8) return 64;
  const std::string log = argv[1];
  const std::chrono::milliseconds duration(std::atoi(argv[2]));
  const int kill_step = std::atoi(argv[3]);
  const int first = std::atoi(argv[4]);
  const int keys = std::atoi(argv[5]);
  const int rounds = std::atoi(argv[6]);
  const std::string target = argc == 8 ? argv[7] : "sm_90";

  auto settings = settings_from_environment();
  if (!settings) {
    std::fprintf(stderr, "%s\n", settings.error().to_string().c_str());
    return static_cast<int>(settings.error().code);
  }
  settings->on_warning = [](const hmmjit::Error& error) {
    std::fprintf(stderr, "warning: %s\n", error.to_string().c_str());
  };
  settings->before_publish_step = [kill_step](PublishStep step) {
    if (static_cast<int>(step) == kill_step) ::kill(::getpid(), SIGKILL);
    return 0;
  };
  // No memory layer with several rounds: every round must read the disk.
  if (rounds > 1) settings->max_memory_bytes = 0;
  const auto cache = KernelCache::open(*settings);
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < keys; ++i) {
      const CacheKey key = pretend_key("length " + std::to_string((first + i) % 1000), target);
      const auto got = cache->obtain(key, [&] { return pretend_compile(key, log, duration); });
      if (!got) {
        std::fprintf(stderr, "error: %s\n", got.error().to_string().c_str());
        return static_cast<int>(got.error().code);
      }
      if (got->entry->payload != pretend_payload(key)) return 99;
    }
  }
  return 0;
}
