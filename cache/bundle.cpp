#include "cache/bundle.hpp"

#include <fmt/format.h>

#include "cache/compression.hpp"
#include "core/coding.hpp"
#include "core/output_file.hpp"
#include "core/read_only_file.hpp"

namespace hmmjit::cache {
namespace {

constexpr std::string_view kMagic = "HMMJITKB";
constexpr std::size_t kHeaderBytes = 8 + 4;
constexpr std::size_t kTrailerBytes = 1 + 8 + 16;
constexpr std::uint8_t kEntryRecord = 'E';
constexpr std::uint8_t kEndRecord = 'Z';

std::unexpected<Error> damaged(const std::string& why) {
  return fail(ErrorCode::kInput, "damaged kernel bundle: " + why);
}

}  // namespace

Result<ExportReport> export_bundle(const EntryStore& store, const std::string& path,
                                   const EntryFilter& filter) {
  ExportReport report;
  HMMJIT_ASSIGN(OutputFile file, OutputFile::create(path));
  DigestStream checksum;
  const auto write = [&](std::string_view bytes) {
    checksum.update(bytes);
    file.write(bytes);
    report.bytes += bytes.size();
  };
  std::string header(kMagic);
  put_bytes(header, kBundleFormatVersion);
  write(header);
  for (const StoredFile& stored : store.scan().entries) {
    const auto bytes = store.read(stored.path);
    if (!bytes) continue;  // removed since the scan, or untrusted
    const auto decoded = decode_entry(*bytes, Attachments::kLoad);
    if (!decoded || decoded->key.digest() != stored.name) {
      ++report.skipped_bad;
      continue;
    }
    if (filter && !filter(decoded->key)) continue;
    const std::string packed = compress(*bytes);
    std::string record;
    put_bytes(record, kEntryRecord);
    put_bytes(record, static_cast<std::uint64_t>(packed.size()));
    put_bytes(record, static_cast<std::uint64_t>(bytes->size()));
    write(record);
    write(packed);
    ++report.entries;
  }
  if (report.entries == 0) {
    return fail(ErrorCode::kInput, "nothing to export: no stored kernel matches", store.root(),
                "make kernels first (hmmjit cache warm) or relax the filter");
  }
  std::string trailer;
  put_bytes(trailer, kEndRecord);
  put_bytes(trailer, report.entries);
  write(trailer);
  const std::string sum = checksum.value().bytes();
  file.write(sum);
  report.bytes += sum.size();
  HMMJIT_TRY(file.commit());
  return report;
}

Status read_bundle(
    std::string_view bytes,
    const std::function<Status(DecodedEntry&&, std::string_view entry_bytes)>& take) {
  if (bytes.size() < kHeaderBytes + kTrailerBytes) return damaged("shorter than a header");
  if (!bytes.starts_with(kMagic)) return damaged("not a bundle (wrong first bytes)");
  const std::string_view body = bytes.substr(0, bytes.size() - 16);
  if (digest_of(body) != Digest::from_bytes(bytes.substr(bytes.size() - 16))) {
    return damaged("checksum does not match");
  }
  // Two passes: a damaged bundle must not be imported in part.
  for (const bool taking : {false, true}) {
    Decoder reader(body);
    reader.take(kMagic.size());
    const auto version = reader.bytes<std::uint32_t>();
    if (version != kBundleFormatVersion) {
      return damaged(
          fmt::format("format version {} (this program reads {})", version, kBundleFormatVersion));
    }
    std::uint64_t count = 0;
    for (;;) {
      const auto kind = reader.bytes<std::uint8_t>();
      if (!reader.ok()) return damaged("truncated");
      if (kind == kEndRecord) break;
      const auto packed_size = reader.bytes<std::uint64_t>();
      const auto raw_size = reader.bytes<std::uint64_t>();
      if (kind != kEntryRecord || !reader.ok()) return damaged("unknown record");
      const std::string_view packed = reader.take(packed_size);
      if (!reader.ok()) return damaged("truncated entry");
      auto raw = decompress(packed, raw_size);
      if (!raw) return damaged(raw.error().message);
      auto decoded = decode_entry(*raw, Attachments::kLoad);
      if (!decoded) return damaged(decoded.error().message);
      if (taking) HMMJIT_TRY(take(std::move(*decoded), *raw));
      ++count;
    }
    const auto stated = reader.bytes<std::uint64_t>();
    if (!reader.ok() || reader.left() > 0) return damaged("bytes after the end");
    if (stated != count) return damaged("wrong number of entries");
    if (count == 0) return damaged("it holds no kernel");
  }
  return {};
}

Result<ImportReport> import_bundle(const EntryStore& store, const std::string& path) {
  HMMJIT_ASSIGN(const std::string bytes, read_whole_file(path));
  ImportReport report;
  const Status read =
      read_bundle(bytes, [&](DecodedEntry&& decoded, std::string_view raw) -> Status {
        if (store.find(decoded.key).state == FindResult::State::kHit) {
          ++report.already_present;
          return {};
        }
        HMMJIT_TRY(store.publish_bytes(decoded.key.digest(), raw));
        ++report.imported;
        return {};
      });
  if (!read) {
    Error error = read.error();
    if (error.where.empty()) error.where = path;
    return std::unexpected(std::move(error));
  }
  return report;
}

}  // namespace hmmjit::cache
