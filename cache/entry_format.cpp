#include "cache/entry_format.hpp"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>

#include "cache/compression.hpp"
#include "core/coding.hpp"

namespace hmmjit::cache {
namespace {

constexpr std::string_view kMagic = "HMMJITKE";
constexpr std::size_t kHeaderBytes = 8 + 4 + 4 + 8 + 16;
constexpr std::size_t kEpilogueBytes = 16;

// The kinds are in the order of the sections in a file.
enum SectionKind : std::uint8_t { kKey = 1, kAttributes, kLog, kAttachment, kPayload };
enum Encoding : std::uint8_t { kRaw = 0, kZstd = 1 };

struct Section {
  std::uint8_t kind = 0;
  std::uint8_t encoding = 0;
  std::string_view name;
  std::string_view stored;
  std::uint64_t raw_size = 0;
};

std::unexpected<Error> damaged(std::string why) {
  return fail(ErrorCode::kInput, "damaged cache entry: " + std::move(why));
}

void put_section(std::string& out, SectionKind kind, std::string_view name, std::string_view raw,
                 bool compressible) {
  std::string packed;
  if (compressible) packed = compress(raw);
  const bool smaller = compressible && packed.size() < raw.size();
  const std::string_view stored = smaller ? std::string_view(packed) : raw;
  put_bytes(out, static_cast<std::uint8_t>(kind));
  put_bytes(out, static_cast<std::uint8_t>(smaller ? kZstd : kRaw));
  put_bytes(out, static_cast<std::uint16_t>(name.size()));
  put_bytes(out, std::uint32_t{0});
  put_bytes(out, static_cast<std::uint64_t>(stored.size()));
  put_bytes(out, static_cast<std::uint64_t>(raw.size()));
  out += name;
  out += stored;
}

Result<std::string> unpack(const Section& section) {
  if (section.encoding == kRaw) return std::string(section.stored);
  auto raw = decompress(section.stored, section.raw_size);
  if (!raw) return damaged(raw.error().message);
  return raw;
}

std::string encode_attributes(const std::map<std::string, std::string>& attributes) {
  std::string out;
  for (const auto& [name, value] : attributes) {
    put_bytes(out, static_cast<std::uint32_t>(name.size()));
    out += name;
    put_bytes(out, static_cast<std::uint32_t>(value.size()));
    out += value;
  }
  return out;
}

Result<std::map<std::string, std::string>> decode_attributes(std::string_view bytes) {
  std::map<std::string, std::string> attributes;
  Decoder reader(bytes);
  while (reader.left() > 0) {
    const std::string_view name = reader.take(reader.bytes<std::uint32_t>());
    const std::string_view value = reader.take(reader.bytes<std::uint32_t>());
    if (!reader.ok()) return damaged("truncated attribute");
    if (!attributes.empty() && attributes.rbegin()->first >= name) {
      return damaged("attributes out of order");
    }
    attributes.emplace_hint(attributes.end(), name, value);
  }
  return attributes;
}

struct Parsed {
  Digest digest;
  std::vector<Section> sections;  // first is the key, last the payload
};

Result<Parsed> parse(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes + kEpilogueBytes) return damaged("shorter than a header");
  if (!bytes.starts_with(kMagic)) return damaged("not a cache entry (wrong first bytes)");
  const std::string_view checked = bytes.substr(0, bytes.size() - kEpilogueBytes);
  Decoder reader(checked);
  reader.take(kMagic.size());
  const auto version = reader.bytes<std::uint32_t>(), count = reader.bytes<std::uint32_t>();
  const auto total = reader.bytes<std::uint64_t>();
  if (version != kEntryFormatVersion) {
    return damaged(
        fmt::format("format version {} (this program reads {})", version, kEntryFormatVersion));
  }
  if (total != bytes.size()) {
    return damaged(fmt::format("{} bytes where the header says {}", bytes.size(), total));
  }
  if (digest_of(checked) != Digest::from_bytes(bytes.substr(checked.size()))) {
    return damaged("checksum does not match");
  }
  Parsed parsed;
  parsed.digest = Digest::from_bytes(reader.take(16));
  // Check the contents even if the checksum matches: a forger can change the checksum too.
  for (std::uint32_t i = 0; i < count; ++i) {
    Section section;
    section.kind = reader.bytes<std::uint8_t>();
    section.encoding = reader.bytes<std::uint8_t>();
    const auto name_size = reader.bytes<std::uint16_t>();
    const auto reserved = reader.bytes<std::uint32_t>();
    const auto stored_size = reader.bytes<std::uint64_t>();
    section.raw_size = reader.bytes<std::uint64_t>();
    if (!reader.ok()) return damaged("truncated section");
    section.name = reader.take(name_size);
    if (!reader.ok()) return damaged("truncated section name");
    section.stored = reader.take(stored_size);
    if (!reader.ok()) return damaged("truncated section data");
    const bool sizes_agree = section.encoding == kRaw
                                 ? section.raw_size == stored_size
                                 : section.encoding == kZstd && section.raw_size > stored_size;
    if (!sizes_agree || reserved != 0 || section.raw_size > kMaxSectionBytes) {
      return damaged("inconsistent section header");
    }
    if (section.kind < kKey || section.kind > kPayload) return damaged("unknown section");
    if ((section.kind == kAttachment) == section.name.empty()) return damaged("bad section name");
    if (!parsed.sections.empty()) {
      const Section& last = parsed.sections.back();
      const bool ordered =
          last.kind < section.kind ||
          (last.kind == kAttachment && section.kind == kAttachment && last.name < section.name);
      if (!ordered) return damaged("sections out of order");
    }
    parsed.sections.push_back(section);
  }
  if (reader.left() > 0) return damaged("bytes after the last section");
  if (parsed.sections.size() < 3 || parsed.sections[0].kind != kKey ||
      parsed.sections[1].kind != kAttributes || parsed.sections.back().kind != kPayload ||
      parsed.sections.back().raw_size == 0) {
    return damaged("a required section is missing");
  }
  return parsed;
}

Result<Entry> unpack_entry(const Parsed& parsed, Attachments attachments) {
  Entry entry;
  for (const Section& section : parsed.sections) {
    if (section.kind == kKey ||
        (section.kind == kAttachment && attachments == Attachments::kSkip)) {
      continue;
    }
    HMMJIT_ASSIGN(std::string raw, unpack(section));
    switch (section.kind) {
      case kAttributes: {
        HMMJIT_ASSIGN(entry.attributes, decode_attributes(raw));
        break;
      }
      case kLog:
        entry.log = std::move(raw);
        break;
      case kAttachment:
        entry.attachments.emplace_hint(entry.attachments.end(), section.name, std::move(raw));
        break;
      default:
        entry.payload = std::move(raw);
    }
  }
  return entry;
}

}  // namespace

