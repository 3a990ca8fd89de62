#include "search_options.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "core/numbers.hpp"
#include "search/model_cutoffs.hpp"

namespace hmmjit::tools {
namespace {

constexpr std::string_view kReporting = "Options controlling reporting thresholds";
constexpr std::string_view kInclusion = "Options controlling inclusion (significance) thresholds";
constexpr std::string_view kCutoffs = "Options controlling model-specific thresholding";

// Options that exclude each other, as in hmmsearch.
constexpr std::string_view kTargetRules = "-E,-T,--cut_ga,--cut_nc,--cut_tc";
constexpr std::string_view kDomainRules = "--domE,--domT,--cut_ga,--cut_nc,--cut_tc";
constexpr std::string_view kIncludeRules = "--incE,--incT,--cut_ga,--cut_nc,--cut_tc";
constexpr std::string_view kIncludeDomainRules = "--incdomE,--incdomT,--cut_ga,--cut_nc,--cut_tc";
constexpr std::string_view kCutoffRules =
    "--cut_ga,--cut_nc,--cut_tc,-E,-T,--domE,--domT,--incE,--incT,--incdomE,--incdomT";

constexpr OptionSpec kTable[] = {
    {kBasic, "-h,--help", "", "show brief help on version and usage"},
    {kOutput, "-o", "f", "direct output to file <f>, not stdout"},
    {kOutput, "-A", "f", "save multiple alignment of all hits to file <f>"},
    {kOutput, "--tblout", "f", "save parseable table of per-sequence hits to file <f>"},
    {kOutput, "--domtblout", "f", "save parseable table of per-domain hits to file <f>"},
    {kOutput, "--pfamtblout", "f", "save table of hits and domains to file, in Pfam format <f>"},
    {kOutput, "--acc", "", "prefer accessions over names in output"},
    {kOutput, "--noali", "", "don't output alignments, so output is smaller"},
    {kOutput, "--notextw", "", "unlimit text output line width", excluding("--textw")},
    {kOutput, "--textw", "n=120 n>=120", "set max width of text output lines",
     excluding("--notextw")},
    {kReporting, "-E", "x=10.0 x>0", "report sequences <= this E-value threshold",
     excluding(kTargetRules)},
    {kReporting, "-T", "x", "report sequences >= this score threshold", excluding(kTargetRules)},
    {kReporting, "--domE", "x=10.0 x>0", "report domains <= this E-value threshold",
     excluding(kDomainRules)},
    {kReporting, "--domT", "x", "report domains >= this score threshold", excluding(kDomainRules)},
    {kInclusion, "--incE", "x=0.01 x>0",
     "consider sequences <= this E-value threshold as significant", excluding(kIncludeRules)},
    {kInclusion, "--incT", "x", "consider sequences >= this score threshold as significant",
     excluding(kIncludeRules)},
    {kInclusion, "--incdomE", "x=0.01 x>0",
     "consider domains <= this E-value threshold as significant", excluding(kIncludeDomainRules)},
    {kInclusion, "--incdomT", "x", "consider domains >= this score threshold as significant",
     excluding(kIncludeDomainRules)},
    {kCutoffs, "--cut_ga", "", "use profile's GA gathering cutoffs to set all thresholding",
     excluding(kCutoffRules)},
    {kCutoffs, "--cut_nc", "", "use profile's NC noise cutoffs to set all thresholding",
     excluding(kCutoffRules)},
    {kCutoffs, "--cut_tc", "", "use profile's TC trusted cutoffs to set all thresholding",
     excluding(kCutoffRules)},
    {kCutoffs, "--cut-file", "@f",
     "set all thresholding by the score of each model in table <f> (KOfam's ko_list)",
     ours(excluding(kCutoffRules))},
    {kFilters, "--max", "", "turn all heuristic filters off (less speed, more power)",
     excluding("--F1,--F2,--F3,--nobias")},
    {kFilters, "--F1", "x=0.02", "stage 1 (MSV) threshold: promote hits with P <= F1",
     excluding("--max")},
    {kFilters, "--F2", "x=1e-3", "stage 2 (Viterbi) threshold: promote hits with P <= F2",
     excluding("--max")},
    {kFilters, "--F3", "x=1e-5", "stage 3 (Forward) threshold: promote hits with P <= F3",
     excluding("--max")},
    {kFilters, "--nobias", "", "turn off composition bias filter", excluding("--max")},
    {kExpert, "--nonull2", "", "turn off biased composition score corrections"},
    {kExpert, "-Z", "x x>0", "set number of comparisons done, for E-value calculation"},
    {kExpert, "--domZ", "x x>0", "set number of significant seqs, for domain E-value calculation"},
    {kExpert, "--seed", "n=42 n>=0", "set random number seed to <n> (0: one-time arbitrary seed)"},
    {kExpert, "--tformat", "s", "assert target <seqdb> is in format <s>: no autodetection",
     offering(kSequenceFormatNames)},
    cpu_option(kExpert),
    {"", "--restrictdb_stkey", "s", "search starts at the sequence named <s>"},
    {"", "--restrictdb_n", "n n>=1", "search <n> target sequences at most"},
    {"", "--ssifile", "s", "accepted, not needed: the start is found without an index"},
    {kOwn, "--mem", "size",
     "bound on resident memory, such as 400M or 2G; past it targets are streamed", kOurs},
    {kOwn, "--device", "s=auto", "auto, cpu, gpu, or gpu:0,1,... for several",
     ours(offering("auto,cpu,gpu"))},
    {kOwn, "--stats", "f", "save counters, stage times and rates as JSON to file <f>", kOurs},
    {kOwn, "--tsv", "f", "save all reported domains, exact values, tab separated, to file <f>",
     kOurs},
    {kOwn, "--target-tsv", "f",
     "save all reported targets, exact values, tab separated, to file <f>", kOurs},
    {kOwn, "--json", "f", "save models, targets, domains and alignments as JSON lines to file <f>",
     kOurs},
    {kOwn, "--a3m", "f", "save included domains aligned to each model, as A3M, to file <f>", kOurs},
    {kOwn, "--seq-limit", "n n>0", "at most the <n> best targets of each model in -A and --a3m",
     ours(needing("-A,--a3m,--part"))},
    {kOwn, "--fasta", "f", "save the sequences of included targets, as FASTA, to file <f>", kOurs},
    {kOwn, "--domfasta", "f", "save the envelopes of included domains, as FASTA, to file <f>",
     kOurs},
    {kOwn, "--gff", "f", "save included domains as GFF3 to file <f>", kOurs},
    {kOwn, "--bed", "f", "save included domains as BED to file <f>", kOurs},
    {kOwn, "--min-coverage", "x 0<=x<=1",
     "report domains that cover at least the share <x> of their model", kOurs},
    {kOwn, "--resolve-overlaps", "",
     "where included domains of several models overlap, keep the best, in --fasta, --domfasta, "
     "--gff, --bed and tables; --tsv and --json mark it",
     kOurs},
    {kOwn, "--clans", "@f",
     "the same, only among models of one clan; file <f> lists clans (Pfam-A.clans.tsv)", kOurs},
    {kOwn,
     "--as",
     "s",
     "hmmscan: E-values and --tblout, --domtblout as hmmscan gives them",
     {.excludes = "--pfamtblout", .offers = "hmmscan,hmmsearch", .closed = true, .own = true}},
    {kOwn, "--part", "I/N",
     "search part I of N of a target database (I-J/N: several) for hmmjit merge", kOurs},
    {kOwn, "--part-file", "@f",
     "save the part to file <f>, where {} stands for I; a finished one is kept", kOurs},
    {kOwn, "--model-part", "J/K",
     "of part <I/N>, only part J of K of the models, with hmmjit part index", kOurs},
    {kOwn, "--vram", "size", "bound on memory used of each GPU, such as 1G", kOurs},
    {kOwn, "--verify", "n n>=0",
     "compute <n> targets per model a GPU filtered again on the CPU; default: as many as take less "
     "than 1% of the CPU time",
     kOurs},
    {kOwn, "--cut-missing", "s=error",
     "models without the cutoffs asked for: error, skip, or default (thresholds)",
     ours(one_of("error,skip,default"))},
    {kOwn, "--server", "path",
     "let hmmjit serve at socket <path> do the search; name the database as the server does",
     ours(from_environment("HMMJIT_SERVER"))},
    {kOwn, "--trace", "f", "save a timeline as Chrome trace JSON to file <f>", kOurs},
    banner_option(kOwn),
    {kOwn, "--quiet", "", "no progress on stderr", kOurs},
    {kOwn, "--verbose", "", "say on stderr what was chosen and how long it took", kOurs},
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
    HMMJIT_ASSIGN(CutoffTable table, read_cutoff_table(options.path("--cut-file")));
    thresholds.table = std::make_shared<const CutoffTable>(std::move(table));
  }
  const std::string_view missing = options.text("--cut-missing");
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
    search.filters.F1 = std::min(1.0, options.given_real("--F1").value_or(search.filters.F1));
    search.filters.F2 = std::min(1.0, options.real("--F2"));
    search.filters.F3 = std::min(1.0, options.real("--F3"));
    search.filters.bias = !options.is_set("--nobias");
  }

