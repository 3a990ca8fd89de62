// The commands of the hmmjit program. A command is one function in a file of its own
// (command_<name>.cpp) and one line in the table of commands.cpp.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hmmjit::tools {

/// Arguments after the command's name. Returns the exit status (core/error.hpp).
using CommandFunction = int (*)(const std::vector<std::string>& arguments);

struct Command {
  std::string_view name, help;
  CommandFunction run;
};
/// All of them, in the order they are shown.
std::span<const Command> commands();

int command_search(const std::vector<std::string>& arguments);
int command_phmmer(const std::vector<std::string>& arguments);
int command_jackhmmer(const std::vector<std::string>& arguments);
int command_scan(const std::vector<std::string>& arguments);
int command_build(const std::vector<std::string>& arguments);
int command_db(const std::vector<std::string>& arguments);
int command_merge(const std::vector<std::string>& arguments);
int command_part(const std::vector<std::string>& arguments);
int command_report(const std::vector<std::string>& arguments);
int command_plan(const std::vector<std::string>& arguments);
int command_cache(const std::vector<std::string>& arguments);
int command_bench(const std::vector<std::string>& arguments);
int command_tune(const std::vector<std::string>& arguments);
int command_doctor(const std::vector<std::string>& arguments);
int command_completions(const std::vector<std::string>& arguments);
int command_man(const std::vector<std::string>& arguments);

}  // namespace hmmjit::tools
