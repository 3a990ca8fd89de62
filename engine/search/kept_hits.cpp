#include "search/kept_hits.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "search/agenda.hpp"
#include "search/stored_hits.hpp"

namespace hmmjit::search_run {
namespace {

// Hits are stored in runs of at least this many bytes.
constexpr std::size_t kSmallestRun = std::size_t{64} << 10;

// The name that results show.
const std::string& model_name(const ModelJob& job) {
  return job.sequence ? job.sequence->name : job.hmm().name;
}

}  // namespace

std::size_t hit_bytes(const std::vector<Hit>& hits) {
  std::size_t bytes = 0;
  for (const Hit& hit : hits) bytes += hit_bytes(hit);
  return bytes;
}

void KeptHits::forget(ModelJob& job) { bytes_ -= std::exchange(job.hit_bytes, 0); }

Status KeptHits::add(ModelJob& job, std::vector<Hit>& hits) {
  if (hits.empty()) return {};
  const std::size_t bytes = hit_bytes(hits);
  std::vector<Hit> over;
  {
    const MutexLock lock(job.mutex);
    std::ranges::move(hits, std::back_inserter(job.hits));
    job.hit_bytes += bytes;
    bytes_ += bytes;
    const std::uint64_t most = budget_ / 2;
    // Only jobs with many hits store them: runs on disk should not be small.
    const std::uint64_t little = std::max<std::uint64_t>(most / (2 * jobs_), kSmallestRun);
    if (!may_store_ || bytes_ <= most || job.hit_bytes < little) return {};
    over.swap(job.hits);
    forget(job);
  }
  const MutexLock lock(job.storing);
  return store(job, over);
}

Status KeptHits::store(ModelJob& job, std::vector<Hit>& hits) {
  constexpr std::uint64_t kLeast = std::uint64_t{256} << 10;
  if (job.stored == nullptr)
    job.stored =
        std::make_shared<StoredHits>(model_name(job), job.thresholds, options_.keep_alignments,
                                     std::max(budget_ / 2, kLeast), options_.by_target.has_value());
  return job.stored->add(hits);
}

Result<KeptHits::Judged> KeptHits::judge(ModelJob& job, std::vector<Hit>& hits, Agenda& agenda) {
  // A hit together with its text in several outputs.
  constexpr std::size_t kOfText = 4;
  const std::size_t bytes = kOfText * hit_bytes(hits);
  FilterCounters counters;
  {
    const MutexLock lock(job.mutex);
    counters = job.counters;
  }
  const MutexLock lock(job.storing);
  if (job.stored == nullptr && agenda.reserve(bytes, !may_store_ || bytes <= kSmallestRun)) {
    HitList list = finish_hits(job.thresholds, std::move(hits), counters, options_.whole_targets);
    HMMJIT_TRY(check_each_once(list.hits, model_name(job)));
    return Judged{.list = std::move(list), .reserved = bytes};
  }
  HMMJIT_TRY(store(job, hits));
  HMMJIT_ASSIGN(HitList list, job.stored->finish(counters, options_.whole_targets));
  Judged out{.list = std::move(list)};
  // Column widths of reports by target depend on the names of all candidates.
  if (out.list.reported > 0 || (options_.by_target && out.list.candidates > 0))
    out.stored = std::move(job.stored);
  job.stored.reset();
  return out;
}

}  // namespace hmmjit::search_run
