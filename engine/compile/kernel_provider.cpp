#include "compile/kernel_provider.hpp"

#include <fmt/ranges.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <list>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <system_error>
#include <thread>

#include "core/memory.hpp"
#include "core/mutex.hpp"
#include "core/threads.hpp"

namespace hmmjit::compile {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// The `where` of a miss that must not be compiled now.
constexpr const char* kNotCached = "not cached";

/// Two plans with equal identity get the same kernel.
std::string identity_of(const plan::Plan& plan) {
  std::string out = fmt::format("{}/{}/{}/{}/{}", plan.device.name, plan.device.capability(),
                                plan.policy, plan.class_length, plan.chosen.variant->name);
  fmt::format_to(std::back_inserter(out), "/{}", plan::stage_name(plan.stage));
  for (const auto& [name, value] : plan.chosen.constants.list()) {
    fmt::format_to(std::back_inserter(out), "/{}={}", name, value);
  }
  fmt::format_to(std::back_inserter(out), "/{}/{}", plan.problem, plan.fallbacks.size());
  return out;
}

// The parts of a kernel's key that depend on its compiler.
struct Maker {
  std::string compiler, options;
  auto operator<=>(const Maker&) const = default;
};

// The key of the same kernel from another maker.
cache::CacheKey made_by(const Maker& maker, const cache::CacheKey& key) {
  cache::CacheKey out;  // has a schema
  for (const cache::KeyComponent& part : key.components()) {
    if (part.name == "schema") continue;
    out.add(part.name, part.name == "compiler"  ? maker.compiler
                       : part.name == "options" ? maker.options
                                                : part.value);
  }
  return out;
}

// Equal for all keys of a kernel.
Digest kernel_of(const cache::CacheKey& key) { return made_by({}, key).digest(); }

}  // namespace

int compile_threads(int wanted, int cores, std::uint64_t memory) {
  // With twelve threads, all kernels of a search take the time of the slowest one.
  constexpr int kMost = 12;
  // NVRTC 13.0 takes 91 MB once, and 19 MB per running compile of the catalogue's kernels. Doubled,
  // for larger kernels and other versions.
  constexpr std::uint64_t kOnce = std::uint64_t{182} << 20, kEach = std::uint64_t{38} << 20;
  if (wanted > 0) return wanted;
  int threads = std::min(cores, kMost);
  if (memory < kOnce + static_cast<std::uint64_t>(kMost) * kEach) {
    const std::uint64_t rest = memory - std::min(memory, kOnce);
    threads = std::min(threads, static_cast<int>(rest / kEach));
  }
  return std::max(threads, 1);
}

struct KernelProvider::Job {
  int priority = 0;
  std::uint64_t order = 0;
  plan::Plan plan;
  std::promise<Result<KernelPtr>> promise;
  std::string identity;
  std::shared_ptr<std::vector<Made>> waiting;  ///< guarded by the pool's mutex
};

struct KernelProvider::Pool {
  struct Pending {
    Future future;
    std::list<Job>::iterator job;  ///< valid while `queued`
    bool queued = false;
    std::shared_ptr<std::vector<Made>> waiting = {};  ///< the job's
  };

  Mutex mutex;
  std::condition_variable wake;
  std::list<Job> queue HMMJIT_GUARDED_BY(mutex);
  /// All requested kernels except failed ones.
  std::map<std::string, Pending> known HMMJIT_GUARDED_BY(mutex);
  std::set<std::string> refused HMMJIT_GUARDED_BY(mutex);  ///< kernels the driver refused once
  std::vector<std::thread> threads HMMJIT_GUARDED_BY(mutex);
  std::size_t idle HMMJIT_GUARDED_BY(mutex) = 0;
  std::uint64_t next_order HMMJIT_GUARDED_BY(mutex) = 0;
  ProviderStatistics statistics HMMJIT_GUARDED_BY(mutex);
  int limit = 1;  ///< maximum number of threads
  std::atomic<bool> stop{false};

  Mutex makers_mutex;
  /// Makers of the stored kernels by kernel_of(), once read. Sorted: the choice must not depend on
  /// the order of files.
  std::optional<std::map<Digest, std::set<Maker, std::greater<>>>> makers
      HMMJIT_GUARDED_BY(makers_mutex);

