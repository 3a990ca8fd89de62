// Commands described as data, the source of help, completions, manual pages and the option
// reference; and the function that runs them.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hmmjit/option_table.hpp"

namespace hmmjit::tools {

struct SearchProgram;

/// A positional argument.
struct ArgumentSpec {
  std::string_view name, help;
  bool required = true, several = false;
  std::string_view offers = {};  ///< values for shell completion, comma separated
};

/// A command of the program, or a subcommand of one.
struct CommandSpec {
  std::string_view name;     ///< "search"; for a subcommand only "build"
  std::string_view summary;  ///< its purpose, in one line
  std::vector<ArgumentSpec> arguments = {};
  /// A command's options are also options of each of its subcommands.
  std::vector<OptionSpec> options = {};
  std::function<Result<int>(const ParsedOptions&)> run = {};
  std::vector<CommandSpec> subcommands = {};
  /// For programs of HMMER: the lines above the help.
  std::function<std::string(const ParsedOptions&)> banner = {};
  std::shared_ptr<const SearchProgram> program = {};  ///< the program for servers; null: none

  /// "hmmjit db build [options] targets...", where `path` is "hmmjit db build".
  std::string usage(std::string_view path) const;
};

/// Runs `command`, called as `path` ("hmmjit db"): shows help, reports errors, and returns the exit
/// status.
int run_command(const CommandSpec& command, const std::string& path,
                std::span<const std::string> words);

/// Prints the error of `path` and returns the exit status. Prints nothing if the reader of standard
/// output is gone: the program then ends silently (main.cpp). If the remedy is to state a file's
/// format, names the option of `options` for it.
int report_failure(std::string_view path, const Error& error,
                   std::span<const OptionSpec> options = {});
/// Fails with kOutput if printed text cannot be written.
Status flush_standard_output();
/// The message that run_command prints for a failed command.
std::string failure_text(const CommandSpec& command, const std::string& path, const Error& error);

/// The option -h, --help of every command.
OptionSpec help_option();

/// Generated texts:
std::string completion_script(std::span<const CommandSpec> commands);  ///< for bash
/// One manual page in man(7) macros; `command` null: hmmjit(1) itself.
std::string manual_page(const CommandSpec* command, std::span<const CommandSpec> commands);
/// docs/commands.md
std::string command_reference(std::span<const CommandSpec> commands);

}  // namespace hmmjit::tools
