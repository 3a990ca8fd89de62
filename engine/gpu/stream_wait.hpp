// Waits for a stream of a device that may hang.
#pragma once

#include <atomic>

#include "driver/driver.hpp"

namespace hmmjit::gpu {

/// How long to wait for a stream, and what ends the wait.
struct StreamWait {
  /// Seconds without the end of any launch on the device after which this launch counts as lost.
  double timeout = 60;
  /// End of the last launch (Trace::now), updated by each wait. Launches wait for one another, so a
  /// long wait alone does not indicate a stuck one.
  std::atomic<double>* progress = nullptr;
};

/// Returns when the stream is empty. Sleeps until the driver calls, because the cores are needed
/// for the stages after the filters. Fails with kInternal if there is no answer in time; the device
/// has then been abandoned.
Status wait_for(const driver::Stream& stream, driver::Device& device, const StreamWait& wait);

/// Copies `bytes` of a buffer to `to` once the stream is empty, and returns when they have arrived.
/// The copy engine takes copies in order of request: one queued behind a kernel would delay those
/// of all streams.
Status download(const driver::DeviceBuffer& from, const driver::Stream& stream,
                driver::Device& device, const StreamWait& wait, void* to, std::size_t bytes,
                std::size_t offset = 0);

}  // namespace hmmjit::gpu
