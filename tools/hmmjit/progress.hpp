// Progress of a search on stderr.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>

#include "search/search.hpp"

namespace hmmjit::tools {

/// The share of a search that is done, by time. Counts both filtering and scoring, whose ratio
/// depends on the data: with the times per cell measured so far, and assuming that unfiltered cells
/// lead to as many cells to score as filtered ones did. nullopt while inputs of unknown size
/// (pipes, compressed files) are unread. `model_bytes`, `model_bytes_total`: of the model file; 0:
/// unknown.
std::optional<double> share_done(const SearchProgress& progress, std::uint64_t model_bytes,
                                 std::uint64_t model_bytes_total);

/// One line without line end, at most `width` characters (0: no limit), the most important items
/// first. Omits items that do not fit.
std::string progress_line(const SearchProgress& progress, std::optional<double> share,
                          double seconds, std::size_t width);

/// False if progress would mix with the report: both go to a terminal, or to one file or pipe, or
/// the report goes to a pipe, whose reader may write to the same terminal. Also false in a log with
/// `as_hmmer` (called by HMMER's name): HMMER writes no progress. `report_in_file`: the report goes
/// to an output file.
bool progress_fits(bool report_in_file, bool as_hmmer);

/// Shows rate and estimated remaining time during its lifetime: on a terminal in one line,
/// rewritten in place; elsewhere one line per minute. Sleeps in between.
class ProgressDisplay {
 public:
  /// Size and read bytes of the model file (0: unknown) give an estimate of the remaining models.
  /// All three must outlive the display. `interval`: between lines; default as above.
  ProgressDisplay(const SearchProgress& progress, const std::atomic<std::uint64_t>& model_bytes,
                  const std::atomic<std::uint64_t>& model_bytes_total,
                  std::optional<std::chrono::milliseconds> interval = std::nullopt);

 private:
  void run(const std::stop_token& ended) const;

  const SearchProgress& progress_;
  const std::atomic<std::uint64_t>& model_bytes_;
  const std::atomic<std::uint64_t>& model_bytes_total_;
  bool terminal_;
  std::chrono::milliseconds interval_;
  std::jthread thread_;
};

}  // namespace hmmjit::tools
