// The hits of a finished model, in memory or stored: no target is reported twice.
#include "search/kept_hits.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/memory.hpp"
#include "search/agenda.hpp"
#include "search/memory_shares.hpp"
#include "search/stored_hits.hpp"

namespace hmmjit::search_run {
namespace {

Hit make_hit(std::string name, std::uint64_t index, float bits) {
  Hit hit;
  hit.name = std::move(name);
  hit.index = index;
  hit.score.bits = bits;
  hit.score.log_p = -static_cast<double>(bits);
  hit.score.domains.resize(1);
  return hit;
}

class KeptHitsTest : public testing::Test {
 protected:
  KeptHitsTest() {
    auto model = std::make_shared<SearchModel>();
    model->hmm.name = "RRM_1";
    job_.prepared = std::make_shared<PreparedModel>(std::move(model));
    const MutexLock lock(job_.mutex);
    job_.counters.targets = 100;
  }
  // Everything that outputs read. `stored`: the hits do not fit in memory.
  Result<std::vector<std::uint64_t>> read(std::vector<Hit> hits, bool stored) {
    const std::uint64_t budget = stored ? 0 : 1 << 20;
    Agenda agenda(
        {.in_flight = {.model_bytes = 0, .target_bytes = 0, .threads = 1, .device = false},
         .result_bytes = budget,
         .task_cells = 1,
         .batch_rows = 1 << 16},
        progress_);
    KeptHits kept(options_, true, budget, 1);
    // Large enough for a file.
    if (stored) hits.front().description.assign(1 << 20, 'x');
    HMMJIT_ASSIGN(const KeptHits::Judged judged, kept.judge(job_, hits, agenda));
    EXPECT_EQ(judged.stored != nullptr, stored);
    std::vector<std::uint64_t> out;
    const auto take = [&](std::span<Hit> lot) -> Status {
      for (const Hit& hit : lot) out.push_back(hit.index);
      return {};
    };
    if (stored) {
      HMMJIT_TRY(judged.stored->for_each_lot(take));
    } else {
      for (const Hit& hit : judged.list.hits) out.push_back(hit.index);
    }
    return out;
  }
  void expect_error(const std::vector<Hit>& hits, const std::string& place) {
    for (const bool stored : {false, true}) {
      const auto got = read(hits, stored);
      ASSERT_FALSE(got) << stored;
      EXPECT_EQ(got.error().code, ErrorCode::kInternal);
      EXPECT_EQ(got.error().where, place);
      EXPECT_EQ(got.error().message, "a target was reported twice: b");
    }
  }

  SearchOptions options_;
  SearchProgress progress_;
  ModelJob job_;
};

TEST_F(KeptHitsTest, ATargetThatWasFoundTwiceIsAnError) {
  const std::vector<Hit> hits{make_hit("a", 7, 40), make_hit("b", 3, 30), make_hit("c", 4, 20),
                              make_hit("b", 3, 30)};
  expect_error(hits, "model RRM_1");
  job_.sequence = QueryNames{.name = "query"};
  expect_error(hits, "model query");
}

TEST_F(KeptHitsTest, TargetsMayHaveOneNameAndEqualScores) {
  for (const bool stored : {false, true}) {
    const auto got =
        read({make_hit("b", 5, 30), make_hit("b", 3, 30), make_hit("b", 4, 30)}, stored);
    ASSERT_TRUE(got) << got.error().to_string();
    EXPECT_EQ(*got, (std::vector<std::uint64_t>{3, 4, 5}));
  }
}

TEST(MemoryByTarget, IsATwentiethOfWhatTheProgramLeaves) {
  SearchOptions options;
  options.threads = 2;
  options.memory = kProgramMemory + 2 * kThreadMemory + (std::uint64_t{100} << 20);
  EXPECT_EQ(memory_by_target(options).value(), std::uint64_t{5} << 20);
  options.memory = kProgramMemory + 2 * kThreadMemory + (std::uint64_t{1} << 20);
  EXPECT_EQ(memory_by_target(options).value(), std::uint64_t{256} << 10);
}

TEST(MemoryShares, CopiesForADeviceComeOutOfTheShareOfTargets) {
  SearchOptions options;
  options.memory = kProgramMemory + kThreadMemory + (std::uint64_t{80} << 20);
  const MemoryShares cpu = divide_memory(options, 1, false, std::uint64_t{1} << 30),
                     device = divide_memory(options, 1, true, std::uint64_t{1} << 30);
  EXPECT_EQ(cpu.targets, std::uint64_t{24} << 20);
  EXPECT_EQ(cpu.ahead, std::uint64_t{4} << 20);
  EXPECT_EQ(cpu.device, 0u);
  EXPECT_EQ(device.targets, std::uint64_t{18} << 20);
  EXPECT_EQ(device.device, std::uint64_t{6} << 20);
  EXPECT_EQ(device.block, device.targets / 8);
  EXPECT_EQ(device.one_target, options.memory / 2);
}

}  // namespace
}  // namespace hmmjit::search_run
