// The commands of the hmmjit program. Each has a file command_<name>.cpp, with a function that
// describes and runs the command, and a line in commands.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hmmjit/command_line.hpp"

namespace hmmjit::tools {

/// All commands, in display order.
std::vector<CommandSpec> commands();
std::vector<std::string> command_names();
/// Fails with kUsage if no command has this name.
Result<CommandSpec> find_command(std::string_view name);

/// The text of `hmmjit --version --verbose`: version, build and the libraries found on this
/// machine, one "name: value" per line, for bug reports. Contains no names of the user's files.
std::string version_text();

CommandSpec search_command();
CommandSpec serve_command();
CommandSpec phmmer_command();
CommandSpec jackhmmer_command();
CommandSpec scan_command();
CommandSpec nhmmer_command();
CommandSpec nhmmscan_command();
CommandSpec build_command();
CommandSpec align_command();
CommandSpec merge_command();
CommandSpec part_command();
CommandSpec db_command();
CommandSpec report_command();
CommandSpec scores_command();
CommandSpec plan_command();
CommandSpec cache_command();
CommandSpec bench_command();
CommandSpec tune_command();
CommandSpec doctor_command();
CommandSpec completions_command();
CommandSpec man_command();

}  // namespace hmmjit::tools
