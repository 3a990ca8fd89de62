// hmmjit nhmmscan: searches both strands of DNA or RNA sequences with a file of profiles.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/memory.hpp"
#include "core/threads.hpp"
#include "core/trace.hpp"
#include "hmmjit/command.hpp"
#include "io/hmm_file.hpp"
#include "nucleotide_options.hpp"
#include "report/nucleotide_run.hpp"
#include "search/search.hpp"
#include "search/verifier.hpp"
#include "search_inputs.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

// Residues of a block: enough for all threads, or for a device. The first block is small and shows
// how short the sequences are.
constexpr std::size_t kResiduesAtATime = std::size_t{1} << 22,
                      kResiduesOfDevice = std::size_t{1} << 25,
                      kFirstResidues = std::size_t{1} << 16;
// Pairs of sequence and model at a time: each takes about 60 bytes, or 100 with a device. A block
// of few sequences would not be worth reading all models again.
constexpr std::size_t kPairsAtATime = std::size_t{1} << 21, kFewestSequences = 1024;
// Model positions in a pass without a device. A pass costs little compared to the search of a
// block; the positions of all models could take gigabytes.
constexpr std::uint64_t kPositionsAtATime = std::uint64_t{1} << 16;

// The models that search a block together.
struct Pass {
  std::vector<nucleotide::Query> models;
  bool last = false;
};

Result<Pass> read_pass(const ProgramRun& run, HmmReader& reader, std::uint64_t positions,
                       std::size_t models) {
  Pass pass;
  for (std::uint64_t read = 0; read < positions && pass.models.size() < models;) {
    HMMJIT_ASSIGN(std::optional<Hmm> next, reader.next());
    if (!next) {
      pass.last = true;
      break;
    }
    Hmm& hmm = *next;
    if (hmm.alphabet->type == AlphabetType::kAmino)
      return fail(ErrorCode::kInput, fmt::format("model {} is of proteins", hmm.name),
                  reader.name(), "use hmmjit scan");
    if (!hmm.max_length)
      return fail(ErrorCode::kInput, fmt::format("model {} has no MAXL", hmm.name), reader.name(),
                  "build it again with HMMER 3.1 or later, or hmmjit build");
    read += static_cast<std::uint64_t>(hmm.M);
    const int length = *hmm.max_length;
    HMMJIT_ASSIGN(nucleotide::Query query,
                  make_nucleotide_query(std::move(hmm), length, run.search.thresholds));
    pass.models.push_back(std::move(query));
  }
  return pass;
}

Result<SearchStatistics> scan_sequences(ProgramRun& run) {
  const double begin = Trace::now();
  if (run.options.is_set("--bgfile"))
    return fail(ErrorCode::kUsage, "--bgfile is not supported here", {}, "use hmmjit nhmmer");
  nucleotide::Options options = make_nucleotide_options(run.options, run.search, true);
  HMMJIT_ASSIGN(const MemoryGrant grant, grant_memory(run.search));
  options.threads = grant.threads;
  run.targets->limit_targets(longest_target(grant.bound));
  SearchStatistics statistics;
  statistics.backend = host_filters_name();
  statistics.threads = options.threads;
  std::size_t sequence = 0;
  nucleotide::DeviceScan* const device = run.devices.scan;
  search_run::Verifier verifier(run.search, run.progress, run.search.domain);
  std::uint64_t positions = positions_of_pass(grant.bound);
  if (device == nullptr) positions = std::min(positions, kPositionsAtATime);
  const std::size_t pairs = std::min<std::size_t>(kPairsAtATime, grant.bound / 256);
  const std::size_t most_models = std::max<std::size_t>(1, grant.bound / 256 / kFewestSequences);
  std::optional<nucleotide::Search> search;
  std::size_t models_at_a_time = 1;
  bool all = false;  // `search` has all models and takes block after block
  const auto end_pass = [&] {
    add_times(statistics, search->times());
    search.reset();
  };
  const auto scan_in_passes = [&](const TargetBlock& block, nucleotide::Scan& found) -> Status {
    HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(run.model_file.path));
    reader.keep_subnormals();
    for (;;) {
      CoreClock clock;
      HMMJIT_ASSIGN(Pass pass, read_pass(run, reader, positions, most_models));
      statistics.setup_seconds += clock.lap();
      all = pass.last && found.models == 0;
      if (pass.models.empty()) return {};
      models_at_a_time = std::max(models_at_a_time, pass.models.size());
      search.emplace(std::move(pass.models), options, device, &verifier);
      HMMJIT_TRY(search->scan(block, found));
      if (all) return {};
      end_pass();
      if (pass.last) return {};
    }
  };
  for (;;) {
    CoreClock clock;
    TargetBlock block;
    std::size_t residues = kFirstResidues;
    if (statistics.targets > 0) {
      const std::size_t average = statistics.residues / statistics.targets + 1;
      const std::size_t sequences = std::max(kFewestSequences, pairs / models_at_a_time);
      residues =
          std::min(device != nullptr ? kResiduesOfDevice : kResiduesAtATime, sequences * average);
    }
    HMMJIT_TRY(run.targets->next(block, residues));
    statistics.read_seconds += clock.lap();
    if (block.size() == 0) break;
    nucleotide::Scan found;
    HMMJIT_TRY(all ? search->scan(block, found) : scan_in_passes(block, found));
    if (statistics.targets > 0 && found.models != statistics.models)
      return fail(ErrorCode::kInput, "the models changed while they were read", {},
                  "do not change files that are in use");
    statistics.models = found.models;
    clock.lap();
    for (std::size_t i = 0; i < block.size(); ++i) {
      const QueryNames names = names_of(block[i]);
      ModelResult result = nucleotide_result(found.finish(i), options);
      result.nucleotides->models = found.models;
      result.nucleotides->nodes = found.nodes;
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
  if (statistics.targets == 0) {  // check the models nevertheless
    nucleotide::Scan none;
    HMMJIT_TRY(scan_in_passes({}, none));
    statistics.models = none.models;
  }
  statistics.bytes_read = run.targets->bytes_read();
  if (search) end_pass();
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
