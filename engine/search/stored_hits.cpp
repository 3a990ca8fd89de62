#include "search/stored_hits.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "search/search.hpp"

namespace hmmjit {

Status StoredHits::add(std::vector<Hit>& hits) {
  if (hits.empty()) return {};
  if (!scores_) {
    HMMJIT_ASSIGN(scores_, SpoolFile::create(std::size_t{1} << 14));
  }
  for (Hit& hit : hits) {
    judge_target(thresholds_, 1, hit);  // sets the sort key, which does not depend on Z
    hit.domain_flags.assign(hit.score.domains.size(), {});
    bytes_ += hit_bytes(hit);
    counts_.widen(hit);
    const Scores scores{hit.score.log_p, hit.score.bits};
    HMMJIT_TRY(scores_->append({reinterpret_cast<const char*>(&scores), sizeof scores}));
  }
  counts_.candidates += hits.size();
  return hits_.add_run(hits);
}

Result<HitList> StoredHits::finish(const FilterCounters& counters,
                                   std::optional<std::uint64_t> whole_targets) {
  HitList list = finish_hits(thresholds_, {}, counters, whole_targets);
  static_cast<HitCounts&>(list) += counts_;
  Hit hit;
  std::string bytes;
  constexpr std::size_t kPiece = 1024 * sizeof(Scores);
  for (std::uint64_t at = 0; scores_ && at < scores_->size(); at += bytes.size()) {
    HMMJIT_TRY(scores_->read(at, kPiece, bytes));
    if (bytes.empty() || bytes.size() % sizeof(Scores) != 0) return damaged_spool_file();
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(Scores)) {
      Scores scores;
      std::memcpy(&scores, bytes.data() + i, sizeof scores);
      hit.score.log_p = scores.log_p;
      hit.score.bits = scores.bits;
      judge_target(thresholds_, list.Z, hit);
      list.count(hit.flags);
    }
  }
  list.domZ = thresholds_.rules.domZ.value_or(static_cast<double>(list.reported));
  Z_ = list.Z;
  domZ_ = list.domZ;
  return list;
}

Status StoredHits::begin() {
  last_target_.reset();
  return hits_.begin();
}

Result<bool> StoredHits::next(Hit& hit) {
  for (;;) {
    HMMJIT_ASSIGN(Hit* const found, hits_.next());
    if (found == nullptr) return false;
    if (last_target_ == found->index) return found_twice(*found, model_);
    last_target_ = found->index;
    judge_target(thresholds_, Z_, *found);
    if (!all_ && !found->flags.reported) continue;
    hit = std::move(*found);
    judge_domains(thresholds_, domZ_, hit);
    return true;
  }
}

std::size_t StoredHits::hits_of_lot() const {
  const std::uint64_t of_hit = bytes_ / std::max<std::uint64_t>(1, counts_.candidates);
  return std::clamp<std::uint64_t>(memory_ / 4 / std::max<std::uint64_t>(1, of_hit), 1,
                                   std::uint64_t{1} << 16);
}

Status HitSource::for_each_lot(const std::function<Status(std::span<Hit>)>& use) {
  domains_reported_ = 0;
  HMMJIT_TRY(begin());
  const std::size_t most = hits_of_lot();
  std::vector<Hit> lot;
  Hit hit;
  for (bool more = true; more;) {
    lot.clear();
    while (lot.size() < most) {
      HMMJIT_ASSIGN(more, next(hit));
      if (!more) break;
      domains_reported_ += static_cast<std::uint64_t>(hit.reported_domains);
      lot.push_back(std::move(hit));
    }
    if (!lot.empty()) HMMJIT_TRY(use(lot));
  }
  end();
  return {};
}

ModelResult without_hits(const ModelResult& result) {
  ModelResult totals;
  totals.index = result.index;
  totals.model = result.model;
  totals.calibration = result.calibration;
  static_cast<HitTotals&>(totals.hits) = result.hits;
  totals.alignments = result.alignments;
  totals.seconds = result.seconds;
  totals.cpu_seconds = result.cpu_seconds;
  return totals;
}

Status for_each_lot(const ModelResult& result, const std::function<Status(const HitLot&)>& use) {
  if (result.stored == nullptr) return use(result);
  return result.stored->for_each_lot(
      [&](std::span<Hit> hits) { return use(HitLot(result, hits)); });
}

}  // namespace hmmjit
