#include "report/search_header.hpp"

#include <algorithm>
#include <array>

#include "report/text.hpp"

namespace hmmjit {
namespace {

constexpr std::string_view kRule =
    "# - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -\n";
constexpr std::size_t kLabelWidth = 33;

constexpr std::array<std::string_view, static_cast<std::size_t>(HeaderLine::kThreads) + 1> kLabels{
    "query HMM file:",
    "target sequence database:",
    "output directed to file:",
    "MSA of all hits saved to file:",
    "per-seq hits tabular output:",
    "per-dom hits tabular output:",
    "pfam-style tabular hit output:",
    "tab separated domains:",
    "JSON lines:",
    "A3M of included domains:",
    "tables by target, as:",
    "prefer accessions over names:",
    "show alignments in output:",
    "max ASCII text line length:",
    "sequence reporting threshold:",
    "domain reporting threshold:",
    "sequence inclusion threshold:",
    "domain inclusion threshold:",
    "model-specific thresholding:",
    "Max sensitivity mode:",
    "MSV filter P threshold:",
    "Vit filter P threshold:",
    "Fwd filter P threshold:",
    "biased composition HMM filter:",
    "Restrict db to start at seq key:",
    "Restrict db to # target seqs:",
    "Override ssi file to:",
    "null2 bias corrections:",
    "sequence search space set to:",
    "domain search space set to:",
    "random number seed:",
    "random number seed set to:",
    "targ <seqfile> format asserted:",
    "number of worker threads:",
};

std::string with_number(std::string relation, double value) {
  text::general(relation, value, 0, 6);
  return relation;
}

}  // namespace

std::string search_banner(std::string_view program, std::string_view version) {
  std::string out = "# ";
  out += program;
  out += " :: search profile(s) against a sequence database\n# hmmjit ";
  out += version;
  out += "; result lines as of HMMER 3.4 hmmsearch\n";
  return out;
}

SearchHeader::SearchHeader(std::string_view program, std::string_view version)
    : banner_(search_banner(program, version)) {}

void SearchHeader::set(HeaderLine line, std::string_view value) {
  lines_.emplace_back(line, value);
}
void SearchHeader::set_e_value(HeaderLine line, double most) {
  set(line, with_number("E-value <= ", most));
}
void SearchHeader::set_score(HeaderLine line, double least) {
  set(line, with_number("score >= ", least));
}
void SearchHeader::set_p_value(HeaderLine line, double most) {
  set(line, with_number("<= ", most));
}
void SearchHeader::set_space(HeaderLine line, double targets) {
  std::string value;
  text::fixed(value, targets, 0, 0);
  set(line, value);
}
void SearchHeader::set_seed(std::uint64_t seed) {
  if (seed == 0) {
    set(HeaderLine::kArbitrarySeed, "one-time arbitrary");
  } else {
    set(HeaderLine::kSeed, std::to_string(seed));
  }
}

std::string SearchHeader::text() const {
  auto lines = lines_;
  std::ranges::stable_sort(lines, {}, [](const auto& line) { return line.first; });
  std::string out = banner_;
  out += kRule;
  for (const auto& [line, value] : lines) {
    out += "# ";
    text::left(out, kLabels[static_cast<std::size_t>(line)], kLabelWidth);
    (out += value) += '\n';
  }
  (out += kRule) += '\n';
  return out;
}

}  // namespace hmmjit
