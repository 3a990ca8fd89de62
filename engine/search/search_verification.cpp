#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "core/checksum.hpp"
#include "layout/float_tables.hpp"
#include "model/residue_copies.hpp"
#include "search/search_run.hpp"

namespace hmmjit::search_run {
namespace {

using gpu::UsedKernel;

// Of core models whose results have been delivered, so that they can be searched once more.
constexpr std::size_t kRetainedBytes = std::size_t{64} << 20;
// Of results that are not delivered before the end, since a difference may yet be found. What is
// delivered can still be confirmed or refuted, but not be made anew; what is held is written when
// nothing else is left to do.
constexpr std::size_t kHeldBytes = std::size_t{4} << 20;

bool is_domain_stage(plan::Stage stage) {
  return stage == plan::Stage::kParser || stage == plan::Stage::kEnsemble ||
         stage == plan::Stage::kEnvelope;
}

// "viterbi.wavefront.256.sm_90, ..."
std::string names_of(const std::vector<UsedKernel>& kernels) {
  std::string out;
  for (const UsedKernel& kernel : kernels) {
    if (!out.empty()) out += ", ";
    out += kernel.name;
  }
  return out;
}

std::string nats_text(float nats) {
  return std::isnan(nats) ? "no score" : fmt::format("{} nats", nats);
}

class Digest {
 public:
  template <typename T>
  requires(sizeof(T) <= sizeof(std::uint64_t)) void add(const T& value) {
    std::uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    mix(word);
  }
  void add(const std::string& text) { mix(checksum(text.data(), text.size())); }
  std::uint64_t value() const { return value_; }

 private:
  // FNV-1a in words, and a turn, since the low bits of a product know nothing of higher ones.
  void mix(std::uint64_t word) { value_ = std::rotl((value_ ^ word) * 0x100000001b3u, 29); }
  std::uint64_t value_ = 0xcbf29ce484222325u;
};

std::size_t hmm_bytes(const Hmm& hmm) {
  return sizeof(Hmm) + (static_cast<std::size_t>(hmm.M) + 1) * (2 * kMaxCodes + 16) * sizeof(float);
}

}  // namespace

gpu::SampleRequest Run::sample(ModelId model, const std::vector<UsedKernel>& kernels,
                               std::size_t blocks) {
  const JobPtr job = device_job(model);
  if (job == nullptr) return {};
  std::size_t offered = 0;
  {
    const std::lock_guard lock(job->mutex);
    offered = job->blocks_offered;
  }
  return verification_.request(model, kernels, blocks, offered);
}

void Run::check_block(const JobPtr& job, const TargetBlock& targets,
                      const gpu::BlockSample& sample) {
  if (sample.kernels == nullptr || verification_.off()) return;
  verification_.took(sample.seconds);
  {
    const std::lock_guard lock(job->mutex);
    job->kernels.insert(sample.kernels->begin(), sample.kernels->end());
  }
  bool known = false;
  {
    const std::lock_guard lock(mutex_);
    known = distrusted({sample.kernels->begin(), sample.kernels->end()});
  }
  if (known) return spoil(job);
  if (sample.lost) {
    verification_.made(gpu::Link::kGate, {}, 0, 0, true);
    act_on(job, {sample.lost->stage,
                 {},
                 fmt::format("{} targets", sample.lost->found),
                 fmt::format("{} targets", sample.lost->expected)});
    return;
  }
  for (const gpu::SampledTarget& target : sample.targets) {
    if (job->spoiled || stopped()) return;
    const std::uint64_t cells = static_cast<std::uint64_t>(targets.length(target.index)) *
                                static_cast<std::uint64_t>(job->model->hmm.M);
    if (!target.always && !verification_.wanted(target.link, cells)) continue;
    const double begun = thread_seconds();
    const auto difference = check_target(*job, targets, target);
    verification_.made(target.link, *sample.kernels, cells, thread_seconds() - begun,
                       difference.has_value());
    if (difference) return act_on(job, *difference);
  }
}

std::optional<Difference> Run::check_target(ModelJob& job, const TargetBlock& targets,
                                            const gpu::SampledTarget& target) {
  const auto found = [&](plan::Stage stage, float device, float cpu) {
    const bool same = device == cpu;
    return Difference{stage, std::string(targets[target.index].name),
                      nats_text(device) + (same ? " and another decision" : ""), nats_text(cpu)};
  };
  const SampleComparison compared = job.filters->compare(targets, target);
  if (const auto& d = compared.different) return found(d->stage, d->device, d->cpu);
  if (target.depth != plan::Stage::kForward || std::isnan(target.forward)) return std::nullopt;
  ResidueCopies copies;
  const auto residues = copies.of(targets, target.index, *job.model->hmm.alphabet);
  if (!residues) return std::nullopt;  // the search ends with this error elsewhere
  const std::optional<float> nats =
      domain::forward_filter(job.forward(), *residues, locals_.local().workspace);
  // A score that is not finite has no guard; such a target is the CPU's whatever a device says.
  if (!nats || !std::isfinite(target.forward)) return std::nullopt;
  if (!(std::fabs(target.forward - *nats) <= layout::forward_guard(targets[target.index].length())))
    return found(plan::Stage::kForward, target.forward, *nats);
  if (target.fate == gpu::Fate::kForward && passes_forward(job, *nats, compared.filter_nats))
    return found(plan::Stage::kGate, target.forward, *nats);
  return std::nullopt;
}

void Run::check_scores(const JobPtr& job, ThreadState& local, const domain::PassesForward& passes,
                       const domain::WantedTarget& wanted) {
  std::vector<std::size_t> parsed;
  for (std::size_t n = 0; n < local.parsed.size(); ++n) {
    if (local.parsed[n] != nullptr) parsed.push_back(n);
  }
  if (parsed.empty()) return;
  std::vector<UsedKernel> kernels;
  {
    const std::lock_guard lock(job->mutex);
    for (const UsedKernel& kernel : job->kernels) {
      if (is_domain_stage(kernel.stage())) kernels.push_back(kernel);
    }
  }
  // The first ones as asked for; else one, the cheapest of a kernel that was never checked.
  const bool always = verification_.unchecked(gpu::Link::kParser, kernels);
  std::size_t count = 1;
  if (const auto per_model = verification_.per_model()) {
    count = std::min(parsed.size(), static_cast<std::size_t>(*per_model));
  } else if (always) {
    std::swap(parsed.front(), *std::ranges::min_element(parsed, {}, [&](std::size_t n) {
                return local.views[n].length();
              }));
  } else {
    std::swap(parsed.front(), parsed[verification_.checks() % parsed.size()]);
  }
  domain::Workspace workspace;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t n = parsed[i];
    const std::uint64_t cells = static_cast<std::uint64_t>(local.views[n].length()) *
                                static_cast<std::uint64_t>(job->model->hmm.M);
    if (!always && !verification_.wanted(gpu::Link::kParser, cells)) return;
    const double begun = thread_seconds();
    float nats = 0;
    std::optional<domain::TargetScore> score;
    domain::score_targets_batch(
        job->forward(), {&local.views[n], 1}, [&](std::size_t, float v) { return passes(n, v); },
        alone_options_, workspace, {&nats, 1}, {&score, 1},
        [&](std::size_t, const domain::TargetScore& s) { return wanted(n, s); });
    const float given = local.forward_nats[n];
    const bool same =
        (nats == given || (std::isnan(nats) && std::isnan(given))) && score == local.scores[n];
    verification_.made(gpu::Link::kParser, kernels, cells, thread_seconds() - begun, !same);
    if (same) continue;
    const auto text = [](float forward, const std::optional<domain::TargetScore>& s) {
      return s ? fmt::format("{} bits, {} domains", s->bits, s->domains.size())
               : nats_text(forward) + ", no domain";
    };
    return act_on(job, {plan::Stage::kParser, std::string(local.views[n].name),
                        text(given, local.scores[n]), text(nats, score)});
  }
}

