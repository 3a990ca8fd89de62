#include "report/report_header.hpp"

#include "report/text.hpp"

namespace hmmjit {
namespace {

constexpr std::string_view kLabels[] = {"output directed to file:",
                                        "MSA of all hits saved to file:",
                                        "per-seq hits tabular output:",
                                        "per-dom hits tabular output:",
                                        "pfam-style tabular hit output:",
                                        "tab separated domains:",
                                        "tab separated targets:",
                                        "JSON lines:",
                                        "A3M of included domains:",
                                        "FASTA of included targets:",
                                        "FASTA of included domains:",
                                        "GFF3 of included domains:",
                                        "BED of included domains:",
                                        "overlapping domains:",
                                        "clans of competing models:",
                                        "tables by target, as:",
                                        "models without cutoffs:",
                                        "coverage of models:",
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
                                        "random number seed set to:",
                                        "targ <seqfile> format asserted:",
                                        "number of worker threads:"};
static_assert(std::size(kLabels) == static_cast<std::size_t>(HeaderLine::kThreads) + 1);

std::string number(std::string_view relation, double value) {
  std::string out(relation);
  text::general(out, value, 0, 6);
  return out;
}

}  // namespace

const char* const ReportHeader::kRule =
    "# - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -\n";

std::string ReportHeader::banner(std::string_view program, std::string_view summary,
                                 std::string_view version, std::string_view reference) {
  std::string out;
  for (const std::string_view part :
       {std::string_view("# "), program, std::string_view(" :: "), summary,
        std::string_view("\n# hmmjit "), version,
        std::string_view("; results as in HMMER 3.4 "), reference, std::string_view("\n")})
    out += part;
  return out;
}

std::string ReportHeader::hmmer_banner(std::string_view program, std::string_view summary,
                                       std::string_view version) {
  std::string out;
  for (const std::string_view part :
       {std::string_view("# "), program, std::string_view(" :: "), summary,
        std::string_view("\n# HMMER "), kHmmerVersion,
        std::string_view("; http://hmmer.org/\n# Computed by hmmjit "), version,
        std::string_view("\n")})
    out += part;
  return out;
}

std::string ReportHeader::line(std::string_view label, std::string_view setting) {
  std::string out = "# ";
  text::left(out, label, 33);
  (out += setting) += '\n';
  return out;
}

void ReportHeader::set(HeaderLine line, std::string_view setting) {
  settings_[static_cast<std::size_t>(line)] = setting;
}
void ReportHeader::set_e_value(HeaderLine line, double most) {
  set(line, number("E-value <= ", most));
}
void ReportHeader::set_score(HeaderLine line, double least) {
  set(line, number("score >= ", least));
}
void ReportHeader::set_p_value(HeaderLine line, double most) { set(line, number("<= ", most)); }
void ReportHeader::set_size(HeaderLine line, double size) {
  std::string text;
  text::fixed(text, size, 0, 0);
  set(line, text);
}
void ReportHeader::set_seed(std::uint64_t seed) {
  seed_is_fixed_ = seed != 0;
  set(HeaderLine::kSeed, seed == 0 ? "one-time arbitrary" : std::to_string(seed));
}
void ReportHeader::set_text_width(int columns) {
  set(HeaderLine::kTextWidth, columns == 0 ? "unlimited" : std::to_string(columns));
}
void ReportHeader::set_cutoffs(std::string_view tag) {
  set(HeaderLine::kCutoffs, std::string(tag) + " cutoffs");
}

std::string ReportHeader::text() const {
  std::string out;
  for (std::size_t i = 0; i < kLines; ++i) {
    if (!settings_[i]) continue;
    const bool arbitrary = i == static_cast<std::size_t>(HeaderLine::kSeed) && !seed_is_fixed_;
    out += line(arbitrary ? "random number seed:" : kLabels[i], *settings_[i]);
  }
  return out;
}

}  // namespace hmmjit
