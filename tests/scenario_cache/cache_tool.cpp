// `hmmjit cache` with a pretended compiler behind `warm`.
#include <cstdlib>
#include <new>

#include "hmmjit/command_cache.hpp"
#include "pretend_compiler.hpp"

int main(int argc, char** argv) {
  using namespace hmmjit;
  const char* log = std::getenv("PRETEND_LOG");
  const auto warm = [log](cache::KernelCache& kernels,
                          const tools::WarmRequest& request) -> Result<tools::WarmReport> {
    tools::WarmReport report;
    for (const std::string& target : request.targets) {
      for (const int length : request.lengths) {
        const cache::CacheKey key = cache::pretend_key("length " + std::to_string(length), target);
        const auto got = kernels.obtain(
            key, [&] { return cache::pretend_compile(key, log, std::chrono::milliseconds(0)); });
        if (!got) {
          report.failures.push_back(got.error());
        } else {
          ++(got->layer == cache::Layer::kNone ? report.made : report.present);
        }
      }
    }
    return report;
  };
  try {
    return tools::command_cache(argc, argv,
                                log == nullptr ? tools::WarmFunction() : tools::WarmFunction(warm));
  } catch (const std::bad_alloc&) {  // as the program itself does
    return static_cast<int>(ErrorCode::kResources);
  }
}
