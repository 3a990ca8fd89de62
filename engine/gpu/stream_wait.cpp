#include "gpu/stream_wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <memory>

#include "core/mutex.hpp"
#include "core/trace.hpp"

namespace hmmjit::gpu {
namespace {

// Owned by the waiting thread and by the driver, which may call long after the wait was given up.
struct End {
  Mutex mutex;
  std::condition_variable changed;
  bool reached HMMJIT_GUARDED_BY(mutex) = false;
};

void reach(void* argument) {
  const std::unique_ptr<std::shared_ptr<End>> end(static_cast<std::shared_ptr<End>*>(argument));
  const MutexLock lock((*end)->mutex);
  (*end)->reached = true;
  (*end)->changed.notify_all();
}

}  // namespace

Status wait_for(const driver::Stream& stream, driver::Device& device, const StreamWait& wait) {
  // The driver does not call if a launch has failed: the stream is asked once in a while.
  constexpr std::chrono::milliseconds kLookForErrors{100};
  const double begun = Trace::now();
  const auto end = std::make_shared<End>();
  auto argument = std::make_unique<std::shared_ptr<End>>(end);
  HMMJIT_TRY(stream.then(reach, argument.get()));
  (void)argument.release();
  MutexLock lock(end->mutex);
  while (!end->reached) {
    lock.wait_for(end->changed, kLookForErrors);
    if (end->reached) break;
    lock.unlock();
    HMMJIT_TRY(stream.finished());
    const double other =
        wait.progress != nullptr ? wait.progress->load(std::memory_order_relaxed) : begun;
    if (Trace::now() - std::max(begun, other) > wait.timeout) {
      device.abandon();
      return fail(ErrorCode::kInternal, fmt::format("no answer within {} s", wait.timeout),
                  "GPU kernel");
    }
    lock.lock();
  }
  if (wait.progress != nullptr) wait.progress->store(Trace::now(), std::memory_order_relaxed);
  return {};
}

Status download(const driver::DeviceBuffer& from, const driver::Stream& stream,
                driver::Device& device, const StreamWait& wait, void* to, std::size_t bytes,
                std::size_t offset) {
  HMMJIT_TRY(wait_for(stream, device, wait));
  HMMJIT_TRY(from.download(stream, to, bytes, offset));
  return wait_for(stream, device, wait);
}

}  // namespace hmmjit::gpu
