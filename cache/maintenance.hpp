// Maintenance of a whole store, for the program and the library.
#pragma once

#include <cstdint>
#include <string>

#include "cache/bundle.hpp"
#include "cache/entry_store.hpp"
#include "core/error.hpp"

namespace hmmjit::cache {

struct ClearReport {
  std::uint64_t removed = 0, left = 0;  ///< entries; those left are in use or another user's
  /// kOutput when an entry is left.
  Status status(const EntryStore& store) const;
};

/// Removes every entry, then what trim() sweeps, and emptied folders. Only what this cache wrote
/// goes: the folder may hold files of its owner. A folder that does not exist is clear.
ClearReport clear(const EntryStore& store, std::uint64_t max_bytes);

/// import_bundle, then trim: a bundle may hold more than the `max_bytes` that the folder may take.
Result<ImportReport> import_and_trim(const EntryStore& store, const std::string& path,
                                     std::uint64_t max_bytes);

}  // namespace hmmjit::cache
