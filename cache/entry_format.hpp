// The bytes of one cache entry. Grammar: docs/cache-format.md.
//
// Version history
//   1  header, key record, attributes, log, attachments, payload, XXH3-128 epilogue
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "cache/cache_key.hpp"
#include "core/error.hpp"

namespace hmmjit::cache {

inline constexpr std::uint32_t kEntryFormatVersion = 1;

/// The result of a compile. The consumer loads the `payload` (a cubin or PTX text); the cache never
/// interprets it.
struct Entry {
  std::map<std::string, std::string> attributes;   ///< registers, spills, shared memory, ...
  std::string log;                                 ///< compiler log, may be empty
  std::map<std::string, std::string> attachments;  ///< optional: "plan" (JSON), "ptx", ...
  std::string payload;                             ///< never empty in a stored entry

  bool operator==(const Entry&) const = default;
};

struct DecodedEntry {
  CacheKey key;
  Entry entry;
};

/// Serialises; with one zstd version, equal inputs give equal bytes. Rejects an empty payload, the
/// result of a failed compile (kInternal).
Result<std::string> encode_entry(const CacheKey& key, const Entry& entry);

enum class Attachments { kSkip, kLoad };

/// Checks everything (first the checksum, then every length, order and name) and decodes. kSkip
/// omits attachments, which a hit does not need. Fails with kInput; never reads outside `bytes` and
/// never allocates more than the entry's bounded sizes.
Result<DecodedEntry> decode_entry(std::string_view bytes, Attachments attachments);

/// decode_entry for a look-up: compares the stored record with `expected` instead of parsing it.
/// Fails with kInput; `Error::where` is kKeyCollides if the entry is intact but belongs to another
/// key with the same digest.
Result<Entry> decode_entry_for(std::string_view bytes, const CacheKey& expected,
                               Attachments attachments);
inline constexpr const char* kKeyCollides = "key collision";

/// True if `bytes` begins like an entry of another format version: another release wrote it; it is
/// not damaged.
bool is_other_version(std::string_view bytes);

}  // namespace hmmjit::cache
