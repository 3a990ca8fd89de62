#include <fmt/format.h>

#include <algorithm>

#include "hmmjit/command.hpp"

namespace hmmjit::tools {

const std::vector<CommandSpec>& commands() {
  static const std::vector<CommandSpec> all = {
      search_command(), phmmer_command(), jackhmmer_command(), scan_command(),
      serve_command(),  nhmmer_command(), nhmmscan_command(),  align_command(),
      build_command(),  merge_command(),  part_command(),      db_command(),
      report_command(), scores_command(), plan_command(),      cache_command(),
      bench_command(),  tune_command(),   doctor_command(),    completions_command(),
      man_command()};
  return all;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const CommandSpec& command : commands()) names.emplace_back(command.name);
  return names;
}

Result<const CommandSpec*> find_command(std::string_view name) {
  const auto found = std::ranges::find(commands(), name, &CommandSpec::name);
  if (found != commands().end()) return &*found;
  return fail(ErrorCode::kUsage, fmt::format("no command \"{}\"", name), {},
              did_you_mean(name, command_names(), "hmmjit -h shows all commands"));
}

}  // namespace hmmjit::tools