  search.domain.null2 = !options.is_set("--nonull2");
  set_seed(search.domain, static_cast<std::uint32_t>(options.integer("--seed")));
  search.keep_alignments =
      !options.is_set("--noali") || options.is_set("-A") || options.is_set("--a3m");
  search.threads = options.threads();
  if (options.is_set("--verify")) search.verify = options.integer("--verify");
  HMMJIT_ASSIGN(search.memory, options.bytes("--mem"));
  // Certainly a mistake: with such a bound, a search would take forever.
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 10;
  if (options.is_set("--mem") && search.memory < kLeast)
    return fail(ErrorCode::kUsage,
                "option --mem " + std::string(options.text("--mem")) + " is a bound of " +
                    std::to_string(search.memory) + " bytes",
                {}, "write a unit: --mem 64M or --mem 64G");
  return search;
}

Result<int> gpu_ordinal(std::string_view name, const char* option) {
  if (name == "gpu") return 0;
  const auto ordinal = name.starts_with("gpu:") ? parse_int(name.substr(4)) : std::nullopt;
  if (!ordinal || *ordinal < 0 || *ordinal > 999)
    return fail(ErrorCode::kUsage, "unknown GPU " + std::string(name), option,
                "write gpu, gpu:0, gpu:1, ...");
  return static_cast<int>(*ordinal);
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
  } else if (device == "auto") {
    choice.ordinals.resize(
        static_cast<std::size_t>(devices_present(std::getenv("CUDA_VISIBLE_DEVICES"))));
    std::iota(choice.ordinals.begin(), choice.ordinals.end(), 0);
  } else {
    return fail(ErrorCode::kUsage, "unknown device " + std::string(device), "--device",
                "use auto, cpu, gpu or gpu:0,1,...");
  }
  HMMJIT_ASSIGN(choice.vram, options.bytes("--vram"));
  return choice;
}

Result<parts::Share> slice_of(const ParsedOptions& options) {
  parts::Share slice;
  if (!options.knows("--slice") || !options.is_set("--slice")) return slice;
  HMMJIT_ASSIGN(slice, parts::parse_share(options.text("--slice"), "--slice"));
  if (slice.first != slice.last)
    return fail(ErrorCode::kUsage, "one slice at a time", "--slice", "write --slice J/K");
  return slice;
}

ReportOptions make_report_options(const ParsedOptions& options) {
  ReportOptions report;
  report.prefer_accession = options.is_set("--acc");
  report.alignments = !options.is_set("--noali");
  report.text_width = options.is_set("--notextw") ? 0 : options.integer("--textw");
  if (options.is_set("--seq-limit"))
    report.aligned_targets = static_cast<std::size_t>(options.integer("--seq-limit"));
  report.records.kept = options.is_set("--resolve-overlaps") || options.is_set("--clans");
  return report;
}

}  // namespace hmmjit::tools
