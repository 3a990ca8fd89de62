// The agenda of a search, as a model checker would test it: small searches in every order in which
// workers can ask and report, with devices that claim, deliver, fail and are lost, with errors, and
// with a user who cancels. No pair is lost or done twice, and every search ends.
#include "search/agenda.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace hmmjit::search_run {
namespace {

constexpr std::size_t kModelBytes = std::size_t{1} << 18;  // expected of the first
constexpr std::size_t kTargets = 2, kResidues = 10;        // of a block; of a target
constexpr std::uint64_t kNodes = 100, kBlockCells = kTargets * kResidues * kNodes;

struct Scenario {
  std::size_t models = 2, blocks = 2;
  int workers = 2;
  std::size_t ranges = 1;  // of a block
  std::size_t parts = 0;   // of the text of a result
  bool kept = true;        // the targets fit in memory
  std::size_t models_at_once = 100;
  int ahead = 1;                    // threads that can read ahead
  std::size_t lanes = 0;            // of a device
  bool early = false;               // a lane delivers a part first
  bool memory_refused = false;      // to a lane, which drops its work
  std::size_t failing_model = 100;  // which cannot be set up
  bool failure_taken = false;       // by its sink
  std::size_t late_models = 0;      // announced at any time, also too late
  bool errors = false;              // any piece of work may fail, once
  bool cancelled = false;           // at any time
  std::uint64_t result_bytes = 1 << 20;
};

enum class Event : std::uint32_t { kFiltered, kScored, kFinished, kDelivered, kOther };

// Tells pieces of work of a kind apart.
struct Description {
  std::uint64_t operator()(const FilterRange& w) const {
    return w.job->index * 64 + w.targets->first_index() + w.begin;
  }
  std::uint64_t operator()(const FilterPair& w) const { return w.job->index * 64; }
  std::uint64_t operator()(const FilterRest& w) const {
    return w.job->index * 64 + w.units.front().targets->first_index();
  }
  std::uint64_t operator()(const ScoreBatch& w) const {
    return w.job->index * 64 + w.targets.front().targets->first_index() + w.targets.size() * 512;
  }
  std::uint64_t operator()(const FinishModel& w) const { return w.job->index; }
  std::uint64_t operator()(const FormatPart& w) const {
    return w.finished->result.index * 64 + w.part;
  }
  std::uint64_t operator()(const DeliverResult& w) const { return w.finished->result.index; }
  std::uint64_t operator()(const auto&) const { return 0; }
};

// A search whose steps do nothing but note that they have been done.
class Search {
 public:
  explicit Search(const Scenario& scenario)
      : scenario_(scenario),
        agenda_({.in_flight = {.model_bytes = scenario.models_at_once * kModelBytes,
                               .target_bytes = scenario.kept ? std::uint64_t{1} << 20 : 1,
                               .threads = scenario.workers,
                               .device = scenario.lanes > 0},
                 .result_bytes = scenario.result_bytes,
                 .task_cells = kBlockCells / scenario.ranges,
                 .batch_rows = 1 << 16},
                progress_) {
    workers_.resize(static_cast<std::size_t>(scenario.workers));
    lanes_.resize(std::max<std::size_t>(scenario.lanes, 1));
    models_ = scenario.models - scenario.late_models;
  }
  ~Search() {
    agenda_.stop();
    lanes_.clear();
    for (Worker& worker : workers_) worker.work.reset();
  }

  // ---- what can happen next
  // ----------------------------------------------------------------------

  // `act(n)` does the n-th of them. Workers come first.
  std::size_t actions() const {
    return workers_.size() * kWorkerActions + lanes_.size() * kLaneActions + 1;
  }
  // False where that is not possible, or changes nothing.
  bool act(std::size_t action) {
    const std::size_t worker = action / kWorkerActions;
    if (worker < workers_.size()) return act(workers_[worker], action % kWorkerActions);
    action -= workers_.size() * kWorkerActions;
    if (action == lanes_.size() * kLaneActions) return announce();
    return act(lanes_[action / kLaneActions], action % kLaneActions);
  }
  // A further model comes.
  bool announce() {
    if (models_ == scenario_.models || too_late_) return false;
    ++models_;
    if (agenda_.more_models()) return true;
    --models_;
    return too_late_ = true;
  }

