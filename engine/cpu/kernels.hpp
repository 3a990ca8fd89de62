// Table layouts and kernel function pointers for one instruction set, shared by the per-target
// translation units and the rest of engine/cpu. Private to engine/cpu.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/alphabet.hpp"
#include "model/profile.hpp"
#include "reference/scans.hpp"

namespace hmmjit::cpu {

/// Rows of an SSV table, more than any alphabet needs: SSV reads targets from a mapping, and bytes
/// that another process wrote there must not index outside the table.
inline constexpr std::size_t kSsvCodes = 32;
/// Bytes between rows of an SSV table: [vectors][lanes] signed costs; with SsvShape::gains
/// [2][vectors][lanes], costs then gains max(0, -cost). Without gains, a row of 64-byte vectors
/// takes an odd number of cache lines, because two rows are read together, and in banked L1 caches
/// multiples of four lines share a bank.
constexpr std::size_t ssv_row_bytes(std::size_t lanes, std::size_t vectors, bool gains) {
  constexpr std::size_t kLine = 64;
  const std::size_t bytes = lanes * vectors * (gains ? 2 : 1);
  return lanes == kLine && !gains ? bytes | kLine : bytes;
}
/// Largest S(i,k) of the SSV recurrence in one tile, -128..127, with a table of kSsvCodes rows.
using SsvSingle = int (*)(const std::int8_t* table, const Residue* residues, std::size_t length);
/// Largest S(i,k) of each block of `block` rows (even) of several targets, written consecutively to
/// `best`. A target's first block has one more row if the number of its rows is odd.
using SsvGroup = void (*)(const std::int8_t* table,
                          std::span<const std::span<const Residue>> targets, std::size_t block,
                          int* best);
constexpr std::size_t ssv_blocks(std::size_t length, std::size_t block) {
  return length < 2 ? 1 : (length / 2 * 2 - 1) / block + 1;
}
/// Largest S(i,k) in one tile of a split model: in[i] is S(i+1, last node before the tile); out[i]
/// receives the cell of this tile's last slot. `out` has room for length + 4 bytes.
using SsvTile = int (*)(const std::int8_t* table, const Residue* residues, std::size_t length,
                        const std::int8_t* in, std::int8_t* out);

/// SSV kernels of one vector width, for 1..max_vectors registers of DP state.
struct SsvShape {
  int lanes = 0;
  int max_vectors = 0;
  bool gains = false;                 ///< the tables need gains
  const SsvSingle* single = nullptr;  ///< [max_vectors], index = vectors - 1
  const SsvGroup* group = nullptr;    ///< [max_vectors]
  const SsvTile* tile = nullptr;      ///< null if this width is not used for tiles
};

struct MsvParameters {
  std::uint8_t base, bias, tec, tjb_tbm;
};
inline constexpr int kMsvOverflow = 256;
/// Final J byte or kMsvOverflow. `table` is [code][stripes][lanes], `row` [stripes][lanes] scratch.
using MsvKernel = int (*)(const std::uint8_t* table, int stripes, const MsvParameters& parameters,
                          std::span<const Residue> residues, std::uint8_t* row);
/// Computes rows `first` to `last` (residue indices) of the SSV recurrence in unsigned bytes.
/// Returns the index of the first row with a cell of at least `threshold`, else `last`. `row` holds
/// the row before `first`, then the last one computed. `begin`: score at which an alignment begins.
using SsvScanKernel = std::size_t (*)(const std::uint8_t* table, int stripes, std::uint8_t begin,
                                      std::uint8_t bias, std::uint8_t threshold,
                                      std::span<const Residue> residues, std::size_t first,
                                      std::size_t last, std::uint8_t* row);
struct MsvShape {
  int lanes = 0;
  MsvKernel kernel = nullptr;
  SsvScanKernel scan = nullptr;
};

/// Words per node for the main loop of the Viterbi filter.
enum ViterbiWord { kEntry, kMM, kIM, kMDM, kMI, kII, kViterbiWords };
/// Words per node for rows with explicit delete states.
enum DeleteWord { kDM, kMD, kDD, kDeleteBound, kDeleteReturn, kDeleteWords };

struct ViterbiTables {
  int stripes = 0;
  const std::int16_t* match = nullptr;        ///< [code][stripes][lanes]
  const std::int16_t* transitions = nullptr;  ///< [stripes][kViterbiWords][lanes]
  const std::int16_t* deletes = nullptr;      ///< [stripes][kDeleteWords][lanes]
  const std::int16_t* lane_bound = nullptr;   ///< [lanes] largest kDeleteBound of each lane
  int base = 0, ec = 0, ej = 0;
  bool always_deletes = false;  ///< true: no bound holds, every row needs delete states
};
inline constexpr int kViterbiOverflow = 1 << 20;
/// Final C word or kViterbiOverflow. `rows` is 3 * stripes * lanes words of scratch.
using ViterbiKernel = int (*)(const ViterbiTables& tables, int move,
                              std::span<const Residue> residues, std::int16_t* rows);
/// Same as reference::viterbi_scan, except for the order of cells in a row.
using ViterbiScanKernel = void (*)(const ViterbiTables& tables, int move, int threshold, int M,
                                   std::span<const Residue> residues, std::int16_t* rows,
                                   std::vector<reference::Diagonal>& records);
struct ViterbiShape {
  int lanes = 0;
  ViterbiKernel kernel = nullptr;
  ViterbiScanKernel scan = nullptr;
};

/// One target in a batch for the composition bias filter; never empty.
struct BiasTarget {
  std::span<const Residue> residues;
  float p1 = 0;             ///< null_p1 of its length
  std::uint32_t index = 0;  ///< index of its score
};
/// scores[index] = reference::bias_filter of every target, for models in which the odds of state 0
/// are 1. Pass the longest targets first: lanes then stay busy to the end.
using BiasKernel = void (*)(const BiasModel& model, std::span<const BiasTarget> targets,
                            float* scores);
/// logs[i] = float(log(double(values[i]))), with the bits of the C library; for tests.
using RoundedLogsKernel = void (*)(const float* values, float* logs, std::size_t count);
struct BiasKernels {
  BiasKernel bias = nullptr;
  RoundedLogsKernel rounded_logs = nullptr;
};

// Scalar code for the bias kernels.
/// Replaces each value by float(log(double(value))).
void library_logs(float* values, std::size_t count);
/// The score of a target. `sum`: of all logarithms but the last; `last`: scale of the last step;
/// `ends`: sum of both states at the end. Falls back to the reference if the score is not finite.
float bias_score(const BiasModel& model, const BiasTarget& target, float sum, float last,
                 float ends);

inline constexpr int kMaxShapes = 4;

/// Used shapes, in order of decreasing width, then unused ones with lanes = 0. A processor uses at
/// most one of the two 64-byte shapes, with or without gains.
struct ByteKernels {
  SsvShape ssv[kMaxShapes];
  MsvShape msv[kMaxShapes];
};
struct WordKernels {
  ViterbiShape viterbi[kMaxShapes];
};

/// The kernels of a Highway target bit; null: not built.
const ByteKernels* byte_kernels(std::int64_t target);
const WordKernels* word_kernels(std::int64_t target);
const BiasKernels* bias_kernels(std::int64_t target);

}  // namespace hmmjit::cpu
