// Parameters of a filter kernel: plain structs with the same bytes on host and device. The host compiler and NVRTC
// compile them without any header, hence the built-in types only.
//
// Targets on the device. One byte per residue (alphabet code); every target begins at a 16-byte boundary and is
// padded with code 31, whose emission is impossible in every table. Targets are sorted by length, longest first, so
// that the sequences that one warp scores together have nearly the same length. Kernels address targets by their
// index in this order.
#ifndef HMMJIT_KERNEL_LAUNCH_PARAMS_H_
#define HMMJIT_KERNEL_LAUNCH_PARAMS_H_

namespace hmmjit_device {

typedef unsigned char u8;
typedef signed char s8;
typedef unsigned short u16;
typedef short s16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

enum {
  kPaddingResidue = 31,  ///< fills a target up to its 16-byte boundary
  kSymbolRows = 32,      ///< rows of every emission table: codes 0..28, 29..31 impossible
  kStartUnit = 16,       ///< bytes per unit of WorkItem::start
  kOverlapGranule = 16,  ///< pieces of a split target start at multiples of this many residues
  kBlockRows = 64,       ///< residues of a block of a scan
};

/// One work item: a whole target, or a piece of a long one. A single-segment (SSV) path spans at most M residues,
/// so pieces that overlap by M residues have the same best score as the whole target; recurrences with the J state
/// need whole targets.
///
/// In a scan, `start` counts from the end of the residues where these are read backwards, `rows` is a
/// multiple of kBlockRows, `target` is the block of the first row, and `split` the number of blocks at
/// the beginning whose values another item gives.
struct WorkItem {
  u32 start;   ///< first residue, in units of 16 bytes from DatabaseView::residues
  u32 rows;    ///< residues of this piece
  u32 target;  ///< index in sorted order
  u32 split;   ///< kWholeTarget, or the slot of this target in SplitState
};
enum : u32 { kWholeTarget = 0xffffffffu };

/// Best value and number of unfinished pieces of a split target; the warp that finishes the last piece decides for
/// the whole target and resets both fields (0, pieces) for the next launch.
struct SplitState {
  u32 best;
  u32 missing;
  u32 pieces;
  u32 reserved;
};

/// The device-resident database (one segment). Everything but `residues` is small.
struct DatabaseView {
  const u8* residues;         ///< 16-byte aligned; at least 16 bytes of 31 after the last target
  const u32* start;           ///< [targets] in units of 16 bytes
  const u32* length;          ///< [targets] residues
  const u32* length_class;    ///< [targets] index into LengthClass arrays: one per distinct length
  u32 targets;
  u32 reserved[3];
};

/// Decisions that depend on target length and model only. Exact by construction: the host evaluates HMMER's
/// own arithmetic to find the least value that passes.
struct LengthClass {
  u8 tjb;         ///< cost of the move N/C/J -> B at this length, bytes
  u8 ssv_usable;  ///< 0: SSV leaves its byte range at this length, the MSV recurrence decides
  u16 ssv_gate;   ///< least u (128..255) whose P-value passes F1; 256: none
  u16 msv_gate;   ///< least J (0..255) of the MSV recurrence that passes F1; 256: none
  u16 overflow_passes;  ///< whether a score of +inf passes (it does unless F1 is negative)
};

/// Result kind of one target after SSV or MSV, as in engine/reference.
enum FilterStatus : u32 {
  kStatusScore = 0,     ///< value: u of SSV, J of MSV
  kStatusOverflow = 1,  ///< score +inf
  kStatusNoResult = 2,  ///< the MSV recurrence decides
};

/// One result: value in bits 0..15, status in bits 16..17; bit 18 is set if it passes the gate, bit 19 if the value
/// comes from the MSV recurrence.
typedef u32 FilterResult;
enum : u32 { kResultPassed = 1u << 18, kResultMsv = 1u << 19 };

/// One survivor of a gate: `target` in sorted order.
struct Survivor {
  u32 target;
  FilterResult result;
};

/// Counters of one launch, zeroed by the host before it.
struct Counters {
  u32 next;        ///< work counter: first item not taken yet
  u32 survivors;   ///< entries of `survivors`
  u32 undecided;   ///< entries of `undecided`: targets the MSV recurrence must decide
  u32 next_undecided;  ///< work counter of the MSV launch over `undecided`
};

/// SSV and MSV kernels. A null pointer disables its output. Tables are in natural node order, so that every variant
/// builds its own layout from the same bytes.
struct ByteFilterParams {
  DatabaseView database;
  /// Longest first. Null in an MSV launch over the targets that an SSV launch left undecided: these are read from
  /// `undecided`, whose length is in `counters`, without a round trip to the host.
  const WorkItem* items;
  SplitState* splits;
  const LengthClass* classes;    ///< of this model
  /// [32][emission_stride] emission of code x at node k at x*stride + k-1, in SSV's signed sense:
  /// -cost limited to [-127, bias]; -127 in rows 29..31. Variants treat nodes beyond M as -127
  /// themselves.
  const s8* emissions;
  /// [32][emission_stride] biased costs 0..255 of the MSV recurrence; 255 where impossible.
  const u8* costs;
  Counters* counters;
  FilterResult* results;         ///< [targets] or null
  Survivor* survivors;           ///< [targets] or null
  u32* undecided;                ///< [targets] or null
  u8* boundary;                  ///< tiled models: one byte per residue, laid out as residues
  u32* tile_best;                ///< tiled models: [items] best so far
  /// Scans (multi_lane_blocks): the largest value of each block of rows in reading order, at most
  /// 255. Null: scores of targets.
  u8* block_best;
  u32 item_count;
  u32 emission_stride;
  u32 model_length;
  u32 tile;                      ///< index of this tile of the model
  u32 tile_count;
  u8 base, bias, tbm, tec;
  /// Scans: `database.residues` is the end of the residues, which are read backwards.
  u32 reverse;
  u32 reserved;
};

static_assert(sizeof(WorkItem) == 16, "device layout");
static_assert(sizeof(SplitState) == 16, "device layout");
static_assert(sizeof(DatabaseView) == 48, "device layout");
static_assert(sizeof(LengthClass) == 8, "device layout");
static_assert(sizeof(Survivor) == 8, "device layout");
static_assert(sizeof(Counters) == 16, "device layout");
static_assert(sizeof(ByteFilterParams) == 176, "device layout");

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_LAUNCH_PARAMS_H_
