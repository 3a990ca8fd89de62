// A plan: which kernel scores a model of one length on one device, and why. Plain data.
#pragma once

#include <string>
#include <vector>

#include "core/error.hpp"
#include "plan/device_traits.hpp"
#include "plan/kernel_variant.hpp"
#include "plan/tuning.hpp"

namespace hmmjit::plan {

/// A variant with one list of constants, ready to be rendered. Two candidates with equal `variant`
/// and `constants` are the same kernel.
struct Candidate {
  const KernelVariant* variant = nullptr;  ///< static storage
  Constants constants;
  Expected expected;
  Occupancy occupancy;         ///< from the expected registers and the launch shape
  double predicted_gcups = 0;  ///< real cells (model length x residues) per second / 1e9
};

/// The longest model that one launch of the candidate's kernel can score.
int positions_served(const Candidate& candidate);
/// Number of launches for a model of that length: one per tile, or 1 without tiles.
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
  /// Only for Stage::kHost: family and parameters of the host program's problem; both lengths are
  /// then 1.
  std::string problem = {};
  std::string tuned = {};  ///< the measurement if a tuning table decided, else empty
  Candidate chosen;
  std::vector<Candidate> fallbacks;  ///< to try in order if `chosen` breaks its promise
  std::vector<Rejection> rejected;   ///< all other variants, each with its reason
  /// Computed cells divided by real cells, minus 1.
  double padding() const {
    if (!chosen.expected.padded || chosen.expected.any_length) return 0;
    return static_cast<double>(chosen.expected.covered_length) / model_length - 1.0;
  }
};

/// Display unit of predicted_gcups: "GCUPS", or "giga-items a second" for host kernels.
std::string_view rate_unit(Stage stage);

enum class Policy {
  kDefault,    ///< highest GCUPS as predicted by the measured bounds
  kCudampfpp,  ///< equations 4 and 5 of CUDAMPF++: most sequences per warp that fit, smallest H
};
std::string_view policy_name(Policy policy);
std::optional<Policy> find_policy(std::string_view name);

struct PlanOptions {
  Policy policy = Policy::kDefault;
  std::string variant;  ///< forced by name; empty: the policy chooses
  /// Only kernels that decide every target: no speculating ones, and kernels that complete these
  /// come first.
  bool exact = false;
  /// Specialise for M itself instead of its size class: no padded cells except from the variant's
  /// own rounding, one kernel per model length (for benchmarks and long runs with one model).
  bool exact_length = false;
  /// Under the default policy, measured choices take precedence over predictions unless a variant
  /// is forced. Must outlive the call; null: none.
  const TuningTable* tuned = nullptr;
};

/// Longest model that can be planned. The longest models in public libraries have some 10^4
/// positions; far above, the device's 32-bit counters per model would overflow.
inline constexpr int kMostPositions = 1'000'000;

/// Plans one stage for a model of length M. Deterministic; needs no GPU. Fails with kUsage for an
/// unknown or unsuitable forced variant, kInput for a length below 1 or above kMostPositions, and
/// kCompile if no variant accepts the model (the message has the reasons).
Result<Plan> make_plan(Stage stage, int model_length, int alphabet_codes,
                       const DeviceTraits& device, const PlanOptions& options = {});

/// One variant's configurations for a problem, not yet checked against the device.
struct Offer {
  const KernelVariant* variant = nullptr;
  Verdict verdict;
  std::vector<Candidate> configurations;  ///< constants and expected are set
  bool competes = false;                  ///< overrides the flag of its entry
};

/// Completes a plan whose inputs are set (stage, lengths or problem, device): chooses the best
/// configuration that fits the device by `policy`, orders the others, and states the reason for
/// each rejected variant. Under the default policy the configuration that `tuned` found best comes
/// first, unless a variant is forced. Fails as make_plan does; `where` begins the messages.
Status choose(Plan& plan, std::vector<Offer> offers, Policy policy,
              const std::string& forced_variant, const std::string& where,
              const TuningTable* tuned = nullptr);

/// The size class of a model length: the smallest class length >= M. Kernels are specialised for
/// class lengths, so that a library of models needs few kernels (see size_class.cpp).
int class_length(int model_length);

/// "sm_90": the architecture for which a plan's kernel is compiled if the compiler knows it.
std::string architecture_name(const DeviceTraits& device);

/// The kernel catalogue as Markdown (docs/kernels.md): every entry of every stage, the longest
/// model it accepts on some of the table's devices, and the resources that competing ones promise.
std::string catalogue_text();

/// Multi-line text for people, or one JSON object for programs (one line; docs/outputs.md).
std::string plan_text(const Plan& plan);
std::string plan_json(const Plan& plan);

}  // namespace hmmjit::plan
