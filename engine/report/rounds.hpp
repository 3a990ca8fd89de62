// Iterated search of one query, as jackhmmer does it: the text of each round, and the model of the
// next (Johnson, Eddy & Portugaly 2010).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "build/alignment_model.hpp"
#include "report/main_report.hpp"
#include "report/report_writer.hpp"
#include "search/search.hpp"

namespace hmmjit {

struct RoundOptions {
  int rounds = 5;
  build::AlignmentOptions alignment;
  ReportOptions report;
  FilterOptions filters;
  std::string author;          ///< of alignments
  std::string program, date;   ///< in checkpoints of models
  std::string alignment_path;  ///< of the last alignments, named in the report; empty: none
  bool targets = false, domains = false, tsv = false, json = false, a3m = false;  ///< wanted
  bool model_checkpoints = false, alignment_checkpoints = false;
  /// False where nobody needs an alignment: one round, none shown, none saved.
  bool needs_alignments() const {
    return rounds > 1 || report.alignments || !alignment_path.empty() || json || a3m ||
           alignment_checkpoints;
  }
};

/// One query on its way through the rounds. Different queries may be in different threads.
class QueryRounds {
 public:
  /// `first`: the model of the query sequence `residues`, not calibrated.
  QueryRounds(const RoundOptions& options, QueryNames names, std::span<const Residue> residues,
              build::BuiltModel first);

  /// What the next round searches with.
  Query query() const { return {model_.hmm, names_}; }
  /// Of the query sequence.
  const QueryNames& names() const { return names_; }
  /// Takes the result of a round.
  void finish_round(const ModelResult& result);
  /// No further round: converged, at the last one, or failed.
  bool done() const { return done_; }
  const std::optional<Error>& error() const { return error_; }

  /// Nothing was found that the round before had not.
  bool converged() const { return converged_; }

  struct Checkpoint {
    std::string model, alignment;
    std::size_t rows = 0;         ///< of the alignment
    std::size_t new_targets = 0;  ///< included, and not in the round before
  };
  /// Of every round; complete once done.
  const std::vector<Checkpoint>& checkpoints() const { return checkpoints_; }
  /// Lets go of the texts of the round finished last.
  Checkpoint take_checkpoint() { return std::exchange(checkpoints_.back(), {}); }
  /// The model of the next round; once done, of the last.
  const build::BuiltModel& model() const { return model_; }
  const QueryOutput& output() const { return output_; }

 private:
  void make_tables(const ModelResult& result);
  std::string mark_hits(const HitList& hits, std::size_t* added);

  const RoundOptions& options_;
  QueryNames names_;
  std::string residues_;  // as letters
  build::BuiltModel model_;
  int round_ = 0;
  std::size_t rows_ = 1;        // of the alignment the model was built from
  std::set<std::string> seen_;  // names of targets included in the round before
  bool done_ = false, converged_ = false;
  std::optional<Error> error_;
  std::vector<Checkpoint> checkpoints_;
  QueryOutput output_;
};

}  // namespace hmmjit
