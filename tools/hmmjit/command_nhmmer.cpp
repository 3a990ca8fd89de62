// hmmjit nhmmer: DNA and RNA models, alignments and sequences against long sequences, both strands.
#include <optional>
#include <utility>

#include "build/hmm_writer.hpp"
#include "hmmjit/command.hpp"
#include "nucleotide_options.hpp"
#include "nucleotide_queries.hpp"
#include "report/nucleotide_run.hpp"
#include "search_inputs.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

Result<SequenceQueries> open_queries(const ParsedOptions& options, const std::string& path) {
  SequenceQueries queries;
  HMMJIT_ASSIGN(queries.nucleotides, NucleotideQueries::open(options, path));
  queries.alphabet = &queries.nucleotides->alphabet();
  return queries;
}

class Nhmmer {
 public:
  explicit Nhmmer(ProgramRun& run)
      : run_(run),
        queries_(*run.queries->nucleotides),
        options_(make_nucleotide_options(run.options, run.search, false)) {}

  Result<SearchStatistics> search() {
    if (!run_.options.is_set("--dna") && !run_.options.is_set("--rna"))
      HMMJIT_TRY(check_nucleotides(run_.options.arguments()[1]));
    if (run_.options.is_set("--hmmout") && queries_.builds()) {
      HMMJIT_ASSIGN(models_, OutputFile::create(run_.options.path("--hmmout")));
    }
    HMMJIT_ASSIGN(range_, queries_of_slice(run_.options, run_.options.arguments()[0]));
    for (; read_ < range_.first; ++read_) HMMJIT_TRY(queries_.skip());
    const NucleotideRun run{
        .options = options_,
        .next_query = [this] { return next_query(); },
        .receive = [this](const NucleotideResult& result,
                          const ModelResult& single) { return write(result, single); },
        .first_query = range_.first,
        .target_file = run_.options.arguments()[1],
        .memory = run_.search.memory,
        .device = run_.devices.scan};
    auto statistics = run_nucleotides(run, *run_.targets, run_.progress);
    if (statistics && models_) run_.further_files.push_back(*std::move(models_));
    return statistics;
  }

 private:
  Result<std::optional<nucleotide::Query>> next_query() {
    if (read_++ >= range_.last) return std::nullopt;
    HMMJIT_ASSIGN(std::optional<build::BuiltModel> built, queries_.next());
    if (!built) return std::nullopt;
    if (models_) {
      std::string text;
      append_hmm_text(text, *built, author_of(run_.program, run_.options).model_tag(), date_text());
      models_->write(text);
    }
    const int length = window_length(run_.options, built->hmm);
    return make_nucleotide_query(std::move(built->hmm), length, run_.search.thresholds);
  }

  Status write(const NucleotideResult& result, const ModelResult& single) {
    if (run_.add_features) HMMJIT_TRY(run_.add_features(single));
    return run_.writer.receive(result, single, options_);
  }

  ProgramRun& run_;
  NucleotideQueries& queries_;
  const nucleotide::Options options_;
  QueryRange range_;
  std::uint64_t read_ = 0;            // queries
  std::optional<OutputFile> models_;  // built from the queries
};

}  // namespace

CommandSpec nhmmer_command() {
  SearchProgram program;
  program.name = program.reference = "nhmmer";
  program.title = "search a DNA model, alignment, or sequence against a DNA database";
  program.queries = {"queryfile", "profile HMMs, alignments or sequences; - for standard input"};
  program.targets = target_databases();
  program.query_label = "query file:";
  program.options = nhmmer_option_table;
  program.open_queries = open_queries;
  program.search = [](ProgramRun& run) { return Nhmmer(run).search(); };
  program.long_targets = true;
  return command_of(program, "search DNA or RNA against long sequences, as nhmmer does");
}

}  // namespace hmmjit::tools
