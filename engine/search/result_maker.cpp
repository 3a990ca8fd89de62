#include "search/result_maker.hpp"

#include <algorithm>
#include <utility>

namespace hmmjit::search_run {
namespace {

std::size_t hmm_bytes(const Hmm& hmm) {
  return sizeof(Hmm) + (static_cast<std::size_t>(hmm.M) + 1) * (2 * kMaxCodes + 16) * sizeof(float);
}

void add(DigestStream& out, const std::string& text) {
  const std::size_t size = text.size();
  out.update(&size, sizeof size);
  out.update(text.data(), size);
}
template <typename... Number>
void add(DigestStream& out, const Number&... values) {
  (out.update(&values, sizeof values), ...);
}

void add(DigestStream& out, const Hit& hit) {
  if (!hit.flags.reported) return;
  const auto& s = hit.score;
  add(out, hit.index, s.bits, s.pre_bits, s.log_p, s.expected_domains, s.regions, s.clustered,
      s.overlaps, s.envelopes);
  for (const domain::Domain& d : s.domains) {
    add(out, d.ienv, d.jenv, d.iali, d.jali, d.hmm_from, d.hmm_to, d.envelope_nats,
        d.correction_nats, d.bias_nats, d.accuracy_sum, d.bits);
    for (const std::string* row : {&d.alignment.model, &d.alignment.sequence, &d.alignment.pp})
      add(out, *row);
  }
}

}  // namespace

Result<Digest> digest_of(const ModelResult& result) {
  DigestStream out;
  const FilterCounters& c = result.hits.counters;
  add(out, c.targets, c.residues, c.msv, c.bias, c.viterbi, c.forward, result.hits.domZ);
  for (const Hit& hit : result.hits.hits) add(out, hit);
  if (result.stored == nullptr) return out.value();
  HMMJIT_TRY(result.stored->begin());
  Hit hit;
  for (;;) {
    HMMJIT_ASSIGN(const bool more, result.stored->next(hit));
    if (!more) return out.value();
    add(out, hit);
  }
}

void ResultMaker::finish(ModelJob& job) {
  const auto finished = std::make_shared<Finished>();
  bool wrong = false;
  std::vector<Hit> hits;
  std::set<gpu::UsedKernel> kernels;
  {
    const MutexLock lock(job.mutex);
    wrong = job.spoiled;
    job.finished = true;
    hits.swap(job.hits);
    kernels.swap(job.kernels);
    hits_.forget(job);
  }
  if (!wrong) {
    if (auto status = fill(job, hits, std::move(kernels), *finished); !status)
      return tasks_.abort(status.error());
  }
  control_.leave_devices(job);
  const bool delivered = job.expected.has_value();
  if (delivered) {
    if (auto status = confirm(job, finished->result); !status) tasks_.abort(status.error());
  }
  window_.release_model_bytes(job.bytes);
  std::optional<Again> again;
  if (wrong) again = Again{job.index, query_of(job), std::nullopt};
  job.forward_tables.reset();
  job.filters.reset();
  job.model.reset();
  if (!wrong && !delivered) return make_text(finished);
  queue_.unreserve(finished->reserved);
  window_.end_model(std::move(again));
  control_.model_ended();
}

Status ResultMaker::fill(ModelJob& job, std::vector<Hit>& hits, std::set<gpu::UsedKernel> kernels,
                         Finished& finished) {
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
  result.alignments = options_.keep_alignments;
  if (kernels.empty()) return {};
  HMMJIT_ASSIGN(const Digest digest, digest_of(result));
  finished.retained = {job.index, query_of(job), std::move(kernels), digest, hmm_bytes(hmm)};
  return {};
}

Status ResultMaker::confirm(const ModelJob& job, const ModelResult& result) const {
  HMMJIT_ASSIGN(const Digest digest, digest_of(result));
  if (digest == *job.expected) return {};
  return fail(ErrorCode::kInternal,
              "a GPU kernel computed wrong scores, and a result that had already been written is "
              "wrong",
              "model " + result.model.name, "search with --device cpu, and report this");
}

void ResultMaker::make_text(const FinishedPtr& finished) {
  ModelResult& result = finished->result;
  if (result.stored == nullptr) result.prepared = sink_.prepare(result);
  const std::size_t parts = result.prepared == nullptr ? 0 : result.prepared->parts();
  finished->parts_left = std::max<std::size_t>(parts, 1);
  // The text of a family of thousands takes longer than the last tasks of the search.
  for (std::size_t part = 1; part < parts; ++part)
    tasks_.submit(TaskClass::kControl, 0, [this, finished, part] { make_part(finished, part); });
  make_part(finished, 0);
}

void ResultMaker::make_part(const FinishedPtr& finished, std::size_t part) {
  if (tasks_.stopped()) return;
  const double begun = now_seconds(), used = thread_seconds();
  ModelResult& result = finished->result;
  if (result.prepared != nullptr) result.prepared->make(part);
  threads_.local().report_seconds += thread_seconds() - used;
  tasks_.trace("report", begun);
  if (--finished->parts_left > 0) return;
  std::size_t bytes = sizeof result + finished->retained.bytes;
  bytes += hit_bytes(result.hits.hits);
  if (result.prepared != nullptr) bytes += result.prepared->bytes();
  window_.end_model(
      queue_.add(std::move(result), bytes, finished->reserved, std::move(finished->retained)));
  control_.model_ended();
}

}  // namespace hmmjit::search_run
