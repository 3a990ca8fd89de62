#include "gpu/stream_wait.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <optional>

#include "core/mutex.hpp"
#include "core/trace.hpp"

namespace hmmjit::gpu {
namespace {

// Shared by the waiting thread and the driver, which may call long after the wait has ended.
struct End {
  Mutex mutex;
  std::condition_variable changed;
  std::optional<int> result HMMJIT_GUARDED_BY(mutex);  // of the driver
};

void reach(driver::StreamHandle, int result, void* argument) {
  const std::unique_ptr<std::shared_ptr<End>> end(static_cast<std::shared_ptr<End>*>(argument));
  const MutexLock lock((*end)->mutex);
  (*end)->result = result;
  (*end)->changed.notify_all();
}

}  // namespace

Status wait_for(const driver::Stream& stream, driver::Device& device, const StreamWait& wait) {
  const double begun = Trace::now();
  const auto end = std::make_shared<End>();
  auto argument = std::make_unique<std::shared_ptr<End>>(end);
  HMMJIT_TRY(stream.then(reach, argument.get()));
  (void)argument.release();
  MutexLock lock(end->mutex);
  while (!end->result) {
    const double other =
        wait.progress != nullptr ? wait.progress->load(std::memory_order_relaxed) : begun;
    const double deadline = std::max(begun, other) + wait.timeout;
    if (Trace::now() > deadline) {
      device.abandon();
      return fail(ErrorCode::kInternal, fmt::format("no answer within {} s", wait.timeout),
                  "GPU kernel");
    }
    lock.wait_until(end->changed, Trace::time_point(deadline));
  }
  HMMJIT_TRY(device.driver().check(*end->result, "the work of a stream"));
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
