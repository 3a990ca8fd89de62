
#include "bench/bench.hpp"

namespace hmmjit::bench {

Result<TuneResult> tune(Bench& bench, const plan::Plan& plan, const std::string& catalogue,
                        std::size_t most_candidates) {
  std::vector<plan::Candidate> candidates = candidates_of(plan, most_candidates);
  std::erase_if(candidates, [&](const plan::Candidate& c) {
    return !c.variant->competes && c.variant != plan.chosen.variant;
  });
  for (const plan::Candidate& c : candidates) bench.prepare(plan, c);
  TuneResult out;
  for (const plan::Candidate& c : candidates) {
    HMMJIT_ASSIGN(Measurement m, bench.measure(plan, c));
    out.measurements.push_back(std::move(m));
  }
  constexpr double kNoise = 0.01;
  const Measurement& planned = out.measurements.front();
  const Measurement* best = planned.exact() ? &planned : nullptr;
  for (const Measurement& m : out.measurements) {
    if (!m.exact() || m.sample != planned.sample) continue;
    const double lead = best == &planned ? 1 + kNoise : 1;
    if (best == nullptr || m.gcups > lead * best->gcups) best = &m;
  }
  if (best == nullptr) return out;
  plan::TunedChoice choice;
  choice.device = bench.device().name;
  choice.capability = bench.device().capability();
  choice.sm_count = bench.device().sm_count;
  choice.catalogue = catalogue;
  choice.stage = plan.stage;
  choice.class_length = plan.class_length;
  choice.variant = std::string(best->candidate.variant->name);
  choice.constants = best->candidate.constants;
  choice.gcups = best->gcups;
  choice.planned_gcups = planned.exact() ? planned.gcups : 0;
  choice.targets = best->targets;
  choice.residues = best->residues;
  out.choice = std::move(choice);
  return out;
}

}  // namespace hmmjit::bench