  bool ended() const { return std::ranges::all_of(workers_, &Worker::ended); }
  // Equal where the same things have been done and are being done.
  std::vector<std::uint64_t> state() const {
    std::vector<std::uint64_t> out(events_.begin(), events_.end());
    std::ranges::sort(out);
    std::vector<std::uint64_t> doing;
    for (const Worker& worker : workers_)
      doing.push_back(worker.ended  ? 1
                      : worker.work ? 2 + describe(*worker.work) + (worker.models << 40)
                                    : 0);
    std::ranges::sort(doing);
    out.insert(out.end(), doing.begin(), doing.end());
    out.push_back(agenda_.stopped() + 2u * lost_ + 4u * failed_ + 8u * too_late_);
    out.push_back(models_);
    for (const Lane& lane : lanes_) {
      out.push_back(100u + lane.delivered_early + 2u * lane.waits);
      for (const Claim& claim : lane.claims) out.push_back(claim.model() * 64 + number(claim));
    }
    return out;
  }

  // The same on threads of their own, one of which does the work of all lanes.
  void run_on_threads(std::uint32_t seed) {
    std::mutex steps;
    std::atomic<std::size_t> working{workers_.size()};
    std::vector<std::thread> threads;
    for (Worker& worker : workers_) {
      threads.emplace_back([&, random = std::mt19937(seed++)]() mutable {
        for (;;) {
          worker.work = std::make_unique<Work>(agenda_.next(worker.me));
          {
            const std::lock_guard lock(steps);
            worker.models = models_;
          }
          if (std::holds_alternative<End>(*worker.work)) break;
          if (random() % 4 == 0) std::this_thread::yield();
          const std::lock_guard lock(steps);
          if (!act(worker, random() % 2)) act(worker, 0);
        }
        worker.work.reset();
        worker.ended = true;
        --working;
      });
    }
    for (std::mt19937 random(seed);
         (scenario_.lanes > 0 || scenario_.late_models > 0) && working > 0;
         std::this_thread::yield()) {
      const std::lock_guard lock(steps);
      act(lanes_[random() % lanes_.size()], random() % (random() % 64 == 0 ? 6 : 4));
      if (random() % 8 == 0) announce();
    }
    for (std::thread& thread : threads) thread.join();
  }

  void expect_each_once() const {
    std::set<std::uint64_t> seen;
    for (const std::uint64_t event : events_) {
      if (event % 8 <= static_cast<std::uint64_t>(Event::kDelivered)) {
        EXPECT_TRUE(seen.insert(event).second) << "twice: " << event;
      }
    }
  }
  void expect_complete() const {
    expect_each_once();
    const bool stopped =
        failed_ || (scenario_.failing_model < scenario_.models && !scenario_.failure_taken);
    EXPECT_EQ(agenda_.error().has_value(), stopped);
    if (agenda_.error()) {
      EXPECT_EQ(agenda_.error()->message, "expected");
    }
    const std::size_t models = stopped ? std::min(scenario_.failing_model, models_) : models_;
    if (!failed_) {
      EXPECT_EQ(delivered_, models);
      for (std::size_t model = 0; model < models; ++model) {
        if (model == scenario_.failing_model) continue;
        EXPECT_EQ(count(Event::kFiltered, model), scenario_.blocks * kTargets);
        EXPECT_EQ(count(Event::kScored, model), scenario_.blocks * kTargets);
      }
    }
  }

 private:
  struct Worker {
    Agenda::Worker me;
    std::unique_ptr<Work> work;
    std::size_t models = 0;  // of the input when the work was taken
    bool ended = false;
  };
  struct Lane {
    std::vector<Claim> claims;
    bool delivered_early = false;  // a part of its pairs
    bool waits = false;            // targets of it wait for the domain stage
  };
  static constexpr std::size_t kWorkerActions = 3, kLaneActions = 6;

  void note(Event event, std::size_t model, std::uint64_t target = 0) {
    events_.push_back((model * 64 + target) * 8 + static_cast<std::uint64_t>(event));
  }
  std::size_t count(Event event, std::size_t model) const {
    return static_cast<std::size_t>(std::ranges::count_if(events_, [&](std::uint64_t e) {
      return e % 8 == static_cast<std::uint64_t>(event) && e / 8 / 64 == model;
    }));
  }
  std::uint64_t number(const Claim& claim) const { return claim.targets()->first_index(); }
  static std::uint64_t describe(const Work& work) {
    return std::visit(Description(), work) * 32 + work.index();
  }

