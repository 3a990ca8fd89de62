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

/// The longest model that one launch of the candidate's kernel scores.
int positions_served(const Candidate& candidate);
/// Launches for a model of that length: one per tile, or 1 without tiles.
int tiles_of(const Candidate& candidate, int model_length);

struct Rejection {
  std::string variant;
  std::string reason;
};

struct Plan {
  Stage stage = Stage::kSsv;
  int model_length = 0;  ///< M
  int class_length = 0;  ///< size class of M, for which the constants were chosen
  int alphabet_codes = 0;
  DeviceTraits device;
  std::string policy;  ///< "default", "cudampfpp"
  /// Stage::kHost only: family and parameters of the host program's problem; both lengths are then
  /// 1.
  std::string problem = {};
  std::string tuned = {};  ///< the measurement, if a tuning table decided; otherwise empty
  Candidate chosen;
  std::vector<Candidate> fallbacks;  ///< candidates to try, in order, if `chosen` fails its promise
                                     ///< check
  std::vector<Rejection> rejected;   ///< all other variants, each with the reason
  /// Cells computed over real cells, minus 1.
  double padding() const {
    if (!chosen.expected.padded) return 0;
    return static_cast<double>(chosen.expected.covered_length) / model_length - 1.0;
  }
};

/// Display unit of predicted_gcups: "GCUPS", or "giga-items a second" for host kernels.
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
  /// Only kernels that decide every target: no speculating ones, and those that complete such
  /// kernels first.
  bool exact = false;
  /// Specialise for M itself instead of its size class: no padded cells except the variant's own
  /// rounding, one kernel per model length (benchmarks, long runs of a single model).
  bool exact_length = false;
  /// Measured choices take precedence over predictions under the default policy, unless a variant
  /// is forced. Must outlive the call; null: none.
  const TuningTable* tuned = nullptr;
};

/// Longest model that can be planned. The longest models of public libraries have some 10^4
/// positions; far above, the device's 32-bit counters per model would overflow.
inline constexpr int kMostPositions = 1'000'000;

/// Plans one stage for a model of length M. Deterministic, needs no GPU. Fails with kUsage for an
/// unknown or unsuitable forced variant, kInput for a length below 1 or beyond kMostPositions,
/// kCompile when no variant accepts (the reasons are in the message).
Result<Plan> make_plan(Stage stage, int model_length, int alphabet_codes,
                       const DeviceTraits& device, const PlanOptions& options = {});

/// One variant's configurations for a problem, not yet checked against the device.
struct Offer {
  const KernelVariant* variant = nullptr;
  Verdict verdict;
  std::vector<Candidate> configurations;  ///< constants, launch and expected are set
  bool competes = false;                  ///< overrides the flag of its entry
};

/// Completes a plan whose inputs are set (stage, lengths or problem, device): of all configurations
/// that fit the device it chooses the best by `policy`, orders the others, and gives the reason for
/// each rejected variant. Under the default policy the configuration that `tuned` found best comes
/// first, unless a variant is forced. Fails as make_plan does; `where` opens the messages.
Status choose(Plan& plan, std::vector<Offer> offers, Policy policy,
              const std::string& forced_variant, const std::string& where,
              const TuningTable* tuned = nullptr);

/// The size class of a model length: the smallest class length >= M. Kernels are specialised for
/// class lengths, so that a library of models needs few kernels (see length_bucket.cpp).
int class_length(int model_length);

/// "sm_90": the architecture a plan's kernel is compiled for when the compiler knows it.
std::string architecture_name(const DeviceTraits& device);

/// The kernel catalogue as Markdown (docs/kernels.md): every entry of every stage, the longest
/// model that it takes on some devices of the table, and the resources it promises.
std::string catalogue_text();

/// Multi-line text for people; one JSON object for programs (stable field names, one line).
std::string plan_text(const Plan& plan);
std::string plan_json(const Plan& plan);

}  // namespace hmmjit::plan
