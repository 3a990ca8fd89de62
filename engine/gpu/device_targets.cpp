#include "gpu/device_targets.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "layout/float_tables.hpp"

namespace hmmjit::gpu {

using driver::DeviceBuffer;

namespace {

// Blocks of a database already have the device layout.
layout::PackedTargets index_blocks(std::span<const BlockRef> blocks,
                                   std::span<const TargetOrigin> origins) {
  std::vector<std::span<const std::uint8_t>> stored;
  std::vector<std::uint64_t> begins;
  std::uint64_t bytes = 0;
  for (const BlockRef& block : blocks) {
    stored.push_back(block.targets->packed_residues());
    begins.push_back(bytes);
    bytes += stored.back().size();
  }
  std::vector<std::uint32_t> start, length;
  start.reserve(origins.size());
  length.reserve(origins.size());
  for (const TargetOrigin& origin : origins) {
    const std::span<const Residue> residues =
        (*blocks[origin.block].targets)[origin.index].residues;
    const auto offset = static_cast<std::uint64_t>(residues.data() - stored[origin.block].data());
    start.push_back(
        static_cast<std::uint32_t>((begins[origin.block] + offset) / hmmjit_device::kStartUnit));
    length.push_back(static_cast<std::uint32_t>(residues.size()));
  }
  return layout::index_targets(std::move(stored), start, length);
}

// Kernels may read beyond the last target. A packed segment has padding there, but a block of a
// database has none.
constexpr std::size_t kBytesAfterTargets = hmmjit_device::kStartUnit;

std::size_t stored_residues(const layout::PackedTargets& targets) {
  std::size_t bytes = targets.residues.size();
  for (const auto& piece : targets.stored) bytes += piece.size();
  return bytes + (targets.stored.empty() ? 0 : kBytesAfterTargets);
}

}  // namespace

PackedSegment pack_segment(std::span<const BlockRef> blocks) {
  PackedSegment out;
  const bool in_place = std::ranges::all_of(
      blocks, [](const BlockRef& block) { return !block.targets->packed_residues().empty(); });
  std::vector<std::span<const Residue>> targets;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    const TargetBlock& block = *blocks[b].targets;
    for (std::size_t i = 0; i < block.size(); ++i) {
      // An empty target passes no filter.
      if (block.length(i) == 0) continue;
      if (!in_place) targets.push_back(block[i].residues);
      out.origins.push_back({static_cast<std::uint32_t>(b), static_cast<std::uint32_t>(i)});
    }
  }
  out.targets = in_place ? index_blocks(blocks, out.origins) : layout::pack_targets(targets);
  out.block.reserve(out.targets.size());
  for (const std::uint32_t original : out.targets.original)
    out.block.push_back(out.origins[original].block);
  out.null_nats.reserve(out.targets.class_lengths.size());
  for (const std::uint32_t length : out.targets.class_lengths)
    out.null_nats.push_back(null_score(static_cast<int>(length)));
  return out;
}

// ---- Uploader -----------------------------------------------------------------------------------

Result<Uploader> Uploader::create(const driver::DevicePtr& device) {
  Uploader out;
  HMMJIT_ASSIGN(out.stream_, driver::Stream::create(device));
  for (int i = 0; i < 2; ++i) {
    HMMJIT_ASSIGN(out.pieces_[i], driver::PinnedBuffer::create(device, kPiece));
    HMMJIT_ASSIGN(out.passed_[i], driver::Event::create(device));
  }
  return out;
}

Status Uploader::upload_bytes(const DeviceBuffer& to, const void* from, std::size_t bytes,
                              std::size_t offset, bool changeable) {
  // The kernels' tables have this many rows.
  static_assert(hmmjit_device::kSymbolRows == 32);
  constexpr std::byte kCodeBits{31};
  const auto* source = static_cast<const std::byte*>(from);
  for (std::size_t at = 0; at < bytes; at += kPiece) {
    const std::size_t size = std::min(kPiece, bytes - at);
    const int i = next_;
    next_ = 1 - next_;
    if (used_[i]) HMMJIT_TRY(passed_[i].synchronize());
    std::byte* const piece = pieces_[i].bytes().data();
    if (changeable) {
      std::transform(source + at, source + at + size, piece,
                     [](std::byte code) { return code & kCodeBits; });
    } else {
      std::memcpy(piece, source + at, size);
    }
    HMMJIT_TRY(to.upload(stream_, piece, size, offset + at));
    HMMJIT_TRY(passed_[i].record(stream_));
    used_[i] = true;
  }
  bytes_ += bytes;
  return {};
}

