// Waiting for a stream of a device that may hang.
#pragma once

#include <atomic>

#include "driver/driver.hpp"

namespace hmmjit::gpu {

struct StreamWait {
  /// Seconds without any launch of the device coming to an end until this one counts as lost.
  double timeout = 60;
  /// When the last one ended (Trace::now); written here. Launches wait for one another, so that
  /// one that waits long need not be stuck.
  std::atomic<double>* progress = nullptr;
};

/// Returns when the stream is empty. Sleeps rather than spins: the cores are needed for the
/// stages after the filters. kInternal when there is no answer in time: the device has been
/// abandoned then.
Status wait_for(const driver::Stream& stream, driver::Device& device, const StreamWait& wait);

}  // namespace hmmjit::gpu