Result<std::string> encode_entry(const CacheKey& key, const Entry& entry) {
  if (!key.valid()) return fail(ErrorCode::kInternal, "cache key with a repeated or empty name");
  if (entry.payload.empty()) {
    return fail(ErrorCode::kInternal, "refusing to store an entry without a payload");
  }
  std::uint32_t count = 3;
  std::size_t largest = std::max({key.record().size(), entry.payload.size(), entry.log.size()});
  for (const auto& [name, value] : entry.attachments) {
    if (name.empty() || name.size() > 0xffff) {
      return fail(ErrorCode::kInternal, "attachment name of a cache entry is empty or too long");
    }
    largest = std::max(largest, value.size());
    ++count;
  }
  if (largest > kMaxSectionBytes) {
    return fail(ErrorCode::kInternal,
                fmt::format("cache entry part of {} bytes exceeds {}", largest, kMaxSectionBytes));
  }
  if (!entry.log.empty()) ++count;

  std::string out;
  out.reserve(entry.payload.size() + key.record().size() + 4096);
  out += kMagic;
  put_bytes(out, kEntryFormatVersion);
  put_bytes(out, count);
  const std::size_t total_at = out.size();
  put_bytes(out, std::uint64_t{0});
  out += key.digest().bytes();
  put_section(out, kKey, {}, key.record(), true);
  put_section(out, kAttributes, {}, encode_attributes(entry.attributes), false);
  if (!entry.log.empty()) put_section(out, kLog, {}, entry.log, true);
  for (const auto& [name, value] : entry.attachments) {
    put_section(out, kAttachment, name, value, true);
  }
  // The payload stays raw: hits need no decompression, and tools can find the ELF image in the
  // file.
  put_section(out, kPayload, {}, entry.payload, false);
  std::string total;
  put_bytes(total, static_cast<std::uint64_t>(out.size() + kEpilogueBytes));
  out.replace(total_at, total.size(), total);
  out += digest_of(out).bytes();
  return out;
}

Result<DecodedEntry> decode_entry(std::string_view bytes, Attachments attachments) {
  HMMJIT_ASSIGN(const Parsed parsed, parse(bytes));
  HMMJIT_ASSIGN(const std::string record, unpack(parsed.sections.front()));
  auto key = CacheKey::from_record(record);
  if (!key) return damaged(key.error().message);
  if (key->digest() != parsed.digest) return damaged("key record does not give the key digest");
  HMMJIT_ASSIGN(Entry entry, unpack_entry(parsed, attachments));
  return DecodedEntry{std::move(*key), std::move(entry)};
}

Result<Entry> decode_entry_for(std::string_view bytes, const CacheKey& expected,
                               Attachments attachments) {
  HMMJIT_ASSIGN(const Parsed parsed, parse(bytes));
  HMMJIT_ASSIGN(const std::string record, unpack(parsed.sections.front()));
  if (record != expected.record()) {
    // Equal digests of different records are a collision, not damage.
    const bool collision = digest_of(record) == expected.digest();
    return fail(ErrorCode::kInput,
                collision ? "another key has the same digest"
                          : "damaged cache entry: it holds another key than its name says",
                collision ? kKeyCollides : "");
  }
  if (parsed.digest != expected.digest()) return damaged("key record does not give the key digest");
  return unpack_entry(parsed, attachments);
}

bool is_other_version(std::string_view bytes) {
  if (!bytes.starts_with(kMagic)) return false;
  Decoder reader(bytes.substr(kMagic.size()));
  const auto version = reader.bytes<std::uint32_t>();
  return reader.ok() && version != kEntryFormatVersion;
}

}  // namespace hmmjit::cache