  Future enqueue(KernelProvider& owner, const plan::Plan& plan, int priority)
      HMMJIT_REQUIRES(mutex);
  /// The most urgent job, oldest first among equals.
  std::list<Job>::iterator most_urgent() HMMJIT_REQUIRES(mutex) {
    return std::ranges::max_element(queue, [](const Job& a, const Job& b) {
      return std::pair(a.priority, b.order) < std::pair(b.priority, a.order);
    });
  }
};

KernelProvider::KernelProvider(render::TemplateLibrary templates,
                               Result<std::shared_ptr<const NvrtcLibrary>> compiler,
                               cache::KernelCache& cache, ProviderSettings settings)
    : templates_(std::move(templates)),
      compiler_(std::move(compiler)),
      cache_(cache),
      settings_(std::move(settings)),
      pool_(std::make_unique<Pool>()) {
  pool_->limit = compile_threads(settings_.threads, available_cores(), available_memory());
}

KernelProvider::~KernelProvider() {
  try {
    cancel();
  } catch (const std::bad_alloc&) {  // error texts are lost; nobody reads them any more
  }
  std::vector<std::thread> threads;
  {
    const MutexLock guard(pool_->mutex);
    threads.swap(pool_->threads);
  }
  for (std::thread& thread : threads) thread.join();
}

void KernelProvider::cancel() {
  std::list<Job> dropped;
  {
    const MutexLock guard(pool_->mutex);
    pool_->stop = true;
    dropped.swap(pool_->queue);
    for (auto& [identity, pending] : pool_->known) pending.queued = false;
  }
  pool_->wake.notify_all();
  for (Job& job : dropped)
    end(job, fail(ErrorCode::kInterrupted, "compilation cancelled", job.identity));
}

ProviderStatistics KernelProvider::statistics() const {
  const MutexLock guard(pool_->mutex);
  return pool_->statistics;
}

void KernelProvider::report(ProviderEvent event) {
  {
    const MutexLock guard(pool_->mutex);
    ProviderStatistics& s = pool_->statistics;
    switch (event.kind) {
      case ProviderEvent::Kind::kCompiled:
        ++s.compiled;
        s.compile_seconds += event.seconds;
        break;
      case ProviderEvent::Kind::kCacheHit:
        ++(event.detail == cache::layer_name(cache::Layer::kMemory) ? s.memory_hits : s.disk_hits);
        break;
      case ProviderEvent::Kind::kRejected:
        ++s.rejected;
        break;
      case ProviderEvent::Kind::kFailed:
        ++s.failed;
        break;
      case ProviderEvent::Kind::kRefused:
        ++s.refused;
        break;
    }
  }
  if (settings_.on_event) settings_.on_event(event);
}

/// An entry and its key, perhaps of another compiler.
struct KernelProvider::Obtained {
  cache::Lookup lookup;
  cache::CacheKey key;
};

// Installed kernels serve any compiler: compiling them again would take minutes and gain nothing.
// Without a compiler, the user's kernels of other compilers serve too.
std::optional<KernelProvider::Obtained> KernelProvider::find_of_others(const CompileJob& job,
                                                                       Counted counted) {
  const cache::Mode mode = cache_.settings().mode;
  if (mode == cache::Mode::kOff || mode == cache::Mode::kRefresh) return std::nullopt;
  MutexLock lock(pool_->makers_mutex);
  if (!pool_->makers) {
    auto& makers = pool_->makers.emplace();
    for (const auto* store : {cache_.system_store(), compiler_ ? nullptr : cache_.user_store()}) {
      if (store == nullptr) continue;
      store->for_each_key([&](const cache::CacheKey& key) {
        const std::string *compiler = key.find("compiler"), *options = key.find("options");
        if (compiler != nullptr && options != nullptr)
          makers[kernel_of(key)].insert({*compiler, *options});
      });
    }
  }
  const auto found = pool_->makers->find(kernel_of(job.key));
  if (found == pool_->makers->end()) return std::nullopt;
  const auto makers = found->second;
  lock.unlock();
  for (const Maker& maker : makers) {
    cache::CacheKey key = made_by(maker, job.key);
    cache::Lookup lookup = cache_.find(key, counted == Counted::kNone ? counted : Counted::kHits);
    if (lookup) return Obtained{std::move(lookup), std::move(key)};
  }
  return std::nullopt;
}

KernelProvider::Obtained KernelProvider::find_stored(const CompileJob& job, Counted counted) {
  cache::Lookup own = cache_.find(job.key, counted);
  if (!own) {
    if (auto others = find_of_others(job, counted)) return *std::move(others);
  }
  return {std::move(own), job.key};
}

