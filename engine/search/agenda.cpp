#include "search/agenda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>

namespace hmmjit::search_run {

Block::~Block() { agenda.block_released(id, bytes); }

Agenda::Agenda(const AgendaLimits& limits, SearchProgress& progress)
    : limits_(limits),
      progress_(progress),
      threads_(limits.in_flight.threads),
      in_flight_(limits.in_flight) {}

// ---- priorities ------------------------------------------------------------------------------

// All priorities of a search: results leave first; then everything that other work waits for; then
// what brings results nearer, the earliest model first.
Agenda::Choice Agenda::choose() const {
  if (stopped() || complete()) return Choice::kEnd;
  if (!delivering_) {
    if (!deliverable_.empty()) return Choice::kDeliver;
    if (failed_ && failed_->first == delivered_) return Choice::kEnd;
  }
  if (!ready_.empty() && ready_.begin()->first.of <= Class::kFinish) return Choice::kReady;
  if (batch_is_full()) return Choice::kBeginBatch;
  if (pass_has_ended()) return Choice::kNextPass;
  if (device_waits_ && gpu::host_is_idle(host_load())) return Choice::kBackfill;
  if (may_set_up()) return Choice::kSetUp;
  if (may_read_ahead_ > 0 && reading_ahead_ + 1 < threads_) return Choice::kReadAhead;
  if (may_read()) return Choice::kRead;
  return ready_.empty() ? Choice::kWait : Choice::kReady;
}

bool Agenda::complete() const {
  return !in_flight_.any() && !in_flight_.more() && !failed_ && input_ended_ &&
         results_ == delivered_;
}

bool Agenda::may_set_up() const {
  return in_flight_.may_start(
      {.results_full = waiting_bytes_ >= limits_.result_bytes, .waiting_filters = filters_waiting_},
      batch_);
}

bool Agenda::may_read() const {
  if (reading_ || input_ended_ || batch_ == Batch::kFilling) return false;
  return batch_ == Batch::kNone || block_bytes_ < limits_.in_flight.target_bytes;
}

bool Agenda::batch_is_full() const {
  return batch_ == Batch::kFilling && !reading_ && !in_flight_.setting_up() && !may_set_up();
}

bool Agenda::pass_has_ended() const {
  return batch_ != Batch::kNone && input_ended_ && !reading_ && !in_flight_.any() &&
         in_flight_.more();
}

Work Agenda::take(Choice choice) {
  switch (choice) {
    case Choice::kDeliver: {
      delivering_ = true;
      DeliverResult work{std::move(deliverable_.front())};
      deliverable_.pop_front();
      return work;
    }
    case Choice::kBeginBatch:
      batch_ = Batch::kFull;
      reading_ = true;
      // Survivors that wait hold blocks as well.
      collecting_ = false;
      for (auto& [id, model] : models_) make_batches(model);
      return BeginBatch{std::exchange(blocks_, {})};
    case Choice::kNextPass:
      reading_ = true;
      return NextPass{announced_};
    case Choice::kBackfill:
      device_waits_ = false;
      return Backfill{host_load()};
    case Choice::kSetUp:
      in_flight_.start();
      return SetUpModel{announced_};
    case Choice::kReadAhead:
      --may_read_ahead_;
      ++reading_ahead_;
      return ReadAhead{};
    case Choice::kRead:
      reading_ = true;
      return ReadBlock{};
    case Choice::kReady:
      return take_ready();
    case Choice::kEnd:
      if (failed_ && !stopped()) end_with(failed_->second);
      break;
    case Choice::kWait:
      break;
  }
  return End{};
}

Work Agenda::take_ready() {
  Work work = std::move(ready_.extract(ready_.begin()).mapped());
  if (std::holds_alternative<FilterRange>(work) || std::holds_alternative<FilterRest>(work))
    --filters_waiting_;
  return work;
}

std::optional<Work> Agenda::take_next(Worker& me) {
  if (std::exchange(me.busy, false)) --running_;
  const Choice choice = choose();
  if (choice == Choice::kWait) {
    // Without a device only workers can bring about more work.
    if (running_ > 0 || limits_.in_flight.device) return std::nullopt;
    end_with(
        {ErrorCode::kInternal,
         fmt::format("the search stopped before it was complete: {} models, {} pieces of work, "
                     "{} of {} results delivered, batch {}",
                     models_.size(), ready_.size(), delivered_, results_, static_cast<int>(batch_)),
         {},
         {}});
    return End{};
  }
  Work work = take(choice);
  if (choice != Choice::kEnd) {
    me.busy = true;
    ++running_;
  }
  wake();
  return work;
}

Work Agenda::next(Worker& me) {
  MutexLock lock(mutex_);
  for (;;) {
    if (std::optional<Work> work = take_next(me)) return *std::move(work);
    ++sleeping_;
    lock.wait(work_or_end_);
    --sleeping_;
  }
}

std::optional<Work> Agenda::try_next(Worker& me) {
  const MutexLock lock(mutex_);
  return take_next(me);
}

void Agenda::wake() {
  if (sleeping_ > 0 && choose() != Choice::kWait) work_or_end_.notify_one();
}

bool Agenda::wants_worker() {
  const MutexLock lock(mutex_);
  const Choice choice = choose();
  if (workers_ >= threads_ || sleeping_ > 0 || choice == Choice::kWait || choice == Choice::kEnd)
    return false;
  ++workers_;
  return true;
}

void Agenda::limit_workers(int threads) {
  const MutexLock lock(mutex_);
  threads_ = std::min(threads_, threads);
}

// ---- outcomes ----------------------------------------------------------------------------------

void Agenda::push(Class of, double rank, Work work) {
  ready_.emplace(Key{of, rank, order_++}, std::move(work));
}

void Agenda::push_ranges(Model& model, const TargetsPtr& targets) {
  const auto ranges = filter_ranges(*targets, model.job->nodes, limits_.task_cells);
  model.filtering += ranges.size();
  filters_waiting_ += ranges.size();
  for (const auto& [begin, end] : ranges)
    push(Class::kFilter, static_cast<double>(model.job->index),
         FilterRange{model.job, targets, begin, end});
}

void Agenda::open_pair(Model& model, const BlockPtr& block) {
  progress_.cells_queued += block->targets.residue_count() * model.job->nodes;
  if (!limits_.in_flight.device) return push_ranges(model, targets_of(block));
  board_.open(model.job->index, block->id, targets_of(block));
  ++model.filtering;
  {
    const MutexLock lock(model.job->mutex);
    ++model.job->blocks_offered;
  }
  push(Class::kFilter, static_cast<double>(model.job->index), FilterPair{model.job, block->id});
}

bool Agenda::few_filters_wait() const {
  return filters_waiting_ < static_cast<std::size_t>(threads_);
}

void Agenda::make_batches(Model& model) {
  if (model.waiting.empty()) return;
  Batches batches = divide(
      std::exchange(model.waiting, {}),
      {.threads = static_cast<std::size_t>(threads_),
       .nodes = model.job->nodes,
       .rows = limits_.batch_rows,
       .device = limits_.in_flight.device,
       .idle = limits_.in_flight.device ? gpu::host_is_idle(host_load()) : few_filters_wait()});
  model.scoring += batches.large.size() + batches.others.size();
  for (auto& targets : batches.large) {
    const double rank = -static_cast<double>(targets.front().cells_left);
    push(Class::kLarge, rank, ScoreBatch{model.job, std::move(targets)});
  }
  for (auto& targets : batches.others)
    push(Class::kBatch, static_cast<double>(model.job->index),
         ScoreBatch{model.job, std::move(targets)});
}

void Agenda::add_found(Model& model, std::vector<WaitingTarget> found) {
  cells_left_ += cells_left(found);
  std::ranges::move(found, std::back_inserter(model.waiting));
}

void Agenda::settle(Model& model, bool at_once) {
  const bool last = model.filtering == 0 && !model.expects_blocks;
  // Survivors wait until they fill a batch, unless they hold blocks that must be released, or
  // threads are idle.
  const std::size_t batch = few_filters_wait() ? kSmallestBatch : 2 * kLargestBatch;
  if (last || at_once || !collecting_ || model.waiting.size() >= batch) make_batches(model);
  if (!last || model.scoring > 0 || std::exchange(model.finishing, true)) return;
  push(Class::kFinish, static_cast<double>(model.job->index), FinishModel{model.job});
}

void Agenda::done(const SetUpModel& work, std::size_t index, Result<JobPtr> made) {
  const MutexLock lock(mutex_);
  if (!made || *made == nullptr) {
    if (!made && (!failed_ || index < failed_->first)) failed_.emplace(index, made.error());
    // A model that was announced meanwhile may have come after this look at the input.
    if (work.announced == announced_) in_flight_.end_input();
    return in_flight_.end_set_up();
  }
  in_flight_.add((*made)->bytes);
  Model& model = models_[index];
  model.job = *std::move(made);
  model.expects_blocks = !input_ended_;
  for (const BlockPtr& block : blocks_) open_pair(model, block);
  settle(model);
}

void Agenda::done(const SetUpModel&, FinishedPtr empty) {
  const MutexLock lock(mutex_);
  in_flight_.add(0);
  add_result(std::move(empty));
}

bool Agenda::done(const ReadBlock&, BlockPtr block, int ahead) {
  const MutexLock lock(mutex_);
  reading_ = false;
  if (block == nullptr) {
    input_ended_ = true;
    for (auto& [id, model] : models_) {
      model.expects_blocks = false;
      settle(model);
    }
    return true;
  }
  may_read_ahead_ = std::max(0, ahead - reading_ahead_);
  block_bytes_ += block->bytes;
  if (limits_.in_flight.device) board_.add_block(block->id);
  for (auto& [id, model] : models_) {
    if (model.expects_blocks) open_pair(model, block);
  }
  const bool full = block_bytes_ > limits_.in_flight.target_bytes;
  if (batch_ == Batch::kNone) {
    blocks_.push_back(std::move(block));
    if (full) batch_ = Batch::kFilling;
  }
  return !may_read();
}

void Agenda::done(const ReadAhead&) {
  const MutexLock lock(mutex_);
  --reading_ahead_;
}

void Agenda::done(const BeginBatch&) {
  const MutexLock lock(mutex_);
  reading_ = false;
}

void Agenda::done(const NextPass& work, bool models) {
  const MutexLock lock(mutex_);
  reading_ = false;
  if (!models) {
    if (work.announced == announced_) in_flight_.end_input();
    return;
  }
  input_ended_ = false;
  batch_ = Batch::kFilling;
}

void Agenda::done(const Backfill&, bool more) {
  const MutexLock lock(mutex_);
  device_waits_ = device_waits_ || more;
}

void Agenda::done(const FilterRange& work, std::vector<WaitingTarget> found) {
  const MutexLock lock(mutex_);
  Model& model = models_.at(work.job->index);
  --model.filtering;
  add_found(model, std::move(found));
  settle(model);
}

void Agenda::done(const FilterPair& work, PairOutcome outcome) {
  const MutexLock lock(mutex_);
  if (!outcome.found && outcome.divide == nullptr) return;  // a device has it
  Model& model = models_.at(work.job->index);
  --model.filtering;
  if (outcome.divide != nullptr) push_ranges(model, outcome.divide);
  if (outcome.found) add_found(model, *std::move(outcome.found));
  settle(model);
}

void Agenda::done(const FilterRest& work, std::vector<WaitingTarget> found) {
  const MutexLock lock(mutex_);
  Model& model = models_.at(work.job->index);
  model.filtering -= work.units.size();
  for (const DeviceUnit& unit : work.units) cells_left_ -= unit.cells;
  add_found(model, std::move(found));
  // Targets that come early take longest: they are scored at once.
  settle(model, work.early);
}

void Agenda::done(const ScoreBatch& work, double seconds) {
  const MutexLock lock(mutex_);
  const std::uint64_t cells = cells_left(work.targets);
  cells_left_ -= cells;
  cells_done_ += cells;
  scoring_seconds_ += seconds;
  Model& model = models_.at(work.job->index);
  --model.scoring;
  settle(model);
}

void Agenda::done(const FinishModel& work, FinishedPtr finished) {
  const MutexLock lock(mutex_);
  in_flight_.release(work.job->bytes);
  models_.erase(work.job->index);
  const std::size_t parts = finished->parts_left;
  if (parts == 0) return add_result(std::move(finished));
  for (std::size_t part = 0; part < parts; ++part)
    push(Class::kFormat, 0, FormatPart{finished, part});
}

void Agenda::done(const FormatPart& work, bool complete) {
  const MutexLock lock(mutex_);
  if (complete) add_result(work.finished);
}

void Agenda::add_result(FinishedPtr finished) {
  reserved_bytes_ -= finished->reserved;
  waiting_bytes_ += finished->bytes;
  in_flight_.end();
  ++results_;
  Order& order = orders_[finished->sink];
  const std::size_t index = finished->result.index;
  order.finished.emplace(index, std::move(finished));
  for (auto at = order.finished.begin(); at != order.finished.end() && at->first == order.next;
       at = order.finished.erase(at), ++order.next)
    deliverable_.push_back(std::move(at->second));
}

void Agenda::done(const DeliverResult& work) {
  const MutexLock lock(mutex_);
  delivering_ = false;
  waiting_bytes_ -= work.finished->bytes;
  ++delivered_;
  ++progress_.models_done;
}

bool Agenda::more_models() {
  const MutexLock lock(mutex_);
  if (stopped() || complete()) return false;
  ++announced_;
  in_flight_.reopen_input();
  wake();
  return true;
}

void Agenda::end_with(Error error) {
  if (!error_) error_ = std::move(error);
  stopped_ = true;
  work_or_end_.notify_all();
}

void Agenda::abort(Error error) {
  const MutexLock lock(mutex_);
  end_with(std::move(error));
}

void Agenda::stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  work_or_end_.notify_all();
}

