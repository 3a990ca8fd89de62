// Makes kernels on demand: from memory, the disk cache or the compiler.
//
// Single flight: concurrent requests make a kernel once, within the process (a shared future) and
// between processes (the cache's lock). Compiles run on a bounded thread pool in order of priority.
// If an image breaks the promises of its catalogue entry (spills, too many registers), the plan's
// next candidate replaces it, and the reason is recorded.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "cache/kernel_cache.hpp"
#include "compile/kernel_compiler.hpp"

namespace hmmjit::compile {

/// A ready kernel. Immutable; threads may share it. Launch it with the shape of `candidate`: a
/// fallback if the plan's choice was rejected.
struct Kernel {
  std::string name;  ///< same as CompileJob::name
  plan::Candidate candidate;
  Target target;
  KernelImage image;
  std::vector<plan::Rejection> rejected;      ///< candidates rejected after compiling, in order
  cache::Layer origin = cache::Layer::kNone;  ///< kNone: compiled now
  cache::CacheKey key;                        ///< key in the cache (invalid if overridden)
  double render_seconds = 0, obtain_seconds = 0;
};
using KernelPtr = std::shared_ptr<const Kernel>;

/// One event; reported from any thread.
struct ProviderEvent {
  enum class Kind { kCompiled, kCacheHit, kRejected, kFailed, kRefused };
  Kind kind = Kind::kCompiled;
  std::string kernel = {};   ///< CompileJob::name
  std::string detail = {};   ///< a hit's layer, a rejection's reason, or an error text
  std::string log = {};      ///< compiler log, complete
  std::string options = {};  ///< as passed, blank-separated
  double seconds = 0;
  double cpu_seconds = 0;  ///< kCompiled: CPU time of the compiling thread
};

/// Number of compiling threads: `wanted` if positive; otherwise one per core, but at most 12, and
/// fewer if `memory` (in bytes, see available_memory) is short.
int compile_threads(int wanted, int cores, std::uint64_t memory);

struct ProviderSettings {
  int threads = 0;  ///< concurrent compiles; 0: see compile_threads
  DeveloperOptions developer = DeveloperOptions::from_environment();
  std::function<void(const ProviderEvent&)> on_event;
};

struct ProviderStatistics {
  std::uint64_t requests = 0;  ///< calls of request and get
  std::uint64_t shared = 0;    ///< requests that joined an earlier one
  std::uint64_t compiled = 0, memory_hits = 0, disk_hits = 0;
  std::uint64_t rejected = 0, failed = 0, refused = 0;
  double compile_seconds = 0;  ///< summed over threads
};

/// Thread-safe. `cache` must outlive it. The destructor cancels running compiles and waits for
/// them.
class KernelProvider {
 public:
  /// `compiler` may be an error (no NVRTC). Kernels then come only from the cache, also from other
  /// compiler versions, and a miss fails with that error. Scans the folders once for kernels of
  /// other compilers.
  KernelProvider(render::TemplateLibrary templates,
                 Result<std::shared_ptr<const NvrtcLibrary>> compiler, cache::KernelCache& cache,
                 ProviderSettings settings = {});
  ~KernelProvider();
  KernelProvider(const KernelProvider&) = delete;
  KernelProvider& operator=(const KernelProvider&) = delete;

  using Future = std::shared_future<Result<KernelPtr>>;
  /// Called once, on any thread, when a requested kernel is ready or has failed. Must not throw.
  using Made = std::function<void(const Result<KernelPtr>&)>;
  /// Requests a plan's kernel; higher priority runs first. Requesting a queued kernel again raises
  /// its priority. Never blocks.
  Future request(const plan::Plan& plan, int priority = 0, Made made = {});
  /// The kernel if it needs no compile; nullopt if it needs one, now running or not. Uses the
  /// calling thread, which costs less than waking another.
  std::optional<Future> find(const plan::Plan& plan);
  /// Same as find() or, without result, request() and wait.
  Result<KernelPtr> get(const plan::Plan& plan);

  /// For an image that the driver refuses to load: discards the stored entry and makes the kernel
  /// once more. Fails on the second refusal.
  Result<KernelPtr> refused(const plan::Plan& plan, const KernelPtr& kernel,
                            const std::string& reason);

  /// The cache layer that holds the plan's first choice, or kNone; never compiles.
  struct CacheState {
    cache::Layer layer = cache::Layer::kNone;
    std::string reason;  ///< reason of a miss
    std::optional<KernelResources> resources;
    std::string name;
  };
  Result<CacheState> cache_state(const plan::Plan& plan);

  /// Fails all queued and running compiles, and later requests, with kInterrupted.
  void cancel();

  ProviderStatistics statistics() const;
  const Result<std::shared_ptr<const NvrtcLibrary>>& compiler() const { return compiler_; }
  const render::TemplateLibrary& templates() const { return templates_; }

 private:
  struct Pool;
  struct Job;
  void end(Job& job, Result<KernelPtr> result);
  void work();  // main loop of a compiling thread
  Result<KernelPtr> make(const plan::Plan& plan, bool may_compile);
  // Compilers whose kernels suit the device, in order of preference (null: any). A compiler that
  // does not know the device must not hide an installed kernel.
  std::vector<const NvrtcLibrary*> compilers_for(const plan::DeviceTraits& device) const;
  Result<KernelPtr> make_candidate(const plan::Candidate& candidate,
                                   const plan::DeviceTraits& device, const NvrtcLibrary* compiler,
                                   std::vector<plan::Rejection>& rejected, bool may_compile);
  struct Obtained;
  using Counted = cache::KernelCache::Counted;
  Result<Obtained> obtain(const CompileJob& job, bool may_compile);
  // Finds the job's kernel, by its own compiler or another one.
  Obtained find_stored(const CompileJob& job, Counted counted);
  std::optional<Obtained> find_of_others(const CompileJob& job, Counted counted);
  void report(ProviderEvent event);

  render::TemplateLibrary templates_;
  Result<std::shared_ptr<const NvrtcLibrary>> compiler_;
  cache::KernelCache& cache_;
  ProviderSettings settings_;
  std::unique_ptr<Pool> pool_;
};

}  // namespace hmmjit::compile
