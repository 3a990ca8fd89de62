#include "core/diagnostics.hpp"

#include <fcntl.h>
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

void occupy_standard_streams() noexcept {
  // In this order: open takes the lowest number that is free.
  constexpr int kAccess[] = {O_WRONLY, O_RDONLY, O_RDWR};
  for (int number = 0; number < 3; ++number) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    if (::open("/dev/null", kAccess[number]) < 0) return;
  }
}

}  // namespace hmmjit
