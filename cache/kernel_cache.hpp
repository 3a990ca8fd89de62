// The cache as its users see it: system, user and memory layers behind one look-up.
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

/// Result of a look-up. `entry` is null on a miss; `reason` then says why ("no entry",
/// "damaged: ...", "mode refresh"). Entries are shared and immutable.
struct Lookup {
  std::shared_ptr<const Entry> entry;
  Layer layer = Layer::kNone;   ///< that answered; kNone with an entry: just made
  Layer origin = Layer::kNone;  ///< disk layer it was read from or published to, now or earlier
  FileIdentity identity;        ///< of that file, for discard
  std::string reason;
  explicit operator bool() const { return entry != nullptr; }
};

/// Thread-safe. Store failures never surface as errors: they are counted, given once per kind to
/// Settings::on_warning, and the cache goes on in memory.
class KernelCache {
 public:
  /// Never fails: a folder that cannot be used (refused, read-only, missing HOME, a file in its
  /// place) leaves a memory-only cache, a warning and a counter.
  static std::unique_ptr<KernelCache> open(Settings settings);
  ~KernelCache();
  KernelCache(const KernelCache&) = delete;
  KernelCache& operator=(const KernelCache&) = delete;

  /// Memory, then system, then user layer; takes no lock between processes. A damaged entry of
  /// the user layer is deleted (guarded) and counted, and the look-up is a miss.
  Lookup find(const CacheKey& key) { return find(key, Counted::kAll); }
  /// The counters that a look-up changes: none if it is only for display, no miss if another
  /// look-up of the same request follows. Bad entries always count.
  enum class Counted { kNone, kHits, kAll };
  Lookup find(const CacheKey& key, Counted counted);

  /// Released on destruction, which may come after the cache's; `why_not` is empty when the lock is
  /// held, else says why the caller compiles without it.
  class Guard {
   public:
    Guard(Guard&&) noexcept;
    Guard& operator=(Guard&&) = delete;
    ~Guard();
    bool exclusive() const { return why_not_.empty(); }
    const std::string& why_not() const { return why_not_; }

   private:
    friend class KernelCache;
    struct State;
    Guard();
    std::unique_ptr<State> state_;
    std::string why_not_;
  };

  /// Claims the making of `key` among the threads of this process and other processes; waits at
  /// most Settings::lock_wait, then returns without exclusivity: compile anyway. Look up again
  /// after it: another holder may have published meanwhile.
  Guard lock(const CacheKey& key);

  /// Keeps the entry in memory and, in modes rw and refresh, stores it; returns it as a look-up
  /// (layer kNone) that discard() accepts. Failing to store is a warning and a counter. An empty
  /// payload is refused (kInternal): a failed compile must never be published.
  Result<Lookup> publish(const CacheKey& key, Entry entry);

  /// The consumer refused an intact entry (a driver would not load it): forget it in memory and
  /// delete its file if it is still the one read or published. Counted as refused.
  void discard(const CacheKey& key, const Lookup& lookup);

  /// The whole protocol: find; else lock, find again, make, publish. Concurrent callers with one
  /// key make it once. Failures of `make` are returned to all callers and remembered by the
  /// process (not kInterrupted and kResources), never stored. In strict mode a miss is an error
  /// (kCompile) that names the nearest stored key and what differs.
  using MakeFunction = std::function<Result<Entry>()>;
  Result<Lookup> obtain(const CacheKey& key, const MakeFunction& make);

  /// False in strict mode only.
  bool may_compile() const { return settings_.mode != Mode::kStrict; }
  /// The error a provider returns for a miss in strict mode.
  Error strict_miss(const CacheKey& key) const;

  /// The stored key with the fewest differing components, if any: "why was this a miss". Reads
  /// entries of both disk layers, so it is for messages, not for hot paths.
  struct Nearest {
    CacheKey key;
    Layer layer = Layer::kNone;
    std::vector<KeyDifference> differences;
  };
  std::optional<Nearest> nearest(const CacheKey& key) const;

  /// Keys of the intact entries on disk that pass `filter`, system layer first. Reads every entry:
  /// for a machine without a compiler that accepts a kernel some other compiler made, not for hot
  /// paths.
  using KeyFilter = std::function<bool(const CacheKey&)>;
  std::vector<CacheKey> stored_keys(const KeyFilter& filter) const;
  /// Keys of the intact entries of the system layer, none where files are not to be read. Reads all
  /// of them.
  std::vector<CacheKey> system_keys() const;

  const Settings& settings() const { return settings_; }
  /// Counters of this process.
  const Counters& counters() const { return counters_; }
  /// Null when the layer is absent or was refused.
  const EntryStore* user_store() const { return user_.get(); }
  const EntryStore* system_store() const { return system_.get(); }
  /// Why the user layer is absent, when it was wanted.
  const std::optional<Error>& user_store_error() const { return user_error_; }
  std::vector<Error> warnings() const;

  /// Adds this process's counters to the persistent ones; also done on destruction. Modes rw and
  /// refresh only.
  void flush_statistics();

 private:
  explicit KernelCache(Settings settings);
  struct Shared;
  void open_stores();
  void warn(const std::string& kind, const Error& error);
  Lookup look_up(const CacheKey& key, bool count_hits);
  /// Stores encoded bytes in the user layer; false, with a warning and a counter, when it cannot.
  bool store(const CacheKey& key, const std::string& bytes, FileIdentity& identity);
  void account(std::uint64_t added_bytes);
  /// Returns the size estimate, 0 when it is unknown.
  std::uint64_t write_statistics(std::uint64_t added_bytes);

  Settings settings_;
  Counters counters_;
  std::unique_ptr<EntryStore> user_, system_;
  std::optional<Error> user_error_;
  std::shared_ptr<Shared> shared_;
};

}  // namespace hmmjit::cache
