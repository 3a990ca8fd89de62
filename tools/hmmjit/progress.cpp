#include "progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
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

}  // namespace

ProgressDisplay::ProgressDisplay(const SearchProgress& progress,
                                 const std::atomic<std::uint64_t>* model_bytes_read,
                                 std::uint64_t model_bytes_total)
    : progress_(progress),
      model_bytes_read_(model_bytes_read),
      model_bytes_total_(model_bytes_total),
      terminal_(::isatty(STDERR_FILENO) == 1) {
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error&) {
    // No thread is to be had. A search does without a display.
  }
}

ProgressDisplay::~ProgressDisplay() {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::string ProgressDisplay::line(double seconds) const {
  const auto cells = static_cast<double>(progress_.cells);
  std::string text =
      fmt::format("hmmjit: {} models done, {} targets, {:.1f} Gcells, {:.1f} Gcells/s",
                  progress_.models_done.load(), progress_.targets.load(), cells / 1e9,
                  cells / 1e9 / std::max(seconds, 1e-9));
  // Work known so far, extended by the unread parts of both inputs.
  double known = static_cast<double>(progress_.cells_queued);
  bool complete = known > 0;
  if (!progress_.targets_complete) {
    const auto read = static_cast<double>(progress_.target_bytes_read);
    const auto total = static_cast<double>(progress_.target_bytes_total);
    complete &= read > 0 && total > 0;
    if (complete) known *= std::max(1.0, total / read);
  }
  const auto read = model_bytes_read_ != nullptr ? static_cast<double>(*model_bytes_read_) : 0.0;
  complete &= read > 0 && model_bytes_total_ > 0;
  if (complete) {
    known *= std::max(1.0, static_cast<double>(model_bytes_total_) / read);
    const double share = std::min(1.0, cells / known);
    text += fmt::format(", {:.0f} %", 100 * share);
    if (share > 0.01) text += fmt::format(", {} left", clock(seconds / share - seconds));
  }
  return text;
}

void ProgressDisplay::run() {
  const auto begun = std::chrono::steady_clock::now();
  const auto interval = terminal_ ? std::chrono::milliseconds(500) : std::chrono::seconds(30);
  std::size_t shown = 0;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval, [this] { return done_; })) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    std::string text = line(seconds);
    if (terminal_) {
      const std::size_t length = text.size();
      if (length < shown) text.append(shown - length, ' ');
      shown = length;
      diagnose("\r{}", text);
    } else {
      diagnose("{}\n", text);
    }
  }
  if (shown > 0) {
    diagnose("\r{}\r", std::string(shown, ' '));
  }
}

}  // namespace hmmjit::tools
