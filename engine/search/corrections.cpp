#include "search/corrections.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

namespace hmmjit::search_run {
namespace {

// "viterbi.wavefront.256.sm_90, ..."
std::string names_of(std::span<const gpu::UsedKernel> kernels) {
  std::string out;
  for (const gpu::UsedKernel& kernel : kernels) {
    if (!out.empty()) out += ", ";
    out += kernel.name;
  }
  return out;
}

}  // namespace

void Corrections::act_on(const JobPtr& job, const Difference& difference) {
  std::vector<gpu::UsedKernel> kernels;
  {
    const MutexLock lock(job->mutex);
    for (const gpu::UsedKernel& kernel : job->kernels) {
      if (kernel.stage() == difference.stage ||
          (is_domain_stage(kernel.stage()) && is_domain_stage(difference.stage)))
        kernels.push_back(kernel);
    }
  }
  const bool news = distrusted_.add(kernels);
  spoil(job);
  if (!news) return;
  warn(*job, difference, kernels);
  device_->exclude(kernels);
  recall(kernels);
}

void Corrections::warn(const ModelJob& job, const Difference& difference,
                       std::span<const gpu::UsedKernel> kernels) const {
  if (!options_.on_warning) return;
  options_.on_warning(fmt::format(
      "GPU and CPU differ at the {} stage of model {}{}: GPU {}, CPU {}; kernel {} is not used "
      "any more, and the models that used it are searched again on the CPU. Please report this "
      "line with the output of hmmjit doctor",
      is_domain_stage(difference.stage) ? "domain" : plan::stage_name(difference.stage),
      job.model->hmm.name,
      difference.target.empty() ? std::string() : ", target " + difference.target,
      difference.device, difference.cpu, names_of(kernels)));
}

void Corrections::recall(std::span<const gpu::UsedKernel> kernels) {
  // In the order in which a model goes on, so that none is missed: whoever takes it from one place
  // to the next looks at the kernels that are known to be wrong by then.
  const std::vector<JobPtr> jobs = pairs_.all();
  window_.search_again(queue_.take_back());
  DistrustedKernels::Recalled delivered = distrusted_.recall(kernels);
  window_.search_again(std::move(delivered.models));
  for (const JobPtr& job : jobs) {
    bool concerned = false;
    {
      const MutexLock lock(job->mutex);
      concerned = distrusted_.include_any(job->kernels);
    }
    if (concerned) spoil(job);
  }
  if (delivered.lost) {
    return tasks_.abort({ErrorCode::kInternal,
                         "a GPU kernel computed wrong scores after results that it may concern had "
                         "been written",
                         names_of(kernels), "search with --device cpu, and report this"});
  }
  control_.models_changed();
}

void Corrections::spoil(const JobPtr& job) {
  std::size_t units = 0;
  std::vector<WaitingTarget> waiting;
  {
    const MutexLock lock(job->mutex);
    if (job->finished) return;
    job->spoiled = true;
    units = pairs_.withdraw(*job);
    waiting.swap(job->waiting);
    job->hits.clear();
    hits_.forget(*job);
  }
  for (const WaitingTarget& target : waiting) load_.dropped(target.cells_left);
  waiting.clear();
  for (std::size_t i = 0; i < units; ++i) filters_.end_filter(job);
}

}  // namespace hmmjit::search_run
