// The cache's counters, per process and for all processes together.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace hmmjit::cache {

class EntryStore;

enum class Counter : unsigned {
  kMemoryHits,
  kUserHits,
  kSystemHits,
  kMisses,
  kPublished,
  kPublishFailures,   ///< a finished kernel could not be stored (the run continued)
  kStoreUnavailable,  ///< the user folder could not be used
  kBadEntries,        ///< damaged or forged files found
  kRefusedEntries,    ///< intact entries that the consumer (for example a driver) refused
  kLockTimeouts,      ///< the wait timed out; compiled anyway
  kLockUnavailable,   ///< the file system has no locks; compiled anyway
  kTrims,             ///< from here on, only in the persistent statistics
  kEvicted,
  kEvictedBytes,
  kSweptTemporaries,
  kCount,
};

const char* counter_name(Counter counter);

/// Thread-safe. Atomics are relaxed: the order between counters is unspecified.
class Counters {
 public:
  Counters() = default;
  Counters(const Counters& other);
  Counters& operator=(const Counters& other);

  void add(Counter counter, std::uint64_t amount = 1);
  std::uint64_t get(Counter counter) const;
  std::uint64_t hits() const;

 private:
  std::array<std::atomic<std::uint64_t>, static_cast<unsigned>(Counter::kCount)> values_{};
};

/// The persistent counters and the running size estimate for a user folder (file "statistics").
struct StoredStatistics {
  Counters counters;
  std::uint64_t estimated_bytes = 0;  ///< allocated blocks, updated since the last scan; 0: unknown

  std::string to_text() const;
  /// Ignores unknown lines. A damaged file gives zeros: statistics never cause an error.
  static StoredStatistics from_text(std::string_view text);
};

/// All zero if the folder has none yet.
StoredStatistics read_statistics(const EntryStore& store);

/// Reads, changes and replaces the persistent statistics under their lock. False if the lock stayed
/// busy or the file could not be written. Counts may be lost if the file system has no locks.
bool update_statistics(const EntryStore& store,
                       const std::function<void(StoredStatistics&)>& change);

}  // namespace hmmjit::cache
