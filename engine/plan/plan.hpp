// A plan: which kernel scores a model of one length on one device, and why. Plain data.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "plan/device_traits.hpp"
#include "plan/kernel_variant.hpp"
#include "plan/tuning.hpp"

namespace hmmjit::plan {

/// One variant with one list of constants, ready to be rendered. Two candidates with equal
/// `variant` and `constants` are the same kernel.
struct Candidate {
  const KernelVariant* variant = nullptr;  ///< static storage
  Constants constants;
  LaunchShape launch;
  Expected expected;
  Occupancy occupancy;         ///< from the expected registers and the launch shape
  double predicted_gcups = 0;  ///< real cells (model length x residues) a second / 1e9
};

/// The longest model that the candidate's kernel scores whole.
int positions_served(const Candidate& candidate);
/// Launches that score a model of that length, one for each tile; 1 where there are none.
int tiles_of(const Candidate& candidate, int model_length);

struct Rejection {
  std::string variant;
  std::string reason;
};

struct Plan {
  Stage stage = Stage::kSsv;
  int model_length = 0;  ///< M
  int class_length = 0;  ///< size class of M: what the constants were chosen for
  int alphabet_codes = 0;
  DeviceTraits device;
  std::string policy;  ///< "default", "cudampfpp"
  /// Stage::kHost only: family and parameters of the host program's problem, which stand in place
  /// of the lengths (both 1).
  std::string problem = {};
  std::string tuned = {};  ///< what was measured, where a tuning table decided; else empty
  Candidate chosen;
  std::vector<Candidate> fallbacks;  ///< what to try, in order, when `chosen` fails its gate
  std::vector<Rejection> rejected;   ///< every variant that is neither, with the reason
  /// Cells computed over real cells, minus 1.
  double padding() const {
    return static_cast<double>(chosen.expected.covered_length) / model_length - 1.0;
  }
};

/// Unit of predicted_gcups for people: "GCUPS", or "giga-items a second" of a host's kernels.
std::string_view rate_unit(Stage stage);

enum class Policy {
  kDefault,    ///< highest predicted GCUPS by the measured bounds
  kCudampfpp,  ///< equations 4 and 5 of CUDAMPF++: most sequences per warp that fit, smallest H
};
std::string_view policy_name(Policy policy);
std::optional<Policy> find_policy(std::string_view name);

struct PlanOptions {
  Policy policy = Policy::kDefault;
  std::string variant;  ///< forced by name; empty: the policy chooses
  /// Only kernels that decide every target: none that speculates, and those that complete such
  /// kernels before the others.
  bool exact = false;
  /// Specialise for M itself instead of its size class: no padded cells beyond the variant's own
  /// rounding, one kernel per model length (benchmarks, long runs of a single model).
  bool exact_length = false;
  /// Measured choices go before predictions, for the default policy and unless a variant is forced.
  /// Must outlive the call; null: none.
  const TuningTable* tuned = nullptr;
};

/// Longest model a plan is made for. The longest of public libraries have some 10^4 positions;
/// far beyond, what is counted per model in 32 bits on the device would overflow.
inline constexpr int kMostPositions = 1'000'000;

/// Plans one stage for a model of length M. Deterministic, needs no GPU. Fails with kUsage for an
/// unknown or unsuitable forced variant, kInput for a length below 1 or beyond kMostPositions,
/// kCompile when no variant accepts (the reasons are in the message).
Result<Plan> make_plan(Stage stage, int model_length, int alphabet_codes,
                       const DeviceTraits& device, const PlanOptions& options = {});

/// One variant's configurations for a problem, before the device was asked.
struct Offer {
  const KernelVariant* variant = nullptr;
  Verdict verdict;
  std::vector<Candidate> configurations;  ///< constants, launch and expected are set
  bool competes = false;                  ///< whatever its entry says of the default policy
};

/// Completes a plan that says what for (stage, lengths or problem, device): of all configurations
/// that fit the device, the best by `policy` and the order of the rest, with the reason for each
/// variant passed over. A configuration that `tuned` found best for the plan goes first under the
/// default policy, unless a variant is forced. Errors as make_plan; `where` opens their messages.
Status choose(Plan& plan, std::vector<Offer> offers, Policy policy,
              const std::string& forced_variant, const std::string& where,
              const TuningTable* tuned = nullptr);

/// The size class of a model length: the smallest class length >= M. Kernels are specialised for
/// class lengths, so that a library of models needs few kernels (see length_bucket.cpp).
int class_length(int model_length);

/// "sm_90": the architecture a plan's kernel is compiled for when the compiler knows it.
std::string architecture_name(const DeviceTraits& device);

/// Multi-line text for people; one JSON object for programs (stable field names, one line).
std::string plan_text(const Plan& plan);
std::string plan_json(const Plan& plan);

}  // namespace hmmjit::plan
