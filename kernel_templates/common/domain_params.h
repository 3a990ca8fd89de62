// Parameters and results of the kernels that follow the Forward filter (parser, ensemble, envelope): plain structs
// with the same bytes on host and device.
//
// These kernels keep HMMER's float order (four striped lanes per target, no fused operations, subnormals
// flushed), so that their results equal those of the CPU's domain stage to the bit. A launch has the targets of
// several models that passed the Forward filter; a block works on one model, with as many warps as fit into its
// shared memory. The ensemble kernel processes the parser's regions of several domains; the envelope kernel
// processes the envelopes of both. Items that exceed a buffer remain kLeftToHost and fall back to the CPU.
#ifndef HMMJIT_KERNEL_DOMAIN_PARAMS_H_
#define HMMJIT_KERNEL_DOMAIN_PARAMS_H_

#include "common/late_params.h"

namespace hmmjit_device {

/// Shared by the models of a launch; the host zeroes it before the parser's launch.
struct DomainArena {
  u32 words;         ///< of DomainParams::words, allocated or requested
  u32 parser_units;  ///< of the workspace, allocated or requested
  u32 envelope_units;
  u32 region_units;
  u32 regions_begun, envelopes_begun;  ///< complement of the first item's device_time(); 0: none
  u32 reserved[2];
};
/// Counters of one model, zeroed by the host before the parser's launch.
struct DomainCounters {
  u32 next_target;    ///< parser: slots that warps took after their first ones
  u32 next_envelope;  ///< envelope kernel: entries, likewise
  u32 envelopes;      ///< entries created or requested, see envelope_capacity
  u32 parsed, scored; ///< targets and envelopes done
  u32 next_region;    ///< ensemble kernel: entries, likewise
  u32 regions;        ///< its entries
  u32 sampled;        ///< number of them that are done
};

enum DomainStatus : u32 {
  kLeftToHost = 0,     ///< not started
  kDone = 1,
  kNoRoom = 2,         ///< no room for its matrix or its answer
  kNotForDevice = 3,   ///< the kernel does not support it
};

/// The parser's answer for one slot. Its words: `scales` floats, then `regions` RegionWords.
struct ParsedTarget {
  u32 status;
  float last_c;     ///< Forward's C(L), scaled
  float begins;     ///< expected number of domains
  u32 decoded;      ///< 0: the decoding overflowed, the target has no domains
  u32 scales;       ///< factors of the Forward rows that were rescaled, in order
  u32 regions;
  u32 words;        ///< index of the first of them
  u32 reserved;
};

/// A region, 1-based inclusive; several domains: bit 31 of `last`.
struct RegionWords {
  u32 first, last;
  u32 entry;  ///< in the list of envelopes (or of regions, if it has several domains); or kNoEntry
};
enum : u32 { kSeveralDomains = 0x80000000u, kNoEntry = 0xffffffffu };

/// An envelope, or a region of several domains.
struct RegionItem {
  u32 target;  ///< in sorted order
  u32 first, last;
  u32 clustered;  ///< its null2 is known from sampled traces
};

/// The ensemble kernel's answer for one region. Its words: for each residue the sum of its null2 odds over all
/// traces (float), then `clusters` ClusterWords.
struct SampledRegion {
  u32 status;
  u32 clusters;
  u32 words;
  u32 reserved;
};
/// Envelope of a cluster; coordinates on the target.
struct ClusterWords {
  u32 first, last;
  u32 entry;  ///< in the list of envelopes, or kNoEntry
};
/// Clusters of one region; with more it falls back to the CPU.
enum : u32 { kMostClusters = 128 };

/// Maximum number of residues with emission odds of the null2 model.
enum : u32 { kNull2Residues = 20 };

/// The envelope kernel's answer for one item. Its words: `scales` floats at `words`; at `path` one byte per step of
/// the optimal accuracy path, from its end to its begin: state in bits 0..1 (PathState), code of the posterior in
/// bits 2..5 (0 to 10: tenths), rounded as hmmsearch prints it.
struct ScoredEnvelope {
  u32 status;
  float last_c;
  u32 scales;
  u32 steps;         ///< 0: no path, the envelope yields no domain
  u32 words;
  u32 sound;         ///< 0: the decoding overflowed, the envelope is dropped
  u32 last_row;      ///< residue of the path's end, 1-based in the envelope
  u32 last_node;     ///< node of the path's end, 1-based
  float accuracy;    ///< expected accuracy
  u32 path;          ///< index of the word where the path begins
  u32 reserved[2];
  float null2[kNull2Residues];
};
enum PathState : u32 { kPathMatch = 0, kPathDelete = 1, kPathInsert = 2 };

/// One model of a launch.
struct DomainParams {
  DatabaseView database;
  const u32* targets;          ///< [target_count] in sorted order: the slots
  const FloatLength* multihit; ///< [length classes]
  const FloatLength* unihit;   ///< [length classes]
  const float* emissions;      ///< [32][Q][4] striped: node r*Q + q + 1 at q*4 + r; 0 impossible
  /// The same for kernels with one warp per HMMER lane, in runs of kRun stripes: node r*Q + q + 1 at ((r
  /// * kRun + q % kRun) * 32 + q / kRun), 32 * kRun cells for each r; zero beyond. Null if no kernel needs it.
  const float* run_emissions;
  const float* transitions;    ///< as in FloatFilterParams
  const float* bounds;         ///< [32] see deletion_bounds() of engine/model; negative: none
  /// [envelope_capacity] for the envelope kernel: the rows of an item's codes begin there, in
  /// `emissions` or `run_emissions` and in `bounds`, whose first 32 rows are zero. Null: all items
  /// have those of the model.
  const u32* first_rows;
  const u32* members;          ///< [32] bit y of a degenerate code: it may stand for residue y; zero for others
  DomainArena* arena;
  DomainCounters* counters;
  ParsedTarget* parsed;        ///< [target_count]
  RegionItem* envelopes;       ///< [envelope_capacity]
  ScoredEnvelope* scored;      ///< [envelope_capacity]
  RegionItem* regions;         ///< [region_capacity]
  SampledRegion* sampled;      ///< [region_capacity]
  const u32* envelope_order;   ///< [envelope_count] entries, longest first
  const u32* region_order;     ///< [region_count] entries, longest first
  u32* words;
  u8* workspace;               ///< 256-byte units
  u32 target_count, envelope_capacity, region_capacity, word_capacity, workspace_units;
  u32 envelope_count;          ///< entries of `envelopes`, set before the kernel that processes them
  u32 region_count;            ///< entries of `regions`, set before the kernel that processes them
  u32 most_parsers;            ///< concurrent targets, bounded by the workspace
  u32 most_envelopes;          ///< concurrent envelopes
  u32 most_regions;            ///< concurrent regions of several domains
  u32 most_cells;              ///< larger targets (residues x nodes) fall back to the CPU
  u32 most_envelope_cells;     ///< the same for envelopes
  u32 most_region_cells;       ///< the same for regions of several domains
  u32 stride;                  ///< M rounded up to 16
  u32 model_length;
  u32 stripes;                 ///< Q
  u32 residue_codes;           ///< K
  u32 random;                  ///< state of the generator before the first trace of each region
  float backward_bound;        ///< in units of E(i); negative: none
  u32 time_limit;              ///< in device_time(): later, a kernel after the parser starts no item
  u32 first_block;             ///< of the launch, see DomainBatch
  u32 block_warps;             ///< warps of a block that fit; the others are idle
  u32 blocks;                  ///< of this model
  u32 reserved;
};
enum : u32 { kWorkspaceUnit = 256 };
/// Upper bound for the interleaved items of a warp (constant kTargets). Long models have fewer, depending on shared
/// memory; the ensemble kernel processes one.
enum : u32 { kMostTargetsPerWarp = 8 };

// Workspace of an item, computed on both sides.

#ifdef __CUDACC__
#define HMMJIT_BOTH_SIDES __device__ constexpr
#else
#define HMMJIT_BOTH_SIDES constexpr
#endif

enum : u32 { kSpecialRowBytes = 32 };
HMMJIT_BOTH_SIDES u32 larger_u32(u32 a, u32 b) { return a > b ? a : b; }
HMMJIT_BOTH_SIDES u32 units_of(u32 bytes) { return (bytes + kWorkspaceUnit - 1) / kWorkspaceUnit; }

/// A target of L residues: special rows of Forward and Backward.
HMMJIT_BOTH_SIDES u32 parser_units(u32 L) { return units_of(2 * (L + 1) * kSpecialRowBytes); }

/// Cells of two kinds in a row of an envelope; stripes are rounded up to four.
HMMJIT_BOTH_SIDES u32 envelope_row_cells(u32 stripes) { return (stripes + 3) / 4 * 32; }
/// An envelope of L residues: special rows of Forward and Backward, products of M and I cells,
/// choices of the optimal accuracy path.
HMMJIT_BOTH_SIDES u32 envelope_units(u32 L, u32 stripes) {
  return units_of((L + 1) * (2 * kSpecialRowBytes + 5 * envelope_row_cells(stripes)));
}

/// Sampled traces of a region, and the maximum of domains in all of them.
enum : u32 { kTraces = 200 };
HMMJIT_BOTH_SIDES u32 segment_capacity(u32 L) {
  const u32 segments = kTraces * (2 + L / 20);
  return segments < 8192 ? segments : 8192;
}
/// Words of a segment's coordinates and trace, and of the search for its cluster.
enum : u32 { kSegmentWords = 5, kClusteringWords = 7 };
/// Words in which values of coordinates and traces are counted.
HMMJIT_BOTH_SIDES u32 counting_words(u32 L, u32 stripes) {
  return (larger_u32(larger_u32(L, 4 * stripes), kTraces) + 32) / 32 * 32;
}
/// A region of L residues: special rows of Forward, running sums of rows where domains end, segments, six numbers
/// per row; then M, D and I cells, whose space is later reused by clustering.
HMMJIT_BOTH_SIDES u32 region_units(u32 L, u32 stripes) {
  const u32 segments = segment_capacity(L);
  const u32 fixed = (L + 1) * (kSpecialRowBytes + 32 * 8) + 6 * 4 * (L + 4) +
                    4 * kSegmentWords * segments;
  const u32 cells = (L + 1) * stripes * 64;
  const u32 clustering =
      4 * (kClusteringWords * segments + counting_words(L, stripes) + 4 * kMostClusters);
  return units_of(fixed + larger_u32(cells, clustering));
}

/// Reserved for an item: a quarter more, so that later items of about the same size fit as well.
HMMJIT_BOTH_SIDES u32 reserved_units(u32 units) { return units + units / 4; }

// Shared memory of a block, in floats: the odds of its model, then the needs of each warp. All sizes are multiples
// of 32, so that a lane keeps to its bank.

/// Odds of all nodes and of the position after each lane's last one; bounds.
HMMJIT_BOTH_SIDES u32 block_floats(u32 stripes) { return (stripes + 2) * 32; }
/// Emission odds of a target's row, padded so that the lanes of different targets are spread over all banks.
HMMJIT_BOTH_SIDES u32 emission_floats(u32 stripes) { return (4 * stripes + 31) / 32 * 32 + 4; }
/// Products of a target's row of M and I cells, padded in the same way.
HMMJIT_BOTH_SIDES u32 product_floats(u32 stripes) { return (8 * stripes + 31) / 32 * 32 + 4; }
HMMJIT_BOTH_SIDES u32 whole_banks(u32 floats) { return (floats + 31) / 32 * 32; }
/// Cells of M, D and I and emission odds of that many targets.
HMMJIT_BOTH_SIDES u32 parser_warp_floats(u32 stripes, u32 targets) {
  return whole_banks(targets * (12 * stripes + emission_floats(stripes)));
}
/// The same, later reused for the nodes that a trace visits, or kSearchedSegments words.
enum : u32 { kSearchedSegments = 256 };
HMMJIT_BOTH_SIDES u32 ensemble_warp_floats(u32 stripes, u32 targets) {
  return larger_u32(parser_warp_floats(stripes, targets), kSearchedSegments);
}
/// As the parser's, and prefetched products.
HMMJIT_BOTH_SIDES u32 envelope_warp_floats(u32 stripes, u32 targets) {
  return whole_banks(targets *
                     (12 * stripes + emission_floats(stripes) + product_floats(stripes)));
}

// Kernels with one warp per HMMER lane on a single target, whose threads own kRun consecutive stripes
// each (common/four_warp.cuh).

enum : u32 { kLongestRun = 32, kExchangeFloats = 96, kSummedLanes = 16, kPrefetchFloats = 32 };
/// Floats from the cells of a lane to those of the next where a warp adds them in order: an odd
/// number of quads, so that lanes that write theirs use different banks.
HMMJIT_BOTH_SIDES u32 run_stride(u32 run) { return 4 * ((run + 3) / 4 | 1u); }
/// Odds of all nodes, bounds, the exchange area of the warps, and half a row of cells with room for
/// a prefetch beyond it.
HMMJIT_BOTH_SIDES u32 four_warp_floats(u32 run) {
  return 8 * 128 * run + 32 + kExchangeFloats + 4 * kSummedLanes * run_stride(run) +
         kPrefetchFloats;
}
/// An envelope of L residues: as envelope_units(), with four bits for the choices of a cell.
HMMJIT_BOTH_SIDES u32 long_envelope_units(u32 L, u32 run) {
  return units_of((L + 1) * (2 * kSpecialRowBytes + 128 * (8 * run + 4 * ((run + 7) / 8))));
}

/// Warps of a block that fit into that many floats; 0: the model is too long.
HMMJIT_BOTH_SIDES u32 working_warps(u32 floats, u32 stripes, u32 warp_floats, u32 most) {
  const u32 odds = block_floats(stripes);
  const u32 room = floats > odds ? (floats - odds) / warp_floats : 0;
  return room < most ? room : most;
}

/// Parameters of a launch. Model i has the blocks from its first_block to that of model i+1; model 0 begins with
/// block 0. At most 32 models.
struct DomainBatch {
  const DomainParams* models;
  u32 count;
  u32 shared_floats;  ///< shared memory of a block
};

static_assert(sizeof(DomainArena) == 32, "device layout");
static_assert(sizeof(DomainCounters) == 32, "device layout");
static_assert(sizeof(ParsedTarget) == 32, "device layout");
static_assert(sizeof(RegionWords) == 12, "device layout");
static_assert(sizeof(RegionItem) == 16, "device layout");
static_assert(sizeof(SampledRegion) == 16, "device layout");
static_assert(sizeof(ClusterWords) == 12, "device layout");
static_assert(sizeof(ScoredEnvelope) == 128, "device layout");
static_assert(sizeof(DomainParams) == 304, "device layout");
static_assert(sizeof(DomainBatch) == 16, "device layout");

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_DOMAIN_PARAMS_H_
