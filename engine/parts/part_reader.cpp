#include "parts/part_reader.hpp"

#include <fmt/format.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <new>

#include "core/digest.hpp"

namespace hmmjit::parts {

namespace {

constexpr std::string_view kDamaged = "the part is damaged: ";

}  // namespace

std::unexpected<Error> PartFile::damaged(const std::string& what) const {
  return fail(ErrorCode::kInput, std::string(kDamaged) + what, path_, "search this part again");
}

bool PartFile::is_damage(const Error& error) { return error.message.starts_with(kDamaged); }

Result<PartPtr> PartFile::open(const std::string& path, bool keep_open) {
  std::shared_ptr<PartFile> part(new PartFile);
  part->path_ = path;
  HMMJIT_ASSIGN(part->file_, ReadOnlyFile::open(path));
  HMMJIT_TRY(part->read());
  if (!keep_open) part->file_.reset();
  return part;
}

Status PartFile::read_at(std::uint64_t offset, std::size_t size, std::string& bytes) const {
  bytes.resize(size);
  if (file_) return file_->read(offset, bytes);
  HMMJIT_ASSIGN(const ReadOnlyFile file, ReadOnlyFile::open(path_));
  return file.read(offset, bytes);
}

Status PartFile::read() {
  const std::uint64_t size = file_->size();
  std::string bytes;
  HMMJIT_TRY(read_at(0, std::min<std::uint64_t>(size, sizeof prelude_), bytes));
  // An empty file need not be a damaged part.
  if (!bytes.starts_with(kPartMagic.substr(0, std::min(bytes.size(), kPartMagic.size()))))
    return fail(ErrorCode::kInput, "not a part file", path_,
                "give files that hmmjit search --part-file wrote");
  if (bytes.size() < sizeof prelude_)
    return damaged(fmt::format("{} bytes, the beginning alone has {}", size, sizeof prelude_));
  std::memcpy(&prelude_, bytes.data(), sizeof prelude_);
  const Prelude& p = prelude_;
  if (p.version != kPartVersion)
    return fail(ErrorCode::kInput,
                fmt::format("part file of format {}; this program reads format {}", p.version,
                            kPartVersion),
                path_, "search and merge with the same version of hmmjit");
  if (checksum(&p, offsetof(Prelude, checksum)) != p.checksum)
    return damaged("the beginning does not match its checksum");
  if (p.file_bytes != size)
    return damaged(fmt::format("the file has {} bytes, {} were written", size, p.file_bytes));

  // Only files of another program can fail here; damage fails the checksums below.
  const std::uint64_t entries = std::uint64_t{p.hit_blocks} + p.head_blocks;
  const std::uint64_t blocks_at = sizeof p + p.settings_bytes;
  if (p.bytes != sizeof p || p.settings_bytes > size - sizeof p || p.origin_offset < blocks_at ||
      p.origin_offset > size || p.origin_bytes > size - p.origin_offset ||
      p.table_offset != p.origin_offset + p.origin_bytes ||
      (size - p.table_offset) / sizeof(BlockEntry) != entries ||
      (size - p.table_offset) % sizeof(BlockEntry) != 0)
    return damaged("its sections contradict the format");
  HMMJIT_TRY(read_at(sizeof p, p.settings_bytes, settings_text_));
  if (checksum(settings_text_.data(), settings_text_.size()) != p.settings_checksum ||
      digest_of(settings_text_) != p.search)
    return damaged("the settings do not match their checksum");
  HMMJIT_TRY(read_at(p.origin_offset, p.origin_bytes, bytes));
  if (checksum(bytes.data(), bytes.size()) != p.origin_checksum || !decode_origin(bytes, origin_))
    return damaged("what it says of its origin does not match its checksum");
  HMMJIT_TRY(read_at(p.table_offset, entries * sizeof(BlockEntry), bytes));
  if (checksum(bytes.data(), bytes.size()) != p.table_checksum)
    return damaged("the table of blocks does not match its checksum");
  table_.resize(entries);
  if (entries > 0) std::memcpy(table_.data(), bytes.data(), bytes.size());
  std::uint64_t at = blocks_at;
  for (const BlockEntry& entry : table_) {
    if (entry.offset != at || entry.stored > p.origin_offset - at || entry.raw > kLargestBlock)
      return damaged("its blocks contradict the format");
    at += entry.stored;
  }
  if (at != p.origin_offset) return damaged("its blocks contradict the format");

  auto settings = PartSettings::parse(settings_text_);
  if (!settings) return damaged(settings.error().message);
  settings_ = *settings;
  const auto sound = [](const Share& share) {
    return share.first >= 1 && share.first <= share.last && share.last <= share.of;
  };
  const PartPlace& place = p.place;
  if (!sound(place.part) || !sound(place.model_part) || place.first_target > place.last_target ||
      place.last_target > settings_.targets || place.first_model > place.last_model ||
      place.last_model > place.models)
    return damaged("its place in the search contradicts the format");
  return {};
}

Status PartFile::read_block(const BlockEntry& entry, std::string& packed, std::string& raw) const {
  const auto complain = [&] {
    return damaged(fmt::format("block {} at byte {} does not match its checksum",
                               &entry - table_.data() + 1, entry.offset));
  };
  HMMJIT_TRY(read_at(entry.offset, entry.stored, packed));
  if (checksum(packed.data(), packed.size()) != entry.checksum) return complain();
  raw.resize(entry.raw);
  const std::size_t size = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation) throw std::bad_alloc();
  if (ZSTD_isError(size) != 0 || size != raw.size()) return complain();
  return {};
}

