#include "cache/kernel_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <list>
#include <map>
#include <new>
#include <set>

#include "cache/entry_lock.hpp"
#include "cache/maintenance.hpp"
#include "core/mutex.hpp"

namespace hmmjit::cache {
namespace {

// A kernel of the memory layer, which carries kernels over from one search of a process to the
// next, even without a folder (mode off, HOME unset).
struct InMemory {
  CacheKey key;
  std::shared_ptr<const Entry> entry;
  Layer origin = Layer::kNone;  // disk layer that it was read from; kNone: made here
  FileIdentity identity;
  std::list<Digest>::iterator age;  // position in the LRU list
};

std::uint64_t memory_size(const InMemory& item) {
  return item.entry->payload.size() + item.entry->log.size() + item.key.record().size();
}

bool writes(Mode mode) { return mode == Mode::kReadWrite || mode == Mode::kRefresh; }

}  // namespace

const char* layer_name(Layer layer) {
  constexpr std::array kNames{"none", "memory", "system", "user"};
  return kNames[static_cast<std::size_t>(layer)];
}

struct KernelCache::Shared {
  Mutex mutex;
  std::condition_variable finished;
  std::map<Digest, InMemory> memory HMMJIT_GUARDED_BY(mutex);
  std::list<Digest> use_order HMMJIT_GUARDED_BY(mutex);  // least recently used first (LRU)
  std::uint64_t memory_bytes HMMJIT_GUARDED_BY(mutex) = 0;
  std::set<Digest> in_flight HMMJIT_GUARDED_BY(mutex);
  std::map<Digest, Error> failures HMMJIT_GUARDED_BY(mutex);
  // The digest is needed too: inode numbers are reused.
  std::set<std::pair<Digest, FileIdentity>> refused HMMJIT_GUARDED_BY(mutex);
  std::set<std::string> warned HMMJIT_GUARDED_BY(mutex);
  std::vector<Error> warnings HMMJIT_GUARDED_BY(mutex);

  std::atomic<bool> swept{false};
  std::atomic<bool> waited_in_vain{false};  // on another process
  Mutex flush_mutex;
  // True after a timeout for the lock of the persistent counters.
  bool counted_in_vain HMMJIT_GUARDED_BY(flush_mutex) = false;
  // This process's counts that the persistent counters already include.
  Counters flushed HMMJIT_GUARDED_BY(flush_mutex);

  void forget(const Digest& digest) HMMJIT_REQUIRES(mutex) {
    const auto found = memory.find(digest);
    if (found == memory.end()) return;
    memory_bytes -= memory_size(found->second);
    use_order.erase(found->second.age);
    memory.erase(found);
  }

  void remember(const CacheKey& key, std::shared_ptr<const Entry> entry, Layer origin,
                const FileIdentity& identity, std::uint64_t cap) HMMJIT_REQUIRES(mutex) {
    forget(key.digest());
    InMemory item{key, std::move(entry), origin, identity, {}};
    const std::uint64_t size = memory_size(item);
    if (size > cap) return;
    while (memory_bytes + size > cap && !use_order.empty()) forget(use_order.front());
    item.age = use_order.insert(use_order.end(), key.digest());
    memory_bytes += size;
    memory.emplace(key.digest(), std::move(item));
  }
};

struct KernelCache::Guard::State {
  std::shared_ptr<Shared> shared;
  Digest digest;
  FileLock file_lock;

