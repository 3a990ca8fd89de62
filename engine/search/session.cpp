#include "search/session.hpp"

#include <fmt/format.h>

#include <chrono>

namespace hmmjit {

// The use of the devices by one search.
class Session::Turn {
 public:
  Turn(Session& session, const SearchOptions& options) : session_(session) {
    MutexLock lock(session_.mutex_);
    session_.turns_.push_back(this);
    while (session_.turns_.front() != this && !cancelled_) {
      if (!options.cancelled) {
        lock.wait(session_.next_turn_);
        continue;
      }
      // Nothing signals a cancellation: a search that waits asks for it.
      lock.wait_for(session_.next_turn_, kCancellationCheck);
      lock.unlock();
      cancelled_ = options.cancelled();
      lock.lock();
    }
    if (cancelled_) return;
    devices_ = session_.devices_;
    lock.unlock();
    const MutexLock listening(session_.warning_mutex_);
    session_.listener_ = &options;
    if (!options.on_device_warning) return;
    for (const Error& warning : std::exchange(session_.unheard_, {}))
      options.on_device_warning(warning);
  }
  ~Turn() {
    if (!cancelled_) {
      const MutexLock listening(session_.warning_mutex_);
      session_.listener_ = nullptr;
    }
    const MutexLock lock(session_.mutex_);
    std::erase(session_.turns_, this);
    session_.next_turn_.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  gpu::GpuFilters* devices() const { return devices_.get(); }
  bool cancelled() const { return cancelled_; }

 private:
  static constexpr std::chrono::milliseconds kCancellationCheck{100};
  Session& session_;
  bool cancelled_ = false;
  std::shared_ptr<gpu::GpuFilters> devices_;
};

void Session::warn(const Error& warning) {
  const MutexLock lock(warning_mutex_);
  if (listener_ == nullptr) {
    unheard_.push_back(warning);
  } else if (listener_->on_device_warning) {
    listener_->on_device_warning(warning);
  }
}

Status Session::start(DeviceChoice choice, const SearchOptions& options, const SizeOf& positions,
                      const SizeOf& residues, const SettingsOf& settings) {
  const MutexLock lock(mutex_);
  if (devices_ != nullptr) return {};
  HMMJIT_ASSIGN(const bool starts, starts_devices(choice, options, positions, residues, note_));
  if (!starts) return {};
  gpu::Settings all = settings(choice);
  if (!all.on_warning)
    all.on_warning = [this](const std::string& text) {
      warn({ErrorCode::kNoDevice, text, {}, {}});
    };
  devices_ = std::make_shared<gpu::GpuFilters>(std::move(all));
  return {};
}

Result<SearchStatistics> Session::search(const SearchOptions& options, const ModelSource& models,
                                         TargetSource& targets, ResultSink& sink,
                                         SearchProgress& progress) {
  // Devices that fail before they are ready end a search that demands them.
  const auto statistics = device_statistics();
  if (!statistics || (statistics->state == "failed" && statistics->ready_seconds > 0))
    return hmmjit::search(options, models, targets, nullptr, sink, &progress);
  const Turn turn(*this, options);
  if (turn.cancelled()) return fail(ErrorCode::kInterrupted, "the search was cancelled");
  return hmmjit::search(options, models, targets, turn.devices(), sink, &progress);
}

bool Session::leave_devices(const SearchOptions& options, const SearchProgress& progress,
                            const Error& error) {
  if (!progress.wrong_kernel) return false;
  std::string note = fmt::format("{}: {}", error.where, error.message);
  if (options.on_warning)
    options.on_warning(note +
                       "; the search is repeated on the CPU. Please report this line with "
                       "the output of hmmjit doctor");
  std::shared_ptr<gpu::GpuFilters> left;  // destroyed without the lock
  const MutexLock lock(mutex_);
  left.swap(devices_);
  note_ = std::move(note);
  return true;
}

std::shared_ptr<gpu::GpuFilters> Session::devices() const {
  const MutexLock lock(mutex_);
  return devices_;
}

std::optional<gpu::Statistics> Session::device_statistics() const {
  const auto present = devices();
  return present == nullptr ? std::nullopt : std::optional(present->statistics());
}

std::string Session::device_note() const {
  const MutexLock lock(mutex_);
  return note_;
}

}  // namespace hmmjit
