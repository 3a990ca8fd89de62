// `hmmjit completions` and `hmmjit man`: texts made of the commands' own option tables.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "core/diagnostics.hpp"
#include "core/output_file.hpp"
#include "hmmjit/command_line.hpp"
#include "hmmjit/suggestion.hpp"

namespace hmmjit::tools {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += between;
    out += word;
  }
  return out;
}

std::string replaced(std::string_view text, std::string_view what, std::string_view by) {
  std::string out;
  for (std::size_t at; (at = text.find(what)) != text.npos; text.remove_prefix(at + what.size()))
    (out += text.substr(0, at)) += by;
  return out += text;
}

// Without the command's own "hmmjit ".
std::string short_name(const CommandText& command) {
  return command.name.substr(command.name.find(' ') + 1);
}

// Calls `use` for commands and subcommands.
template <typename Use>
void for_each_command(std::span<const CommandText> commands, Use use) {
  for (const CommandText& command : commands) {
    use(command, static_cast<const CommandText*>(nullptr));
    for (const CommandText& sub : command.subcommands) use(sub, &command);
  }
}

// The options of a command and, where it is a subcommand, of the command above it.
std::vector<OptionText> all_options(const CommandText& command, const CommandText* above) {
  std::vector<OptionText> options = command.options;
  for (const OptionText& option : above != nullptr ? above->options : std::vector<OptionText>()) {
    const auto same = [&](const OptionText& own) { return own.names == option.names; };
    if (std::ranges::none_of(options, same)) options.push_back(option);
  }
  return options;
}

std::string help_of(const OptionText& option) {
  std::string help = option.help;
  if (!option.range.empty()) help += fmt::format(" ({})", option.range);
  if (!option.default_text.empty()) help += fmt::format(" [{}]", option.default_text);
  return help;
}

// ---- completions
// ----------------------------------------------------------------------------------

constexpr std::string_view kShells[] = {"bash", "zsh", "fish"};

/// What is offered as the value of an option or as an argument.
const std::vector<std::string>& values_of(const OptionText& option) {
  return option.choices.empty() ? option.offers : option.choices;
}

std::vector<std::string> words_of(const CommandText& command, const CommandText* above) {
  std::vector<std::string> words;
  for (const CommandText& sub : command.subcommands)
    words.push_back(sub.name.substr(sub.name.rfind(' ') + 1));
  for (const OptionText& option : all_options(command, above))
    words.insert(words.end(), option.names.begin(), option.names.end());
  for (const OptionText& positional : command.positionals) {
    const std::vector<std::string>& values = values_of(positional);
    words.insert(words.end(), values.begin(), values.end());
  }
  return words;
}

