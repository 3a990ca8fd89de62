// Hits of many models, one model after the other, to be read target by target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "search/hits.hpp"
#include "search/target_runs.hpp"

namespace hmmjit {

/// Keeps hits in memory as far as they fit; the rest waits in a temporary file without a name, in
/// runs sorted by target. One thread at a time.
class HitsByTarget {
 public:
  /// Targets are counted from `first`. `alignments`: hits have the text of their alignments.
  /// `memory`: bytes that hits and buffers may take; the hits of a single target are not bounded.
  HitsByTarget(std::uint64_t first, std::size_t targets, bool alignments, std::uint64_t memory)
      : first_(first), alignments_(alignments), memory_(memory), hits_(targets), runs_(memory) {}

  /// `target`: index of the target that the hit, as judged, is of. Fails with kOutput.
  Status add(std::uint64_t target, Hit hit);
  /// The hits of a target in the order they were added. Once for every target, in order, after the
  /// last add.
  Result<std::vector<Hit>> take(std::uint64_t target);

 private:
  Status write_run();

  std::uint64_t first_;
  bool alignments_;
  std::uint64_t memory_, held_ = 0;
  std::vector<std::vector<Hit>> hits_;
  bool reading_ = false;
  TargetRuns runs_;
};

}  // namespace hmmjit