void Run::act_on(const JobPtr& job, const Difference& difference) {
  std::vector<UsedKernel> kernels;
  {
    const std::lock_guard lock(job->mutex);
    for (const UsedKernel& kernel : job->kernels) {
      if (kernel.stage() == difference.stage ||
          (is_domain_stage(kernel.stage()) && is_domain_stage(difference.stage)))
        kernels.push_back(kernel);
    }
  }
  bool news = false;
  {
    const std::lock_guard lock(mutex_);
    for (const UsedKernel& kernel : kernels) news = distrusted_.insert(kernel).second || news;
  }
  spoil(job);
  if (!news) return;
  if (options_.on_warning) {
    options_.on_warning(fmt::format(
        "GPU and CPU differ at the {} stage of model {}{}: GPU {}, CPU {}; kernel {} is not used "
        "any more, and the models that used it are searched again on the CPU. Please report this "
        "line with the output of hmmjit doctor",
        is_domain_stage(difference.stage) ? "domain" : plan::stage_name(difference.stage),
        job->model->hmm.name,
        difference.target.empty() ? std::string() : ", target " + difference.target,
        difference.device, difference.cpu, names_of(kernels)));
  }
  device_->exclude(kernels);
  distrust(kernels);
}

bool Run::distrusted(const std::set<UsedKernel>& kernels) const {
  return std::ranges::any_of(
      kernels, [&](const UsedKernel& kernel) { return distrusted_.contains(kernel); });
}

