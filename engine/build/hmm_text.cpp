#include "build/hmm_text.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

namespace hmmjit::build {
namespace {

// Probabilities are saved as negative natural logarithms, '*' for zero.
void append_probability(std::string& out, float p) {
  if (p == 0.0f) {
    out += "        *";
  } else {
    const float cost = p == 1.0f ? 0.0f : -std::log(p);  // of a float, in single precision
    fmt::format_to(std::back_inserter(out), " {:>8.5f}", static_cast<double>(cost));
  }
}

void append_row(std::string& out, const std::vector<float>& values, int k, std::size_t width) {
  for (std::size_t x = 0; x < width; ++x)
    append_probability(out, values[static_cast<std::size_t>(k) * width + x]);
}

}  // namespace

void append_hmm_text(std::string& out, const BuiltModel& built, const std::string& program,
                     const std::string& date) {
  const Hmm& hmm = built.hmm;
  const auto K = static_cast<std::size_t>(hmm.alphabet->K);
  auto to = std::back_inserter(out);
  const auto yes = [](bool value) { return value ? "yes" : "no"; };
  fmt::format_to(to, "HMMER3/f [{}]\nNAME  {}\n", program, hmm.name);
  if (hmm.accession) fmt::format_to(to, "ACC   {}\n", *hmm.accession);
  if (hmm.description) fmt::format_to(to, "DESC  {}\n", *hmm.description);
  fmt::format_to(to, "LENG  {}\nALPH  {}\n", hmm.M, hmm.alphabet->name);
  fmt::format_to(to, "RF    {}\nMM    {}\nCONS  {}\nCS    {}\nMAP   {}\n", yes(!hmm.rf.empty()),
                 yes(!hmm.mm.empty()), yes(!hmm.consensus.empty()), yes(!hmm.cs.empty()),
                 yes(!built.map.empty()));
  if (!date.empty()) fmt::format_to(to, "DATE  {}\n", date);
  if (!built.command_log.empty()) fmt::format_to(to, "COM   [1] {}\n", built.command_log);
  if (built.sequences > 0) fmt::format_to(to, "NSEQ  {}\n", built.sequences);
  if (built.effective_sequences)
    fmt::format_to(to, "EFFN  {:f}\n", static_cast<double>(*built.effective_sequences));
  if (built.checksum) fmt::format_to(to, "CKSUM {}\n", *built.checksum);
  const auto cutoff = [&](const char* tag, const std::optional<Cutoff>& value) {
    if (value)
      fmt::format_to(to, "{}    {:.2f} {:.2f}\n", tag, static_cast<double>(value->sequence),
                     static_cast<double>(value->domain));
  };
  cutoff("GA", hmm.ga);
  cutoff("TC", hmm.tc);
  cutoff("NC", hmm.nc);
  // Formatted as printf does, right-aligned infinities included: a model that cannot emit anything
  // has them.
  const auto statistics = [&](const char* name, float location, float lambda) {
    fmt::format_to(to, "STATS LOCAL {} {:>8.4f} {:>8.5f}\n", name, static_cast<double>(location),
                   static_cast<double>(lambda));
  };
  statistics("MSV     ", hmm.calibration.msv_mu, hmm.calibration.msv_lambda);
  statistics("VITERBI ", hmm.calibration.viterbi_mu, hmm.calibration.viterbi_lambda);
  statistics("FORWARD ", hmm.calibration.forward_tau, hmm.calibration.forward_lambda);

  out += "HMM     ";
  for (std::size_t x = 0; x < K; ++x) fmt::format_to(to, "     {}   ", hmm.alphabet->symbols[x]);
  out += "\n        ";
  for (const char* transition : {"m->m ", "m->i ", "m->d ", "i->m ", "i->i ", "d->m ", "d->d"})
    fmt::format_to(to, "{:>{}}", transition, transition[4] == ' ' ? 9 : 8);
  out += "\n  COMPO ";
  for (std::size_t x = 0; x < K; ++x) append_probability(out, hmm.compo[x]);
  out += "\n        ";
  append_row(out, hmm.insert, 0, K);
  out += "\n        ";
  append_row(out, hmm.transition, 0, kTransitions);
  out += '\n';
  const auto annotation = [](const std::string& line, int k) {
    return line.empty() ? '-' : line[static_cast<std::size_t>(k - 1)];
  };
  for (int k = 1; k <= hmm.M; ++k) {
    fmt::format_to(to, " {:6} ", k);
    append_row(out, hmm.match, k, K);
    if (built.map.empty())
      out += "      -";
    else
      fmt::format_to(to, " {:6}", built.map[static_cast<std::size_t>(k)]);
    const char mask = annotation(hmm.mm, k);
    fmt::format_to(to, " {} {} {} {}\n        ", mask == 'm' ? 'x' : annotation(hmm.consensus, k),
                   annotation(hmm.rf, k), mask, annotation(hmm.cs, k));
    append_row(out, hmm.insert, k, K);
    out += "\n        ";
    append_row(out, hmm.transition, k, kTransitions);
    out += '\n';
  }
  out += "//\n";
}

}  // namespace hmmjit::build
