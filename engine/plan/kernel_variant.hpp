// A kernel variant as the planner sees it: one entry in its stage's table.
//
// A new variant is one template, kernel_templates/<stage>/<name>.cu, and one entry in
// engine/plan/variants/<stage>.cpp; docs/new-kernel.md lists the other steps and the tests that
// check them. Table order breaks ties. If no entry of a stage accepts a model, the CPU does the
// stage.
//
// Templates are CUDA C++ without toolkit headers. They get their constants from
//   #include "plan_constants.h"
// for which the renderer substitutes
//   namespace plan_constants { enum : int { kS = 4 }; ... }
// Every constant in the list must be used by the template or a file it includes, and every
// plan_constants name used there must be in the list; otherwise rendering fails. Other includes are
// resolved only inside kernel_templates/ ("common/launch_params.h" from its root, or relative to
// the including file). The kernel is `extern "C" __global__`, named by `entry_name`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "plan/device_traits.hpp"

namespace hmmjit {
class JsonObject;
}

namespace hmmjit::plan {

/// The stages of a search; kHost is for kernels that a host program brings (no catalogue here).
enum class Stage {
  kSsv,
  kMsv,
  kBias,
  kViterbi,
  kForward,
  kGate,
  kParser,
  kEnsemble,
  kEnvelope,
  kHost
};
inline constexpr int kStages = 9;          ///< search stages, without kHost
std::string_view stage_name(Stage stage);  ///< "ssv", "msv", ..., "envelope", "host"
std::optional<Stage> find_stage(std::string_view name);

/// What a variant may know about a model. Nothing else may become a kernel constant: scores, the
/// true length and the targets are launch parameters.
struct ModelShape {
  Stage stage = Stage::kSsv;
  int length = 0;          ///< positions the kernel must cover: M rounded up to its size class
  int alphabet_codes = 0;  ///< Kp; residue codes 0..Kp-1, 31 pads
};

/// Representation of one DP cell.
enum class CellType {
  kByte,         ///< four in a 32-bit word
  kWord,         ///< signed 16-bit, two in a word
  kHalf,         ///< half precision holding integers, two in a word
  kByteAndHalf,  ///< the model split between the two
  kFloat,
};
std::string_view cell_type_name(CellType cell);

/// Constants of one kernel in template order: {"kS", 4}, {"kL", 8}, {"kW", 32}, {"kH", 13}, ...
/// Terms as in CUDAMPF++ (Jiang, Ganesan, Yao 2017): S sequences per warp, L = 32/S lanes per
/// sequence, W cells per register row of a sequence, H words per lane and row, Q: H of S = 1.
class Constants {
 public:
  Constants() = default;
  Constants(std::initializer_list<std::pair<std::string_view, std::int64_t>> list);
  void add(std::string_view name, std::int64_t value);
  /// Returns the value of a constant; throws std::out_of_range if it is missing (a bug).
  std::int64_t at(std::string_view name) const;
  std::optional<std::int64_t> find(std::string_view name) const;
  std::span<const std::pair<std::string, std::int64_t>> list() const { return list_; }
  bool operator==(const Constants&) const = default;

