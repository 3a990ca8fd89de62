// A sample of a device's results, stage by stage, for comparison with the CPU: it shows a search
// that a kernel computes wrong scores.
//
// A chain usually returns only the targets that pass. A sampled chain also returns its lists of
// candidates with their scores, from which a few targets are chosen: random ones, the ones
// nearest to a threshold, where an error of one unit decides, and the ones at the ends of lists,
// where a truncation would show. The consistency of the lists is checked here, the scores by the
// search.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/gate_params.h"
#include "gpu/chain_plans.hpp"
#include "gpu/device_targets.hpp"
#include "model/profile.hpp"
#include "plan/kernel_variant.hpp"

namespace hmmjit::gpu {

struct FilterLimits;
struct FilteredBlock;

/// A kernel that a chain was computed with. The finer SSV kernel counts as kSsv.
struct UsedKernel {
  Link link;
  std::string name;
  plan::Stage stage() const { return link_stage(link); }
  auto operator<=>(const UsedKernel&) const = default;
};
using UsedKernels = std::shared_ptr<const std::vector<UsedKernel>>;

/// Number of targets of a chain to return with their scores, by the last stage to compare.
struct SampleRequest {
  std::uint32_t msv = 0, bias = 0, viterbi = 0, forward = 0;
  /// One bit per link: the first chosen target whose last score comes from it must be checked at
  /// any cost.
  std::uint32_t always = 0;
  std::uint64_t seed = 0;
  explicit operator bool() const { return msv + bias + viterbi + forward > 0; }
};
constexpr std::uint32_t link_bit(Link link) { return 1u << static_cast<unsigned>(link); }

/// The outcome of a target: the stage at which it failed, that the CPU continues with it
/// (`kOpen`), or that it passed all stages of the chain.
enum class Fate : std::uint8_t { kMsv, kBias, kViterbi, kForward, kOpen, kPassed };

/// Scores in nats; NaN: not computed.
struct SampledTarget {
  static constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  std::uint32_t index = 0;  ///< in its block
  Fate fate = Fate::kMsv;
  plan::Stage depth = plan::Stage::kMsv;  ///< the last stage to be compared
  Link link = Link::kSsv;                 ///< that computed the score of that stage
  bool always = false;                    ///< see SampleRequest
  bool recurrence = false;                ///< `msv` comes from the MSV kernel
  bool undecided = false;                 ///< SSV gives no score
  bool at_forward = false;                ///< has passed Viterbi, or was let past it
  float msv = kNone, filter = kNone, viterbi = kNone, forward = kNone;
};

/// Entries of a list, or results, that are missing or too many: a kernel lost targets.
struct LostTargets {
  plan::Stage stage;
  std::uint64_t expected = 0, found = 0;
};

/// Sample of one block. Every block has the kernels of its chain; `lost` is set in one of them
/// only.
struct BlockSample {
  UsedKernels kernels;
  std::vector<SampledTarget> targets;
  std::optional<LostTargets> lost;
  double seconds = 0;  ///< core-seconds that choosing them took
};

/// The stages that a chain has after SSV. Of Viterbi's two kernels `fast_viterbi` takes the list of
/// candidates, and the exact one what that leaves (`leaves`), or all of it.
struct ChainStages {
  bool msv = false, gated = false, bias = false, viterbi = false, fast_viterbi = false,
       leaves = false, forward = false;
};

/// Offsets of the lists of a chain in one device buffer, each with room for all targets of the
/// segment; 0 for lists that the chain does not have.
struct ListOffsets {
  std::size_t survivors = 0, undecided = 0, sums = 0, passed = 0, open = 0;
  std::size_t viterbi = 0, words = 0, flagged = 0, forward = 0, scores = 0, results = 0;
  std::size_t bytes = 0;  ///< of all of them
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
  std::size_t survivors, undecided, flagged;  ///< entries
  hmmjit_device::GateCounters gate;
  /// Copies from the buffer to the host, in one piece each, and waits for all of them.
  struct Copy {
    std::size_t from, bytes, to;
  };
  std::function<Result<const std::byte*>(std::span<const Copy>, std::size_t bytes)> download;
};

/// Adds the chosen targets to `blocks`, which hold the open ones and those that passed.
Status sample_chain(const ChainLists& lists, const SampleRequest& request,
                    std::vector<FilteredBlock>& blocks);

/// Whether all `survivors` targets that passed MSV are accounted for after the gates.
std::optional<LostTargets> lost_at_gates(const hmmjit_device::GateCounters& gate,
                                         std::uint64_t survivors);

}  // namespace hmmjit::gpu
