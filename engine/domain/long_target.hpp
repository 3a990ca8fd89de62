// Forward, Backward and decoding for a target that is too long to keep special states for each of
// its residues.
#pragma once

#include <cstddef>
#include <vector>

#include "core/aligned.hpp"
#include "domain/kernels.hpp"
#include "domain/regions.hpp"

namespace hmmjit::domain {

/// Checkpoints both passes at the beginning of each part of the target and recomputes the rows in
/// between when they are needed: 12 * M bytes for each part and pass, and the rows of one part,
/// instead of 76 bytes per residue. Computes Forward three times and Backward twice, with the
/// parsers' operations in their order, so that every float is the same. Checkpoints in dynamic
/// programming: Grice, Hughey & Speck 1997, CABIOS 13:45.
class LongTarget {
 public:
  /// `job`: residues, length and moves of the target. `part`: number of rows computed at a time; 0:
  /// 65,536, or more if the checkpoints would take more memory than the rows of a part.
  LongTarget(const ForwardTables::Tables& tables, const Job& job, int part, float ec, float ej);

  /// Runs the Forward pass. Returns its score in nats, see forward_nats().
  float forward();
  /// Call after forward(). Appends the regions in order. False if decoding overflows; the target
  /// then has no domains. `expected_domains`: Occupancy::begins of the last row.
  bool find_regions(std::vector<Region>& regions, float& expected_domains);

 private:
  // State of a pass at the row where it reaches a part.
  struct Checkpoint {
    std::vector<float> cells;
    SpecialRow special{};
    bool own_scale = false;
  };

  // Part p consists of rows first_of(p) + 1 to last_of(p).
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
  std::vector<Checkpoint> forward_, backward_;  // by part
  // Buffers of the current part.
  AlignedArray<float> cells_;
  Lanes lanes_;
};

}  // namespace hmmjit::domain
