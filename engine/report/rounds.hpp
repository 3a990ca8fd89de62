// Iterated search of one query, as jackhmmer does it: the text of each round, and the model of the
// next (Johnson, Eddy & Portugaly 2010).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "build/alignment_model.hpp"
#include "core/spool_file.hpp"
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
  bool targets = false, domains = false, tsv = false, json = false, a3m = false,
       target_tsv = false;  ///< wanted
  bool model_checkpoints = false, alignment_checkpoints = false;
  /// False where nobody needs an alignment: one round, none shown, none saved.
  bool needs_alignments() const {
    return rounds > 1 || report.alignments || !alignment_path.empty() || json || a3m ||
           alignment_checkpoints;
  }
};

/// Texts of queries that wait in a temporary file until their turn. One thread at a time.
class TextStore {
 public:
  /// Some bytes of it. `kind`: of the text, the caller's own.
  struct Piece {
    std::size_t kind = 0;
    std::uint64_t begin = 0, end = 0;
  };
  /// Moves `text` there, and leaves it empty and without memory; `pieces` then ends with it. Fails
  /// with kOutput.
  Status take(std::size_t kind, std::string& text, std::vector<Piece>& pieces);
  /// Calls `use` with the bytes of a piece, some at a time.
  Status read(const Piece& piece, const std::function<Status(const std::string&)>& use);

 private:
  std::optional<SpoolFile> file_;
};

/// One query on its way through the rounds. Different queries may be in different threads.
class QueryRounds {
 public:
  /// `first`: the model of the query sequence `residues`, not calibrated; or without residues the
  /// query itself, a model, whose alignments then have no row of a query.
  QueryRounds(const RoundOptions& options, QueryNames names, std::span<const Residue> residues,
              build::BuiltModel first);

  /// What the next round searches with.
  Query query() const { return {model_.hmm, names_}; }
  /// Of the query sequence.
  const QueryNames& names() const { return names_; }
  /// Takes the result of a round.
  void finish_round(const ModelResult& result);
  /// The same for a result whose hits are stored: what is made of them goes to `texts` as it is
  /// made. In memory are then the names of the included targets, and, if another round follows,
  /// the alignment that its model is built from, a byte a column and row. Fails with kOutput.
  Status finish_round_in_lots(const ModelResult& result, TextStore& texts);
  /// Bytes of the texts that wait in memory.
  std::size_t text_bytes() const;
  /// Moves these to `texts`.
  Status store_texts(TextStore& texts);
  /// Hands the texts over, in their order; once done. `output`: takes those of a query, piece by
  /// piece; `checkpoint`: those of a round (counted from 0), model and alignment.
  Status write(TextStore& texts, const std::function<Status(const QueryOutput&)>& output,
               const std::function<Status(std::size_t round, const std::string& model,
                                          const std::string& alignment)>& checkpoint);
  /// No further round: converged, at the last one, or failed.
  bool done() const { return done_; }
  const std::optional<Error>& error() const { return error_; }

  /// Nothing was found that the round before had not.
  bool converged() const { return converged_; }

  struct Checkpoint {
    std::string model, alignment;
    std::size_t rows = 0;                       ///< of the alignment
    std::size_t new_targets = 0;                ///< included, and not in the round before
    std::vector<TextStore::Piece> stored = {};  ///< of the texts, what stands before the above
  };
  /// Of every round; complete once done.
  const std::vector<Checkpoint>& checkpoints() const { return checkpoints_; }
  /// Lets go of the texts of the round finished last.
  Checkpoint take_checkpoint() { return std::exchange(checkpoints_.back(), {}); }
  /// The model of the next round; once done, of the last.
  const build::BuiltModel& model() const { return model_; }
  const QueryOutput& output() const { return output_; }

 private:
  // The steps of a round.
  void begin_round(const ModelResult& result);
  void add_table_headers(const ModelResult& result);
  // Of some hits of a result; `aligned`: rows and targets of --a3m so far.
  struct AlignedSoFar {
    std::size_t rows = 0, targets_left = 0;
  };
  void add_table_rows(const ModelResult& result, AlignedSoFar& aligned);
  // '+': included, and not in the round before; '-': the other way round. `now`: included ones.
  std::string mark_hits(const HitList& hits, std::set<std::string>& now, std::size_t* added) const;
  void end_hits(const ModelResult& result, std::size_t added, std::size_t included);
  void end_query(std::size_t saved_rows);
  void build_next(const MultipleAlignment& alignment);
  std::string alignment_id() const { return names_.name + "-i" + std::to_string(round_); }
  MultipleAlignment empty_alignment(std::string reference) const;

  const RoundOptions& options_;
  QueryNames names_;
  std::string residues_;  // as letters
  build::BuiltModel model_;
  int round_ = 0;
  std::size_t query_rows_ = 1;  // 0 where the query is a model
  std::size_t rows_ = 1;        // of the alignment the model was built from
  std::set<std::string> seen_;  // names of targets included in the round before
  bool done_ = false, converged_ = false;
  std::optional<Error> error_;
  std::vector<Checkpoint> checkpoints_;
  QueryOutput output_;
  std::vector<TextStore::Piece> stored_;  // of its texts, what stands before those in memory
};

}  // namespace hmmjit
