// Exactness and speed of compiled filter kernels on a device.
//
// A kernel must first reproduce the CPU filters' answers for all targets: SSV, MSV and Viterbi
// scores exactly (the exact kernel scores targets that a speculating Viterbi kernel flags), bias
// and Forward scores within the guard that the search relies on. Device events then time it. GCUPS
// count real cells, i.e. model length times residues, without padding.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/oracle.hpp"
#include "bench/targets.hpp"
#include "core/error.hpp"
#include "driver/driver.hpp"
#include "gpu/kernel_source.hpp"
#include "model/profile.hpp"
#include "plan/plan.hpp"
#include "plan/tuning.hpp"

namespace hmmjit::bench {

struct Settings {
  std::uint64_t residues = 0;  ///< copies the targets up to this total; 0: one copy
  std::size_t distinct = 0;    ///< maximum number of distinct targets; 0: all
  int repeats = 3;             ///< timed launches after a warm-up
  /// A kernel predicted to take more seconds than this for all targets is measured on one copy of a
  /// sample that takes about this long, so that designs of earlier papers can be compared, too.
  double seconds = 0.5;
  int threads = 0;   ///< for the CPU filters; 0: all cores
  double F1 = 0.02;  ///< threshold of the first filters
  std::function<void(const std::string&)> on_progress = {};
};

/// One kernel on one model.
struct Measurement {
  plan::Stage stage = plan::Stage::kSsv;
  std::string model;
  int model_length = 0;
  plan::Candidate candidate;
  std::string refused;  ///< reason why it was not run; else empty

  std::uint64_t targets = 0, residues = 0;  ///< processed by a launch
  bool sample = false;                      ///< a sample instead of all targets
  std::uint64_t wrong = 0;                  ///< answers that differ
  std::string first_wrong;                  ///< description of the first one
  std::uint64_t flagged = 0;                ///< left to the exact kernel by design
  double of_guard = 0;                      ///< largest difference divided by its guard (bias,
                                            ///< Forward)

  double milliseconds = 0;  ///< median over all launches
  double fastest = 0, slowest = 0, exact_milliseconds = 0;
  int launches = 0;
  double gcups = 0;
  int registers = 0, local_bytes = 0, blocks_per_sm = 0;
  bool compiled = false;  ///< compiled now, i.e. not served from the cache
  double obtain_milliseconds = 0, load_milliseconds = 0;

  bool exact() const { return refused.empty() && wrong == 0; }
  /// Measured rate divided by the predicted one.
  double of_prediction() const {
    return candidate.predicted_gcups > 0 ? gcups / candidate.predicted_gcups : 0;
  }
};

/// One device, one set of targets, one model at a time. Not thread-safe.
class Bench {
 public:
  /// `kernels` must outlive it. Fails with kResources if the targets do not fit on the device.
  static Result<std::unique_ptr<Bench>> create(std::shared_ptr<driver::Driver> driver, int ordinal,
                                               gpu::KernelSource& kernels,
                                               const Sequences& sequences, Settings settings);
  ~Bench();

  const plan::DeviceTraits& device() const;
  const DeviceTargets& targets() const;
  std::size_t distinct() const;

  void use_model(std::shared_ptr<const SearchModel> model);
  /// The reference for all measurements with this model.
  Oracle& oracle();

  /// Starts making a candidate's kernel ahead of its measurement.
  void prepare(const plan::Plan& plan, const plan::Candidate& candidate);
  /// Failures of a kernel are recorded in the measurement; an error means that the device failed.
  Result<Measurement> measure(const plan::Plan& plan, const plan::Candidate& candidate);

 private:
  struct State;
  explicit Bench(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

struct TuneResult {
  std::optional<plan::TunedChoice> choice;  ///< empty if no candidate was exact
  std::vector<Measurement> measurements;    ///< the planner's first choice first
};

/// Measures the candidates that compete for `plan`, at most `most_candidates` of each variant, on
/// the current model, which may be shorter than the plan's, and chooses the fastest one with exact
/// scores. It must beat the planner's own first choice by more than the noise (1 %).
Result<TuneResult> tune(Bench& bench, const plan::Plan& plan, const std::string& catalogue,
                        std::size_t most_candidates);

/// The chosen candidate and its fallbacks, at most `most` per variant (0: all).
std::vector<plan::Candidate> candidates_of(const plan::Plan& plan, std::size_t most = 0);

/// "L 8, H 13": a kernel's constants, without the prefix k.
std::string constants_text(const plan::Constants& constants);

}  // namespace hmmjit::bench
