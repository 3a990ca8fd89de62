// Who does the domain stage, and how long a launch may last: numbers in, decisions out.
#include "gpu/handover_policy.hpp"

#include <gtest/gtest.h>

namespace hmmjit::gpu {
namespace {

constexpr HostLoad kBusy{.seconds_left = 1, .waiting = 100, .threads = 16};
constexpr HostLoad kIdle{.seconds_left = 0, .waiting = 0, .threads = 16};

TEST(HandoverPolicy, ThreadsAreIdleWithFewTasksAndLittleLeft) {
  EXPECT_TRUE(host_is_idle(kIdle));
  EXPECT_FALSE(host_is_idle(kBusy));
  // A task for every fourth thread is enough to begin with, whatever is behind it.
  EXPECT_TRUE(host_is_idle({.seconds_left = 0, .waiting = 3, .threads = 16}));
  EXPECT_FALSE(host_is_idle({.seconds_left = 0, .waiting = 4, .threads = 16}));
  EXPECT_TRUE(host_is_idle({.seconds_left = 0, .waiting = 0, .threads = 1}));
  EXPECT_FALSE(host_is_idle({.seconds_left = 0, .waiting = 1, .threads = 1}));
  // Running tasks count by the rest of their work.
  EXPECT_TRUE(host_is_idle({.seconds_left = 0.024, .waiting = 0, .threads = 16}));
  EXPECT_FALSE(host_is_idle({.seconds_left = 0.026, .waiting = 0, .threads = 16}));
}

TEST(HandoverPolicy, IdleThreadsAreGivenWorkForSomeMillisecondsEach) {
  EXPECT_EQ(cells_for_idle_host(kIdle), 64'000'000u);
  EXPECT_EQ(cells_for_idle_host({.threads = 1}), 4'000'000u);
}

TEST(HandoverPolicy, AtTheEndOfASearchThreadsScoreWhatTakesLessTimeThanALaunch) {
  const HostLoad host{.seconds_left = 0.01, .waiting = 20, .threads = 16, .cell_seconds = 1e-9};
  EXPECT_TRUE(host_is_sooner(host, {}, 9'000'000));
  EXPECT_FALSE(host_is_sooner(host, {}, 11'000'000));
  EXPECT_TRUE(host_is_sooner(host, {.filter_seconds_left = 0.05}, 9'000'000));
  EXPECT_FALSE(host_is_sooner(host, {.filter_seconds_left = 0.06}, 9'000'000));
  HostLoad reading = host;
  reading.filter_seconds_left = 0.06;
  EXPECT_FALSE(host_is_sooner(reading, {}, 9'000'000));
  EXPECT_FALSE(host_is_sooner({.threads = 16}, {}, 1)) << "the rate of the threads is not known";
}

TEST(HandoverPolicy, AtTheEndOfASearchALaunchTakesHalfOfWhatTheThreadsAloneWould) {
  const auto seconds = [](double threads, std::uint64_t cells, double filters = 0) {
    return domain_launch_seconds({.seconds_left = threads, .cell_seconds = 1e-9},
                                 {.filter_seconds_left = filters, .domain_cells = cells});
  };
  EXPECT_DOUBLE_EQ(seconds(0.04, 50'000'000), 0.045);
  EXPECT_DOUBLE_EQ(seconds(0.04, 50'000'000, 0.05), 0.045);
  EXPECT_DOUBLE_EQ(seconds(0.04, 50'000'000, 0.06), 0.12);
  EXPECT_DOUBLE_EQ(seconds(0.06, 50'000'000), 0.18);
  EXPECT_DOUBLE_EQ(seconds(0, 1), 0.01);
}

TEST(HandoverPolicy, ALaunchWaitsForTargetsAsLongAsFiltersBringThem) {
  const DeviceLoad filters{.filter_seconds_left = 1};
  EXPECT_TRUE(waits_for_more_targets(filters, 5999, 0.19));
  EXPECT_FALSE(waits_for_more_targets(filters, 6000, 0));
  EXPECT_FALSE(waits_for_more_targets(filters, 1, 0.2));
  EXPECT_FALSE(waits_for_more_targets({.filter_seconds_left = 0.05}, 1, 0));
  EXPECT_TRUE(waits_for_more_targets({1, 31, 8191}, 1, 0));
  // Before the threads would be given what a device could do.
  EXPECT_FALSE(waits_for_more_targets({1, 32, 0}, 1, 0));
  EXPECT_FALSE(waits_for_more_targets({1, 0, 8192}, 1, 0));
}

TEST(HandoverPolicy, ALaunchLastsAsLongAsBothSidesHaveToDo) {
  const auto seconds = [](double threads, double filters, std::uint64_t cells = 0) {
    const double all = domain_launch_seconds(
        {.seconds_left = threads, .cell_seconds = 1e-9, .filter_seconds_left = filters},
        {.domain_cells = cells});
    // The filter time known to only one side counts as much.
    EXPECT_DOUBLE_EQ(
        all, domain_launch_seconds({.seconds_left = threads, .cell_seconds = 1e-9},
                                   {.filter_seconds_left = filters, .domain_cells = cells}));
    return all;
  };
  EXPECT_DOUBLE_EQ(seconds(0, 0.1), 0.03);
  EXPECT_DOUBLE_EQ(seconds(0.1, 0), 0.3);
  EXPECT_DOUBLE_EQ(seconds(0, 2), 0.5);
  EXPECT_DOUBLE_EQ(seconds(0.1, 2), 0.5);
  EXPECT_DOUBLE_EQ(seconds(0.2, 2), 0.6);
  EXPECT_DOUBLE_EQ(seconds(0.2, 2, 500'000'000), 0.6);
  EXPECT_DOUBLE_EQ(seconds(0.2, 2, 700'000'000), 0.7);
  EXPECT_DOUBLE_EQ(seconds(5, 100), kLongestDomainLaunch);
}

}  // namespace
}  // namespace hmmjit::gpu
