// hmmjit search: hmmsearch with the same options, files and bytes. Also runs the other programs
// that search targets.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "command.hpp"
#include "compile_afterwards.hpp"
#include "driver/driver.hpp"
#include "output_names.hpp"
#include "search_options.hpp"
#include "search_run.hpp"

namespace hmmjit::tools {

Author author_of(const SearchProgram& program, const ParsedOptions& options) {
  return {program.name, program.reference, program.title, options.is_set("--hmmer-banner")};
}

namespace {

constexpr const char* kNoServer = "search without a server (unset HMMJIT_SERVER if it names one)";

Status check_words(const SearchProgram& program, const ParsedOptions& options) {
  HMMJIT_TRY(check_output_words(output_files(program.options(), options), kOutputWords));
  std::vector<NamedFile> numbered;  // names in which no word is replaced
  for (const char* option : {"--chkhmm", "--chkali", "--part-file"}) {
    if (options.knows(option) && options.is_set(option))
      numbered.push_back({option, std::string(options.text(option))});
  }
  return check_output_words(numbered, {});
}

Result<int> run_by_server(const SearchProgram& program, const ParsedOptions& options) {
  HMMJIT_TRY(check_served(options));
  const auto& given = options.arguments();
  if (given.size() > 2)
    return fail(ErrorCode::kUsage, "several target files do not go with --server", {}, kNoServer);
  const ParsedOptions one = for_target(options, given[0], given[1]);
  HMMJIT_TRY(check_files(program, one, std::nullopt));
  return ask_server(program, one);
}

Result<int> run_program(const SearchProgram& program, const ParsedOptions& options) {
  HMMJIT_TRY(check_words(program, options));
  if (served(program) && options.is_set("--server")) return run_by_server(program, options);
  static const RunContext context;
  auto run = std::make_unique<Run>(context);
  const auto& given = options.arguments();
  const Status status =
      program.targets.several && given.size() > 2 ? search_each_target(program, options, context)
      : given.size() == 2
          ? search_and_repeat(program, for_target(options, given[0], given[1]), *run)
          : search_and_repeat(program, options, *run);
  if (run->uses_device()) {
    // Waiting for a starting driver, and freeing what the system frees anyway, would take longer
    // than many searches.
    driver::leave_devices_to_the_system();
    const Run& left = *run.release();
    std::fflush(nullptr);
    if (const auto devices = left.session->devices(); status && devices)
      compile_afterwards(devices->unfinished_kernels());
  }
  if (!status) return std::unexpected(status.error());
  return 0;
}

}  // namespace

bool served(const SearchProgram& program) {
  return std::ranges::any_of(program.options(), [](const OptionSpec& option) {
    return option.name == "--server" && !option.absent;
  });
}

Status check_served(const ParsedOptions& options) {
  const char* const option =
      options.first_given({"--part", "--part-file", "--model-part", "--trace"});
  if (option == nullptr) return {};
  return fail(ErrorCode::kUsage, fmt::format("option {} does not go with --server", option), {},
              kNoServer);
}

Status run_request(const SearchProgram& program, const ParsedOptions& options,
                   const RunContext& context) {
  HMMJIT_TRY(check_words(program, options));
  Run run{context};
  return search_and_repeat(program, options, run, OutputFile::Afterwards::kProcessGoesOn);
}

CommandSpec command_of(const SearchProgram& described, std::string_view summary) {
  const auto program = std::make_shared<const SearchProgram>(described);
  CommandSpec out{program->name, summary, {program->queries, program->targets}};
  const std::span<const OptionSpec> options = program->options();
  out.options.assign(options.begin(), options.end());
  out.program = program;
  out.run = [program](const ParsedOptions& given) { return run_program(*program, given); };
  out.banner = [program](const ParsedOptions& given) {
    return author_of(*program, given).banner();
  };
  return out;
}

ArgumentSpec target_databases() {
  return {"seqdb",
          "sequences, or a database of them; - for standard input; several, with {target}, {folder} "
          "or {path} in the names of outputs; {query}: an output for each query",
          true, true};
}

SearchProgram scan_program(std::string_view name, std::string_view title,
                           std::string_view reference) {
  SearchProgram p;
  p.name = name;
  p.title = title;
  p.reference = reference;
  p.queries = {"hmmdb", "profile HMMs, pressed or not"};
  p.targets = {"seqfile", "query sequences; - for standard input"};
  p.query_label = "target HMM database:";
  p.target_label = "query sequence file:";
  p.by_sequence = true;
  return p;
}

CommandSpec search_command() {
  SearchProgram program;
  program.name = "search";
  program.title = "search profile(s) against a sequence database";
  program.reference = "hmmsearch";
  program.queries = {"hmmfile", "profile HMMs; - for standard input"};
  program.targets = target_databases();
  program.query_label = "query HMM file:";
  program.options = search_option_table;
  return command_of(program, "search profile(s) against sequences, as hmmsearch does");
}

}  // namespace hmmjit::tools
