// Many entries in one checked file, for machines without a compiler or a network. Grammar:
// docs/cache-format.md. The checksum is not a signature: whoever imports a bundle trusts its
// author, because its kernels will run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "cache/entry_store.hpp"
#include "core/error.hpp"

namespace hmmjit::cache {

/// Version history
///   1  header, zstd-compressed entries, count, XXH3-128 epilogue
inline constexpr std::uint32_t kBundleFormatVersion = 1;

using EntryFilter = std::function<bool(const CacheKey&)>;

struct ExportReport {
  std::uint64_t entries = 0, bytes = 0;
  std::uint64_t skipped_bad = 0;  ///< damaged entries left out
};

/// Writes every intact entry that passes `filter` (empty: all) to `path`, which appears only when
/// complete. Fails with kInput and leaves no file if there is no such entry.
Result<ExportReport> export_bundle(const EntryStore& store, const std::string& path,
                                   const EntryFilter& filter);

struct ImportReport {
  std::uint64_t imported = 0, already_present = 0;
};

/// Verifies the checksum and all entries of a bundle, then calls `take` for each. Fails with kInput
/// if the bundle is damaged or empty.
Status read_bundle(std::string_view bytes,
                   const std::function<Status(DecodedEntry&&, std::string_view entry_bytes)>& take);

/// Imports all entries, or none if the bundle is damaged.
Result<ImportReport> import_bundle(const EntryStore& store, const std::string& path);

}  // namespace hmmjit::cache
