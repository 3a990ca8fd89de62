// Results by target instead of by model: what hmmscan's tables show (--as hmmscan).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "search/options.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// Collects the hits of a search whose Z is the number of models, and lists them by target. Keeps
/// every candidate (without alignments) until the end.
class ScanTables {
 public:
  explicit ScanTables(const Thresholds& rules) : rules_(rules) {}
  void add(const ModelResult& result);
  /// hmmscan's --tblout and --domtblout: targets of the search in input order as queries, models as
  /// targets. Either may be null.
  /// `begun`: the lines follow those of targets that stand before these, the column names have been
  /// written; else they come first, also where there is no hit unless `only_with_hits`. Returns
  /// whether the column names have been written now.
  bool append(std::string* target_table, std::string* domain_table, bool begun = false,
              bool only_with_hits = false) const;

 private:
  struct Query {
    ModelInfo as_model;     ///< name, accession and length of the sequence, in the place of a model
    std::vector<Hit> hits;  ///< models, in the place of targets
  };
  Thresholds rules_;
  double Z_ = 0;
  std::map<std::uint64_t, Query> queries_;  // by index of the sequence
};

}  // namespace hmmjit
