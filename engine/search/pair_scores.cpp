#include "search/pair_scores.hpp"

#include <cmath>
#include <limits>
#include <span>

#include "core/threads.hpp"
#include "cpu/filters.hpp"
#include "model/profile.hpp"
#include "model/score_statistics.hpp"

namespace hmmjit {

Result<PairScores> score_pair(const PreparedModel& prepared, const TargetView& target,
                              const FilterOptions& filters, const domain::DomainOptions& domain) {
  PairScores out;
  if (target.residues.empty()) return out;
  const FlushToZeroScope flush;
  const std::span<const Residue> residues = target.residues;
  const cpu::FilterTables& tables = prepared.tables_with_viterbi();
  const std::shared_ptr<const SearchModel> model = prepared.model();
  const Calibration& calibration = model->hmm.calibration;
  out.null_nats = null_score(static_cast<int>(residues.size()));
  const auto add = [&](std::string_view name, float nats, float bits, double p, double limit) {
    out.steps.push_back({name, nats, bits, p, limit, !(p > limit)});
  };

  cpu::FilterScratch scratch;
  const float msv = tables.msv_filter(residues, scratch);
  const auto add_msv = [&](std::string_view name, float nats, float subtracted) {
    const float bits = nats_to_bits(msv - subtracted);
    add(name, nats, bits, gumbel_survival(bits, calibration.msv_mu, calibration.msv_lambda),
        filters.F1);
  };
  add_msv("msv", msv, out.null_nats);
  float subtracted = out.null_nats;
  if (filters.bias) {
    tables.bias_filter_batch({&residues, 1}, {&subtracted, 1});
    add_msv("bias", subtracted, subtracted);
  }
  const bool skips_viterbi = !(out.steps.back().p > filters.F2);

  const float viterbi = tables.viterbi_filter(residues, scratch);
  const float viterbi_bits = nats_to_bits(viterbi - subtracted);
  add("viterbi", viterbi, viterbi_bits,
      gumbel_survival(viterbi_bits, calibration.viterbi_mu, calibration.viterbi_lambda),
      filters.F2);
  if (skips_viterbi) out.steps.back().passes = true;

  const domain::ForwardTables forward(*model);
  domain::Workspace workspace;
  float nats = std::numeric_limits<float>::quiet_NaN();
  try {
    domain::score_targets_batch(forward, {&target, 1}, [](std::size_t, float) { return true; },
                                domain, workspace, {&nats, 1}, {&out.score, 1});
  } catch (const domain::MatrixTooLarge& too_large) {
    return fail(ErrorCode::kResources, too_large.what(), {}, "leave out the target");
  }
  const float bits = nats_to_bits(nats - subtracted);
  const double p = exponential_survival(bits, calibration.forward_tau, calibration.forward_lambda);
  add("forward", nats, bits, p, filters.F3);
  if (std::isnan(nats)) out.steps.back().passes = false;  // every path is impossible
  return out;
}

}  // namespace hmmjit