  ~State() {
    if (shared == nullptr) return;  // nothing claimed
    file_lock.release();
    {
      const MutexLock hold(shared->mutex);
      shared->in_flight.erase(digest);
    }
    shared->finished.notify_all();
  }
};

KernelCache::Guard::Guard() = default;
KernelCache::Guard::Guard(Guard&&) noexcept = default;
KernelCache::Guard::~Guard() = default;

std::unique_ptr<KernelCache> KernelCache::open(Settings settings) {
  return std::unique_ptr<KernelCache>(new KernelCache(std::move(settings)));
}

KernelCache::KernelCache(Settings settings)
    : settings_(std::move(settings)), shared_(std::make_shared<Shared>()) {
  if (settings_.mode == Mode::kOff) return;
  StoreOptions options;
  options.before_step = settings_.before_publish_step;
  options.allow_group = settings_.allow_group;
  options.access = writes(settings_.mode) ? Access::kReadWrite : Access::kReadOnly;
  if (settings_.directory.empty()) {
    user_error_ = Error{ErrorCode::kOutput, "there is no kernel cache folder", "",
                        "set HMMJIT_CACHE_DIR or HOME to keep compiled kernels"};
  } else if (auto store = EntryStore::open(settings_.directory, options)) {
    user_ = std::make_unique<EntryStore>(std::move(*store));
  } else {
    user_error_ = store.error();
  }
  if (user_error_) {
    counters_.add(Counter::kStoreUnavailable);
    warn("unavailable", *user_error_);
  }
  if (!settings_.system_directory.empty()) {
    if (auto store =
            EntryStore::open(settings_.system_directory, StoreOptions::of_system_folder())) {
      system_ = std::make_unique<EntryStore>(std::move(*store));
    } else {
      warn("system", store.error());
    }
  }
}

KernelCache::~KernelCache() {
  try {
    flush_statistics();
  } catch (const std::bad_alloc&) {  // the counts are lost
  }
}

void KernelCache::warn(const std::string& kind, const Error& error) {
  {
    const MutexLock hold(shared_->mutex);
    if (!shared_->warned.insert(kind).second) return;
    shared_->warnings.push_back(error);
  }
  if (settings_.on_warning) settings_.on_warning(error);
}

std::vector<Error> KernelCache::warnings() const {
  const MutexLock hold(shared_->mutex);
  return shared_->warnings;
}

Lookup KernelCache::find(const CacheKey& key, Counted counted) {
  Lookup lookup = look_up(key, counted != Counted::kNone);
  if (!lookup && counted == Counted::kAll) counters_.add(Counter::kMisses);
  return lookup;
}

Lookup KernelCache::look_up(const CacheKey& key, bool count_hits) {
  Lookup lookup;
  {
    const MutexLock hold(shared_->mutex);
    const auto found = shared_->memory.find(key.digest());
    if (found != shared_->memory.end() && found->second.key == key) {
      InMemory& item = found->second;
      shared_->use_order.splice(shared_->use_order.end(), shared_->use_order, item.age);
      if (count_hits) counters_.add(Counter::kMemoryHits);
      return {item.entry, Layer::kMemory, item.origin, item.identity, {}};
    }
  }
  if (settings_.mode == Mode::kOff || settings_.mode == Mode::kRefresh) {
    lookup.reason = fmt::format("mode {}", mode_name(settings_.mode));
    return lookup;
  }
  lookup.reason = "no cache folder";
  for (const Layer layer : {Layer::kSystem, Layer::kUser}) {
    const EntryStore* store = layer == Layer::kSystem ? system_.get() : user_.get();
    if (store == nullptr) continue;
    FindResult found = store->find(key);
    if (found.state == FindResult::State::kHit) {
      {
        const MutexLock hold(shared_->mutex);
        if (shared_->refused.contains({key.digest(), found.identity})) {
          lookup.reason = "refused by its consumer before";
          continue;
        }
      }
      auto entry = std::make_shared<const Entry>(std::move(found.entry));
      if (count_hits) {
        counters_.add(layer == Layer::kSystem ? Counter::kSystemHits : Counter::kUserHits);
      }
      {
        const MutexLock hold(shared_->mutex);
        shared_->remember(key, entry, layer, found.identity, settings_.max_memory_bytes);
      }
      return {std::move(entry), layer, layer, found.identity, {}};
    }
    if (found.state == FindResult::State::kBad) {
      counters_.add(Counter::kBadEntries);
      const std::string path = store->entry_path(key.digest());
      const bool removed = layer == Layer::kUser && writes(settings_.mode) &&
                           store->remove(key.digest(), found.identity);
      warn("bad", Error{ErrorCode::kInput, found.reason, path,
                        removed ? "removed; the kernel is made again"
                                : "not used; the kernel is made again"});
    }
    lookup.reason = found.reason;
  }
  return lookup;
}

KernelCache::Guard KernelCache::lock(const CacheKey& key, const Stopped& stopped) {
  Guard guard;
  auto state = std::make_unique<Guard::State>();
  const auto deadline = std::chrono::steady_clock::now() + settings_.lock_wait;
  {
    MutexLock hold(shared_->mutex);
    bool timed_out = false;
    while (shared_->in_flight.contains(key.digest()) && !timed_out)
      timed_out = !hold.wait_until(shared_->finished, deadline);
    if (shared_->in_flight.contains(key.digest())) {
      counters_.add(Counter::kLockTimeouts);
      return guard;
    }
    shared_->in_flight.insert(key.digest());
    state->shared = shared_;
    state->digest = key.digest();
  }
  guard.state_ = std::move(state);
  guard.exclusive_ = true;
  if (user_ == nullptr || !writes(settings_.mode)) return guard;  // no other process could benefit
  ErrorCode reason = ErrorCode::kOutput;
  if (user_->prepare()) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    // After one timeout, only try: waits for a stuck holder must not add up.
    if (shared_->waited_in_vain) left = {};
    auto lock = FileLock::acquire(user_->lock_path(), EntryStore::lock_offset(key.digest()),
                                  std::max(left, std::chrono::milliseconds(0)), user_->file_mode(),
                                  stopped);
    if (lock) {
      guard.state_->file_lock = std::move(*lock);
      return guard;
    }
    reason = lock.error().code;
  }
  guard.exclusive_ = false;
  if (reason == ErrorCode::kInterrupted) return guard;
  const bool waited = reason == ErrorCode::kResources;
  if (waited) shared_->waited_in_vain = true;
  counters_.add(waited ? Counter::kLockTimeouts : Counter::kLockUnavailable);
  return guard;
}

