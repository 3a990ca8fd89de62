// Same results as the CPU search, whatever the devices, their number and memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <thread>

#include "host_kernels.hpp"
#include "search/target_counters.hpp"
#include "search_fixture.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

class GpuSearch : public testing::Test {
 protected:
  GpuSearch() : driver_({h200(), h200(), h200()}) { driver_.on_launch = run_on_host; }
  static plan::DeviceTraits h200() { return *plan::find_device("H200"); }

  static const SearchData& data() {
    static const SearchData data = make_search_data(11, 6, 300);
    return data;
  }
  static const std::string& expected() {
    static const std::string text = [] {
      const SearchOutcome outcome = run_search(data(), nullptr, small_blocks(2));
      EXPECT_EQ(outcome.error, "");
      return outcome.text;
    }();
    return text;
  }
  void TearDown() override { EXPECT_EQ(driver_.calls("copy_behind_kernel"), 0); }
  // Runs on devices that are ready before the search begins.
  SearchOutcome run(gpu::Settings settings, const SearchOptions& options) {
    gpu::GpuFilters gpu(std::move(settings));
    wait_until_started(gpu);
    const SearchOutcome outcome = run_search(data(), &gpu, options);
    statistics_ = gpu.statistics();
    return outcome;
  }
  // Its devices are ready then.
  void start(Session& session) {
    ASSERT_TRUE(session.start({.use = DeviceChoice::Use::kGpu}, small_blocks(2), {}, {},
                              [this](const DeviceChoice&) { return fake_settings(driver_); }));
    wait_until_started(*session.devices());
  }
  std::size_t free_memory() const {
    return (*driver::Driver::open(driver_.api())->device(0))->memory()->free;
  }
  std::uint64_t all_pairs(const SearchOptions& options) const {
    return run_search(data(), nullptr, options).statistics.blocks * data().models.size();
  }

  FakeDriver driver_;
  gpu::Statistics statistics_;
};

TEST_F(GpuSearch, ExpectedResultsAreNotTrivial) {
  EXPECT_THAT(expected(), testing::HasSubstr("target"));
  EXPECT_GT(std::ranges::count(expected(), '\n'), 50);
}

// A device engine that is kept: targets and kernels are there already.
TEST_F(GpuSearch, ASecondSearchLoadsNothingAgain) {
  gpu::GpuFilters gpu(fake_settings(driver_, 2));
  wait_until_started(gpu);
  EXPECT_LT(gpu.statistics().driver_seconds + gpu.statistics().context_seconds, 600);
  const auto targets = kept_targets(data());
  std::uint64_t uploaded = 0;
  int loaded = 0;
  for (int search = 0; search < 3; ++search) {
    ASSERT_TRUE(targets->rewind());
    const SearchOutcome outcome = run_search(data(), &gpu, small_blocks(2), *targets);
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.text, expected());
    if (search > 0) {
      EXPECT_EQ(gpu.statistics().upload_bytes, uploaded);
      EXPECT_EQ(driver_.calls("library_load"), loaded);
    }
    uploaded = gpu.statistics().upload_bytes;
    loaded = driver_.calls("library_load");
  }
  EXPECT_EQ(gpu.statistics().blocks_given_back, 0u);
  EXPECT_GT(uploaded, 0u);
  EXPECT_GT(loaded, 0);
}

