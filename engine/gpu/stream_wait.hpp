// Waiting for a stream of a device that may hang.
#pragma once

#include <atomic>

#include "driver/driver.hpp"

namespace hmmjit::gpu {

struct StreamWait {
  /// After so many seconds in which no launch of the device ended, this one counts as lost.
  double timeout = 60;
  /// Time at which the last launch ended (Trace::now), updated by each wait. Launches wait for one
  /// another, so that one that waits long need not be stuck.
  std::atomic<double>* progress = nullptr;
};

/// Returns when the stream is empty. Sleeps rather than spins: the cores are needed for the
/// stages after the filters. kInternal when there is no answer in time: the device has been
/// abandoned then.
Status wait_for(const driver::Stream& stream, driver::Device& device, const StreamWait& wait);

}  // namespace hmmjit::gpu
