// Keeps a store below its cap and free of abandoned temporaries.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "cache/entry_store.hpp"

namespace hmmjit::cache {

inline constexpr std::chrono::seconds kStaleTemporaryAge{3600};
inline constexpr double kTrimTarget = 0.8;

struct TrimReport {
  std::uint64_t bytes_before = 0, bytes_after = 0;  ///< allocated blocks of the whole tree
  std::uint64_t entries_removed = 0, temporaries_removed = 0;
};

/// When the tree holds more than `max_bytes` on disk, removes the least recently used entries
/// until it holds at most 80 % of that; always sweeps temporaries older than an hour and emptied
/// folders. Runs under a try-lock: nullopt when another process trims already. Hits are not
/// blocked, and an open file survives its removal. Records the new size and what was removed in
/// the persistent statistics.
std::optional<TrimReport> trim(const EntryStore& store, std::uint64_t max_bytes,
                               std::chrono::seconds stale_age = kStaleTemporaryAge);

/// Removes the empty folders that deletions leave behind.
void remove_empty_folders(const EntryStore& store);

}  // namespace hmmjit::cache
