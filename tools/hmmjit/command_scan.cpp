// hmmjit scan: sequences against a file of profiles, reported by sequence as hmmscan does.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "hmmjit/command.hpp"
#include "io/hmm_file.hpp"
#include "query_options.hpp"
#include "query_sequences.hpp"
#include "report/records.hpp"
#include "report/scan_report.hpp"
#include "report/tables.hpp"
#include "search/hits_by_target.hpp"
#include "search/kept_targets.hpp"
#include "search/memory_shares.hpp"
#include "search/search.hpp"
#include "search/target_counters.hpp"
#include "search_inputs.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

// Sequences searched side by side. The hits of all of them wait until every model is through.
constexpr std::size_t kResiduesAtATime = std::size_t{4} << 20;

// One pass of all models over some sequences: models in, hits by sequence out.
class ScanSink final : public ResultSink {
 public:
  ScanSink(HitsByTarget hits, const Thresholds& rules) : rules_(rules), hits_(std::move(hits)) {}

  // A model without the cutoffs asked for is an error once a sequence gets past its bias filter.
  void lacks_cutoffs(std::size_t model) {
    const std::lock_guard lock(mutex_);
    lacking_.insert(model);
  }

  Status receive(const ModelResult& result) override {
    ++models_;
    nodes_ += static_cast<std::uint64_t>(result.model.M);
    if (result.hits.counters.bias > 0 && lacks(result.index))
      return hmmjit::lacks_cutoffs(rules_, result.model.name);
    const auto add = [&](Hit hit) {
      const std::uint64_t sequence = hit.index;
      hit.name = result.model.name;
      hit.accession = result.model.accession.value_or("");
      hit.description = result.model.description.value_or("");
      hit.index = result.index;
      hit.length = result.model.M;
      return hits_.add(sequence, std::move(hit));
    };
    if (result.stored != nullptr) {
      return result.stored->in_lots(
          [&](std::vector<Hit>& hits) -> Status {
            for (Hit& hit : hits) HMMJIT_TRY(add(std::move(hit)));
            return {};
          },
          StoredHits::Which::kCandidates);
    }
    for (const Hit& hit : result.hits.hits) HMMJIT_TRY(add(hit));
    return {};
  }
  bool takes_stored_hits() const override { return true; }
  Result<std::vector<Hit>> take_hits(std::uint64_t sequence) { return hits_.take(sequence); }
  std::uint64_t models() const { return models_; }
  std::uint64_t nodes() const { return nodes_; }

 private:
  bool lacks(std::size_t model) {
    const std::lock_guard lock(mutex_);
    return lacking_.contains(model);
  }

  const Thresholds& rules_;
  HitsByTarget hits_;
  std::mutex mutex_;  // models are read while results arrive
  std::set<std::size_t> lacking_;
  std::uint64_t models_ = 0, nodes_ = 0;
};

Result<SearchStatistics> scan(ProgramRun& run) {
  const std::string model_path = find_profile_database(run.options.arguments()[0]);
  const Thresholds rules = run.search.thresholds;
  HMMJIT_ASSIGN(const double count, count_models(model_path, rules, false));
  run.search.thresholds.Z = rules.Z.value_or(count);
  const bool cutoffs = rules.cutoffs != ModelCutoffs::kNone;
  if (cutoffs) run.search.thresholds.cutoffs = ModelCutoffs::kGathering;

  HMMJIT_ASSIGN(const std::uint64_t hit_memory, memory_by_target(run.search));
  SearchStatistics statistics;
  for (;;) {
    HMMJIT_ASSIGN(const std::unique_ptr<TargetChunk> chunk,
                  TargetChunk::read(*run.targets, kResiduesAtATime));
    if (chunk->size() == 0) break;
    TargetCounters counters(chunk->first_index(), chunk->size());
    run.search.by_target = SearchOptions::ByTarget{rules.Z, &counters};
    run.search.filters.per_target = &counters;
    ScanSink sink(
        HitsByTarget(chunk->first_index(), chunk->size(), run.search.keep_alignments, hit_memory),
        rules);
    HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(model_path));
    std::size_t index = 0;
    const ModelSource models = [&]() -> Result<std::optional<Query>> {
      HMMJIT_ASSIGN(std::optional<Hmm> hmm, reader.next());
      if (!hmm) return std::nullopt;
      if (cutoffs) hmm->ga = cutoff_of(*hmm, rules);
      if (cutoffs && !hmm->ga) {
        constexpr float kNever = std::numeric_limits<float>::infinity();
        hmm->ga = Cutoff{kNever, kNever};
        sink.lacks_cutoffs(index);
      }
      ++index;
      return *std::move(hmm);
    };
    HMMJIT_ASSIGN(const SearchStatistics pass,
                  search(run.search, models, *chunk, run.device, sink, &run.progress));
    add(statistics, pass);

    for (std::size_t i = 0; i < chunk->size(); ++i) {
      const TargetView target = (*chunk)[i];
      HMMJIT_ASSIGN(std::vector<Hit> found, sink.take_hits(chunk->first_index() + i));
      HitList hits = finish_scan(rules, std::move(found), *run.search.thresholds.Z);
      hits.counters = counters.of(i);
      ScannedSequence sequence;
      sequence.names = names_of(target);
      sequence.length = target.length();
      sequence.models = sink.models();
      sequence.nodes = sink.nodes();
      ModelResult result;
      result.index = i;
      result.model = {.name = sequence.names.name,
                      .accession = sequence.names.accession,
                      .description = sequence.names.description,
                      .M = sequence.length};
      QueryOutput output;
      append_scan_report(output.main, sequence, hits, run.report, run.search.filters, {});
      append_target_table_header(output.targets_header, result.model, hits);
      append_domain_table_header(output.domains_header, result.model, hits);
      if (!run.paths.targets.empty()) append_target_table(output.targets, result.model, hits);
      if (!run.paths.domains.empty()) append_domain_table(output.domains, result.model, hits);
      if (!run.paths.pfam.empty()) append_pfam_table(output.pfam, hits);
      HMMJIT_TRY(run.writer.begin_query(sequence.names.name));
      HMMJIT_TRY(run.writer.append(output));
      HMMJIT_TRY(run.writer.end_query());
    }
  }
  return statistics;
}

}  // namespace

CommandSpec scan_command() {
  static const SearchProgram program = [] {
    SearchProgram p;
    p.name = "scan";
    p.title = "search sequence(s) against a profile database";
    p.reference = "hmmscan";
    p.queries = {"hmmdb", "profile HMMs, pressed or not"};
    p.targets = {"seqfile", "query sequences; - for standard input"};
    p.query_label = "target HMM database:";
    p.target_label = "query sequence file:";
    p.options = scan_option_table;
    p.search = scan;
    p.by_sequence = true;
    return p;
  }();
  return command_of(program, "search sequence(s) against profiles, as hmmscan does");
}

}  // namespace hmmjit::tools
