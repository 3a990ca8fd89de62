#include "query_options.hpp"

#include <algorithm>
#include <vector>

#include "io/byte_source.hpp"
#include "search_options.hpp"

namespace hmmjit::tools {
namespace {

constexpr std::string_view kCalibration = "Options controlling E-value calibration";

constexpr OptionSpec kScoringOptions[] = {
    {kScoring, "--popen", "x=0.02 0<=x<0.5", "gap open probability"},
    {kScoring, "--pextend", "x=0.4 0<=x<1", "gap extend probability"},
    {kScoring, "--mx", "s=BLOSUM62",
     "substitution score matrix (PAM30 to PAM240, BLOSUM45 to BLOSUM90)", excluding("--mxfile")},
    {kScoring, "--mxfile", "@f", "read substitution score matrix from file <f>", excluding("--mx")},
};

constexpr OptionSpec kCalibrationOptions[] = {
    {kCalibration, "--EmL", "n=200 n>0", "length of sequences for MSV Gumbel mu fit"},
    {kCalibration, "--EmN", "n=200 n>0", "number of sequences for MSV Gumbel mu fit"},
    {kCalibration, "--EvL", "n=200 n>0", "length of sequences for Viterbi Gumbel mu fit"},
    {kCalibration, "--EvN", "n=200 n>0", "number of sequences for Viterbi Gumbel mu fit"},
    {kCalibration, "--EfL", "n=100 n>0", "length of sequences for Forward exp tail tau fit"},
    {kCalibration, "--EfN", "n=200 n>0", "number of sequences for Forward exp tail tau fit"},
    {kCalibration, "--Eft", "x=0.04 0<x<1", "tail mass for Forward exponential tail tau fit"},
};

constexpr std::string_view kWeighting = "Options controlling relative weights";
constexpr std::string_view kEffective = "Options controlling effective sequence number";
constexpr std::string_view kPrior = "Options controlling prior strategy";
constexpr std::string_view kWeightings = "--wpb,--wgsc,--wblosum,--wnone,--wgiven";
constexpr std::string_view kNumbers = "--eent,--eentexp,--eclust,--enone,--eset";

constexpr OptionSpec kAlignmentOptions[] = {
    {kConstruction, "--fragthresh", "x=0.5 0<=x<=1", "if L <= x*alen, tag sequence as a fragment"},
    {kWeighting, "--wpb", "", "Henikoff position-based weights (default)", excluding(kWeightings)},
    {kWeighting, "--wgsc", "", "Gerstein/Sonnhammer/Chothia tree weights", excluding(kWeightings)},
    {kWeighting, "--wblosum", "", "Henikoff simple filter weights", excluding(kWeightings)},
    {kWeighting, "--wnone", "", "don't do any relative weighting; set all to 1",
     excluding(kWeightings)},
    {kWeighting, "--wgiven", "", "use weights as given in the alignment file",
     excluding(kWeightings)},
    {kWeighting, "--wid", "x=0.62 0<=x<=1", "for --wblosum: set identity cutoff",
     needing("--wblosum")},
    {kEffective, "--eent", "", "adjust eff seq # to achieve relative entropy target (default)",
     excluding(kNumbers)},
    {kEffective, "--eentexp", "", "adjust eff seq # to reach rel. ent. target using exp scaling",
     excluding(kNumbers)},
    {kEffective, "--eclust", "", "eff seq # is # of single linkage clusters", excluding(kNumbers)},
    {kEffective, "--enone", "", "no effective seq # weighting: just use nseq", excluding(kNumbers)},
    {kEffective, "--eset", "x x>=0", "set eff seq # for all models to <x>", excluding(kNumbers)},
    {kEffective, "--ere", "x x>0",
     "for --eent[exp]: set minimum rel entropy/position to <x> (0.59, DNA 0.62)"},
    {kEffective, "--esigma", "x=45.0 x>0", "for --eent[exp]: set sigma param to <x>"},
    {kEffective, "--eid", "x=0.62 0<=x<=1", "for --eclust: set fractional identity cutoff to <x>",
     needing("--eclust")},
    {kPrior, "--pnone", "", "don't use any prior; parameters are frequencies",
     excluding("--plaplace")},
    {kPrior, "--plaplace", "", "use a Laplace +1 prior", excluding("--pnone")}};

constexpr OptionSpec kQueryFormat{kExpert, "--qformat", "s",
                                  "assert query <seqfile> is in format <s>: no autodetection",
                                  offering(kSequenceFormatNames)};

using Table = std::vector<OptionSpec>;

Table::iterator position(Table& table, std::string_view name) {
  return std::ranges::find(table, name, &OptionSpec::name);
}
void insert_before(Table& table, std::string_view name, std::span<const OptionSpec> options) {
  table.insert(position(table, name), options.begin(), options.end());
}
// Removes options that the program lacks.
void leave_out(Table& table, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    position(table, name)->absent = true;
    position(table, name)->group = position(table, name)->help = {};
  }
}

// Options that programs with query sequences share.
Table sequence_query_table() {
  Table table(search_option_table().begin(), search_option_table().end());
  insert_before(table, "-E", kScoringOptions);
  insert_before(table, "--nonull2", kCalibrationOptions);
  insert_before(table, "--tformat", {&kQueryFormat, 1});
  position(table, "--a3m")->help =
      "save included domains aligned to each query, as A3M, to file <f>";
  position(table, "--seq-limit")->help =
      "at most the <n> best targets of each query in -A and --a3m";
  position(table, "--verify")->help =
      "compute <n> targets per query a GPU filtered again on the CPU; "
      "default: as many as take less than 1% of the CPU time";
  position(table, "--json")->help =
      "save queries, targets, domains and alignments as JSON lines to file <f>";
  leave_out(table,
            {"--as", "--part", "--part-file", "--model-part", "--cut-file", "--cut-missing"});
  return table;
}

Table make_phmmer_table() {
  Table table = sequence_query_table();
  for (const char* name : {"--cut_ga", "--cut_nc", "--cut_tc"}) {
    OptionSpec& option = *position(table, name);
    option.group = {};
    option.help = "accepted: report and include scores of at least zero";
  }
  return table;
}

constexpr OptionSpec kRounds{"Basic options", "-N", "n=5 n>0",
                             "set maximum number of iterations to <n>"};
constexpr OptionSpec kCheckpoints[] = {
    {"Options directing output", "--chkhmm", "@f",
     "save HMM checkpoints to files <f>-<iteration>.hmm"},
    {"Options directing output", "--chkali", "@f",
     "save alignment checkpoints to files <f>-<iteration>.sto"},
};

Table make_jackhmmer_table() {
  Table table = sequence_query_table();
  insert_before(table, "-o", {&kRounds, 1});
  insert_before(table, "--acc", kCheckpoints);
  insert_before(table, "--EmL", kAlignmentOptions);
  position(table, "--incE")->default_text = "0.001";
  position(table, "--incdomE")->default_text = "0.001";
  leave_out(table, {"--fasta", "--domfasta", "--gff", "--bed", "--resolve-overlaps", "--clans",
                    "--min-coverage", "--pfamtblout", "--cut_ga", "--cut_nc", "--cut_tc",
                    "--restrictdb_stkey", "--restrictdb_n", "--ssifile", "--wgiven"});
  return table;
}

}  // namespace

