#include "core/diagnostics.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace hmmjit {

void print_diagnostic(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return;
    }
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

bool standard_output_unread() noexcept {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0;
}

void occupy_standard_streams() noexcept {
  // In this order: open takes the lowest number that is free.
  constexpr int kAccess[] = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int number = 0; number < 3; ++number) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", kAccess[number]) < 0) return;
  }
}

}  // namespace hmmjit
