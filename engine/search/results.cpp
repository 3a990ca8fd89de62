#include "search/results.hpp"

#include <utility>

#include "core/threads.hpp"
#include "search/agenda.hpp"
#include "search/stored_hits.hpp"

namespace hmmjit::search_run {
namespace {

void count_bytes(Finished& finished) {
  const ModelResult& result = finished.result;
  finished.bytes = sizeof result + hit_bytes(result.hits.hits);
  if (result.prepared != nullptr) finished.bytes += result.prepared->bytes();
}

}  // namespace

Result<FinishedPtr> finish(ModelJob& job, const SearchOptions& options, KeptHits& hits,
                           Agenda& agenda) {
  auto finished = std::make_shared<Finished>();
  finished->sink = job.recipient.sink;
  ModelResult& result = finished->result;
  const Hmm& hmm = job.hmm();
  result.index = job.recipient.index;
  result.model = {hmm.name, hmm.accession, hmm.description, hmm.M, hmm.consensus};
  result.calibration = hmm.calibration;
  if (job.sequence) {
    result.model.built = {hmm.name, hmm.accession, hmm.description};
    result.model.name = job.sequence->name;
    result.model.accession = job.sequence->accession;
    result.model.description = job.sequence->description;
  }
  std::vector<Hit> own;
  {
    const MutexLock lock(job.mutex);
    own.swap(job.hits);
    hits.forget(job);
    result.cpu_seconds = job.cpu_seconds;
  }
  HMMJIT_ASSIGN(KeptHits::Judged judged, hits.judge(job, own, agenda));
  result.hits = std::move(judged.list);
  result.stored = std::move(judged.stored);
  finished->reserved = judged.reserved;
  result.seconds = Trace::now() - job.begun;
  result.alignments = options.keep_alignments;
  job.forward_tables.reset();
  job.filters.reset();
  job.prepared.reset();
  if (result.stored == nullptr) result.prepared = finished->sink->prepare(result);
  finished->parts_left = result.prepared == nullptr ? 0 : result.prepared->parts();
  if (finished->parts_left == 0) count_bytes(*finished);
  return finished;
}

FinishedPtr empty_result(const Recipient& recipient) {
  auto finished = std::make_shared<Finished>();
  finished->sink = recipient.sink;
  finished->result.index = recipient.index;
  return finished;
}

bool make_part(const FormatPart& work) {
  Finished& finished = *work.finished;
  finished.sink->make(*finished.result.prepared, work.part);
  if (--finished.parts_left > 0) return false;
  count_bytes(finished);
  return true;
}

Status deliver_result(const ModelResult& result, ResultSink& sink, SearchProgress& progress,
                      SearchStatistics& statistics) {
  const double used = thread_seconds();
  statistics.counters += result.hits.counters;
  statistics.hits_reported += result.hits.reported;
  for (const Hit& hit : result.hits.hits)
    statistics.domains_reported += static_cast<std::uint64_t>(hit.reported_domains);
  ++progress.results_delivered;
  const Status status = sink.receive(result);
  if (result.stored != nullptr) statistics.domains_reported += result.stored->domains_reported();
  statistics.report_seconds += thread_seconds() - used;
  return status;
}

}  // namespace hmmjit::search_run
