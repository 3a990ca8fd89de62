#include "search/session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "core/at_end.hpp"
#include "core/threads.hpp"
#include "search/shared_run.hpp"

namespace hmmjit {

// The use of the devices by one search.
class Session::Turn {
 public:
  Turn(Session& session, const SearchOptions& options) : Turn(session) {
    if (begins_ && !Cancellation::wait(*begins_, options.cancellation)) return;
    cancelled_ = false;
    devices_ = session_.devices();
    const MutexLock listening(session_.warning_mutex_);
    session_.listener_ = &options;
    if (!options.on_warning) return;
    for (const Error& warning : std::exchange(session_.unheard_, {})) options.on_warning(warning);
  }
  ~Turn() {
    if (!cancelled_) {
      const MutexLock listening(session_.warning_mutex_);
      session_.listener_ = nullptr;
    }
    const MutexLock lock(session_.mutex_);
    std::erase(session_.turns_, this);
    if (!session_.turns_.empty() && session_.turns_.front()->begins_)
      session_.turns_.front()->begins_->happen();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  gpu::GpuFilters* devices() const { return devices_.get(); }
  bool cancelled() const { return cancelled_; }

 private:
  // The destructor ends what this begins, also where the public constructor throws.
  explicit Turn(Session& session) : session_(session) {
    const MutexLock lock(session_.mutex_);
    if (!session_.turns_.empty()) begins_.emplace();
    session_.turns_.push_back(this);
  }

  Session& session_;
  std::optional<Event> begins_;  // none: without a wait
  bool cancelled_ = true;        // until it has begun
  std::shared_ptr<gpu::GpuFilters> devices_;
};

void Session::warn(const Error& warning) {
  const MutexLock lock(warning_mutex_);
  if (listener_ == nullptr) {
    unheard_.push_back(warning);
  } else if (listener_->on_warning) {
    listener_->on_warning(warning);
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
  if (auto shared = search_run::shared_targets(options, targets)) {
    // The source may warn of its targets. It is not read otherwise.
    TargetBlock first;
    if (auto more = targets.next(first, 1); !more) return std::unexpected(more.error());
    return share(options, models, std::move(shared), sink, progress);
  }
  const Turn turn(*this, options);
  if (turn.cancelled()) return fail(ErrorCode::kInterrupted, "the search was cancelled");
  return hmmjit::search(options, models, targets, turn.devices(), sink, &progress);
}

Result<SearchStatistics> Session::share(const SearchOptions& options, const ModelSource& models,
                                        std::shared_ptr<const ResidentTargets> targets,
                                        ResultSink& sink, SearchProgress& progress) {
  const auto search = std::make_shared<search_run::SharedSearch>(options, models, sink, progress);
  const bool stored = sink.takes_stored_hits();
  std::shared_ptr<search_run::SharedRun> run;  // of the search
  std::list<Running> ended;                    // joined without the lock
  {
    const MutexLock lock(mutex_);
    for (auto at = runs_.begin(); at != runs_.end();) {
      const auto running = at++;
      if (running->ended) ended.splice(ended.end(), runs_, running);
    }
    // While others wait for the devices, the run that has them is not prolonged.
    const bool others_wait = turns_.size() > 1;
    const auto joined = std::ranges::find_if(runs_, [&](const Running& running) {
      return !(running.begun && others_wait) && running.run->serves(*targets, options, stored) &&
             running.run->join(search);
    });
    if (joined != runs_.end()) {
      run = joined->run;
    } else {
      run = std::make_shared<search_run::SharedRun>(std::move(targets), options, stored);
      run->join(search);
      Running& running = runs_.emplace_back();
      running.run = run;
      try {
        running.thread = std::jthread([this, &running] {
          try {
            const Turn turn(*this, running.run->options());
            {
              const MutexLock begin(mutex_);
              running.begun = true;
            }
            running.run->run(turn.devices());
          } catch (...) {
            running.run->end(std::current_exception());
          }
          const MutexLock end(mutex_);
          running.ended = true;
        });
      } catch (const std::system_error& error) {
        runs_.pop_back();
        return std::unexpected(refused_threads("a thread for the search", error));
      } catch (...) {
        runs_.pop_back();
        throw;
      }
    }
  }
  ended.clear();
  run->announce();
  const AtEnd leave{[&run] { run->leave(); }};
  return search->wait();
}

bool repeats_on_cpu(const SearchOptions& options, const SearchProgress& progress,
                    const Error& error, bool repeatable) {
  if (!progress.wrong_kernel || !repeatable) return false;
  if (options.on_warning)
    options.on_warning(
        {ErrorCode::kInternal,
         fmt::format("{}: {}; the search is repeated on the CPU", error.where, error.message),
         {},
         "please report this line with the output of hmmjit doctor"});
  return true;
}

bool Session::leave_devices(const SearchOptions& options, const SearchProgress& progress,
                            const Error& error, bool repeatable) {
  if (!progress.wrong_kernel) return false;
  if (const auto left = devices()) left->give_up(error);
  return repeats_on_cpu(options, progress, error, repeatable);
}

std::shared_ptr<gpu::GpuFilters> Session::devices() const {
  const MutexLock lock(mutex_);
  return devices_;
}

std::optional<gpu::Statistics> Session::device_statistics(const gpu::Statistics& earlier) const {
  const auto present = devices();
  return present == nullptr ? std::nullopt : std::optional(present->statistics(earlier));
}

std::string Session::device_note() const {
  const MutexLock lock(mutex_);
  return note_;
}

}  // namespace hmmjit
