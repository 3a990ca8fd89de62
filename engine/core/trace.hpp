// A timeline of a run, written in the Chrome trace event format (chrome://tracing, Perfetto).
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <vector>

#include "core/error.hpp"

namespace hmmjit {

/// Collects spans from any thread. Times are in seconds of the steady clock.
class Trace {
 public:
  static double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }

  /// The time at which now() is `seconds`.
  static std::chrono::steady_clock::time_point time_point(double seconds) {
    using Clock = std::chrono::steady_clock;
    return Clock::time_point(
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  }

  /// Adds a span on row `row` of the group `group` ("cpu", "gpu 0", "compiler", ...).
  void add(std::string_view group, int row, std::string_view name, double begin, double end);
  /// Adds a span on the calling thread's own row.
  void add(std::string_view group, std::string_view name, double begin, double end);
  std::string json() const;

 private:
  struct Span {
    std::string group, name;
    int row;
    double begin, end;
  };
  const double origin_ = now();
  mutable std::mutex mutex_;
  std::vector<Span> spans_;
};

}  // namespace hmmjit
