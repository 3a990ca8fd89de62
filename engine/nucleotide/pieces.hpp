// Cuts targets into pieces, which are searched in order on each strand.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "nucleotide/search.hpp"

namespace hmmjit::nucleotide {

/// Residues `first` to `last` of a target, 1-based. With windows of length W, a search also reads
/// up to W residues before `first`.
struct Piece {
  std::size_t target = 0;
  std::int64_t first = 0, last = 0;
  bool operator==(const Piece&) const = default;

  std::int64_t start(int window_length) const {
    return first > window_length ? first - window_length : 1;
  }
};

/// A piece on one strand, with the residues before it that windows need: its start on this strand
/// of its block (BlockStrands) and its number of residues.
struct StrandPart {
  std::int64_t begin = 0, length = 0;
  bool bottom = false;
};

/// Both strands of a block: its targets in order, separated by padding, and their reverse
/// complement.
class BlockStrands {
 public:
  /// Sets the block, which must outlive all uses of its residues. `bottom`: makes the bottom
  /// strand.
  void assign(const TargetBlock& targets, bool bottom, int threads);
  std::span<const Residue> top() const { return top_; }
  /// `target`: index in the block.
  StrandPart part(std::size_t target, const Piece& piece, int window_length, bool bottom) const;
  std::span<const Residue> residues(const StrandPart& part) const {
    return {(part.bottom ? bottom_.data() : top_.data()) + part.begin,
            static_cast<std::size_t>(part.length)};
  }

 private:
  const TargetBlock* targets_ = nullptr;
  std::span<const Residue> top_;
  AlignedArray<Residue> bottom_;
};

/// Cuts targets in order. Value type. The pieces depend on the lengths of all targets so far.
class Partitioner {
 public:
  Partitioner(Partition partition, int block_length)
      : gathered_(partition == Partition::kGathered),
        block_length_(partition == Partition::kTargets ? std::numeric_limits<int>::max()
                                                       : block_length) {}
  /// Appends the pieces of the next target.
  void cut(std::size_t target, std::int64_t length, std::vector<Piece>& pieces);

 private:
  void count(std::int64_t residues);

  bool gathered_;
  std::int64_t block_length_;
  // Counts for the current block of short targets.
  std::int64_t residues_ = 0;
  int pieces_ = 0;
};

}  // namespace hmmjit::nucleotide
