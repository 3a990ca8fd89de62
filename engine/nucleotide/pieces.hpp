// How targets are cut into pieces that are searched one after the other, on each strand.
#pragma once

#include <cstdint>
#include <vector>

#include "nucleotide/search.hpp"

namespace hmmjit::nucleotide {

/// New residues `first` to `last` of a target, 1-based. A search with windows of length W also
/// takes up to W residues before them.
struct Piece {
  std::size_t target = 0;
  std::int64_t first = 0, last = 0;
  bool operator==(const Piece&) const = default;

  std::int64_t start(int window_length) const {
    return first > window_length ? first - window_length : 1;
  }
};

/// Cuts targets in their order. A value: the pieces depend on the lengths of all targets so far.
class Partitioner {
 public:
  Partitioner(Partition partition, int block_length)
      : gathered_(partition == Partition::kGathered), block_length_(block_length) {}
  /// Appends the pieces of the next target.
  void cut(std::size_t target, std::int64_t length, std::vector<Piece>& pieces);

 private:
  void count(std::int64_t residues);

  bool gathered_;
  std::int64_t block_length_;
  // Of the block that short targets share.
  std::int64_t residues_ = 0;
  int pieces_ = 0;
};

}  // namespace hmmjit::nucleotide
