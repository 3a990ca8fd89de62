// Results by target instead of by model, as hmmscan shows them (scan, --as hmmscan).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/sorted.hpp"
#include "search/hit_coding.hpp"
#include "search/options.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// A sequence, and a model found in it.
struct ScannedHit {
  ScannedHit() = default;
  ScannedHit(const ModelResult& result, Hit found);

  std::uint64_t index = 0;      ///< of the sequence in the input
  std::string name, accession;  ///< of the sequence
  int length = 0;
  std::uint64_t first_domain = 0;  ///< of its first reported domain, among those of all hits
  Hit hit;                         ///< the model takes the place of the target
};

/// Calls `use` for each model in a scan's result for one `sequence`: a search result with the
/// sequence as its only hit.
Status for_each_model(const HitLot& sequence, const std::function<Status(const ModelResult&)>& use);

/// Orders hits by sequence.
struct ByTarget {
  HitOrder coding;
  static bool before(const ScannedHit& a, const ScannedHit& b) { return a.index < b.index; }
  void encode(const ScannedHit& hit, std::string& out) const;
  static bool decode(Decoder& decoder, ScannedHit& hit);
  static std::uint64_t bytes(const ScannedHit& hit) {
    return sizeof(ScannedHit) + hit_bytes(hit.hit) + hit.name.size() + hit.accession.size();
  }
};
/// Its memory limit does not bound the hits of a single target.
using HitsByTarget = Sorted<ScannedHit, ByTarget>;

/// Collects the hits of a search in which Z is the number of models, and lists them by target.
class ScanTables {
 public:
  /// `memory`: see HitsByTarget. Alignments are not kept.
  explicit ScanTables(const Thresholds& rules, std::uint64_t memory = HitsByTarget::kUnbounded)
      : rules_(rules), hits_(memory, {HitOrder{.alignments = false}}) {}
  /// Fails with kOutput.
  Status add(const HitLot& lot);

  /// Receives each table's lines; an empty function: no such table.
  struct Out {
    std::function<Status(std::string_view)> targets, domains;
  };
  /// Writes hmmscan's --tblout and --domtblout, with the search's targets in input order as queries
  /// and models as targets. Call it once, after the last add. Column names come first, unless
  /// `begun` (already written) or there are no hits and `only_with_hits`. `kept`: whether each
  /// reported domain remains after overlaps are resolved; empty: overlaps are not resolved. Returns
  /// whether the column names are written.
  Result<bool> write(const Out& out, bool begun = false, bool only_with_hits = false,
                     const std::vector<bool>& kept = {});

 private:
  Thresholds rules_;
  double Z_ = 0;
  std::uint64_t reported_ = 0;  // domains so far
  HitsByTarget hits_;
};

}  // namespace hmmjit
