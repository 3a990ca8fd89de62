// Cuts targets into pieces, which are searched one after the other on each strand.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/aligned.hpp"
#include "nucleotide/search.hpp"

namespace hmmjit::nucleotide {

/// Residues `first` to `last` of a target, 1-based. A search with windows of length W also reads up
/// to W residues before them.
struct Piece {
  std::size_t target = 0;
  std::int64_t first = 0, last = 0;
  bool operator==(const Piece&) const = default;

  std::int64_t start(int window_length) const {
    return first > window_length ? first - window_length : 1;
  }
};

/// A piece on one strand, including the residues before it that windows of length W need: its start
/// on that strand of its block (BlockStrands), and its number of residues.
struct StrandPart {
  std::int64_t begin = 0, length = 0;
  bool bottom = false;
};

/// Both strands of a block: its targets one after the other with padding in between, and the
/// reverse complement of that.
class BlockStrands {
 public:
  /// Sets the block, which must live as long as its residues are read. `bottom`: whether the bottom
  /// strand will be read.
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

/// Cuts targets in order. A value type: the pieces depend on the lengths of all targets so far.
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
