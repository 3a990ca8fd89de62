#include "layout/packed_targets.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace hmmjit::layout {
namespace {
using hmmjit_device::kOverlapGranule;
using hmmjit_device::kStartUnit;
using hmmjit_device::kWholeTarget;

// Fills in everything that follows from the lengths.
PackedTargets sorted_by_length(std::span<const std::uint32_t> length) {
  PackedTargets out;
  const std::size_t n = length.size();
  out.original.resize(n);
  std::iota(out.original.begin(), out.original.end(), 0u);
  std::stable_sort(out.original.begin(), out.original.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return length[a] > length[b]; });
  out.start.reserve(n);
  out.length.reserve(n);
  out.length_class.reserve(n);
  for (const std::uint32_t index : out.original) {
    out.length.push_back(length[index]);
    if (out.class_lengths.empty() || out.class_lengths.back() != length[index]) {
      out.class_lengths.push_back(length[index]);
    }
    out.length_class.push_back(static_cast<std::uint32_t>(out.class_lengths.size() - 1));
    out.residue_count += length[index];
  }
  return out;
}

}  // namespace

PackedTargets pack_targets(std::span<const std::span<const Residue>> targets) {
  std::vector<std::uint32_t> lengths;
  lengths.reserve(targets.size());
  std::uint64_t bytes = 0;
  for (const auto& t : targets) {
    lengths.push_back(static_cast<std::uint32_t>(t.size()));
    bytes += (t.size() + kStartUnit - 1) / kStartUnit * kStartUnit;
  }
  PackedTargets out = sorted_by_length(lengths);
  out.residues.assign(bytes + kStartUnit, kPaddingCode);
  std::uint64_t at = 0;
  for (const std::uint32_t index : out.original) {
    const auto& t = targets[index];
    std::copy(t.begin(), t.end(), out.residues.begin() + static_cast<std::ptrdiff_t>(at));
    out.start.push_back(static_cast<std::uint32_t>(at / kStartUnit));
    at += (t.size() + kStartUnit - 1) / kStartUnit * kStartUnit;
  }
  return out;
}

PackedTargets index_targets(std::vector<std::span<const std::uint8_t>> stored,
                            std::span<const std::uint32_t> start,
                            std::span<const std::uint32_t> length) {
  PackedTargets out = sorted_by_length(length);
  for (const std::uint32_t index : out.original) out.start.push_back(start[index]);
  out.stored = std::move(stored);
  return out;
}

WorkList whole_targets(const PackedTargets& targets) {
  WorkList out;
  out.items.reserve(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    out.items.push_back(
        {targets.start[i], targets.length[i], static_cast<std::uint32_t>(i), kWholeTarget});
  }
  return out;
}

WorkList split_targets(const PackedTargets& targets, std::uint32_t piece_rows,
                       std::uint32_t overlap) {
  overlap = (overlap + kOverlapGranule - 1) / kOverlapGranule * kOverlapGranule;
  if (piece_rows % kOverlapGranule != 0 || piece_rows <= overlap) {
    throw std::invalid_argument("piece_rows must be a multiple of 16 above the overlap");
  }
  WorkList out;
  out.items.reserve(targets.size());
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const std::uint32_t length = targets.length[i];
    const auto target = static_cast<std::uint32_t>(i);
    if (length <= piece_rows) {
      out.items.push_back({targets.start[i], length, target, kWholeTarget});
      continue;
    }
    const auto slot = static_cast<std::uint32_t>(out.splits.size());
    std::uint32_t pieces = 0;
    for (std::uint32_t first = 0;; first += piece_rows - overlap) {
      const std::uint32_t rows = std::min(piece_rows, length - first);
      out.items.push_back({targets.start[i] + first / kStartUnit, rows, target, slot});
      ++pieces;
      if (first + rows == length) break;
    }
    out.splits.push_back({0, pieces, pieces, 0});
  }
  std::stable_sort(out.items.begin(), out.items.end(),
                   [](const auto& a, const auto& b) { return a.rows > b.rows; });
  return out;
}

std::uint32_t piece_overlap(int model_length) {
  constexpr std::uint32_t kLeastOverlap = 256;
  return std::max(kLeastOverlap, std::bit_ceil(static_cast<std::uint32_t>(model_length)));
}

WorkList ssv_pieces(const PackedTargets& targets, std::uint32_t overlap) {
  constexpr std::uint32_t kLeastPiece = 2048;
  return split_targets(targets, std::max(kLeastPiece, 3 * overlap), overlap);
}

}  // namespace hmmjit::layout
