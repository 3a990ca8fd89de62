#include "bench/oracle.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "core/threads.hpp"
#include "core/workers.hpp"
#include "cpu/filters.hpp"
#include "domain/domain.hpp"

namespace hmmjit::bench {
namespace {

using plan::Stage;

/// Scores one stage of one model over any targets; thread-safe.
class Scorer {
 public:
  Scorer(const SearchModel& model, Stage stage) : stage_(stage), filters_(model), forward_(model) {}

  void score(std::span<const std::vector<Residue>> targets, std::span<float> out) const {
    const FlushToZeroScope flush;
    static thread_local cpu::FilterScratch scratch;
    static thread_local domain::Workspace workspace;
    const std::vector<std::span<const Residue>> spans(targets.begin(), targets.end());
    if (stage_ == Stage::kForward) {
      domain::forward_filter_batch(forward_, spans, out, workspace);
      return;
    }
    if (stage_ == Stage::kBias) {
      filters_.bias_filter_batch(spans, out);
      return;
    }
    for (std::size_t i = 0; i < spans.size(); ++i) out[i] = one(spans[i], scratch);
  }

 private:
  float one(std::span<const Residue> target, cpu::FilterScratch& scratch) const {
    if (stage_ == Stage::kMsv) return filters_.msv_recurrence(target, scratch);
    if (stage_ == Stage::kViterbi) return filters_.viterbi_filter(target, scratch);
    const reference::SsvResult result = filters_.ssv(target, scratch);
    return result.status == reference::SsvStatus::kNoResult
               ? std::numeric_limits<float>::quiet_NaN()
               : result.nats;
  }

  Stage stage_;
  cpu::FilterTables filters_;
  domain::ForwardTables forward_;
};

constexpr std::size_t kBatch = 64;

}  // namespace

const std::vector<float>& Oracle::scores(Stage stage) {
  std::vector<float>& out = scores_[static_cast<std::size_t>(stage)];
  if (!out.empty()) return out;
  out.resize(distinct_.size());
  const Scorer scorer(*model_, stage);
  const std::size_t batches = (distinct_.size() + kBatch - 1) / kBatch;
  for_each_index(threads_, batches, [&](std::size_t batch) {
    const std::size_t at = batch * kBatch, count = std::min(kBatch, distinct_.size() - at);
    scorer.score(std::span(distinct_).subspan(at, count), std::span(out).subspan(at, count));
  });
  return out;
}

double Oracle::one_core_gcups(Stage stage, double seconds) const {
  const Scorer scorer(*model_, stage);
  std::vector<float> scores(kBatch);
  const auto start = std::chrono::steady_clock::now();
  const std::size_t batches = (distinct_.size() + kBatch - 1) / kBatch;
  double residues = 0, elapsed = 0;
  // The batches sample the whole set, whatever its order.
  constexpr std::size_t kStride = 97;
  for (std::size_t i = 0; i < batches && (i == 0 || elapsed < seconds); ++i) {
    const std::size_t at = i * kStride % batches * kBatch;
    const std::size_t count = std::min(kBatch, distinct_.size() - at);
    const auto part = std::span(distinct_).subspan(at, count);
    scorer.score(part, std::span(scores).first(count));
    for (const auto& target : part) residues += static_cast<double>(target.size());
    elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return residues * model_->hmm.M / elapsed * 1e-9;
}

}  // namespace hmmjit::bench