std::string bash_script(std::span<const CommandText> commands) {
  std::string names, subcommands, choices, words;
  for (const CommandText& command : commands)
    names += (names.empty() ? "" : " ") + short_name(command);
  for_each_command(commands, [&](const CommandText& command, const CommandText* above) {
    const std::string name = short_name(command);
    words += fmt::format("    '{}') words='{}' ;;\n", name, joined(words_of(command, above), " "));
    if (above != nullptr) subcommands += (subcommands.empty() ? "'" : "|'") + name + "'";
    for (const OptionText& option : all_options(command, above)) {
      if (values_of(option).empty()) continue;
      for (const std::string& spelling : option.names)
        choices += fmt::format("    '{} {}') values='{}' ;;\n", name, spelling,
                               joined(values_of(option), " "));
    }
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

// For a word in single quotes within _arguments, where brackets and colons have a meaning.
std::string zsh_quoted(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':' || c == '\\') {
      (out += '\\') += c;
    } else {
      out += c;
    }
  }
  return out;
}

std::string zsh_arguments(const CommandText& command, const CommandText* above,
                          std::string_view indent) {
  std::string out;
  for (const OptionText& option : all_options(command, above)) {
    for (const std::string& name : option.names) {
      out += fmt::format("{}'{}{}{}[{}]", indent, option.repeated ? "*" : "", name,
                         name.starts_with("--") && !option.value.empty() ? "=" : "",
                         zsh_quoted(option.help));
      if (!values_of(option).empty()) {
        out += fmt::format(":{}:({})", option.value, joined(values_of(option), " "));
      } else if (!option.value.empty()) {
        out += fmt::format(":{}:{}", option.value, option.takes_file ? "_files" : " ");
      }
      out += "' \\\n";
    }
  }
  return out;
}

// What an argument may be, for _arguments.
std::string zsh_positional(const CommandText& command) {
  if (command.positionals.empty() || values_of(command.positionals.front()).empty())
    return "file:_files";
  return fmt::format("{}:({})", command.positionals.front().names.front(),
                     joined(values_of(command.positionals.front()), " "));
}

std::string zsh_script(std::span<const CommandText> commands) {
  std::string out =
      "#compdef hmmjit\n# zsh completion for hmmjit; made by: hmmjit completions zsh\n"
      "_hmmjit() {\n  local state line\n  local -a commands\n  commands=(\n";
  for (const CommandText& command : commands)
    out += fmt::format("    '{}:{}'\n", short_name(command), zsh_quoted(command.summary));
  out +=
      "  )\n  if ((CURRENT == 2)); then\n    _describe 'command' commands\n    return\n  fi\n"
      "  case \"${words[2]}\" in\n";
  for (const CommandText& command : commands) {
    out += fmt::format("  {})\n", short_name(command));
    if (!command.subcommands.empty()) {
      out += "    local -a subcommands\n    subcommands=(\n";
      for (const CommandText& sub : command.subcommands)
        out += fmt::format("      '{}:{}'\n", sub.name.substr(sub.name.rfind(' ') + 1),
                           zsh_quoted(sub.summary));
      out +=
          "    )\n    if ((CURRENT == 3)); then\n      _describe 'command' subcommands\n"
          "      return\n    fi\n    case \"${words[3]}\" in\n";
      for (const CommandText& sub : command.subcommands) {
        out += fmt::format(
            "    {})\n      shift 2 words\n      ((CURRENT -= 2))\n      _arguments \\\n{}        "
            "'*:{}'\n      ;;\n",
            sub.name.substr(sub.name.rfind(' ') + 1), zsh_arguments(sub, &command, "        "),
            zsh_positional(sub));
      }
      out += "    esac\n    ;;\n";
    } else {
      out += fmt::format(
          "    shift words\n    ((CURRENT -= 1))\n    _arguments \\\n{}      '*:{}'\n    ;;\n",
          zsh_arguments(command, nullptr, "      "), zsh_positional(command));
    }
  }
  return out + "  esac\n}\n_hmmjit \"$@\"\n";
}

std::string fish_quoted(std::string_view text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}

std::string fish_script(std::span<const CommandText> commands) {
  std::string out =
      "# fish completion for hmmjit; made by: hmmjit completions fish\n"
      "complete -c hmmjit -n __fish_use_subcommand -f\n";
  for (const CommandText& command : commands)
    out += fmt::format("complete -c hmmjit -n __fish_use_subcommand -a {} -d {}\n",
                       short_name(command), fish_quoted(command.summary));
  for_each_command(commands, [&](const CommandText& command, const CommandText* above) {
    const std::string name = command.name.substr(command.name.rfind(' ') + 1);
    std::string condition = "__fish_seen_subcommand_from " + name;
    if (above != nullptr)
      condition =
          fmt::format("__fish_seen_subcommand_from {}; and {}", short_name(*above), condition);
    for (const CommandText& sub : command.subcommands)
      out += fmt::format("complete -c hmmjit -n {} -a {} -d {}\n", fish_quoted(condition),
                         sub.name.substr(sub.name.rfind(' ') + 1), fish_quoted(sub.summary));
    for (const OptionText& positional : command.positionals) {
      if (!values_of(positional).empty())
        out += fmt::format("complete -c hmmjit -n {} -f -a {}\n", fish_quoted(condition),
                           fish_quoted(joined(values_of(positional), " ")));
    }
    for (const OptionText& option : all_options(command, above)) {
      out += fmt::format("complete -c hmmjit -n {}", fish_quoted(condition));
      for (const std::string& spelling : option.names)
        out +=
            spelling.starts_with("--") ? " -l " + spelling.substr(2) : " -s " + spelling.substr(1);
      if (!values_of(option).empty()) {
        out += " -x -a " + fish_quoted(joined(values_of(option), " "));
      } else if (!option.value.empty()) {
        out += option.takes_file ? " -r" : " -x";
      }
      out += " -d " + fish_quoted(option.help) + "\n";
    }
  });
  return out;
}

// ---- manual pages
// ---------------------------------------------------------------------------------

std::string roff(std::string_view text) {
  std::string out = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  if (out.starts_with('.') || out.starts_with('\'')) out.insert(0, "\\&");
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

std::string page_name(const CommandText& command) { return replaced(command.name, " ", "-"); }

std::string manual_option(const OptionText& option) {
  std::string head;
  for (const std::string& name : option.names) {
    if (!head.empty()) head += ", ";
    head += bold(name);
    if (option.value.empty()) continue;
    head += (name.starts_with("--") ? "=" : " ");
    head += option.choices.empty() ? italic(option.value) : italic(joined(option.choices, "|"));
  }
  return ".TP\n" + head + "\n" + roff(help_of(option)) + "\n";
}

std::string manual_options(const std::vector<OptionText>& options) {
  std::vector<std::string> groups;
  for (const OptionText& option : options) {
    if (std::ranges::find(groups, option.group) == groups.end()) groups.push_back(option.group);
  }
  std::string out;
  for (const std::string& group : groups) {
    if (groups.size() > 1 && !group.empty()) out += ".SS " + roff(group) + "\n";
    for (const OptionText& option : options) {
      if (option.group == group) out += manual_option(option);
    }
  }
  return out;
}

std::string manual_head(std::string_view page, std::string_view summary) {
  std::string upper(page);
  std::ranges::transform(upper, upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  });
  return fmt::format(".TH {} 1 \"\" \"hmmjit {}\" \"hmmjit manual\"\n.SH NAME\n{} \\- {}\n",
                     roff(upper), HMMJIT_VERSION, roff(page), roff(summary));
}

constexpr std::string_view kExitStatus = R"(.SH EXIT STATUS
.TP
0
success
.TP
1
internal error
.TP
2
unusable command line
.TP
3
missing, malformed or damaged input
.TP
4
a GPU was demanded and none can be used
.TP
5
out of memory, threads or device memory
.TP
6
a kernel could not be made
.TP
7
an output could not be written
.TP
128 + n
ended by signal n, as a shell shows it: 130 for Ctrl-C, 143 for SIGTERM
)";

