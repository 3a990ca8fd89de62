#include "generated_inputs.hpp"

#include "random_profiles.hpp"
#include "shared_data.hpp"

namespace hmmjit::tests {

using namespace hmmjit::test_support;

Inputs make_inputs(unsigned seed, int models, int targets) {
  Inputs out;
  Random random(seed);
  std::vector<Hmm> hmms;
  for (int m = 0; m < models; ++m) {
    Hmm hmm = random_hmm(random, {20, 120});
    hmm.name = "model" + std::to_string(m);
    hmm.ga = Cutoff{10, 10};
    out.models += model_text(hmm);
    hmms.push_back(std::move(hmm));
  }
  for (int t = 0; t < targets; ++t) {
    const auto kind = t % 3 == 0 ? TargetKind::kHomologous : TargetKind::kBackground;
    const Hmm& hmm = hmms[random.next() % hmms.size()];
    out.targets += fasta_text({"target" + std::to_string(t) + " number " + std::to_string(t),
                               random_target(random, {50, 400}, kind, hmm)});
  }
  return out;
}

}  // namespace hmmjit::tests
