#include "nucleotide/pieces.hpp"

#include <algorithm>

#include "core/workers.hpp"

namespace hmmjit::nucleotide {
namespace {

constexpr int kPiecesOfBlock = 1000;
// A target that begins within a block may always take this fraction of a block.
constexpr double kLeastShare = 0.05;

}  // namespace

void BlockStrands::assign(const TargetBlock& targets, bool bottom, int threads) {
  targets_ = &targets;
  top_ = {};
  if (targets.size() == 0) return;
  const auto first = targets[0].residues, last = targets[targets.size() - 1].residues;
  top_ = {first.data(), last.data() + last.size()};
  if (!bottom) return;
  Residue* const end = bottom_.ensure(top_.size()) + top_.size();
  constexpr std::size_t kAtATime = std::size_t{1} << 20;
  for_each_index(threads, (top_.size() + kAtATime - 1) / kAtATime, [&](std::size_t n) {
    const auto part = top_.subspan(n * kAtATime, std::min(kAtATime, top_.size() - n * kAtATime));
    std::transform(part.rbegin(), part.rend(), end - n * kAtATime - part.size(),
                   [&table = complements()](Residue x) { return table[x]; });
  });
}

StrandPart BlockStrands::part(std::size_t target, const Piece& piece, int window_length,
                              bool bottom) const {
  const std::int64_t at = (*targets_)[target].residues.data() - top_.data();
  const std::int64_t start = piece.start(window_length);
  return {bottom ? static_cast<std::int64_t>(top_.size()) - at - piece.last : at + start - 1,
          piece.last - start + 1, bottom};
}

void Partitioner::count(std::int64_t residues) {
  residues_ += residues;
  ++pieces_;
  if (residues_ >= block_length_ || pieces_ >= kPiecesOfBlock) residues_ = pieces_ = 0;
}

void Partitioner::cut(std::size_t target, std::int64_t length, std::vector<Piece>& pieces) {
  if (length == 0) count(0);  // nhmmer's blocks count records without residues
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
