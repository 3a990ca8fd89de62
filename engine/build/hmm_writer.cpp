#include "build/hmm_writer.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <iterator>
#include <span>

#include "core/coding.hpp"
#include "core/text_fields.hpp"
#include "model/hmm_binary_flags.hpp"

namespace hmmjit::build {
namespace {

// A probability is stored as its negative natural logarithm, zero as '*'.
void append_probability(std::string& out, float p) {
  if (p == 0.0f) {
    out += "        *";
  } else {
    const float cost = p == 1.0f ? 0.0f : -std::log(p);  // in single precision
    fmt::format_to(std::back_inserter(out), " {:>8.5f}", static_cast<double>(cost));
  }
}

void append_row(std::string& out, const std::vector<float>& values, int k, std::size_t width) {
  for (std::size_t x = 0; x < width; ++x)
    append_probability(out, values[static_cast<std::size_t>(k) * width + x]);
}

bool is_calibrated(const Hmm& hmm) {
  return hmm.calibration.msv_lambda != Calibration().msv_lambda;
}
bool has_composition(const Hmm& hmm) { return hmm.compo != decltype(hmm.compo){}; }

// ---- binary ---------------------------------------------------------------------------------

constexpr std::uint32_t kMagicF = 0xe8ededbau;

using namespace hmm_binary;

void put_floats(std::string& out, std::span<const float> values) {
  out.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
}
// A string: its length with the final NUL, then that many bytes; length 0 means no text.
void put_text(std::string& out, const std::string& text) {
  put_bytes(out, static_cast<std::int32_t>(text.empty() ? 0 : text.size() + 1));
  if (!text.empty()) out.append(text.c_str(), text.size() + 1);
}
// M + 2 characters, node k at index k.
void put_column(std::string& out, const std::string& column) {
  if (column.empty()) return;
  (out += ' ') += column;
  out += '\0';
}

}  // namespace

Status check_writable(const BuiltModel& built) {
  const Hmm& hmm = built.hmm;
  std::string what;
  if (trim(hmm.name).starts_with('#') || hmm.accession.value_or("").starts_with('#'))
    what = "its name or accession begins with #";
  else if ((hmm.rf + hmm.mm + hmm.cs).find_first_of(std::string(kBlanks) + '#') !=
           std::string::npos)
    what = "its RF, MM or secondary structure line has a # or blanks at consensus columns";
  else if (built.effective_sequences && *built.effective_sequences <= 5e-7f)
    what = "its effective number of sequences would be 0.000000";
  if (what.empty()) return {};
  return fail(ErrorCode::kInput, "no program could read its profile file: " + what,
              "model " + hmm.name, "change it");
}

void append_hmm_text(std::string& out, const BuiltModel& built, const std::string& program,
                     const std::string& date) {
  const Hmm& hmm = built.hmm;
  const auto K = static_cast<std::size_t>(hmm.alphabet->K);
  auto to = std::back_inserter(out);
  const auto yes = [](bool value) { return value ? "yes" : "no"; };
  fmt::format_to(to, "HMMER3/f [{}]\nNAME  {}\n", program, hmm.name);
  if (hmm.accession) fmt::format_to(to, "ACC   {}\n", *hmm.accession);
  if (hmm.description) fmt::format_to(to, "DESC  {}\n", *hmm.description);
  fmt::format_to(to, "LENG  {}\n", hmm.M);
  if (hmm.max_length) fmt::format_to(to, "MAXL  {}\n", *hmm.max_length);
  fmt::format_to(to, "ALPH  {}\n", hmm.alphabet->name);
  fmt::format_to(to, "RF    {}\nMM    {}\nCONS  {}\nCS    {}\nMAP   {}\n", yes(!hmm.rf.empty()),
                 yes(!hmm.mm.empty()), yes(!hmm.consensus.empty()), yes(!hmm.cs.empty()),
                 yes(!hmm.map.empty()));
  if (!date.empty()) fmt::format_to(to, "DATE  {}\n", date);
  if (!built.command_log.empty()) fmt::format_to(to, "COM   [1] {}\n", built.command_log);
  if (built.sequences > 0) fmt::format_to(to, "NSEQ  {}\n", built.sequences);
  if (built.effective_sequences)
    fmt::format_to(to, "EFFN  {:f}\n", static_cast<double>(*built.effective_sequences));
  if (hmm.checksum) fmt::format_to(to, "CKSUM {}\n", *hmm.checksum);
  const bool protein = hmm.alphabet->type == AlphabetType::kAmino;
  const char masked = protein ? 'x' : 'n';
  const auto cutoff = [&](const char* tag, const std::optional<Cutoff>& value) {
    if (!value) return;
    fmt::format_to(to, "{}    {:.2f}", tag, static_cast<double>(value->sequence));
    if (protein) fmt::format_to(to, " {:.2f}", static_cast<double>(value->domain));
    out += '\n';
  };
  cutoff("GA", hmm.ga);
  cutoff("TC", hmm.tc);
  cutoff("NC", hmm.nc);
  // Right-aligned like printf's, including the infinities of a model that emits nothing.
  const auto statistics = [&](const char* name, float location, float lambda) {
    fmt::format_to(to, "STATS LOCAL {} {:>8.4f} {:>8.5f}\n", name, static_cast<double>(location),
                   static_cast<double>(lambda));
  };
  if (is_calibrated(hmm)) {
    statistics("MSV     ", hmm.calibration.msv_mu, hmm.calibration.msv_lambda);
    statistics("VITERBI ", hmm.calibration.viterbi_mu, hmm.calibration.viterbi_lambda);
    statistics("FORWARD ", hmm.calibration.forward_tau, hmm.calibration.forward_lambda);
  }

  out += "HMM     ";
  for (std::size_t x = 0; x < K; ++x) fmt::format_to(to, "     {}   ", hmm.alphabet->symbols[x]);
  out += "\n        ";
  for (const char* transition : {"m->m ", "m->i ", "m->d ", "i->m ", "i->i ", "d->m ", "d->d"})
    fmt::format_to(to, "{:>{}}", transition, transition[4] == ' ' ? 9 : 8);
  if (has_composition(hmm)) {
    out += "\n  COMPO ";
    for (std::size_t x = 0; x < K; ++x) append_probability(out, hmm.compo[x]);
  }
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
    if (hmm.map.empty())
      out += "      -";
    else
      fmt::format_to(to, " {:6}", hmm.map[static_cast<std::size_t>(k)]);
    const char mask = annotation(hmm.mm, k);
    fmt::format_to(to, " {} {} {} {}\n        ",
                   mask == 'm' ? masked : annotation(hmm.consensus, k), annotation(hmm.rf, k), mask,
                   annotation(hmm.cs, k));
    append_row(out, hmm.insert, k, K);
    out += "\n        ";
    append_row(out, hmm.transition, k, kTransitions);
    out += '\n';
  }
  out += "//\n";
}