Result<KernelProvider::Obtained> KernelProvider::obtain(const CompileJob& job, bool may_compile) {
  // The compile, or the request that follows, counts a miss.
  Obtained stored = find_stored(job, may_compile && !compiler_ ? Counted::kAll : Counted::kHits);
  if (stored.lookup) return stored;
  if (!may_compile) return fail(ErrorCode::kCompile, kNotCached, kNotCached);
  if (!compiler_) {
    if (!cache_.may_compile()) return std::unexpected(cache_.strict_miss(job.key));
    return std::unexpected(compiler_.error());
  }
  const auto stopped = [this] { return pool_->stop.load(std::memory_order_relaxed); };
  const auto compile = [&]() -> Result<cache::Entry> {
    const auto start = Clock::now();
    const double cpu_start = thread_seconds();
    std::string log;
    auto image = run_job(job, **compiler_, stopped, &log, settings_.developer);
    ProviderEvent event{.kernel = job.name,
                        .log = log,
                        .options = fmt::format("{}", fmt::join(job.options, " ")),
                        .seconds = seconds_since(start),
                        .cpu_seconds = thread_seconds() - cpu_start};
    if (!image) {
      event.kind = ProviderEvent::Kind::kFailed;
      event.detail = image.error().to_string();
      report(std::move(event));
      return std::unexpected(image.error());
    }
    event.kind = ProviderEvent::Kind::kCompiled;
    report(std::move(event));
    return to_entry(job, *image);
  };
  auto lookup = cache_.obtain(job.key, compile, stopped);
  if (!lookup) return std::unexpected(lookup.error());
  return Obtained{std::move(*lookup), job.key};
}

std::vector<const NvrtcLibrary*> KernelProvider::compilers_for(
    const plan::DeviceTraits& device) const {
  if (!compiler_) return {nullptr};
  const NvrtcLibrary* const own = compiler_->get();
  const auto known = own->architectures();
  if (known && std::ranges::find(*known, device.capability()) != known->end()) return {own};
  return {nullptr, own};
}

Result<KernelPtr> KernelProvider::make_candidate(const plan::Candidate& candidate,
                                                 const plan::DeviceTraits& device,
                                                 const NvrtcLibrary* compiler,
                                                 std::vector<plan::Rejection>& rejected,
                                                 bool may_compile) {
  auto kernel = std::make_shared<Kernel>();
  const auto start = Clock::now();
  HMMJIT_ASSIGN(CompileJob job,
                make_job(templates_, candidate, device, compiler, settings_.developer));
  kernel->render_seconds = seconds_since(start);
  const auto rendered = Clock::now();
  kernel->name = job.name;
  kernel->candidate = candidate;
  kernel->target = job.target;

  if (!job.override_image.empty()) {
    kernel->image = {.kind = job.target.kind,
                     .architecture = job.target.architecture,
                     .entry_name = job.source.entry_name,
                     .bytes = job.override_image,
                     .resources = {},
                     .log = {}};
  } else {
    HMMJIT_ASSIGN(Obtained obtained, obtain(job, may_compile));
    auto image = from_entry(job, *obtained.lookup.entry);
    if (!image) {
      cache_.discard(obtained.key, obtained.lookup);
      HMMJIT_ASSIGN(obtained, obtain(job, may_compile));
      image = from_entry(job, *obtained.lookup.entry);
      if (!image) return std::unexpected(image.error());
    }
    kernel->image = std::move(*image);
    kernel->origin = obtained.lookup.layer;
    kernel->key = std::move(obtained.key);
    if (kernel->origin != cache::Layer::kNone) {
      report({.kind = ProviderEvent::Kind::kCacheHit,
              .kernel = job.name,
              .detail = cache::layer_name(kernel->origin),
              .seconds = seconds_since(rendered)});
    }
  }
  kernel->obtain_seconds = seconds_since(rendered);

  if (const auto reason = gate(kernel->image.resources, candidate, device)) {
    std::string constants;
    for (const auto& [name, value] : candidate.constants.list()) {
      fmt::format_to(std::back_inserter(constants), " {} {}", name, value);
    }
    rejected.push_back({fmt::format("{}{}", candidate.variant->name, constants), *reason});
    report({.kind = ProviderEvent::Kind::kRejected,
            .kernel = job.name,
            .detail = *reason,
            .log = kernel->image.log});
    return KernelPtr();
  }
  kernel->rejected = rejected;
  return KernelPtr(std::move(kernel));
}

