// `hmmjit merge`: writes the outputs of a search from its parts.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "command.hpp"
#include "core/output_file.hpp"
#include "option_table.hpp"
#include "output_names.hpp"
#include "parts/merge.hpp"
#include "report/report_header.hpp"
#include "report/report_writer.hpp"
#include "run_text.hpp"
#include "search_options.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

constexpr std::string_view kGroup = "Options of merging";

// The options of a search that select and format its outputs.
constexpr std::array kOfSearch = {"-h",           "-o",     "-A",      "--tblout",   "--domtblout",
                                  "--pfamtblout", "--acc",  "--noali", "--notextw",  "--textw",
                                  "--tsv",        "--json", "--a3m",   "--seq-limit",
                                  "--target-tsv", "--hmmer-banner"};

const std::vector<OptionSpec>& merge_option_table() {
  static const std::vector<OptionSpec> table = [] {
    std::vector<OptionSpec> made;
    for (const OptionSpec& option : search_option_table()) {
      if (std::ranges::find(kOfSearch, option.name) != kOfSearch.end()) made.push_back(option);
    }
    made.push_back({kGroup, "--part-file", "f",
                    "join adjacent parts into one part, file <f>; write nothing else"});
    made.push_back(
        {kGroup, "--slice", "J/K",
         "write only piece J of K of every output; all K pieces in order make the whole"});
    made.push_back({kGroup, "--mem", "size", "bound on resident memory, such as 400M or 2G"});
    return made;
  }();
  return table;
}

Author author_of(const ParsedOptions& options) {
  if (options.is_set("--hmmer-banner"))
    return {"search", "hmmsearch", "search profile(s) against a sequence database", true};
  return {"merge", "hmmsearch", "put the parts of a search together", false};
}

// The command line of the whole search with these outputs, as recorded in its files.
Result<ParsedOptions> whole_search(const ParsedOptions& options, const parts::PartOrigin& origin) {
  std::vector<std::string> arguments;
  const auto given = [&](std::string_view name) {
    return std::ranges::find(kOfSearch, name) != kOfSearch.end() && options.is_set(name);
  };
  for (const OptionSpec& option : search_option_table()) {
    if (given(option.name)) {
      arguments.push_back(word_of(option, options.text(option.name)));
      continue;
    }
    // An option given now replaces an option that it excludes.
    if ((option.name == "--textw" && options.is_set("--notextw")) ||
        (option.name == "--notextw" && options.is_set("--textw")))
      continue;
    const bool aligns = options.is_set("-A") || options.is_set("--a3m");
    if (option.name == "--seq-limit" && !aligns) continue;
    for (const auto& [name, value] : origin.options) {
      if (name == option.name) arguments.push_back(word_of(option, value));
    }
  }
  arguments.insert(arguments.end(), {"--", origin.model_file, origin.target_file});
  auto parsed = parse_options(search_option_table(), arguments, false);
  if (!parsed)
    return fail(ErrorCode::kInput,
                "the options of the search cannot be read: " + parsed.error().message, {},
                "merge with the version of hmmjit that searched");
  return parsed;
}

Status write_reports(const ParsedOptions& options, const parts::PartSet& set,
                     const parts::MergeOptions& merge) {
  const parts::PartOrigin& origin = set.first().origin();
  HMMJIT_ASSIGN(const ParsedOptions whole, whole_search(options, origin));
  const parts::PartSettings& settings = set.settings();
  if (const char* output = options.first_given({"-A", "--a3m"});
      output != nullptr && !settings.alignments)
    return fail(ErrorCode::kUsage,
                std::string(output) + " needs alignments, which the search left out (--noali)", {},
                "leave it out, or search again without --noali");
  ReportOptions report = make_report_options(whole);
  report.alignments = report.alignments && settings.alignments;
  if (settings.scan) {
    if (options.is_set("--pfamtblout"))
      return fail(ErrorCode::kUsage, "--pfamtblout does not go with a search --as hmmscan");
    report.scan = settings.thresholds;
    report.scan_by_range = true;
  }
  report.begins = merge.slice.first == 1;
  report.ends = merge.slice.last == merge.slice.of;
  const Author author = author_of(options);
  std::string header = author.banner();
  header += ReportHeader::kRule;
  header += ReportHeader::line("query HMM file:", origin.model_file);
  header += ReportHeader::line("target sequence database:", origin.target_file);
  header += ReportHeader::settings("hmmsearch", whole.changed());
  (header += ReportHeader::kRule) += "\n";
  HMMJIT_ASSIGN(
      const std::unique_ptr<ReportWriter> writer,
      ReportWriter::create(report_paths(options), report, settings.filters,
                           fmt::format("hmmjit search (hmmjit {})", HMMJIT_VERSION), header));
  HMMJIT_TRY(parts::merge_reports(set, *writer, merge));
  RunDescription run;
  run.program = "hmmjit merge";
  run.version = HMMJIT_VERSION;
  run.query_file = origin.model_file;
  run.target_file = origin.target_file;
  if (author.as_hmmer) run.hmmer_program = author.hmmer;
  run.option_settings = (author.as_hmmer ? "hmmsearch " : "hmmjit search ") + whole.settings() +
                        origin.model_file + " " + origin.target_file + " ";
  run.folder = current_folder();
  run.date = date_text();
  run.scan = settings.scan;
  return writer->complete(run);
}

Result<int> run_merge(const ParsedOptions& options) {
  parts::MergeOptions merge;
  HMMJIT_ASSIGN(merge.slice, slice_of(options));
  HMMJIT_ASSIGN(merge.memory, options.bytes("--mem"));
  const std::vector<NamedFile> outputs = output_files(merge_option_table(), options);
  HMMJIT_TRY(check_output_words(outputs, {}));
  if (options.is_set("--part-file") && (outputs.size() > 1 || options.is_set("--slice")))
    return fail(ErrorCode::kUsage, "--part-file does not go with other outputs or --slice", {},
                "merge the larger part once more for the outputs");
  HMMJIT_ASSIGN(const std::vector<std::string> paths, parts::find_parts(options.arguments()));
  std::vector<NamedFile> inputs;
  for (const std::string& path : paths) inputs.push_back({"part", path});
  HMMJIT_TRY(check_outputs(with_standard_output(outputs, options), inputs));
  HMMJIT_ASSIGN(const parts::PartSet set, parts::PartSet::open(paths));
  if (!options.is_set("--part-file")) {
    HMMJIT_TRY(write_reports(options, set, merge));
    return 0;
  }
  parts::PartOrigin origin = set.first().origin();
  origin.program = fmt::format("hmmjit merge (hmmjit {})", HMMJIT_VERSION);
  origin.date = date_text();
  HMMJIT_ASSIGN([[maybe_unused]] const Digest content,
                parts::merge_into_part(set, options.path("--part-file"), origin, merge));
  return 0;
}

}  // namespace

CommandSpec merge_command() {
  return {"merge",
          "merge the parts of a search into the outputs of the whole search",
          {{"parts", "files of hmmjit search --part-file, or their folder", true, true}},
          merge_option_table(),
          run_merge,
          {},
          [](const ParsedOptions& given) { return author_of(given).banner(); }};
}

}  // namespace hmmjit::tools
