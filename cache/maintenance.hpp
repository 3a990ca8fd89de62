// Maintenance of a store: keeps it below its size limit and free of abandoned temporaries.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "cache/bundle.hpp"
#include "cache/entry_store.hpp"
#include "core/error.hpp"

namespace hmmjit::cache {

inline constexpr std::chrono::seconds kStaleTemporaryAge{3600};
inline constexpr double kTrimTarget = 0.8;

struct TrimReport {
  std::uint64_t bytes_before = 0, bytes_after = 0;  ///< allocated blocks of the whole tree
  std::uint64_t entries_removed = 0, temporaries_removed = 0;
};

/// If the tree exceeds `max_bytes` on disk, removes the least recently used entries (LRU) down to
/// 80 % of it; always removes temporaries older than an hour and empty folders. nullopt if another
/// process is trimming. Does not block hits; open files survive their removal. Records the new size
/// and the removals in the persistent statistics.
std::optional<TrimReport> trim(const EntryStore& store, std::uint64_t max_bytes,
                               std::chrono::seconds stale_age = kStaleTemporaryAge);

struct ClearReport {
  std::uint64_t removed = 0, left = 0;  ///< `left`: entries in use or of another user
  /// Fails with kOutput if entries remain.
  Status status(const EntryStore& store) const;
};

/// Removes every entry, the temporaries that trim() removes, and empty folders, but no other files.
/// A folder that does not exist counts as cleared.
ClearReport clear(const EntryStore& store, std::uint64_t max_bytes);

/// import_bundle, followed by trim, because a bundle may exceed the folder's `max_bytes`.
Result<ImportReport> import_and_trim(const EntryStore& store, const std::string& path,
                                     std::uint64_t max_bytes);

}  // namespace hmmjit::cache
