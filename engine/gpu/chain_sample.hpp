// A sample of a device's results, stage by stage, for comparison with the CPU: it reveals to a
// search that a kernel computes wrong scores.
//
// A chain usually returns only the targets that pass. A sampled chain also returns its lists of
// candidates with their scores, from which a few targets are chosen: random ones, those nearest to
// a threshold, where an error of one unit decides, and those at the ends of lists, where truncation
// would show. The consistency of the lists is checked here, the scores by the search.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "common/gate_params.h"
#include "gpu/cascade.hpp"

namespace hmmjit::gpu {

/// The stages of a chain after SSV. Of the two Viterbi kernels, `fast_viterbi` takes the list of
/// candidates, and the exact one takes what that leaves (`leaves`), or the whole list.
struct ChainStages {
  bool msv = false, gated = false, bias = false, viterbi = false, fast_viterbi = false,
       leaves = false, forward = false;
};

/// Offsets of a chain's lists in one device buffer, each with room for all targets of the segment;
/// 0 for lists that the chain does not have.
struct ListOffsets {
  std::size_t survivors = 0, undecided = 0, sums = 0, passed = 0, open = 0;
  std::size_t viterbi = 0, words = 0, flagged = 0, forward = 0, scores = 0, results = 0;
  std::size_t bytes = 0;  ///< of all lists
};

/// A piece of that buffer, and its position in the host's copy of several pieces.
struct ListCopy {
  std::size_t from, bytes, to;
};

/// The lists of one chain.
struct ChainLists {
  const SearchModel& model;
  const FilterLimits& limits;
  const PackedSegment& packed;
  const std::vector<bool>& claimed;  ///< by block
  std::span<const hmmjit_device::LengthClass> classes;
  ChainStages stages;
  ListOffsets at;
  std::size_t survivors, undecided, flagged;  ///< number of entries
  hmmjit_device::GateCounters gate;
  /// Copies pieces to the host, the last one to the highest place, and waits for all of them.
  std::function<Result<const std::byte*>(std::span<const ListCopy>)> download;
};

/// Adds the chosen targets to `blocks`, which hold the open targets and those that passed.
Status sample_chain(const ChainLists& lists, const SampleRequest& request,
                    std::vector<FilteredBlock>& blocks);

/// Checks that all `survivors` targets that passed MSV are accounted for after the gates.
std::optional<LostTargets> lost_at_gates(const hmmjit_device::GateCounters& gate,
                                         std::uint64_t survivors);

}  // namespace hmmjit::gpu
