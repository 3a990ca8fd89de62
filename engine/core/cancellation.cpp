#include "core/cancellation.hpp"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <ctime>
#include <system_error>
#include <vector>

namespace hmmjit {

Event::Event() : descriptor_(::eventfd(0, EFD_CLOEXEC)) {
  if (descriptor_.get() < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

bool Cancellation::cancelled() const noexcept {
  return cancelled_ || (deadline_ && std::chrono::steady_clock::now() >= *deadline_) ||
         (other_ != nullptr && other_->cancelled());
}

bool Cancellation::wait(const Event& event, const Cancellation* cancellation) {
  std::vector<pollfd> events{{event.descriptor_.get(), POLLIN, 0}};
  std::optional<Time> deadline;
  for (const Cancellation* one = cancellation; one != nullptr; one = one->other_) {
    events.push_back({one->event_.descriptor_.get(), POLLIN, 0});
    if (one->deadline_) deadline = std::min(*one->deadline_, deadline.value_or(*one->deadline_));
  }
  for (;;) {
    const std::chrono::nanoseconds left =
        deadline.value_or(Time()) - std::chrono::steady_clock::now();
    const std::int64_t most = std::max<std::int64_t>(0, left.count());
    const timespec time{most / 1'000'000'000, most % 1'000'000'000};
    ::ppoll(events.data(), events.size(), deadline ? &time : nullptr, nullptr);
    if (events[0].revents != 0) return true;
    if (cancellation != nullptr && cancellation->cancelled()) return false;
  }
}

}  // namespace hmmjit
