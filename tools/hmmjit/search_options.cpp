#include "search_options.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <random>

#include "core/numbers.hpp"
#include "core/threads.hpp"

namespace hmmjit::tools {
namespace {

constexpr std::string_view kBasic = "Basic options";
constexpr std::string_view kOutput = "Options directing output";
constexpr std::string_view kReporting = "Options controlling reporting thresholds";
constexpr std::string_view kInclusion = "Options controlling inclusion (significance) thresholds";
constexpr std::string_view kCutoffs = "Options controlling model-specific thresholding";
constexpr std::string_view kFilters = "Options controlling acceleration heuristics";
constexpr std::string_view kExpert = "Other expert options";
constexpr std::string_view kOwn = "Options that hmmsearch does not have";

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
               .help = "assert target <seqdb> is in format <s>: no autodetection"},
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
    OptionSpec{.name = "--as",
               .type = kString,
               .value_name = "s",
               .excludes = "--pfamtblout",
               .group = kOwn,
               .help = "hmmscan: E-values and --tblout, --domtblout as hmmscan gives them",
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
               .help = "check <n> targets per model filtered by a GPU on the CPU",
               .own = true},
    OptionSpec{.name = "--trace",
               .type = kFile,
               .value_name = "f",
               .group = kOwn,
               .help = "save a timeline as Chrome trace JSON to file <f>",
               .own = true},
    OptionSpec{.name = "--quiet",
               .excludes = "--verbose",
               .group = kOwn,
               .help = "no progress on stderr",
               .own = true},
    OptionSpec{.name = "--verbose",
               .excludes = "--quiet",
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
  const std::int64_t seed = options.integer("--seed");
  if (seed == 0) {
    search.domain.seed = std::random_device{}() | 1u;
    search.domain.reseed = false;
  } else {
    search.domain.seed = static_cast<std::uint32_t>(seed);
  }
  search.keep_alignments =
      !options.is_set("--noali") || options.is_set("-A") || options.is_set("--a3m");
  if (options.is_set("--as") && options.text("--as") != "hmmscan")
    return fail(ErrorCode::kUsage,
                "results as " + std::string(options.text("--as")) + " are not known", "--as",
                "write --as hmmscan");
  search.threads = available_cores();
  if (options.is_set("--cpu"))
    search.threads = static_cast<int>(std::clamp<std::int64_t>(options.integer("--cpu"), 1, 1024));
  if (options.is_set("--verify")) search.verify = static_cast<int>(options.integer("--verify"));
  if (options.is_set("--mem")) {
    const auto bytes = parse_bytes(options.text("--mem"));
    if (!bytes || *bytes == 0)
      return fail(ErrorCode::kUsage,
                  "option --mem takes a size; got " + std::string(options.text("--mem")), {},
                  "write for example --mem 400M or --mem 2G");
    // Nobody means so little: a search at such a bound takes forever.
    constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
    if (*bytes < kLeast) {
      const std::string size(options.text("--mem"));
      return fail(ErrorCode::kUsage,
                  "option --mem " + size + " is a bound of " + std::to_string(*bytes) + " bytes",
                  {}, "write a unit: --mem 64M or --mem 64G");
    }
    search.memory = *bytes;
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
    const auto bytes = parse_bytes(options.text("--vram"));
    if (!bytes || *bytes == 0)
      return fail(ErrorCode::kUsage,
                  "option --vram takes a size; got " + std::string(options.text("--vram")), {},
                  "write for example --vram 1G");
    choice.vram = *bytes;
  }
  return choice;
}

ReportOptions make_report_options(const ParsedOptions& options) {
  ReportOptions report;
  report.prefer_accession = options.is_set("--acc");
  report.alignments = !options.is_set("--noali");
  report.text_width =
      options.is_set("--notextw") ? 0 : static_cast<int>(options.integer("--textw"));
  return report;
}

void describe_options(const ParsedOptions& options, SearchHeader& header) {
  const auto given = [&](std::string_view name, HeaderLine line) {
    if (options.is_set(name)) header.set(line, options.text(name));
  };
  const auto flag = [&](std::string_view name, HeaderLine line, std::string_view value) {
    if (options.is_set(name)) header.set(line, value);
  };
  using SetNumber = void (SearchHeader::*)(HeaderLine, double);
  const auto threshold = [&](std::string_view name, HeaderLine line, SetNumber set) {
    if (options.differs_from_default(name)) (header.*set)(line, options.real(name));
  };
  const auto space = [&](std::string_view name, HeaderLine line) {
    if (options.is_set(name)) header.set_space(line, options.real(name));
  };
  given("-o", HeaderLine::kMainFile);
  given("-A", HeaderLine::kAlignmentFile);
  given("--tblout", HeaderLine::kTargetTable);
  given("--domtblout", HeaderLine::kDomainTable);
  given("--pfamtblout", HeaderLine::kPfamTable);
  given("--tsv", HeaderLine::kTsv);
  given("--json", HeaderLine::kJson);
  given("--a3m", HeaderLine::kA3m);
  flag("--as", HeaderLine::kTablesAs, "hmmscan");
  flag("--acc", HeaderLine::kAccessions, "yes");
  flag("--noali", HeaderLine::kAlignments, "no");
  flag("--notextw", HeaderLine::kTextWidth, "unlimited");
  if (options.differs_from_default("--textw"))
    header.set(HeaderLine::kTextWidth, std::to_string(options.integer("--textw")));
  threshold("-E", HeaderLine::kReport, &SearchHeader::set_e_value);
  threshold("-T", HeaderLine::kReport, &SearchHeader::set_score);
  threshold("--domE", HeaderLine::kReportDomain, &SearchHeader::set_e_value);
  threshold("--domT", HeaderLine::kReportDomain, &SearchHeader::set_score);
  threshold("--incE", HeaderLine::kInclude, &SearchHeader::set_e_value);
  threshold("--incT", HeaderLine::kInclude, &SearchHeader::set_score);
  threshold("--incdomE", HeaderLine::kIncludeDomain, &SearchHeader::set_e_value);
  threshold("--incdomT", HeaderLine::kIncludeDomain, &SearchHeader::set_score);
  flag("--cut_ga", HeaderLine::kCutoffs, "GA cutoffs");
  flag("--cut_nc", HeaderLine::kCutoffs, "NC cutoffs");
  flag("--cut_tc", HeaderLine::kCutoffs, "TC cutoffs");
  flag("--max", HeaderLine::kMaxSensitivity, "on [all heuristic filters off]");
  threshold("--F1", HeaderLine::kF1, &SearchHeader::set_p_value);
  threshold("--F2", HeaderLine::kF2, &SearchHeader::set_p_value);
  threshold("--F3", HeaderLine::kF3, &SearchHeader::set_p_value);
  flag("--nobias", HeaderLine::kBiasFilter, "off");
  given("--restrictdb_stkey", HeaderLine::kFirstTarget);
  given("--restrictdb_n", HeaderLine::kTargetCount);
  given("--ssifile", HeaderLine::kIndexFile);
  flag("--nonull2", HeaderLine::kNull2, "off");
  space("-Z", HeaderLine::kZ);
  space("--domZ", HeaderLine::kDomZ);
  if (options.differs_from_default("--seed")) {
    if (options.integer("--seed") == 0) {
      header.set_seed(0);
    } else {
      given("--seed", HeaderLine::kSeed);  // as it was written
    }
  }
  given("--tformat", HeaderLine::kTargetFormat);
  given("--cpu", HeaderLine::kThreads);
}

}  // namespace hmmjit::tools