std::optional<Error> Agenda::error() const {
  const MutexLock lock(mutex_);
  return error_;
}

// ---- memory ------------------------------------------------------------------------------------

bool Agenda::reserve(std::size_t bytes, bool needed) {
  const MutexLock lock(mutex_);
  if (!needed && waiting_bytes_ + reserved_bytes_ + bytes > limits_.result_bytes) return false;
  reserved_bytes_ += bytes;
  return true;
}

void Agenda::block_released(BlockId block, std::size_t bytes) noexcept {
  if (stopped()) return;  // the agenda may be being destroyed
  const MutexLock lock(mutex_);
  block_bytes_ -= bytes;
  if (limits_.in_flight.device) board_.remove_block(block);
  wake();
}

// ---- devices -----------------------------------------------------------------------------------

JobPtr Agenda::find(ModelId model) const {
  const MutexLock lock(mutex_);
  const auto found = models_.find(model);
  return found == models_.end() ? nullptr : found->second.job;
}

void Agenda::deliver(ModelId id, std::vector<DeviceUnit> units, bool early) {
  std::vector<std::vector<DeviceUnit>> pieces = divide(std::move(units));
  const MutexLock lock(mutex_);
  if (stopped()) return;
  Model& model = models_.at(id);
  for (std::vector<DeviceUnit>& piece : pieces) {
    if (early) model.filtering += piece.size();
    for (const DeviceUnit& unit : piece) cells_left_ += unit.cells;
    ++filters_waiting_;
    push(Class::kFilter, static_cast<double>(id), FilterRest{model.job, std::move(piece), early});
  }
  wake();
}