void append_hmm_binary(std::string& out, const BuiltModel& built) {
  const Hmm& hmm = built.hmm;
  const auto K = static_cast<std::size_t>(hmm.alphabet->K);
  const Calibration& c = hmm.calibration;
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
  set(!hmm.map.empty(), kMap);
  set(hmm.checksum.has_value(), kChecksum);
  set(is_calibrated(hmm), kStatistics);
  set(has_composition(hmm), kComposition);
  set(hmm.ga.has_value(), kGa);
  set(hmm.tc.has_value(), kTc);
  set(hmm.nc.has_value(), kNc);

  put_bytes(out, kMagicF);
  put_bytes(out, flags);
  put_bytes(out, static_cast<std::int32_t>(hmm.M));
  put_bytes(out, static_cast<std::int32_t>(hmm.alphabet->type));
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
  put_bytes(out, static_cast<std::int32_t>(built.sequences > 0 ? built.sequences : -1));
  put_bytes(out, built.effective_sequences.value_or(-1.0f));
  put_bytes(out, static_cast<std::int32_t>(hmm.max_length.value_or(-1)));
  put_text(out, {});  // creation time
  for (const int column : hmm.map) put_bytes(out, static_cast<std::int32_t>(column));
  put_bytes(out, hmm.checksum.value_or(0));
  for (const float value :
       {c.msv_mu, c.msv_lambda, c.viterbi_mu, c.viterbi_lambda, c.forward_tau, c.forward_lambda})
    put_bytes(out, value);
  for (const auto* cutoff : {&hmm.ga, &hmm.tc, &hmm.nc}) {
    put_bytes(out, *cutoff ? (*cutoff)->sequence : -99999.0f);
    put_bytes(out, *cutoff ? (*cutoff)->domain : -99999.0f);
  }
  if (has_composition(hmm)) put_floats(out, std::span(hmm.compo).first(K));
}

}  // namespace hmmjit::build
