#include "search/result_maker.hpp"

#include <algorithm>
#include <utility>

namespace hmmjit::search_run {
void ResultMaker::finish(ModelJob& job) {
  const auto finished = std::make_shared<Finished>();
  std::vector<Hit> hits;
  {
    const MutexLock lock(job.mutex);
    hits.swap(job.hits);
    hits_.forget(job);
  }
  if (auto status = fill(job, hits, *finished); !status) return search_.tasks.abort(status.error());
  control_.leave_devices(job);
  window_.release_model_bytes(job.bytes);
  job.forward_tables.reset();
  job.filters.reset();
  job.model.reset();
  make_text(finished);
}

Status ResultMaker::fill(ModelJob& job, std::vector<Hit>& hits, Finished& finished) {
  ModelResult& result = finished.result;
  const Hmm& hmm = job.model->hmm;
  result.index = job.index;
  result.model = {hmm.name, hmm.accession, hmm.description, hmm.M, hmm.consensus};
  result.calibration = hmm.calibration;
  if (job.sequence) {
    result.model.built = {hmm.name, hmm.accession, hmm.description};
    result.model.name = job.sequence->name;
    result.model.accession = job.sequence->accession;
    result.model.description = job.sequence->description;
  }
  HMMJIT_ASSIGN(KeptHits::Judged judged, hits_.judge(job, hits, queue_));
  result.hits = std::move(judged.list);
  result.stored = std::move(judged.stored);
  finished.reserved = judged.reserved;
  result.seconds = now_seconds() - job.begun;
  {
    const MutexLock lock(job.mutex);
    result.cpu_seconds = job.cpu_seconds;
  }
  result.alignments = search_.options.keep_alignments;
  return {};
}

void ResultMaker::make_text(const FinishedPtr& finished) {
  ModelResult& result = finished->result;
  if (result.stored == nullptr) result.prepared = sink_.prepare(result);
  const std::size_t parts = result.prepared == nullptr ? 0 : result.prepared->parts();
  finished->parts_left = std::max<std::size_t>(parts, 1);
  // The text of a family of thousands takes longer than the last tasks of the search.
  for (std::size_t part = 1; part < parts; ++part)
    search_.tasks.submit(TaskClass::kControl, 0,
                         [this, finished, part] { make_part(finished, part); });
  make_part(finished, 0);
}

void ResultMaker::make_part(const FinishedPtr& finished, std::size_t part) {
  if (search_.tasks.stopped()) return;
  const double begun = now_seconds(), used = thread_seconds();
  ModelResult& result = finished->result;
  if (result.prepared != nullptr) result.prepared->make(part);
  search_.threads.local().report_seconds += thread_seconds() - used;
  search_.tasks.trace("report", begun);
  if (--finished->parts_left > 0) return;
  std::size_t bytes = sizeof result + hit_bytes(result.hits.hits);
  if (result.prepared != nullptr) bytes += result.prepared->bytes();
  queue_.add(std::move(result), bytes, finished->reserved);
  window_.end_model();
  control_.model_ended();
}

}  // namespace hmmjit::search_run
