// Parameters of the kernels that follow SSV and MSV (bias filter, Viterbi, Forward): plain structs with the same
// bytes on host and device. They process a list of targets, usually the survivors of the previous stage, and answer
// per list entry ("slot").
#ifndef HMMJIT_KERNEL_LATE_PARAMS_H_
#define HMMJIT_KERNEL_LATE_PARAMS_H_

#include "common/launch_params.h"

namespace hmmjit_device {

/// Targets of one launch, as indices in sorted order: every `stride`-th word of `targets`, so that a Survivor array
/// can be used directly (stride 2). The order affects speed only: longest first keeps the sequences of one warp at
/// nearly the same length.
struct TargetList {
  const u32* targets;  ///< null: all targets of the database
  const u32* count;    ///< entries, in device memory; null: fixed_count
  u32 stride;
  u32 fixed_count;
};

/// Counters of the launches of one stage over one list; zeroed by the host before the first.
/// `next` is zeroed again before each further launch.
struct LateCounters {
  u32 next;          ///< first slot not taken yet
  u32 flagged;       ///< entries of `flagged`
  u32 next_flagged;  ///< first entry of `flagged` not taken yet
  u32 reserved;
};

// ---- Viterbi ----

/// Rows of WordFilterParams::transitions, natural node order; those "in" lead from node k-1 to k.
enum WordTransition : u32 {
  kWordEntry = 0,
  kWordMmIn,
  kWordImIn,
  kWordDmIn,
  kWordMdOut,
  kWordMiOut,
  kWordIiOut,
  kWordDdOut,
  kWordTransitions,
};

/// Constants of the packed 16-bit Viterbi recurrence, whose additions wrap around, and the proof that it is exact
/// all the same. Cells are stored relative to the begin score B (constant as long as the J state does not matter)
/// plus kWordShift, so that neither tables nor cells depend on the length.
///
/// Call a value irrelevant when it is at most kWordIrrelevant (relative to B). Costs c < 0 below
/// kWordClamp are raised to it, cells below kWordFloor to that.
///  - No addition wraps upwards: a cell above kWordTop flags its target for the exact kernel the
///    moment it is computed, and until then no cell exceeds kWordTop, no match score
///    kWordMostScore: kWordShift + 8100 + 4000 = 32700.
///  - No addition wraps downwards: floor + clamp = -32768, and before a match score is added the
///    maximum with the entry is at least kWordShift + kWordLeastEntry = -2000.
///  - A path contribution that reaches M(i,k) is either the true one or irrelevant in both
///    recurrences: costs only lower a value, a raised cost leaves at most kWordTop + kWordClamp =
///    kWordIrrelevant, a raised cell kWordFloor - kWordShift = -22668, and true values that
///    saturate at -32768 are below both. The entry B->M_k >= kWordLeastEntry beats all of them,
///    so the maximum in M(i,k) is the true one. After the match score M is true or irrelevant.
///  - Hence the best end score is true unless irrelevant; such targets are flagged too.
/// Models outside the preconditions (host: viterbi_wavefront_gap) take the exact kernel.
/// With J <= N the true begin score is constant: best + ej <= base; anything better is flagged.
enum : int {
  kWordShift = 20600,
  kWordTop = 8100,  ///< above 500 + 7512, where J matters at L = 100,000 at the latest
  kWordMostScore = 4000,
  kWordFloor = -2068,
  kWordClamp = -30700,
  kWordIrrelevant = kWordTop + kWordClamp,
  kWordLeastEntry = kWordIrrelevant,
};
static_assert(kWordShift + kWordTop + kWordMostScore <= 32767, "no wrap upwards");
static_assert(kWordFloor + kWordClamp >= -32768, "no wrap downwards");
static_assert(kWordShift + kWordLeastEntry + kWordClamp >= -32768, "no wrap downwards");
static_assert(kWordFloor - kWordShift <= kWordIrrelevant, "the floor is irrelevant");

/// One result of a Viterbi launch: the word C in bits 0..15, a FilterStatus in bits 16..17.
/// kStatusNoResult: flagged, the exact kernel decides.
typedef u32 WordResult;

/// Boundary column between two tiles of a model: M, I, D of the last node of one row.
struct WordBoundary {
  u32 match_insert;
  u32 deletion;
};

struct WordFilterParams {
  DatabaseView database;
  TargetList list;
  const s16* move;         ///< [length classes] N/C/J -> B at this length
  const s16* emissions;    ///< [32][stride] at x*stride + k-1; -32768 impossible
  const s16* transitions;  ///< [kWordTransitions][stride], -32768 impossible
  LateCounters* counters;
  WordResult* results;     ///< [slots]
  u32* flagged;            ///< [slots] slots whose status is kStatusNoResult; or null
  WordBoundary* boundary;  ///< tiled wavefront: one per residue, laid out as residues
  s16* rows;               ///< exact kernel without shared memory: per warp 3 x stride
  u32 stride;              ///< M rounded up to 16
  u32 model_length;
  u32 tile, tile_count;    ///< tiled wavefront, one launch each
  u32 only_flagged;        ///< exact kernel: the slots in `flagged` instead of the whole list
  s16 base, ec, ej;
  u16 reserved;
};

// ---- Forward ----

/// N, C and J at one target length, multihit: length_model of engine/model.
struct FloatLength {
  float loop, move;
};

struct FloatFilterParams {
  DatabaseView database;
  TargetList list;
  const FloatLength* lengths;  ///< [length classes]
  const float* emissions;      ///< [32][stride] at x*stride + k-1, 0 impossible
  const float* transitions;    ///< [kWordTransitions][stride] odds ratios, 0 impossible
  LateCounters* counters;
  float* results;              ///< [slots] nats; -inf: no path
  float* rows;                 ///< Expected::scratch_per_warp, for new variants: no kernel has any
  u32 stride;                  ///< M rounded up to 16
  u32 model_length;
  float ec, ej;                ///< E->C, E->J
};

// ---- bias filter ----

struct BiasParams {
  DatabaseView database;
  TargetList list;
  /// [2][32] emission odds of both states per code; 1 for codes outside the alphabet
  const float* odds;
  const float* p1;         ///< [length classes] L / (L + 1)
  LateCounters* counters;
  float* results;          ///< [slots] sum of the logarithms, nats: without the length part
  float t10, t11;
};

static_assert(sizeof(TargetList) == 24, "device layout");
static_assert(sizeof(LateCounters) == 16, "device layout");
static_assert(sizeof(WordFilterParams) == 168, "device layout");
static_assert(sizeof(FloatFilterParams) == 136, "device layout");
static_assert(sizeof(BiasParams) == 112, "device layout");

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_LATE_PARAMS_H_
