#include "core/diagnostics.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "core/descriptor.hpp"

namespace hmmjit {

namespace {

// Atomic: a signal handler reads and clears it.
std::atomic<bool> status_line_shown{false};
constexpr std::string_view kErase = "\r\x1b[K";  // moves to the first column and clears the line

}  // namespace

void print_diagnostic(std::string_view text) noexcept {
  if (status_line_shown.exchange(false)) write_all(STDERR_FILENO, kErase);
  write_all(STDERR_FILENO, text);
}

void show_status_line(std::string_view text) noexcept {
  if (text.empty()) return print_diagnostic({});
  std::array<char, 512> line;  // written in one piece
  text = text.substr(0, line.size() - kErase.size());
  std::ranges::copy(kErase, line.begin());
  std::ranges::copy(text, line.begin() + kErase.size());
  write_all(STDERR_FILENO, {line.data(), kErase.size() + text.size()});
  status_line_shown = true;
}

bool standard_output_unread() noexcept {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0;
}

void occupy_standard_streams() noexcept {
  // The order matters: open returns the lowest free number.
  constexpr int kAccess[] = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int number = 0; number < 3; ++number) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", kAccess[number]) < 0) return;
  }
}

}  // namespace hmmjit
