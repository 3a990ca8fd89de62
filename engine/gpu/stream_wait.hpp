// Waiting for a stream of a device that may hang.
#pragma once

#include <atomic>

#include "driver/driver.hpp"

namespace hmmjit::gpu {

struct StreamWait {
  /// Seconds without the end of any launch of the device after which this one counts as lost.
  double timeout = 60;
  /// End of the last launch (Trace::now), updated by each wait. Launches wait for one another, so
  /// a long wait alone does not mean a stuck one.
  std::atomic<double>* progress = nullptr;
};

/// Returns when the stream is empty. Sleeps until the driver calls: the cores are needed for the
/// stages after the filters. kInternal when there is no answer in time: the device has been
/// abandoned then.
Status wait_for(const driver::Stream& stream, driver::Device& device, const StreamWait& wait);

}  // namespace hmmjit::gpu
