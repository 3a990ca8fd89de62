// Messages to the user on the terminal.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace hmmjit {

/// Writes `text` to standard error, unbuffered and in one piece where the system allows it.
/// Failures are ignored, because a lost standard error (closed, full, its reader gone) must not
/// change the results of a run. Thread-safe.
void print_diagnostic(std::string_view text) noexcept;

/// Shows a line on the terminal that the next call rewrites and `print_diagnostic` erases; empty
/// text erases it. Call it only if standard error is a terminal, and only from one thread.
void show_status_line(std::string_view text) noexcept;

/// print_diagnostic with a format.
template <typename... Arguments>
void diagnose(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_diagnostic(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// True if standard output is a pipe whose reader has gone.
bool standard_output_unread() noexcept;

/// Opens /dev/null for each closed descriptor 0, 1 or 2: reads from 0 and writes to 1 fail, writes
/// to 2 are dropped. Otherwise the next opened file would get that number, and with it the standard
/// stream's data. Call it before any file is opened.
void occupy_standard_streams() noexcept;

}  // namespace hmmjit
