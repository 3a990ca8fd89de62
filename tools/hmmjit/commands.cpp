#include <fmt/format.h>

#include <utility>

#include "hmmjit/command.hpp"

namespace hmmjit::tools {
namespace {

// A program describes its own command only: the options of all take a while to list.
constexpr std::pair<std::string_view, CommandSpec (*)()> kCommands[] = {
    {"search", search_command},
    {"phmmer", phmmer_command},
    {"jackhmmer", jackhmmer_command},
    {"scan", scan_command},
    {"serve", serve_command},
    {"nhmmer", nhmmer_command},
    {"nhmmscan", nhmmscan_command},
    {"align", align_command},
    {"build", build_command},
    {"merge", merge_command},
    {"part", part_command},
    {"db", db_command},
    {"report", report_command},
    {"scores", scores_command},
    {"plan", plan_command},
    {"cache", cache_command},
    {"bench", bench_command},
    {"tune", tune_command},
    {"doctor", doctor_command},
    {"completions", completions_command},
    {"man", man_command}};

}  // namespace

std::vector<CommandSpec> commands() {
  std::vector<CommandSpec> all;
  for (const auto& [name, describe] : kCommands) all.push_back(describe());
  return all;
}

std::vector<std::string> command_names() {
  std::vector<std::string> names;
  for (const auto& [name, describe] : kCommands) names.emplace_back(name);
  return names;
}

Result<CommandSpec> find_command(std::string_view name) {
  for (const auto& [known, describe] : kCommands) {
    if (known == name) return describe();
  }
  return fail(ErrorCode::kUsage, fmt::format("no command \"{}\"", name), {},
              did_you_mean(name, command_names(), "hmmjit -h shows all commands"));
}

}  // namespace hmmjit::tools
