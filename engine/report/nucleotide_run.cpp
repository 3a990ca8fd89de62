#include "report/nucleotide_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <system_error>
#include <utility>
#include <vector>

#include "build/calibration.hpp"
#include "core/memory.hpp"
#include "core/threads.hpp"
#include "core/trace.hpp"
#include "search/verifier.hpp"

namespace hmmjit {
namespace {

// Memory limits of a run.
struct Limits {
  // Minimum number of residues in a block of targets; targets are not divided. Memory holds two
  // blocks and the bottom strand of one. A device gets larger blocks: it works on tens of thousands
  // of items at a time, and idles towards the end of each block.
  std::size_t residues;
  // Model positions in one pass over the targets.
  std::uint64_t positions;

  Limits(std::uint64_t bound, bool device)
      : residues(std::clamp<std::size_t>(bound / 8, std::size_t{1} << 16,
                                         std::size_t{device ? 256u : 16u} << 20)),
        positions(positions_of_pass(bound)) {}
};

struct Pass {
  std::vector<nucleotide::Query> queries;
  std::uint64_t positions = 0;
};

Result<Pass> next_pass(const NucleotideRun& run, const Limits& limits, SearchProgress& progress) {
  Pass pass;
  while (pass.positions < limits.positions) {
    HMMJIT_ASSIGN(std::optional<nucleotide::Query> query, run.next_query());
    if (!query) break;
    pass.positions += static_cast<std::uint64_t>(query->model->hmm.M);
    pass.queries.push_back(*std::move(query));
    ++progress.models_started;
  }
  return pass;
}

// Reads each block during the search of the previous one. Both blocks keep their memory: page
// faults would take longer than reading the residues. `copy` receives the targets; may be null.
Status read_targets(const NucleotideRun& run, const Limits& limits, const Pass& pass,
                    TargetSource& targets, BlockSpool* copy, nucleotide::Search& search,
                    SearchStatistics& statistics, SearchProgress& progress) {
  TargetBlock block, following;
  const auto read = [&](TargetBlock& into) -> Status {
    CoreClock clock;
    into.clear();
    HMMJIT_ASSIGN(const bool more, targets.next(into, limits.residues));
    if (more && copy != nullptr) HMMJIT_TRY(copy->append(into));
    statistics.read_seconds += clock.lap();
    return {};
  };
  const std::uint64_t strands = run.options.strands == nucleotide::Strands::kBoth ? 2 : 1;
  progress.target_bytes_total = targets.bytes_total();
  HMMJIT_TRY(read(block));
  if (block.size() == 0)
    return fail(ErrorCode::kInput, "no sequence in the file", run.target_file, "give targets");
  while (block.size() > 0) {
    const std::uint64_t cells = pass.positions * block.residue_count() * strands;
    progress.cells_queued += cells;
    std::future<Status> next;
    try {
      next = std::async(run.options.threads > 1 ? std::launch::async : std::launch::deferred, read,
                        std::ref(following));
    } catch (const std::system_error&) {  // no thread can be started: read it later
      next = std::async(std::launch::deferred, read, std::ref(following));
    }
    for (std::size_t n = 0; n < block.size(); ++n) {
      if (block.length(n) == 0 && run.options.partition == nucleotide::Partition::kSerial)
        return fail(ErrorCode::kInput, fmt::format("sequence {} has no residues", block[n].name),
                    run.target_file, "remove it, or search without --cpu 0");
    }
    HMMJIT_TRY(search.add(block));
    if (statistics.passes == 1) {
      ++statistics.blocks;
      statistics.targets += block.size();
      statistics.residues += block.residue_count();
      progress.targets += block.size();
      progress.residues += block.residue_count();
    }
    progress.cells += cells;
    HMMJIT_TRY(next.get());
    std::swap(block, following);
    progress.target_bytes_read = targets.bytes_read();
  }
  statistics.bytes_read += targets.bytes_read();
  progress.targets_complete = true;
  return {};
}

}  // namespace

Result<nucleotide::Query> make_nucleotide_query(Hmm hmm, int window_length,
                                                const Thresholds& rules) {
  nucleotide::Query query{.model = {},
                          .window_length = window_length,
                          .report = {rules.target.e_value, rules.target.score},
                          .include = {rules.include_target.e_value, rules.include_target.score}};
  if (rules.cutoffs != ModelCutoffs::kNone) {
    const std::optional<Cutoff> cutoff = cutoff_of(hmm, rules);
    if (!cutoff && rules.missing == MissingCutoffs::kError) return lacks_cutoffs(rules, hmm.name);
    if (cutoff) query.report.score = query.include.score = static_cast<double>(cutoff->sequence);
  }
  HMMJIT_TRY(nucleotide::check(hmm.name, hmm.M, window_length));
  HMMJIT_TRY(build::calibrate_if_needed(hmm));
  query.model = begin_search_model(std::move(hmm));
  return query;
}

std::uint64_t longest_target(std::uint64_t bound) {
  return std::max<std::uint64_t>(bound / 4, std::uint64_t{1} << 24);
}

std::uint64_t positions_of_pass(std::uint64_t bound) {
  return std::clamp<std::uint64_t>(bound / 4 / 1024, 1, std::uint64_t{1} << 20);
}

void add_times(SearchStatistics& statistics, const nucleotide::Times& times) {
  statistics.setup_seconds += times.setup_seconds;
  statistics.filters += {.ssv = times.ssv.seconds,
                         .msv = times.msv.seconds,
                         .bias = times.bias.seconds,
                         .viterbi = times.viterbi.seconds,
                         .ssv_cells = times.ssv.cells,
                         .msv_cells = times.msv.cells,
                         .bias_residues = times.bias.cells,
                         .viterbi_cells = times.viterbi.cells};
  statistics.scoring_seconds += times.domain_seconds;
  statistics.domain += times.domain;
}

Result<SearchStatistics> run_nucleotides(NucleotideRun run, TargetSource& targets,
                                         SearchProgress& progress) {
  const double begin = Trace::now();
  SearchStatistics statistics;
  statistics.backend = host_filters_name();
  HMMJIT_ASSIGN(const MemoryGrant grant, grant_memory(run.search));
  statistics.threads = run.options.threads = grant.threads;
  const Limits limits(grant.bound, run.device != nullptr);
  targets.limit_targets(longest_target(grant.bound));
  search_run::Verifier verifier(run.search, progress, run.search.domain);
  statistics.passes = 0;
  TargetSource* input = &targets;
  std::unique_ptr<BlockSpool> spool;  // for further passes over a pipe
  while (true) {
    CoreClock clock;
    HMMJIT_ASSIGN(const Pass pass, next_pass(run, limits, progress));
    statistics.setup_seconds += clock.lap();
    if (pass.queries.empty()) break;
    BlockSpool* copy = nullptr;
    if (statistics.passes++ > 0) {
      if (spool) input = spool.get();
      HMMJIT_TRY(input->rewind());
    } else if (!targets.rewindable() && pass.positions >= limits.positions) {
      HMMJIT_ASSIGN(spool, BlockSpool::create());
      copy = spool.get();
      statistics.spooled = true;
    }
    nucleotide::Search search(pass.queries, run.options, run.device, &verifier);
    HMMJIT_TRY(read_targets(run, limits, pass, *input, copy, search, statistics, progress));
    add_times(statistics, search.times());
    clock.lap();
    for (std::size_t q = 0; q < pass.queries.size(); ++q) {
      const Hmm& hmm = pass.queries[q].model->hmm;
      ModelResult result = nucleotide_result(search.finish(q), run.options);
      result.index = run.first_query + statistics.models++;
      result.model = {.name = hmm.name,
                      .accession = hmm.accession,
                      .description = hmm.description,
                      .M = hmm.M,
                      .consensus = hmm.consensus};
      result.calibration = hmm.calibration;
      result.alignments = run.options.keep_alignments;
      ++progress.models_done;
      statistics.counters += result.hits.counters;
      statistics.hits_reported += result.hits.reported;
      statistics.domains_reported += result.hits.reported;
      HMMJIT_TRY(run.receive(result));
      ++progress.results_delivered;
    }
    statistics.report_seconds += clock.lap();
  }
  verifier.add_to(statistics);
  statistics.wall_seconds = Trace::now() - begin;
  return statistics;
}

}  // namespace hmmjit
