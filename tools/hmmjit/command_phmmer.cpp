// hmmjit phmmer: builds a model from each query sequence, and searches with it like with any other.
#include <memory>
#include <utility>

#include "build/sequence_model.hpp"
#include "hmmjit/command.hpp"
#include "query_options.hpp"
#include "query_sequences.hpp"
#include "search/search.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

Result<SequenceQueries> open_phmmer_queries(const ParsedOptions& options, const std::string& path) {
  HMMJIT_ASSIGN(build::ScoreSystem system, make_score_system(options));
  HMMJIT_ASSIGN(std::shared_ptr<QuerySequences> sequences, QuerySequences::open(options, path));
  SequenceQueries queries;
  // As in phmmer, an arbitrary seed (--seed 0) applies only to the pipeline.
  queries.calibration = make_calibration_options(options, 42);
  const bool cutoffs =
      options.is_set("--cut_ga") || options.is_set("--cut_nc") || options.is_set("--cut_tc");
  queries.models = [sequences, cutoffs,
                    system = std::move(system)]() -> Result<std::optional<Query>> {
    HMMJIT_ASSIGN(const std::optional<TargetView> sequence, sequences->next());
    if (!sequence) return std::nullopt;
    Hmm hmm =
        build::build_from_sequence(system, std::string(sequence->name), sequence->residues).hmm;
    // A model built from a sequence has no cutoffs.
    if (cutoffs) hmm.ga = hmm.nc = hmm.tc = Cutoff{0, 0};
    return Query(std::move(hmm), names_of(*sequence));
  };
  return queries;
}

}  // namespace

CommandSpec phmmer_command() {
  SearchProgram program =
      sequence_search_program("phmmer", "search a protein sequence against a protein database");
  program.options = phmmer_option_table;
  program.open_queries = open_phmmer_queries;
  return command_of(program, "search protein sequence(s) against sequences, as phmmer does");
}

}  // namespace hmmjit::tools
