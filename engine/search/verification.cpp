#include "search/verification.hpp"

#include <time.h>

#include <algorithm>

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

bool is_domain_link(gpu::Link link) {
  return link == gpu::Link::kParser || link == gpu::Link::kEnsemble || link == gpu::Link::kEnvelope;
}

}  // namespace

double Verification::process_seconds() {
  timespec used{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

double Verification::budget_left() const {
  return kShare * (process_seconds() - begun_) - seconds();
}

gpu::SampleRequest Verification::request(std::uint64_t model,
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

bool Verification::wanted(gpu::Link link, std::uint64_t cells) const {
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

void Verification::made(gpu::Link link, const std::vector<gpu::UsedKernel>& kernels,
                        std::uint64_t cells, double seconds) {
  ++checks_;
  nanoseconds_ += static_cast<std::uint64_t>(1e9 * seconds);
  const MutexLock lock(mutex_);
  Cost& cost = costs_[static_cast<std::size_t>(link)];
  cost.seconds += seconds;
  cost.cells += static_cast<double>(cells);
  for (const gpu::UsedKernel& kernel : kernels) {
    if (kernel.link == link || (link == gpu::Link::kParser && is_domain_link(kernel.link)))
      checked_.insert(kernel);
  }
}

bool Verification::unchecked(gpu::Link link, const std::vector<gpu::UsedKernel>& kernels) const {
  const MutexLock lock(mutex_);
  for (const gpu::UsedKernel& kernel : kernels) {
    if (kernel.link == link && !checked_.contains(kernel)) return true;
  }
  return false;
}

}  // namespace hmmjit::search_run
