// The record of models and blocks in flight, one call after the other: when a model is set up, when
// targets are read, and how batches and passes follow each other.
#include "search/search_window.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

namespace hmmjit::search_run {
namespace {

constexpr SearchWindow::Demand kIdle{.stopped = false, .results_full = false, .waiting_filters = 0};

struct Released final : BlockOwner {
  void block_released(BlockId, std::size_t bytes) noexcept override {
    ++blocks;
    window->release_block_bytes(bytes);
  }
  SearchWindow* window = nullptr;
  int blocks = 0;
};

struct SearchWindowTest : testing::Test {
  static constexpr std::size_t kModelBytes = std::size_t{1} << 18;

  explicit SearchWindowTest() { released.window = &window; }
  BlockPtr block(int residues = 1000) {
    TargetBlock targets;
    targets.begin_target("t", "", "");
    targets.append(std::vector<Residue>(static_cast<std::size_t>(residues), 3));
    targets.end_target();
    targets.shrink_to_fit();
    return std::make_shared<Block>(released, std::move(targets));
  }
  static JobPtr job(std::size_t index, std::size_t bytes = kModelBytes) {
    auto out = std::make_shared<ModelJob>();
    out->index = index;
    out->bytes = bytes;
    return out;
  }

  Released released;  // before the window, whose blocks tell it of their end
  SearchWindow window{
      {.model_bytes = 4 * kModelBytes, .target_bytes = 5000, .threads = 4, .device = false}};
};

TEST_F(SearchWindowTest, ModelsAreTakenWhileThereIsRoom) {
  EXPECT_EQ(window.start_models(kIdle), 4u);  // of the size that is expected of the first
  EXPECT_EQ(window.start_models(kIdle), 0u);
  const JobPtr first = job(0), second = job(1, 2 * kModelBytes);
  window.add_model(first);
  window.add_model(second);
  EXPECT_EQ(window.start_models(kIdle), 0u);
  window.end_models(true);
  window.end_models(true);
  EXPECT_EQ(window.start_models(kIdle), 0u);
  EXPECT_FALSE(window.complete());
  for (const JobPtr& ended : {first, second}) {
    window.release_model_bytes(ended->bytes);
    EXPECT_FALSE(window.complete());
    window.end_model();
  }
  EXPECT_TRUE(window.complete());
}

TEST(ModelsInFlightTest, ABatchIsFilledAndThenLeftAlone) {
  ModelsInFlight models(
      {.model_bytes = std::uint64_t{1} << 30, .target_bytes = 1, .threads = 4, .device = false});
  SearchDemand busy = kIdle;
  busy.results_full = true;
  busy.waiting_filters = 1000;
  EXPECT_FALSE(models.may_start(busy, Batch::kNone));
  EXPECT_TRUE(models.may_start(busy, Batch::kFilling));  // neither keeps a batch from being filled
  EXPECT_FALSE(models.may_start(kIdle, Batch::kFull));
  EXPECT_EQ(models.start(busy, Batch::kFilling), most_models(4));
  EXPECT_TRUE(models.setting_up());
  models.add(100);
  models.end_input(true);
  EXPECT_FALSE(models.more());
  EXPECT_FALSE(models.may_start(kIdle, Batch::kFilling));
}

TEST_F(SearchWindowTest, ModelsWaitForResultsAndTasks) {
  SearchWindow::Demand demand = kIdle;
  demand.results_full = true;
  EXPECT_EQ(window.start_models(demand), 0u);
  demand = kIdle;
  demand.waiting_filters = 8;
  EXPECT_EQ(window.start_models(demand), 1u);  // which counts as work itself
  demand.stopped = true;
  demand.waiting_filters = 0;
  EXPECT_EQ(window.start_models(demand), 0u);
}

TEST_F(SearchWindowTest, AModelGetsEveryBlockOnce) {
  ASSERT_GT(window.start_models(kIdle), 1u);
  EXPECT_TRUE(window.resume_reading());
  EXPECT_FALSE(window.resume_reading());  // under way
  const JobPtr early = job(0), late = job(1);
  EXPECT_TRUE(window.add_model(early).blocks.empty());
  EXPECT_EQ(early->filters_pending, 2);
  const BlockPtr first = block(), second = block();
  EXPECT_EQ(window.add_block(first).jobs, std::vector{early});
  EXPECT_EQ(early->filters_pending, 3);
  const SearchWindow::Joined joined = window.add_model(late);
  EXPECT_EQ(joined.blocks, std::vector{first});
  EXPECT_FALSE(joined.complete);
  EXPECT_EQ(late->filters_pending, 2);
  EXPECT_EQ(window.add_block(second).jobs, (std::vector{early, late}));
  EXPECT_EQ(window.end_targets(), (std::vector{early, late}));
  EXPECT_FALSE(window.resume_reading());
  const JobPtr last = job(2);
  const SearchWindow::Joined after = window.add_model(last);
  EXPECT_TRUE(after.complete);
  EXPECT_EQ(after.blocks, (std::vector{first, second}));
  EXPECT_EQ(last->filters_pending, 1);
}

TEST_F(SearchWindowTest, TargetsThatDoNotFitGoByBatchesOfModels) {
  ASSERT_EQ(window.start_models(kIdle), 4u);
  ASSERT_TRUE(window.resume_reading());
  const JobPtr first = job(0, 2 * kModelBytes);
  window.add_model(first);
  SearchWindow::Added added = window.add_block(block(3000));
  EXPECT_FALSE(added.fill || added.pause);
  added = window.add_block(block(3000));
  EXPECT_TRUE(added.fill && added.pause);
  // Three models are still being set up: the batch is not full, and nothing is read.
  EXPECT_FALSE(window.batch_filled(kIdle));
  EXPECT_FALSE(window.resume_reading());
  window.add_model(job(1));
  window.add_model(job(2));
  EXPECT_FALSE(window.batch_filled(kIdle));
  window.add_model(job(3));
  EXPECT_TRUE(window.batch_filled(kIdle));
  EXPECT_FALSE(window.batch_filled(kIdle));
  EXPECT_EQ(window.start_models(kIdle), 0u);
  // The blocks still take their bytes.
  EXPECT_FALSE(window.resume_reading());
  {
    const SearchWindow::Released batch = window.release_blocks();
    EXPECT_EQ(batch.blocks.size(), 2u);
    EXPECT_EQ(batch.jobs.size(), 4u);
  }
  EXPECT_EQ(released.blocks, 2);
  EXPECT_TRUE(window.resume_reading());
  added = window.add_block(block(6000));
  EXPECT_TRUE(added.pause);
  EXPECT_FALSE(added.fill);
  EXPECT_EQ(released.blocks, 3);  // nobody else holds it
  EXPECT_TRUE(window.resume_reading());
  EXPECT_EQ(window.end_targets().size(), 4u);
  EXPECT_FALSE(window.next_pass(false));  // models are in flight
  for (int i = 0; i < 4; ++i) window.end_model();
  EXPECT_FALSE(window.next_pass(true));
  EXPECT_TRUE(window.next_pass(false));
  EXPECT_FALSE(window.next_pass(false));  // somebody is at it
  window.begin_pass();
  EXPECT_FALSE(window.resume_reading());  // before the next batch is full
}

}  // namespace
}  // namespace hmmjit::search_run
