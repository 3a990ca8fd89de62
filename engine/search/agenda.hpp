// The agenda of a search: the only shared record of finished, running and open work. Workers ask it
// for work, do the work without knowing each other, and report:
//
//   while (work = agenda.next(me)) agenda.done(work, run(work))
//
// It starts nothing and calls no one. Nothing polls it: next() waits until there is work or the
// search has ended.
//
// A model is finished when all targets have been read, none of its pairs is open, claimed or being
// filtered, and no survivor waits or is being scored.
//
// Targets are read once and kept while they fit; every model is then searched against all of them.
// If they do not fit, the models in flight become a batch, which is filled first, and the targets
// are read once for each batch.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "core/mutex.hpp"
#include "gpu/handover_policy.hpp"
#include "search/models_in_flight.hpp"
#include "search/work.hpp"

namespace hmmjit::search_run {

/// What may be in flight or wait at a time.
struct AgendaLimits {
  InFlightLimits in_flight;
  std::uint64_t result_bytes;  ///< of results that wait
  std::uint64_t task_cells;    ///< see SearchOptions
  std::uint64_t batch_rows;    ///< see BatchSizes
};

/// Thread-safe.
class Agenda {
 public:
  Agenda(const AgendaLimits& limits, SearchProgress& progress);
  ~Agenda() { stop(); }
  Agenda(const Agenda&) = delete;
  Agenda& operator=(const Agenda&) = delete;

  // ---- workers ---------------------------------------------------------------------------------

  /// One thread that works. It has at most one piece of work at a time, which must have been
  /// destroyed when it asks for the next.
  struct Worker {
    bool busy = false;
  };
  /// The next work of this worker. Waits for it; End once the search is complete or stopped.
  Work next(Worker& me) HMMJIT_EXCLUDES(mutex_);
  /// The same, nullopt instead of waiting.
  std::optional<Work> try_next(Worker& me) HMMJIT_EXCLUDES(mutex_);
  /// Whether there is work for one more worker; if so, that one counts as started.
  bool wants_worker() HMMJIT_EXCLUDES(mutex_);
  /// No more than this many workers could be started.
  void limit_workers(int threads) HMMJIT_EXCLUDES(mutex_);

  // Work has been done. Each call takes its outcome.
  /// `model`: null if the input has no further one. An error ends the search after the models
  /// before.
  void done(const SetUpModel&, std::size_t index, Result<JobPtr> model) HMMJIT_EXCLUDES(mutex_);
  /// The model has failed, and its sink has taken the error. `empty`: its result.
  void done(const SetUpModel&, FinishedPtr empty) HMMJIT_EXCLUDES(mutex_);
  /// `block`: null at the end of the input. `ahead`: threads that can read ahead. Returns true if
  /// no block follows for now, so that devices do not wait for one.
  bool done(const ReadBlock&, BlockPtr block, int ahead) HMMJIT_EXCLUDES(mutex_);
  void done(const ReadAhead&) HMMJIT_EXCLUDES(mutex_);
  void done(const BeginBatch&) HMMJIT_EXCLUDES(mutex_);
  /// `models`: there are further ones, and the input of targets is at its start.
  void done(const NextPass&, bool models) HMMJIT_EXCLUDES(mutex_);
  /// `more`: further targets wait for the device.
  void done(const Backfill&, bool more) HMMJIT_EXCLUDES(mutex_);
  void done(const FilterRange& work, std::vector<WaitingTarget> found) HMMJIT_EXCLUDES(mutex_);
  /// The outcome of a look at a pair: it is left to a device, filtered, or to be divided.
  struct PairOutcome {
    std::optional<std::vector<WaitingTarget>> found = {};
    TargetsPtr divide = {};
  };
  void done(const FilterPair& work, PairOutcome outcome) HMMJIT_EXCLUDES(mutex_);
  void done(const FilterRest& work, std::vector<WaitingTarget> found) HMMJIT_EXCLUDES(mutex_);
  /// `seconds`: of thread time.
  void done(const ScoreBatch& work, double seconds) HMMJIT_EXCLUDES(mutex_);
  void done(const FinishModel& work, FinishedPtr finished) HMMJIT_EXCLUDES(mutex_);
  /// `complete`: this was the last part.
  void done(const FormatPart& work, bool complete) HMMJIT_EXCLUDES(mutex_);
  void done(const DeliverResult& work) HMMJIT_EXCLUDES(mutex_);