Status Uploader::finish() { return stream_.synchronize(); }

// ---- DeviceTargets ------------------------------------------------------------------------------

std::size_t DeviceTargets::bytes_for(const PackedSegment& segment) {
  // Start, length, class and block, plus one work list; six words per distinct length.
  return stored_residues(segment.targets) + segment.targets.size() * (16 + 16) +
         segment.targets.class_lengths.size() * 24 + 4096;
}

Result<std::unique_ptr<DeviceTargets>> DeviceTargets::create(
    const driver::DevicePtr& device, std::shared_ptr<const PackedSegment> segment,
    Uploader& uploader) {
  std::unique_ptr<DeviceTargets> out(new DeviceTargets);
  out->device_ = device;
  const layout::PackedTargets& t = segment->targets;
  const auto put = [&](DeviceBuffer& buffer, const auto& values) -> Status {
    const std::size_t bytes = values.size() * sizeof(values[0]);
    HMMJIT_ASSIGN(buffer, DeviceBuffer::create(device, bytes));
    out->bytes_ += bytes;
    return uploader.upload(buffer, values.data(), bytes);
  };
  if (t.stored.empty()) {
    HMMJIT_TRY(put(out->residues_, t.residues));
  } else {
    const std::size_t bytes = stored_residues(t);
    HMMJIT_ASSIGN(out->residues_, DeviceBuffer::create(device, bytes));
    out->bytes_ += bytes;
    std::size_t at = 0;
    for (const auto& piece : t.stored) {
      HMMJIT_TRY(uploader.upload_residues(out->residues_, piece, at));
      at += piece.size();
    }
    const std::vector<std::uint8_t> padding(kBytesAfterTargets, kPaddingCode);
    HMMJIT_TRY(uploader.upload(out->residues_, padding.data(), padding.size(), at));
  }
  HMMJIT_TRY(put(out->start_, t.start));
  HMMJIT_TRY(put(out->length_, t.length));
  HMMJIT_TRY(put(out->length_class_, t.length_class));
  HMMJIT_TRY(put(out->block_, segment->block));
  HMMJIT_TRY(put(out->null_nats_, segment->null_nats));
  HMMJIT_TRY(put(out->bias_lengths_, layout::make_bias_lengths(t.class_lengths)));
  HMMJIT_TRY(put(out->float_lengths_, layout::make_float_lengths(t.class_lengths)));
  HMMJIT_TRY(put(out->unihit_lengths_, layout::make_float_lengths(t.class_lengths, false)));
  HMMJIT_TRY(uploader.finish());
  out->segment_ = std::move(segment);
  return out;
}

hmmjit_device::DatabaseView DeviceTargets::view() const {
  const auto words = [](const DeviceBuffer& buffer) {
    return reinterpret_cast<const hmmjit_device::u32*>(buffer.address());
  };
  return {reinterpret_cast<const hmmjit_device::u8*>(residues_.address()),
          words(start_),
          words(length_),
          words(length_class_),
          static_cast<hmmjit_device::u32>(segment_->targets.size()),
          {}};
}

Result<const DeviceTargets::WorkItems*> DeviceTargets::work(int model_length, bool whole) {
  const std::uint32_t overlap = whole ? 0 : layout::piece_overlap(model_length);
  const MutexLock lock(mutex_);
  if (const auto found = work_.find(overlap); found != work_.end()) return &found->second;
  layout::WorkList list = whole ? layout::whole_targets(segment_->targets)
                                : layout::ssv_pieces(segment_->targets, overlap);
  WorkItems work;
  work.count = static_cast<std::uint32_t>(list.items.size());
  work.splits = std::move(list.splits);
  const std::size_t bytes = list.items.size() * sizeof list.items[0];
  HMMJIT_ASSIGN(work.items, DeviceBuffer::create(device_, bytes));
  bytes_ += bytes;
  HMMJIT_ASSIGN(const driver::Stream stream, driver::Stream::create(device_));
  HMMJIT_TRY(work.items.upload(stream, list.items.data(), bytes));
  HMMJIT_TRY(stream.synchronize());
  return &work_.emplace(overlap, std::move(work)).first->second;
}

}  // namespace hmmjit::gpu
