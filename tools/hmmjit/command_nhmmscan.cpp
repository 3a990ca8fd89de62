// hmmjit nhmmscan: DNA or RNA sequences against a file of profiles, both strands.
#include <fmt/format.h>

#include <optional>
#include <utility>
#include <vector>

#include "core/threads.hpp"
#include "core/trace.hpp"
#include "hmmjit/command.hpp"
#include "nucleotide_options.hpp"
#include "report/nucleotide_run.hpp"
#include "search/search.hpp"
#include "search/verifier.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

// Residues that are searched at a time: enough for all threads, or for a device. The first ones
// tell how many short sequences that are.
constexpr std::size_t kResiduesAtATime = std::size_t{1} << 22,
                      kResiduesOfDevice = std::size_t{1} << 25,
                      kFirstResidues = std::size_t{1} << 16;
// Pairs of sequence and model at a time: each takes some 60 bytes, with a device 100.
constexpr std::size_t kPairsAtATime = std::size_t{1} << 21;

Result<std::vector<nucleotide::Query>> read_models(const ProgramRun& run, std::uint64_t* nodes) {
  const std::string& path = run.options.arguments()[0];
  std::vector<nucleotide::Query> models;
  for (;;) {
    HMMJIT_ASSIGN(std::optional<Query> next, run.profiles());
    if (!next) return models;
    Hmm& hmm = next->hmm;
    if (hmm.alphabet->type == AlphabetType::kAmino)
      return fail(ErrorCode::kInput, fmt::format("model {} is of proteins", hmm.name), path,
                  "use hmmjit scan");
    if (!hmm.max_length)
      return fail(ErrorCode::kInput, fmt::format("model {} has no MAXL", hmm.name), path,
                  "build it again with HMMER 3.1 or later, or hmmjit build");
    *nodes += static_cast<std::uint64_t>(hmm.M);
    const int length = *hmm.max_length;
    HMMJIT_ASSIGN(nucleotide::Query query,
                  make_nucleotide_query(std::move(hmm), length, run.search.thresholds));
    models.push_back(std::move(query));
  }
}

Result<SearchStatistics> scan_sequences(ProgramRun& run) {
  const double begin = Trace::now();
  if (run.options.is_set("--bgfile"))
    return fail(ErrorCode::kUsage, "--bgfile is not supported here", {}, "use hmmjit nhmmer");
  const nucleotide::Options options = make_nucleotide_options(run.options, run.search, true);
  SearchStatistics statistics;
  std::uint64_t nodes = 0;
  HMMJIT_ASSIGN(std::vector<nucleotide::Query> models, read_models(run, &nodes));
  statistics.models = models.size();
  statistics.backend = host_filters_name();
  statistics.threads = options.threads;
  std::size_t sequence = 0;
  nucleotide::DeviceScan* const device = run.devices.scan;
  search_run::Verifier verifier(run.search, run.progress, run.search.domain);
  nucleotide::Search search(std::move(models), options, device, &verifier);
  for (;;) {
    CoreClock clock;
    TargetBlock block;
    std::size_t residues = kFirstResidues;
    if (statistics.targets > 0) {
      const std::size_t average = statistics.residues / statistics.targets + 1;
      const std::size_t sequences =
          std::max<std::size_t>(1024, kPairsAtATime / std::max<std::size_t>(1, statistics.models));
      residues =
          std::min(device != nullptr ? kResiduesOfDevice : kResiduesAtATime, sequences * average);
    }
    HMMJIT_TRY(run.targets->next(block, residues));
    statistics.read_seconds += clock.lap();
    if (block.size() == 0) break;
    HMMJIT_ASSIGN(std::vector<nucleotide::HitList> lists, search.scan(block));
    clock.lap();
    for (std::size_t i = 0; i < block.size(); ++i) {
      const QueryNames names = names_of(block[i]);
      ModelResult result = nucleotide_result(std::move(lists[i]), options);
      result.nucleotides->models = statistics.models;
      result.nucleotides->nodes = nodes;
      result.index = sequence++;
      result.model = {.name = names.name,
                      .accession = names.accession,
                      .description = names.description,
                      .M = block.length(i),
                      .built = names};
      statistics.counters += result.hits.counters;
      statistics.hits_reported += result.hits.reported;
      statistics.domains_reported += result.hits.reported;
      ++run.progress.results_delivered;
      HMMJIT_TRY(run.writer.receive(result));
    }
    statistics.report_seconds += clock.lap();
    ++statistics.blocks;
    statistics.targets += block.size();
    statistics.residues += block.residue_count();
    run.progress.targets += block.size();
    run.progress.residues += block.residue_count();
  }
  statistics.bytes_read = run.targets->bytes_read();
  add_times(statistics, search.times());
  verifier.add_to(statistics);
  statistics.wall_seconds = Trace::now() - begin;
  return statistics;
}

}  // namespace

CommandSpec nhmmscan_command() {
  SearchProgram program =
      scan_program("nhmmscan", "search DNA sequence(s) against a DNA profile database", "nhmmscan");
  program.options = nhmmscan_option_table;
  program.search = scan_sequences;
  program.long_targets = true;
  return command_of(program, "search DNA or RNA sequence(s) against profiles, as nhmmscan does");
}

}  // namespace hmmjit::tools
