// All filter stages of one model over one resident segment: SSV, MSV, bias filter, Viterbi and
// Forward as a chain of launches on one stream. Each stage's survivors are compacted on the device
// for the next. The host waits once, and only survivors are transferred.
//
// Decisions are hmmsearch's. Byte and word scores are exact. Bias and Forward scores are floats
// summed in a different order, so a target within their guard of a threshold, or of a P-value that
// needs HMMER's own arithmetic, falls back to the CPU ("open"). The CPU also does a stage
// whose kernel is not available yet.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "driver/driver.hpp"
#include "gpu/chain_clock.hpp"
#include "gpu/chain_plans.hpp"
#include "gpu/device_targets.hpp"
#include "gpu/ready_kernel.hpp"
#include "gpu/stream_wait.hpp"
#include "model/parsed_target.hpp"
#include "model/profile.hpp"
#include "plan/kernel_variant.hpp"

namespace hmmjit::gpu {

/// A kernel that was used for a chain. The finer SSV kernel counts as kSsv.
struct UsedKernel {
  Link link;
  std::string name;
  plan::Stage stage() const { return link_stage(link); }
  auto operator<=>(const UsedKernel&) const = default;
};
using UsedKernels = std::shared_ptr<const std::vector<UsedKernel>>;

/// Numbers of targets that a chain returns with their scores, by the last stage to compare.
struct SampleRequest {
  std::uint32_t msv = 0, bias = 0, viterbi = 0, forward = 0;
  /// One bit per link: the first chosen target whose last score comes from it must be checked in
  /// any case.
  std::uint32_t always = 0;
  std::uint64_t seed = 0;
  explicit operator bool() const { return msv + bias + viterbi + forward > 0; }
};
constexpr std::uint32_t link_bit(Link link) { return 1u << static_cast<unsigned>(link); }

/// The outcome of a target: the stage at which it failed, `kOpen` if the CPU continues with it, or
/// that it passed all stages of the chain.
enum class Fate : std::uint8_t { kMsv, kBias, kViterbi, kForward, kOpen, kPassed };

/// Scores in nats; NaN: not computed.
struct SampledTarget {
  static constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  std::uint32_t index = 0;  ///< in the target's block
  Fate fate = Fate::kMsv;
  plan::Stage depth = plan::Stage::kMsv;  ///< the last stage to be compared
  Link link = Link::kSsv;                 ///< link that computed the score of that stage
  bool always = false;                    ///< see SampleRequest
  bool recurrence = false;                ///< `msv` comes from the MSV kernel
  bool undecided = false;                 ///< SSV gives no score
  float msv = kNone, filter = kNone, viterbi = kNone, forward = kNone;
};

/// Missing or excess entries in a list, or results: a kernel lost targets.
struct LostTargets {
  plan::Stage stage;
  std::uint64_t expected = 0, found = 0;
};

/// Sample of one block. Every block has the kernels of its chain; `lost` is set in only one of
/// them.
struct BlockSample {
  UsedKernels kernels;
  std::vector<SampledTarget> targets;
  std::optional<LostTargets> lost;
  double seconds = 0;  ///< core-seconds that choosing the targets took
};

/// A target that passes the MSV filter, or whose MSV recurrence has still to be computed.
struct MsvSurvivor {
  std::uint32_t index = 0;  ///< in its block
  /// MSV filter score; NaN if SSV does not decide: the caller then runs the MSV filter.
  float nats = std::numeric_limits<float>::quiet_NaN();
};

/// A target that failed at a stage after MSV.
struct FailedTarget {
  std::uint32_t index = 0;  ///< in its block
  Fate fate = Fate::kBias;
};

/// A device's results for the targets of one block; all targets not mentioned fail MSV.
struct FilteredBlock {
  std::vector<MsvSurvivor> open;      ///< ascending index; the caller does everything after MSV
  std::vector<std::uint32_t> passed;  ///< ascending; pass Viterbi and, except for rounding, Forward
  /// Further results for each one that passed, or null; may be empty.
  std::vector<std::shared_ptr<const ParsedTarget>> parsed;
  /// Counts of targets that failed after MSV. One block of a launch has the counts of all.
  std::uint64_t failed_bias = 0, failed_viterbi = 0, failed_forward = 0;
  std::vector<FailedTarget> failed;  ///< all of them if FilterLimits::list_failed
  BlockSample sample;                ///< kernels used, and scores to be checked
};

/// Limits of hmmsearch's filters on P-values, and whether the bias filter runs.
struct FilterLimits {
  double F1 = 0.02, F2 = 1e-3, F3 = 1e-5;
  bool bias = true;
  /// Seed for the sampled traces of each region. None: one generator for the whole search, which
  /// only the CPU can use.
  std::optional<std::uint32_t> trace_seed = 42;
  bool list_failed = false;  ///< for counts by target
};

/// Stages whose device time is measured separately; a gate counts with the preceding stage.
inline constexpr std::array<const char*, 5> kTimedStages{"SSV", "MSV", "bias", "Viterbi",
                                                         "Forward"};
enum class Timed : std::size_t { kSsv, kMsv, kBias, kViterbi, kForward };

/// A model, the targets it is filtered against, and how.
struct CascadeJob {
  const SearchModel& model;
  /// At least SSV; each covers the model. The host does the stages that have no kernel.
  const std::array<ReadyKernel, kLinks>& kernels;
  const FilterLimits& limits;
  DeviceTargets& targets;
  const std::vector<bool>& claimed;  ///< by block of the segment
  StreamWait wait;
  SampleRequest sample = {};  ///< targets to return with their scores
};

/// The work of a stage, and its duration at the planner's assumed rate.
struct StageWork {
  std::uint64_t cells = 0;  ///< model positions x residues
  double expected_seconds = 0;
};

/// A target that passed all filters of a chain.
struct PassedTarget {
  std::uint32_t block, index;  ///< as TargetOrigin
  std::uint32_t target;        ///< in sorted order
};

/// What a chain has found and taken.
struct CascadeResult {
  std::vector<FilteredBlock> blocks;         ///< one for each block of the segment
  std::vector<PassedTarget> passed_targets;  ///< in the order of the blocks and of their `passed`
  /// Milliseconds from `origin` at which the chain began and its stages ended.
  double begin = 0;
  std::array<double, kTimedStages.size()> end{};
  std::uint64_t launches = 0, survivors = 0, undecided = 0, open = 0, passed = 0;
  std::uint64_t viterbi_targets = 0, viterbi_flagged = 0, forward_targets = 0;
  /// MSV's entry stays 0, because SSV leaves it few targets. Targets that the exact Viterbi kernel
  /// repeats count once.
  std::array<StageWork, kTimedStages.size()> work{};
};

/// Runs chains. Has the stream, events and buffers of one lane, reused from model to model. One
/// thread at a time.
class Cascade {
 public:
  /// Called before a buffer of `from` bytes of device memory is replaced by one of `to` bytes;
  /// after an error there is no buffer.
  using Resize = std::function<Status(std::size_t from, std::size_t to)>;
  /// A buffer that `resize` has counted. On failure, nothing more is counted than before.
  static Result<driver::DeviceBuffer> counted_buffer(const driver::DevicePtr& device,
                                                     const Resize& resize, std::size_t bytes);
  /// `origin`: already recorded. `most_scratch`: bytes of scratch (plan::Expected) above which a
  /// fast Viterbi kernel gives way to an exact one that needs less.
  static Result<std::unique_ptr<Cascade>> create(const driver::DevicePtr& device,
                                                 const driver::Event& origin, Resize resize,
                                                 std::size_t most_scratch);
  /// Maximum device memory of a lane for lists over a segment of that many targets.
  static std::size_t bytes_for(std::size_t targets);
  /// Allocates what all chains over these targets need, and what they share with those of other
  /// lanes for models of that length. Fails as run() does.
  Status reserve(DeviceTargets& targets, int model_length);
  /// kResources: no memory; kCompile: a kernel does not cover the model, and nothing was
  /// launched; kInternal and others: the device must not be used any more. A device that did not
  /// answer in time has been abandoned.
  Result<CascadeResult> run(const CascadeJob& job);

 private:
  Cascade() = default;
  struct Run;
  Status grow(driver::DeviceBuffer& buffer, std::size_t bytes, bool by_model = false);
  Status wait(const CascadeJob& job) const;

  driver::DevicePtr device_;
  ChainClock clock_;
  Resize resize_;
  driver::Stream stream_;
  std::array<driver::Event, kTimedStages.size()> end_;
  driver::GrowingPinnedBuffer up_, down_;
  driver::DeviceBuffer tables_, lists_, scratch_, tile_best_;
  std::size_t most_scratch_ = 0;
  std::vector<driver::DeviceBuffer> outgrown_;  // kept like those of GrowingPinnedBuffer
};

}  // namespace hmmjit::gpu