Result<KernelPtr> KernelProvider::make(const plan::Plan& plan, bool may_compile) {
  std::vector<plan::Rejection> rejected;
  std::optional<Error> first_failure;
  const auto compilers = compilers_for(plan.device);
  const auto attempt = [&](const plan::Candidate& candidate) -> Result<KernelPtr> {
    Result<KernelPtr> kernel;
    for (const NvrtcLibrary* compiler : compilers) {
      kernel = make_candidate(candidate, plan.device, compiler, rejected,
                              may_compile && compiler == compilers.back());
      if (kernel) break;
    }
    if (!kernel) {
      const ErrorCode code = kernel.error().code;
      // A variant that does not compile is rejected like one that spills. A cancelled or impossible
      // compile says nothing about the variant.
      const bool of_the_variant = code == ErrorCode::kCompile && compiler_.has_value() &&
                                  cache_.may_compile() && kernel.error().where != kNotCached;
      // Template developers must see their errors, not the next kernel. Exceeding a device's
      // resources is not such an error.
      const bool of_the_language =
          templates_.edited() && kernel.error().message.find(": error: ") != std::string::npos;
      if (!of_the_variant || of_the_language) return kernel;
      if (!first_failure) first_failure = kernel.error();
      rejected.push_back({std::string(candidate.variant->name), kernel.error().to_string()});
      return KernelPtr();
    }
    return kernel;
  };
  auto kernel = attempt(plan.chosen);
  for (std::size_t i = 0; kernel && *kernel == nullptr && i < plan.fallbacks.size(); ++i) {
    kernel = attempt(plan.fallbacks[i]);
  }
  if (!kernel || *kernel != nullptr) return kernel;
  if (first_failure) return std::unexpected(*first_failure);
  std::string reasons;
  for (const plan::Rejection& r : rejected) {
    fmt::format_to(std::back_inserter(reasons), "; {}: {}", r.variant, r.reason);
  }
  if (plan.stage == plan::Stage::kHost)
    return fail(ErrorCode::kCompile, "no image keeps what its catalogue entry promises" + reasons,
                fmt::format("{} on {}", plan.problem, plan.device.name),
                "promise what the kernel needs (Expected::registers, Expected::local_bytes), or "
                "bound its registers by the second argument of __launch_bounds__");
  return fail(ErrorCode::kCompile, "every candidate was rejected after its compile" + reasons,
              fmt::format("{} kernel, model length {}, {}", plan::stage_name(plan.stage),
                          plan.model_length, plan.device.name),
              "use the CPU search, or force another variant");
}

void KernelProvider::work() {
  ::pthread_setname_np(::pthread_self(), "hmmjit compiler");
  Pool& pool = *pool_;
  MutexLock lock(pool.mutex);
  for (;;) {
    ++pool.idle;
    while (!pool.stop && pool.queue.empty()) lock.wait(pool.wake);
    --pool.idle;
    if (pool.stop) return;
    const auto chosen = pool.most_urgent();
    Job mine = std::move(*chosen);
    pool.known[mine.identity].queued = false;
    pool.queue.erase(chosen);
    lock.unlock();
    Result<KernelPtr> result;
    try {
      result = make(mine.plan, true);
    } catch (const std::bad_alloc&) {
      result = std::unexpected(Error{ErrorCode::kResources, "out of memory", {}, {}});
    } catch (const std::exception& error) {
      result = fail(ErrorCode::kInternal, error.what(), mine.identity);
    }
    end(mine, std::move(result));
    lock.lock();
  }
}

void KernelProvider::end(Job& job, Result<KernelPtr> result) {
  std::vector<Made> waiting;
  {
    const MutexLock lock(pool_->mutex);
    waiting.swap(*job.waiting);
    // Forget failures: the cache remembers those that may be kept.
    if (!result) pool_->known.erase(job.identity);
    job.promise.set_value(result);
  }
  for (const Made& made : waiting) made(result);
}

KernelProvider::Future KernelProvider::request(const plan::Plan& plan, int priority, Made made) {
  MutexLock lock(pool_->mutex);
  Future future = pool_->enqueue(*this, plan, priority);
  if (made && future.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    pool_->known.at(identity_of(plan)).waiting->push_back(std::move(made));
  } else if (made) {
    lock.unlock();
    made(future.get());
  }
  return future;
}

