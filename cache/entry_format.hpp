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

/// What a compile produced. `payload` is the artefact as the consumer loads it (a cubin or PTX
/// text); the cache never looks inside.
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

/// Serialises; equal inputs give equal bytes with one zstd version. An empty payload is refused
/// (kInternal): nothing that failed to compile may be stored.
Result<std::string> encode_entry(const CacheKey& key, const Entry& entry);

enum class Attachments { kSkip, kLoad };

/// Checks everything (checksum first, then every length, order and name) and decodes. Attachments
/// stay compressed and are left out under kSkip: a hit does not need them. Fails with kInput;
/// never reads outside `bytes` and never allocates more than the entry's stated, bounded sizes.
Result<DecodedEntry> decode_entry(std::string_view bytes, Attachments attachments);

/// As decode_entry, for a look-up: the stored record is compared with `expected` and not parsed.
/// Fails with kInput; `Error::where` is kKeyCollides when an intact entry of another key merely
/// has the same digest.
Result<Entry> decode_entry_for(std::string_view bytes, const CacheKey& expected,
                               Attachments attachments);
inline constexpr const char* kKeyCollides = "key collision";

/// True when `bytes` starts like an entry of another format version (written by another release
/// of hmmjit): not damaged, just not ours.
bool is_other_version(std::string_view bytes);

}  // namespace hmmjit::cache
