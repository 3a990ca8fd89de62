// Exactness and speed of compiled filter kernels on a device.
//
// Every kernel first has to give the CPU filters' answers for all targets: SSV, MSV and Viterbi
// scores equal (what a speculating Viterbi kernel flags is scored by the exact kernel, whose
// answers count), bias and Forward scores within the guard the search relies on. Then it is timed
// by device events. GCUPS count real cells, model length times residues, whatever a kernel pads.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/oracle.hpp"
#include "bench/targets.hpp"
#include "core/error.hpp"
#include "driver/driver.hpp"
#include "gpu/kernel_source.hpp"
#include "model/profile.hpp"
#include "plan/plan.hpp"

namespace hmmjit::bench {

struct Settings {
  std::uint64_t residues = 0;  ///< copies of the targets until there are so many; 0: one copy
  std::size_t distinct = 0;    ///< at most so many distinct targets; 0: all
  int repeats = 3;             ///< timed launches after the first
  /// A kernel predicted to take longer over all targets is measured on one copy of a sample that
  /// takes about this long: the designs of earlier papers beside those of today.
  double seconds = 0.5;
  int threads = 0;   ///< of the CPU filters; 0: all cores
  double F1 = 0.02;  ///< gate of the first filters
  std::function<void(const std::string&)> on_progress = {};
};

/// One kernel on one model.
struct Measurement {
  plan::Stage stage = plan::Stage::kSsv;
  std::string model;
  int model_length = 0;
  plan::Candidate candidate;
  std::string refused;  ///< why it was not run; empty when it was

  std::uint64_t targets = 0, residues = 0;  ///< launched over
  bool sample = false;                      ///< not over all targets
  std::uint64_t wrong = 0;                  ///< answers that differ
  std::string first_wrong;                  ///< what the first of them was
  std::uint64_t flagged = 0;                ///< left to the exact kernel by design
  double of_guard = 0;                      ///< largest difference over its guard (bias, Forward)

  double milliseconds = 0;  ///< median of the launches
  double fastest = 0, slowest = 0, exact_milliseconds = 0;
  int launches = 0;
  double gcups = 0;
  int registers = 0, local_bytes = 0, blocks_per_sm = 0;
  bool compiled = false;  ///< now, rather than served from the cache
  double obtain_milliseconds = 0, load_milliseconds = 0;

  bool exact() const { return refused.empty() && wrong == 0; }
  /// Share of what the plan predicts.
  double of_prediction() const {
    return candidate.predicted_gcups > 0 ? gcups / candidate.predicted_gcups : 0;
  }
};

/// One device, one set of targets, one model at a time. One thread.
class Bench {
 public:
  /// `kernels` must outlive it. Fails with kResources when the targets do not fit the device.
  static Result<std::unique_ptr<Bench>> create(std::shared_ptr<driver::Driver> driver, int ordinal,
                                               gpu::KernelSource& kernels,
                                               const Sequences& sequences, Settings settings);
  ~Bench();

  const plan::DeviceTraits& device() const;
  const DeviceTargets& targets() const;
  std::size_t distinct() const;

  void use_model(std::shared_ptr<const SearchModel> model);
  /// The reference for all measurements of this model.
  Oracle& oracle();

  /// Starts making a candidate's kernel, so that it is there when measured.
  void prepare(const plan::Plan& plan, const plan::Candidate& candidate);
  /// Whatever goes wrong with a kernel is in the measurement; an error is one of the device.
  Result<Measurement> measure(const plan::Plan& plan, const plan::Candidate& candidate);

 private:
  struct State;
  explicit Bench(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The chosen candidate and its fallbacks, at most `most` of each variant (0: all).
std::vector<plan::Candidate> candidates_of(const plan::Plan& plan, std::size_t most = 0);

/// "L 8, H 13": the constants of a kernel without the k.
std::string constants_text(const plan::Constants& constants);

}  // namespace hmmjit::bench
