#include "search/stored_hits.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

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
    longest_name_ = std::max(longest_name_, hit.name.size());
    longest_accession_ = std::max(longest_accession_, hit.accession.size());
    longest_shown_ = std::max(longest_shown_, hit.shown_name(true).size());
    const Scores scores{hit.score.log_p, hit.score.bits};
    HMMJIT_TRY(scores_->append({reinterpret_cast<const char*>(&scores), sizeof scores}));
  }
  candidates_ += hits.size();
  return hits_.add_run(hits);
}

Result<HitList> StoredHits::finish(const FilterCounters& counters,
                                   std::optional<std::uint64_t> whole_targets) {
  HitList list = finish_hits(thresholds_, {}, counters, whole_targets);
  list.candidates = candidates_;
  list.longest_name = longest_name_;
  list.longest_accession = longest_accession_;
  list.longest_shown = longest_shown_;
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
      list.reported += hit.flags.reported;
      list.included += hit.flags.included;
    }
  }
  list.domZ = thresholds_.rules.domZ.value_or(static_cast<double>(list.reported));
  Z_ = list.Z;
  domZ_ = list.domZ;
  return list;
}

Status StoredHits::begin(Which which) {
  domains_reported_ = 0;
  last_target_.reset();
  which_ = which;
  return hits_.begin();
}

Result<bool> StoredHits::next(Hit& hit) {
  for (;;) {
    HMMJIT_ASSIGN(Hit* const found, hits_.next());
    if (found == nullptr) return false;
    if (last_target_ == found->index) return found_twice(*found, model_);
    last_target_ = found->index;
    judge_target(thresholds_, Z_, *found);
    if (which_ == Which::kReported && !found->flags.reported) continue;
    hit = std::move(*found);
    judge_domains(thresholds_, domZ_, hit);
    domains_reported_ += static_cast<std::uint64_t>(hit.reported_domains);
    return true;
  }
}

Status StoredHits::in_lots(const std::function<Status(std::vector<Hit>&)>& use, Which which) {
  const std::uint64_t of_hit = bytes_ / std::max<std::uint64_t>(1, candidates_);
  const auto lot = static_cast<std::size_t>(std::clamp<std::uint64_t>(
      memory_ / 4 / std::max<std::uint64_t>(1, of_hit), 1, std::uint64_t{1} << 16));
  HMMJIT_TRY(begin(which));
  std::vector<Hit> hits;
  Hit hit;
  for (bool more = true; more;) {
    hits.clear();
    while (hits.size() < lot) {
      HMMJIT_ASSIGN(more, next(hit));
      if (!more) break;
      hits.push_back(std::move(hit));
    }
    if (!hits.empty()) HMMJIT_TRY(use(hits));
  }
  hits_.end();
  return {};
}

}  // namespace hmmjit
