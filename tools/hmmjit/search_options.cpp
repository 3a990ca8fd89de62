#include "search_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <utility>

#include "core/threads.hpp"
#include "report/report_header.hpp"
#include "search/model_cutoffs.hpp"

namespace hmmjit::tools {
namespace {

constexpr std::string_view kBasic = "Basic options";
constexpr std::string_view kOutput = "Options directing output";
constexpr std::string_view kReporting = "Options controlling reporting thresholds";
constexpr std::string_view kInclusion = "Options controlling inclusion (significance) thresholds";
constexpr std::string_view kCutoffs = "Options controlling model-specific thresholding";
constexpr std::string_view kFilters = "Options controlling acceleration heuristics";
constexpr std::string_view kExpert = "Other expert options";
constexpr std::string_view kOwn = "Options that HMMER does not have";

// What excludes what, as in hmmsearch.
constexpr std::string_view kTargetRules = "-E,-T,--cut_ga,--cut_nc,--cut_tc";
constexpr std::string_view kDomainRules = "--domE,--domT,--cut_ga,--cut_nc,--cut_tc";
constexpr std::string_view kIncludeRules = "--incE,--incT,--cut_ga,--cut_nc,--cut_tc";
constexpr std::string_view kIncludeDomainRules = "--incdomE,--incdomT,--cut_ga,--cut_nc,--cut_tc";
constexpr std::string_view kCutoffRules =
    "--cut_ga,--cut_nc,--cut_tc,-E,-T,--domE,--domT,--incE,--incT,--incdomE,--incdomT";

using enum ValueType;

constexpr std::array kTable = {
    OptionSpec{.name = "-h", .group = kBasic, .help = "show brief help on version and usage"},
    OptionSpec{.name = "-o",
               .type = kFile,
               .value_name = "f",
               .group = kOutput,
               .help = "direct output to file <f>, not stdout"},
    OptionSpec{.name = "-A",
               .type = kFile,
               .value_name = "f",
               .group = kOutput,
               .help = "save multiple alignment of all hits to file <f>"},
    OptionSpec{.name = "--tblout",
               .type = kFile,
               .value_name = "f",
               .group = kOutput,
               .help = "save parseable table of per-sequence hits to file <f>"},
    OptionSpec{.name = "--domtblout",
               .type = kFile,
               .value_name = "f",
               .group = kOutput,
               .help = "save parseable table of per-domain hits to file <f>"},
    OptionSpec{.name = "--pfamtblout",
               .type = kFile,
               .value_name = "f",
               .group = kOutput,
               .help = "save table of hits and domains to file, in Pfam format <f>"},
    OptionSpec{.name = "--acc", .group = kOutput, .help = "prefer accessions over names in output"},
    OptionSpec{.name = "--noali",
               .group = kOutput,
               .help = "don't output alignments, so output is smaller"},
    OptionSpec{.name = "--notextw",
               .excludes = "--textw",
               .group = kOutput,
               .help = "unlimit text output line width"},
    OptionSpec{.name = "--textw",
               .type = kInteger,
               .value_name = "n",
               .default_text = "120",
               .range = "n>=120",
               .excludes = "--notextw",
               .group = kOutput,
               .help = "set max width of text output lines"},
    OptionSpec{.name = "-E",
               .type = kReal,
               .value_name = "x",
               .default_text = "10.0",
               .range = "x>0",
               .excludes = kTargetRules,
               .group = kReporting,
               .help = "report sequences <= this E-value threshold"},
    OptionSpec{.name = "-T",
               .type = kReal,
               .value_name = "x",
               .excludes = kTargetRules,
               .group = kReporting,
               .help = "report sequences >= this score threshold"},
    OptionSpec{.name = "--domE",
               .type = kReal,
               .value_name = "x",
               .default_text = "10.0",
               .range = "x>0",
               .excludes = kDomainRules,
               .group = kReporting,
               .help = "report domains <= this E-value threshold"},
    OptionSpec{.name = "--domT",
               .type = kReal,
               .value_name = "x",
               .excludes = kDomainRules,
               .group = kReporting,
               .help = "report domains >= this score threshold"},
    OptionSpec{.name = "--incE",
               .type = kReal,
               .value_name = "x",
               .default_text = "0.01",
               .range = "x>0",
               .excludes = kIncludeRules,
               .group = kInclusion,
               .help = "consider sequences <= this E-value threshold as significant"},
    OptionSpec{.name = "--incT",
               .type = kReal,
               .value_name = "x",
               .excludes = kIncludeRules,
               .group = kInclusion,
               .help = "consider sequences >= this score threshold as significant"},
    OptionSpec{.name = "--incdomE",
               .type = kReal,
               .value_name = "x",
               .default_text = "0.01",
               .range = "x>0",
               .excludes = kIncludeDomainRules,
               .group = kInclusion,
               .help = "consider domains <= this E-value threshold as significant"},
    OptionSpec{.name = "--incdomT",
               .type = kReal,
               .value_name = "x",
               .excludes = kIncludeDomainRules,
               .group = kInclusion,
               .help = "consider domains >= this score threshold as significant"},
    OptionSpec{.name = "--cut_ga",
               .excludes = kCutoffRules,
               .group = kCutoffs,
               .help = "use profile's GA gathering cutoffs to set all thresholding"},
    OptionSpec{.name = "--cut_nc",
               .excludes = kCutoffRules,
               .group = kCutoffs,
               .help = "use profile's NC noise cutoffs to set all thresholding"},
    OptionSpec{.name = "--cut_tc",
               .excludes = kCutoffRules,
               .group = kCutoffs,
               .help = "use profile's TC trusted cutoffs to set all thresholding"},
    OptionSpec{.name = "--cut-file",
               .type = kString,
               .value_name = "f",
               .excludes = kCutoffRules,
               .group = kCutoffs,
               .help = "set all thresholding by the score of each model in table <f> (KOfam's ko_list)",
               .own = true},
    OptionSpec{.name = "--max",
               .excludes = "--F1,--F2,--F3,--nobias",
               .group = kFilters,
               .help = "turn all heuristic filters off (less speed, more power)"},
    OptionSpec{.name = "--F1",
               .type = kReal,
               .value_name = "x",
               .default_text = "0.02",
               .excludes = "--max",
               .group = kFilters,
               .help = "stage 1 (MSV) threshold: promote hits with P <= F1"},
    OptionSpec{.name = "--F2",
               .type = kReal,
               .value_name = "x",
               .default_text = "1e-3",
               .excludes = "--max",
               .group = kFilters,
               .help = "stage 2 (Viterbi) threshold: promote hits with P <= F2"},
    OptionSpec{.name = "--F3",
               .type = kReal,
               .value_name = "x",
               .default_text = "1e-5",
               .excludes = "--max",
               .group = kFilters,
               .help = "stage 3 (Forward) threshold: promote hits with P <= F3"},
    OptionSpec{.name = "--nobias",
               .excludes = "--max",
               .group = kFilters,
               .help = "turn off composition bias filter"},
    OptionSpec{.name = "--restrictdb_stkey",
               .type = kString,
               .value_name = "s",
               .help = "search starts at the sequence named <s>"},
    OptionSpec{.name = "--restrictdb_n",
               .type = kInteger,
               .value_name = "n",
               .range = "n>=1",
               .help = "search <n> target sequences at most"},
    OptionSpec{.name = "--ssifile",
               .type = kString,
               .value_name = "s",
               .help = "accepted, not needed: the start is found without an index"},
    OptionSpec{.name = "--nonull2",
               .group = kExpert,
               .help = "turn off biased composition score corrections"},
    OptionSpec{.name = "-Z",
               .type = kReal,
               .value_name = "x",
               .range = "x>0",
               .group = kExpert,
               .help = "set number of comparisons done, for E-value calculation"},
    OptionSpec{.name = "--domZ",
               .type = kReal,
               .value_name = "x",
               .range = "x>0",
               .group = kExpert,
               .help = "set number of significant seqs, for domain E-value calculation"},
    OptionSpec{.name = "--seed",
               .type = kInteger,
               .value_name = "n",
               .default_text = "42",
               .range = "n>=0",
               .group = kExpert,
               .help = "set random number seed to <n> (0: one-time arbitrary seed)"},
    OptionSpec{.name = "--tformat",
               .type = kString,
               .value_name = "s",
               .group = kExpert,
               .help = "assert target <seqdb> is in format <s>: no autodetection",
               .offers = kSequenceFormatNames},
    OptionSpec{.name = "--cpu",
               .type = kInteger,
               .value_name = "n",
               .range = "n>=0",
               .environment = "HMMER_NCPU",
               .group = kExpert,
               .help = "busy threads at most (0 and 1: one); default: all cores granted"},
    OptionSpec{.name = "--mem",
               .type = kString,
               .value_name = "size",
               .group = kOwn,
               .help = "bound on resident memory, such as 400M or 2G; past it targets are streamed",
               .own = true},
    OptionSpec{.name = "--device",
               .type = kString,
               .value_name = "s",
               .default_text = "auto",
               .group = kOwn,
               .help = "auto, cpu, gpu, or gpu:0,1,... for several",
               .offers = "auto,cpu,gpu",
               .own = true},
    OptionSpec{.name = "--stats",
               .type = kFile,
               .value_name = "f",
               .group = kOwn,
               .help = "save counters, stage times and rates as JSON to file <f>",
               .own = true},
    OptionSpec{.name = "--tsv",
               .type = kFile,
               .value_name = "f",
               .group = kOwn,
               .help = "save all reported domains, exact values, tab separated, to file <f>",
               .own = true},
    OptionSpec{.name = "--target-tsv",
               .type = kFile,
               .value_name = "f",
               .group = kOwn,
               .help = "save all reported targets, exact values, tab separated, to file <f>",
               .own = true},
    OptionSpec{.name = "--json",
               .type = kFile,
               .value_name = "f",
               .group = kOwn,
               .help = "save models, targets, domains and alignments as JSON lines to file <f>",
               .own = true},
    OptionSpec{.name = "--a3m",
               .type = kFile,
               .value_name = "f",
               .group = kOwn,
               .help = "save included domains aligned to each model, as A3M, to file <f>",
               .own = true},
    OptionSpec{.name = "--seq-limit",
               .type = kInteger,
               .value_name = "n",
               .range = "n>0",
               .group = kOwn,
               .help = "at most the <n> best targets of each model in -A and --a3m",
               .own = true,
               .needs = "-A,--a3m"},
    OptionSpec{.name = "--fasta",
               .type = kFile,
               .value_name = "f",
               .group = kOwn,
               .help = "save the sequences of included targets, as FASTA, to file <f>",
               .own = true},
    OptionSpec{.name = "--domfasta",
               .type = kFile,
               .value_name = "f",
               .group = kOwn,
               .help = "save the envelopes of included domains, as FASTA, to file <f>",
               .own = true},
    OptionSpec{.name = "--gff",
               .type = kFile,
               .value_name = "f",
               .group = kOwn,
               .help = "save included domains as GFF3 to file <f>",
               .own = true},
    OptionSpec{.name = "--bed",
               .type = kFile,
               .value_name = "f",
               .group = kOwn,
               .help = "save included domains as BED to file <f>",
               .own = true},
    OptionSpec{.name = "--min-coverage",
               .type = kReal,
               .value_name = "x",
               .range = "0<=x<=1",
               .group = kOwn,
               .help = "report domains that cover at least the share <x> of their model",
               .own = true},
    OptionSpec{.name = "--resolve-overlaps",
               .group = kOwn,
               .help = "keep the best of included domains of several models in one region: in these four "
                       "and --domtblout; --tsv and --json mark it",
               .own = true},
    OptionSpec{.name = "--clans",
               .type = kString,
               .value_name = "f",
               .group = kOwn,
               .help = "the same among models of one clan, read from <f> (Pfam-A.clans.tsv)",
               .own = true},
    OptionSpec{.name = "--as",
               .type = kString,
               .value_name = "s",
               .excludes = "--pfamtblout",
               .group = kOwn,
               .help = "hmmscan: E-values and --tblout, --domtblout as hmmscan gives them",
               .offers = "hmmscan",
               .own = true},
    OptionSpec{.name = "--part",
               .type = kString,
               .value_name = "I/N",
               .group = kOwn,
               .help = "search part I of N of a target database (I-J/N: several) for hmmjit merge",
               .own = true},
    OptionSpec{.name = "--part-file",
               .type = kString,
               .value_name = "f",
               .group = kOwn,
               .help = "save the part to file <f>, where {} stands for I; a finished one is kept",
               .own = true},
    OptionSpec{.name = "--model-part",
               .type = kString,
               .value_name = "J/K",
               .group = kOwn,
               .help = "of part <I/N>, only part J of K of the models, with hmmjit part index",
               .own = true},
    OptionSpec{.name = "--vram",
               .type = kString,
               .value_name = "size",
               .group = kOwn,
               .help = "bound on memory used of each GPU, such as 1G",
               .own = true},
    OptionSpec{.name = "--verify",
               .type = kInteger,
               .value_name = "n",
               .range = "n>=0",
               .group = kOwn,
               .help = "compute <n> targets per model a GPU filtered again on the CPU; "
                       "default: as many as take less than 1% of the CPU time",
               .own = true},
    OptionSpec{
        .name = "--cut-missing",
        .type = kString,
        .value_name = "s",
        .default_text = "error",
        .group = kOwn,
        .help = "models without the cutoffs asked for: error, skip, or default (thresholds)",
        .offers = "error,skip,default",
        .own = true},
    OptionSpec{.name = "--trace",
               .type = kFile,
               .value_name = "f",
               .group = kOwn,
               .help = "save a timeline as Chrome trace JSON to file <f>",
               .own = true},
    OptionSpec{.name = "--hmmer-banner",
               .group = kOwn,
               .help = "name HMMER's program in outputs, as when called by its name",
               .own = true},
    OptionSpec{.name = "--quiet", .group = kOwn, .help = "no progress on stderr", .own = true},
    OptionSpec{.name = "--verbose",
               .group = kOwn,
               .help = "say on stderr what was chosen and how long it took",
               .own = true},
    OptionSpec{.name = "--help", .own = true},
};

Threshold make_threshold(const ParsedOptions& options, std::string_view e_value,
                         std::string_view score) {
  return {options.real(e_value), options.given_real(score)};
}

}  // namespace

std::span<const OptionSpec> search_option_table() { return kTable; }

Result<SearchOptions> make_search_options(const ParsedOptions& options) {
  SearchOptions search;
  Thresholds& thresholds = search.thresholds;
  thresholds.target = make_threshold(options, "-E", "-T");
  thresholds.domain = make_threshold(options, "--domE", "--domT");
  thresholds.include_target = make_threshold(options, "--incE", "--incT");
  thresholds.include_domain = make_threshold(options, "--incdomE", "--incdomT");
  if (options.is_set("--cut_ga")) thresholds.cutoffs = ModelCutoffs::kGathering;
  if (options.is_set("--cut_nc")) thresholds.cutoffs = ModelCutoffs::kNoise;
  if (options.is_set("--cut_tc")) thresholds.cutoffs = ModelCutoffs::kTrusted;
  if (options.is_set("--cut-file")) {
    thresholds.cutoffs = ModelCutoffs::kTable;
    HMMJIT_ASSIGN(CutoffTable table, read_cutoff_table(std::string(options.text("--cut-file"))));
    thresholds.table = std::make_shared<const CutoffTable>(std::move(table));
  }
  const std::string_view missing = options.text("--cut-missing");
  if (missing != "error" && missing != "skip" && missing != "default")
    return fail(ErrorCode::kUsage,
                "option --cut-missing takes error, skip or default; got " + std::string(missing));
  if (missing == "default") thresholds.missing = MissingCutoffs::kDefault;
  if (options.is_set("--cut-missing") && thresholds.cutoffs == ModelCutoffs::kNone)
    return fail(ErrorCode::kUsage,
                "--cut-missing makes no sense without --cut_ga, --cut_nc, --cut_tc or --cut-file",
                {}, "add one of them");
  if (missing == "default" && options.text("--as") == "hmmscan")
    return fail(ErrorCode::kUsage, "--cut-missing default is incompatible with --as", {},
                "write --cut-missing skip");
  thresholds.min_coverage = options.given_real("--min-coverage").value_or(0);
  thresholds.Z = options.given_real("-Z");
  thresholds.domZ = options.given_real("--domZ");

  if (options.is_set("--max")) {
    search.filters = FilterOptions::max_sensitivity();
  } else {
    search.filters.F1 = std::min(1.0, options.real("--F1"));
    search.filters.F2 = std::min(1.0, options.real("--F2"));
    search.filters.F3 = std::min(1.0, options.real("--F3"));
    search.filters.bias = !options.is_set("--nobias");
  }

  search.domain.null2 = !options.is_set("--nonull2");
  set_seed(search.domain, static_cast<std::uint32_t>(options.integer("--seed")));
  search.keep_alignments =
      !options.is_set("--noali") || options.is_set("-A") || options.is_set("--a3m");
  if (options.is_set("--as") && options.text("--as") != "hmmscan" &&
      options.text("--as") != "hmmsearch")
    return fail(ErrorCode::kUsage,
                "results as " + std::string(options.text("--as")) + " are not known", "--as",
                "write --as hmmscan, or hmmsearch, which is the default");
  search.threads = available_cores();
  if (options.is_set("--cpu"))
    search.threads = static_cast<int>(std::clamp<std::int64_t>(options.integer("--cpu"), 1, 1024));
  if (options.is_set("--verify")) search.verify = static_cast<int>(options.integer("--verify"));
  if (options.is_set("--mem")) {
    HMMJIT_ASSIGN(search.memory, options.bytes("--mem"));
    // Nobody means so little: a search at such a bound takes forever.
    constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
    if (search.memory < kLeast) {
      const std::string size(options.text("--mem"));
      return fail(
          ErrorCode::kUsage,
          "option --mem " + size + " is a bound of " + std::to_string(search.memory) + " bytes", {},
          "write a unit: --mem 64M or --mem 64G");
    }
  }
  return search;
}

Result<DeviceChoice> make_device_choice(const ParsedOptions& options) {
  DeviceChoice choice;
  const std::string_view device = options.text("--device");
  if (device == "cpu") {
    choice.use = DeviceChoice::Use::kCpu;
  } else if (device == "gpu" || device.starts_with("gpu:")) {
    choice.use = DeviceChoice::Use::kGpu;
    if (device != "gpu") {
      choice.ordinals.clear();
      std::string_view list = device.substr(4);
      while (true) {
        const std::size_t comma = std::min(list.find(','), list.size());
        int ordinal = -1;
        const auto [end, error] = std::from_chars(list.data(), list.data() + comma, ordinal);
        if (error != std::errc() || end != list.data() + comma || ordinal < 0 ||
            std::ranges::find(choice.ordinals, ordinal) != choice.ordinals.end())
          return fail(ErrorCode::kUsage, "unusable list of devices " + std::string(device),
                      "--device", "write for example --device gpu:0,1");
        choice.ordinals.push_back(ordinal);
        if (comma == list.size()) break;
        list.remove_prefix(comma + 1);
      }
    }
  } else if (device != "auto") {
    return fail(ErrorCode::kUsage, "unknown device " + std::string(device), "--device",
                "use auto, cpu, gpu or gpu:0,1,...");
  }
  if (options.is_set("--vram")) {
    HMMJIT_ASSIGN(choice.vram, options.bytes("--vram"));
  }
  return choice;
}

ReportOptions make_report_options(const ParsedOptions& options) {
  ReportOptions report;
  report.prefer_accession = options.is_set("--acc");
  report.alignments = !options.is_set("--noali");
  report.text_width =
      options.is_set("--notextw") ? 0 : static_cast<int>(options.integer("--textw"));
  if (options.is_set("--seq-limit"))
    report.aligned_targets = static_cast<std::size_t>(options.integer("--seq-limit"));
  report.records.kept = options.is_set("--resolve-overlaps") || options.is_set("--clans");
  return report;
}

std::string describe_options(const ParsedOptions& options) {
  ReportHeader out;
  constexpr std::pair<std::string_view, HeaderLine> kAsGiven[] = {
      {"-o", HeaderLine::kMainReport},
      {"-A", HeaderLine::kAlignmentFile},
      {"--tblout", HeaderLine::kTargetTable},
      {"--domtblout", HeaderLine::kDomainTable},
      {"--pfamtblout", HeaderLine::kPfamTable},
      {"--tsv", HeaderLine::kTsv},
      {"--target-tsv", HeaderLine::kTargetTsv},
      {"--json", HeaderLine::kJson},
      {"--a3m", HeaderLine::kA3m},
      {"--fasta", HeaderLine::kFasta},
      {"--domfasta", HeaderLine::kDomainFasta},
      {"--gff", HeaderLine::kGff},
      {"--bed", HeaderLine::kBed},
      {"--clans", HeaderLine::kClans},
      {"--restrictdb_stkey", HeaderLine::kFirstTarget},
      {"--restrictdb_n", HeaderLine::kTargetCount},
      {"--ssifile", HeaderLine::kIndexFile},
      {"--tformat", HeaderLine::kTargetFormat},
      {"--cpu", HeaderLine::kThreads}};
  for (const auto& [name, line] : kAsGiven) {
    if (options.is_set(name)) out.set(line, options.text(name));
  }
  if (options.is_set("--resolve-overlaps"))
    out.set(HeaderLine::kOverlaps, "the best of several models");
  if (options.text("--as") == "hmmscan" && options.is_set("--as"))
    out.set(HeaderLine::kByTarget, "hmmscan");
  if (options.differs_from_default("--cut-missing"))
    out.set(HeaderLine::kMissingCutoffs, options.text("--cut-missing"));
  if (options.is_set("--min-coverage"))
    out.set(HeaderLine::kCoverage, ">= " + std::string(options.text("--min-coverage")));
  if (options.is_set("--acc")) out.prefer_accessions();
  if (options.is_set("--noali")) out.without_alignments();
  if (options.differs_from_default("--textw"))
    out.set_text_width(static_cast<int>(options.integer("--textw")));
  if (options.is_set("--notextw")) out.set_text_width(0);
  struct ThresholdOption {
    HeaderLine line;
    std::string_view e_value, score;
  };
  constexpr ThresholdOption kThresholds[] = {
      {HeaderLine::kReport, "-E", "-T"},
      {HeaderLine::kReportDomain, "--domE", "--domT"},
      {HeaderLine::kInclude, "--incE", "--incT"},
      {HeaderLine::kIncludeDomain, "--incdomE", "--incdomT"}};
  for (const ThresholdOption& threshold : kThresholds) {
    if (options.differs_from_default(threshold.e_value))
      out.set_e_value(threshold.line, options.real(threshold.e_value));
    if (options.differs_from_default(threshold.score))
      out.set_score(threshold.line, options.real(threshold.score));
  }
  constexpr std::pair<std::string_view, std::string_view> kCutoffOptions[] = {
      {"--cut_ga", "GA"}, {"--cut_nc", "NC"}, {"--cut_tc", "TC"}};
  for (const auto& [name, tag] : kCutoffOptions) {
    if (options.is_set(name)) out.set_cutoffs(tag);
  }
  if (options.is_set("--cut-file"))
    out.set(HeaderLine::kCutoffs, "scores of " + std::string(options.text("--cut-file")));
  if (options.is_set("--max")) out.with_max_sensitivity();
  constexpr std::pair<std::string_view, HeaderLine> kFilterOptions[] = {
      {"--F1", HeaderLine::kF1}, {"--F2", HeaderLine::kF2}, {"--F3", HeaderLine::kF3}};
  for (const auto& [name, line] : kFilterOptions) {
    if (options.differs_from_default(name)) out.set_p_value(line, options.real(name));
  }
  if (options.is_set("--nobias")) out.without_bias_filter();
  if (options.is_set("--nonull2")) out.without_null2();
  if (options.is_set("-Z")) out.set_size(HeaderLine::kZ, options.real("-Z"));
  if (options.is_set("--domZ")) out.set_size(HeaderLine::kDomZ, options.real("--domZ"));
  if (options.differs_from_default("--seed"))
    out.set_seed(static_cast<std::uint64_t>(options.integer("--seed")));
  return out.text();
}

}  // namespace hmmjit::tools
