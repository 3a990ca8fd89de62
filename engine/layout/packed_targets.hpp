// Targets in the layout that filter kernels read: see kernel_templates/common/launch_params.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/launch_params.h"
#include "model/alphabet.hpp"

namespace hmmjit::layout {

/// Targets sorted by length, longest first (equal lengths in input order). Each is aligned to 16
/// bytes and filled up with the padding code, and 16 bytes of padding follow the last. Plain data,
/// immutable once built.
struct PackedTargets {
  std::vector<std::uint8_t> residues;
  /// In place of `residues`: pieces of other storage to concatenate, with lengths in any order.
  /// Each is a multiple of 16 bytes, and the last ends in padding.
  std::vector<std::span<const std::uint8_t>> stored;
  std::vector<std::uint32_t> start;          ///< in units of 16 bytes
  std::vector<std::uint32_t> length;         ///< residues
  std::vector<std::uint32_t> original;       ///< index in the input
  std::vector<std::uint32_t> length_class;   ///< index into class_lengths
  std::vector<std::uint32_t> class_lengths;  ///< distinct lengths, descending
  std::uint64_t residue_count = 0;
  std::size_t size() const { return length.size(); }
};

/// Packs targets; empty targets take no storage.
PackedTargets pack_targets(std::span<const std::span<const Residue>> targets);

/// The same without copying, for targets already in `stored`. The index gives each target's start,
/// in units of 16 bytes, and its length.
PackedTargets index_targets(std::vector<std::span<const std::uint8_t>> stored,
                            std::span<const std::uint32_t> start,
                            std::span<const std::uint32_t> length);

/// The work items of one launch, longest first.
struct WorkList {
  std::vector<hmmjit_device::WorkItem> items;
  std::vector<hmmjit_device::SplitState> splits;
};

/// Whole targets.
WorkList whole_targets(const PackedTargets& targets);

/// Splits targets longer than `piece_rows` (a multiple of 16, more than `overlap`) into pieces of
/// at most that many residues, which overlap by `overlap` rounded up to 16, so that one long target
/// does not hold up a launch. Exact for SSV if overlap >= M - 1: no diagonal is longer than the
/// model, so rows after the overlap do not depend on residues before the piece.
WorkList split_targets(const PackedTargets& targets, std::uint32_t piece_rows,
                       std::uint32_t overlap);

/// Items for a scan of `blocks` blocks of rows. Each has `of_item` blocks (at least twice `before`)
/// and the `before` blocks preceding them, on whose rows its own depend.
std::vector<hmmjit_device::WorkItem> scan_items(std::uint32_t blocks, std::uint32_t of_item,
                                                std::uint32_t before);

/// Overlap of SSV's pieces for this model length: a power of two, so that one list serves many
/// model lengths.
std::uint32_t piece_overlap(int model_length);

/// SSV's work list for searches and measurements: pieces that overlap by `overlap`, the model's
/// piece_overlap(), and are at least three times as long.
WorkList ssv_pieces(const PackedTargets& targets, std::uint32_t overlap);

}  // namespace hmmjit::layout
