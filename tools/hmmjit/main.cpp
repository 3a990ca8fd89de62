// The hmmjit program: finds the command, prepares the process, maps failures to exit statuses.
#include <fmt/core.h>
#include <malloc.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <new>
#include <string_view>
#include <system_error>
#include <utility>

#include "command.hpp"
#include "core/diagnostics.hpp"
#include "core/error.hpp"
#include "core/interruption.hpp"
#include "core/output_file.hpp"
#include "driver/driver.hpp"
#include "search_inputs.hpp"

namespace {

using hmmjit::diagnose;
using hmmjit::ErrorCode;
using hmmjit::print_diagnostic;

constexpr std::string_view kOutOfMemory =
    "hmmjit: out of memory; use fewer threads, or a lower --mem if the command has it\n";
constexpr std::string_view kNoThread =
    "hmmjit: a thread could not be started; use fewer threads (--cpu), or raise the limit on "
    "processes (ulimit -u) or memory (ulimit -v)\n";

// Programs of HMMER, and the commands that replace them.
using Replaced = std::pair<std::string_view, std::string_view>;
constexpr std::array<Replaced, 8> kReplacedPrograms{{
    {"hmmsearch", "search"},
    {"hmmscan", "scan"},
    {"hmmbuild", "build"},
    {"hmmalign", "align"},
    {"phmmer", "phmmer"},
    {"jackhmmer", "jackhmmer"},
    {"nhmmer", "nhmmer"},
    {"nhmmscan", "nhmmscan"},
}};

// Programs of HMMER that hmmjit does not replace.
constexpr std::string_view kOtherPrograms[] = {
    "alimask",       "hmmc2",    "hmmconvert", "hmmemit", "hmmerfm-exactmatch", "hmmfetch", "hmmlogo", "hmmpgmd",
    "hmmpgmd_shard", "hmmpress", "hmmsim",     "hmmstat", "makehmmerdb"};

bool is_other_program(std::string_view name) {
  return std::ranges::find(kOtherPrograms, name) != std::end(kOtherPrograms) ||
         name.starts_with("esl-");
}

int refuse_program(std::string_view name) {
  diagnose("hmmjit: there is no {0} in hmmjit; use HMMER's {0}\n", name);
  return static_cast<int>(ErrorCode::kUsage);
}

// Ends the process by the signal itself: a shell then stops its loop at Ctrl-C, and a batch system
// can tell a time limit from a failure. Async-signal-safe.
[[noreturn]] void end_by_signal(int number) {
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(number, &usual, nullptr);
  sigset_t only;
  ::sigemptyset(&only);
  ::sigaddset(&only, number);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::raise(number);
  ::_exit(128 + number);  // in a container, process 1 survives its own signals
}

// Called by a name of HMMER's, whose programs have one status for all failures; callers compare
// with it.
bool as_hmmer = false;

int status_of(ErrorCode code) { return as_hmmer ? EXIT_FAILURE : static_cast<int>(code); }

// Removes temporaries: no partial output may remain.
void on_interrupt(int number) {
  if (!hmmjit::interrupt(number)) return;
  hmmjit::OutputFile::discard_all_temporaries();
  std::string_view message = hmmjit::OutputFile::any_published()
                                 ? "\nhmmjit: interrupted; what had been completed stays\n"
                                 : "\nhmmjit: interrupted; no output was written\n";
  // On a terminal, the message begins on a new line, after ^C or a line of progress.
  if (::isatty(STDERR_FILENO) == 0) message.remove_prefix(1);
  print_diagnostic(message);
  end_by_signal(number);
}

// After a bug or an abort of a library: removes temporaries; the system does the rest. A signal
// from another process waits until no file is being created.
void on_crash(int number, siginfo_t* information, void*) {
  const bool sent = information->si_code == SI_USER && information->si_pid != ::getpid();
  if (sent && !hmmjit::interrupt(number)) return;
  hmmjit::OutputFile::discard_all_temporaries();
  end_by_signal(number);
}

// Ends the process after an uncaught exception.
[[noreturn]] void on_terminate() {
  hmmjit::OutputFile::discard_all_temporaries();
  std::string_view message = "hmmjit: internal error: an exception outside any command\n";
  auto code = ErrorCode::kInternal;
  if (const std::exception_ptr exception = std::current_exception()) {
    try {
      std::rethrow_exception(exception);
    } catch (const std::bad_alloc&) {
      message = kOutOfMemory;
      code = ErrorCode::kResources;
    } catch (const std::system_error&) {
      message = kNoThread;
      code = ErrorCode::kResources;
    } catch (...) {
    }
  }
  print_diagnostic(message);
  ::_exit(status_of(code));
}

// Reports that a mapped file was truncated, or that a disk failed, during the search.
void on_bus_error(int) {
  hmmjit::OutputFile::discard_all_temporaries();
  constexpr std::string_view kMessage =
      "hmmjit: an input file was cut short or could not be read while in use; do not change "
      "databases in place\n";
  print_diagnostic(kMessage);
  ::_exit(status_of(ErrorCode::kInput));
}

// The signals by which people, terminals and batch systems end a process.
constexpr std::initializer_list<int> kInterruptions = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                                       SIGXCPU, SIGUSR1, SIGUSR2, SIGALRM};

