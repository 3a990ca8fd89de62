#include "reference/describe.hpp"

#include <fmt/format.h>

#include <iterator>

#include "core/threads.hpp"
#include "model/score_statistics.hpp"
#include "reference/filters.hpp"

namespace hmmjit::reference {
namespace {

const char* status_name(SsvStatus status) {
  switch (status) {
    case SsvStatus::kScore:
      return "score";
    case SsvStatus::kOverflow:
      return "overflow";
    case SsvStatus::kNoResult:
      break;
  }
  return "no-result";
}

}  // namespace

std::string describe_scores(const SearchModel& model, std::span<const Residue> residues) {
  const FlushToZeroScope flush;
  const int L = static_cast<int>(residues.size());
  std::string text = fmt::format("length {}\n", L);
  if (L == 0) return text;
  const auto out = std::back_inserter(text);
  const Calibration& c = model.hmm.calibration;
  const float null = null_score(L);
  const float bias = bias_filter(model.bias, residues);
  fmt::format_to(out, "null_nats {:a}\nbias_nats {:a}\n", null, bias);

  const SsvResult ssv = ssv_filter(model.bytes, residues);
  fmt::format_to(out, "ssv_status {}\nssv_nats {:a}\n", status_name(ssv.status), ssv.nats);
  const float msv = msv_filter(model.bytes, residues);
  const float msv_bits = nats_to_bits(msv - null), msv_bias_bits = nats_to_bits(msv - bias);
  fmt::format_to(out, "msv_nats {:a}\nmsv_bits {:a} P {:.17g}\nmsv_bias_bits {:a} P {:.17g}\n", msv,
                 msv_bits, gumbel_survival(msv_bits, c.msv_mu, c.msv_lambda), msv_bias_bits,
                 gumbel_survival(msv_bias_bits, c.msv_mu, c.msv_lambda));

  const float viterbi = viterbi_filter(model.words, residues);
  const float viterbi_bits = nats_to_bits(viterbi - bias);
  fmt::format_to(out, "viterbi_nats {:a}\nviterbi_bits {:a} P {:.17g}\n", viterbi, viterbi_bits,
                 gumbel_survival(viterbi_bits, c.viterbi_mu, c.viterbi_lambda));

  const LengthModel length = length_model(L, true);
  const ForwardResult forward_run = forward(model.odds, residues, length);
  const float forward_bits = nats_to_bits(forward_run.nats - bias);
  fmt::format_to(out, "forward_nats {:a}\nforward_scaling {:a}\nforward_bits {:a} P {:.17g}\n",
                 forward_run.nats, forward_run.total, forward_bits,
                 exponential_survival(forward_bits, c.forward_tau, c.forward_lambda));
  const BackwardResult backward_run = backward(model.odds, residues, length, forward_run.scale);
  fmt::format_to(out, "backward_nats {:a}\nbackward_scaling {:a}\nbackward_own_scale {}\n",
                 backward_run.nats, backward_run.total, backward_run.own_scale);
  return text;
}

}  // namespace hmmjit::reference
