// When chains of launches began, and when their stages ended.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "driver/driver.hpp"

namespace hmmjit::gpu {

/// Times of the chains of a stream. The driver measures in floats, which lose digits between events
/// that are far apart; therefore a begin is measured from the begin before, and ends from their
/// begin.
class ChainClock {
 public:
  ChainClock() = default;
  /// `origin`: a finished event at time 0. It must live until the first read().
  static Result<ChainClock> create(const driver::DevicePtr& device, const driver::Event& origin) {
    ChainClock out;
    out.origin_ = &origin;
    HMMJIT_ASSIGN(out.begin_, driver::Event::create(device, true));
    HMMJIT_ASSIGN(out.begin_before_, driver::Event::create(device, true));
    return out;
  }
  /// Queues the begin of a chain.
  Status begin(const driver::Stream& stream) { return begin_.record(stream); }
  /// The time of the begin and, in `times`, those of `ends`, which must have finished; in
  /// milliseconds.
  Result<double> read(std::span<const driver::Event> ends, std::span<double> times) {
    const driver::Event& known = origin_ != nullptr ? *origin_ : begin_before_;
    HMMJIT_ASSIGN(const float waited, driver::Event::milliseconds(known, begin_));
    begin_time_ += static_cast<double>(waited);
    std::swap(begin_, begin_before_);
    origin_ = nullptr;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      HMMJIT_ASSIGN(const float taken, driver::Event::milliseconds(begin_before_, ends[i]));
      times[i] = begin_time_ + static_cast<double>(taken);
    }
    return begin_time_;
  }

 private:
  const driver::Event* origin_ = nullptr;  // null once a chain has been read
  double begin_time_ = 0;                  // of the last chain read, in milliseconds
  driver::Event begin_, begin_before_;
};

}  // namespace hmmjit::gpu