KernelProvider::Future KernelProvider::Pool::enqueue(KernelProvider& owner, const plan::Plan& plan,
                                                     int priority) {
  const std::string identity = identity_of(plan);
  ++statistics.requests;
  if (const auto found = known.find(identity); found != known.end()) {
    ++statistics.shared;
    if (found->second.queued) {
      found->second.job->priority = std::max(found->second.job->priority, priority);
    }
    return found->second.future;
  }
  Job job{.priority = priority,
          .order = next_order++,
          .plan = plan,
          .promise = {},
          .identity = identity,
          .waiting = std::make_shared<std::vector<Made>>()};
  Future future = job.promise.get_future().share();
  if (stop) {
    job.promise.set_value(fail(ErrorCode::kInterrupted, "compilation cancelled", identity));
    return future;
  }
  queue.push_back(std::move(job));
  const auto queued = std::prev(queue.end());
  known[identity] = {future, queued, true, queued->waiting};
  if (idle < queue.size() && threads.size() < static_cast<std::size_t>(limit)) {
    try {
      threads.emplace_back([&owner] { owner.work(); });
    } catch (const std::system_error& error) {
      // Other threads serve the job; without any, the kernel has failed.
      if (threads.empty()) {
        Error failure = refused_threads("the threads of the compiler", error);
        failure.where = identity;
        queue.back().promise.set_value(std::unexpected(std::move(failure)));
        queue.pop_back();
        known.erase(identity);
      }
    }
  }
  wake.notify_one();
  return future;
}

std::optional<KernelProvider::Future> KernelProvider::find(const plan::Plan& plan) {
  const std::string identity = identity_of(plan);
  {
    const MutexLock guard(pool_->mutex);
    if (pool_->stop) return std::nullopt;
    if (const auto known = pool_->known.find(identity); known != pool_->known.end()) {
      const Future& future = known->second.future;
      if (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready || !future.get())
        return std::nullopt;
      ++pool_->statistics.requests;
      ++pool_->statistics.shared;
      return future;
    }
  }
  auto kernel = make(plan, false);
  // Not a miss: the error will recur at the request.
  if (!kernel) return std::nullopt;
  std::promise<Result<KernelPtr>> promise;
  Future future = promise.get_future().share();
  promise.set_value(std::move(kernel));
  const MutexLock guard(pool_->mutex);
  ++pool_->statistics.requests;
  pool_->known.try_emplace(identity, Pool::Pending{future, {}, false});
  return future;
}

Result<KernelPtr> KernelProvider::get(const plan::Plan& plan) {
  if (const auto found = find(plan)) return found->get();
  return request(plan).get();
}

Result<KernelPtr> KernelProvider::refused(const plan::Plan& plan, const KernelPtr& kernel,
                                          const std::string& reason) {
  report({.kind = ProviderEvent::Kind::kRefused, .kernel = kernel->name, .detail = reason});
  {
    const MutexLock guard(pool_->mutex);
    if (!pool_->refused.insert(kernel->name).second) {
      return fail(ErrorCode::kCompile,
                  fmt::format("the driver refused this kernel again after a rebuild: {}", reason),
                  kernel->name, "run \"hmmjit doctor\"; use the CPU search meanwhile");
    }
    pool_->known.erase(identity_of(plan));
  }
  // One pass per layer: a layer hides the next ones.
  constexpr int kLayers = 3;
  for (int i = 0; i < kLayers; ++i) {
    const cache::Lookup lookup = cache_.find(kernel->key, cache::KernelCache::Counted::kNone);
    if (!lookup) break;
    cache_.discard(kernel->key, lookup);
  }
  return request(plan).get();
}

Result<KernelProvider::CacheState> KernelProvider::cache_state(const plan::Plan& plan) {
  CacheState out;
  for (const NvrtcLibrary* compiler : compilers_for(plan.device)) {
    HMMJIT_ASSIGN(const CompileJob job,
                  make_job(templates_, plan.chosen, plan.device, compiler, settings_.developer));
    const cache::Lookup lookup = find_stored(job, Counted::kNone).lookup;
    out = {lookup.layer, lookup.reason, {}, job.name};
    if (!lookup) continue;
    out.resources = from_attributes(lookup.entry->attributes);
    break;
  }
  return out;
}

}  // namespace hmmjit::compile