constexpr std::string_view kSummary = "profile HMM protein search with the results of hmmsearch";

// ---- option reference
// -----------------------------------------------------------------------------

// "<f>" would be taken for an HTML element.
std::string cell(std::string_view text) {
  return replaced(replaced(text, "|", "\\|"), "<", "&lt;");
}

void append_reference(std::string& out, const CommandText& command, bool is_sub) {
  out += fmt::format("\n{} {}\n\n{}{}.\n\n```\n{}\n```\n", is_sub ? "###" : "##", command.name,
                     static_cast<char>(command.summary[0] >= 'a' && command.summary[0] <= 'z'
                                           ? command.summary[0] - 32
                                           : command.summary[0]),
                     command.summary.substr(1), command.usage());
  if (!command.positionals.empty()) {
    out += "\n| argument | meaning |\n|---|---|\n";
    for (const OptionText& positional : command.positionals)
      out += fmt::format("| `{}` | {} |\n", positional.names.front(), cell(help_of(positional)));
  }
  if (!command.options.empty()) {
    out += "\n| option | meaning |\n|---|---|\n";
    for (const OptionText& option : command.options) {
      std::string name = joined(option.names, "`, `");
      if (!option.value.empty())
        name += " " + (option.choices.empty() ? option.value : joined(option.choices, "\\|"));
      out += fmt::format("| `{}` | {} |\n", name, cell(help_of(option)));
    }
  }
  for (const CommandText& sub : command.subcommands) append_reference(out, sub, true);
}

Status write_pages(const std::string& folder, std::span<const CommandText> commands) {
  const auto write = [&](const std::string& page, const CommandText* command) -> Status {
    HMMJIT_ASSIGN(OutputFile file, OutputFile::create(folder + "/" + page + ".1"));
    file.write(manual_page(command, commands));
    return file.commit();
  };
  HMMJIT_TRY(write("hmmjit", nullptr));
  for (const CommandText& command : commands) HMMJIT_TRY(write(page_name(command), &command));
  return {};
}

}  // namespace

Result<std::vector<CommandText>> describe_commands() {
  std::vector<CommandText> texts;
  for (const Command& command : commands()) {
    CommandText text = describe(command.run);
    if (text.options.empty() && text.positionals.empty() && text.subcommands.empty())
      return fail(ErrorCode::kInternal, "the command has no description",
                  std::string(command.name));
    text.name = fmt::format("hmmjit {}", command.name);
    text.summary = command.help;
    for (CommandText& sub : text.subcommands) sub.name = text.name + " " + sub.name;
    texts.push_back(std::move(text));
  }
  return texts;
}

std::string completion_script(std::string_view shell, std::span<const CommandText> commands) {
  if (shell == "bash") return bash_script(commands);
  return shell == "zsh" ? zsh_script(commands) : fish_script(commands);
}

