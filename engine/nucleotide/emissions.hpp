// Match odds with the background frequencies of an envelope, and the model's own odds after their
// restoration.
//
// HMMER overwrites the model's odds and restores them from probabilities, which changes the last
// bits of some. All later Forward scores of the query use the changed odds, and so does the next
// computation of probabilities. After a few turns (restorations) the odds reach a fixed point.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/mutex.hpp"
#include "domain/tables.hpp"

namespace hmmjit::nucleotide {

/// The odds of a query after some turns, and their probabilities.
struct EmissionState {
  domain::EmissionRows rows;          ///< domain::kCodeRows
  AlignedArray<float> probabilities;  ///< [K][Q][kLanes]
};

using Background = std::array<float, kMaxBases>;

/// The background for an envelope in a window of `window` residues: a mixture of the alphabet's
/// background and the envelope's composition.
Background estimate_background(const Alphabet& alphabet, std::span<const Residue> envelope,
                               std::int64_t window);

/// Thread-safe. Call it inside a FlushToZeroScope.
class Emissions {
 public:
  explicit Emissions(const domain::ForwardTables& tables);

  /// The state after `turns` restorations. Equal states share an object.
  std::shared_ptr<const EmissionState> after(std::uint64_t turns);
  /// The state that further turns do not change; null if a few turns do not reach it.
  std::shared_ptr<const EmissionState> settled();

  /// The number of rows that estimate() needs for an envelope: one per residue of the alphabet, or
  /// one per code if the envelope contains degenerate codes.
  int rows_of(std::span<const Residue> envelope) const;
  /// Computes `count` rows; the row of code x is row first_row + x of `out`.
  void estimate(const EmissionState& state, const Background& background, int first_row, int count,
                domain::EmissionRows& out) const;

 private:
  std::shared_ptr<const EmissionState> with_probabilities(domain::EmissionRows&& rows) const;

  const domain::ForwardTables::Tables& t_;
  std::size_t cells_;                    // Q * kLanes
  std::vector<std::uint8_t> masked_;     // by cell
  AlignedArray<float> entry_to_delete_;  // entry times match-delete odds by cell
  Mutex mutex_;
  std::vector<std::shared_ptr<const EmissionState>> states_ HMMJIT_GUARDED_BY(mutex_);
  bool settled_ HMMJIT_GUARDED_BY(mutex_) = false;  // the last state no longer changes
};

}  // namespace hmmjit::nucleotide
