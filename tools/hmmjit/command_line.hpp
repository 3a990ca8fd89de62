// Command lines described as data: what completions, manual pages and the option reference are
// made of.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hmmjit/command.hpp"
#include "hmmjit/option_table.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace hmmjit::tools {

/// An option or a positional argument.
struct OptionText {
  std::vector<std::string> names;  ///< "-o", "--output"; of a positional, its one name
  std::string value;               ///< "FILE", "n"; empty: takes none
  std::string help, default_text, range, group;
  std::vector<std::string> choices;  ///< all values it may have; empty: any
  /// What a shell offers where `choices` is empty: values that are known, beside others.
  std::vector<std::string> offers;
  bool takes_file = false;  ///< the value may well be a file
  bool required = false, repeated = false;
};
struct CommandText {
  std::string name, summary;
  std::vector<OptionText> options, positionals;
  std::vector<CommandText> subcommands;
  std::string usage() const;  ///< "hmmjit db build [options] targets..."
};

/// Says why `command` ("search") failed; returns the exit status. Says nothing where nobody reads
/// standard output: the program then ends as others do there (main.cpp).
int report_failure(std::string_view command, const Error& error);

/// Values that shells offer for an option or argument which takes others as well, or lists of them.
/// To be called before the line is parsed.
void offer(const CLI::Option* option, std::vector<std::string> values);

/// Parses; the exit status when there is nothing more to do (help was shown, or the line is wrong).
/// Every command calls this (or `describes` below) before it does anything.
std::optional<int> parse_command_line(CLI::App& app, const std::vector<std::string>& arguments);

/// For a command with an option table of its own: true when only its description is wanted, which
/// is then taken.
bool describes(std::span<const OptionSpec> table, std::vector<OptionText> positionals);

/// What `run` says of itself instead of running; empty when it does not use the functions above.
CommandText describe(CommandFunction run);
/// All commands with their options. Fails with kInternal when one gives no description.
Result<std::vector<CommandText>> describe_commands();

/// The generated texts. `shell`: "bash", "zsh" or "fish".
std::string completion_script(std::string_view shell, std::span<const CommandText> commands);
/// One manual page in man(7) macros; `command` null: hmmjit(1) itself.
std::string manual_page(const CommandText* command, std::span<const CommandText> commands);
/// docs/commands.md
std::string command_reference(std::span<const CommandText> commands);

}  // namespace hmmjit::tools
