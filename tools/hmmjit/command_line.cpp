#include "hmmjit/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "core/diagnostics.hpp"
#include "core/error.hpp"
#include "hmmjit/suggestion.hpp"

namespace hmmjit::tools {
namespace {

// Set while commands are asked for their description. One thread: the program's.
CommandText* wanted = nullptr;
std::map<const CLI::Option*, std::vector<std::string>> offered;

// CLI11 appends "{a,b}" of a closed set to the type.
std::vector<std::string> choices_of(std::string& type) {
  std::vector<std::string> choices;
  const std::size_t open = type.find(":{");
  if (open == type.npos) return choices;
  const std::size_t close = type.find('}', open);
  std::string_view list = std::string_view(type).substr(open + 2, close - open - 2);
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    choices.emplace_back(list.substr(0, comma));
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  type.resize(open);
  return choices;
}

OptionText text_of(const CLI::Option& option) {
  OptionText text;
  text.help = option.get_description();
  text.group = option.get_group();
  text.required = option.get_required();
  if (option.get_items_expected_max() > 0) {
    std::string type = option.get_type_name();
    text.choices = choices_of(type);
    text.takes_file = type.starts_with("TEXT") && text.choices.empty();
    // ":POSITIVE" and the like: what a check says of itself.
    type.resize(std::min(type.find(':'), type.size()));
    text.value = type.empty() ? "VALUE" : type;
    text.repeated = option.get_items_expected_max() > 1 && option.get_allow_extra_args();
  }
  if (const auto values = offered.find(&option); values != offered.end())
    text.offers = values->second;
  for (const std::string& name : option.get_snames()) text.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) text.names.push_back("--" + name);
  return text;
}

CommandText text_of(const CLI::App& app) {
  CommandText text;
  text.name = app.get_name();
  text.summary = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    // "-m,--model,files" is both.
    if (option->get_positional()) {
      text.positionals.push_back(text_of(*option));
      text.positionals.back().names = {option->get_name(true)};
    }
    if (!option->get_lnames().empty() || !option->get_snames().empty())
      text.options.push_back(text_of(*option));
  }
  for (const CLI::App* sub : app.get_subcommands({})) {
    text.subcommands.push_back(text_of(*sub));
  }
  return text;
}

