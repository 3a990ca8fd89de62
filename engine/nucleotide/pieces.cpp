#include "nucleotide/pieces.hpp"

#include <algorithm>

namespace hmmjit::nucleotide {
namespace {

constexpr int kPiecesOfBlock = 1000;
// A target that begins within a block may take this share of a block even where less is left.
constexpr double kLeastShare = 0.05;

}  // namespace

void Partitioner::count(std::int64_t residues) {
  residues_ += residues;
  ++pieces_;
  if (residues_ >= block_length_ || pieces_ >= kPiecesOfBlock) residues_ = pieces_ = 0;
}

void Partitioner::cut(std::size_t target, std::int64_t length, std::vector<Piece>& pieces) {
  for (std::int64_t done = 0; done < length;) {
    std::int64_t most = block_length_;
    if (gathered_ && done == 0) {
      most = static_cast<std::int64_t>(std::max(static_cast<double>(block_length_ - residues_),
                                                static_cast<double>(block_length_) * kLeastShare));
    }
    const std::int64_t taken = std::min(length - done, most);
    pieces.push_back({target, done + 1, done + taken});
    count(taken);
    // A cut ends the block.
    if (taken < length - done) residues_ = pieces_ = 0;
    done += taken;
  }
}

}  // namespace hmmjit::nucleotide