void Agenda::left_to_host(ModelId id, BlockId block) noexcept {
  const MutexLock lock(mutex_);
  const auto model = models_.find(id);
  if (stopped() || model == models_.end()) return;
  try {
    push(Class::kFilter, static_cast<double>(id), FilterPair{model->second.job, block});
    wake();
  } catch (const std::bad_alloc&) {
    end_with({ErrorCode::kResources, "out of memory", {}, {}});
  }
}

void Agenda::device_waits() {
  const MutexLock lock(mutex_);
  device_waits_ = true;
  wake();
}

gpu::HostLoad Agenda::host_load() const {
  // Assumed seconds of a thread for a cell, until the first have been scored.
  constexpr double kFirstCellSeconds = 4e-9;
  const double seconds =
      cells_done_ > 0 ? scoring_seconds_ / static_cast<double>(cells_done_) : kFirstCellSeconds;
  const double cell_seconds = seconds / static_cast<double>(threads_);
  return {.seconds_left = cell_seconds * static_cast<double>(cells_left_),
          .waiting = ready_.size(),
          .threads = static_cast<std::size_t>(threads_),
          .cell_seconds = cell_seconds};
}

gpu::HostLoad Agenda::load(double seconds) const {
  const MutexLock lock(mutex_);
  gpu::HostLoad load = host_load();
  // Devices know the pairs of the targets that have been read. The progress of those pairs is known
  // only after the domain stage, long after their filters.
  if (!input_ended_) load.filter_seconds_left = progress_.filter_seconds_left(seconds);
  return load;
}

bool Agenda::streamed() const {
  const MutexLock lock(mutex_);
  return batch_ != Batch::kNone;
}

std::uint64_t Agenda::results_delivered() const {
  const MutexLock lock(mutex_);
  return delivered_;
}

}  // namespace hmmjit::search_run
