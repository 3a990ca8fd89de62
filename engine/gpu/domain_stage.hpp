// The steps after the Forward filter, on a device: regions of the targets that passed, sampled
// traces and clusters of regions with several domains, and everything that needs an envelope's
// matrices. The kernels keep HMMER's float order and random numbers, so their findings
// equal those of the CPU (engine/domain), which continues from there with alignments and scores.
//
// A target's rows depend on each other, so a target takes milliseconds however idle the device is:
// targets of many models share a launch. Whatever exceeds a buffer falls back to the CPU.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "driver/driver.hpp"
#include "gpu/cascade.hpp"
#include "gpu/chain_clock.hpp"
#include "gpu/device_targets.hpp"
#include "model/parsed_target.hpp"
#include "model/profile.hpp"

namespace hmmjit::gpu {

/// Launches whose device time is measured separately.
inline constexpr std::array<const char*, 3> kDomainStages{"parser", "ensembles", "envelopes"};
enum class DomainStep : std::size_t { kParser, kEnsembles, kEnvelopes };

/// Why an item falls back to the CPU. size: its matrix does not fit, or it would take the device
/// too long. time: its launch had no time left. room: there was no room for its answer. kind: the
/// kernels do not support it.
inline constexpr std::array<const char*, 4> kHostReasons{"size", "time", "room", "kind"};
enum class HostReason { kSize, kTime, kRoom, kKind };

/// Work of one stage: the device's cells, their time at the planner's rates, and, by HostReason,
/// the cells of items that fall back to the CPU.
struct DomainWorkDone {
  std::uint64_t cells = 0;
  double expected_seconds = 0;
  std::array<std::uint64_t, kHostReasons.size()> host_cells{};
};

/// Match odds of an envelope's codes, from 0 on, as [codes][Q][4] in stripes, with their bounds.
/// Envelopes may share them.
struct OwnEmissions {
  std::span<const float> odds, bounds;
};

/// One model's targets of one segment.
struct DomainRequest {
  std::shared_ptr<const SearchModel> model;
  std::shared_ptr<DeviceTargets> targets;
  std::vector<std::uint32_t> passed;  ///< sorted positions of targets
  /// The findings for each of them; null: the target falls back to the CPU.
  std::vector<std::shared_ptr<const ParsedTarget>> parsed;
  bool left_out = false;  ///< the launch had no room for it, but another may have
  /// Match odds and bounds that replace the model's, as in DomainParams; empty: the model's.
  std::span<const float> emissions = {}, bounds = {};
  bool samples = true;  ///< false: the CPU samples traces
  /// One for each of `passed`, which are then whole envelopes to score without null2, not to parse.
  /// Empty: they are targets.
  std::vector<OwnEmissions> own = {};
  std::vector<std::optional<ScoredEnvelope>> scored = {};  ///< empty: falls back to the CPU
};

/// Kernels for all models of a launch. The host does the work for which a kernel is missing or does
/// not cover the model.
struct DomainKernels {
  ReadyKernel parser, ensemble, envelope;
};

/// Bounds on a launch.
struct DomainLimits {
  std::optional<std::uint32_t> trace_seed = 42;  ///< same as in FilterLimits
  /// Approximate maximum duration of a launch in seconds. Items that would take longer on their
  /// own, and those that a kernel has not begun after half of it, fall back to the CPU.
  double launch_seconds = 1;
};

/// What one launch has found and taken.
struct DomainResult {
  /// Milliseconds from `origin` at which the launches began and each stage ended.
  double begin = 0;
  std::array<double, kDomainStages.size()> end{};
  std::uint64_t launches = 0, targets = 0, regions = 0, envelopes = 0;  ///< completed
  std::array<DomainWorkDone, kDomainStages.size()> work{};
};

/// Stream, events and buffers for one launch at a time, reused. One thread at a time.
class DomainStage {
 public:
  /// Maximum requests of a launch, targets of a request, and targets of all requests; the others
  /// are left out.
  static constexpr std::size_t kMostRequests = 32, kMostTargets = 8192, kMostLaunchTargets = 16000;
  /// Workspace sizes in bytes: below the first a stage does not pay, above the second nothing is
  /// gained. Items of a launch wait for each other's workspace: with 256 MiB instead of 4 GiB, an
  /// H200 takes 2.0 s instead of 0.08 s for 8,954 envelopes of 32 models of 258 to 522 positions
  /// (benchmarks/domain_bench --device --workspace).
  static constexpr std::size_t kLeastWorkspace = std::size_t{32} << 20,
                               kMostWorkspace = std::size_t{16} << 30;
  /// Cells of the largest item of a model for which a launch of the kernel has time.
  static std::uint32_t most_cells(const ReadyKernel& kernel, const driver::Device& device,
                                  const ModelExtent& model, double launch_seconds);
  /// Maximum device memory of one stage.
  static std::size_t bytes(std::size_t workspace);
  /// `resize`, `origin`: as for Cascade. `workspace`: maximum to which it may grow; a launch takes
  /// what its targets need.
  static Result<std::unique_ptr<DomainStage>> create(const driver::DevicePtr& device,
                                                     const driver::Event& origin,
                                                     Cascade::Resize resize, std::size_t workspace);
  /// Fills `parsed` of all requests (at most kMostRequests). Errors and `wait` as for Cascade::run.
  Result<DomainResult> run(std::span<DomainRequest* const> requests, const DomainKernels& kernels,
                           const DomainLimits& limits, const StreamWait& wait);

 private:
  DomainStage() = default;
  struct Run;
  driver::DevicePtr device_;
  ChainClock clock_;
  driver::Stream stream_;
  std::array<driver::Event, kDomainStages.size()> end_;
  driver::PinnedBuffer up_;
  driver::GrowingPinnedBuffer down_;
  driver::DeviceBuffer buffer_;
  driver::DeviceBuffer own_rows_;
  // The last one is in use. Outgrown ones are kept, because the driver frees memory only when the
  // device is idle, and everything would wait for that.
  std::vector<driver::DeviceBuffer> workspaces_;
  std::size_t most_workspace_ = 0;
  Cascade::Resize resize_;

  std::size_t workspace() const { return workspaces_.empty() ? 0 : workspaces_.back().size(); }
  // Grows towards `wanted` bytes as far as memory allows. Nothing may be queued.
  Status grow(std::size_t wanted);
};

}  // namespace hmmjit::gpu
