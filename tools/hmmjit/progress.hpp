// Progress of a search on stderr.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <thread>

#include "search/search.hpp"

namespace hmmjit::tools {

/// How far a search is: the share done, by the time its parts take. Filtering and scoring take
/// turns that depend on the data, so both count: with the time per cell seen so far, and with as
/// many cells to score among those not yet filtered as among the others. Inputs of unknown size
/// (pipes, compressed files) give no share until they are read. `model_bytes` and
/// `model_bytes_total`: of the model file, 0 where unknown.
std::optional<double> share_done(const SearchProgress& progress, std::uint64_t model_bytes,
                                 std::uint64_t model_bytes_total);

/// One line without its end, at most `width` characters (0: as long as it gets), the most important
/// first. What does not fit whole is left out.
std::string progress_line(const SearchProgress& progress, std::optional<double> share,
                          double seconds, std::size_t width);

/// False where progress would come among the report: both go to a terminal or into one file or
/// pipe, or the report goes to a pipe, whose reader may well write to the same terminal; and where
/// `as_hmmer` the program has HMMER's name, which writes nothing into a log. `report_in_file`: an
/// output file takes the report.
bool progress_fits(bool report_in_file, bool as_hmmer);

/// Shows rate and estimated time left while it lives: on a terminal one line rewritten in place,
/// elsewhere one line a minute. Sleeps in between.
class ProgressDisplay {
 public:
  /// The model file's size and the part of it that was read estimate how many models are to come;
  /// zero where that is unknown. All three must outlive the display. `interval`: of the lines, by
  /// default as above.
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
