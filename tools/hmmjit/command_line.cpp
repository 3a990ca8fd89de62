#include "hmmjit/command_line.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "core/diagnostics.hpp"

namespace hmmjit::tools {
namespace {

std::string help_text(const CommandSpec& command, const std::string& path,
                      const ParsedOptions& options) {
  if (command.banner) {
    const std::string banner = command.banner(options);
    const bool as_hmmer = options.is_set("--hmmer-banner");
    const std::string program = as_hmmer ? banner.substr(2, banner.find(' ', 2) - 2) : path;
    return fmt::format("{}Usage: {}\n\n{}", banner, command.usage(program),
                       option_help(command.options));
  }
  std::string out = fmt::format("{}.\n\nUsage: {}\n", command.summary, command.usage(path));
  out.front() = static_cast<char>(std::toupper(out.front()));
  const auto rows = [&out](std::string_view title, const auto& list) {
    if (list.empty()) return;
    std::size_t width = 0;
    for (const auto& row : list) width = std::max(width, row.name.size());
    out += fmt::format("\n{}:\n", title);
    for (const auto& row : list) {
      if constexpr (requires { row.help; })
        out += fmt::format("  {:{}} : {}\n", row.name, width, row.help);
      else
        out += fmt::format("  {:{}} : {}\n", row.name, width, row.summary);
    }
  };
  rows("Commands", command.subcommands);
  rows("Arguments", command.arguments);
  return out + "\n" + option_help(command.options);
}

// Runs the subcommand named by the first word.
Result<int> run_subcommand(const CommandSpec& command, const std::string& path,
                           std::span<const std::string> words) {
  const std::size_t at = first_argument(command.options, words);
  std::vector<std::string> names;
  for (const CommandSpec& sub : command.subcommands) names.emplace_back(sub.name);
  const std::string all = fmt::format("one of: {}", fmt::join(names, ", "));
  if (at == words.size()) {
    HMMJIT_ASSIGN(const ParsedOptions options, parse_options(command.options, words));
    if (!options.is_set("-h"))
      return fail(ErrorCode::kUsage, "a command is missing", {}, "add " + all);
    fmt::print("{}", help_text(command, path, options));
    return 0;
  }
  const auto found = std::ranges::find(command.subcommands, words[at], &CommandSpec::name);
  if (found == command.subcommands.end())
    return fail(ErrorCode::kUsage, fmt::format("no command \"{}\"", words[at]), {},
                did_you_mean(words[at], names, all));
  CommandSpec sub = *found;
  sub.options.insert(sub.options.end(), command.options.begin(), command.options.end());
  std::vector<std::string> rest(words.begin(), words.end());
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
  return run_command(sub, fmt::format("{} {}", path, sub.name), rest);
}

Status check_arguments(const CommandSpec& command, const std::string& path,
                       const std::vector<std::string>& given) {
  const std::size_t most = command.arguments.size();
  if (given.size() > most && (most == 0 || !command.arguments.back().several))
    return fail(ErrorCode::kUsage, fmt::format("one argument too many, \"{}\"", given[most]), {},
                fmt::format("see {} --help", path));
  for (std::size_t i = 0; i < std::max(most, given.size()); ++i) {
    const ArgumentSpec& argument = command.arguments[std::min(i, most - 1)];
    if (i < given.size() ? given[i].empty() : argument.required)
      return fail(ErrorCode::kUsage, fmt::format("{} is missing", argument.name), {},
                  fmt::format("give {}", argument.help));
  }
  return {};
}

Result<int> run(const CommandSpec& command, const std::string& path,
                std::span<const std::string> words) {
  if (!command.subcommands.empty()) return run_subcommand(command, path, words);
  HMMJIT_ASSIGN(const ParsedOptions options, parse_options(command.options, words));
  if (options.is_set("-h")) {
    fmt::print("{}", help_text(command, path, options));
    return 0;
  }
  HMMJIT_TRY(check_arguments(command, path, options.arguments()));
  return command.run(options);
}

}  // namespace

std::string CommandSpec::usage(std::string_view path) const {
  std::string text = fmt::format("{} [options]", path);
  if (!subcommands.empty()) text += " COMMAND";
  for (const ArgumentSpec& argument : arguments) {
    const std::string shown = fmt::format("<{}>{}", argument.name, argument.several ? "..." : "");
    text += argument.required ? " " + shown : fmt::format(" [{}]", shown);
  }
  return text;
}

OptionSpec help_option() { return {"Basic options", "-h,--help", "", "show this help"}; }

namespace {

// The engine's remedies name no options, which differ between programs and hosts.
std::string failure_line(std::string_view path, const Error& failure,
                         std::span<const OptionSpec> options) {
  Error error = failure;
  std::string format;
  for (const OptionSpec& option : options) {
    const bool states =
        option.name == "--tformat" || option.name == "--informat" || option.name == "--qformat";
    if (states && !option.absent && error.remedy.ends_with("state its format"))
      format += fmt::format("{}{}", format.empty() ? " (" : " or ", option.name);
    constexpr std::string_view kMemory = "allow more memory";
    if (option.name == "--mem" && error.remedy.starts_with(kMemory))
      error.remedy.replace(0, kMemory.size(), "raise --mem");
  }
  return fmt::format("{}: {}{}{}\n", path, error.to_string(), format, format.empty() ? "" : ")");
}

}  // namespace

std::string failure_text(const CommandSpec& command, const std::string& path, const Error& error) {
  std::string text = failure_line(path, error, command.options);
  if (error.code == ErrorCode::kUsage && command.banner)
    text += fmt::format("Usage: {}\n", command.usage(path));
  return text;
}

int report_failure(std::string_view path, const Error& error, std::span<const OptionSpec> options) {
  if (error.code != ErrorCode::kOutput || error.where != "standard output" ||
      !standard_output_unread())
    print_diagnostic(failure_line(path, error, options));
  return static_cast<int>(error.code);
}

Status flush_standard_output() {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return {};
  return fail(ErrorCode::kOutput, "cannot write", "standard output",
              "check where it is redirected to");
}

int run_command(const CommandSpec& command, const std::string& path,
                std::span<const std::string> words) {
  const Result<int> code = run(command, path, words);
  if (code) return *code;
  const int status = report_failure(path, code.error(), command.options);
  if (code.error().code == ErrorCode::kUsage && command.banner)
    print_diagnostic(fmt::format("Usage: {}\n", command.usage(path)));
  return status;
}

}  // namespace hmmjit::tools