void Run::distrust(const std::vector<UsedKernel>& kernels) {
  std::vector<JobPtr> jobs;
  bool lost = false;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [index, job] : device_jobs_) jobs.push_back(job);
    for (auto at = done_.begin(); at != done_.end();) {
      Done& done = at->second;
      if (!distrusted(done.retained.kernels)) {
        ++at;
        continue;
      }
      undelivered_bytes_ -= done.bytes;
      again_.push_back({at->first, std::move(done.retained.query), std::nullopt});
      at = done_.erase(at);
    }
    std::erase_if(delivered_models_, [&](Retained& retained) {
      if (!distrusted(retained.kernels)) return false;
      delivered_model_bytes_ -= retained.bytes;
      again_.push_back({retained.index, std::move(retained.query), retained.digest});
      return true;
    });
    lost = std::ranges::any_of(
        kernels, [&](const UsedKernel& kernel) { return beyond_recall_.contains(kernel); });
  }
  for (const JobPtr& job : jobs) {
    bool concerned = false;
    {
      const std::lock_guard lock(job->mutex);
      const std::lock_guard all(mutex_);
      concerned = distrusted(job->kernels);
    }
    if (concerned) spoil(job);
  }
  if (lost) {
    return abort_run({ErrorCode::kInternal,
                      "a GPU kernel computed wrong scores after results that it may concern had "
                      "been written",
                      names_of(kernels), "search with --device cpu, and report this"});
  }
  after_model_change();
}

void Run::spoil(const JobPtr& job) {
  std::size_t units = 0;
  std::vector<WaitingTarget> waiting;
  {
    const std::lock_guard lock(job->mutex);
    if (job->finished) return;
    job->spoiled = true;
    units = board_.withdraw(job->index);
    waiting.swap(job->waiting);
    job->hits.clear();
    let_go_of_hits(*job);
  }
  for (const WaitingTarget& target : waiting) cells_left_ -= target.cells_left;
  waiting.clear();
  for (std::size_t i = 0; i < units; ++i) end_filter(job);
}

std::shared_ptr<const Query> Run::query_of(const ModelJob& job) {
  Query query(job.model->hmm);
  query.sequence = job.sequence;
  return std::make_shared<const Query>(std::move(query));
}

Result<Run::Retained> Run::retain(const ModelJob& job, std::set<UsedKernel> kernels,
                                  const ModelResult& result) {
  HMMJIT_ASSIGN(const std::uint64_t digest, digest_of(result));
  return Retained{result.index, query_of(job), std::move(kernels), digest,
                  hmm_bytes(job.model->hmm)};
}

bool Run::holds_back() const {
  if (device_ == nullptr || verification_.off()) return false;
  if (models_ended_ && again_.empty() && active_ == 0 && preparing_ == 0) return false;
  return undelivered_bytes_ <= std::min<std::uint64_t>(kHeldBytes, result_budget_ / 4);
}

void Run::keep_delivered(Retained&& retained) {
  if (retained.query == nullptr) return;
  if (distrusted(retained.kernels)) {  // between the end of its text and here
    again_.push_back({retained.index, std::move(retained.query), retained.digest});
    return;
  }
  delivered_model_bytes_ += retained.bytes;
  delivered_models_.push_back(std::move(retained));
  const auto most = std::min<std::uint64_t>(kRetainedBytes, model_budget_ / 2);
  while (delivered_model_bytes_ > most) {
    Retained& oldest = delivered_models_.front();
    beyond_recall_.insert(oldest.kernels.begin(), oldest.kernels.end());
    delivered_model_bytes_ -= oldest.bytes;
    delivered_models_.pop_front();
  }
}

void Run::confirm(const ModelJob& job, const ModelResult& result) {
  const auto digest = digest_of(result);
  if (!digest) return abort_run(digest.error());
  if (*digest == *job.expected) return;
  abort_run({ErrorCode::kInternal,
             "a GPU kernel computed wrong scores, and a result that had already been written is "
             "wrong",
             "model " + result.model.name, "search with --device cpu, and report this"});
}

Result<std::uint64_t> Run::digest_of(const ModelResult& result) {
  Digest out;
  const FilterCounters& c = result.hits.counters;
  for (const std::uint64_t count : {c.targets, c.residues, c.msv, c.bias, c.viterbi, c.forward})
    out.add(count);
  out.add(result.hits.domZ);
  const auto add = [&out](const Hit& hit) {
    if (!hit.flags.reported) return;
    out.add(hit.index);
    out.add(hit.score.bits);
    out.add(hit.score.pre_bits);
    out.add(hit.score.log_p);
    out.add(hit.score.expected_domains);
    for (const int n :
         {hit.score.regions, hit.score.clustered, hit.score.overlaps, hit.score.envelopes})
      out.add(n);
    for (const domain::Domain& d : hit.score.domains) {
      for (const int n : {d.ienv, d.jenv, d.iali, d.jali, d.hmm_from, d.hmm_to}) out.add(n);
      for (const float x :
           {d.envelope_nats, d.correction_nats, d.bias_nats, d.accuracy_sum, d.bits})
        out.add(x);
      out.add(d.alignment.model);
      out.add(d.alignment.sequence);
      out.add(d.alignment.pp);
    }
  };
  for (const Hit& hit : result.hits.hits) add(hit);
  if (result.stored == nullptr) return out.value();
  HMMJIT_TRY(result.stored->begin());
  Hit hit;
  for (;;) {
    HMMJIT_ASSIGN(const bool more, result.stored->next(hit));
    if (!more) return out.value();
    add(hit);
  }
}

}  // namespace hmmjit::search_run
