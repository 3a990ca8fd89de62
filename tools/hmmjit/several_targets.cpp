#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ranges>

#include "search_run.hpp"

namespace hmmjit::tools {
namespace {

// True for a device or pipe: every search may write to it in turn.
bool takes_all_outputs(const std::string& path) { return path != "-" && is_pipe(path); }

Status check_for_several_targets(const SearchProgram& program, const ParsedOptions& options) {
  const std::string& models = options.arguments()[0];
  if (models == "-" || is_pipe(models))
    return fail(ErrorCode::kUsage,
                fmt::format("the {} of several target files are read several times",
                            program.open_queries != nullptr ? "queries" : "models"),
                models, "give a file instead of a pipe");
  if (const char* option = options.first_given({"--chkhmm", "--chkali", "--slice"}))
    return fail(ErrorCode::kUsage, fmt::format("several target files do not go with {}", option),
                {}, "search one database at a time");
  if (options.is_set("--part"))
    return fail(ErrorCode::kUsage, "several target files do not go with --part", {},
                "search the parts of one database at a time");
  return {};
}

// The tables that all searches write to one file, in turn.
JoinedOutputs joined_outputs(const ParsedOptions& options, std::vector<std::string>& names) {
  JoinedOutputs joined;
  for (const auto& [option, kind] : kReportFiles) {
    const bool shared =
        kind == OutputKind::kTsv || kind == OutputKind::kTargetTsv || kind == OutputKind::kJson;
    if (!shared || !options.knows(option) || !options.is_set(option)) continue;
    const std::string_view name = options.text(option);
    if (std::ranges::any_of(kOutputWords, [&](auto word) { return name.contains(word); })) continue;
    joined.kinds.insert(kind);
    names.emplace_back(option);
  }
  return joined;
}

// Opens every input and begins every output of all searches: reports an error in one of a thousand
// files before the first search.
Status check_all_files(const SearchProgram& program, std::span<const ParsedOptions> searches,
                       std::span<const std::string> joined, const RunContext& context) {
  std::vector<NamedFile> outputs, inputs;
  std::vector<std::string> target_files;
  std::vector<std::vector<NamedFile>> outputs_of_targets;
  for (const ParsedOptions& one : searches) {
    target_files.push_back(one.arguments()[1]);
    for (const NamedFile& output :
         outputs_of_targets.emplace_back(outputs_of(program, one, std::nullopt))) {
      const bool again = &one != &searches.front();
      if (!again || std::ranges::find(joined, output.option) == joined.end())
        outputs.push_back(output);
    }
    std::ranges::copy(inputs_of(program, one, one.arguments()[1]), std::back_inserter(inputs));
  }
  HMMJIT_TRY(check_target_outputs(target_files, outputs_of_targets, joined));
  HMMJIT_TRY(check_inputs(inputs));
  HMMJIT_TRY(check_outputs(with_standard_output(outputs, searches.front()), inputs));
  HMMJIT_ASSIGN(const SearchRequest request, make_request(program, searches.front(), context));
  ModelFile models{searches.front().arguments()[0], context.warn};
  SearchInputs opened(program, searches.front(), context, request, models);
  HMMJIT_TRY(opened.open_models());
  for (const ParsedOptions& one : searches) {
    const std::string& targets = one.arguments()[1];
    if (targets != "-" && !is_pipe(targets)) HMMJIT_TRY(opened.targets_of(one));
  }
  for (const NamedFile& output : outputs) {
    if (!takes_all_outputs(output.path)) HMMJIT_TRY(OutputFile::create(output.path));
  }
  return {};
}

}  // namespace

Status search_each_target(const SearchProgram& program, const ParsedOptions& options,
                          const RunContext& context) {
  HMMJIT_TRY(check_for_several_targets(program, options));
  const std::string& models = options.arguments()[0];
  std::vector<ParsedOptions> searches;
  for (const std::string& target : options.arguments() | std::views::drop(1))
    searches.push_back(for_target(options, models, target));
  std::vector<std::string> joined_options;
  JoinedOutputs joined = joined_outputs(options, joined_options);
  HMMJIT_TRY(check_all_files(program, searches, joined_options, context));
  for (const ParsedOptions& one : searches) {
    Run run{context};
    joined.ends = &one == &searches.back();
    // After the last search, and only then, signals may be dropped: the process ends with success.
    HMMJIT_TRY(search_and_repeat(program, one, run,
                                 &one == &searches.back() ? OutputFile::Afterwards::kProcessEnds
                                                          : OutputFile::Afterwards::kProcessGoesOn,
                                 &joined));
  }
  return {};
}

}  // namespace hmmjit::tools