  /// The input of models, which may have had no further one, has one now. False: too late, the
  /// search is complete or has been stopped.
  bool more_models() HMMJIT_EXCLUDES(mutex_);
  /// Ends the search. The first error is the one that the search returns.
  void abort(Error error) HMMJIT_EXCLUDES(mutex_);
  /// Ends the search without an error: work that is left is never begun.
  void stop() HMMJIT_EXCLUDES(mutex_);
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  std::optional<Error> error() const HMMJIT_EXCLUDES(mutex_);

  // ---- memory ----------------------------------------------------------------------------------

  /// Reserves room for a result whose text is still to be made; false if there is none. Always
  /// true with `needed`.
  bool reserve(std::size_t bytes, bool needed) HMMJIT_EXCLUDES(mutex_);
  /// The last reference to a block is gone.
  void block_released(BlockId block, std::size_t bytes) noexcept HMMJIT_EXCLUDES(mutex_);

  // ---- devices ---------------------------------------------------------------------------------

  WorkBoard& board() { return board_; }
  /// Null where no model in flight has this id.
  JobPtr find(ModelId model) const HMMJIT_EXCLUDES(mutex_);
  /// A device has done its part of pairs, whose claims have been finished. `early`: it has done a
  /// part, and the pairs stay claimed.
  void deliver(ModelId model, std::vector<DeviceUnit> units, bool early) HMMJIT_EXCLUDES(mutex_);
  /// Targets that passed the filters wait for the domain stage of a device.
  void device_waits() HMMJIT_EXCLUDES(mutex_);
  /// The work that is left for the threads of a search that has taken `seconds`.
  gpu::HostLoad load(double seconds) const HMMJIT_EXCLUDES(mutex_);

  // ---- progress --------------------------------------------------------------------------------

  /// Whether the targets did not fit in memory.
  bool streamed() const HMMJIT_EXCLUDES(mutex_);
  std::uint64_t results_delivered() const HMMJIT_EXCLUDES(mutex_);

 private:
  struct Model {
    JobPtr job;
    bool expects_blocks = true;  // the last target has not been read
    std::size_t filtering = 0;   // pairs, and parts of them, that may find survivors
    std::vector<WaitingTarget> waiting = {};
    std::size_t scoring = 0;  // batches
    bool finishing = false;
  };
  // Work that is ready, in order of urgency.
  enum class Class : std::uint8_t {
    kFormat,  // results leave
    kFinish,
    kLarge,   // large targets, largest first, so that none is begun last
    kBatch,   // the earliest model first, so that results leave
    kFilter,  // the same order
  };
  struct Key {
    Class of;
    double rank;
    std::uint64_t order;
    auto operator<=>(const Key&) const = default;
  };
  enum class Choice : std::uint8_t {
    kWait,
    kEnd,
    kDeliver,
    kBeginBatch,
    kNextPass,
    kBackfill,
    kSetUp,
    kReadAhead,
    kRead,
    kReady,
  };

  Choice choose() const HMMJIT_REQUIRES(mutex_);
  Work take(Choice choice) HMMJIT_REQUIRES(mutex_);
  std::optional<Work> take_next(Worker& me) HMMJIT_REQUIRES(mutex_);
  Work take_ready() HMMJIT_REQUIRES(mutex_);
  bool complete() const HMMJIT_REQUIRES(mutex_);
  bool may_set_up() const HMMJIT_REQUIRES(mutex_);
  bool may_read() const HMMJIT_REQUIRES(mutex_);
  bool batch_is_full() const HMMJIT_REQUIRES(mutex_);
  bool pass_has_ended() const HMMJIT_REQUIRES(mutex_);
  // Wakes a worker if there is work. A worker that takes work wakes the next.
  void wake() HMMJIT_REQUIRES(mutex_);

