// hmmjit nhmmer: searches both strands of long sequences with DNA and RNA models, alignments or
// sequences.
#include <optional>
#include <utility>

#include "build/hmm_writer.hpp"
#include "hmmjit/command.hpp"
#include "nucleotide_options.hpp"
#include "nucleotide_queries.hpp"
#include "output_names.hpp"
#include "report/nucleotide_run.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

Result<SequenceQueries> open_queries(const ParsedOptions& options, const std::string& path) {
  SequenceQueries queries;
  HMMJIT_ASSIGN(queries.nucleotides, NucleotideQueries::open(options, path));
  queries.alphabet = &queries.nucleotides->alphabet();
  return queries;
}

Result<SearchStatistics> search_nucleotides(ProgramRun& run) {
  const ParsedOptions& options = run.options;
  NucleotideQueries& queries = *run.queries->nucleotides;
  const nucleotide::Options searched = make_nucleotide_options(options, run.search, false);
  std::optional<TextOutput> models;  // built from the queries
  if (queries.builds()) {
    HMMJIT_ASSIGN(models, create_file(options, "--hmmout"));
  }
  HMMJIT_ASSIGN(const QueryRange range, queries_of_slice(options, options.arguments()[0]));
  std::uint64_t read = 0;  // queries
  for (; read < range.first; ++read) HMMJIT_TRY(queries.skip());
  const auto next_query = [&]() -> Result<std::optional<nucleotide::Query>> {
    if (read++ >= range.last) return std::nullopt;
    HMMJIT_ASSIGN(std::optional<build::BuiltModel> built, queries.next());
    if (!built) return std::nullopt;
    if (models) {
      std::string text;
      HMMJIT_TRY(build::check_writable(*built));
      append_hmm_text(text, *built, author_of(run.program, options).model_tag(), date_text());
      models->write(text);
    }
    const int length = window_length(options, built->hmm);
    return make_nucleotide_query(std::move(built->hmm), length, run.search.thresholds);
  };
  const auto receive = [&](const ModelResult& result) -> Status {
    if (run.add_features) HMMJIT_TRY(run.add_features(result));
    return run.writer.receive(result);
  };
  auto statistics = run_nucleotides({.options = searched,
                                     .next_query = next_query,
                                     .receive = receive,
                                     .first_query = range.first,
                                     .target_file = options.arguments()[1],
                                     .search = run.search,
                                     .device = run.devices.scan},
                                    *run.targets, run.progress);
  if (statistics && models) {
    HMMJIT_TRY(models->flush());
    run.further_files.push_back(std::move(models->file()));
  }
  return statistics;
}

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
  program.search = search_nucleotides;
  program.long_targets = true;
  return command_of(program, "search DNA or RNA against long sequences, as nhmmer does");
}

}  // namespace hmmjit::tools