Result<Lookup> KernelCache::publish(const CacheKey& key, Entry entry) {
  // Encode first: an entry that cannot be stored (empty payload) must not stay in memory either.
  HMMJIT_ASSIGN(const std::string bytes, encode_entry(key, entry));
  Lookup lookup;
  lookup.entry = std::make_shared<const Entry>(std::move(entry));
  if (store(key, bytes, lookup.identity)) lookup.origin = Layer::kUser;
  const MutexLock hold(shared_->mutex);
  shared_->remember(key, lookup.entry, lookup.origin, lookup.identity, settings_.max_memory_bytes);
  return lookup;
}

bool KernelCache::store(const CacheKey& key, const std::string& bytes, FileIdentity& identity) {
  if (!writes(settings_.mode) || user_ == nullptr) return false;
  if (static_cast<double>(bytes.size()) > kTrimTarget * static_cast<double>(settings_.max_bytes)) {
    counters_.add(Counter::kPublishFailures);
    warn("too large", Error{ErrorCode::kOutput,
                            fmt::format("a kernel of {} bytes does not fit the kernel cache of {}",
                                        bytes.size(), settings_.max_bytes),
                            user_->root(), "raise HMMJIT_CACHE_MAX_SIZE"});
    return false;
  }
  const auto added = user_->publish_bytes(key.digest(), bytes, &identity);
  if (!added) {
    counters_.add(Counter::kPublishFailures);
    warn("publish", added.error());
    return false;
  }
  counters_.add(Counter::kPublished);
  account(*added);
  return true;
}

void KernelCache::account(std::uint64_t added) {
  const std::uint64_t estimate = write_statistics(added);
  // Trim scans the disk. At an estimate of zero, because the size is unknown or cannot be stored;
  // the first time, because a store far below its cap would otherwise keep temporaries of killed
  // processes forever.
  const bool first = !shared_->swept.exchange(true);
  if (first || estimate == 0 || estimate > settings_.max_bytes) trim(*user_, settings_.max_bytes);
}

std::uint64_t KernelCache::write_statistics(std::uint64_t added) {
  const MutexLock flushing(shared_->flush_mutex);
  const Counters now = counters_, flushed = shared_->flushed;
  std::uint64_t estimate = 0;
  // As for kernels: after one timeout, only try the lock.
  if (shared_->counted_in_vain) {
    const auto lock = FileLock::acquire(user_->lock_path(), kStatisticsLockOffset,
                                        std::chrono::milliseconds(0), user_->file_mode());
    if (!lock && lock.error().code == ErrorCode::kResources) return 0;
  }
  const bool written = update_statistics(*user_, [&](StoredStatistics& stored) {
    for (unsigned i = 0; i < static_cast<unsigned>(Counter::kCount); ++i) {
      const auto counter = static_cast<Counter>(i);
      stored.counters.add(counter, now.get(counter) - flushed.get(counter));
    }
    if (stored.estimated_bytes != 0) stored.estimated_bytes += added;
    estimate = stored.estimated_bytes;
  });
  shared_->counted_in_vain = !written;
  if (!written) return 0;  // the counts stay for the next flush
  shared_->flushed = now;
  return estimate;
}

