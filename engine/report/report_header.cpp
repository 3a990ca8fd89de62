#include "report/report_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io/c_numbers.hpp"
#include "report/text.hpp"

namespace hmmjit {
namespace {

// Form of a value: a number of digits after the point, "%g", as given, a generator's seed, or a
// flag's fixed text.
enum class Form : char { kWhole, kOne, kThree = 3, kSix = 6, kGeneral, kGiven, kSeed, kFlag };
using enum Form;

// The programs and their letters in kLines.
constexpr std::pair<std::string_view, char> kPrograms[] = {
    {"hmmsearch", 's'}, {"phmmer", 'p'}, {"jackhmmer", 'j'}, {"hmmscan", 'c'},
    {"hmmbuild", 'b'},  {"nhmmer", 'n'}, {"nhmmscan", 'm'}};

struct Line {
  std::string_view programs, option, label;
  Form form = kGiven;
  std::string_view before = {}, after = {};
  int columns = 33;
};

// In the order of HMMER's programs. Labels are HMMER's, except for options that it lacks.
constexpr Line kLines[] = {
    {"j", "-N", "maximum iterations set to:"},
    {"b", "-n", "name (the single) HMM:"},
    {"spjcbnm", "-o", "output directed to file:"},
    {"b", "-O", "processed alignment resaved to:"},
    {"sn", "-A", "MSA of all hits saved to file:"},
    {"pj", "-A", "MSA of hits saved to file:"},
    {"n", "--tblout", "hits tabular output:"},
    {"spjcm", "--tblout", "per-seq hits tabular output:"},
    {"nm", "--dfamtblout", "hits output in Dfam format:"},
    {"n", "--aliscoresout", "alignment scores output:"},
    {"n", "--hmmout", "hmm output:"},
    {"spjc", "--domtblout", "per-dom hits tabular output:"},
    {"spc", "--pfamtblout", "pfam-style tabular hit output:"},
    {"j", "--chkhmm", "HMM checkpoint files output:", kGiven, "", "-<i>.hmm"},
    {"j", "--chkali", "MSA checkpoint files output:", kGiven, "", "-<i>.sto"},
    {"spjcn", "--tsv", "tab separated domains:"},
    {"spjc", "--target-tsv", "tab separated targets:"},
    {"spjcn", "--json", "JSON lines:"},
    {"spjn", "--a3m", "A3M of included domains:"},
    {"s", "--fasta", "FASTA of included targets:"},
    {"s", "--domfasta", "FASTA of included domains:"},
    {"sn", "--gff", "GFF3 of included domains:"},
    {"sn", "--bed", "BED of included domains:"},
    {"s", "--resolve-overlaps", "overlapping domains:", kFlag, "the best of several models"},
    {"s", "--clans", "clans of competing models:"},
    {"s", "--as", "tables by target, as:"},
    {"s", "--cut-missing", "models without cutoffs:"},
    {"s", "--min-coverage", "coverage of models:", kGiven, ">= "},
    {"b", "--amino", "input alignment is asserted as:", kFlag, "protein"},
    {"b", "--dna", "input alignment is asserted as:", kFlag, "DNA"},
    {"b", "--rna", "input alignment is asserted as:", kFlag, "RNA"},
    {"spjcnm", "--acc", "prefer accessions over names:", kFlag, "yes"},
    {"spjcnm", "--noali", "show alignments in output:", kFlag, "no"},
    {"spjcnm", "--notextw", "max ASCII text line length:", kFlag, "unlimited"},
    {"spjcnm", "--textw", "max ASCII text line length:"},
    {"n", "--singlemx", "Use score matrix for 1-seq MSAs:", kFlag, " on"},
    {"pjn", "--popen", "gap open probability:", kSix},
    {"pjn", "--pextend", "gap extend probability:", kSix},
    {"pjn", "--mx", "subst score matrix (built-in):"},
    {"pjn", "--mxfile", "subst score matrix (file):"},
    {"spjn", "-E", "sequence reporting threshold:", kGeneral, "E-value <= "},
    {"spn", "-T", "sequence reporting threshold:", kGeneral, "score >= "},
    {"j", "-T", "sequence reporting threshold:", kGeneral, "score <= "},
    {"cm", "-E", "profile reporting threshold:", kGeneral, "E-value <= "},
    {"cm", "-T", "profile reporting threshold:", kGeneral, "score >= "},
    {"spjc", "--domE", "domain reporting threshold:", kGeneral, "E-value <= "},
    {"spc", "--domT", "domain reporting threshold:", kGeneral, "score >= "},
    {"j", "--domT", "domain reporting threshold:", kGeneral, "score <= "},
    {"spjn", "--incE", "sequence inclusion threshold:", kGeneral, "E-value <= "},
    {"spjn", "--incT", "sequence inclusion threshold:", kGeneral, "score >= "},
    {"cm", "--incE", "profile inclusion threshold:", kGeneral, "E-value <= "},
    {"cm", "--incT", "profile inclusion threshold:", kGeneral, "score >= "},
    {"spjc", "--incdomE", "domain inclusion threshold:", kGeneral, "E-value <= "},
    {"spjc", "--incdomT", "domain inclusion threshold:", kGeneral, "score >= "},
    {"scnm", "--cut_ga", "model-specific thresholding:", kFlag, "GA cutoffs"},
    {"scnm", "--cut_nc", "model-specific thresholding:", kFlag, "NC cutoffs"},
    {"scnm", "--cut_tc", "model-specific thresholding:", kFlag, "TC cutoffs"},
    {"s", "--cut-file", "model-specific thresholding:", kGiven, "scores of "},
    {"spjcnm", "--max", "Max sensitivity mode:", kFlag, "on [all heuristic filters off]"},
    {"n", "--F1", "SSV filter P threshold:", kGeneral, "<= ", "", 30},
    {"spjcm", "--F1", "MSV filter P threshold:", kGeneral, "<= ", "", 30},
    {"spjcnm", "--F2", "Vit filter P threshold:", kGeneral, "<= ", "", 30},
    {"spjcnm", "--F3", "Fwd filter P threshold:", kGeneral, "<= ", "", 30},
    {"spjcnm", "--nobias", "biased composition HMM filter:", kFlag, "off"},
    {"n", "--B1", "biased comp SSV window len:"},
    {"m", "--B1", "biased comp MSV window len:"},
    {"nm", "--B2", "biased comp Viterbi window len:"},
    {"nm", "--B3", "biased comp Forward window len:"},
    {"nm", "--bgfile", "file with custom bg probs:"},
    {"n", "--dna", "input query is asserted as:", kFlag, "DNA"},
    {"n", "--rna", "input query is asserted as:", kFlag, "RNA"},
    {"n", "--seed_max_depth", "FM Seed length:"},
    {"n", "--seed_sc_thresh", "FM score threshold (bits):", kGeneral},
    {"n", "--seed_sc_density", "FM score density (bits/pos):", kGeneral},
    {"n", "--seed_drop_max_len", "FM max neg-growth length:"},
    {"n", "--seed_drop_lim", "FM max run drop:", kGeneral},
    {"n", "--seed_req_pos", "FM req positive run length:"},
    {"n", "--seed_consens_match", "FM consec consensus match req:"},
    {"n", "--seed_ssv_length", "FM len used for Vit window:"},
    {"spn", "--restrictdb_stkey", "Restrict db to start at seq key:"},
    {"spn", "--restrictdb_n", "Restrict db to # target seqs:"},
    {"spn", "--ssifile", "Override ssi file to:"},
    {"spcnm", "--nonull2", "null2 bias corrections:", kFlag, "off"},
    {"b", "--hand", "model architecture construction:", kFlag, "hand-specified by RF annotation"},
    {"b", "--symfrac", "sym fraction for model structure:", kThree},
    {"b", "--fragthresh", "seq called frag if L <= x*alen:", kThree},
    {"j", "--fragthresh", "define fragments if <= x*alen:", kThree},
    {"jb", "--wgsc", "relative weighting scheme:", kFlag, "G/S/C"},
    {"jb", "--wblosum", "relative weighting scheme:", kFlag, "BLOSUM filter"},
    {"jb", "--wnone", "relative weighting scheme:", kFlag, "none"},
    {"jb", "--wid", "frac id cutoff for BLOSUM wgts:", kSix},
    {"jb", "--eclust", "effective seq number scheme:", kFlag, "single linkage clusters"},
    {"jb", "--enone", "effective seq number scheme:", kFlag, "none"},
    {"jb", "--eset", "effective seq number:", kSix, "set to "},
    {"jb", "--ere", "minimum rel entropy target:", kSix, "", " bits"},
    {"jb", "--esigma", "entropy target sigma parameter:", kSix, "", " bits"},
    {"jb", "--eid", "frac id cutoff for --eclust:", kSix},
    {"jb", "--pnone", "prior scheme:", kFlag, "none"},
    {"jb", "--plaplace", "prior scheme:", kFlag, "Laplace +1"},
    {"b", "--EmL", "seq length for MSV Gumbel mu fit:"},
    {"b", "--EmN", "seq number for MSV Gumbel mu fit:"},
    {"b", "--EvL", "seq length for Vit Gumbel mu fit:"},
    {"b", "--EvN", "seq number for Vit Gumbel mu fit:"},
    {"b", "--EfL", "seq length for Fwd exp tau fit:"},
    {"b", "--EfN", "seq number for Fwd exp tau fit:"},
    {"pj", "--EmL", "seq length, MSV Gumbel mu fit:"},
    {"pj", "--EmN", "seq number, MSV Gumbel mu fit:"},
    {"pj", "--EvL", "seq length, Vit Gumbel mu fit:"},
    {"pj", "--EvN", "seq number, Vit Gumbel mu fit:"},
    {"pj", "--EfL", "seq length, Fwd exp tau fit:"},
    {"pj", "--EfN", "seq number, Fwd exp tau fit:"},
    {"pjb", "--Eft", "tail mass for Fwd exp tau fit:", kSix},
    {"b", "--singlemx", "use score matrix for 1-seq MSAs:", kFlag, "on"},
    {"b", "--popen", "gap open probability:", kSix},
    {"b", "--pextend", "gap extend probability:", kSix},
    {"b", "--mx", "subst score matrix (built-in):"},
    {"b", "--mxfile", "subst score matrix (file):"},
    {"j", "--nonull2", "null2 bias corrections:", kFlag, "off"},
    {"nm", "--watson", "search only top strand:", kFlag, "on"},
    {"nm", "--crick", "search only bottom strand:", kFlag, "on"},
    {"n", "-Z", "database size is set to:", kOne, "", " Mb"},
    {"spjcm", "-Z", "sequence search space set to:", kWhole},
    {"spjc", "--domZ", "domain search space set to:", kWhole},
    {"b", "--maxinsertlen", "max insert length:"},
    {"spjcnm", "--seed", "random number seed set to:", kSeed},
    {"n", "--qformat", "query format asserted:"},
    {"n", "--qsingle_seqs", "query contains individual seqs:", kFlag, "on"},
    {"n", "--tformat", "target format asserted:"},
    {"pj", "--qformat", "query <seqfile> format asserted:"},
    {"cm", "--qformat", "input seqfile format asserted:"},
    {"s", "--tformat", "targ <seqfile> format asserted:"},
    {"pj", "--tformat", "target <seqdb> format asserted:"},
    {"nm", "--w_beta", "window length beta value:", kGeneral},
    {"nm", "--w_length", "window length :"},
    {"n", "--block_length", "block length :"},
    {"spjbn", "--cpu", "number of worker threads:"},
    {"cm", "--cpu", "multithread parallelization:", kGiven, "", " workers"},
    {"b", "--seed", "random number seed set to:", kSeed},
    {"b", "--w_beta", "window length tail mass:", kGeneral, "", " bits"},
    {"b", "--w_length", "window length :"}};

// HMMER's default of --cpu.
std::string_view usual_threads(char program) {
  if (program == 'c' || program == 'm') return "0";
  return program == 'n' ? "" : "2";
}

std::string text_of(const Line& line, const std::string& value) {
  std::string out(line.before);
  const double number = c_atof(value);
  switch (line.form) {
    case kGiven:
    case kSeed: out += value; break;
    case kFlag:
      break;
    case kGeneral:
      text::append(out, text::general(number, 0, 6));
      break;
    default:
      text::append(out, text::fixed(number, 0, static_cast<int>(line.form)));
  }
  return out += line.after;
}

}  // namespace

std::string ReportHeader::banner(std::string_view program, std::string_view summary,
                                 std::string_view version, std::string_view reference) {
  return fmt::format("# {} :: {}\n# hmmjit {}; results as in HMMER 3.4 {}\n", program, summary,
                     version, reference);
}

std::string ReportHeader::hmmer_banner(std::string_view program, std::string_view summary,
                                       std::string_view version) {
  return fmt::format(
      "# {} :: {}\n# HMMER {}; http://hmmer.org/\n# Computed by hmmjit {},\n"
      "# which writes the same results byte for byte\n",
      program, summary, kHmmerVersion, version);
}

std::string ReportHeader::line(std::string_view label, std::string_view setting, int columns) {
  return fmt::format("# {:{}}{}\n", label, columns, setting);
}

std::string ReportHeader::settings(std::string_view reference,
                                   std::span<const HeaderSetting> settings) {
  const auto program =
      std::ranges::find(kPrograms, reference, &std::pair<std::string_view, char>::first);
  std::string out;
  for (const Line& each : kLines) {
    if (each.programs.find(program->second) == each.programs.npos) continue;
    const auto setting = std::ranges::find(settings, each.option, &HeaderSetting::option);
    if (setting == settings.end()) continue;
    if (each.option == "--cpu" && setting->value == usual_threads(program->second)) continue;
    const int columns = program->second == 'b' ? 34 : each.columns;
    if (each.form == kSeed && setting->value == "0")  // needs a second line
      out += line("random number seed:", "one-time arbitrary", columns);
    out += line(each.label, text_of(each, setting->value), columns);
  }
  return out;
}

}  // namespace hmmjit
