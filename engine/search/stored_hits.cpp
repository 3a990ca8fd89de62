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
  runs_.push_back({begin, end, file_->size()});
  return runs_.size() < kMostSpoolRuns ? Status{} : merge_runs();
}

Status StoredHits::merge_runs() {
  HMMJIT_TRY(open_readers());
  HMMJIT_ASSIGN(SpoolFile merged, SpoolFile::create(kSpoolWriteBuffer));
  while (!heap_.empty()) {
    HMMJIT_TRY(append_record(merged, readers_[heap_.front()].record));
    HMMJIT_TRY(advance());
  }
  const std::uint64_t end = merged.size();
  HMMJIT_TRY(for_each_sum([&](std::string_view sums) { return merged.append(sums); }));
  file_ = std::move(merged);
  runs_ = {{0, end, file_->size()}};
  readers_.clear();
  return {};
}

Status StoredHits::for_each_sum(const std::function<Status(std::string_view)>& use) {
  constexpr std::uint64_t kPiece = 1024 * sizeof(Sum);
  std::string bytes;
  for (const Run& run : runs_) {
    for (std::uint64_t at = run.end; at < run.sums_end; at += bytes.size()) {
      HMMJIT_TRY(file_->read(at, std::min(kPiece, run.sums_end - at), bytes));
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

// The next hit of a run; false after the last.
Result<bool> StoredHits::read(Reader& reader) {
  if (reader.run.at_end()) return false;
  const auto take = [&](std::size_t count) {
    auto found = reader.run.peek(*file_, count, memory_, runs_.size());
    if (found) reader.run.skip(count);
    return found;
  };
  std::uint32_t size = 0;
  HMMJIT_ASSIGN(const std::string_view head, take(sizeof size));
  std::memcpy(&size, head.data(), sizeof size);
  HMMJIT_ASSIGN(reader.record, take(size));
  Decoder decoder(reader.record);
  if (!decode_hit(decoder, reader.hit)) return damaged_spool_file();
  judge_target(thresholds_, Z_, reader.hit);
  return true;
}

Status StoredHits::open_readers() {
  heap_.clear();
  readers_.clear();
  readers_.resize(runs_.size());
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    readers_[r].run = {runs_[r].begin, runs_[r].end};
    HMMJIT_TRY(refill(r));
  }
  return {};
}

// Reads the next hit of a reader that is not in the heap, and puts it where it belongs.
Status StoredHits::refill(std::size_t reader) {
  HMMJIT_ASSIGN(const bool more, read(readers_[reader]));
  if (!more) {
    readers_[reader].run.release();
    return {};
  }
  heap_.push_back(reader);
  std::ranges::push_heap(heap_, Later{readers_});
  return {};
}

// The same for that with the first hit of all.
Status StoredHits::advance() {
  std::ranges::pop_heap(heap_, Later{readers_});
  const std::size_t reader = heap_.back();
  heap_.pop_back();
  return refill(reader);
}

Status StoredHits::begin(Which which) {
  domains_reported_ = 0;
  all_ = which == Which::kCandidates;
  return open_readers();
}

Result<bool> StoredHits::next(Hit& hit) {
  for (;;) {
    if (heap_.empty()) return false;
    const std::size_t first = heap_.front();
    const bool wanted = all_ || readers_[first].hit.flags.reported;
    if (wanted) hit = std::move(readers_[first].hit);
    HMMJIT_TRY(advance());
    if (!wanted) continue;
    judge_domains(thresholds_.rules, domZ_, hit);
    domains_reported_ += static_cast<std::uint64_t>(hit.reported_domains);
    return true;
  }
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
  readers_.clear();
  heap_.clear();
  return {};
}

}  // namespace hmmjit