  // 0: asks, or reports; 1: reports that a device is to do the pair; 2: reports an error.
  bool act(Worker& worker, std::size_t action) {
    if (worker.ended) return false;
    if (worker.work == nullptr) {
      if (action != 0) return false;
      std::optional<Work> work = agenda_.try_next(worker.me);
      if (!work) return false;
      if (std::holds_alternative<End>(*work)) {
        worker.ended = true;
      } else {
        EXPECT_TRUE(std::ranges::none_of(workers_, &Worker::ended)) << "some have been sent away";
        worker.work = std::make_unique<Work>(*std::move(work));
        worker.models = models_;
      }
      return true;
    }
    if (action == 1) {
      const auto* pair = std::get_if<FilterPair>(worker.work.get());
      if (pair == nullptr || lost_ || segments_.empty() ||
          !agenda_.board().is_open(pair->job->index, pair->block))
        return false;
      agenda_.done(*pair, Agenda::PairOutcome{});
    } else if (action == 2) {
      if (!scenario_.errors || failed_) return false;
      failed_ = true;
      agenda_.abort({ErrorCode::kResources, "expected", {}, {}});
    } else {
      models_seen_ = worker.models;
      std::visit([this](const auto& work) { report(work); }, *worker.work);
    }
    note(Event::kOther, 100 + worker.work->index());
    worker.work.reset();
    return true;
  }

  void report(const End&) {}
  void report(const SetUpModel& work) {
    const std::size_t index = next_model_;
    if (index >= models_seen_ || failed_to_set_up_) {
      note(Event::kOther, 200 + models_seen_, models_);
      return agenda_.done(work, index, JobPtr());
    }
    ++next_model_;
    if (index == scenario_.failing_model) {
      if (scenario_.failure_taken) {
        auto empty = std::make_shared<Finished>();
        empty->result.index = index;
        return agenda_.done(work, std::move(empty));
      }
      failed_to_set_up_ = true;
      return agenda_.done(work, index,
                          std::unexpected(Error{ErrorCode::kInput, "expected", {}, {}}));
    }
    auto job = std::make_shared<ModelJob>();
    job->index = index;
    job->bytes = kModelBytes;
    job->nodes = kNodes;
    agenda_.done(work, index, job);
  }
  void report(const ReadBlock& work) {
    BlockPtr block;
    if (next_block_ < scenario_.blocks) block = next_block();
    if (block != nullptr) read_.push_back(block->id);
    if (!agenda_.done(work, std::move(block), scenario_.ahead) || read_.empty()) return;
    segments_.push_back(agenda_.board().make_segment(std::exchange(read_, {})));
  }
  BlockPtr next_block() {
    TargetBlock targets;
    targets.set_first_index(kTargets * next_block_++);
    for (std::size_t i = 0; i < kTargets; ++i) {
      targets.begin_target("t", "", "");
      targets.append(std::vector<Residue>(kResidues, 3));
      targets.end_target();
    }
    return std::make_shared<Block>(agenda_, std::move(targets));
  }
  void report(const ReadAhead& work) { agenda_.done(work); }
  void report(const BeginBatch& work) { agenda_.done(work); }
  void report(const NextPass& work) {
    const bool more = next_model_ < models_seen_;
    if (more) next_block_ = 0;
    if (!more) note(Event::kOther, 300 + models_seen_, models_);
    agenda_.done(work, more);
  }
  void report(const Backfill& work) {
    const auto waiting = std::ranges::find_if(lanes_, [](const Lane& lane) {
      return lane.waits && !lane.delivered_early && !lane.claims.empty();
    });
    const bool found = waiting != lanes_.end();
    if (found) {
      waiting->waits = false;
      deliver_early(*waiting);
    }
    agenda_.done(work, found);
  }
  void deliver_early(Lane& lane) {
    std::vector<DeviceUnit> units;
    for (const Claim& claim : lane.claims) units.push_back(unit(claim.targets(), 0, 1));
    lane.delivered_early = true;
    agenda_.deliver(lane.claims.front().model(), std::move(units), true);
  }
  WaitingTarget survivor(const ModelJob& job, const TargetsPtr& targets, std::size_t index) {
    note(Event::kFiltered, job.index, targets->first_index() + index);
    return {targets, static_cast<std::uint32_t>(index), 0, kNodes * kResidues, kNodes * kResidues,
            nullptr};
  }
  std::vector<WaitingTarget> filtered(const ModelJob& job, const TargetsPtr& targets,
                                      std::size_t begin, std::size_t end) {
    std::vector<WaitingTarget> found;
    for (std::size_t i = begin; i < end; ++i) found.push_back(survivor(job, targets, i));
    return found;
  }
  void report(const FilterRange& work) {
    agenda_.done(work, filtered(*work.job, work.targets, work.begin, work.end));
  }
  void report(const FilterPair& work) {
    Agenda::PairOutcome outcome;
    const bool open = agenda_.board().is_open(work.job->index, work.block);
    const TargetsPtr targets = agenda_.board().take_for_host(work.job->index, work.block);
    if (targets != nullptr && open) {
      outcome.found = filtered(*work.job, targets, 0, targets->size());
    } else {
      outcome.divide = targets;
    }
    agenda_.done(work, std::move(outcome));
  }
  void report(const FilterRest& work) {
    std::vector<WaitingTarget> found;
    for (const DeviceUnit& unit : work.units) {
      for (const std::uint32_t index : unit.filtered.passed)
        found.push_back(survivor(*work.job, unit.targets, index));
    }
    agenda_.done(work, std::move(found));
  }
  void report(const ScoreBatch& work) {
    for (const WaitingTarget& target : work.targets)
      note(Event::kScored, work.job->index, target.targets->first_index() + target.index);
    agenda_.done(work, 0);
  }
  void report(const FinishModel& work) {
    const std::size_t index = work.job->index;
    EXPECT_EQ(count(Event::kScored, index), scenario_.blocks * kTargets) << "model " << index;
    note(Event::kFinished, index);
    auto finished = std::make_shared<Finished>();
    finished->result.index = index;
    finished->bytes = 100;
    finished->parts_left = scenario_.parts;
    agenda_.done(work, std::move(finished));
  }
  void report(const FormatPart& work) { agenda_.done(work, --work.finished->parts_left == 0); }
  void report(const DeliverResult& work) {
    EXPECT_EQ(work.finished->result.index, delivered_);
    note(Event::kDelivered, delivered_++);
    agenda_.done(work);
  }

