#include <cstdio>
#include <hmmjit/hmmjit.hpp>

// usage: consumer MODELS TARGETS
int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  hmmjit::SearchOptions options;
  options.device = HMMJIT_DEVICE_CPU;
  const auto results = hmmjit::search(hmmjit::Models::load(argv[1]), hmmjit::Targets::load(argv[2]), options);
  std::size_t hits = 0;
  for (const auto& model : results.models) hits += model.info().reported;
  // The kernel templates came along with the library.
  const hmmjit::Engine engine{[] {
    hmmjit::EngineSettings settings;
    hmmjit::CacheSettings cache;
    cache.mode = hmmjit::CacheMode::kOff;
    settings.cache = hmmjit::Cache(cache);
    return settings;
  }()};
  const auto plan = engine.plan_stage(hmmjit::Stage::kSsv, 100, hmmjit::find_device("H200"));
  std::printf("%s %zu hits, %zu bytes of kernel\n", hmmjit::version().text, hits,
              engine.render(plan).text.size());
  try {
    hmmjit::Models::load("/nowhere");
  } catch (const hmmjit::Error& error) {  // of the library's type, across its border
    return hits > 0 && error.code() == hmmjit::ErrorCode::kInput ? 0 : 1;
  }
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