std::string listed(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

// The text between `before` and `after`, empty where there is none.
std::string_view between(std::string_view text, std::string_view before, std::string_view after) {
  const std::size_t from = text.find(before);
  if (from == text.npos) return {};
  text.remove_prefix(from + before.size());
  return text.substr(0, text.find(after));
}

// What CLI11 finds wrong, in the words of all other messages.
Error complaint(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  Error out{ErrorCode::kUsage, error.what(), name, "see " + name + " --help"};
  const std::string_view text = error.what();
  std::vector<std::string> names, subcommands;
  for (const CLI::Option* option : command->get_options()) {
    for (const std::string& given : option->get_lnames()) names.push_back("--" + given);
  }
  for (const CLI::App* sub : command->get_subcommands({})) subcommands.push_back(sub->get_name());

  if (const auto* extras = dynamic_cast<const CLI::ExtrasError*>(&error); extras != nullptr) {
    const std::vector<std::string> rest = app.remaining(true);
    const std::string first = rest.empty() ? std::string() : rest.front();
    if (first.starts_with("-")) {
      out.message = fmt::format("no such option \"{}\"", first);
      out.remedy = did_you_mean(first.substr(0, first.find('=')), names, out.remedy);
    } else if (!subcommands.empty()) {
      out.message = fmt::format("no such command \"{}\"", first);
      out.remedy = did_you_mean(first, subcommands, "one of: " + listed(subcommands));
    } else {
      out.message = fmt::format("one argument too many, \"{}\"", first);
    }
  } else if (text.starts_with("A subcommand is required")) {
    const std::vector<std::string> rest = command->remaining();
    const auto typed = std::ranges::find_if(
        rest, [](const std::string& argument) { return !argument.starts_with('-'); });
    out.remedy = "add one of: " + listed(subcommands);
    if (typed == rest.end()) {
      out.message = "a command is missing";
    } else {
      out.message = fmt::format("no command \"{}\"", *typed);
      out.remedy = did_you_mean(*typed, subcommands, "one of: " + listed(subcommands));
    }
  } else if (text.ends_with(" is required")) {
    const std::string missing(
        text.substr(0, text.size() - std::string_view(" is required").size()));
    const CLI::Option* option = command->get_option_no_throw(missing);
    out.message = missing + " is missing";
    if (option != nullptr) out.remedy = "give " + option->get_description();
  } else if (!between(text, "Value ", " not in range").empty()) {
    out.message = fmt::format("{} takes a number above 0; got {}", text.substr(0, text.find(':')),
                              between(text, "Value ", " not in range"));
  } else if (text.starts_with("Could not convert: ")) {
    out.message = fmt::format("{} takes a number; got {}", between(text, "convert: ", " = "),
                              between(text, " = ", "\n"));
  } else if (!between(text, ": ", " not in {").empty()) {
    std::vector<std::string> choices;
    std::string_view rest = between(text, " not in {", "}");
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      choices.emplace_back(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    const std::string given(between(text, ": ", " not in {"));
    out.message = fmt::format("{} does not know \"{}\"", text.substr(0, text.find(':')), given);
    out.remedy = did_you_mean(given, choices, "it takes " + listed(choices));
  } else if (text.find(" required ") != text.npos && text.ends_with(" missing")) {
    out.message = fmt::format("{} needs a value", text.substr(0, text.find(':')));
  }
  return out;
}

}  // namespace

std::string CommandText::usage() const {
  std::string text = name;
  if (!options.empty()) text += " [options]";
  if (!subcommands.empty()) text += " COMMAND";
  for (const OptionText& positional : positionals) {
    const std::string shown = positional.names.front() + (positional.repeated ? "..." : "");
    text += positional.required ? " " + shown : fmt::format(" [{}]", shown);
  }
  return text;
}

namespace {

// Readers advise to state the format of a file; the option depends on the command.
std::string_view format_option(std::string_view command) {
  if (command == "scan") return " (--qformat)";
  if (command == "build") return " (--informat)";
  for (const std::string_view other : {"search", "phmmer", "jackhmmer", "db"}) {
    if (command == other) return " (--tformat)";
  }
  return "";
}

}  // namespace

int report_failure(std::string_view command, const Error& error) {
  const bool to_standard_output = error.where == "-" || error.where == "standard output";
  if (error.code != ErrorCode::kOutput || !to_standard_output || !standard_output_unread())
    diagnose("hmmjit {}: {}{}\n", command, error.to_string(),
             error.remedy.ends_with("state its format") ? format_option(command) : "");
  return static_cast<int>(error.code);
}

void offer(const CLI::Option* option, std::vector<std::string> values) {
  if (wanted != nullptr) offered[option] = std::move(values);
}

std::optional<int> parse_command_line(CLI::App& app, const std::vector<std::string>& arguments) {
  if (wanted != nullptr) {
    *wanted = text_of(app);
    offered.clear();
    return 0;
  }
  try {
    // CLI11 takes arguments in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // help
      app.exit(error);
      return 0;
    }
    diagnose("{}\n", complaint(app, error).to_string());
    return static_cast<int>(ErrorCode::kUsage);
  }
  return std::nullopt;
}

bool describes(std::span<const OptionSpec> table, std::vector<OptionText> positionals) {
  if (wanted == nullptr) return false;
  *wanted = {};
  for (const OptionSpec& option : table) {
    if (option.absent) continue;
    OptionText text;
    text.names = {std::string(option.name)};
    text.value = option.value_name;
    text.help = option.help;
    text.default_text = option.default_text;
    text.range = option.range;
    text.group = option.group.empty() ? "Other options" : option.group;
    text.takes_file = option.type == ValueType::kFile;
    for (std::string_view rest = option.offers; !rest.empty();) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      text.offers.emplace_back(rest.substr(0, comma));
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    if (!option.environment.empty()) text.help += fmt::format(" [{}]", option.environment);
    if (text.help.empty()) continue;  // a second name of another option
    wanted->options.push_back(std::move(text));
  }
  wanted->positionals = std::move(positionals);
  return true;
}

CommandText describe(CommandFunction run) {
  CommandText text;
  wanted = &text;
  // The argument is for a command that would act at once: it shows its help instead.
  (void)run({"--help"});
  wanted = nullptr;
  return text;
}

}  // namespace hmmjit::tools
