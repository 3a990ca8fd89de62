// Forward, Backward and decoding of a target too long to keep a row of special states for each of
// its residues.
#pragma once

#include <cstddef>
#include <vector>

#include "core/aligned.hpp"
#include "domain/kernels.hpp"
#include "domain/regions.hpp"

namespace hmmjit::domain {

/// Keeps the state of both passes at the beginning of each part of the target and computes the rows
/// between again when they are needed: 12 * M bytes for each part and pass, and the rows of one
/// part, instead of 76 bytes a residue. Forward is computed three times and Backward twice, by the
/// operations of the parsers in their order, so that every float is the same. Checkpoints in
/// dynamic programming: Grice, Hughey & Speck 1997, CABIOS 13:45.
class LongTarget {
 public:
  /// `job`: residues, length and moves of the target. `part`: rows computed at a time.
  LongTarget(const ForwardTables::Tables& tables, const Job& job, int part, float ec, float ej);

  /// The Forward pass. Returns its score in nats, see forward_nats().
  float forward();
  /// After forward(): appends the regions in their order. False when the decoding overflows; the
  /// target has no domains then. `expected_domains`: as decode_occupancy leaves it in the last row.
  bool find_regions(std::vector<Region>& regions, float& expected_domains);

 private:
  // A pass at the row where it comes to a part.
  struct Checkpoint {
    std::vector<float> cells;
    SpecialRow special{};
    bool own_scale = false;
  };

  // A part has the rows above the first up to the last.
  int first_of(int part) const { return part * rows_; }
  int last_of(int part) const { return part + 1 == parts_ ? job_.L : first_of(part + 1); }
  void forward_rows(int part);
  void backward_rows(int part);
  void keep(Checkpoint& checkpoint, const float* cells, int vectors, const float* special_row);
  void restore(const Checkpoint& checkpoint, float* cells, float* special_row);

  const ForwardTables::Tables& tables_;
  Job job_;
  int rows_, parts_;
  float ec_, ej_;
  std::vector<Checkpoint> forward_, backward_;  // of each part
  // Buffers of the current part.
  AlignedArray<float> cells_;
  Lanes lanes_;
};

}  // namespace hmmjit::domain
