#include "progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>

#include "core/diagnostics.hpp"

namespace hmmjit::tools {
namespace {

std::string clock(double seconds) {
  const auto whole = static_cast<long>(seconds + 0.5);
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

// Usable columns of a line. The last column stays free: some terminals wrap there.
std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 79;
  return std::max<std::size_t>(size.ws_col, 2) - 1;
}

// Time to score a cell, as a multiple of the time to filter one: the estimate before any is scored.
constexpr double kScoringToFiltering = 10;

}  // namespace

std::optional<double> share_done(const SearchProgress& progress, std::uint64_t model_bytes,
                                 std::uint64_t model_bytes_total) {
  const auto filtered = static_cast<double>(progress.cells);
  const auto scored = static_cast<double>(progress.scoring_cells);
  // Known cells, extrapolated to the unread parts of both inputs.
  auto to_filter = static_cast<double>(progress.cells_queued);
  if (!(filtered > 0) || !(to_filter > 0) || model_bytes == 0 || model_bytes_total == 0)
    return std::nullopt;
  if (!progress.targets_complete) {
    const auto read = static_cast<double>(progress.target_bytes_read);
    const auto total = static_cast<double>(progress.target_bytes_total);
    if (!(read > 0) || !(total > 0)) return std::nullopt;
    to_filter *= std::max(1.0, total / read);
  }
  to_filter *=
      std::max(1.0, static_cast<double>(model_bytes_total) / static_cast<double>(model_bytes));
  to_filter = std::max(to_filter, filtered);
  const auto found = static_cast<double>(progress.scoring_cells_found);
  const double to_score = std::max(scored, found / filtered * to_filter);

  const double per_filtered =
      std::max(static_cast<double>(progress.filter_microseconds), 1.0) / filtered;
  const double per_scored =
      scored > 0 ? std::max(static_cast<double>(progress.scoring_microseconds), 1.0) / scored
                 : kScoringToFiltering * per_filtered;
  const double all = to_filter * per_filtered + to_score * per_scored;
  return std::min(1.0, (filtered * per_filtered + scored * per_scored) / all);
}

std::string progress_line(const SearchProgress& progress, std::optional<double> share,
                          double seconds, std::size_t width) {
  std::string text = "hmmjit: ";
  if (share) {
    text += fmt::format("{:.0f} %, ", 100 * *share);
    if (*share > 0.01) text += fmt::format("{} left, ", clock(seconds / *share - seconds));
  }
  const auto cells = static_cast<double>(progress.earlier_cells + progress.cells);
  text += fmt::format("{} models done, {} targets", progress.models_done.load(),
                      progress.targets.load());
  if (cells > 0)
    text += fmt::format(", {:.1f} Gcells, {:.1f} Gcells/s", cells / 1e9,
                        cells / 1e9 / std::max(seconds, 1e-9));
  if (width > 0 && text.size() > width) text.resize(std::min(width, text.rfind(", ", width)));
  return text;
}

bool progress_fits(bool report_in_file, bool as_hmmer) {
  const bool terminal = ::isatty(STDERR_FILENO) == 1;
  if (as_hmmer && !terminal) return false;
  struct stat report {
  }, progress{};
  if (report_in_file || ::fstat(STDOUT_FILENO, &report) != 0 ||
      ::fstat(STDERR_FILENO, &progress) != 0)
    return true;
  if (!terminal) return report.st_dev != progress.st_dev || report.st_ino != progress.st_ino;
  return S_ISREG(report.st_mode) || (S_ISCHR(report.st_mode) && ::isatty(STDOUT_FILENO) != 1);
}

ProgressDisplay::ProgressDisplay(const SearchProgress& progress,
                                 const std::atomic<std::uint64_t>& model_bytes,
                                 const std::atomic<std::uint64_t>& model_bytes_total,
                                 std::optional<std::chrono::milliseconds> interval)
    : progress_(progress),
      model_bytes_(model_bytes),
      model_bytes_total_(model_bytes_total),
      terminal_(::isatty(STDERR_FILENO) == 1),
      interval_(
          interval.value_or(terminal_ ? std::chrono::milliseconds(500) : std::chrono::minutes(1))) {
  try {
    thread_ = std::jthread([this](const std::stop_token& ended) { run(ended); });
  } catch (const std::system_error&) {
    // No thread: the search runs without a display.
  }
}

void ProgressDisplay::run(const std::stop_token& ended) const {
  const auto begun = std::chrono::steady_clock::now();
  std::mutex mutex;
  std::unique_lock lock(mutex);
  std::condition_variable_any wake;
  while (!wake.wait_for(lock, ended, interval_, [&] { return ended.stop_requested(); })) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    const auto share = share_done(progress_, model_bytes_, model_bytes_total_);
    if (!terminal_) {
      diagnose("{}\n", progress_line(progress_, share, seconds, 0));
      continue;
    }
    show_status_line(progress_line(progress_, share, seconds, terminal_columns()));
  }
  show_status_line({});
}

}  // namespace hmmjit::tools
