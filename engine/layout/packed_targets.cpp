#include "layout/packed_targets.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace hmmjit::layout {
namespace {
using hmmjit_device::kOverlapGranule;
using hmmjit_device::kStartUnit;
using hmmjit_device::kWholeTarget;

// Indices of the lengths, longest first, stable. Radix sort, because there are millions of them
// (Knuth, The Art of Computer Programming, 5.2.5).
std::vector<std::uint32_t> longest_first(std::span<const std::uint32_t> length) {
  std::vector<std::uint32_t> order(length.size()), next(length.size());
  std::iota(order.begin(), order.end(), 0u);
  if (length.empty()) return order;
  constexpr int kBits = 12;
  constexpr std::uint32_t kDigits = 1u << kBits;
  const int bits = std::bit_width(std::ranges::max(length));
  for (int shift = 0; shift < bits; shift += kBits) {
    const auto digit = [&](std::uint32_t index) {
      return kDigits - 1 - (length[index] >> shift) % kDigits;
    };
    std::array<std::size_t, kDigits + 1> place{};
    for (const std::uint32_t index : order) ++place[digit(index) + 1];
    std::partial_sum(place.begin(), place.end(), place.begin());
    for (const std::uint32_t index : order) next[place[digit(index)]++] = index;
    order.swap(next);
  }
  return order;
}

// Fills in all members that follow from the lengths.
PackedTargets sorted_by_length(std::span<const std::uint32_t> length) {
  PackedTargets out;
  const std::size_t n = length.size();
  out.original = longest_first(length);
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
  // Targets are sorted, so those to split come first.
  std::vector<hmmjit_device::WorkItem> pieces_of_long;
  std::size_t i = 0;
  for (; i < targets.size() && targets.length[i] > piece_rows; ++i) {
    const std::uint32_t length = targets.length[i];
    const auto target = static_cast<std::uint32_t>(i);
    const auto slot = static_cast<std::uint32_t>(out.splits.size());
    std::uint32_t pieces = 0;
    for (std::uint32_t first = 0;; first += piece_rows - overlap) {
      const std::uint32_t rows = std::min(piece_rows, length - first);
      pieces_of_long.push_back({targets.start[i] + first / kStartUnit, rows, target, slot});
      ++pieces;
      if (first + rows == length) break;
    }
    out.splits.push_back({0, pieces, pieces, 0});
  }
  const auto longer = [](const auto& a, const auto& b) { return a.rows > b.rows; };
  std::ranges::stable_sort(pieces_of_long, longer);
  out.items.reserve(pieces_of_long.size() + targets.size() - i);
  auto piece = pieces_of_long.begin();
  for (; i < targets.size(); ++i) {
    const hmmjit_device::WorkItem whole{targets.start[i], targets.length[i],
                                        static_cast<std::uint32_t>(i), kWholeTarget};
    for (; piece != pieces_of_long.end() && !longer(whole, *piece); ++piece)
      out.items.push_back(*piece);
    out.items.push_back(whole);
  }
  out.items.insert(out.items.end(), piece, pieces_of_long.end());
  return out;
}

std::vector<hmmjit_device::WorkItem> scan_items(std::uint32_t blocks, std::uint32_t of_item,
                                                std::uint32_t before) {
  using hmmjit_device::kBlockRows;
  std::vector<hmmjit_device::WorkItem> out;
  for (std::uint32_t first = 0; first < blocks; first += of_item) {
    const std::uint32_t begin = first - std::min(first, before);
    const std::uint32_t end = std::min(first + of_item, blocks);
    out.push_back(
        {begin * (kBlockRows / kStartUnit), (end - begin) * kBlockRows, begin, first - begin});
  }
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