void KernelCache::flush_statistics() {
  if (user_ == nullptr || !writes(settings_.mode)) return;
  bool pending = false;
  {
    const MutexLock hold(shared_->flush_mutex);
    for (unsigned i = 0; i < static_cast<unsigned>(Counter::kCount); ++i) {
      const auto counter = static_cast<Counter>(i);
      pending = pending || counters_.get(counter) != shared_->flushed.get(counter);
    }
  }
  if (!pending) return;
  // Counting alone creates no folder; the first lock or publication does.
  if (!user_->exists()) return;
  write_statistics(0);
}

void KernelCache::discard(const CacheKey& key, const Lookup& lookup) {
  counters_.add(Counter::kRefusedEntries);
  {
    const MutexLock hold(shared_->mutex);
    const auto found = shared_->memory.find(key.digest());
    if (found != shared_->memory.end() && found->second.entry == lookup.entry) {
      shared_->forget(key.digest());
    }
    if (lookup.origin != Layer::kNone) {
      // This process must not find the file again, even if it cannot be deleted.
      shared_->refused.insert({key.digest(), lookup.identity});
    }
  }
  if (lookup.origin == Layer::kUser && user_ != nullptr && writes(settings_.mode)) {
    user_->remove(key.digest(), lookup.identity);
  }
}

Result<Lookup> KernelCache::obtain(const CacheKey& key, const MakeFunction& make,
                                   const Stopped& stopped) {
  if (Lookup lookup = find(key)) return lookup;
  if (!may_compile()) return std::unexpected(strict_miss(key));
  const auto remembered_failure = [&]() -> std::optional<Error> {
    const MutexLock hold(shared_->mutex);
    const auto failed = shared_->failures.find(key.digest());
    if (failed == shared_->failures.end()) return std::nullopt;
    return failed->second;
  };
  if (auto error = remembered_failure()) return std::unexpected(std::move(*error));
  const Guard guard = lock(key, stopped);
  // The previous holder of the lock may have published the entry, or failed.
  if (Lookup lookup = find(key, Counted::kHits)) return lookup;
  if (auto error = remembered_failure()) return std::unexpected(std::move(*error));
  auto made = make();
  if (!made) {
    const ErrorCode code = made.error().code;
    if (code != ErrorCode::kInterrupted && code != ErrorCode::kResources) {
      const MutexLock hold(shared_->mutex);
      shared_->failures.emplace(key.digest(), made.error());
    }
    return std::unexpected(made.error());
  }
  return publish(key, std::move(*made));
}

std::optional<KernelCache::Nearest> KernelCache::nearest(const CacheKey& key) const {
  std::optional<Nearest> best;
  for (const EntryStore* store : {user_.get(), system_.get()}) {
    if (store == nullptr) continue;
    store->for_each_key([&](CacheKey stored) {
      if (stored == key) return;
      auto differences = explain(stored, key);
      if (!best || differences.size() < best->differences.size())
        best = Nearest{std::move(stored), std::move(differences)};
    });
  }
  return best;
}

Error KernelCache::strict_miss(const CacheKey& key) const {
  std::string message =
      "kernel " + key.digest().hex() + " is not cached and mode strict forbids compiling";
  if (const auto near = nearest(key)) {
    message += fmt::format(" (nearest cached kernel {} differs in {})",
                           near->key.digest().hex().substr(0, 12), to_string(near->differences));
  }
  return Error{ErrorCode::kCompile, std::move(message),
               user_ != nullptr ? user_->root() : settings_.directory,
               "import a bundle that holds it (hmmjit cache import) or leave mode strict"};
}

}  // namespace hmmjit::cache
