// `hmmjit cache` with a fake compiler behind `warm`.
#include <cstdlib>
#include <exception>
#include <new>

#include "hmmjit/command_cache.hpp"
#include "pretend_compiler.hpp"

namespace {

// The destructor of nlohmann::json allocates, and its exceptions cannot be caught. The program has
// such a handler, too.
[[noreturn]] void on_terminate() {
  try {
    if (const std::exception_ptr exception = std::current_exception())
      std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    std::_Exit(static_cast<int>(hmmjit::ErrorCode::kResources));
  } catch (...) {
  }
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  using namespace hmmjit;
  std::set_terminate(on_terminate);
  const char* log = std::getenv("PRETEND_LOG");
  const auto warm = [log](cache::KernelCache& kernels,
                          const tools::ParsedOptions& options) -> Result<tools::WarmReport> {
    tools::WarmReport report;
    for (const std::string& target : options.list("--target")) {
      for (const int length : tools::lengths_of(options)) {
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
    return tools::run_command(
        tools::cache_command(log == nullptr ? tools::WarmFunction() : tools::WarmFunction(warm)),
        "hmmjit cache", std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::bad_alloc&) {  // as the program itself does
    return static_cast<int>(ErrorCode::kResources);
  }
}
