// Progress of a search on stderr.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "search/search.hpp"

namespace hmmjit::tools {

/// Shows rate and estimated time left while it lives: on a terminal one line rewritten in place,
/// elsewhere one line every half minute. Sleeps in between.
class ProgressDisplay {
 public:
  /// `models_file`: its size and the share read so far estimate how many models are to come;
  /// null or zero where that is unknown. Both pointers must outlive the display.
  ProgressDisplay(const SearchProgress& progress,
                  const std::atomic<std::uint64_t>* model_bytes_read,
                  std::uint64_t model_bytes_total);
  ~ProgressDisplay();

 private:
  void run();
  std::string line(double seconds) const;

  const SearchProgress& progress_;
  const std::atomic<std::uint64_t>* model_bytes_read_;
  std::uint64_t model_bytes_total_;
  bool terminal_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace hmmjit::tools
