// Match odds with background frequencies estimated from an envelope, and how the model's own odds
// change when they are restored after that.
//
// The reference does not keep the model's odds while it uses others: it computes them again from
// probabilities, which changes the last bits of some. All later Forward scores of the query use
// the changed odds, and the probabilities of the next piece come from them. After a few turns
// nothing changes any more.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/mutex.hpp"
#include "domain/tables.hpp"

namespace hmmjit::nucleotide {

/// The odds of a query after some turns, and the probabilities that belong to them.
struct EmissionState {
  domain::EmissionRows rows;          ///< domain::kCodeRows
  AlignedArray<float> probabilities;  ///< [K][Q][kLanes]
};

using Background = std::array<float, kMaxBases>;

/// Background of an envelope in a window of `window` residues: that of the alphabet mixed with the
/// envelope's composition.
Background estimate_background(const Alphabet& alphabet, std::span<const Residue> envelope,
                               std::int64_t window);

/// Thread-safe; all calls inside a FlushToZeroScope.
class Emissions {
 public:
  explicit Emissions(const domain::ForwardTables& tables);

  /// After `turns` restorations in pieces one after the other. Equal states are one object.
  std::shared_ptr<const EmissionState> after(std::uint64_t turns);

  /// Rows for an envelope of a table that begins at `first_row`: row of the code x at first_row + x
  /// for all residues, and for other codes if the envelope has any. Returns their number.
  int rows_of(std::span<const Residue> envelope) const;
  void estimate(const EmissionState& state, const Background& background, int first_row, int count,
                domain::EmissionRows& out) const;

 private:
  void fill(const AlignedArray<float>& probabilities, const Background& background, int first_row,
            int count, domain::EmissionRows& out) const;
  std::shared_ptr<const EmissionState> with_probabilities(domain::EmissionRows&& rows) const;

  const domain::ForwardTables::Tables& t_;
  std::size_t cells_;                    // Q * kLanes
  std::vector<std::uint8_t> masked_;     // by cell
  AlignedArray<float> entry_to_delete_;  // entry times match-delete odds by cell
  Mutex mutex_;
  std::vector<std::shared_ptr<const EmissionState>> states_ HMMJIT_GUARDED_BY(mutex_);
  bool settled_ HMMJIT_GUARDED_BY(mutex_) = false;  // the last state does not change any more
};

}  // namespace hmmjit::nucleotide
