#include "search/stored_hits.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "search/hit_coding.hpp"

namespace hmmjit {
namespace {

// Of a hit in memory, with what the allocator takes for its texts; `encoded`: its record.
std::uint64_t bytes_in_memory(std::uint64_t encoded, std::size_t domains) {
  return 2 * encoded + sizeof(Hit) + domains * (sizeof(domain::Domain) + 128);
}

Status append_record(SpoolFile& file, std::string_view record) {
  const auto size = static_cast<std::uint32_t>(record.size());
  HMMJIT_TRY(file.append({reinterpret_cast<const char*>(&size), sizeof size}));
  return file.append(record);
}

}  // namespace

Status StoredHits::append(const Hit& hit) {
  scratch_.clear();
  encode_hit(hit, alignments_, scratch_);
  if (scratch_.size() > std::numeric_limits<std::uint32_t>::max())
    return fail(ErrorCode::kResources, "target " + hit.name + " has too many alignments to store",
                {}, "raise --mem, or search with --noali");
  bytes_ += bytes_in_memory(scratch_.size(), hit.score.domains.size());
  return append_record(*file_, scratch_);
}

Status StoredHits::add(std::vector<Hit>& hits) {
  if (hits.empty()) return {};
  if (!file_) {
    HMMJIT_ASSIGN(file_, SpoolFile::create(kSpoolWriteBuffer));
  }
  for (Hit& hit : hits) {
    judge_target(thresholds_, 1, hit);  // for its sort key, which depends on no search space
    // What is reported is not known yet: all texts are kept.
    hit.domain_flags.assign(hit.score.domains.size(), Hit::Flags{true, true});
  }
  std::ranges::sort(hits, stands_before);
  const std::uint64_t begin = file_->size();
  for (const Hit& hit : hits) {
    HMMJIT_TRY(append(hit));
    longest_name_ = std::max(longest_name_, hit.name.size());
    longest_accession_ = std::max(longest_accession_, hit.accession.size());
    longest_shown_ = std::max(longest_shown_, hit.shown_name(true).size());
  }
  const std::uint64_t end = file_->size();
  for (const Hit& hit : hits) {
    const Sum sum{hit.score.log_p, hit.score.bits};
    HMMJIT_TRY(file_->append({reinterpret_cast<const char*>(&sum), sizeof sum}));
  }
  candidates_ += hits.size();
  hits = {};
  runs_.push_back({begin, end});
  sums_ends_.push_back(file_->size());
  return runs_.size() < kMostSpoolRuns ? Status{} : merge_runs();
}

Status StoredHits::merge_runs() {
  HMMJIT_TRY(open_runs());
  HMMJIT_ASSIGN(SpoolFile merged, SpoolFile::create(kSpoolWriteBuffer));
  while (!merged_->empty()) {
    HMMJIT_TRY(append_record(merged, merged_->front().bytes));
    HMMJIT_TRY(merged_->advance());
  }
  merged_.reset();
  const std::uint64_t end = merged.size();
  HMMJIT_TRY(for_each_sum([&](std::string_view sums) { return merged.append(sums); }));
  file_ = std::move(merged);
  runs_ = {{0, end}};
  sums_ends_ = {file_->size()};
  return {};
}

Status StoredHits::for_each_sum(const std::function<Status(std::string_view)>& use) {
  constexpr std::uint64_t kPiece = 1024 * sizeof(Sum);
  std::string bytes;
  for (std::size_t run = 0; run < runs_.size(); ++run) {
    for (std::uint64_t at = runs_[run].end; at < sums_ends_[run]; at += bytes.size()) {
      HMMJIT_TRY(file_->read(at, std::min(kPiece, sums_ends_[run] - at), bytes));
      if (bytes.empty() || bytes.size() % sizeof(Sum) != 0) return damaged_spool_file();
      HMMJIT_TRY(use(bytes));
    }
  }
  return {};
}

Result<HitList> StoredHits::finish(const FilterCounters& counters,
                                   std::optional<std::uint64_t> whole_targets) {
  const Thresholds& rules = thresholds_.rules;
  HitList list = finish_hits(thresholds_, {}, counters, whole_targets);
  list.candidates = candidates_;
  list.longest_name = longest_name_;
  list.longest_accession = longest_accession_;
  list.longest_shown = longest_shown_;
  Hit hit;
  const Status judged = for_each_sum([&](std::string_view sums) -> Status {
    for (; sums.size() >= sizeof(Sum); sums.remove_prefix(sizeof(Sum))) {
      Sum sum;
      std::memcpy(&sum, sums.data(), sizeof sum);
      hit.score.log_p = sum.log_p;
      hit.score.bits = sum.bits;
      judge_target(thresholds_, list.Z, hit);
      list.reported += hit.flags.reported;
      list.included += hit.flags.included;
    }
    return {};
  });
  HMMJIT_TRY(judged);
  list.domZ = rules.domZ.value_or(static_cast<double>(list.reported));
  Z_ = list.Z;
  domZ_ = list.domZ;
  return list;
}

Status StoredHits::open_runs() {
  if (runs_.empty()) return {};
  const auto read = [this](SpoolRun& run, Record& record) -> Status {
    std::uint32_t size = 0;
    HMMJIT_ASSIGN(const std::string_view head, run.take(sizeof size));
    std::memcpy(&size, head.data(), sizeof size);
    HMMJIT_ASSIGN(record.bytes, run.take(size));
    Decoder decoder(record.bytes);
    if (!decode_hit(decoder, record.hit)) return damaged_spool_file();
    judge_target(thresholds_, Z_, record.hit);
    return {};
  };
  merged_.emplace(*file_, runs_, memory_, read,
                  [](const Record& a, const Record& b) { return stands_before(a.hit, b.hit); });
  return merged_->open();
}

Status StoredHits::begin(Which which) {
  domains_reported_ = 0;
  last_target_.reset();
  all_ = which == Which::kCandidates;
  return open_runs();
}

Result<bool> StoredHits::next(Hit& hit) {
  while (merged_ && !merged_->empty()) {
    Hit& first = merged_->front().hit;
    if (last_target_ == first.index) return found_twice(first, model_);
    last_target_ = first.index;
    const bool wanted = all_ || first.flags.reported;
    if (wanted) hit = std::move(first);
    HMMJIT_TRY(merged_->advance());
    if (!wanted) continue;
    judge_domains(thresholds_, domZ_, hit);
    domains_reported_ += static_cast<std::uint64_t>(hit.reported_domains);
    return true;
  }
  return false;
}

Status StoredHits::in_lots(const std::function<Status(std::vector<Hit>&)>& use, Which which) {
  const std::uint64_t of_hit =
      std::max<std::uint64_t>(1, bytes_ / std::max<std::uint64_t>(1, candidates_));
  const auto lot = static_cast<std::size_t>(
      std::clamp<std::uint64_t>(memory_ / 4 / of_hit, 1, std::uint64_t{1} << 16));
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
  merged_.reset();
  return {};
}

}  // namespace hmmjit
