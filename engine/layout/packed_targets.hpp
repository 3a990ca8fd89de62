// Targets in the layout filter kernels read: see kernel_templates/common/launch_params.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/launch_params.h"
#include "model/alphabet.hpp"

namespace hmmjit::layout {

/// Targets sorted by length, longest first (equal lengths in input order), each at a 16-byte
/// boundary and filled up with the padding code; 16 more bytes of padding at the end. Plain data,
/// immutable once built.
struct PackedTargets {
  std::vector<std::uint8_t> residues;
  /// Instead of `residues`: pieces of someone else's storage, to be put one after the other, in
  /// any order of lengths. Each is a multiple of 16 bytes, the last ends in padding.
  std::vector<std::span<const std::uint8_t>> stored;
  std::vector<std::uint32_t> start;          ///< units of 16 bytes
  std::vector<std::uint32_t> length;         ///< residues
  std::vector<std::uint32_t> original;       ///< index in the input
  std::vector<std::uint32_t> length_class;   ///< index into class_lengths
  std::vector<std::uint32_t> class_lengths;  ///< distinct lengths, descending
  std::uint64_t residue_count = 0;
  std::size_t size() const { return length.size(); }
};

/// Packs non-empty and empty targets alike (an empty one takes no storage).
PackedTargets pack_targets(std::span<const std::span<const Residue>> targets);

/// The same without copying, for targets that lie in `stored` already: the index gives where each
/// of them starts, in units of 16 bytes, and its length.
PackedTargets index_targets(std::vector<std::span<const std::uint8_t>> stored,
                            std::span<const std::uint32_t> start,
                            std::span<const std::uint32_t> length);

/// The pieces of work of one launch, longest first.
struct WorkList {
  std::vector<hmmjit_device::WorkItem> items;
  std::vector<hmmjit_device::SplitState> splits;
};

/// Whole targets.
WorkList whole_targets(const PackedTargets& targets);

/// Targets longer than `piece_rows` (a multiple of 16, more than `overlap`) cut into pieces of at
/// most that many residues which overlap by `overlap` rounded up to 16. Exact for SSV when overlap
/// >= M - 1: no diagonal is longer than the model, so the first row whose values can depend on what
/// lies before a piece's first row is after the overlap. Keeps one long target from holding up
/// a launch.
WorkList split_targets(const PackedTargets& targets, std::uint32_t piece_rows,
                       std::uint32_t overlap);

/// Residues by which SSV's pieces overlap for a model of that length: a power of two, so that one
/// list serves the models of many lengths.
std::uint32_t piece_overlap(int model_length);

/// The work list of SSV, in a search and where its kernels are measured: pieces that overlap by
/// `overlap`, which is piece_overlap() of the model, and are at least three times as long.
WorkList ssv_pieces(const PackedTargets& targets, std::uint32_t overlap);

}  // namespace hmmjit::layout
