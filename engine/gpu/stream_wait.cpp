#include "gpu/stream_wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/trace.hpp"

namespace hmmjit::gpu {

Status wait_for(const driver::Stream& stream, driver::Device& device, const StreamWait& wait) {
  const double begun = Trace::now();
  for (;;) {
    HMMJIT_ASSIGN(const bool finished, stream.finished());
    const double now = Trace::now();
    if (finished) {
      if (wait.progress != nullptr) wait.progress->store(now, std::memory_order_relaxed);
      return {};
    }
    const double other =
        wait.progress != nullptr ? wait.progress->load(std::memory_order_relaxed) : begun;
    if (now - std::max(begun, other) > wait.timeout) {
      device.abandon();
      return fail(ErrorCode::kInternal, fmt::format("no answer within {} s", wait.timeout),
                  "GPU kernel");
    }
    // A fraction of the time waited so far: many lanes wait, most of them for long.
    constexpr double kPart = 1.0 / 32, kShortest = 20e-6, kLongest = 500e-6;
    std::this_thread::sleep_for(
        std::chrono::duration<double>(std::clamp((now - begun) * kPart, kShortest, kLongest)));
  }
}

}  // namespace hmmjit::gpu
