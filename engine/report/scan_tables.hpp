// Results by target instead of by model: what hmmscan's tables show (--as hmmscan).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "search/options.hpp"
#include "search/records_by_target.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// Collects the hits of a search whose Z is the number of models, and lists them by target. Keeps
/// every candidate (without alignments) until the end.
class ScanTables {
 public:
  /// `memory`: bytes that hits and buffers may take; what is more waits in a temporary file. The
  /// hits of a single target are not bounded.
  explicit ScanTables(const Thresholds& rules, std::uint64_t memory = RecordsByTarget::kUnbounded)
      : rules_(rules), records_(memory) {}
  /// The hits that a result holds. Fails with kOutput.
  Status add(const ModelResult& result);
  /// A hit of the model of `result`.
  Status add(const ModelResult& result, const Hit& hit);

  /// Where the lines of each table go; empty: not wanted.
  struct Out {
    std::function<Status(std::string_view)> targets, domains;
  };
  /// hmmscan's --tblout and --domtblout: targets of the search in input order as queries, models as
  /// targets. Once, after the last add.
  /// `begun`: the lines follow those of targets that stand before these, the column names have been
  /// written; else they come first, also where there is no hit unless `only_with_hits`. Returns
  /// whether the column names have been written now.
  Result<bool> write(const Out& out, bool begun = false, bool only_with_hits = false);

 private:
  Thresholds rules_;
  double Z_ = 0;
  RecordsByTarget records_;
};

}  // namespace hmmjit
