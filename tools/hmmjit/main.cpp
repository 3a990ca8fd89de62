// The hmmjit program: finds the command, prepares the process, maps failures to exit statuses.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "command.hpp"
#include "core/diagnostics.hpp"
#include "core/error.hpp"
#include "core/interruption.hpp"
#include "core/output_file.hpp"
#include "driver/driver.hpp"
#include "suggestion.hpp"

namespace {

using hmmjit::diagnose;
using hmmjit::ErrorCode;
using hmmjit::print_diagnostic;

// Nothing half-written stays behind: temporaries go, finished files are whole.
void on_interrupt(int number) {
  if (!hmmjit::interrupt(number)) return;
  hmmjit::OutputFile::discard_all_temporaries();
  ::_exit(static_cast<int>(ErrorCode::kInterrupted));
}

// A mapped file that was cut short, or a disk that fails, while it is searched.
void on_bus_error(int) {
  hmmjit::OutputFile::discard_all_temporaries();
  constexpr std::string_view kMessage =
      "hmmjit: an input file was cut short or could not be read while in use; do not change "
      "databases in place\n";
  print_diagnostic(kMessage);
  ::_exit(static_cast<int>(ErrorCode::kInput));
}

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    ::sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) ::sigaction(number, &action, nullptr);  // nohup stays
  }
  action.sa_handler = on_bus_error;
  ::sigaction(SIGBUS, &action, nullptr);
  // A closed pipe or a file-size limit is an output error like any other, reported by write.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

std::string usage() {
  std::string text = "Usage: hmmjit <command> [options] [arguments]\n\nCommands:\n";
  for (const hmmjit::tools::Command& command : hmmjit::tools::commands())
    text += fmt::format("  {:12} {}\n", command.name, command.help);
  text += "\n'hmmjit help <command>' shows a command's options; 'hmmjit --version' the version.\n";
  return text;
}

int run_command(const std::vector<std::string>& arguments) {
  if (arguments.empty()) {
    print_diagnostic(usage());
    return static_cast<int>(ErrorCode::kUsage);
  }
  const std::string& name = arguments.front();
  if (name == "-h" || name == "--help") {
    fmt::print("{}", usage());
    return 0;
  }
  if (name == "help" && arguments.size() > 1) return run_command({arguments[1], "--help"});
  if (name == "help") {
    fmt::print("{}", usage());
    return 0;
  }
  // Of the program, and of each of its commands.
  const bool version_of_command =
      arguments.size() == 2 && (arguments[1] == "--version" || arguments[1] == "-V");
  if (name == "--version" || name == "-V" || version_of_command) {
    fmt::print("hmmjit {}\n", HMMJIT_VERSION);
    return 0;
  }
  const auto commands = hmmjit::tools::commands();
  const auto command = std::ranges::find(commands, name, &hmmjit::tools::Command::name);
  if (command == commands.end()) {
    std::vector<std::string> names;
    for (const auto& known : commands) names.emplace_back(known.name);
    diagnose("hmmjit: no command \"{}\"; {}\n", name,
             hmmjit::tools::did_you_mean(name, names, "hmmjit -h shows all commands"));
    return static_cast<int>(ErrorCode::kUsage);
  }
  return command->run({arguments.begin() + 1, arguments.end()});
}

int run_program(const std::vector<std::string>& arguments) {
  try {
    return run_command(arguments);
  } catch (const std::bad_alloc&) {
    print_diagnostic("hmmjit: out of memory; use fewer threads or a lower --mem\n");
    return static_cast<int>(ErrorCode::kResources);
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return 0;  // printing may fail at once: see below
    if (error.code() == std::errc::resource_unavailable_try_again) {
      print_diagnostic(
          "hmmjit: a thread could not be started; raise the limit on processes (ulimit -u)\n");
      return static_cast<int>(ErrorCode::kResources);
    }
    diagnose("hmmjit: internal error: {}\n", error.what());
    return static_cast<int>(ErrorCode::kInternal);
  } catch (const std::exception& error) {
    diagnose("hmmjit: internal error: {}\n", error.what());
    return static_cast<int>(ErrorCode::kInternal);
  }
}

}  // namespace

int main(int argc, char** argv) {
  hmmjit::occupy_standard_streams();
  install_signal_handlers();
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  // A link named hmmsearch does for scripts that cannot be edited.
  const std::string_view called = argc > 0 ? argv[0] : "";
  if (called.substr(called.find_last_of('/') + 1) == "hmmsearch")
    arguments.insert(arguments.begin(), "search");
  int code = run_program(arguments);
  // What was printed may have got no further than a buffer.
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  if (code == 0 && lost) {
    print_diagnostic("hmmjit: standard output: cannot write; check where it is redirected to\n");
    code = static_cast<int>(ErrorCode::kOutput);
  }
  hmmjit::driver::end_process_beside_abandoned(code);
  return code;
}