std::span<const OptionSpec> jackhmmer_option_table() {
  static const Table table = make_jackhmmer_table();
  return table;
}

std::span<const OptionSpec> scan_option_table() {
  static const Table table = [] {
    Table made(search_option_table().begin(), search_option_table().end());
    insert_before(made, "--cpu", {&kQueryFormat, 1});
    leave_out(made,
              {"--cut-missing", "-A", "--as", "--part", "--part-file", "--model-part", "--tformat",
               "--restrictdb_stkey", "--restrictdb_n", "--ssifile", "--a3m", "--seq-limit"});
    return made;
  }();
  return table;
}

std::span<const OptionSpec> calibration_options() { return kCalibrationOptions; }
std::span<const OptionSpec> alignment_options() { return kAlignmentOptions; }

std::span<const OptionSpec> phmmer_option_table() {
  static const Table table = make_phmmer_table();
  return table;
}

Result<build::ScoreSystem> make_score_system(const ParsedOptions& options,
                                             const Alphabet& alphabet) {
  build::SubstitutionMatrix matrix;
  if (options.is_set("--mxfile")) {
    const std::string path(options.text("--mxfile"));
    HMMJIT_ASSIGN(const std::string text,
                  read_text(path, build::kLargestMatrixFile, "a score matrix", "check --mxfile"));
    HMMJIT_ASSIGN(matrix, build::parse_matrix(text, path, alphabet));
  } else {
    // As in hmmbuild, the default's name means the default matrix of each alphabet, even if given.
    const std::string_view name = options.text("--mx");
    HMMJIT_ASSIGN(matrix, build::find_matrix(
                              name == "BLOSUM62" ? build::usual_matrix(alphabet) : name, alphabet));
  }
  return build::make_score_system(matrix, options.given_real("--popen"),
                                  options.given_real("--pextend"));
}

build::AlignmentOptions make_alignment_options(const ParsedOptions& options) {
  using build::AlignmentOptions;
  using Weights = AlignmentOptions::Weights;
  using Effective = AlignmentOptions::Effective;
  using Prior = AlignmentOptions::Prior;
  AlignmentOptions made;
  made.fragment = static_cast<float>(options.real("--fragthresh"));
  if (options.is_set("--wgsc")) made.weights = Weights::kTree;
  if (options.is_set("--wblosum")) made.weights = Weights::kClusters;
  if (options.is_set("--wnone")) made.weights = Weights::kNone;
  if (options.is_set("--wgiven")) made.weights = Weights::kGiven;
  made.weight_identity = options.real("--wid");
  if (options.is_set("--eentexp")) made.effective = Effective::kEntropyPower;
  if (options.is_set("--eclust")) made.effective = Effective::kClusters;
  if (options.is_set("--enone")) made.effective = Effective::kRows;
  if (const auto value = options.given_real("--eset")) {
    made.effective = Effective::kSet;
    made.effective_set = *value;
  }
  made.relative_entropy = options.given_real("--ere");
  made.total_entropy = options.real("--esigma");
  made.effective_identity = options.real("--eid");
  if (options.is_set("--pnone")) made.prior = Prior::kNone;
  if (options.is_set("--plaplace")) made.prior = Prior::kLaplace;
  return made;
}

build::CalibrationOptions make_calibration_options(const ParsedOptions& options,
                                                   std::uint32_t arbitrary) {
  const auto number = [&](std::string_view name) { return options.integer(name); };
  const auto seed = static_cast<std::uint32_t>(options.integer("--seed"));
  return {.msv_length = number("--EmL"),
          .msv_targets = number("--EmN"),
          .viterbi_length = number("--EvL"),
          .viterbi_targets = number("--EvN"),
          .forward_length = number("--EfL"),
          .forward_targets = number("--EfN"),
          .tail_mass = options.real("--Eft"),
          .seed = seed != 0 ? seed : arbitrary};
}

}  // namespace hmmjit::tools
