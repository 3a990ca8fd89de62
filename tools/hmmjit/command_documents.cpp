// `hmmjit completions` and `hmmjit man`: texts derived from the commands' option tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/ascii.hpp"
#include "core/output_file.hpp"
#include "hmmjit/command.hpp"

namespace hmmjit::tools {
namespace {

// Calls `use` with every command and subcommand, its name ("db build") and its options, including
// those of its parent command.
template <typename Use>
void for_each_command(std::span<const CommandSpec> commands, Use use) {
  for (const CommandSpec& command : commands) {
    use(command, std::string(command.name), command.options);
    for (const CommandSpec& sub : command.subcommands) {
      std::vector<OptionSpec> options = sub.options;
      options.insert(options.end(), command.options.begin(), command.options.end());
      use(sub, fmt::format("{} {}", command.name, sub.name), options);
    }
  }
}

std::vector<std::string> names_of(const OptionSpec& option) {
  std::vector<std::string> names{std::string(option.name)};
  if (!option.other_name.empty()) names.emplace_back(option.other_name);
  // The short name first, as in all listings.
  std::ranges::stable_sort(names, {}, &std::string::size);
  return names;
}

// True for options that documents show.
bool is_shown(const OptionSpec& option) { return !option.absent && !option.help.empty(); }

// ---- manual pages

std::string roff(std::string_view text) {
  std::string out = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string manual_entry(std::string_view head, std::string_view text) {
  return fmt::format(".TP\n{}\n{}\n", head, roff(text));
}

std::string manual_option(const OptionSpec& option) {
  std::string head;
  for (const std::string& name : names_of(option)) {
    (head += head.empty() ? "" : ", ") += bold(name);
    if (!option.value_name.empty())
      (head += name.starts_with("--") ? '=' : ' ') += italic(option.value_name);
  }
  return manual_entry(head, help_of(option));
}

std::string manual_options(const std::vector<OptionSpec>& options) {
  std::string out;
  std::string_view group;
  for (const OptionSpec& option : options) {
    if (!is_shown(option)) continue;
    if (std::exchange(group, option.group) != option.group && !option.group.empty())
      out += ".SS " + roff(option.group) + "\n";
    out += manual_option(option);
  }
  return out;
}

std::string manual_head(std::string_view page, std::string_view summary) {
  std::string upper(page);
  std::ranges::transform(upper, upper.begin(), ascii_upper);
  return fmt::format(".TH {} 1 \"\" \"hmmjit {}\" \"hmmjit manual\"\n.SH NAME\n{} \\- {}\n",
                     roff(upper), HMMJIT_VERSION, roff(page), roff(summary));
}

constexpr std::pair<std::string_view, std::string_view> kExitStatuses[] = {
    {"0", "success"},
    {"1", "internal error"},
    {"2", "unusable command line"},
    {"3", "missing, malformed or damaged input"},
    {"4", "a GPU was demanded and none can be used"},
    {"5", "out of memory, threads or device memory"},
    {"6", "a kernel could not be made"},
    {"7", "an output could not be written"},
    {"128 + n", "ended by signal n, as a shell shows it: 130 for Ctrl-C, 143 for SIGTERM"}};

std::string manual_end(std::string_view see_also) {
  std::string out = ".SH EXIT STATUS\n";
  for (const auto& [status, meaning] : kExitStatuses)
    out += fmt::format(".TP\n{}\n{}\n", status, meaning);
  return out + fmt::format(".SH SEE ALSO\n.BR {} (1)\n", see_also);
}

constexpr std::string_view kSummary = "profile HMM protein search with the results of hmmsearch";

// ---- option reference

// Escapes '<': "<f>" would be an HTML element.
std::string cell(std::string_view text) {
  return replaced(replaced(text, "|", "\\|"), "<", "&lt;");
}

// The first command that has an option, by the option's row of the reference.
using FirstUses = std::map<std::string, std::string>;

// Rows that an earlier command has as well are only named, unless there are few of them.
void append_reference(std::string& out, const CommandSpec& command, const std::string& path,
                      FirstUses& first) {
  constexpr int kFew = 20;
  const bool is_sub = path.find(' ', path.find(' ') + 1) != path.npos;
  out += fmt::format("\n{} {}\n\n{}{}.\n\n```\n{}\n```\n", is_sub ? "###" : "##", path,
                     static_cast<char>(std::toupper(command.summary[0])), command.summary.substr(1),
                     command.usage(path));
  if (!command.arguments.empty()) {
    out += "\n| argument | meaning |\n|---|---|\n";
    for (const ArgumentSpec& argument : command.arguments)
      out += fmt::format("| `{}` | {} |\n", argument.name, cell(argument.help));
  }
  std::vector<std::pair<std::string, std::string>> rows;  // with names
  std::map<std::string, int> shared;                      // by command
  for (const OptionSpec& option : command.options) {
    if (!is_shown(option)) continue;
    std::string name = fmt::format("{}", fmt::join(names_of(option), "`, `"));
    const std::string names = fmt::format("`{}`", name);
    if (!option.value_name.empty()) name += fmt::format(" {}", option.value_name);
    std::string help = help_of(option);
    if (!option.environment.empty()) help += fmt::format(" [{}]", option.environment);
    rows.emplace_back(fmt::format("| `{}` | {} |\n", name, cell(help)), names);
    ++shared[first.try_emplace(rows.back().first, path).first->second];
  }
  std::string own;
  std::map<std::string, std::vector<std::string>> others;
  for (const auto& [row, names] : rows) {
    const std::string& use = first.at(row);
    if (use == path || shared[use] < kFew)
      own += row;
    else
      others[use].push_back(names);
  }
  if (!own.empty()) out += "\n| option | meaning |\n|---|---|\n" + own;
  for (const auto& [use, names] : others) {
    out += fmt::format("\nAs in [`{}`](#{}): {}.\n", use, replaced(use, " ", "-"),
                       fmt::join(names, ", "));
  }
  for (const CommandSpec& sub : command.subcommands)
    append_reference(out, sub, fmt::format("{} {}", path, sub.name), first);
}

Status write_pages(const std::string& folder, std::span<const CommandSpec> commands) {
  const auto write = [&](const std::string& page, const CommandSpec* command) -> Status {
    HMMJIT_ASSIGN(OutputFile file, OutputFile::create(folder + "/" + page + ".1"));
    file.write(manual_page(command, commands));
    return file.commit();
  };
  HMMJIT_TRY(write("hmmjit", nullptr));
  for (const CommandSpec& command : commands)
    HMMJIT_TRY(write(fmt::format("hmmjit-{}", command.name), &command));
  return {};
}

}  // namespace

std::string completion_script(std::span<const CommandSpec> commands) {
  std::string names, subcommands, choices, words;
  for (const CommandSpec& command : commands)
    names += fmt::format("{}{}", names.empty() ? "" : " ", command.name);
  for_each_command(commands, [&](const CommandSpec& command, const std::string& name,
                                 const std::vector<OptionSpec>& options) {
    std::vector<std::string> offered;
    for (const CommandSpec& sub : command.subcommands) offered.emplace_back(sub.name);
    for (const OptionSpec& option : options) {
      if (!is_shown(option)) continue;
      std::ranges::copy(names_of(option), std::back_inserter(offered));
      if (option.offers.empty()) continue;
      for (const std::string& spelling : names_of(option))
        choices += fmt::format("    '{} {}') values='{}' ;;\n", name, spelling,
                               replaced(option.offers, ",", " "));
    }
    for (const ArgumentSpec& argument : command.arguments)
      std::ranges::copy(argument.name == "command" ? command_names() : split_list(argument.offers),
                        std::back_inserter(offered));
    words += fmt::format("    '{}') words='{}' ;;\n", name, fmt::join(offered, " "));
    if (name.find(' ') != name.npos)
      subcommands += fmt::format("{}'{}'", subcommands.empty() ? "" : "|", name);
  });
  return fmt::format(R"(# bash completion for hmmjit; made by: hmmjit completions bash
_hmmjit() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} command= words= values= i
  COMPREPLY=()
  # bash takes "--device=T4" for three words.
  if [[ $prev == = ]]; then
    prev=${{COMP_WORDS[COMP_CWORD-2]}}
  elif [[ $cur == = ]]; then
    cur=
  fi
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{names} --help --version' -- "$cur"))
    return
  fi
  command=${{COMP_WORDS[1]}}
  for ((i = 2; i < COMP_CWORD; i++)); do
    case "${{COMP_WORDS[1]}} ${{COMP_WORDS[i]}}" in
    {subcommands}) command="${{COMP_WORDS[1]}} ${{COMP_WORDS[i]}}"; break ;;
    esac
  done
  case "$command $prev" in
{choices}  esac
  if [[ -n $values ]]; then  # of a list, the last part
    COMPREPLY=($(compgen -P "${{cur%"${{cur##*,}}"}}" -W "$values" -- "${{cur##*,}}"))
    return
  fi
  case "$command" in
{words}  esac
  # Anything else is a file: the shell's own completion offers those.
  if [[ $cur == -* || $command == "$prev" ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
}}
complete -o default -F _hmmjit hmmjit
)",
                     fmt::arg("names", names), fmt::arg("subcommands", subcommands),
                     fmt::arg("choices", choices), fmt::arg("words", words));
}

std::string manual_page(const CommandSpec* command, std::span<const CommandSpec> commands) {
  if (command == nullptr) {
    std::string out = manual_head("hmmjit", kSummary);
    out += ".SH SYNOPSIS\n" + bold("hmmjit") + " " + italic("command") + " [" + italic("options") +
           "] [" + italic("arguments") + "]\n.SH DESCRIPTION\n" +
           roff(
               "hmmjit searches profile HMMs against protein sequences and prints what hmmsearch "
               "prints, byte for byte, using every core and, where it pays, NVIDIA GPUs with "
               "kernels specialised at run time.") +
           "\n.SH COMMANDS\n";
    for (const CommandSpec& c : commands)
      out += manual_entry(bold(fmt::format("hmmjit-{}", c.name)) + "(1)", c.summary);
    return out + manual_end("hmmsearch");
  }
  const std::string path = fmt::format("hmmjit {}", command->name);
  std::string out = manual_head(replaced(path, " ", "-"), command->summary);
  out += ".SH SYNOPSIS\n" + bold(command->usage(path)) + "\n";
  if (!command->arguments.empty()) out += ".SH ARGUMENTS\n";
  for (const ArgumentSpec& argument : command->arguments)
    out += manual_entry(italic(argument.name), argument.help);
  if (!command->subcommands.empty()) out += ".SH COMMANDS\n";
  for (const CommandSpec& sub : command->subcommands) {
    out += ".SS " + roff(sub.usage(fmt::format("{} {}", path, sub.name))) + "\n" +
           roff(sub.summary) + "\n";
    for (const ArgumentSpec& argument : sub.arguments)
      out += manual_entry(italic(argument.name), argument.help);
    for (const OptionSpec& option : sub.options) out += manual_option(option);
  }
  out += ".SH OPTIONS\n" + manual_options(command->options);
  return out + manual_end("hmmjit");
}

std::string command_reference(std::span<const CommandSpec> commands) {
  std::string out =
      "# Commands and options\n\nMade by `hmmjit man --markdown`; a test compares the two. Every "
      "command takes `-h` and `--help`. Exit status of\nevery command: 0 success, 1 internal "
      "error, "
      "2 usage, 3 input, 4 no usable GPU, 5 resources, 6 kernel compilation,\n7 output, 128 + n "
      "ended "
      "by signal n (130 for Ctrl-C).\n";
  FirstUses first;
  for (const CommandSpec& command : commands)
    append_reference(out, command, fmt::format("hmmjit {}", command.name), first);
  return out;
}

CommandSpec completions_command() {
  return {"completions",
          "print the completion script of bash",
          {{"shell", "bash", true, false, "bash"}},
          {help_option()},
          [](const ParsedOptions& options) -> Result<int> {
            if (options.arguments()[0] != "bash")
              return fail(ErrorCode::kUsage, "there are completions for bash only",
                          options.arguments()[0], "zsh takes them after autoload bashcompinit");
            fmt::print("{}", completion_script(commands()));
            return 0;
          }};
}

CommandSpec man_command() {
  return {"man",
          "print a manual page",
          {{"command", "a command; without it the page of hmmjit itself", false}},
          {help_option(),
           {"Basic options", "--markdown", "", "the option reference of all commands instead"},
           {"Basic options", "--all", "folder",
            "write the pages of all commands into this folder instead"}},
          [](const ParsedOptions& options) -> Result<int> {
            if (options.is_set("--all")) {
              HMMJIT_TRY(write_pages(options.path("--all"), commands()));
              return 0;
            }
            if (options.is_set("--markdown")) {
              fmt::print("{}", command_reference(commands()));
              return 0;
            }
            std::optional<CommandSpec> page;
            if (!options.arguments().empty()) {
              HMMJIT_ASSIGN(page, find_command(options.arguments()[0]));
            }
            fmt::print("{}", manual_page(page ? &*page : nullptr, commands()));
            return 0;
          }};
}

}  // namespace hmmjit::tools