TEST_F(GpuSearch, SearchesOfASessionTakeTurns) {
  const SearchData other = make_search_data(12, 3, 300);
  const std::string other_expected = run_search(other, nullptr, small_blocks(2)).text;
  Session session;
  start(session);
  const auto devices = session.devices();
  start(session);
  EXPECT_EQ(session.devices(), devices);

  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (const bool first : {i % 2 == 0, i % 2 != 0}) {
        const SearchOutcome outcome = run_search(first ? data() : other, session, small_blocks(2));
        EXPECT_EQ(outcome.error, "");
        EXPECT_EQ(outcome.text, first ? expected() : other_expected);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(session.device_statistics()->blocks_done, 0u);
  EXPECT_EQ(session.device_statistics()->blocks_given_back, 0u);

  // A search that waits for its turn can be cancelled.
  std::atomic<bool> runs = false, ends = false;
  SearchOptions long_one = small_blocks(2), cancelled = small_blocks(2);
  long_one.on_progress = [&] {
    runs = true;
    runs.notify_all();
    ends.wait(false);
  };
  std::thread running([&] { EXPECT_EQ(run_search(data(), session, long_one).text, expected()); });
  runs.wait(false);
  constexpr auto kDelay = std::chrono::milliseconds(20);
  Cancellation own;
  const Cancellation limit(&own, std::chrono::steady_clock::now() + kDelay);
  for (const Cancellation* const cancellation : {&limit, static_cast<const Cancellation*>(&own)}) {
    cancelled.cancellation = cancellation;
    std::thread canceller([&] {
      std::this_thread::sleep_for(kDelay);
      if (cancellation == &own) own.cancel();
    });
    EXPECT_THAT(run_search(data(), session, cancelled).error, testing::HasSubstr("cancelled"));
    canceller.join();
  }
  ends = true;
  ends.notify_all();
  running.join();

  // A warning reaches one search: the one that runs, or the next.
  std::vector<std::string> warnings;
  SearchOptions listening = small_blocks(2);
  listening.on_warning = [&](const Error& warning) { warnings.push_back(warning.message); };
  session.warn({ErrorCode::kNoDevice, "early", {}, {}});
  for (int i = 0; i < 2; ++i) run_search(data(), session, listening);
  EXPECT_THAT(warnings, testing::ElementsAre("early"));

  SearchProgress progress;
  const Error wrong{ErrorCode::kInternal, "differ", "kernel x", {}};
  EXPECT_FALSE(session.leave_devices(listening, progress, wrong, true));
  EXPECT_EQ(session.device_statistics()->state, "ready");
  progress.wrong_kernel = true;
  EXPECT_FALSE(session.leave_devices(listening, progress, wrong, false));
  EXPECT_THAT(warnings, testing::ElementsAre("early"));
  EXPECT_TRUE(session.leave_devices(listening, progress, wrong, true));
  EXPECT_THAT(warnings.back(), testing::HasSubstr("repeated on the CPU"));
  start(session);
  EXPECT_EQ(session.devices(), devices);
  EXPECT_EQ(session.device_statistics()->state, "failed");
  EXPECT_EQ(session.device_statistics()->reason, "kernel x: differ");
  EXPECT_EQ(run_search(data(), session, small_blocks(2)).text, expected());
}

// The first search has models until all others have been asked for theirs and one has failed. So
// they share its run, in which each has its own results, errors and end.
TEST_F(GpuSearch, SearchesOfResidentTargetsShareARun) {
  const SearchData few = make_search_data(11, 6, 100);
  const auto targets = resident_targets(few);
  Session session;
  start(session);
  struct NoRoom final : ResultSink {
    Status receive(const ModelResult&) override { return fail(ErrorCode::kOutput, "no room"); }
  };
  enum Kind { kModels, kCancelled, kThrows, kBadModel, kNoRoom, kNoScores, kSettings };
  std::atomic<int> asked{0};
  std::atomic<bool> first_asked{false}, no_scores{false};
  const auto search = [&](const std::vector<Hmm>& models, Kind kind, ResultSink& sink) {
    Cancellation cancellation;
    SearchOptions options = small_blocks(2);
    options.cancellation = &cancellation;
    if (kind == kSettings) options.thresholds.Z = 1000;
    SearchProgress progress;
    const auto source = targets->open();
    std::size_t next = 0;
    const ModelSource give = [&]() -> Result<std::optional<Query>> {
      if (next == 0) {
        ++asked;
        asked.notify_all();
      }
      if (next < models.size()) return Query(models[next++]);
      if (kind == kThrows) throw std::runtime_error("thrown");
      if (kind == kBadModel) return fail(ErrorCode::kInput, "bad model");
      if (kind == kCancelled) cancellation.cancel();
      return std::nullopt;
    };
    const auto statistics = session.search(options, give, *source, sink, progress);
    if (statistics) {
      EXPECT_EQ(progress.models_started, models.size());
    }
    return statistics;
  };

  std::thread first([&] {
    SearchProgress progress;
    const auto source = targets->open();
    NoRoom unused;
    struct Any final : ResultSink {
      Status receive(const ModelResult&) override { return {}; }
    } sink;
    const ModelSource give = [&]() -> Result<std::optional<Query>> {
      first_asked = true;
      first_asked.notify_all();
      if (asked > kNoScores && no_scores) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      return Query(few.models[0]);
    };
    const auto statistics = session.search(small_blocks(2), give, *source, sink, progress);
    ASSERT_TRUE(statistics);
    EXPECT_TRUE(statistics->shared);
    EXPECT_EQ(statistics->models, progress.models_done);
  });
  first_asked.wait(false);
  std::vector<std::thread> others;
  for (const Kind kind : {kModels, kCancelled, kThrows, kBadModel, kNoRoom, kNoScores, kSettings}) {
    // One with other settings waits for the devices, and from then on no other joins. None joins
    // after the one with a model that cannot be set up.
    for (int n; kind >= kNoScores && (n = asked) < kind;) asked.wait(n);
    others.emplace_back([&, kind] {
      SearchData own = few;
      own.models = {few.models[static_cast<std::size_t>(kind) % 6], few.models[1]};
      std::vector<Hmm> models = own.models;
      if (kind == kNoScores) {
        Hmm& without_scores = models.emplace_back(few.models[2]);
        without_scores.needs_calibration = true;
        std::ranges::fill(without_scores.match, std::nanf(""));
        models.push_back(few.models[3]);
      }
      const auto run = [&](ResultSink& sink) { return search(models, kind, sink); };
      if (kind == kThrows) {
        TextSink sink;
        EXPECT_THROW((void)run(sink), std::runtime_error);
      } else if (kind == kNoRoom) {
        NoRoom sink;
        EXPECT_EQ(run(sink).error().message, "no room");
      } else {
        TextSink sink;
        const auto statistics = run(sink);
        SearchOptions options = small_blocks(2);
        if (kind == kSettings) options.thresholds.Z = 1000;
        const std::string all = run_search(own, nullptr, options).text;
        if (kind == kCancelled) {
          EXPECT_EQ(statistics.error().message, "the search was cancelled");
        } else {
          EXPECT_EQ(sink.text, all);
          EXPECT_THAT(statistics ? "" : statistics.error().message,
                      testing::StartsWith(kind == kBadModel   ? "bad model"
                                          : kind == kNoScores ? "no distribution fits the Forward"
                                                              : ""));
          EXPECT_EQ(!statistics, kind == kBadModel || kind == kNoScores);
          if (kind == kNoScores) no_scores = true;
        }
        if (statistics) {
          EXPECT_EQ(statistics->shared, kind != kSettings);
        }
      }
    });
  }
  for (std::thread& thread : others) thread.join();
  first.join();
}

// The first search has no further model and is kept from ending until the others have ended.
TEST_F(GpuSearch, ASearchJoinsARunWhoseModelsHaveAllBeenRead) {
  struct Held final : TextSink {
    std::shared_ptr<PreparedResult> prepare(const ModelResult&) const override {
      reached = true;
      reached.notify_all();
      held.wait(true);
      return nullptr;
    }
    mutable std::atomic<bool> reached = false, held = true;
  };
  const auto targets = resident_targets(data());
  Session session;
  start(session);
  Held first;
  std::atomic<bool> all_read = false;
  const auto search = [&](std::size_t index, ResultSink& sink, SearchProgress& progress) {
    const Hmm& model = data().models[index];
    const Cancellation limit(nullptr, std::chrono::steady_clock::now() + std::chrono::minutes(1));
    SearchOptions options = small_blocks(2);
    if (&sink != &first) options.cancellation = &limit;
    const auto source = targets->open();
    std::size_t next = 0;
    const ModelSource give = [&]() -> Result<std::optional<Query>> {
      if (next++ == 0) return Query(model);
      all_read = true;
      all_read.notify_all();
      return std::nullopt;
    };
    const auto statistics = session.search(options, give, *source, sink, progress);
    EXPECT_EQ(statistics ? "" : statistics.error().message, "");
    EXPECT_EQ(statistics ? statistics->targets : 0, data().targets.size());
    return statistics && statistics->shared;
  };
  const auto expected_of = [&](std::size_t model) {
    SearchData own = data();
    own.models = {data().models[model]};
    return run_search(own, nullptr, small_blocks(2)).text;
  };
  std::thread running([&] {
    SearchProgress progress;
    EXPECT_TRUE(search(0, first, progress));
  });
  all_read.wait(false);
  first.reached.wait(false);
  for (std::size_t model = 1; model < 4; ++model) {
    TextSink sink;
    SearchProgress progress;
    EXPECT_TRUE(search(model, sink, progress));
    EXPECT_EQ(sink.text, expected_of(model));
    EXPECT_EQ(progress.cells,
              progress.residues * static_cast<std::uint64_t>(data().models[model].M));
  }
  first.held = false;
  first.held.notify_all();
  running.join();
  EXPECT_EQ(first.text, expected_of(0));

  // Searches come at all times, also when a run has just ended.
  std::vector<std::string> wanted;
  for (std::size_t model = 0; model < 3; ++model) wanted.push_back(expected_of(model));
  std::vector<std::thread> threads;
  for (std::size_t model = 0; model < 3; ++model) {
    threads.emplace_back([&, model] {
      for (int i = 0; i < 20; ++i) {
        TextSink sink;
        SearchProgress progress;
        search(model, sink, progress);
        EXPECT_EQ(sink.text, wanted[model]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// The run of a search that was cancelled before the run began has no search, and none joins it.
TEST_F(GpuSearch, ASearchFollowsACancelledOneWithTheSameTargets) {
  const auto targets = resident_targets(data());
  Session session;
  start(session);
  Cancellation cancelled;
  cancelled.cancel();
  SearchOptions at_once = small_blocks(2);
  at_once.cancellation = &cancelled;
  for (int i = 0; i < 6; ++i) {
    EXPECT_THAT(run_search(data(), session, at_once, *targets).error,
                testing::HasSubstr("cancelled"));
    EXPECT_EQ(run_search(data(), session, small_blocks(2), *targets).text, expected());
  }
}

// A search ends at its deadline while another search of the run waits for its next model.
TEST_F(GpuSearch, ASearchDoesNotWaitForTheModelsOfOthers) {
  const auto targets = resident_targets(data());
  Session session;
  start(session);
  std::atomic<bool> reads = false, waits = true;
  std::thread slow([&] {
    const ModelSource give = [&]() -> Result<std::optional<Query>> {
      reads = true;
      reads.notify_all();
      waits.wait(true);
      return std::nullopt;
    };
    const auto source = targets->open();
    TextSink sink;
    SearchProgress progress;
    EXPECT_TRUE(session.search(small_blocks(2), give, *source, sink, progress));
  });
  reads.wait(false);
  const Cancellation limit(nullptr, std::chrono::steady_clock::now());
  SearchOptions limited = small_blocks(2);
  limited.cancellation = &limit;
  EXPECT_THAT(run_search(data(), session, limited, *targets).error,
              testing::HasSubstr("cancelled"));
  waits = false;
  waits.notify_all();
  slow.join();
}

TEST_F(GpuSearch, SearchesOfASessionGoOnWithoutALostDevice) {
  Session session;
  start(session);
  EXPECT_EQ(run_search(data(), session, small_blocks(2)).text, expected());
  EXPECT_EQ(session.device_statistics()->state, "ready");
  driver_.fail_from(driver_.total_calls() + 40, driver::code::kLaunchFailed);
  const auto search = [&] {
    const SearchOutcome outcome = run_search(data(), session, small_blocks(2));
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.text, expected());
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) threads.emplace_back(search);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(session.device_statistics()->state, "failed");
  // Nobody waits for a device that is lost.
  SearchOptions nested = small_blocks(2);
  nested.on_progress = [once = std::make_shared<std::once_flag>(), search] {
    std::call_once(*once, search);
  };
  EXPECT_EQ(run_search(data(), session, nested).text, expected());
}

// Targets of an earlier search make room for those of a later one.
TEST_F(GpuSearch, KeptTargetsGiveWay) {
  const SearchData other = make_search_data(12, 3, 300);
  const std::string other_expected = run_search(other, nullptr, small_blocks(2)).text;
  for (const std::uint64_t vram : {300'000, 1'000'000, 1'300'000}) {
    gpu::Settings settings = fake_settings(driver_);
    settings.vram = vram;
    gpu::GpuFilters gpu(std::move(settings));
    wait_until_started(gpu);
    const auto targets = kept_targets(data()), others = kept_targets(other);
    for (const bool first : {true, false, true, true, false}) {
      TargetSource& source = first ? *targets : *others;
      ASSERT_TRUE(source.rewind());
      const SearchOutcome outcome =
          run_search(first ? data() : other, &gpu, small_blocks(2), source);
      EXPECT_EQ(outcome.error, "");
      EXPECT_EQ(outcome.text, first ? expected() : other_expected) << vram;
    }
    EXPECT_LE(gpu.statistics().peak_device_bytes, std::max<std::uint64_t>(vram, 400'000)) << vram;
  }
}

// A device keeps targets only as long as a search can find them there.
TEST_F(GpuSearch, TargetsThatHaveBeenFreedLeaveTheDevice) {
  gpu::GpuFilters gpu(fake_settings(driver_));
  wait_until_started(gpu);
  std::uint64_t two_searches = 0;
  for (int search = 1; search <= 4; ++search) {
    const auto targets = kept_targets(data());
    EXPECT_EQ(run_search(data(), &gpu, small_blocks(2), *targets).text, expected());
    if (search == 2) two_searches = gpu.statistics().peak_device_bytes;
  }
  EXPECT_GT(two_searches, 0u);
  EXPECT_EQ(gpu.statistics().peak_device_bytes, two_searches);
}

TEST_F(GpuSearch, DoesAllOfTheFirstFilterAndGivesTheSameResults) {
  const SearchOutcome outcome = run(fake_settings(driver_), small_blocks(2));
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.text, expected());
  EXPECT_EQ(statistics_.blocks_done, all_pairs(small_blocks(2)));
  EXPECT_EQ(statistics_.blocks_given_back, 0u);
  EXPECT_GT(statistics_.segments, 1u);
  // Every stage had its share, and little was left open.
  EXPECT_GT(statistics_.undecided, 0u);
  EXPECT_GT(statistics_.survivors, statistics_.viterbi);
  EXPECT_GT(statistics_.viterbi, 0u);
  EXPECT_GT(statistics_.viterbi_flagged, 0u);
  EXPECT_GT(statistics_.forward, statistics_.passed);
  EXPECT_GT(statistics_.passed, 0u);
  EXPECT_LT(statistics_.open, statistics_.survivors / 10);
  EXPECT_EQ(statistics_.parsed, statistics_.passed);
  EXPECT_GT(statistics_.envelopes, statistics_.parsed / 2);
  const SearchOutcome alone = run_search(data(), nullptr, small_blocks(2));
  EXPECT_LT(outcome.statistics.filters.viterbi_cells, alone.statistics.filters.viterbi_cells / 5);
  // The work of the stages: all of it on the device, except targets left open.
  const auto& stages = statistics_.stages;
  const auto of = [&](gpu::Timed stage) { return stages[static_cast<std::size_t>(stage)]; };
  EXPECT_EQ(of(gpu::Timed::kSsv).cells, statistics_.cells);
  const std::uint64_t viterbi = of(gpu::Timed::kViterbi).cells;
  EXPECT_LE(viterbi, alone.statistics.filters.viterbi_cells);
  EXPECT_GE(viterbi + outcome.statistics.filters.viterbi_cells,
            alone.statistics.filters.viterbi_cells);
  for (const gpu::Timed stage :
       {gpu::Timed::kSsv, gpu::Timed::kBias, gpu::Timed::kViterbi, gpu::Timed::kForward})
    EXPECT_GT(of(stage).expected_seconds, 0) << static_cast<int>(stage);
  EXPECT_GE(of(gpu::Timed::kBias).cells, viterbi);
  EXPECT_GT(statistics_.filter_lanes.working, 0);
  EXPECT_GT(statistics_.domain_lanes.working, 0);
}

TEST_F(GpuSearch, SeveralDevicesShareTheTargets) {
  for (const int devices : {2, 3}) {
    const SearchOutcome outcome = run(fake_settings(driver_, devices), small_blocks(2));
    EXPECT_EQ(outcome.text, expected());
    EXPECT_EQ(statistics_.devices.size(), static_cast<std::size_t>(devices));
    EXPECT_EQ(statistics_.blocks_done, all_pairs(small_blocks(2)));
  }
}

TEST_F(GpuSearch, ServesOneSearchAfterAnother) {
  gpu::GpuFilters gpu(fake_settings(driver_));
  wait_until_started(gpu);
  gpu::Statistics before;
  std::uint64_t first = 0;
  for (const bool streamed : {false, true, false}) {
    SearchOptions options = small_blocks(3);
    if (streamed) options.memory = 120'000;
    const SearchOutcome outcome = run_search(data(), &gpu, options);
    EXPECT_EQ(outcome.text, expected());
    EXPECT_EQ(outcome.statistics.streamed, streamed);
    const gpu::Statistics statistics = gpu.statistics(before);
    // As much as in the first: the device does all work that is not streamed.
    if (first == 0) first = statistics.blocks_done;
    if (!streamed) {
      EXPECT_EQ(statistics.blocks_done, first);
    } else {
      EXPECT_GT(statistics.blocks_done, 0u);
    }
    EXPECT_EQ(statistics.blocks_given_back, 0u);
    // The fake driver's events are a millisecond apart.
    EXPECT_NEAR(statistics.stages[0].seconds, 1e-3 * static_cast<double>(statistics.chains), 1e-9);
    before = gpu.statistics();
  }
  EXPECT_EQ(first, all_pairs(small_blocks(3)));
  // One without work for the device.
  const SearchData empty{data().models, {}};
  EXPECT_EQ(run_search(empty, &gpu, small_blocks(3)).statistics.backend,
            run_search(empty, nullptr, small_blocks(3)).statistics.backend);
  const gpu::Statistics none = gpu.statistics(before);
  EXPECT_EQ(none.state, "unused");
  EXPECT_EQ(none.cells + none.targets + none.stages[0].cells + none.domain_stages[0].cells, 0u);
  EXPECT_EQ(none.busy_seconds + none.active_seconds, 0);
}

TEST_F(GpuSearch, LittleDeviceMemoryMeansSmallerPieces) {
  const std::uint64_t half = all_pairs(small_blocks(2)) / 2;
  std::uint64_t most_done = 0;
  // Targets that wait for the domain stage stay where they are: on a busy machine a segment may
  // find no room for so long that the threads do it.
  for (int attempt = 0; attempt < 5 && most_done < half; ++attempt) {
    gpu::Settings settings = fake_settings(driver_);
    // Room for the tables of one lane, whose models need up to 60 kB, and for two segments.
    settings.lanes = 1;
    settings.vram = 100'000;
    const SearchOutcome outcome = run(std::move(settings), small_blocks(2));
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.text, expected());
    EXPECT_GT(statistics_.evictions, 0u);
    EXPECT_LE(statistics_.blocks_done, all_pairs(small_blocks(2)));
    EXPECT_LE(statistics_.peak_device_bytes, 100'000u);
    most_done = std::max<std::uint64_t>(most_done, statistics_.blocks_done);
  }
  EXPECT_GE(most_done, half);
}

// After a search for which the device had no memory, the next one uses it as the first did.
TEST_F(GpuSearch, MemoryThatIsFreeAgainIsUsedAgain) {
  gpu::Settings settings = fake_settings(driver_);
  settings.segment_residues = std::uint64_t{1} << 30;
  settings.lanes = 1;
  settings.domain_lanes = 0;
  gpu::GpuFilters gpu(std::move(settings));
  wait_until_started(gpu);
  std::uint64_t before = 0;
  const auto segments_of = [&](const SearchOutcome& outcome) {
    EXPECT_EQ(outcome.text, expected());
    const std::uint64_t now = gpu.statistics().segments;
    return now - std::exchange(before, now);
  };
  const std::uint64_t whole = segments_of(run_search(data(), &gpu, small_blocks(2)));
  const auto kept = kept_targets(data());
  const std::size_t all = driver_.memory_limit;
  driver_.memory_limit -= free_memory() - 30'000;
  EXPECT_GT(segments_of(run_search(data(), &gpu, small_blocks(2), *kept)), whole);
  driver_.memory_limit = all;
  ASSERT_TRUE(kept->rewind());
  EXPECT_EQ(segments_of(run_search(data(), &gpu, small_blocks(2), *kept)), whole);
}

TEST_F(GpuSearch, TheDomainStageIsTriedAgainInALaterSearch) {
  gpu::Settings settings = fake_settings(driver_);
  settings.lanes = 1;
  gpu::GpuFilters gpu(std::move(settings));
  wait_until_started(gpu);
  const std::size_t all = driver_.memory_limit;
  driver_.memory_limit -= free_memory() - 5'000'000;  // too little for its buffer
  EXPECT_EQ(run_search(data(), &gpu, small_blocks(2)).text, expected());
  EXPECT_EQ(gpu.statistics().parsed, 0u);
  driver_.memory_limit = all;
  EXPECT_EQ(run_search(data(), &gpu, small_blocks(2)).text, expected());
  EXPECT_GT(gpu.statistics().parsed, 0u);
}

// Reading waits until blocks are done, so that a device must not wait for more of them: names fill
// the memory long before there are residues for a segment.
TEST_F(GpuSearch, AStreamedSegmentIsClosedWhileReadingWaits) {
  SearchData tiny = make_search_data(5, 2, 1, 40);
  for (std::uint64_t i = 0; i < 4'000; ++i)
    tiny.targets.push_back(test_support::random_target(i, 6, test_support::TargetKind::kBackground,
                                                       tiny.models.front()));
  SearchOptions options = small_blocks(2);
  options.block_residues = 600;
  options.memory = 120'000;
  const SearchOutcome alone = run_search(tiny, nullptr, options);
  gpu::Settings settings = fake_settings(driver_);
  settings.segment_residues = std::uint64_t{1} << 30;
  gpu::GpuFilters gpu(std::move(settings));
  wait_until_started(gpu);
  const SearchOutcome outcome = run_search(tiny, &gpu, options);
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.text, alone.text);
  EXPECT_TRUE(outcome.statistics.streamed);
  EXPECT_GT(gpu.statistics().segments, 2u);
}

// Threads and devices that are short of memory take from each other, give back, wait and evict in
// every order: whoever waits must be woken.
TEST_F(GpuSearch, EverySearchEndsWhoeverWaitsForWhom) {
  const char* const given = std::getenv("HMMJIT_TEST_ROUNDS");
  const int rounds = given != nullptr ? std::atoi(given) : 40;
  const std::uint64_t first = given != nullptr ? std::random_device{}() : 1;
  const SearchData many = make_search_data(23, 24, 90, 50);
  const std::string alone = run_search(many, nullptr, small_blocks(2)).text;
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(rounds); ++seed) {
    SCOPED_TRACE(seed);
    if (given != nullptr) std::cerr << "seed " << seed << std::endl;
    test_support::Random random(seed);
    gpu::Settings settings = fake_settings(driver_, random.integer(1, 2));
    settings.wait_for_device = false;
    settings.lanes = random.integer(1, 4);
    settings.segment_residues = static_cast<std::uint64_t>(random.integer(1, 20'000));
    if (random.integer(0, 1) == 1)
      settings.vram = static_cast<std::uint64_t>(random.integer(60'000, 400'000));
    SearchOptions options = small_blocks(random.integer(1, 4));
    options.block_residues = static_cast<std::size_t>(random.integer(300, 6'000));
    if (random.integer(0, 3) > 0)
      options.memory = static_cast<std::uint64_t>(random.integer(40'000, 300'000));
    gpu::GpuFilters gpu(std::move(settings));
    if (random.integer(0, 1) == 1) wait_until_started(gpu);
    const SearchOutcome outcome = run_search(many, &gpu, options);
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.text, alone);
  }
}

// What SSV leaves undecided may fail MSV, which the CPU finds where the device has no kernel for
// it.
TEST_F(GpuSearch, UndecidedTargetsThatFailMsvAreNotCounted) {
  for (const FilterOptions& filters :
       {FilterOptions{.F1 = 1e-9}, FilterOptions{.F1 = 1e-6, .bias = false}}) {
    SearchOptions options = small_blocks(2);
    options.filters = filters;
    const std::string wanted = run_search(data(), nullptr, options).text;
    const SearchOutcome outcome =
        run(fake_settings(driver_, 1, without_kernels({"msv_multi_lane"})), options);
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.text, wanted) << filters.F1;
    EXPECT_GT(statistics_.undecided, 0u);
  }
}

TEST_F(GpuSearch, WithoutKernelsTheCpuDoesIt) {
  const SearchOutcome outcome =
      run(fake_settings(driver_, 1, without_kernels({"ssv_multi_lane"})), small_blocks(2));
  EXPECT_EQ(outcome.text, expected());
  EXPECT_EQ(statistics_.blocks_done, 0u);
  EXPECT_EQ(statistics_.launches, 0u);
  // Empty when the CPU was through before a lane asked for the kernel.
  EXPECT_THAT(statistics_.reason,
              testing::AnyOf(testing::IsEmpty(), testing::HasSubstr("no compiler here")));
}

// The counts by target that scan reports, with every stage in turn left to the CPU.
TEST_F(GpuSearch, CountsByTargetAreThoseOfTheCpu) {
  const auto counted = [&](gpu::GpuFilters* device) {
    TargetCounters counters(0, data().targets.size());
    SearchOptions options = small_blocks(2);
    options.filters.per_target = &counters;
    options.by_target = SearchOptions::ByTarget{};
    options.thresholds.Z = static_cast<double>(data().models.size());
    options.verify = 1000;
    const SearchOutcome outcome = run_search(data(), device, options);
    EXPECT_EQ(outcome.error, "");
    std::string text = outcome.text;
    for (std::size_t n = 0; n < data().targets.size(); ++n) {
      const FilterCounters c = counters.of(n);
      text += fmt::format("{}: {} {} {} {}\n", n, c.msv, c.bias, c.viterbi, c.forward);
    }
    return text;
  };
  const std::string of_cpu = counted(nullptr);
  std::vector<std::set<std::string>> missing_kernels{{"msv_multi_lane"},    {"bias_segments"},
                                                     {"gate_cascade"},      {"viterbi_wavefront"},
                                                     {"viterbi_lane_scan"}, {"forward_row_scan"}};
  std::set<std::string> all;
  for (const auto& missing : missing_kernels) all.insert(missing.begin(), missing.end());
  missing_kernels.insert(missing_kernels.end(), {all, {}});
  for (const auto& missing : missing_kernels) {
    SCOPED_TRACE(testing::PrintToString(missing));
    gpu::GpuFilters gpu(fake_settings(driver_, missing.empty() ? 2 : 1, without_kernels(missing)));
    wait_until_started(gpu);
    EXPECT_EQ(counted(&gpu), of_cpu);
    EXPECT_EQ(gpu.statistics().blocks_done, all_pairs(small_blocks(2)));
    EXPECT_EQ(gpu.statistics().forward > 0, !missing.contains("forward_row_scan") &&
                                                !missing.contains("gate_cascade") &&
                                                !missing.contains("bias_segments"));
  }
}

TEST_F(GpuSearch, PtxIsHeldAgainstItsPromisesOnceTheDriverHasCompiledIt) {
  const auto ptx = [this] {
    auto script = std::make_shared<KernelScript>();
    script->kind = compile::ImageKind::kPtx;
    return fake_settings(driver_, 1, std::move(script));
  };
  SearchOutcome outcome = run(ptx(), small_blocks(2));
  EXPECT_EQ(outcome.text, expected());
  EXPECT_EQ(statistics_.blocks_done, all_pairs(small_blocks(2)));

  // The driver's compiler spills in one design: another takes its place, or the CPU.
  for (const char* spilling : {"ssv_multi_lane", "msv_multi_lane", "bias_segments",
                               "viterbi_wavefront", "viterbi_lane_scan", "forward_row_scan"}) {
    std::mutex mutex;
    std::set<std::string> launched;
    driver_.on_launch = [&](const FakeLaunch& launch) {
      {
        const std::lock_guard lock(mutex);
        launched.insert(launch.kernel);
      }
      return run_on_host(launch);
    };
    driver_.local_bytes_of = {{spilling, 4096}};
    outcome = run(ptx(), small_blocks(2));
    EXPECT_EQ(outcome.error, "");
    EXPECT_TRUE(outcome.text == expected()) << spilling;
    EXPECT_EQ(statistics_.blocks_done, all_pairs(small_blocks(2))) << spilling;
    EXPECT_THAT(launched, testing::Not(testing::Contains(spilling)));
    EXPECT_THAT(launched, testing::Contains(testing::StartsWith("ssv_")));
  }

  // In all designs: the CPU's part.
  driver_.local_bytes = 1 << 20;
  outcome = run(ptx(), small_blocks(2));
  EXPECT_EQ(outcome.error, "");
  EXPECT_TRUE(outcome.text == expected());
  EXPECT_EQ(statistics_.blocks_done, 0u);
  EXPECT_THAT(statistics_.reason, testing::HasSubstr("bytes a thread in local memory"));
}

TEST_F(GpuSearch, AWarmedCacheHasEveryKernelASearchAsksFor) {
  std::set<std::string> there;
  for (const Hmm& hmm : data().models) {
    for (const plan::Plan& plan : gpu::search_plans(hmm.M, hmm.alphabet->Kp, h200(), nullptr))
      there.insert(fake_kernel(plan)->name);
  }
  const auto script = std::make_shared<KernelScript>();
  script->fate = [&](const plan::Plan& plan) {
    return there.contains(fake_kernel(plan)->name) ? KernelScript::kCached : KernelScript::kFails;
  };
  const SearchOutcome outcome = run(fake_settings(driver_, 1, script), small_blocks(2));
  EXPECT_EQ(outcome.text, expected());
  for (const plan::Plan& plan : script->asked)
    EXPECT_TRUE(there.contains(fake_kernel(plan)->name)) << fake_kernel(plan)->name;
  EXPECT_EQ(statistics_.blocks_done, all_pairs(small_blocks(2)));
  EXPECT_GT(statistics_.viterbi_flagged, 0u);
  EXPECT_GT(statistics_.forward, 0u);
}

TEST_F(GpuSearch, FinerKernelsComeWhenTheyPay) {
  const auto script = std::make_shared<KernelScript>();
  script->fate = always(KernelScript::kCompiled);
  gpu::Settings settings = fake_settings(driver_, 1, script);
  EXPECT_EQ(run(settings, small_blocks(2)).text, expected());
  const std::uint64_t coarse = statistics_.distinct_kernels;
  settings.finer_kernel_seconds = 0;
  // They arrive while the search runs, which may end before.
  for (int round = 0; round < 20 && statistics_.distinct_kernels <= coarse; ++round)
    EXPECT_EQ(run(settings, small_blocks(2)).text, expected());
  EXPECT_GT(statistics_.distinct_kernels, coarse);
}

TEST_F(GpuSearch, ADemandedDeviceThatIsNotThereIsAnError) {
  gpu::Settings settings = fake_settings(driver_);
  settings.devices = {7};
  settings.demanded = true;
  const SearchOutcome outcome = run(settings, small_blocks(2));
  EXPECT_EQ(outcome.text, "");
  EXPECT_NE(outcome.error, "");

  settings.demanded = false;
  const SearchOutcome silent = run(settings, small_blocks(2));
  EXPECT_EQ(silent.error, "");
  EXPECT_EQ(silent.text, expected());
}

TEST_F(GpuSearch, MaxSensitivityLeavesTheDeviceAlone) {
  const SearchData few = make_search_data(5, 2, 60, 60);
  SearchOptions options = small_blocks(2);
  options.filters = FilterOptions::max_sensitivity();
  gpu::GpuFilters gpu(fake_settings(driver_));
  wait_until_started(gpu);
  EXPECT_EQ(run_search(few, &gpu, options).text, run_search(few, nullptr, options).text);
  EXPECT_EQ(gpu.statistics().launches, 0u);
}

TEST_F(GpuSearch, OtherLimitsGiveTheSameResults) {
  const FilterOptions cases[] = {
      {.F1 = 1e-9},
      {.F1 = 0.999},
      {.F1 = 0.9999999, .F2 = 0.5},
      {.F2 = 1.0},
      {.F3 = 1.0},
      {.F1 = 0.1, .F2 = 1.0, .F3 = 1.0, .bias = false},
      {.F2 = 1e-8, .F3 = 1e-12},
      {.F2 = -1.0},
      {.F3 = 0.0},
  };
  for (const FilterOptions& filters : cases) {
    SearchOptions options = small_blocks(2);
    options.filters = filters;
    const std::string wanted = run_search(data(), nullptr, options).text;
    EXPECT_EQ(run(fake_settings(driver_), options).text, wanted)
        << filters.F1 << " " << filters.F2 << " " << filters.F3;
  }
}

TEST_F(GpuSearch, TargetsTooLargeForTheDomainStageAreTheCpusAhead) {
  SearchData large = make_search_data(5, 2, 60, 60);
  large.models.push_back(test_support::random_hmm(77, 60, test_support::ModelKind::kTypical));
  for (std::uint64_t seed : {1, 2}) {
    large.targets.push_back(test_support::random_target(
        seed, 160'000, test_support::TargetKind::kHomologous, large.models.back()));
  }
  const SearchOutcome alone = run_search(large, nullptr, small_blocks(2));
  for (const int verify : {0, 50}) {
    SearchOptions options = small_blocks(2);
    if (verify > 0) options.verify = verify;
    gpu::Settings settings = fake_settings(driver_);
    settings.launch_timeout = 0.1;  // in which a target of 9.6 M cells is not done
    gpu::GpuFilters gpu(settings);
    wait_until_started(gpu);
    const SearchOutcome outcome = run_search(large, &gpu, options);
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.text, alone.text);
    const auto left = gpu.statistics().domain_stages[0].host_cells;
    EXPECT_GE(left[static_cast<std::size_t>(gpu::HostReason::kSize)], 60u * 160'000);
    EXPECT_LT(gpu.statistics().parsed, gpu.statistics().passed);
    EXPECT_GT(gpu.statistics().parsed, 0u);
  }
}

// The driver waits for an idle device to take a buffer back, and keeps all lanes waiting with it.
TEST_F(GpuSearch, BuffersThatWereTooSmallAreKept) {
  SearchData growing = make_search_data(5, 2, 60, 60);
  growing.models.push_back(test_support::random_hmm(78, 1600, test_support::ModelKind::kTypical));
  const SearchOutcome alone = run_search(growing, nullptr, small_blocks(2));
  gpu::GpuFilters gpu(fake_settings(driver_));
  wait_until_started(gpu);
  const SearchData few = make_search_data(5, 2, 60, 60);
  (void)run_search(few, &gpu, small_blocks(2));
  const int made = driver_.calls("host_register");
  EXPECT_EQ(run_search(growing, &gpu, small_blocks(2)).text, alone.text);
  EXPECT_GT(driver_.calls("host_register"), made);
  EXPECT_EQ(driver_.calls("host_unregister"), 0);
}

TEST_F(GpuSearch, LetsGoOfEverything) {
  (void)run(fake_settings(driver_, 2), small_blocks(2));
  for (const char* kind : {"memory", "host", "stream", "event", "library"})
    EXPECT_EQ(driver_.alive(kind), 0) << kind;
}

}  // namespace
}  // namespace hmmjit::tests
