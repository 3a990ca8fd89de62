#include "search/verifier.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "core/threads.hpp"
#include "layout/float_tables.hpp"
#include "model/residue_copies.hpp"
#include "search/memory_shares.hpp"

namespace hmmjit::search_run {
namespace {

// Share of the core-seconds of a search. Together with costs that cannot be timed, such as copying
// targets back from the device, checks stay below one hundredth.
constexpr double kShare = 0.004;
// Targets of a chain by the last stage to compare. Each stage gets about as much work, except
// Forward: one of its targets costs as much as a hundred of SSV, and nearly every error of a model
// shows in each of them. The small sample applies once half of the budget is spent.
constexpr gpu::SampleRequest kSample{.msv = 16, .bias = 2, .viterbi = 4, .forward = 2};
constexpr gpu::SampleRequest kSmallSample{.msv = 4, .bias = 1, .viterbi = 1, .forward = 1};

// Once its kernels have been checked, every kEvery-th chain is sampled: copying whole lists back
// also takes time of the device's queue.
constexpr std::uint64_t kEvery = 4;

// Chains sampled for the first check of a kernel, at any cost.
constexpr int kChainsAsked = 16;

// Assumed core-seconds per cell, tables included, until the first checks have been timed.
double first_cost(gpu::Link link) {
  switch (link) {
    case gpu::Link::kViterbi:
    case gpu::Link::kExactViterbi:
      return 1e-9;
    case gpu::Link::kForward:
      return 3e-9;
    case gpu::Link::kParser:
      return 12e-9;
    default:
      return 1e-10;
  }
}

std::string nats_text(float nats) {
  return std::isnan(nats) ? "no score" : fmt::format("{} nats", nats);
}

std::string score_text(float forward, const std::optional<domain::TargetScore>& score) {
  return score ? fmt::format("{} bits, {} domains", score->bits, score->domains.size())
               : nats_text(forward) + ", no domain";
}

// A generator that is never reset gives other traces each time. The scores of a target with a
// region of several domains follow from such traces and cannot be computed again.
bool can_be_repeated(const ParsedTarget& target, const domain::DomainOptions& options) {
  return options.reseed || std::ranges::none_of(target.regions, &ParsedRegion::multidomain);
}

std::uint64_t cells_of(int length, const ModelJob& job) {
  return static_cast<std::uint64_t>(length) * static_cast<std::uint64_t>(job.hmm().M);
}

// The stages after Forward are computed together.
bool is_domain_stage(plan::Stage stage) {
  return stage == plan::Stage::kParser || stage == plan::Stage::kEnsemble ||
         stage == plan::Stage::kEnvelope;
}

}  // namespace

double CheckBudget::process_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

double CheckBudget::budget_left() const {
  return kShare * (process_seconds() - begun_) - seconds();
}

gpu::SampleRequest CheckBudget::request(std::uint64_t model,
                                        const std::vector<gpu::UsedKernel>& kernels,
                                        std::size_t blocks, std::size_t offered) {
  gpu::SampleRequest out;
  if (off()) return out;
  {
    const MutexLock lock(mutex_);
    for (const gpu::UsedKernel& kernel : kernels) {
      // Some kernels have nothing to do in most chains.
      if (kernel.link == gpu::Link::kGate || checked_.contains(kernel) ||
          asked_[kernel]++ >= kChainsAsked)
        continue;
      out.always |= gpu::link_bit(kernel.link);
    }
  }
  if (per_model_) {
    const auto part = [&](int targets) {
      return static_cast<std::uint32_t>((static_cast<std::size_t>(targets) * blocks + offered - 1) /
                                        std::max<std::size_t>(offered, 1));
    };
    const int N = *per_model_;
    out.msv = part((N + 1) / 2);
    out.viterbi = part((N + 2) / 4);
    out.forward = part((N + 4) / 8);
    out.bias = part((N + 5) / 8);
  } else {
    const std::uint32_t always = out.always;
    if (offered_++ % kEvery != 0 && always == 0) return {};
    const double left = budget_left();
    if (left > seconds()) {
      out = kSample;
    } else if (left > 0 || always != 0) {
      out = kSmallSample;
    }
    out.always = always;
  }
  if (out) ++chains_;
  out.seed = model * 0x9e3779b97f4a7c15u + chains_;
  return out;
}

bool CheckBudget::wanted(gpu::Link link, std::uint64_t cells) const {
  if (per_model_) return *per_model_ > 0;
  double seconds_a_cell = 0;
  {
    const MutexLock lock(mutex_);
    const Cost& cost = costs_[static_cast<std::size_t>(link)];
    // The first guess counts like a tenth of a million cells.
    constexpr double kGuessed = 1e5;
    seconds_a_cell = (cost.seconds + kGuessed * first_cost(link)) / (cost.cells + kGuessed);
  }
  return seconds_a_cell * static_cast<double>(cells) < budget_left();
}

void CheckBudget::made(gpu::Link link, const std::vector<gpu::UsedKernel>& kernels,
                       std::uint64_t cells, double seconds) {
  ++checks_;
  nanoseconds_ += static_cast<std::uint64_t>(1e9 * seconds);
  const MutexLock lock(mutex_);
  Cost& cost = costs_[static_cast<std::size_t>(link)];
  cost.seconds += seconds;
  cost.cells += static_cast<double>(cells);
  for (const gpu::UsedKernel& kernel : kernels) {
    if (kernel.link == link || (link == gpu::Link::kParser && is_domain_stage(kernel.stage())))
      checked_.insert(kernel);
  }
}

bool CheckBudget::unchecked(gpu::Link link, const std::vector<gpu::UsedKernel>& kernels) const {
  const MutexLock lock(mutex_);
  for (const gpu::UsedKernel& kernel : kernels) {
    if (kernel.link == link && !checked_.contains(kernel)) return true;
  }
  return false;
}

Status Verifier::different(ModelJob& job, const Difference& difference) {
  std::vector<gpu::UsedKernel> kernels;
  {
    const MutexLock lock(job.mutex);
    kernels.assign(job.kernels.begin(), job.kernels.end());
  }
  return different(job.hmm(), kernels, difference);
}

Status Verifier::different(const Hmm& model, std::span<const gpu::UsedKernel> kernels,
                           const Difference& difference) {
  std::string names;  // "viterbi.wavefront.256.sm_90, ..."
  for (const gpu::UsedKernel& kernel : kernels) {
    if (kernel.stage() == difference.stage ||
        (is_domain_stage(kernel.stage()) && is_domain_stage(difference.stage)))
      names += (names.empty() ? "" : ", ") + kernel.name;
  }
  progress_.wrong_kernel = true;
  return std::unexpected(Error{
      ErrorCode::kInternal,
      fmt::format("a GPU kernel computes wrong scores: GPU and CPU differ at the {} stage of model "
                  "{}{}: GPU {}, CPU {}",
                  is_domain_stage(difference.stage) ? "domain" : plan::stage_name(difference.stage),
                  model.name, difference.target.empty() ? "" : ", target " + difference.target,
                  difference.device, difference.cpu),
      "kernel " + names,
      "search with --device cpu, and report this line with the output of hmmjit doctor"});
}

gpu::SampleRequest Verifier::sample(ModelJob& job, const std::vector<gpu::UsedKernel>& kernels,
                                    std::size_t blocks) {
  std::size_t offered = 0;
  {
    const MutexLock lock(job.mutex);
    offered = job.blocks_offered;
  }
  return budget_.request(job.index, kernels, blocks, offered);
}

Status Verifier::check_block(ModelJob& job, const TargetBlock& targets,
                             const gpu::BlockSample& sample, ThreadState& local) {
  if (sample.kernels == nullptr || off()) return {};
  budget_.took(sample.seconds);
  {
    const MutexLock lock(job.mutex);
    job.kernels.insert(sample.kernels->begin(), sample.kernels->end());
  }
  if (sample.lost)
    return different(job, {sample.lost->stage,
                           {},
                           fmt::format("{} targets", sample.lost->found),
                           fmt::format("{} targets", sample.lost->expected)});
  for (const gpu::SampledTarget& target : sample.targets) {
    const std::uint64_t cells = cells_of(targets.length(target.index), job);
    if (!target.always && !budget_.wanted(target.link, cells)) continue;
    const double begun = thread_seconds();
    const auto difference = check_target(job, targets, target, local);
    budget_.made(target.link, *sample.kernels, cells, thread_seconds() - begun);
    if (difference) return different(job, *difference);
  }
  return {};
}

std::optional<Difference> Verifier::check_target(ModelJob& job, const TargetBlock& targets,
                                                 const gpu::SampledTarget& target,
                                                 ThreadState& local) {
  const auto found = [&](plan::Stage stage, float device, float cpu) {
    const bool same = device == cpu;
    return Difference{stage, std::string(targets[target.index].name),
                      nats_text(device) + (same ? " and another decision" : ""), nats_text(cpu)};
  };
  const SampleComparison compared = job.filters->compare(targets, target, local.filter_scratch);
  if (const auto& d = compared.different) return found(d->stage, d->device, d->cpu);
  if (target.depth != plan::Stage::kForward || std::isnan(target.forward)) return std::nullopt;
  ResidueCopies copies;
  const auto residues = copies.of(targets, target.index, *job.hmm().alphabet);
  if (!residues) return std::nullopt;  // the search ends with this error elsewhere
  const std::optional<float> nats =
      domain::forward_filter(job.forward(), *residues, local.workspace);
  // A score that is not finite has no guard: the CPU always decides on such a target.
  if (!nats || !std::isfinite(target.forward)) return std::nullopt;
  if (!(std::fabs(target.forward - *nats) <= layout::forward_guard(targets[target.index].length())))
    return found(plan::Stage::kForward, target.forward, *nats);
  if (target.fate == gpu::Fate::kForward &&
      job.passes_forward(*nats, compared.filter_nats, options_.filters.F3))
    return found(plan::Stage::kGate, target.forward, *nats);
  return std::nullopt;
}

Status Verifier::check_scores(ModelJob& job, const ThreadState& local,
                              const domain::PassesForward& passes,
                              const domain::WantedTarget& wanted) {
  if (off()) return {};
  std::vector<std::size_t> parsed;
  for (std::size_t n = 0; n < local.parsed.size(); ++n) {
    if (local.parsed[n] != nullptr && can_be_repeated(*local.parsed[n], alone_))
      parsed.push_back(n);
  }
  if (parsed.empty()) return {};
  std::vector<gpu::UsedKernel> kernels;
  {
    const MutexLock lock(job.mutex);
    for (const gpu::UsedKernel& kernel : job.kernels) {
      if (is_domain_stage(kernel.stage())) kernels.push_back(kernel);
    }
  }
  // As many as --verify demands; otherwise one, the cheapest where a kernel was never checked.
  const bool always = budget_.unchecked(gpu::Link::kParser, kernels);
  std::size_t count = 1;
  if (const auto per_model = budget_.per_model()) {
    count = std::min(parsed.size(), static_cast<std::size_t>(*per_model));
  } else if (always) {
    std::swap(parsed.front(), *std::ranges::min_element(parsed, {}, [&](std::size_t n) {
                return local.views[n].length();
              }));
  } else {
    std::swap(parsed.front(), parsed[budget_.checks() % parsed.size()]);
  }
  domain::Workspace workspace;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t n = parsed[i];
    const std::uint64_t cells = cells_of(local.views[n].length(), job);
    if (!always && !budget_.wanted(gpu::Link::kParser, cells)) return {};
    const double begun = thread_seconds();
    float nats = 0;
    std::optional<domain::TargetScore> score;
    try {
      domain::score_targets_batch(
          job.forward(), {&local.views[n], 1}, [&](std::size_t, float v) { return passes(n, v); },
          alone_, workspace, {&nats, 1}, {&score, 1},
          [&](std::size_t, const domain::TargetScore& s) { return wanted(n, s); });
    } catch (const std::exception& error) {
      // A device's result may need no matrix here. A matrix that does not fit says nothing about
      // the result, so the search skips this check.
      if (!is_memory_error(error)) throw;
      workspace.release_memory();
      budget_.took(thread_seconds() - begun);
      continue;
    }
    const float given = local.forward_nats[n];
    const bool same =
        (nats == given || (std::isnan(nats) && std::isnan(given))) && score == local.scores[n];
    budget_.made(gpu::Link::kParser, kernels, cells, thread_seconds() - begun);
    if (same) continue;
    return different(job, {plan::Stage::kParser, std::string(local.views[n].name),
                           score_text(given, local.scores[n]), score_text(nats, score)});
  }
  return {};
}

void Verifier::check_piece(const SearchModel& model, const std::vector<gpu::UsedKernel>& kernels,
                           std::uint64_t cells,
                           const std::function<std::optional<Difference>()>& compare) {
  const gpu::Link link = kernels.front().link;
  if (off() || failed() || (!budget_.unchecked(link, kernels) && !budget_.wanted(link, cells)))
    return;
  const double begun = thread_seconds();
  std::optional<Difference> difference;
  try {
    difference = compare();
  } catch (const std::exception& error) {
    if (!is_memory_error(error)) throw;
    return budget_.took(thread_seconds() - begun);  // as in check_scores()
  }
  budget_.made(link, kernels, cells, thread_seconds() - begun);
  if (!difference) return;
  const MutexLock lock(mutex_);
  if (!failed_.exchange(true)) status_ = different(model.hmm, kernels, *difference);
}

Status Verifier::status() const {
  const MutexLock lock(mutex_);
  return status_;
}

void Verifier::add_to(SearchStatistics& statistics) const {
  statistics.verified = budget_.checks();
  statistics.verified_chains = budget_.chains();
  statistics.verify_seconds = budget_.seconds();
}

}  // namespace hmmjit::search_run
