// The kernel cache: one look-up over the memory, system and user layers.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/cache_key.hpp"
#include "cache/cache_settings.hpp"
#include "cache/cache_statistics.hpp"
#include "cache/entry_format.hpp"
#include "cache/entry_store.hpp"
#include "core/error.hpp"

namespace hmmjit::cache {

enum class Layer { kNone, kMemory, kSystem, kUser };
const char* layer_name(Layer layer);

/// Result of a look-up. On a miss, `entry` is null and `reason` says why ("no entry", "damaged:
/// ...", "mode refresh"). Entries are shared and immutable.
struct Lookup {
  std::shared_ptr<const Entry> entry;
  Layer layer = Layer::kNone;   ///< layer that answered; kNone with an entry: just made
  Layer origin = Layer::kNone;  ///< disk layer that holds its file
  FileIdentity identity;        ///< of that file, for discard
  std::string reason;
  explicit operator bool() const { return entry != nullptr; }
};

/// Thread-safe. Store failures are not errors: each is counted and, once per kind, passed to
/// Settings::on_warning, and the cache continues in memory.
class KernelCache {
 public:
  /// Never fails: without a usable folder (refused, read-only, HOME unset, a file in its place),
  /// warns, counts, and returns a memory-only cache.
  static std::unique_ptr<KernelCache> open(Settings settings);
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  /// Searches memory, then the system layer, then the user layer; takes no lock between processes.
  /// Deletes and counts a damaged entry of the user layer; the look-up is then a miss.
  Lookup find(const CacheKey& key) { return find(key, Counted::kAll); }
  /// Which counters a look-up changes: kNone for display only; kHits if another look-up for the
  /// same request follows. Bad entries always count.
  enum class Counted { kNone, kHits, kAll };
  Lookup find(const CacheKey& key, Counted counted);

  /// Releases the lock on destruction; may outlive the cache.
  class Guard {
   public:
    Guard(Guard&&) noexcept;
    Guard& operator=(Guard&&) = delete;
    ~Guard();
    /// False: the caller compiles without the lock.
    bool exclusive() const { return exclusive_; }

   private:
    friend class KernelCache;
    struct State;
    Guard();
    std::unique_ptr<State> state_;
    bool exclusive_ = false;
  };

  /// Claims the making of `key`, against other threads and processes. Waits at most
  /// Settings::lock_wait, then returns without the lock: compile anyway. Look up again after the
  /// wait: another holder may have published. `stopped` ends a wait for another process.
  using Stopped = std::function<bool()>;
  Guard lock(const CacheKey& key, const Stopped& stopped = {});

  /// Keeps the entry in memory and, in modes rw and refresh, stores it; returns a look-up (layer
  /// kNone) that discard() accepts. A failure to store only warns and counts. Rejects an empty
  /// payload, the result of a failed compile (kInternal).
  Result<Lookup> publish(const CacheKey& key, Entry entry);

  /// For an intact entry that the consumer refuses (a driver does not load it): drops it from
  /// memory, deletes its file unless that has been replaced, and counts it as refused.
  void discard(const CacheKey& key, const Lookup& lookup);

  /// The whole protocol: find; else lock, find again, make, publish. Single flight: of concurrent
  /// callers with one key, one makes the entry. Failures of `make` go to all callers and are
  /// remembered by the process (except kInterrupted and kResources), but never stored. In strict
  /// mode a miss is an error (kCompile) that names the nearest stored key and the difference.
  using MakeFunction = std::function<Result<Entry>()>;
  Result<Lookup> obtain(const CacheKey& key, const MakeFunction& make, const Stopped& stopped = {});

  /// False only in strict mode.
  bool may_compile() const { return settings_.mode != Mode::kStrict; }
  /// The error that a provider returns for a miss in strict mode.
  Error strict_miss(const CacheKey& key) const;

  /// The stored key with the fewest differing components, to explain a miss. Reads all entries of
  /// both disk layers: not for hot paths.
  struct Nearest {
    CacheKey key;
    std::vector<KeyDifference> differences;
  };
  std::optional<Nearest> nearest(const CacheKey& key) const;

  const Settings& settings() const { return settings_; }
  /// Counters of this process.
  const Counters& counters() const { return counters_; }
  /// Null if the layer is absent or refused.
  const EntryStore* user_store() const { return user_.get(); }
  const EntryStore* system_store() const { return system_.get(); }
  /// The reason why the user layer is absent although it was wanted.
  const std::optional<Error>& user_store_error() const { return user_error_; }
  std::vector<Error> warnings() const;

  /// Adds this process's counters to the persistent ones, as the destructor also does. Only in
  /// modes rw and refresh.
  void flush_statistics();

 private:
  explicit KernelCache(Settings settings);
  struct Shared;
  void warn(const std::string& kind, const Error& error);
  Lookup look_up(const CacheKey& key, bool count_hits);
  /// Stores encoded bytes in the user layer; on failure warns, counts and returns false.
  bool store(const CacheKey& key, const std::string& bytes, FileIdentity& identity);
  void account(std::uint64_t added_bytes);
  /// Returns the size estimate; 0 if unknown.
  std::uint64_t write_statistics(std::uint64_t added_bytes);

  Settings settings_;
  Counters counters_;
  std::unique_ptr<EntryStore> user_, system_;
  std::optional<Error> user_error_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace hmmjit::cache
