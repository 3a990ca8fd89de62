// Imports HMMER2.0 ASCII models: converts scores in 1/1000 bit against a null model to HMMER3
// probabilities. HMMER2's Plan7 architecture differs only in its B->M and M->E transitions, which
// HMMER3 does not use.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "core/ascii.hpp"
#include "io/c_numbers.hpp"
#include "io/hmm_parsing.hpp"

namespace hmmjit::hmm_parsing {
namespace {

// Score s = 1000 log2(p / null), so p = null exp(s ln2 / 1000). The constant has HMMER's digits,
// because they determine the last bits.
float probability(std::string_view score, float null) {
  if (score[0] == '*') return 0.0f;
  return static_cast<float>(null * std::exp(c_atoi(score) * 0.00069314718));
}

class Version2Parser : private AsciiParser {
 public:
  explicit Version2Parser(BufferedInput& input) : AsciiParser(input, {.empty_description = true}) {}

  Result<Hmm> parse() {
    const auto line = [this](std::string_view tag, Tokens& tokens) {
      return header_line(tag, tokens);
    };
    HMMJIT_TRY(header(line, [this]() -> const char* {
      if (null_.size() == static_cast<std::size_t>(hmm_.alphabet->K)) return nullptr;
      return "the header has no NULE line for its alphabet";
    }));
    HMMJIT_TRY(body());
    renormalise(hmm_);
    hmm_.consensus = compute_consensus(hmm_);
    hmm_.needs_calibration = true;
    return std::move(hmm_);
  }

 private:
  Status header_line(std::string_view tag, Tokens& tokens) {
    if (tag == "ALPH") {
      std::string_view token = tokens.next();
      if (equal_ignoring_case(token, "Amino")) {
        hmm_.alphabet = &amino_alphabet();
      } else if (equal_ignoring_case(token, "Nucleic")) {
        hmm_.alphabet = &dna_alphabet();
      } else {
        return bad(fmt::format("alphabet \"{}\" is unknown (known: Amino, Nucleic)", token));
      }
    } else if (tag == "MAP") {
      return flag(tag, tokens, &map_);
    } else if (tag == "NULE") {
      if (hmm_.alphabet == nullptr) return bad("NULE stands before ALPH");
      null_.resize(static_cast<std::size_t>(hmm_.alphabet->K));
      float uniform = static_cast<float>(1.0 / hmm_.alphabet->K);
      return scores(
          tokens, "NULE", [&](std::size_t) { return uniform; }, null_);
    }
    return {};
  }

  template <typename Null>
  Status scores(Tokens& tokens, std::string_view what, Null null, std::span<float> out) {
    for (std::size_t i = 0; i < out.size(); ++i) {
      std::string_view token = tokens.next();
      if (token.empty()) {
        return bad(fmt::format("{}: {} numbers, {} needed", what, i, out.size()));
      }
      out[i] = probability(token, null(i));
    }
    return {};
  }

  // The file has no insert emissions; HMMER3 sets them to the background.
  void grow_with_background(int k) {
    grow(k);
    std::ranges::copy_n(hmm_.alphabet->background.begin(), hmm_.alphabet->K,
                        hmm_.insert_row(k).begin());
  }

  Status body() {
    auto one = [](std::size_t) { return 1.0f; };
    std::string_view line;
    HMMJIT_TRY(body_line(0, &line));
    grow_with_background(0);
    hmm_.match[0] = 1.0f;
    float begin[3];
    Tokens first(line);
    HMMJIT_TRY(scores(first, "begin transitions", one, begin));
    std::span<float> t = hmm_.transition_row(0);
    t[kMM] = begin[0];
    t[kMD] = begin[2];
    t[kIM] = t[kDM] = 1.0f;
    for (int k = 1; k <= hmm_.M; ++k) {
      HMMJIT_TRY(body_line(k, &line));
      grow_with_background(k);
      Tokens match(line);
      HMMJIT_TRY(expect_node(k, match.next()));
      auto null = [&](std::size_t x) { return null_[x]; };
      HMMJIT_TRY(scores(match, fmt::format("node {} match scores", k), null, hmm_.match_row(k)));
      if (map_) {
        const std::string_view column = match.next();
        if (column.empty()) return bad(fmt::format("node {}: the map column is missing", k));
        hmm_.map.resize(static_cast<std::size_t>(k) + 1);
        hmm_.map.back() = c_atoi(column);
      }
      HMMJIT_TRY(body_line(k, &line));
      std::string_view rf = Tokens(line).next();
      if (rf_) hmm_.rf.push_back(rf[0]);
      HMMJIT_TRY(body_line(k, &line));
      Tokens last(line);
      std::string_view cs = last.next();
      if (cs_) hmm_.cs.push_back(cs[0]);
      t = hmm_.transition_row(k);
      if (k < hmm_.M) {
        HMMJIT_TRY(scores(last, fmt::format("node {} transitions", k), one, t));
      } else {
        t[kMM] = t[kIM] = t[kDM] = 1.0f;
      }
    }
    return terminator();
  }

  std::vector<float> null_;
  bool map_ = false;
};

}  // namespace

Result<Hmm> read_version2(BufferedInput& input) { return Version2Parser(input).parse(); }

}  // namespace hmmjit::hmm_parsing
