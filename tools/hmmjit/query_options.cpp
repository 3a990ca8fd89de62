#include "query_options.hpp"

#include <algorithm>
#include <vector>

#include "build_options.hpp"
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
// Options that the program lacks.
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
  // phmmer hides these and has them last.
  for (const char* name : {"--restrictdb_stkey", "--restrictdb_n", "--ssifile"}) {
    const OptionSpec option = *position(table, name);
    table.erase(position(table, name));
    insert_before(table, "--mem", {&option, 1});
  }
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
  for (const auto& options :
       {fragment_option(), weighting_options(), effective_number_options(), prior_options()})
    insert_before(table, "--EmL", options);
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
    HMMJIT_ASSIGN(matrix, build::find_matrix(options.is_set("--mx") ? options.text("--mx")
                                                                    : build::usual_matrix(alphabet),
                                             alphabet));
  }
  return build::make_score_system(matrix, options.given_real("--popen"),
                                  options.given_real("--pextend"));
}

build::CalibrationOptions make_calibration_options(const ParsedOptions& options,
                                                   std::uint32_t arbitrary) {
  const auto number = [&](std::string_view name) { return options.integer(name, 1'000'000); };
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