void install_signal_handlers() {
  struct sigaction action {};
  const auto handle = [&action](std::initializer_list<int> numbers) {
    for (const int number : numbers) {
      struct sigaction before {};
      ::sigaction(number, nullptr, &before);
      // Keeps signals that are ignored (nohup) or handled by a sanitizer.
      if (before.sa_handler == SIG_DFL) ::sigaction(number, &action, nullptr);
    }
  };
  action.sa_handler = on_interrupt;
  ::sigemptyset(&action.sa_mask);
  for (const int number : kInterruptions) ::sigaddset(&action.sa_mask, number);
  action.sa_flags = SA_RESTART;
  handle(kInterruptions);
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  handle({SIGSEGV, SIGILL, SIGFPE, SIGABRT, SIGSYS});
  action.sa_flags = SA_RESTART;
  action.sa_handler = on_bus_error;
  ::sigaction(SIGBUS, &action, nullptr);
  // Closed pipes and file-size limits are output errors, which write reports.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

// The GNU C library grows a thread's arena by a page at a time, in a system call that waits for the
// page faults of all threads: 9,000 calls in a search of one second. Arenas therefore begin with
// room. This setting stops the library from adapting its other limits, which get the values that
// they would reach in a search.
void set_up_allocator() {
#ifdef M_TOP_PAD
  ::mallopt(M_TOP_PAD, 6 << 20);
  ::mallopt(M_MMAP_THRESHOLD, 4 << 20);
  ::mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
}

std::string usage() {
  std::string text = "Usage: hmmjit <command> [options] [arguments]\n\nCommands:\n";
  for (const hmmjit::tools::CommandSpec& command : hmmjit::tools::commands())
    text += fmt::format("  {:12} {}\n", command.name, command.summary);
  text +=
      "\n'hmmjit help <command>' shows a command's options; 'hmmjit --version' the "
      "version,\n'hmmjit --version --verbose' what a bug report should say.\n";
  return text;
}

bool is_version(std::string_view word) { return word == "--version" || word == "-V"; }

int run_words(const std::vector<std::string>& words) {
  if (words.empty()) {
    print_diagnostic(usage());
    return static_cast<int>(ErrorCode::kUsage);
  }
  const std::string& name = words.front();
  const std::string second = words.size() == 2 ? words[1] : std::string();
  if (name == "help" && words.size() > 1) return run_words({words[1], "--help"});
  if (name == "-h" || name == "--help" || name == "help") {
    fmt::print("{}", usage());
    return 0;
  }
  if ((is_version(name) && second == "--verbose") || (name == "--verbose" && is_version(second))) {
    fmt::print("{}", hmmjit::tools::version_text());
    return 0;
  }
  // Help of the program and of each command. Links with names of HMMER programs insert
  // --hmmer-banner.
  const bool of_link = words.size() == 3 && words[1] == "--hmmer-banner";
  if ((words.size() <= 2 || of_link) && is_version(words.back())) {
    fmt::print("hmmjit {}\n", HMMJIT_VERSION);
    return 0;
  }
  if (is_other_program(name)) return refuse_program(name);
  const auto replaced = std::ranges::find(kReplacedPrograms, name, &Replaced::first);
  const auto command = hmmjit::tools::find_command(name);
  if (!command && replaced != kReplacedPrograms.end()) {
    diagnose("hmmjit: no command \"{}\"; did you mean {}?\n", name, replaced->second);
    return static_cast<int>(ErrorCode::kUsage);
  }
  if (!command) return hmmjit::tools::report_failure("hmmjit", command.error());
  return hmmjit::tools::run_command(*command, fmt::format("hmmjit {}", name),
                                    {words.begin() + 1, words.end()});
}

int run_program(const std::vector<std::string>& arguments) {
  try {
    return run_words(arguments);
  } catch (const std::bad_alloc&) {
    print_diagnostic(kOutOfMemory);
    return static_cast<int>(ErrorCode::kResources);
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return 0;  // printing may fail at once: see below
    if (error.code() == std::errc::resource_unavailable_try_again) {
      print_diagnostic(kNoThread);
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
  std::set_terminate(on_terminate);
  set_up_allocator();
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  // Links with the names of HMMER's programs: for scripts that cannot be edited, and for programs
  // that read names and versions in outputs.
  std::string_view called = argc > 0 ? argv[0] : "";
  called.remove_prefix(called.find_last_of('/') + 1);
  if (is_other_program(called)) return refuse_program(called);
  const auto replaced = std::ranges::find(kReplacedPrograms, called, &Replaced::first);
  as_hmmer = replaced != kReplacedPrograms.end();
  if (as_hmmer) {
    // Callers take any line on HMMER's standard error for a failure.
    constexpr std::string_view kVerbose = "--verbose", kLeast = "--verb";
    const bool verbose = std::ranges::any_of(arguments, [&](const std::string& word) {
      return word.starts_with(kLeast) && kVerbose.starts_with(word);
    });
    if (::isatty(STDERR_FILENO) == 0 && !verbose) hmmjit::tools::drop_warnings();
    arguments.insert(arguments.begin(), {std::string(replaced->second), "--hmmer-banner"});
  }
  int code = run_program(arguments);
  // Printed text may still be in a buffer.
  const bool lost = std::fflush(stdout) != 0 || std::ferror(stdout) != 0;
  // The reader of a pipe is gone (`| head`): end silently, as programs do by default.
  if ((lost || code == static_cast<int>(ErrorCode::kOutput)) && hmmjit::standard_output_unread()) {
    hmmjit::OutputFile::discard_all_temporaries();
    end_by_signal(SIGPIPE);
  }
  // Removes temporaries after any failure, even during the opening of an output.
  if (code != 0) hmmjit::OutputFile::discard_all_temporaries();
  if (code == 0 && lost) {
    print_diagnostic("hmmjit: standard output: cannot write; check where it is redirected to\n");
    code = static_cast<int>(ErrorCode::kOutput);
  }
  if (code != 0 && code < 128) code = status_of(static_cast<ErrorCode>(code));
  hmmjit::driver::end_process_beside_abandoned(code);
  return code;
}