  void push(Class of, double rank, Work work) HMMJIT_REQUIRES(mutex_);
  void push_ranges(Model& model, const TargetsPtr& targets) HMMJIT_REQUIRES(mutex_);
  void open_pair(Model& model, const BlockPtr& block) HMMJIT_REQUIRES(mutex_);
  void add_found(Model& model, std::vector<WaitingTarget> found) HMMJIT_REQUIRES(mutex_);
  // Makes batches of waiting survivors if there are enough, and finishes a model if it can be.
  void settle(Model& model, bool at_once = false) HMMJIT_REQUIRES(mutex_);
  void make_batches(Model& model) HMMJIT_REQUIRES(mutex_);
  bool few_filters_wait() const HMMJIT_REQUIRES(mutex_);
  void add_result(FinishedPtr finished) HMMJIT_REQUIRES(mutex_);
  void end_with(Error error) HMMJIT_REQUIRES(mutex_);
  gpu::HostLoad host_load() const HMMJIT_REQUIRES(mutex_);

  void left_to_host(ModelId model, BlockId block) noexcept HMMJIT_EXCLUDES(mutex_);

  const AgendaLimits limits_;
  SearchProgress& progress_;
  std::atomic<bool> stopped_{false};
  mutable Mutex mutex_;
  std::condition_variable work_or_end_;
  std::size_t sleeping_ HMMJIT_GUARDED_BY(mutex_) = 0, running_ HMMJIT_GUARDED_BY(mutex_) = 0;
  int workers_ HMMJIT_GUARDED_BY(mutex_) = 1, threads_ HMMJIT_GUARDED_BY(mutex_);
  std::optional<Error> error_ HMMJIT_GUARDED_BY(mutex_);
  // The first model that could not be set up.
  std::optional<std::pair<std::size_t, Error>> failed_ HMMJIT_GUARDED_BY(mutex_);

  ModelsInFlight in_flight_ HMMJIT_GUARDED_BY(mutex_);
  std::map<ModelId, Model> models_ HMMJIT_GUARDED_BY(mutex_);
  std::uint64_t announced_ HMMJIT_GUARDED_BY(mutex_) = 0;  // calls of more_models()

  // Targets. `reading_`: a worker uses their input.
  std::uint64_t block_bytes_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::vector<BlockPtr> blocks_ HMMJIT_GUARDED_BY(mutex_);  // for later models; empty in batches
  bool reading_ HMMJIT_GUARDED_BY(mutex_) = false, input_ended_ HMMJIT_GUARDED_BY(mutex_) = false;
  // Threads that read ahead, and more that may.
  int reading_ahead_ HMMJIT_GUARDED_BY(mutex_) = 0, may_read_ahead_ HMMJIT_GUARDED_BY(mutex_) = 0;
  Batch batch_ HMMJIT_GUARDED_BY(mutex_) = Batch::kNone;
  bool device_waits_ HMMJIT_GUARDED_BY(mutex_) = false;

  std::map<Key, Work> ready_ HMMJIT_GUARDED_BY(mutex_);
  std::uint64_t order_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::size_t filters_waiting_ HMMJIT_GUARDED_BY(mutex_) = 0;  // except for pairs of the board
  bool collecting_ HMMJIT_GUARDED_BY(mutex_) = true;  // survivors may wait for a larger batch

  // Scoring that is left, and its rate.
  std::uint64_t cells_left_ HMMJIT_GUARDED_BY(mutex_) = 0, cells_done_
                                                           HMMJIT_GUARDED_BY(mutex_) = 0;
  double scoring_seconds_ HMMJIT_GUARDED_BY(mutex_) = 0;

  // Results.
  // Each sink gets its results in their order, whatever the others do.
  struct Order {
    std::size_t next = 0;
    std::map<std::size_t, FinishedPtr> finished = {};  // later ones
  };
  std::map<const ResultSink*, Order> orders_ HMMJIT_GUARDED_BY(mutex_);
  std::deque<FinishedPtr> deliverable_ HMMJIT_GUARDED_BY(mutex_);
  std::size_t results_ HMMJIT_GUARDED_BY(mutex_) = 0, delivered_ HMMJIT_GUARDED_BY(mutex_) = 0;
  bool delivering_ HMMJIT_GUARDED_BY(mutex_) = false;
  std::size_t waiting_bytes_ HMMJIT_GUARDED_BY(mutex_) = 0;
  std::size_t reserved_bytes_ HMMJIT_GUARDED_BY(mutex_) = 0;

  // The pairs that a device may claim.
  WorkBoard board_{[this](ModelId model, BlockId block) { left_to_host(model, block); }};
};

}  // namespace hmmjit::search_run
