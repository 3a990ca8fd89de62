// Iterated search with one query, as in jackhmmer: the text of each round and the model of the next
// (Johnson, Eddy & Portugaly 2010).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "build/alignment_model.hpp"
#include "core/spool_file.hpp"
#include "report/outputs.hpp"
#include "search/search.hpp"

namespace hmmjit {

struct RoundOptions {
  int rounds = 5;
  build::AlignmentOptions alignment;
  OutputSettings output;        ///< the author is that of the alignments
  std::string program, date;    ///< for model checkpoints
  std::string alignment_path;   ///< of the final alignments, for the report; empty: none
  std::set<OutputKind> tables;  ///< outputs wanted in addition to report and alignment
  bool model_checkpoints = false, alignment_checkpoints = false;
  /// False if no alignment is needed: one round, with none shown or saved.
  bool needs_alignments() const {
    return rounds > 1 || output.report.alignments || !alignment_path.empty() ||
           tables.contains(OutputKind::kJson) || tables.contains(OutputKind::kA3m) ||
           alignment_checkpoints;
  }
};

/// A text whose beginning may have been moved to a TextStore.
struct StoredText {
  struct Range {
    std::uint64_t begin = 0, end = 0;
  };
  std::vector<Range> stored = {};
  std::string text = {};
};

/// Keeps texts of queries in a temporary file until their turn. One thread at a time.
class TextStore {
 public:
  /// Moves the text in memory to the file. Fails with kOutput.
  Status take(StoredText& text);
  /// Calls `use` with the whole text, in pieces.
  Status read(const StoredText& text, const std::function<Status(std::string_view)>& use);

 private:
  std::optional<SpoolFile> file_;
};

/// The state of one query through its rounds. Threads may process different queries concurrently.
class QueryRounds {
 public:
  /// `first`: the uncalibrated model of the query sequence `residues`. Without `residues`, `first`
  /// is the query, and alignments have no row for it. `index`: of the query, for tables.
  QueryRounds(const RoundOptions& options, QueryNames names, std::span<const Residue> residues,
              build::BuiltModel first, std::size_t index);

  /// The model of the next round, with the names of the query.
  Query query() const { return {model_.hmm, names_}; }
  const QueryNames& names() const { return names_; }
  /// Processes the result of a round. `store` receives the text; null: keeps it in memory. If
  /// another round follows, the alignment takes one byte of memory per column and row. Fails with
  /// kOutput.
  Status finish_round(const ModelResult& result, TextStore* store = nullptr);
  /// Total size of the texts in memory, in bytes.
  std::size_t text_bytes() const;
  Status store_texts(TextStore& store);
  /// True if no further round follows: the query converged, reached the last round, or failed.
  bool done() const { return done_; }
  const std::optional<Error>& error() const { return error_; }

  /// True if the last round found nothing new.
  bool converged() const { return converged_; }

  struct Checkpoint {
    StoredText model, alignment;
    std::size_t rows = 0;         ///< in the alignment
    std::size_t new_targets = 0;  ///< included now, but not in the previous round
  };
  /// One for each round; complete once done.
  const std::vector<Checkpoint>& checkpoints() const { return checkpoints_; }
  /// Moves out the checkpoint of the last round.
  Checkpoint take_checkpoint() { return std::exchange(checkpoints_.back(), {}); }
  /// The model for the next round or, once done, of the last.
  const build::BuiltModel& model() const { return model_; }
  // Once done:
  const StoredText& text(OutputKind kind) const { return texts_[static_cast<std::size_t>(kind)]; }
  /// The last round's result without its hits, and its counts.
  const ModelResult& totals() const { return totals_; }
  const RunTotals& counts() const { return counts_; }

 private:
  // The steps of a round.
  void begin_round(const ModelResult& result);
  // '+': included now but not in the previous round; '-': the reverse. `now`: included names.
  std::string mark_hits(const HitLot& lot, std::set<std::string>& now, std::size_t& added) const;
  void end_hits(const ModelResult& result, std::size_t added, std::size_t included);
  void end_query(std::size_t saved_rows);
  void build_next(const MultipleAlignment& alignment);
  std::string& memory_text(OutputKind kind) { return texts_[static_cast<std::size_t>(kind)].text; }
  std::string alignment_id() const { return names_.name + "-i" + std::to_string(round_); }
  MultipleAlignment empty_alignment(std::string reference) const;

  const RoundOptions& options_;
  QueryNames names_;
  std::string residues_;  // as letters
  build::BuiltModel model_;
  std::size_t index_;
  int round_ = 0;
  std::size_t query_rows_ = 1;  // 0 if the query is a model
  std::size_t rows_ = 1;        // in the alignment from which the model was built
  std::set<std::string> seen_;  // names of targets included in the previous round
  bool done_ = false, converged_ = false;
  std::optional<Error> error_;
  std::vector<Checkpoint> checkpoints_;
  std::array<StoredText, kOutputKinds> texts_;
  ModelResult totals_;
  RunTotals counts_;
};

}  // namespace hmmjit
