// A session: what several searches share. Its devices are started once. They keep their kernels
// and, while there is room, the targets of earlier searches if these are views of memory
// (keep_targets, a target database).
//
//   Session session;
//   HMMJIT_TRY(session.start(choice, options, positions, residues));
//   const auto first = session.search(options, models, targets, sink, progress);
//   HMMJIT_TRY(targets.rewind());
//   const auto second = session.search(options, others, targets, sink, progress);
//
// The second search finds its kernels loaded and its targets on the device.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.hpp"
#include "gpu/gpu_filters.hpp"
#include "search/device_choice.hpp"
#include "search/search.hpp"

namespace hmmjit {

namespace search_run {
class SharedRun;
}

/// After a search that `error` has ended: whether to repeat it on the CPU, where it succeeds. It is
/// if a wrong kernel of a device was the cause and the search is `repeatable`; on_warning is told.
bool repeats_on_cpu(const SearchOptions& options, const SearchProgress& progress,
                    const Error& error, bool repeatable);

/// Thread-safe.
class Session {
 public:
  /// Searches on the CPU until start(). `why`: see device_note().
  explicit Session(std::string why = "demanded") : note_(std::move(why)) {}
  /// Searches on devices that have been started elsewhere.
  explicit Session(std::shared_ptr<gpu::GpuFilters> devices) : devices_(std::move(devices)) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Starts the devices, unless they have been, if they are demanded or make a search of this size
  /// faster (starts_devices). Returns while the driver starts, so that inputs can be opened
  /// meanwhile. `settings`: called with those that are started; default: device_settings.
  using SettingsOf = std::function<gpu::Settings(const DeviceChoice&)>;
  Status start(DeviceChoice choice, const SearchOptions& options, const SizeOf& positions,
               const SizeOf& residues, const SettingsOf& settings = device_settings);
  /// See hmmjit::search. Several searches may run at once. Those of the same resident targets with
  /// the same settings share a run of the devices (search/shared_run.hpp); runs use the devices one
  /// at a time, in the order of their calls. A search that is cancelled while it waits fails with
  /// kInterrupted. If the devices' settings have no on_warning, on_warning of the searches
  /// that use them is told.
  Result<SearchStatistics> search(const SearchOptions& options, const ModelSource& models,
                                  TargetSource& targets, ResultSink& sink,
                                  SearchProgress& progress);
  /// The same as repeats_on_cpu(). If a wrong kernel was the cause, later searches also run on the
  /// CPU, and device_statistics() has the state "failed".
  bool leave_devices(const SearchOptions& options, const SearchProgress& progress,
                     const Error& error, bool repeatable);

  /// Null: the CPU searches alone.
  std::shared_ptr<gpu::GpuFilters> devices() const;
  /// See GpuFilters::statistics. What other searches do at the same time counts as well.
  std::optional<gpu::Statistics> device_statistics(const gpu::Statistics& earlier = {}) const;
  /// Passes a warning to the search that uses the devices, or to the next one.
  void warn(const Error& warning);
  /// Why there are no devices, or not more.
  std::string device_note() const;

 private:
  class Turn;

  // A run of searches that share it, in a thread of its own.
  struct Running {
    std::shared_ptr<search_run::SharedRun> run;
    bool begun = false, ended = false;  // with the lock of the session
    std::jthread thread;                // joined before the rest is destroyed
  };
  Result<SearchStatistics> share(const SearchOptions& options, const ModelSource& models,
                                 std::shared_ptr<const ResidentTargets> targets, ResultSink& sink,
                                 SearchProgress& progress);

  mutable Mutex mutex_;
  std::string note_ HMMJIT_GUARDED_BY(mutex_);
  // The search that uses the devices, and those that wait for them.
  std::deque<Turn*> turns_ HMMJIT_GUARDED_BY(mutex_);
  Mutex warning_mutex_;
  // The search that uses the devices, and the devices' messages from before the first one.
  const SearchOptions* listener_ HMMJIT_GUARDED_BY(warning_mutex_) = nullptr;
  std::vector<Error> unheard_ HMMJIT_GUARDED_BY(warning_mutex_);
  // Its threads may warn until it is destroyed.
  std::shared_ptr<gpu::GpuFilters> devices_ HMMJIT_GUARDED_BY(mutex_);
  // Destroyed first: their threads use the rest.
  std::list<Running> runs_ HMMJIT_GUARDED_BY(mutex_);
};

}  // namespace hmmjit
