// Implementation structs of the public handles, for the library and its tests.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "api/convert.hpp"
#include "cache/kernel_cache.hpp"
#include "compile/kernel_provider.hpp"
#include "driver/driver.hpp"
#include "hmmjit/cache.hpp"
#include "hmmjit/engine.hpp"
#include "hmmjit/search.hpp"
#include "plan/plan.hpp"
#include "search/session.hpp"

namespace hmmjit::v0 {

struct CacheImpl {
  std::shared_ptr<cache::KernelCache> cache;
};

/// The catalogue of one engine. Entries keep their addresses: plans refer to them.
struct Catalogue {
  struct Entry {
    KernelVariant host;
    std::vector<std::string_view> options, references;
    plan::KernelVariant variant;  // views into `host`
  };
  std::vector<std::unique_ptr<const Entry>> entries;

  /// A copy of a text that lives as long as the catalogue.
  std::string_view intern(const std::string& text) const;
  mutable std::mutex mutex;
  mutable std::set<std::string> texts;
};

struct PlanImpl {
  std::shared_ptr<const Catalogue> catalogue;
  plan::Plan plan;
  /// Multidimensional block shapes of a host's plan, unknown to the internals, by variant and
  /// constants.
  std::vector<std::pair<plan::Candidate, LaunchShape>> shapes;
  PlanInfo info;
};

struct KernelImageImpl {
  std::shared_ptr<const Catalogue> catalogue;  // the kernel's candidate refers to it
  compile::KernelPtr kernel;
  Candidate candidate;
  std::vector<Rejection> rejected;
  hmmjit_image_info info{};
};

struct GpuImpl {
  std::shared_ptr<driver::Driver> driver;
  driver::DevicePtr device;
  Device traits;
};

struct EngineImpl {
  Cache cache;
  std::shared_ptr<const Catalogue> catalogue;
  render::TemplateLibrary templates;
  int compile_threads = 0, highest_compiler_major = 0;

  /// Made on first use: planning and rendering need no compiler. kInterrupted once cancelled.
  compile::KernelProvider& kernels();
  std::mutex opening;
  bool cancelled = false;  // under `opening`
  std::unique_ptr<compile::KernelProvider> provider;
  std::atomic<bool> provider_ready{false};
};

KernelImage make_image(const Plan& plan, const compile::KernelPtr& kernel);

/// Throw Error kUsage unless `sensible`, and for invalid options.
void require(bool sensible, const char* option, const char* takes);
void check_options(const hmmjit_search_options& options);

// For tests with their own driver.
Gpu open_gpu(std::shared_ptr<driver::Driver> driver, int ordinal);
using OpenDriver = std::function<std::shared_ptr<driver::Driver>()>;
SearchResults search_on(const OpenDriver& open_driver, const Models& models, const Targets& targets,
                        const hmmjit_search_options& options, const SearchCallbacks& callbacks);
SearchResults nhmmer_on(const OpenDriver& open_driver, const Models& models, const Targets& targets,
                        const hmmjit_nhmmer_options& options, const SearchCallbacks& callbacks);

/// Converts checked options to the internals'.
hmmjit::SearchOptions to_options(const hmmjit_search_options& options);

/// The search of a library call, in a session started by run_search().
using SearchBody = std::function<Result<hmmjit::SearchStatistics>(
    const hmmjit::SearchOptions& options, const hmmjit::Alphabet& alphabet,
    const ModelSource& models, SearchProgress& progress)>;
/// Opens the models and calls `body`, guarded with `host`. If a device kernel computes wrong
/// scores, calls `body` again, on the CPU: with `restarts` always, otherwise only if no result has
/// been delivered. The result has no models. An empty `open_driver` means this machine's driver.
SearchResults run_search(hmmjit::Session& session, const OpenDriver& open_driver,
                         const Models& models, const Targets& targets,
                         const hmmjit_search_options& options, const SearchCallbacks& callbacks,
                         HostCalls& host, bool restarts, const SearchBody& body);

}  // namespace hmmjit::v0
