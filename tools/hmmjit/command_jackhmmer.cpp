// hmmjit jackhmmer: searches query sequences in rounds, each with a model of the previous hits.
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "build/sequence_model.hpp"
#include "core/memory.hpp"
#include "core/output_file.hpp"
#include "core/random_seed.hpp"
#include "hmmjit/command.hpp"
#include "output_names.hpp"
#include "query_options.hpp"
#include "query_sequences.hpp"
#include "report/rounds.hpp"
#include "run_text.hpp"
#include "search/kept_targets.hpp"
#include "search/search.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

// Queries whose rounds run concurrently. Their text waits until all are done.
constexpr std::size_t kQueriesAtATime = 64;

Result<SequenceQueries> open_jackhmmer_queries(const ParsedOptions& options,
                                               const std::string& path) {
  SequenceQueries queries;
  HMMJIT_ASSIGN(queries.system, make_score_system(options));
  HMMJIT_ASSIGN(queries.sequences, QuerySequences::open(options, path));
  queries.calibration = make_calibration_options(options, random_seed());
  return queries;
}

// Returns the results of a round to their queries.
class RoundSink final : public ResultSink {
 public:
  /// A query keeps up to `text` bytes of text in memory; `store` takes the rest.
  RoundSink(std::vector<std::unique_ptr<QueryRounds>*> queries, TextStore& store, std::size_t text)
      : queries_(std::move(queries)), store_(store), text_(text) {}

  std::shared_ptr<PreparedResult> prepare(const ModelResult& result) const override {
    return std::make_shared<Finish>(**queries_[result.index], result);
  }
  Status receive(const ModelResult& result) override {
    std::unique_ptr<QueryRounds>& query = *queries_[result.index];
    if (result.stored != nullptr)
      HMMJIT_TRY(query->finish_round(result, &store_));
    else
      HMMJIT_TRY(dynamic_cast<Finish&>(*result.prepared).move_to(query));
    if (const auto& error = query->error()) return std::unexpected(*error);
    return query->text_bytes() > text_ ? query->store_texts(store_) : Status{};
  }
  bool takes_stored_hits() const override { return true; }
  ModelSource models() const {
    return [this, next = std::size_t{0}]() mutable -> Result<std::optional<Query>> {
      if (next == queries_.size()) return std::nullopt;
      return (*queries_[next++])->query();
    };
  }

 private:
  // A copy of the query after this round. The query changes when receive() gets the result.
  class Finish final : public PreparedResult {
   public:
    Finish(const QueryRounds& before, const ModelResult& result)
        : before_(before), result_(result) {}
    void make(std::size_t) override {
      after_ = std::make_unique<QueryRounds>(before_);
      finished_ = after_->finish_round(result_);
    }
    std::size_t bytes() const override {
      return after_ ? sizeof(QueryRounds) + after_->text_bytes() : 0;
    }
    Status move_to(std::unique_ptr<QueryRounds>& query) {
      query = std::move(after_);
      return finished_;
    }

   private:
    const QueryRounds& before_;
    const ModelResult& result_;
    std::unique_ptr<QueryRounds> after_;
    Status finished_;
  };
  std::vector<std::unique_ptr<QueryRounds>*> queries_;
  TextStore& store_;
  std::size_t text_;
};

void start_again(SearchProgress& progress) {
  progress.earlier_cells += progress.cells;
  for (auto* counter :
       {&progress.target_bytes_read, &progress.target_bytes_total, &progress.targets,
        &progress.residues, &progress.models_started, &progress.models_done, &progress.cells,
        &progress.cells_queued, &progress.scoring_cells_found, &progress.scoring_cells})
    *counter = 0;
  progress.targets_complete = false;
}