  DeviceUnit unit(const TargetsPtr& targets, std::uint32_t first, std::uint32_t last) {
    DeviceUnit out{.targets = targets, .filtered = {}};
    for (std::uint32_t i = first; i < last; ++i) out.filtered.passed.push_back(i);
    return out;
  }
  // 0, 1: claims the pairs of a model with a segment; 2: has targets that wait, of which it
  // delivers a part unless a worker takes it; 3: delivers the rest; 4: loses its claims; 5: the
  // device is lost, or the user cancels.
  bool act(Lane& lane, std::size_t action) {
    if (action == 5 && scenario_.cancelled) return end_with(ErrorCode::kInterrupted);
    if (scenario_.lanes == 0) return false;
    if (action < 2) {
      if (!lane.claims.empty() || lost_) return false;
      for (const SegmentId segment : segments_) {
        lane.claims = agenda_.board().claim(delivered_ + action, segment);
        std::erase_if(lane.claims, [](const Claim& c) { return !c; });
        if (!lane.claims.empty()) return true;
      }
      return false;
    }
    if (action == 5) return !std::exchange(lost_, true) && (agenda_.board().refuse_all(), true);
    if (lane.claims.empty()) return false;
    const ModelId model = lane.claims.front().model();
    std::vector<DeviceUnit> units;
    switch (action) {
      case 2:
        if (!scenario_.early || lane.delivered_early) return false;
        if (std::exchange(lane.waits, !lane.waits)) {
          deliver_early(lane);
        } else {
          agenda_.device_waits();
        }
        return true;
      case 3:
        for (Claim& claim : lane.claims)
          units.push_back(unit(claim.finish(), lane.delivered_early ? 1 : 0, kTargets));
        lane = {};
        agenda_.deliver(model, std::move(units), false);
        return true;
      default:
        // Targets of which a part has been delivered cannot be given back: the search ends.
        if (lane.delivered_early && !(scenario_.memory_refused && end_with(ErrorCode::kResources)))
          return false;
        lane = {};
        return true;
    }
  }
  bool end_with(ErrorCode code) {
    if (std::exchange(failed_, true)) return false;
    agenda_.abort({code, "expected", {}, {}});
    return true;
  }

