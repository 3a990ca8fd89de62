// Commands described as data, from which help, completions, manual pages and the option reference
// are made; and the function that runs them.
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

/// An argument that is no option.
struct ArgumentSpec {
  std::string_view name, help;
  bool required = true, several = false;
  std::string_view offers = {};  ///< values that shells offer, comma separated
};

/// A command of the program, or a subcommand of one.
struct CommandSpec {
  std::string_view name;     ///< "search"; of a subcommand its own name, "build"
  std::string_view summary;  ///< what it does, in a line
  std::vector<ArgumentSpec> arguments = {};
  /// A command's options are also options of each of its subcommands.
  std::vector<OptionSpec> options = {};
  std::function<Result<int>(const ParsedOptions&)> run = {};
  std::vector<CommandSpec> subcommands = {};
  /// For programs that HMMER has: the lines above the help.
  std::function<std::string(const ParsedOptions&)> banner = {};
  std::shared_ptr<const SearchProgram> program = {};  ///< what a server runs, if anything

  /// "hmmjit db build [options] targets...", where `path` is "hmmjit db build".
  std::string usage(std::string_view path) const;
};

/// Runs `command`, called as `path` ("hmmjit db"). Shows help, says what is wrong; returns the exit
/// status.
int run_command(const CommandSpec& command, const std::string& path,
                std::span<const std::string> words);

/// Prints why `path` failed, and returns the exit status. Prints nothing if the reader of standard
/// output is gone: the program then ends as others do (main.cpp). If a remedy is to state the
/// format of a file, the message names the option of `options` that does so.
int report_failure(std::string_view path, const Error& error,
                   std::span<const OptionSpec> options = {});
/// Fails with kOutput where printed text could not be written.
Status flush_standard_output();
/// The message of run_command for a failed command, with line feeds.
std::string failure_text(const CommandSpec& command, const std::string& path, const Error& error);

/// The row of -h and --help, which every command takes.
OptionSpec help_option();

/// The generated texts.
std::string completion_script(std::span<const CommandSpec> commands);  ///< for bash
/// One manual page in man(7) macros; `command` null: hmmjit(1) itself.
std::string manual_page(const CommandSpec* command, std::span<const CommandSpec> commands);
/// docs/commands.md
std::string command_reference(std::span<const CommandSpec> commands);

}  // namespace hmmjit::tools
