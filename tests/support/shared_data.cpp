#include "tests/support/shared_data.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "core/numbers.hpp"

namespace hmmjit::test_support {
namespace {

using Path = std::filesystem::path;

class Lines {
 public:
  explicit Lines(const Path& path) : path_(path), stream_(path) {
    if (!stream_) throw std::runtime_error("cannot read " + path.string());
  }
  // The tokens of the next line that has any; empty at the end of the file.
  std::vector<std::string> next() {
    while (std::getline(stream_, line)) {
      std::istringstream text(line);
      std::vector<std::string> tokens;
      for (std::string token; text >> token;) tokens.push_back(token);
      if (!tokens.empty()) return tokens;
    }
    return {};
  }
  std::vector<std::string> need(std::size_t count) {
    auto tokens = next();
    if (tokens.size() < count) throw std::runtime_error("short line in " + path_.string());
    return tokens;
  }
  std::string line;

 private:
  Path path_;
  std::ifstream stream_;
};

float probability(const std::string& token) {
  if (token == "*") return 0.0f;
  // The field is rounded to float before the single-precision exponential is taken.
  return std::exp(static_cast<float>(-parse_real(token).value()));
}

float number(const std::string& token) { return static_cast<float>(parse_real(token).value()); }

void read_row(float* out, const std::vector<std::string>& tokens, std::size_t first, int count) {
  for (int x = 0; x < count; ++x) out[x] = probability(tokens.at(first + x));
}

// `columns`: the match lines carry consensus and annotation as 3/f does; earlier forms differ in
// them alone, and get a computed consensus.
Hmm read_model(Lines& lines, bool columns) {
  Hmm hmm;
  bool cs = false, rf = false, mm = false;
  for (;;) {
    const auto t = lines.need(1);
    if (t[0] == "HMM") break;
    if (t[0] == "NAME") hmm.name = t.at(1);
    if (t[0] == "ACC") hmm.accession = t.at(1);
    if (t[0] == "LENG") hmm.M = std::stoi(t.at(1));
    if (t[0] == "ALPH") {
      hmm.alphabet = t.at(1) == "amino" ? &amino_alphabet()
                     : t.at(1) == "DNA" ? &dna_alphabet()
                                        : &rna_alphabet();
    }
    if (t[0] == "RF") rf = t.at(1) == "yes";
    if (t[0] == "MM") mm = t.at(1) == "yes";
    if (t[0] == "CS") cs = t.at(1) == "yes";
    if (t[0] == "STATS") {
      Calibration& c = hmm.calibration;
      if (t.at(2) == "MSV") c.msv_mu = number(t.at(3)), c.msv_lambda = number(t.at(4));
      if (t.at(2) == "VITERBI") {
        c.viterbi_mu = number(t.at(3)), c.viterbi_lambda = number(t.at(4));
      }
      if (t.at(2) == "FORWARD") {
        c.forward_tau = number(t.at(3)), c.forward_lambda = number(t.at(4));
      }
    }
  }
  lines.need(1);  // labels of the transitions
  const int K = hmm.alphabet->K;
  const auto rows = static_cast<std::size_t>(hmm.M) + 1;
  hmm.match.assign(rows * K, 0.0f);
  hmm.insert.assign(rows * K, 0.0f);
  hmm.transition.assign(rows * kTransitions, 0.0f);
  auto t = lines.need(static_cast<std::size_t>(K));
  if (t[0] == "COMPO") {
    read_row(hmm.compo.data(), t, 1, K);
    t = lines.need(static_cast<std::size_t>(K));
  }
  for (int k = 0; k <= hmm.M; ++k) {
    if (k > 0) {
      const auto node = lines.need(static_cast<std::size_t>(K) + (columns ? 6 : 1));
      if (std::stoi(node[0]) != k) throw std::runtime_error("node number in " + hmm.name);
      read_row(hmm.match.data() + static_cast<std::size_t>(k) * K, node, 1, K);
      const auto column = [&](int i) { return node[static_cast<std::size_t>(K + i)][0]; };
      if (columns) hmm.consensus += column(2);
      if (columns && rf) hmm.rf += column(3);
      if (columns && mm) hmm.mm += column(4);
      if (columns && cs) hmm.cs += column(5);
      t = lines.need(static_cast<std::size_t>(K));
    }
    read_row(hmm.insert.data() + static_cast<std::size_t>(k) * K, t, 0, K);
    read_row(hmm.transition.data() + static_cast<std::size_t>(k) * kTransitions,
             lines.need(kTransitions), 0, kTransitions);
  }
  if (!columns) hmm.consensus = compute_consensus(hmm);
  if (lines.need(1)[0] != "//") throw std::runtime_error("no // after " + hmm.name);
  return hmm;
}

}  // namespace

std::optional<Path> shared_folder() {
  std::vector<Path> candidates;
  if (const char* named = std::getenv("HMMJIT_SHARED")) candidates.emplace_back(named);
  const Path source = HMMJIT_SOURCE_DIR;
  candidates.push_back(source / ".." / "shared");
  candidates.push_back(source / ".." / ".." / "shared");
  for (const Path& path : candidates) {
    if (std::filesystem::is_directory(path / "data")) return path.lexically_normal();
  }
  return std::nullopt;
}

std::vector<Hmm> read_models(const Path& path) {
  Lines lines(path);
  std::vector<Hmm> models;
  for (auto t = lines.next(); !t.empty(); t = lines.next()) {
    if (t[0] < "HMMER3/b" || t[0] > "HMMER3/f") {
      throw std::runtime_error("not HMMER3/b to /f: " + path.string());
    }
    models.push_back(read_model(lines, t[0] == "HMMER3/f"));
  }
  return models;
}

std::string model_text(const Hmm& hmm) {
  const auto row = [](const float* p, int count) {
    std::string text;
    for (int x = 0; x < count; ++x) {
      text += p[x] == 0.0f ? "  *" : fmt::format("  {:.5f}", -std::log(static_cast<double>(p[x])));
    }
    return text;
  };
  const int K = hmm.alphabet->K;
  const Calibration& c = hmm.calibration;
  std::string text = fmt::format(
      "HMMER3/f [3.3.2]\nNAME  {}\nLENG  {}\nALPH  {}\nRF    no\nMM    no\nCONS  yes\nCS    no\n"
      "MAP   no\nSTATS LOCAL MSV {:.4f} {:.5f}\nSTATS LOCAL VITERBI {:.4f} {:.5f}\n"
      "STATS LOCAL FORWARD {:.4f} {:.5f}\nHMM\n  m->m\n",
      hmm.name, hmm.M, hmm.alphabet->name, c.msv_mu, c.msv_lambda, c.viterbi_mu, c.viterbi_lambda,
      c.forward_tau, c.forward_lambda);
  text += "  COMPO" + row(hmm.compo.data(), K) + "\n";
  for (int k = 0; k <= hmm.M; ++k) {
    const auto at = static_cast<std::size_t>(k);
    if (k > 0) {
      text += fmt::format("  {}{} - {} - - -\n", k, row(hmm.match.data() + at * K, K),
                          hmm.consensus[at - 1]);
    }
    text += row(hmm.insert.data() + at * K, K) + "\n";
    text += row(hmm.transition.data() + at * kTransitions, kTransitions) + "\n";
  }
  return text + "//\n";
}

std::string fasta_text(const Sequence& sequence, const Alphabet& alphabet) {
  std::string text = ">" + sequence.name + "\n";
  for (const Residue x : sequence.residues) text += x == alphabet.gap() ? '_' : alphabet.symbols[x];
  return text + "\n";
}

std::vector<Residue> digitise(std::string_view text, const Alphabet& alphabet) {
  std::vector<Residue> codes;
  codes.reserve(text.size());
  for (const char c : text) {
    const Residue code = alphabet.digit[static_cast<unsigned char>(c)];
    if (code == kInvalidCode) throw std::runtime_error(std::string("not a residue: ") + c);
    codes.push_back(code);
  }
  return codes;
}

std::vector<Sequence> read_sequences(const Path& path, const Alphabet& alphabet) {
  Lines lines(path);
  std::vector<Sequence> sequences;
  bool in_sequence = false;
  const auto append = [&](const std::string& token) {
    const auto codes = digitise(token, alphabet);
    auto& residues = sequences.at(sequences.size() - 1).residues;
    residues.insert(residues.end(), codes.begin(), codes.end());
  };
  for (auto t = lines.next(); !t.empty(); t = lines.next()) {
    if (t[0][0] == '>') {
      sequences.push_back({t[0].substr(1), {}});
      in_sequence = true;
    } else if (t[0] == "ID" && !in_sequence) {
      sequences.push_back({t.at(1), {}});
    } else if (t[0] == "SQ" && !in_sequence) {
      in_sequence = true;
    } else if (t[0] == "//") {
      in_sequence = false;
    } else if (in_sequence) {
      for (const auto& token : t) append(token);
    }
  }
  return sequences;
}

}  // namespace hmmjit::test_support
