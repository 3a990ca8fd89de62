#include "hmmjit/command_line.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace hmmjit::tools {
namespace {

// Set while commands are asked for their description. One thread: the program's.
CommandText* wanted = nullptr;

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

std::optional<int> parse_command_line(CLI::App& app, const std::vector<std::string>& arguments) {
  if (wanted != nullptr) {
    *wanted = text_of(app);
    return 0;
  }
  try {
    // CLI11 takes arguments in reverse order.
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : static_cast<int>(ErrorCode::kUsage);
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
