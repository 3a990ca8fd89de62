#include "report/scan_run.hpp"

#include <limits>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "core/threads.hpp"
#include "core/trace.hpp"
#include "report/scan.hpp"
#include "search/kept_targets.hpp"
#include "search/memory_shares.hpp"
#include "search/target_counters.hpp"

namespace hmmjit {
namespace {

// Residues of the sequences in a batch, which is searched with all models before its hits are
// reported. A device filters its batch in about the time of reading the models again.
constexpr std::size_t kResiduesAtATime = std::size_t{4} << 20;
constexpr std::size_t kResiduesWithDevice = std::size_t{32} << 20;

// A batch of the sequences. Its bytes are those of all batches, for progress.
class Batch final : public ForwardingSource {
 public:
  Batch(const TargetBlock& batch, const TargetSource& sequences)
      : ForwardingSource(resident_targets({batch})->open()), sequences_(sequences) {}
  Result<bool> next(TargetBlock& block, std::size_t residues) override {
    return source_->next(block, residues);
  }
  bool is_batch() const override { return true; }
  std::uint64_t bytes_read() const override { return sequences_.bytes_read(); }
  std::uint64_t bytes_total() const override { return sequences_.bytes_total(); }

 private:
  const TargetSource& sequences_;
};

// Collects the hits of all models by sequence.
class ScanSink final : public ResultSink {
 public:
  // `indices`: see SelectedModels.
  ScanSink(HitsByTarget hits, const Thresholds& rules,
           const std::optional<std::vector<std::size_t>>& indices)
      : rules_(rules), indices_(indices), hits_(std::move(hits)) {}

  // A model that lacks the requested cutoffs is an error once a sequence passes its bias filter.
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
      for (const Hit& hit : lot.hits) {
        ScannedHit found(result, hit);
        if (indices_) found.hit.index = (*indices_)[result.index];
        HMMJIT_TRY(hits_.add(std::move(found)));
      }
      return {};
    });
  }
  bool takes_stored_hits() const override { return true; }
  /// Call it after the search, once per sequence, in order.
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
  const std::optional<std::vector<std::size_t>>& indices_;
  HitsByTarget hits_;
  std::vector<ScannedHit> group_;  // of the next sequence with hits
  bool reading_ = false;
  std::mutex mutex_;  // models are read while results arrive
  std::set<std::size_t> lacking_;
  std::uint64_t models_ = 0, nodes_ = 0;
};

}  // namespace

Result<SearchStatistics> run_scan(Session& session, const ScanRun& run, TargetSource& sequences,
                                  SearchProgress& progress) {
  const Thresholds& rules = run.search.thresholds;
  SearchOptions options = run.search;
  const bool cutoffs = rules.cutoffs != ModelCutoffs::kNone;
  if (cutoffs) options.thresholds.cutoffs = ModelCutoffs::kGathering;

  HMMJIT_ASSIGN(const std::uint64_t hit_memory, memory_by_target(options));
  const double begin = Trace::now();
  SearchStatistics statistics;
  double read_seconds = 0, report_seconds = 0;
  std::uint64_t models_found = 0, residues = 0, hits = 0, domains = 0, blocks = 0;
  std::size_t index_of_sequence = 0;
  const std::size_t at_a_time =
      session.devices() != nullptr ? kResiduesWithDevice : kResiduesAtATime;
  for (;;) {
    CoreClock clock;
    HMMJIT_ASSIGN(const TargetBlock batch, load_block(sequences, at_a_time));
    read_seconds += clock.lap();
    if (batch.size() == 0) break;
    ++blocks;
    Batch targets(batch, sequences);
    TargetCounters counters(batch.first_index(), batch.size());
    options.filters.per_target = &counters;
    HMMJIT_ASSIGN(const SelectedModels selected, run.open_models(batch));
    options.by_target =
        SearchOptions::ByTarget{rules.Z, selected.indices ? &*selected.indices : nullptr};
    const double Z = rules.Z.value_or(static_cast<double>(selected.models));
    options.thresholds.Z = Z;
    ScanSink sink(HitsByTarget(hit_memory, {HitOrder{options.keep_alignments}}), rules,
                  selected.indices);
    std::size_t index = 0;
    const ModelSource models = [&]() -> Result<std::optional<Query>> {
      HMMJIT_ASSIGN(std::optional<Query> query, selected.source());
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
                  session.search(options, models, targets, sink, progress));
    add(statistics, pass);
    const bool differs = blocks > 1 && selected.models != models_found;
    if (differs || sink.models() != (selected.indices ? selected.indices->size() : selected.models))
      return fail(ErrorCode::kInput, "the models changed while they were read", {},
                  "do not change files that are in use");
    models_found = selected.models;
    const std::uint64_t nodes = selected.indices ? selected.nodes : sink.nodes();
    const std::uint64_t left_out = selected.models - sink.models();
    statistics.counters.targets += left_out * batch.size();
    statistics.counters.residues += left_out * batch.residue_count();
    statistics.filters += selected.times;
    residues += pass.residues;

    clock.lap();
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const TargetView target = batch[i];
      HMMJIT_ASSIGN(std::vector<Hit> found, sink.take_hits(batch.first_index() + i));
      ModelResult result;
      result.index = index_of_sequence++;
      const QueryNames names = names_of(target);
      result.model = {names.name, names.accession, names.description, target.length(), {}, names};
      result.alignments = options.keep_alignments;
      result.hits = finish_scan(rules, std::move(found), Z);
      result.hits.counters = counters.of(i);
      result.hits.counters.targets = models_found;
      result.hits.counters.residues = nodes;
      hits += result.hits.reported;
      for (const Hit& hit : result.hits.hits)
        domains += static_cast<std::uint64_t>(hit.reported_domains);
      HMMJIT_TRY(run.receive(result));
    }
    report_seconds += clock.lap();
  }
  progress.targets_complete = true;
  // The searches of batches counted passes over memory, and hits per model, before these were
  // judged together.
  statistics.passes = 1;
  statistics.blocks = blocks;
  statistics.bytes_read = sequences.bytes_read();
  statistics.read_seconds += read_seconds;
  statistics.report_seconds += report_seconds;
  statistics.wall_seconds = Trace::now() - begin;
  statistics.models = models_found;
  statistics.targets = index_of_sequence;
  statistics.residues = residues;
  statistics.hits_reported = hits;
  statistics.domains_reported = domains;
  return statistics;
}

}  // namespace hmmjit
