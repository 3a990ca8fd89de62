// A kernel variant as the planner sees it: one entry in the table of its stage.
//
// A new variant is one template, kernel_templates/<stage>/<name>.cu, and one entry in
// engine/plan/variants/<stage>.cpp; what has to follow them, and the tests that say so, are listed
// in docs/new-kernel.md. Order in a table is preference among equals; the last
// entry of a stage must accept every model on every device.
//
// Templates are CUDA C++ without toolkit headers. They get their constants from
//   #include "plan_constants.h"
// which the renderer replaces by
//   namespace plan_constants { enum : int { kS = 4 }; ... }
// Every constant of the list must be used by the template or a file it includes, and every
// plan_constants name used there must be in the list; otherwise rendering fails. Other includes
// are resolved inside kernel_templates/ only ("common/launch_params.h" from its root, or relative
// to the including file). The kernel is `extern "C" __global__`, named by `entry_name`.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/device_traits.hpp"

namespace hmmjit::plan {

/// The stages of a search, and the kernels that a host program brings: kHost has no catalogue here.
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
inline constexpr int kStages = 9;          ///< of a search
std::string_view stage_name(Stage stage);  ///< "ssv", "msv", ..., "envelope", "host"
std::optional<Stage> find_stage(std::string_view name);

/// What a variant may know of a model. Nothing else may reach a kernel as a constant: scores,
/// the true length and the target set are launch parameters.
struct ModelShape {
  Stage stage = Stage::kSsv;
  int length = 0;          ///< positions the kernel must cover: M rounded up to its size class
  int alphabet_codes = 0;  ///< Kp; residue codes 0..Kp-1, 31 pads
};

/// How one DP cell is held.
enum class CellType {
  kByte,         ///< four in a 32-bit word
  kWord,         ///< signed 16 bit, two in a word
  kHalf,         ///< half precision holding integers, two in a word
  kByteAndHalf,  ///< model split between both
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
  /// Value of a constant that must exist (a missing name is a bug: throws std::out_of_range).
  std::int64_t at(std::string_view name) const;
  std::optional<std::int64_t> find(std::string_view name) const;
  std::span<const std::pair<std::string, std::int64_t>> list() const { return list_; }
  bool operator==(const Constants&) const = default;

 private:
  std::vector<std::pair<std::string, std::int64_t>> list_;
};

/// A launch starts as many blocks as are resident; their warps fetch batches of targets from a
/// counter.
struct LaunchShape {
  int block_threads = 0;
  std::int64_t dynamic_shared_bytes = 0;
  bool operator==(const LaunchShape&) const = default;
};

/// What the author of a variant promises; compared with the compiled image and, on a device, with
/// the driver's occupancy. `registers` is a ceiling: an image that needs more, or spills, is
/// rejected and the next candidate taken.
struct Expected {
  int registers = 0;        ///< per thread
  int covered_length = 0;   ///< model positions computed, >= shape.length
  bool any_length = false;  ///< serves models of every length: nothing depends on it
  bool padded = true;       ///< computes covered_length positions of shorter models, too
  /// Of a kernel that takes a model in tiles, one launch each: positions of a tile. 0: one launch.
  int tile_length = 0;
  /// Device memory that whoever launches provides, uninitialised, beside tables, lists and results:
  /// bytes for each warp of the grid (rows of cells), and bytes for each residue of the database
  /// (what a tile of the model hands to the next one).
  std::int64_t scratch_per_warp = 0;
  int scratch_per_residue = 0;
  /// CUDAMPF++'s S, and the register words of a row in one lane (its H, or Q where S is 1); 0: the
  /// row lies elsewhere.
  int sequences_per_warp = 1, row_words = 0;
  double cells_per_clock_per_sm = 0;  ///< sustained, over covered cells
  /// Of the domain stage's kernels: items that share that rate, each of which takes so many times as
  /// long for a cell.
  double items_per_sm = 1;
  int local_bytes = 0;                ///< local memory a thread may use by design; more is a spill
  std::string_view binding_resource =
      {};  ///< "shared memory bandwidth", "integer pipe", "issue", ...
  /// Of a variant whose tables or rows may lie in either memory: "shared" or "global". Empty where
  /// there is no such choice.
  std::string_view placement = {};
};

constexpr std::string_view placement_name(bool shared) { return shared ? "shared" : "global"; }

/// Accepted, or the reason why not.
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
  std::string_view template_file = {};  ///< "ssv/multi_lane_byte.cu", below kernel_templates/
  std::string_view entry_name = {};     ///< the extern "C" kernel
  CellType cell = CellType::kByte;
  /// False: never chosen by the default policy unless forced by name or nothing else is left
  /// (the designs of earlier papers, kept for comparison).
  bool competes = true;
  /// Leaves the targets of which it is not sure to a kernel of the same stage that is exact.
  bool speculates = false;
  /// Made to do what those leave: competes where only exact kernels are asked for.
  bool completes = false;

  Verdict (*accepts)(const ModelShape&, const DeviceTraits&) = nullptr;
  /// Candidate constant lists for this shape (different S, warps, ...), the author's favourite
  /// first; never empty for an accepted shape. They must depend on nothing but the arguments.
  std::vector<Constants> (*constants)(const ModelShape&, const DeviceTraits&) = nullptr;
  LaunchShape (*launch_shape)(const ModelShape&, const Constants&, const DeviceTraits&) = nullptr;
  Expected (*expected)(const ModelShape&, const Constants&, const DeviceTraits&) = nullptr;

  std::span<const std::string_view> references = {};  ///< "Jiang & Ganesan 2016 (CUDAMPF)", ...
  std::string_view summary = {};                      ///< one sentence for the catalogue
  /// Compiler options beyond the common ones ("--fmad=false"); part of the cache key.
  std::span<const std::string_view> compile_options = {};
};

/// The ordered entries of a stage; defined in variants/<stage>.cpp. May be empty.
std::span<const KernelVariant> variants_of(Stage stage);
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
