#include "model/numeric.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <vector>

#include "model/random.hpp"

namespace hmmjit {
namespace {

TEST(Random, SeedsAndFirstStates) {
  const struct {
    std::uint32_t seed, state;
    std::array<std::uint32_t, 3> next;
    double first;
  } kCases[] = {{42, 1265258399u, {432788820u, 3613595717u, 2598039618u}, 0.1007664995},
                {1, 1799813908u, {2108363525u, 1694137346u, 283338651u}, 0.4908916366},
                {2, 1023387976u, {2107324073u, 2914671190u, 4012291295u}, 0.4906496203}};
  for (const auto& c : kCases) {
    LinearCongruential random(c.seed);
    EXPECT_EQ(random.state(), c.state);
    const double first = random.uniform();
    EXPECT_NEAR(first, c.first, 5e-11);
    EXPECT_EQ(first, c.next[0] / 4294967296.0);
    EXPECT_EQ(random.state(), c.next[0]);
    random.uniform();
    EXPECT_EQ(random.state(), c.next[1]);
    random.uniform();
    EXPECT_EQ(random.state(), c.next[2]);
    random.reseed(c.seed);
    EXPECT_EQ(random.state(), c.state);
  }
}

TEST(Random, ChoosesByWeight) {
  LinearCongruential random(42);  // deviates 0.1008, 0.8414, 0.6049, ...
  const std::vector<float> weights{0.05f, 0.1f, 0.85f};
  EXPECT_EQ(random.choose(weights), 1);
  EXPECT_EQ(random.choose(weights), 2);
  // Draws one deviate even if there is only one choice.
  const std::vector<float> single{7.0f};
  EXPECT_EQ(random.choose(single), 0);
  EXPECT_EQ(random.state(), 2598039618u);
  // Weights need not be normalised, and a weight of zero is never chosen.
  std::array<int, 3> seen{};
  const std::vector<float> skewed{30.0f, 0.0f, 10.0f};
  for (int i = 0; i < 4000; ++i) ++seen[random.choose(skewed)];
  EXPECT_NEAR(seen[0], 3000, 150);
  EXPECT_EQ(seen[1], 0);
}

TEST(CompensatedSum, KeepsWhatAPlainSumLoses) {
  const std::vector<float> values{16777216.0f, 1.0f, 1.0f, 1.0f, 1.0f};  // 2^24 + 1 rounds back
  float plain = 0;
  for (const float v : values) plain += v;
  EXPECT_EQ(plain, 16777216.0f);
  EXPECT_EQ(compensated_sum(values), 16777220.0f);
  EXPECT_EQ(compensated_sum({}), 0.0f);
}

TEST(Normalise, DividesOrMakesUniform) {
  std::vector<float> values{1.0f, 3.0f};
  normalise(values);
  EXPECT_EQ(values, (std::vector<float>{0.25f, 0.75f}));
  values = {0, 0, 0, 0};
  normalise(values);
  EXPECT_EQ(values, std::vector<float>(4, 0.25f));
}

TEST(TableLogSum, TableEntriesAndLimits) {
  EXPECT_EQ(table_log_sum(0.0f, 0.0f), static_cast<float>(std::log(2.0)));
  EXPECT_EQ(table_log_sum(-INFINITY, -2.5f), -2.5f);
  EXPECT_EQ(table_log_sum(-INFINITY, -INFINITY), -INFINITY);
  EXPECT_EQ(table_log_sum(20.0f, 4.3f), 20.0f);  // 15.7 apart: nothing added
  EXPECT_NEAR(table_log_sum(0.0f, -15.6f), std::exp(-15.6), 1e-9);
  EXPECT_GT(table_log_sum(15.0f, 0.0f), 14.9999f);
  // The index is truncated: differences within a step share an entry.
  const float step = static_cast<float>(std::log(1.0 + std::exp(-1.5)));
  EXPECT_EQ(table_log_sum(0.0f, -1.5f), step);
  EXPECT_EQ(table_log_sum(-1.5004f, 0.0f), step);
  for (float d = 0; d < 15.7f; d += 0.0371f) {
    EXPECT_NEAR(table_log_sum(1.0f, 1.0f - d), 1.0 + std::log1p(std::exp(-double(d))), 6e-4);
  }
}

}  // namespace
}  // namespace hmmjit
