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
#include "report/scan.hpp"
#include "search/kept_targets.hpp"
#include "search/memory_shares.hpp"
#include "search/search.hpp"
#include "search/target_counters.hpp"
#include "search_inputs.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

// Residues of the sequences searched together. Their hits wait until every model is finished. A
// device filters this many in about the time that reading the models again takes.
constexpr std::size_t kResiduesAtATime = std::size_t{4} << 20;
constexpr std::size_t kResiduesWithDevice = std::size_t{32} << 20;

// Collects the hits of all models by sequence.
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
    return for_each_lot(result, [&](const HitLot& lot) -> Status {
      for (const Hit& hit : lot.hits) HMMJIT_TRY(hits_.add(ScannedHit(result, hit)));
      return {};
    });
  }
  bool takes_stored_hits() const override { return true; }
  /// Call it after the search, once for every sequence, in order.
  Result<std::vector<Hit>> take_hits(std::uint64_t sequence) {
    if (!std::exchange(reading_, true)) {
      HMMJIT_TRY(hits_.begin());
      HMMJIT_TRY(hits_.next_group(group_));
    }
    std::vector<Hit> hits;
    if (group_.empty() || group_.front().index != sequence) return hits;
    for (ScannedHit& found : group_) hits.push_back(std::move(found.hit));
    HMMJIT_TRY(hits_.next_group(group_));
    return hits;
  }
  std::uint64_t models() const { return models_; }
  std::uint64_t nodes() const { return nodes_; }

 private:
  bool lacks(std::size_t model) {
    const std::lock_guard lock(mutex_);
    return lacking_.contains(model);
  }

  const Thresholds& rules_;
  HitsByTarget hits_;
  std::vector<ScannedHit> group_;  // of the next sequence with hits
  bool reading_ = false;
  std::mutex mutex_;  // models are read while results arrive
  std::set<std::size_t> lacking_;
  std::uint64_t models_ = 0, nodes_ = 0;
};

Result<SearchStatistics> scan(ProgramRun& run) {
  const std::string model_path = find_profile_database(run.options.arguments()[0]);
  const Thresholds rules = run.search.thresholds;
  const std::shared_ptr<const ResidentModels> kept = run.kept_models;
  double count = kept != nullptr ? static_cast<double>(kept->size()) : 0;
  if (kept == nullptr) {
    HMMJIT_ASSIGN(count, count_models(model_path, rules, false));
  }
  run.search.thresholds.Z = rules.Z.value_or(count);
  const bool cutoffs = rules.cutoffs != ModelCutoffs::kNone;
  if (cutoffs) run.search.thresholds.cutoffs = ModelCutoffs::kGathering;

  HMMJIT_ASSIGN(const std::uint64_t hit_memory, memory_by_target(run.search));
  SearchStatistics statistics;
  std::uint64_t models_found = 0, residues = 0, hits = 0, domains = 0;
  std::size_t index_of_sequence = 0;
  const std::size_t at_a_time =
      run.devices.session.devices() != nullptr ? kResiduesWithDevice : kResiduesAtATime;
  for (;;) {
    HMMJIT_ASSIGN(const std::unique_ptr<TargetChunk> chunk,
                  TargetChunk::read(*run.targets, at_a_time));
    if (chunk->size() == 0) break;
    TargetCounters counters(chunk->first_index(), chunk->size());
    run.search.by_target = SearchOptions::ByTarget{rules.Z, &counters};
    run.search.filters.per_target = &counters;
    ScanSink sink(
        HitsByTarget(hit_memory, {HitOrder{run.search.keep_alignments}}),
        rules);
    std::optional<HmmReader> reader;
    if (kept == nullptr) {
      HMMJIT_ASSIGN(reader, HmmReader::open(model_path));
    }
    std::size_t index = 0;
    const ModelSource models = [&]() -> Result<std::optional<Query>> {
      std::optional<Query> query;
      if (kept == nullptr) {
        HMMJIT_ASSIGN(std::optional<Hmm> hmm, reader->next());
        if (hmm) query.emplace(*std::move(hmm));
      } else if (index < kept->size()) {
        query.emplace((*kept)[index]);
      }
      if (query && cutoffs) {
        constexpr float kNever = std::numeric_limits<float>::infinity();
        query->cutoff = cutoff_of(query->model(), rules);
        if (!query->cutoff) sink.lacks_cutoffs(index);
        query->cutoff = query->cutoff.value_or(Cutoff{kNever, kNever});
      }
      ++index;
      return query;
    };
    HMMJIT_ASSIGN(const SearchStatistics pass,
                  run.devices.session.search(run.search, models, *chunk, sink, run.progress));
    add(statistics, pass);
    models_found = sink.models();
    residues += pass.residues;

    for (std::size_t i = 0; i < chunk->size(); ++i) {
      const TargetView target = (*chunk)[i];
      HMMJIT_ASSIGN(std::vector<Hit> found, sink.take_hits(chunk->first_index() + i));
      ModelResult result;
      result.index = index_of_sequence++;
      const QueryNames names = names_of(target);
      result.model = {names.name, names.accession, names.description, target.length(), {}, names};
      result.hits = finish_scan(rules, std::move(found), *run.search.thresholds.Z);
      result.hits.counters = counters.of(i);
      result.hits.counters.targets = sink.models();
      result.hits.counters.residues = sink.nodes();
      hits += result.hits.reported;
      for (const Hit& hit : result.hits.hits)
        domains += static_cast<std::uint64_t>(hit.reported_domains);
      HMMJIT_TRY(run.writer.receive(result));
      if (run.add_features) HMMJIT_TRY(for_each_model(result, run.add_features));
    }
  }
  // The passes found them one by one, before they were judged together.
  statistics.models = models_found;
  statistics.targets = index_of_sequence;
  statistics.residues = residues;
  statistics.hits_reported = hits;
  statistics.domains_reported = domains;
  return statistics;
}

}  // namespace

CommandSpec scan_command() {
  static const SearchProgram program = [] {
    SearchProgram p =
        scan_program("scan", "search sequence(s) against a profile database", "hmmscan");
    p.options = scan_option_table;
    p.search = scan;
    return p;
  }();
  return command_of(program, "search sequence(s) against profiles, as hmmscan does");
}

}  // namespace hmmjit::tools
