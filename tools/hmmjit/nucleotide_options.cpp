#include "nucleotide_options.hpp"

#include <algorithm>
#include <initializer_list>
#include <vector>

#include "search_options.hpp"

namespace hmmjit::tools {
namespace {

constexpr std::string_view kAlphabet =
    "Options for selecting query alphabet rather than guessing it";

constexpr std::string_view kAllFilters = "--F1,--F2,--F3,--B1,--B2,--B3,--nobias";
constexpr std::string_view kNoWindow = "--max,--nobias";

// Options of nhmmer and nhmmscan that differ from hmmsearch's.
constexpr OptionSpec kShared[] = {
    {kOutput, "--tblout", "f", "save parseable table of hits to file <f>"},
    {kOutput, "--dfamtblout", "f", "save table of hits to file, in Dfam format <f>"},
    {kFilters, "--max", "", "turn all heuristic filters off (less speed, more power)",
     excluding(kAllFilters)},
    {kFilters, "--F1", "x=0.02", "stage 1 (SSV) threshold: promote hits with P <= F1",
     excluding("--max")},
    {kFilters, "--F2", "x=3e-3", "stage 2 (Viterbi) threshold: promote hits with P <= F2",
     excluding("--max")},
    {kFilters, "--F3", "x=3e-5", "stage 3 (Forward) threshold: promote hits with P <= F3",
     excluding("--max")},
    {"", "--B1", "n=110", "window length for biased composition, SSV", excluding(kNoWindow)},
    {"", "--B2", "n=240", "window length for biased composition, Viterbi", excluding(kNoWindow)},
    {"", "--B3", "n=1000", "window length for biased composition, Forward", excluding(kNoWindow)},
    {"", "--bgfile", "@f", "read background frequencies of residues from file <f>"},
    {kExpert, "-Z", "x x>0", "set database size (in millions of residues), for E-values"},
    {kExpert, "--w_beta", "x 0<=x<=1", "tail mass at which the window length is determined"},
    {kExpert, "--w_length", "n n>=4", "window length: the longest hit that is expected"},
    {kExpert, "--watson", "", "search only the top strand", excluding("--crick")},
    {kExpert, "--crick", "", "search only the bottom strand", excluding("--watson")},
    {"", "--domE", "x=10.0 x>0", "accepted, without effect", excluding("--domT")},
    {"", "--domT", "x", "accepted, without effect"},
    {"", "--incdomE", "x=0.01 x>0", "accepted, without effect", excluding("--incdomT")},
    {"", "--incdomT", "x", "accepted, without effect"},
    {"", "--domZ", "x x>0", "accepted, without effect"},
    {kExpert, "--qformat", "s", "assert query file is in format <s>: no autodetection",
     offering(kSequenceFormatNames)},
    {kExpert, "--device", "s=auto",
     "where the filters run: auto, cpu, gpu, or gpu:1, ... for another one",
     ours(offering("auto,cpu,gpu"))},
};

constexpr OptionSpec kNhmmer[] = {
    // No default: HMMER's header shows --F1 and --block_length whenever given.
    {kFilters, "--F1", "x", "stage 1 (SSV) threshold: promote hits with P <= F1  [0.02]",
     excluding("--max")},
    {kOutput, "--aliscoresout", "f", "save the scores of alignment columns to file <f>"},
    {kOutput, "--hmmout", "f", "save the models built from the queries to file <f>"},
    {kScoring, "--singlemx", "", "use the score matrix for alignments of one sequence, too"},
    {kScoring, "--popen", "x=0.03125 0<=x<0.5", "gap open probability"},
    {kScoring, "--pextend", "x=0.75 0<=x<1", "gap extend probability"},
    {"", "--mx", "s=DNA1", "substitution score matrix", excluding("--mxfile")},
    {kScoring, "--mxfile", "@f", "read substitution score matrix from file <f>", excluding("--mx")},
    {kAlphabet, "--dna", "", "queries and targets are DNA", excluding("--rna")},
    {kAlphabet, "--rna", "", "queries and targets are RNA", excluding("--dna")},
    {"", "--seed_max_depth", "n=15", "of FM indices only: accepted, without effect"},
    {"", "--seed_sc_thresh", "x=14", "of FM indices only: accepted, without effect"},
    {"", "--seed_sc_density", "x=0.75", "of FM indices only: accepted, without effect"},
    {"", "--seed_drop_max_len", "n=4", "of FM indices only: accepted, without effect"},
    {"", "--seed_drop_lim", "x=0.3", "of FM indices only: accepted, without effect"},
    {"", "--seed_req_pos", "n=5", "of FM indices only: accepted, without effect"},
    {"", "--seed_consens_match", "n=11", "of FM indices only: accepted, without effect"},
    {"", "--seed_ssv_length", "n=100", "of FM indices only: accepted, without effect"},
    {kExpert, "--qsingle_seqs", "", "every sequence of the query file is a query of its own"},
    {kExpert, "--block_length", "n n>=50000",
     "length of the pieces that targets are cut into  [262144]"},
    {kOwn, "--slice", "J/K",
     "search only piece J of K of the queries; the outputs of all K pieces in order make the whole",
     ours(excluding("--json,--gff,--bed,--fasta,--domfasta,--resolve-overlaps,--clans"))},
    {kExpert, "--cpu", "n n>=0",
     "busy threads at most (1: one; 0: one, and pieces as nhmmer --cpu 0 cuts them); default: all "
     "available cores",
     from_environment("HMMER_NCPU")},
};

constexpr OptionSpec kNhmmscan[] = {
    {kOwn, "--mem", "size",
     "bound on resident memory, such as 400M or 2G; past it models are read in passes", kOurs},
};

// HMMER's options in HMMER's order, then ours.
constexpr std::string_view kNhmmerNames =
    "-h,-o,-A,--tblout,--dfamtblout,--aliscoresout,--hmmout,--acc,--noali,--notextw,--textw,"
    "--singlemx,--popen,--pextend,--mx,--mxfile,-E,-T,--incE,--incT,--cut_ga,--cut_nc,--cut_tc,"
    "--max,--F1,--F2,--F3,--nobias,--dna,--rna,--seed_max_depth,--seed_sc_thresh,"
    "--seed_sc_density,--seed_drop_max_len,--seed_drop_lim,--seed_req_pos,--seed_consens_match,"
    "--seed_ssv_length,--qformat,--qsingle_seqs,--tformat,--nonull2,-Z,--seed,--w_beta,--w_length,"
    "--block_length,--watson,--crick,--restrictdb_stkey,--restrictdb_n,--ssifile,--B1,--B2,--B3,"
    "--bgfile,--domZ,--domE,--domT,--incdomE,--incdomT,--cpu,--mem,--slice,--device,"
    "--stats,--tsv,--json,--a3m,--seq-limit,--fasta,--domfasta,--gff,--bed,--resolve-overlaps,--"
    "clans,"
    "--hmmer-banner,--quiet,--verbose";
constexpr std::string_view kNhmmscanNames =
    "-h,-o,--tblout,--dfamtblout,--acc,--noali,--notextw,--textw,-E,-T,--incE,--incT,--cut_ga,"
    "--cut_nc,--cut_tc,--max,--F1,--F2,--F3,--nobias,--qformat,--nonull2,-Z,--seed,--w_beta,"
    "--w_length,--watson,--crick,--cpu,--B1,--B2,--B3,--bgfile,--domE,--domT,--incdomE,--incdomT,"
    "--domZ,--mem,--device,--stats,--tsv,--hmmer-banner,--quiet,--verbose";

// The options with these names, from `own` or from hmmsearch's table.
std::vector<OptionSpec> make_table(std::string_view names,
                                   std::initializer_list<std::span<const OptionSpec>> own) {
  std::vector<OptionSpec> table;
  const auto add = [&](std::string_view name) {
    for (const std::span<const OptionSpec> options : own) {
      if (const auto found = std::ranges::find(options, name, &OptionSpec::name);
          found != options.end())
        return table.push_back(*found);
    }
    table.push_back(*std::ranges::find(search_option_table(), name, &OptionSpec::name));
  };
  for (const std::string& name : split_list(names)) add(name);
  for (OptionSpec option : search_option_table()) {
    if (std::ranges::find(table, option.name, &OptionSpec::name) != table.end()) continue;
    option.absent = true;
    option.group = option.help = {};
    if (option.name == "--device") option.default_text = "cpu";
    table.push_back(option);
  }
  return table;
}

}  // namespace

std::span<const OptionSpec> nhmmer_option_table() {
  static const std::vector<OptionSpec> table = make_table(kNhmmerNames, {kNhmmer, kShared});
  return table;
}

std::span<const OptionSpec> nhmmscan_option_table() {
  static const std::vector<OptionSpec> table = make_table(kNhmmscanNames, {kNhmmscan, kShared});
  return table;
}

nucleotide::Options make_nucleotide_options(const ParsedOptions& options,
                                            const SearchOptions& search, bool scan) {
  nucleotide::Options out;
  if (options.is_set("--max")) {
    out.F1 = scan ? 0.3 : 0.02;
    out.F2 = out.F3 = 1;
    out.bias = false;
  } else {
    out.F1 = search.filters.F1;
    out.F2 = search.filters.F2;
    out.F3 = search.filters.F3;
    out.bias = search.filters.bias;
  }
  out.B1 = options.integer("--B1");
  out.B2 = options.integer("--B2");
  out.B3 = options.integer("--B3");
  out.domain = search.domain;
  if (options.is_set("--watson")) out.strands = nucleotide::Strands::kTop;
  if (options.is_set("--crick")) out.strands = nucleotide::Strands::kBottom;
  out.threads = search.threads;
  if (scan) {
    out.partition = nucleotide::Partition::kTargets;
    return out;
  }
  if (options.is_set("--cpu") && options.integer("--cpu") == 0)
    out.partition = nucleotide::Partition::kSerial;
  if (options.is_set("--block_length")) out.block_length = options.integer("--block_length");
  out.Z = options.given_real("-Z");
  out.column_scores = options.is_set("--aliscoresout");
  out.keep_alignments = search.keep_alignments || out.column_scores;
  return out;
}

}  // namespace hmmjit::tools
