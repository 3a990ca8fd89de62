#include "bench/self_check.hpp"

#include <algorithm>
#include <random>

#include "model/hmm.hpp"

namespace hmmjit::bench {
namespace {

// minstd_rand is portable; the library's distributions are not.
int draw(std::minstd_rand& random, int below) {
  return static_cast<int>(random() % static_cast<unsigned>(below));
}

/// A synthetic family: two out of three positions conserve one residue.
Hmm made_up_model(std::minstd_rand& random) {
  constexpr int M = kSelfCheckLength;
  Hmm hmm;
  hmm.name = "self-check";
  hmm.M = M;
  hmm.alphabet = &amino_alphabet();
  const int K = hmm.alphabet->K;
  const auto& background = hmm.alphabet->background;
  for (int k = 0; k <= M; ++k) {
    const int kept = draw(random, K);
    const float weight = k > 0 && draw(random, 3) > 0 ? 0.7f : 0.0f;
    for (int x = 0; x < K; ++x) {
      hmm.match.push_back((1 - weight) * background[x] + (x == kept ? weight : 0.0f));
      hmm.insert.push_back(background[x]);
    }
    for (const float p : {0.98f, 0.01f, 0.01f, 0.6f, 0.4f, 0.6f, 0.4f}) {
      hmm.transition.push_back(p);
    }
  }
  float* last = hmm.transition.data() + static_cast<std::size_t>(M) * kTransitions;
  last[kMM] = 0.99f, last[kMD] = 0, last[kDM] = 1, last[kDD] = 0;
  hmm.consensus = compute_consensus(hmm);
  hmm.calibration = {-8.0f, 0.7f, -9.0f, 0.7f, -3.5f, 0.7f};
  return hmm;
}

Sequences made_up_targets(const Hmm& hmm, std::minstd_rand& random) {
  constexpr int kTargets = 64, kLongest = 400;
  Sequences out;
  for (int t = 0; t < kTargets; ++t) {
    auto& residues = out.emplace_back(1 + draw(random, kLongest));
    for (Residue& x : residues) x = static_cast<Residue>(draw(random, hmm.alphabet->K));
    if (t % 3 != 0) continue;
    for (std::size_t i = 0; i < residues.size(); ++i) {
      const int k = 1 + static_cast<int>(i) % hmm.M;
      const auto row = hmm.match.begin() + static_cast<long>(k) * hmm.alphabet->K;
      if (draw(random, 4) > 0) {
        residues[i] = static_cast<Residue>(std::max_element(row, row + hmm.alphabet->K) - row);
      }
    }
  }
  return out;
}

}  // namespace

Result<Measurement> self_check(std::shared_ptr<driver::Driver> driver, int ordinal,
                               gpu::KernelSource& kernels, const plan::Plan& plan) {
  std::minstd_rand random(20261);
  Hmm hmm = made_up_model(random);
  const Sequences targets = made_up_targets(hmm, random);
  Settings settings;
  settings.repeats = 1;
  settings.threads = 1;
  HMMJIT_ASSIGN(const auto bench,
                Bench::create(std::move(driver), ordinal, kernels, targets, settings));
  bench->use_model(make_search_model(std::move(hmm)));
  return bench->measure(plan, plan.chosen);
}

}  // namespace hmmjit::bench