  const Scenario scenario_;
  SearchProgress progress_;
  Agenda agenda_;
  std::vector<Worker> workers_;
  std::vector<std::uint64_t> events_;
  std::size_t models_, models_seen_ = 0, next_model_ = 0, next_block_ = 0, delivered_ = 0;
  bool too_late_ = false;  // for the next model
  bool failed_to_set_up_ = false, failed_ = false, lost_ = false;
  std::vector<BlockId> read_;  // and in no segment yet
  std::vector<SegmentId> segments_;
  std::vector<Lane> lanes_;
};

// Visits every state that a search can reach.
void explore(const Scenario& scenario) {
  using Trail = std::vector<std::uint8_t>;
  std::set<std::vector<std::uint64_t>> seen;
  std::vector<Trail> open(1);
  std::size_t ends = 0;
  while (!open.empty() && !testing::Test::HasFailure()) {
    const Trail trail = std::move(open.back());
    open.pop_back();
    bool moved = false;
    const std::size_t actions = Search(scenario).actions();
    for (std::size_t action = 0; action < actions; ++action) {
      Search search(scenario);
      for (const std::uint8_t before : trail) ASSERT_TRUE(search.act(before));
      if (search.ended()) {
        ++ends;
        moved = true;
        search.expect_complete();
        break;
      }
      if (!search.act(action)) continue;
      moved = true;
      search.expect_each_once();
      if (!seen.insert(search.state()).second) continue;
      Trail next = trail;
      next.push_back(static_cast<std::uint8_t>(action));
      open.push_back(std::move(next));
    }
    if (!moved) {
      std::string text;
      for (const std::uint8_t action : trail) text += std::to_string(action) + " ";
      ADD_FAILURE() << "nobody can go on after " << text;
    }
  }
  EXPECT_GT(ends, 0u);
}

std::vector<WaitingTarget> targets_with(std::span<const std::uint64_t> cells) {
  std::vector<WaitingTarget> targets(cells.size());
  for (std::uint32_t n = 0; n < targets.size(); ++n)
    targets[n] = {.targets = nullptr,
                  .index = n,
                  .filter_nats = 0,
                  .cells = 0,
                  .cells_left = cells[n],
                  .parsed = nullptr};
  return targets;
}

// Targets of 100 to 399 residues and a model of 100 nodes.
TEST(BatchesTest, NoneHasMoreRowsThanItsThreadHasMemoryFor) {
  constexpr std::uint64_t kModelNodes = 100, kRows = 5000, kLongest = 399;
  std::vector<std::uint64_t> cells(3000);
  for (std::size_t n = 0; n < cells.size(); ++n) cells[n] = (100 + n % 300) * kModelNodes;
  const std::vector<WaitingTarget> targets = targets_with(cells);
  std::size_t divided = 0;
  for (const auto& batch : divide(targets, {.nodes = kModelNodes, .rows = kRows}).others) {
    EXPECT_LT(cells_left(batch), (kRows + kLongest) * kModelNodes);
    divided += batch.size();
  }
  EXPECT_EQ(divided, targets.size());
  // Every batch has a target, however little memory there is.
  EXPECT_EQ(divide(targets, {.nodes = kModelNodes, .rows = 0}).others.size(), targets.size());
}

// At the end of a search of one model threads would wait for the one with the largest batch.
TEST(BatchesTest, IdleThreadsShareWhatIsLeft) {
  constexpr std::uint64_t kCells = 1'000'000;
  const std::vector<WaitingTarget> targets = targets_with(std::vector(40, kCells));
  BatchSizes sizes{.threads = 16, .nodes = 100, .rows = kCells};
  EXPECT_EQ(divide(targets, sizes).others.size(), 5u);
  sizes.idle = true;
  EXPECT_EQ(divide(targets, sizes).others.size(), targets.size());
  sizes.threads = 1;  // nothing to share
  EXPECT_EQ(divide(targets, sizes).others.size(), 1u);
}

TEST(ModelsInFlightTest, ModelsAreBegunWhileThereIsRoomAndNeed) {
  const auto begun = [](const SearchDemand& demand, Batch batch, std::uint64_t model_bytes) {
    ModelsInFlight models(
        {.model_bytes = model_bytes, .target_bytes = 1, .threads = 4, .device = false});
    std::uint64_t count = 0;
    while (models.may_start(demand, batch)) models.start(), ++count;
    return count;
  };
  const SearchDemand idle{.results_full = false, .waiting_filters = 0};
  const SearchDemand busy{.results_full = true, .waiting_filters = 1000};
  constexpr std::uint64_t kMuch = std::uint64_t{1} << 30;
  EXPECT_EQ(begun(idle, Batch::kNone, kMuch), low_water(4));
  EXPECT_EQ(begun(idle, Batch::kNone, 4 * kModelBytes), 4u);
  EXPECT_EQ(begun({.results_full = false, .waiting_filters = 8}, Batch::kNone, kMuch), 1u);
  EXPECT_EQ(begun(busy, Batch::kNone, kMuch), 0u);
  EXPECT_EQ(begun(busy, Batch::kFilling, kMuch), most_models(4));
  EXPECT_EQ(begun(idle, Batch::kFull, kMuch), 0u);
}

TEST(AgendaTest, EveryPairIsDoneOnceInAllOrders) {
  explore({.models = 2, .blocks = 1, .ranges = 2});
  explore({.models = 1, .blocks = 2, .workers = 3});
  explore({.models = 2, .blocks = 1, .parts = 2});
  explore({.models = 1, .blocks = 2, .workers = 3, .ahead = 2});
}

TEST(AgendaTest, TargetsThatDoNotFitAreReadForBatchesOfModels) {
  explore({.models = 2, .blocks = 2, .kept = false, .models_at_once = 1});
  explore({.models = 2, .blocks = 2, .kept = false});
  explore({.models = 0, .blocks = 2, .kept = false});
}

// Every model that was announced in time is searched. The others are refused.
TEST(AgendaTest, ModelsMayComeLate) {
  explore({.models = 2, .blocks = 1, .late_models = 1});
  explore({.models = 3, .blocks = 1, .workers = 1, .late_models = 2});
  explore({.models = 2, .blocks = 2, .kept = false, .models_at_once = 1, .late_models = 1});
  explore({.models = 2, .blocks = 1, .workers = 1, .lanes = 1, .late_models = 1});
  explore({.models = 2, .blocks = 1, .workers = 1, .late_models = 1, .cancelled = true});
}

TEST(AgendaTest, ResultsWithoutRoomHoldModelsBack) {
  explore({.models = 3, .blocks = 1, .result_bytes = 50});
}

TEST(AgendaTest, AnErrorEndsTheSearch) {
  explore({.models = 3, .blocks = 1, .failing_model = 1});
  explore({.models = 1, .blocks = 1, .failing_model = 0});
  explore({.models = 1, .blocks = 2, .errors = true});
  explore({.models = 2, .blocks = 1, .kept = false, .errors = true});
  explore({.models = 1, .blocks = 2, .cancelled = true});
}

TEST(AgendaTest, AnErrorThatItsSinkTakesEndsNothingElse) {
  explore({.models = 3, .blocks = 1, .failing_model = 1, .failure_taken = true});
  explore({.models = 1, .blocks = 1, .failing_model = 0, .failure_taken = true});
  explore({.models = 2,
           .blocks = 1,
           .workers = 1,
           .lanes = 1,
           .failing_model = 0,
           .failure_taken = true});
  explore({.models = 2,
           .blocks = 1,
           .kept = false,
           .models_at_once = 1,
           .failing_model = 0,
           .failure_taken = true});
}

TEST(AgendaTest, ADeviceTakesPartAndIsLost) {
  explore({.models = 1, .blocks = 2, .lanes = 1});
  explore({.models = 2, .blocks = 1, .lanes = 1});
  explore({.models = 1, .blocks = 2, .kept = false, .lanes = 1});
}

TEST(AgendaTest, LanesTakePartAtTheSameTime) {
  explore({.models = 2, .blocks = 1, .workers = 1, .lanes = 2});
  explore({.models = 2, .blocks = 1, .workers = 1, .lanes = 2, .early = true});
  explore({.models = 2, .blocks = 1, .workers = 1, .lanes = 2, .errors = true});
  explore({.models = 2, .blocks = 1, .workers = 1, .lanes = 2, .cancelled = true});
}

TEST(AgendaTest, MemoryRefusedToALaneEndsTheSearchOrLeavesPairsToTheCpu) {
  explore({.models = 1, .blocks = 1, .lanes = 1, .early = true, .memory_refused = true});
  explore(
      {.models = 2, .blocks = 1, .workers = 1, .lanes = 2, .early = true, .memory_refused = true});
}

// What was delivered early does not come again.
TEST(AgendaTest, ADeviceDeliversAPartFirst) {
  explore({.models = 1, .blocks = 1, .lanes = 1, .early = true});
  explore({.models = 1, .blocks = 1, .ranges = 2, .lanes = 1, .early = true, .cancelled = true});
}

// A worker that waits is woken when there is work, and at the end.
TEST(AgendaTest, ThreadsWakeEachOther) {
  const Scenario scenarios[] = {
      {.models = 20, .blocks = 4, .workers = 4, .ranges = 2, .parts = 3},
      {.models = 20, .blocks = 9, .workers = 4, .ahead = 3},
      {.models = 20, .blocks = 4, .workers = 3, .kept = false, .models_at_once = 4},
      {.models = 20, .blocks = 4, .workers = 4, .lanes = 3, .early = true},
      {.models = 20, .blocks = 4, .workers = 4, .failing_model = 10},
      {.models = 20, .blocks = 4, .workers = 4, .late_models = 19},
      {.models = 20, .blocks = 4, .workers = 4, .lanes = 3, .late_models = 10},
  };
  for (const Scenario& scenario : scenarios) {
    for (std::uint32_t seed = 0; seed < 20; ++seed) {
      Search search(scenario);
      search.run_on_threads(seed * 100);
      search.expect_complete();
    }
  }
}

// What a device has begun does not count as left, so that the end of a search is known.
TEST(AgendaTest, OnceTargetsHaveBeenReadDevicesKnowWhatIsLeftToFilter) {
  SearchProgress progress;
  progress.cells = 1;
  progress.target_bytes_read = 1;
  Agenda agenda({.in_flight = {.model_bytes = 4 * kModelBytes,
                               .target_bytes = 1 << 20,
                               .threads = 1,
                               .device = true},
                 .result_bytes = 1 << 20,
                 .task_cells = 1,
                 .batch_rows = 1 << 16},
                progress);
  Agenda::Worker me;
  const auto do_next = [&](auto work, auto... outcome) {
    const std::optional<Work> next = agenda.try_next(me);
    ASSERT_TRUE(next && std::holds_alternative<decltype(work)>(*next));
    agenda.done(work, outcome...);
  };
  auto job = std::make_shared<ModelJob>();
  job->nodes = kNodes;
  do_next(SetUpModel{}, std::size_t{0}, Result<JobPtr>(job));
  do_next(SetUpModel{}, std::size_t{1}, Result<JobPtr>(JobPtr()));
  TargetBlock targets;
  targets.begin_target("t", "", "");
  targets.append(std::vector<Residue>(kResidues, 3));
  targets.end_target();
  do_next(ReadBlock{}, std::make_shared<Block>(agenda, std::move(targets)), false);
  EXPECT_DOUBLE_EQ(agenda.load(1).filter_seconds_left, kNodes * kResidues - 1);
  do_next(ReadBlock{}, BlockPtr(), false);
  EXPECT_EQ(agenda.load(1).filter_seconds_left, 0);
  // A device may have the pair. A worker that waits for it sets up the next model meanwhile.
  do_next(FilterPair{}, Agenda::PairOutcome{});
  std::thread worker([&] {
    const Work work = agenda.next(me);
    EXPECT_TRUE(std::holds_alternative<SetUpModel>(work));
  });
  EXPECT_TRUE(agenda.more_models());
  worker.join();
  agenda.stop();
}

TEST(AgendaTest, TheEndWakesWhoWaits) {
  for (const bool by_error : {false, true}) {
    SearchProgress progress;
    Agenda agenda({.in_flight = {.model_bytes = kModelBytes,
                                 .target_bytes = 1,
                                 .threads = 2,
                                 .device = false},
                   .result_bytes = 1,
                   .task_cells = 1,
                   .batch_rows = 1},
                  progress);
    Agenda::Worker busy[2], idle;
    for (Agenda::Worker& one : busy) ASSERT_TRUE(agenda.try_next(one));
    ASSERT_FALSE(agenda.try_next(idle));
    std::thread worker([&] { EXPECT_TRUE(std::holds_alternative<End>(agenda.next(idle))); });
    // Enough for it to wait, in most runs.
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (by_error)
      agenda.abort({ErrorCode::kResources, "expected", {}, {}});
    else
      agenda.stop();
    worker.join();
  }
}

}  // namespace
}  // namespace hmmjit::search_run
