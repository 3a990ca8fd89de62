// The hmmjit program: finds the command, prepares the process, maps failures to exit statuses.
#include <fmt/core.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <new>

#include "command.hpp"
#include "core/error.hpp"
#include "core/output_file.hpp"
#include "driver/driver.hpp"

namespace {

using hmmjit::ErrorCode;

// Nothing half-written stays behind: temporaries go, finished files are whole.
void on_interrupt(int) {
  hmmjit::OutputFile::discard_all_temporaries();
  ::_exit(static_cast<int>(ErrorCode::kInterrupted));
}

// A mapped file that was cut short, or a disk that fails, while it is searched.
void on_bus_error(int) {
  hmmjit::OutputFile::discard_all_temporaries();
  constexpr std::string_view kMessage =
      "hmmjit: an input file was cut short or could not be read while in use; do not change "
      "databases in place\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
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
  text += "\n'hmmjit <command> -h' shows a command's options; 'hmmjit --version' the version.\n";
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  if (arguments.empty()) {
    fmt::print(stderr, "{}", usage());
    return static_cast<int>(ErrorCode::kUsage);
  }
  const std::string& name = arguments.front();
  if (name == "-h" || name == "--help") {
    fmt::print("{}", usage());
    return 0;
  }
  if (name == "--version") {
    fmt::print("hmmjit {}\n", HMMJIT_VERSION);
    return 0;
  }
  const auto commands = hmmjit::tools::commands();
  const auto command = std::ranges::find(commands, name, &hmmjit::tools::Command::name);
  if (command == commands.end()) {
    fmt::print(stderr, "hmmjit: no command \"{}\"\n\n{}", name, usage());
    return static_cast<int>(ErrorCode::kUsage);
  }
  install_signal_handlers();
  try {
    const int status = command->run({arguments.begin() + 1, arguments.end()});
    hmmjit::driver::end_process_beside_abandoned(status);
    return status;
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "hmmjit: out of memory; use fewer threads or a lower --mem\n");
    return static_cast<int>(ErrorCode::kResources);
  } catch (const std::exception& error) {
    fmt::print(stderr, "hmmjit: internal error: {}\n", error.what());
    return static_cast<int>(ErrorCode::kInternal);
  }
}
