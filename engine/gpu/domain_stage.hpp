// What follows the Forward filter, on a device: regions of the targets that passed, sampled
// traces and clusters of those of several domains, and everything that needs the matrices of an
// envelope. The kernels keep the reference's float order and its random numbers, so that what they
// find is what the CPU finds (engine/domain), which goes on from there: alignments, scores.
//
// A target's rows depend on each other, so that one takes milliseconds however idle the device is:
// targets of many models go into one launch. Whatever exceeds a buffer falls back to the CPU.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "driver/driver.hpp"
#include "gpu/cascade.hpp"
#include "gpu/device_targets.hpp"
#include "model/parsed_target.hpp"
#include "model/profile.hpp"

namespace hmmjit::gpu {

/// Launches whose device time is measured one by one.
inline constexpr std::array<const char*, 3> kDomainStages{"parser", "ensembles", "envelopes"};

/// Why an item falls back to the CPU. size: its matrix finds no room, or it takes the device too
/// long. time: its launch had no time left. room: its answer found no room. kind: the kernels do
/// not support it.
inline constexpr std::array<const char*, 4> kHostReasons{"size", "time", "room", "kind"};
enum class HostReason { kSize, kTime, kRoom, kKind };

/// Work of one stage: the device's cells, their time at the planner's rates, and the cells of items
/// that fall back to the CPU, by HostReason.
struct DomainWorkDone {
  std::uint64_t cells = 0;
  double expected_seconds = 0;
  std::array<std::uint64_t, kHostReasons.size()> host_cells{};
};

/// Match odds of an envelope's codes, from 0 on, as [codes][Q][4] in stripes, and their bounds.
/// Envelopes may share them.
struct OwnEmissions {
  std::span<const float> odds, bounds;
};

/// One model's targets of one segment.
struct DomainRequest {
  std::shared_ptr<const SearchModel> model;
  std::shared_ptr<DeviceTargets> targets;
  std::vector<std::uint32_t> passed;  ///< indices in sorted order
  /// The findings for each of them; null: falls back to the CPU.
  std::vector<std::shared_ptr<const ParsedTarget>> parsed;
  bool left_out = false;  ///< the launch had no room for it; another one may
  /// Match odds and their bounds instead of the model's, as in DomainParams; empty: the model's.
  std::span<const float> emissions = {}, bounds = {};
  bool samples = true;  ///< false: the CPU samples traces
  /// One for each of `passed`, which then are whole envelopes: they are scored, without null2, not
  /// parsed. Empty: they are targets.
  std::vector<OwnEmissions> own = {};
  std::vector<std::optional<ScoredEnvelope>> scored = {};  ///< empty: falls back to the CPU
};

/// Kernels for all models of a launch. The host does the work for which one is missing or which it
/// does not cover.
struct DomainKernels {
  ReadyKernel parser, ensemble, envelope;
};

struct DomainLimits {
  std::optional<std::uint32_t> trace_seed = 42;  ///< as FilterLimits'
  /// About how many seconds a launch may take. Items that would take longer by themselves, and
  /// those that a kernel has not begun after half of that, fall back to the CPU.
  double launch_seconds = 1;
};

struct DomainResult {
  /// Milliseconds from `origin` at which the launches began, and at which each stage ended.
  float begin = 0;
  std::array<float, kDomainStages.size()> end{};
  std::uint64_t launches = 0, targets = 0, regions = 0, envelopes = 0;  ///< done to the end
  std::array<DomainWorkDone, kDomainStages.size()> work{};
};

/// Stream, events and buffers of one launch at a time, reused. One thread at a time.
class DomainStage {
 public:
  /// Requests that one launch takes at most, targets of a request, and targets of all requests:
  /// further ones are left out.
  static constexpr std::size_t kMostRequests = 32, kMostTargets = 8192, kMostLaunchTargets = 16000;
  /// Bytes of a workspace below which a stage does not pay, and beyond which more gains nothing.
  /// Items of a launch wait for each other's workspace: with 256 MiB instead of 4 GiB
  /// an H200 takes 2.0 s instead of 0.08 for 8,954 envelopes of 32 models of 258 to 522 positions
  /// (benchmarks/domain_bench --device --workspace).
  static constexpr std::size_t kLeastWorkspace = std::size_t{32} << 20,
                               kMostWorkspace = std::size_t{16} << 30;
  /// Cells of the largest item of a model for which a kernel's launch has time.
  static std::uint32_t most_cells(const ReadyKernel& kernel, const driver::Device& device,
                                  const ModelExtent& model, double launch_seconds);
  /// Device memory of one stage, at most.
  static std::size_t bytes(std::size_t workspace);
  /// `resize`, `origin`: as Cascade's. `workspace`: the most that it may grow to; a launch takes
  /// what its targets need.
  static Result<std::unique_ptr<DomainStage>> create(const driver::DevicePtr& device,
                                                     const driver::Event& origin,
                                                     Cascade::Resize resize, std::size_t workspace);
  /// Fills `parsed` of all requests, at most kMostRequests. Errors and `wait` as Cascade::run.
  Result<DomainResult> run(std::span<DomainRequest* const> requests, const DomainKernels& kernels,
                           const DomainLimits& limits, const StreamWait& wait);

 private:
  DomainStage() = default;
  struct Run;
  driver::DevicePtr device_;
  const driver::Event* origin_ = nullptr;
  driver::Stream stream_;
  driver::Event begin_;
  std::array<driver::Event, kDomainStages.size()> end_;
  driver::PinnedBuffer up_;
  driver::GrowingPinnedBuffer down_;
  driver::DeviceBuffer buffer_;
  driver::DeviceBuffer own_rows_;
  // The last one is in use. Outgrown ones are kept: the driver gives memory back only when the
  // device is idle, and all would wait for that.
  std::vector<driver::DeviceBuffer> workspaces_;
  std::size_t most_workspace_ = 0;
  Cascade::Resize resize_;

  std::size_t workspace() const { return workspaces_.empty() ? 0 : workspaces_.back().size(); }
  // Grows towards `wanted` bytes as far as memory allows. Nothing may be queued.
  Status grow(std::size_t wanted);
};

}  // namespace hmmjit::gpu