Result<SearchStatistics> search_in_rounds(ProgramRun& run) {
  const ParsedOptions& options = run.options;
  RoundOptions rounds;
  rounds.rounds = options.integer("-N");
  rounds.alignment = make_alignment_options(options);
  rounds.alignment.columns = build::AlignmentOptions::Columns::kReference;
  const Author author = author_of(run.program, options);
  rounds.output = {run.report, run.search.filters, author.signature()};
  rounds.program = author.model_tag();
  rounds.date = date_text();
  rounds.alignment_path = options.given().path("-A");
  for (const auto& [option, kind] : kReportFiles) {
    const bool by_rounds = kind == OutputKind::kMain || kind == OutputKind::kAlignment;
    if (!by_rounds && !options.path(option).empty()) rounds.tables.insert(kind);
  }
  rounds.model_checkpoints = options.is_set("--chkhmm");
  rounds.alignment_checkpoints = options.is_set("--chkali");
  run.search.keep_alignments = rounds.needs_alignments();

  // Targets may take a third of the bound, and stay in memory between rounds.
  HMMJIT_ASSIGN(const MemoryGrant grant, grant_memory(run.search.memory, 1));
  std::unique_ptr<TargetSource> targets = keep_targets(std::move(run.targets), grant.bound / 3);
  // Files of all rounds, by name. All appear together at the end.
  std::map<std::string, OutputFile> checkpoints;
  const auto checkpoint_file = [&](const char* option, std::size_t round) -> Result<OutputFile*> {
    const std::string name = file_of_round(options, option, round).path;
    auto found = checkpoints.find(name);
    if (found == checkpoints.end()) {
      HMMJIT_ASSIGN(OutputFile file, OutputFile::create(name));
      found = checkpoints.emplace(name, std::move(file)).first;
    }
    return &found->second;
  };
  // Opens the first round's files now: reports a wrong place before the search.
  if (rounds.model_checkpoints) HMMJIT_TRY(checkpoint_file("--chkhmm", 1));
  if (rounds.alignment_checkpoints) HMMJIT_TRY(checkpoint_file("--chkali", 1));

  SearchStatistics statistics;
  bool searched = false;
  std::size_t read = 0;  // queries
  std::optional<Error> query_error;
  const auto text = static_cast<std::size_t>(
      std::max<std::uint64_t>(grant.bound / 16 / kQueriesAtATime, std::uint64_t{16} << 10));
  for (bool more = true; more;) {
    TextStore texts;
    std::vector<std::unique_ptr<QueryRounds>> queries;
    while (queries.size() < kQueriesAtATime) {
      auto sequence = run.queries->sequences->next();
      if (!sequence) query_error = sequence.error();  // after results of earlier queries
      more = sequence && sequence->has_value();
      if (!more) break;
      const TargetView& query = **sequence;
      queries.push_back(std::make_unique<QueryRounds>(
          rounds, names_of(query), query.residues,
          build::build_from_sequence(run.queries->system, std::string(query.name), query.residues),
          read++));
    }
    for (;;) {
      std::vector<std::unique_ptr<QueryRounds>*> active;
      for (auto& query : queries) {
        if (!query->done()) active.push_back(&query);
      }
      if (active.empty()) break;
      if (std::exchange(searched, true)) {
        HMMJIT_TRY(targets->rewind());
        start_again(run.progress);
      }
      RoundSink sink(std::move(active), texts, text);
      HMMJIT_ASSIGN(
          const SearchStatistics round,
          run.devices.session.search(run.search, sink.models(), *targets, sink, run.progress));
      add(statistics, round);
    }
    for (const auto& query : queries) {
      HMMJIT_TRY(run.writer.begin_query(query->names().name));
      HMMJIT_TRY(run.writer.begin_model(query->totals()));
      for (const OutputKind kind : kAllOutputs)
        HMMJIT_TRY(texts.read(query->text(kind), [&](std::string_view piece) {
          return run.writer.put(kind, piece);
        }));
      for (std::size_t round = 0; round < query->checkpoints().size(); ++round) {
        const QueryRounds::Checkpoint& checkpoint = query->checkpoints()[round];
        const auto write = [&](const char* option, const StoredText& stored) -> Status {
          HMMJIT_ASSIGN(OutputFile* const file, checkpoint_file(option, round + 1));
          HMMJIT_TRY(file->status());
          return texts.read(stored, [&](std::string_view piece) {
            file->write(piece);
            return file->status();
          });
        };
        if (rounds.model_checkpoints) HMMJIT_TRY(write("--chkhmm", checkpoint.model));
        if (rounds.alignment_checkpoints) HMMJIT_TRY(write("--chkali", checkpoint.alignment));
      }
      run.writer.count(query->counts());
      HMMJIT_TRY(run.writer.end_query());
    }
  }
  if (query_error) return std::unexpected(*query_error);
  for (auto& [name, file] : checkpoints) {
    if (searched) run.further_files.push_back(std::move(file));
  }
  return statistics;
}

}  // namespace

CommandSpec jackhmmer_command() {
  SearchProgram program = sequence_search_program(
      "jackhmmer", "iteratively search a protein sequence against a protein database");
  program.options = jackhmmer_option_table;
  program.open_queries = open_jackhmmer_queries;
  program.search = search_in_rounds;
  return command_of(program, "search protein sequence(s) in rounds, as jackhmmer does");
}

}  // namespace hmmjit::tools
