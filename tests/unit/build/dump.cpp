#include "dump.hpp"

#include <cstdio>
#include <sstream>
#include <stdexcept>

#include "tests/support/command.hpp"

namespace hmmjit::test_support {

std::string hex(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%a", value);
  return text;
}

std::string dump(const build::BuiltModel& built) {
  const Hmm& hmm = built.hmm;
  std::ostringstream out;
  const auto floats = [&](const std::vector<float>& values, std::size_t row, std::size_t width) {
    for (std::size_t x = 0; x < width; ++x) out << " " << hex(values[row * width + x]);
    out << "\n";
  };
  const auto or_dash = [](const std::string& text) { return text.empty() ? "-" : text; };
  unsigned flags = 1u << 7 | 1u << 14 | 1u << 16;
  if (hmm.description) flags |= 1u << 1;
  if (!hmm.rf.empty()) flags |= 1u << 2;
  if (!hmm.cs.empty()) flags |= 1u << 3;
  if (!built.hmm.map.empty()) flags |= 1u << 8;
  if (hmm.accession) flags |= 1u << 9;
  if (hmm.ga) flags |= 1u << 10;
  if (hmm.tc) flags |= 1u << 11;
  if (hmm.nc) flags |= 1u << 12;
  if (!built.accessibility.empty()) flags |= 1u << 13;
  if (built.hmm.checksum) flags |= 1u << 15;
  if (!hmm.mm.empty()) flags |= 1u << 17;
  out << "NAME " << hmm.name << "\n";
  out << "M " << hmm.M << " nseq " << built.sequences << " effn "
      << hex(built.effective_sequences.value_or(-1.0f)) << " maxl -1 flags " << flags << " cksum "
      << built.hmm.checksum.value_or(0) << "\n";
  out << "ACC " << hmm.accession.value_or("(none)") << "\n";
  out << "DESC " << hmm.description.value_or("(none)") << "\n";
  int cut = 0;
  for (const auto& cutoff : {hmm.ga, hmm.tc, hmm.nc}) {
    const Cutoff value = cutoff.value_or(Cutoff{-99999.0f, -99999.0f});
    out << "CUT" << cut++ << " " << hex(value.sequence) << "\n";
    out << "CUT" << cut++ << " " << hex(value.domain) << "\n";
  }
  const Calibration& c = hmm.calibration;
  out << "STATS " << hex(c.msv_mu) << " " << hex(c.msv_lambda) << " " << hex(c.viterbi_mu) << " "
      << hex(c.viterbi_lambda) << " " << hex(c.forward_tau) << " " << hex(c.forward_lambda) << "\n";
  char text[256];
  std::snprintf(text, sizeof text, "MSV %8.4f %8.5f VIT %8.4f %8.5f FWD %8.4f %8.5f\n",
                static_cast<double>(c.msv_mu), static_cast<double>(c.msv_lambda),
                static_cast<double>(c.viterbi_mu), static_cast<double>(c.viterbi_lambda),
                static_cast<double>(c.forward_tau), static_cast<double>(c.forward_lambda));
  out << text;
  out << "CONS " << hmm.consensus << "\nRF " << or_dash(hmm.rf) << "\nMM " << or_dash(hmm.mm)
      << "\nCS " << or_dash(hmm.cs) << "\nMAP";
  for (const int column : built.hmm.map) out << " " << column;
  out << "\nCOMPO";
  floats(std::vector<float>(hmm.compo.begin(), hmm.compo.end()), 0,
         static_cast<std::size_t>(hmm.alphabet->K));
  for (std::size_t k = 0; k <= static_cast<std::size_t>(hmm.M); ++k) {
    out << k << " m";
    floats(hmm.match, k, static_cast<std::size_t>(hmm.alphabet->K));
    out << k << " i";
    floats(hmm.insert, k, static_cast<std::size_t>(hmm.alphabet->K));
    out << k << " t";
    floats(hmm.transition, k, kTransitions);
  }
  return out.str();
}

std::map<std::string, std::string> read_dumps(const std::string& path) {
  const auto text = output_of("gzip -dc '" + path + "'");
  if (!text || text->empty()) throw std::runtime_error("cannot read " + path);
  std::map<std::string, std::string> dumps;
  std::istringstream lines(*text);
  std::string line, name, weights;
  while (std::getline(lines, line)) {
    if (line.starts_with("W ")) {
      weights += line + "\n";
      continue;
    }
    if (line.starts_with("NAME ")) {
      name = line.substr(5);
      dumps[name] = std::exchange(weights, {});
    }
    dumps[name] += line + "\n";
  }
  return dumps;
}

std::string difference(const std::string& wanted, const std::string& got) {
  std::istringstream a(wanted), b(got);
  std::string x, y, out;
  int shown = 0;
  while (shown < 5) {
    const bool more_a = static_cast<bool>(std::getline(a, x));
    const bool more_b = static_cast<bool>(std::getline(b, y));
    if (!more_a && !more_b) break;
    if (!more_a) x = "(end)";
    if (!more_b) y = "(end)";
    if (x == y) continue;
    out += "- " + x.substr(0, 240) + "\n+ " + y.substr(0, 240) + "\n";
    ++shown;
  }
  return out;
}

}  // namespace hmmjit::test_support