 private:
  std::vector<std::pair<std::string, std::int64_t>> list_;
};
/// Writes the member "constants": an object with all of them, in order.
void write_constants(JsonObject& json, const Constants& constants);

/// A launch starts as many blocks as can be resident; their warps fetch batches of targets through
/// a counter.
struct LaunchShape {
  int block_threads = 0;
  std::int64_t dynamic_shared_bytes = 0;
  bool operator==(const LaunchShape&) const = default;
};

/// The launch of a kernel, and what its author promises; checked against the compiled image and, on
/// a device, against the driver's occupancy. `registers` is a ceiling: an image that needs more, or
/// spills, is rejected and the next candidate is tried.
struct Expected {
  LaunchShape launch = {};
  int registers = 0;        ///< per thread
  int covered_length = 0;   ///< number of model positions computed, >= shape.length
  bool any_length = false;  ///< one kernel serves models of every length
  bool padded = true;       ///< computes covered_length positions even for shorter models
  /// Positions per tile for kernels that split a model into tiles, one launch each; 0: one launch.
  int tile_length = 0;
  /// Uninitialised device memory that the caller provides in addition to tables, lists and results:
  /// bytes per warp of the grid (for rows of cells), and bytes per residue of the database (for the
  /// boundary that one tile of the model passes to the next).
  std::int64_t scratch_per_warp = 0;
  int scratch_per_residue = 0;
  /// CUDAMPF++'s S, and the register words of a row per lane (its H, or Q if S is 1). 0: the row is
  /// not in registers.
  int sequences_per_warp = 1, row_words = 0;
  double cells_per_clock_per_sm = 0;  ///< sustained, counting covered cells
  /// Domain stage: number of items that share this rate; the time per cell of each is that many
  /// times as long.
  double items_per_sm = 1;
  int local_bytes = 0;  ///< local memory per thread by design; more means a spill
  std::string_view binding_resource =
      {};  ///< "shared memory bandwidth", "integer pipe", "issue", ...
  /// Where tables or rows are if the variant has both forms: "shared" or "global"; otherwise empty.
  std::string_view placement = {};
};

constexpr std::string_view placement_name(bool shared) { return shared ? "shared" : "global"; }

/// Accepted, or the reason for the rejection.
struct Verdict {
  bool accepted = true;
  std::string reason;
  static Verdict accept() { return {}; }
  static Verdict reject(std::string why) { return {false, std::move(why)}; }
};

/// One catalogue entry; all functions are pure.
struct KernelVariant {
  std::string_view name = {};  ///< "multi_lane_byte"
  Stage stage = Stage::kSsv;
  std::string_view template_file = {};  ///< "ssv/multi_lane.cu", below kernel_templates/
  std::string_view entry_name = {};     ///< the extern "C" kernel
  CellType cell = CellType::kByte;
  /// False: chosen only by name or if nothing else is left (designs of earlier papers, kernels of
  /// other programs).
  bool competes = true;
  /// Leaves targets that it cannot decide to an exact kernel of the same stage.
  bool speculates = false;
  /// Decides the targets that a speculating kernel has left; competes only if exact kernels are
  /// requested.
  bool completes = false;

  Verdict (*accepts)(const ModelShape&, const DeviceTraits&) = nullptr;
  /// Candidate constant lists for this shape (different S, warps, ...), the preferred one first;
  /// never empty for an accepted shape. May depend only on the arguments.
  std::vector<Constants> (*constants)(const ModelShape&, const DeviceTraits&) = nullptr;
  Expected (*expected)(const ModelShape&, const Constants&, const DeviceTraits&) = nullptr;
  /// Cells per clock and SM for a model of another length than the kernel was made for; null: that
  /// of expected().
  double (*rate)(const ModelShape&, const Constants&, const DeviceTraits&) = nullptr;

  std::span<const std::string_view> references = {};  ///< "Jiang & Ganesan 2016 (CUDAMPF)", ...
  std::string_view summary = {};                      ///< one sentence for the catalogue
  /// Compiler options beyond the common ones ("--fmad=false"); part of the cache key.
  std::span<const std::string_view> compile_options = {};
};

/// The ordered entries of a stage; defined in variants/<stage>.cpp. May be empty.
std::span<const KernelVariant> variants_of(Stage stage);
/// Fails with kUsage unless a stage has a variant of this name. `where`: of the error.
Status check_variant(std::string_view name, std::string where);
std::span<const KernelVariant> ssv_variants();
std::span<const KernelVariant> msv_variants();
std::span<const KernelVariant> bias_variants();
std::span<const KernelVariant> viterbi_variants();
std::span<const KernelVariant> forward_variants();
std::span<const KernelVariant> gate_variants();
std::span<const KernelVariant> parser_variants();
std::span<const KernelVariant> ensemble_variants();
std::span<const KernelVariant> envelope_variants();

}  // namespace hmmjit::plan