Status PartFile::verify() const {
  const auto self = std::shared_ptr<const PartFile>(this, [](const PartFile*) {});
  PartCursor cursor(self);
  DigestStream content;
  content.update(settings_text_);
  const PartPlace& place = prelude_.place;
  for (const std::uint64_t bound : {place.first_target, place.last_target, place.first_model})
    content.update(bytes_of(bound));
  ModelHead head;
  Hit hit;
  std::uint64_t models = place.first_model, hits = 0, domains = 0;
  std::string bytes, rest;
  for (;;) {
    HMMJIT_ASSIGN(const bool more, cursor.next_model(head));
    if (!more) break;
    HMMJIT_TRY(cursor.begin_hits(head));
    DigestStream of_hits;
    for (std::uint64_t n = 0; n < head.reported; ++n) {
      HMMJIT_ASSIGN(const bool found, cursor.next_hit(hit));
      if (!found) return damaged("hits of model " + head.name + " are missing");
      hit.domain_flags.assign(hit.score.domains.size(), {});
      for (std::size_t d = 0; d < hit.score.domains.size(); ++d)
        hit.domain_flags[d].reported = !hit.score.domains[d].alignment.model.empty();
      bytes.clear();
      encode_hit(hit, true, bytes);
      of_hits.update(bytes);
      ++hits;
      domains += hit.score.domains.size();
    }
    bytes.clear();
    encode_head(head, place.describes_models(), bytes, rest);
    content.update(bytes);
    const Digest sum = of_hits.value();
    content.update(bytes_of(sum));
    ++models;
  }
  if (models != place.last_model || hits != prelude_.hits || domains != prelude_.domains ||
      content.value() != prelude_.content)
    return damaged("the content does not match its digest");
  return {};
}

// ---- PartCursor ---------------------------------------------------------------------------------

// Steps to the next block at the end of one; false after the last block.
Result<bool> PartCursor::ready(Block& block, bool of_heads, std::size_t count) {
  for (; block.number < count; ++block.number, block.at = 0, block.loaded = false) {
    if (!block.loaded)
      HMMJIT_TRY(part_->read_block(
          of_heads ? part_->head_block(block.number) : part_->hit_block(block.number), packed_,
          block.raw));
    block.loaded = true;
    if (block.at < block.raw.size()) return true;
  }
  return false;
}

Result<bool> PartCursor::next_model(ModelHead& head) {
  HMMJIT_ASSIGN(const bool more, ready(heads_, true, part_->head_blocks()));
  if (!more) return false;
  Decoder decoder(std::string_view(heads_.raw).substr(heads_.at));
  if (!decode_head(decoder, part_->place().describes_models(), head))
    return part_->damaged("a model contradicts the format");
  heads_.at = heads_.raw.size() - decoder.left();
  return true;
}

Status PartCursor::seek(std::uint64_t index) {
  // The last block that begins at or before the model.
  std::size_t number = 0;
  while (number + 1 < part_->head_blocks() && part_->head_block(number + 1).first <= index)
    ++number;
  if (heads_.number != number) heads_.loaded = false;
  heads_.number = number;
  heads_.at = 0;
  if (number >= part_->head_blocks()) return {};
  std::uint64_t at = part_->head_block(number).first;
  ModelHead skipped;
  for (; at < index; ++at) {
    HMMJIT_ASSIGN(const bool more, next_model(skipped));
    if (!more) break;
  }
  return {};
}

Status PartCursor::begin_hits(const ModelHead& head) {
  hits_left_ = head.reported;
  if (hits_left_ == 0) return {};
  if (hits_.number != head.block) hits_.loaded = false;
  hits_.number = head.block;
  hits_.at = head.offset;
  if (head.block >= part_->hit_blocks())
    return part_->damaged("hits of model " + head.name + " lie outside the file");
  return {};
}

Result<bool> PartCursor::next_hit(Hit& hit) {
  if (hits_left_ == 0) return false;
  HMMJIT_ASSIGN(const bool more, ready(hits_, false, part_->hit_blocks()));
  if (!more) return part_->damaged("hits are missing");
  Decoder decoder(std::string_view(hits_.raw).substr(hits_.at));
  if (!decode_hit(decoder, hit)) return part_->damaged("a hit contradicts the format");
  hits_.at = hits_.raw.size() - decoder.left();
  --hits_left_;
  return true;
}

}  // namespace hmmjit::parts
