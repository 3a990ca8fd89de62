// Messages to the user on the terminal.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace hmmjit {

/// Writes `text` to standard error, unbuffered and in one piece where the system allows it.
/// Failures are ignored, because a lost standard error (closed, full, its reader gone) must never
/// change what a run does. Thread-safe.
void print_diagnostic(std::string_view text) noexcept;

/// Shows a line on the terminal that the next call rewrites and `print_diagnostic` erases; empty
/// text erases it. Call it only if standard error is a terminal, and only from one thread.
void show_status_line(std::string_view text) noexcept;

/// print_diagnostic with a format.
template <typename... Arguments>
void diagnose(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  print_diagnostic(fmt::format(format, std::forward<Arguments>(arguments)...));
}

/// Whether standard output is a pipe whose reader has gone.
bool standard_output_unread() noexcept;

/// Replaces closed descriptors 0, 1 and 2 by placeholders that refuse reading (0) or writing (1) or
/// swallow diagnostics (2). Otherwise the next file opened would get that number and receive the
/// standard stream's data. Must be called before any file is opened.
void occupy_standard_streams() noexcept;

}  // namespace hmmjit
