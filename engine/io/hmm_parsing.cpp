#include "io/hmm_parsing.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/ascii.hpp"
#include "core/text_fields.hpp"
#include "io/c_numbers.hpp"

namespace hmmjit::hmm_parsing {

Result<bool> data_line(BufferedInput& input, std::string_view* line) {
  while (true) {
    HMMJIT_ASSIGN(bool more, input.line(line));
    if (!more) return false;
    for (char c : *line) {
      if (Tokens::is_blank(c)) continue;
      if (c == '#') break;
      return true;
    }
  }
}

std::unexpected<Error> bad_line(const BufferedInput& input, const std::string& model,
                                std::string message) {
  std::string subject = model.empty() ? std::string() : "model " + model + ": ";
  return fail(ErrorCode::kInput, subject + std::move(message), input.where(),
              "the profile file is damaged: fetch or build it again");
}

std::unexpected<Error> truncated(const BufferedInput& input, const std::string& model,
                                 const std::string& part) {
  return fail(ErrorCode::kInput,
              fmt::format("the file ends inside {}, {}",
                          model.empty() ? "a model" : "model " + model, part),
              input.line_number() > 0 ? input.where() : input.name(),
              "the file is truncated: fetch or write it again");
}

const Alphabet* alphabet_named(std::string_view name) {
  if (equal_ignoring_case(name, "amino")) return &amino_alphabet();
  if (equal_ignoring_case(name, "DNA")) return &dna_alphabet();
  if (equal_ignoring_case(name, "RNA")) return &rna_alphabet();
  return nullptr;
}

// Handles a line that occurs in both formats; false for other lines.
Result<bool> AsciiParser::common_line(std::string_view tag, Tokens& tokens) {
  if ((tag == "NAME" || tag == "ACC" || tag == "DESC") && Tokens(tokens).rest().contains('\0'))
    return bad(fmt::format("a NUL byte in the line of {}", tag));
  if (tag == "NAME") {
    const std::string_view name = tokens.next();
    if (name.empty()) return bad("NAME without a name");
    hmm_.name = name;
  } else if (tag == "ACC") {
    const std::string_view accession = tokens.next();
    if (accession.empty()) return bad("ACC without an accession");
    hmm_.accession = accession;
  } else if (tag == "DESC") {
    const std::string_view text = tokens.rest();
    if (text.empty() && !rules_.empty_description) return bad("DESC without a text");
    if (!is_blank(text)) hmm_.description = trim_end(text);
  } else if (tag == "LENG") {
    const std::string_view token = tokens.next();
    hmm_.M = c_atoi(token);
    if (hmm_.M <= 0) {
      return bad(fmt::format("LENG must be a positive number, not \"{}\"", token));
    }
  } else if (tag == "RF") {
    HMMJIT_TRY(flag(tag, tokens, &rf_));
  } else if (tag == "CS") {
    HMMJIT_TRY(flag(tag, tokens, &cs_));
  } else if (tag == "GA") {
    HMMJIT_TRY(cutoff(tag, tokens, &hmm_.ga));
  } else if (tag == "TC") {
    HMMJIT_TRY(cutoff(tag, tokens, &hmm_.tc));
  } else if (tag == "NC") {
    HMMJIT_TRY(cutoff(tag, tokens, &hmm_.nc));
  } else {
    return false;
  }
  return true;
}

Status AsciiParser::check_header() const {
  if (hmm_.name.empty()) return bad("the header has no NAME line");
  if (hmm_.M == 0) return bad("the header has no LENG line");
  if (hmm_.alphabet == nullptr) return bad("the header has no ALPH line");
  return {};
}

Status AsciiParser::flag(std::string_view tag, Tokens& tokens, bool* value) const {
  const std::string_view token = tokens.next();
  const bool yes = equal_ignoring_case(token, "yes");
  *value |= yes;
  if (yes || equal_ignoring_case(token, "no")) return {};
  return bad(fmt::format("{} must be yes or no, not \"{}\"", tag, token));
}

Status AsciiParser::cutoff(std::string_view tag, Tokens& tokens, std::optional<Cutoff>* out) const {
  if (hmm_.alphabet == nullptr) return bad(fmt::format("{} stands before ALPH", tag));
  const bool single = rules_.single_cutoff && hmm_.alphabet->type != AlphabetType::kAmino;
  const std::string_view sequence = tokens.next();
  const std::string_view domain = single ? sequence : tokens.next();
  if (sequence.empty() || domain.empty()) {
    return bad(fmt::format("{} needs {}", tag, single ? "a number" : "two numbers"));
  }
  *out = Cutoff{static_cast<float>(c_atof(sequence)), static_cast<float>(c_atof(domain))};
  return {};
}

Status AsciiParser::body_line(int k, std::string_view* line) {
  node_ = k;
  HMMJIT_ASSIGN(const bool more, data_line(input_, line));
  if (!more) return truncated(input_, hmm_.name, fmt::format("at node {} of {}", k, hmm_.M));
  return {};
}

void AsciiParser::grow(int k) {
  const std::size_t rows = static_cast<std::size_t>(k) + 1;
  const auto K = static_cast<std::size_t>(hmm_.alphabet->K);
  hmm_.match.resize(rows * K);
  hmm_.insert.resize(rows * K);
  hmm_.transition.resize(rows * kTransitions);
}

Status AsciiParser::expect_node(int k, std::string_view token) const {
  if (c_atoi(token) == k) return {};
  return bad(fmt::format("expected node {} of {}, found \"{:.20}\"", k, hmm_.M, token));
}

Status AsciiParser::terminator() {
  std::string_view line;
  HMMJIT_TRY(body_line(hmm_.M, &line));
  const std::string_view end = Tokens(line).next();
  if (end == "//") return {};
  return bad(fmt::format("expected // after node {}, found \"{:.20}\"", hmm_.M, end));
}

}  // namespace hmmjit::hmm_parsing
