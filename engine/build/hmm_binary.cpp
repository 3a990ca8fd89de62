#include "build/hmm_binary.hpp"

#include <cstdint>
#include <span>

#include "model/hmm_binary_flags.hpp"

namespace hmmjit::build {
namespace {

constexpr std::uint32_t kMagicF = 0xe8ededbau;

using namespace hmm_binary;

template <typename T>
void put(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
void put_floats(std::string& out, std::span<const float> values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}
// Length with the final NUL, then that many bytes; 0: no text.
void put_text(std::string& out, const std::string& text) {
  put(out, static_cast<std::int32_t>(text.empty() ? 0 : text.size() + 1));
  if (!text.empty()) out.append(text.c_str(), text.size() + 1);
}
// M + 2 characters: node k at k.
void put_column(std::string& out, const std::string& column) {
  if (column.empty()) return;
  (out += ' ') += column;
  out += '\0';
}

}  // namespace

void append_hmm_binary(std::string& out, const BuiltModel& built) {
  const Hmm& hmm = built.hmm;
  const auto K = static_cast<std::size_t>(hmm.alphabet->K);
  const Calibration& c = hmm.calibration;
  bool composed = false;
  for (std::size_t x = 0; x < K; ++x) composed |= hmm.compo[x] != 0.0f;
  const bool calibrated = c.msv_lambda != Calibration().msv_lambda;
  std::uint32_t flags = kProbabilities;
  const auto set = [&flags](bool present, Flag flag) {
    if (present) flags |= flag;
  };
  set(hmm.accession.has_value(), kAccession);
  set(hmm.description.has_value(), kDescription);
  set(!hmm.rf.empty(), kRf);
  set(!hmm.mm.empty(), kMask);
  set(!hmm.consensus.empty(), kConsensus);
  set(!hmm.cs.empty(), kCs);
  set(!built.accessibility.empty(), kAccessibility);
  set(!built.map.empty(), kMap);
  set(built.checksum.has_value(), kChecksum);
  set(calibrated, kStatistics);
  set(composed, kComposition);
  set(hmm.ga.has_value(), kGa);
  set(hmm.tc.has_value(), kTc);
  set(hmm.nc.has_value(), kNc);

  put(out, kMagicF);
  put(out, flags);
  put(out, static_cast<std::int32_t>(hmm.M));
  put(out, static_cast<std::int32_t>(hmm.alphabet->type));
  put_floats(out, std::span(hmm.match).subspan(K));
  put_floats(out, hmm.insert);
  put_floats(out, hmm.transition);
  put_text(out, hmm.name);
  if (hmm.accession) put_text(out, *hmm.accession);
  if (hmm.description) put_text(out, *hmm.description);
  put_column(out, hmm.rf);
  put_column(out, hmm.mm);
  put_column(out, hmm.consensus);
  put_column(out, hmm.cs);
  put_column(out, built.accessibility);
  put_text(out, built.command_log);
  put(out, static_cast<std::int32_t>(built.sequences > 0 ? built.sequences : -1));
  put(out, built.effective_sequences.value_or(-1.0f));
  put(out, std::int32_t{-1});  // longest expected hit, of nucleic models
  put_text(out, {});           // creation time
  for (const int column : built.map) put(out, static_cast<std::int32_t>(column));
  put(out, built.checksum.value_or(0));
  for (const float value :
       {c.msv_mu, c.msv_lambda, c.viterbi_mu, c.viterbi_lambda, c.forward_tau, c.forward_lambda})
    put(out, value);
  for (const auto* cutoff : {&hmm.ga, &hmm.tc, &hmm.nc}) {
    put(out, *cutoff ? (*cutoff)->sequence : -99999.0f);
    put(out, *cutoff ? (*cutoff)->domain : -99999.0f);
  }
  if (composed) put_floats(out, std::span(hmm.compo).first(K));
}

}  // namespace hmmjit::build