std::string manual_page(const CommandText* command, std::span<const CommandText> commands) {
  if (command == nullptr) {
    std::string out = manual_head("hmmjit", kSummary);
    out += ".SH SYNOPSIS\n" + bold("hmmjit") + " " + italic("command") + " [" + italic("options") +
           "] [" + italic("arguments") + "]\n.SH DESCRIPTION\n" +
           roff(
               "hmmjit searches profile HMMs against protein sequences and prints what hmmsearch "
               "prints, byte for byte, using every core and, where it pays, NVIDIA GPUs with "
               "kernels specialised at run time.") +
           "\n.SH COMMANDS\n";
    for (const CommandText& c : commands)
      out += ".TP\n" + bold(page_name(c)) + "(1)\n" + roff(c.summary) + "\n";
    return (out += kExitStatus) + ".SH SEE ALSO\n.BR hmmsearch (1)\n";
  }
  std::string out = manual_head(page_name(*command), command->summary);
  out += ".SH SYNOPSIS\n";
  if (command->subcommands.empty()) out += bold(command->usage()) + "\n";
  for (std::size_t i = 0; i < command->subcommands.size(); ++i) {
    if (i > 0) out += ".br\n";
    out += bold(command->subcommands[i].usage()) + "\n";
  }
  if (!command->positionals.empty()) {
    out += ".SH ARGUMENTS\n";
    for (const OptionText& positional : command->positionals)
      out += ".TP\n" + italic(positional.names.front()) + "\n" + roff(help_of(positional)) + "\n";
  }
  if (!command->subcommands.empty()) {
    out += ".SH COMMANDS\n";
    for (const CommandText& sub : command->subcommands) {
      out += ".SS " + roff(sub.name) + "\n" + roff(sub.summary) + "\n";
      for (const OptionText& positional : sub.positionals)
        out += ".TP\n" + italic(positional.names.front()) + "\n" + roff(help_of(positional)) + "\n";
      for (const OptionText& option : sub.options) out += manual_option(option);
    }
  }
  if (!command->options.empty()) out += ".SH OPTIONS\n" + manual_options(command->options);
  return (out += kExitStatus) + ".SH SEE ALSO\n.BR hmmjit (1)\n";
}

std::string command_reference(std::span<const CommandText> commands) {
  std::string out =
      "# Commands and options\n\nMade by `hmmjit man --markdown`; a test compares the two. Exit "
      "status of every command: 0 success,\n1 internal error, 2 usage, 3 input, 4 no usable GPU, 5 "
      "resources, 6 kernel compilation, 7 output,\n128 + n ended by signal n (130 for Ctrl-C).\n";
  for (const CommandText& command : commands) append_reference(out, command, false);
  return out;
}

int command_completions(const std::vector<std::string>& arguments) {
  std::string shell;
  CLI::App app{"Prints the completion script of a shell.", "hmmjit completions"};
  app.add_option("shell", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>(std::begin(kShells), std::end(kShells))));
  if (const auto status = parse_command_line(app, arguments)) return *status;
  const auto texts = describe_commands();
  if (!texts) return report_failure("completions", texts.error());
  fmt::print("{}", completion_script(shell, *texts));
  return 0;
}

int command_man(const std::vector<std::string>& arguments) {
  std::string name, folder;
  bool markdown = false;
  CLI::App app{"Prints a manual page.", "hmmjit man"};
  std::vector<std::string> names;
  for (const Command& command : commands()) names.emplace_back(command.name);
  offer(app.add_option("command", name, "a command; without it the page of hmmjit itself"), names);
  app.add_flag("--markdown", markdown, "the option reference of all commands instead");
  app.add_option("--all", folder, "write the pages of all commands into this folder instead");
  if (const auto status = parse_command_line(app, arguments)) return *status;
  const auto texts = describe_commands();
  if (!texts) return report_failure("man", texts.error());
  if (markdown) {
    fmt::print("{}", command_reference(*texts));
    return 0;
  }
  if (!folder.empty()) {
    const Status written = write_pages(folder, *texts);
    return written ? 0 : report_failure("man", written.error());
  }
  const CommandText* page = nullptr;
  if (!name.empty()) {
    const auto found = std::ranges::find(*texts, "hmmjit " + name, &CommandText::name);
    if (found == texts->end()) {
      return report_failure("man", {ErrorCode::kUsage,
                            fmt::format("no command \"{}\"", name),
                            {},
                            did_you_mean(name, names, "hmmjit -h lists the commands")});
    }
    page = &*found;
  }
  fmt::print("{}", manual_page(page, *texts));
  return 0;
}

}  // namespace hmmjit::tools
