// Whole searches in one process: the same rows for any threads and memory bound, one clear error if
// memory is short. The thread sanitizer finds races of the pipeline here.
#include <gtest/gtest.h>

#include <new>
#include <string>
#include <utility>
#include <vector>

#include "build/hmm_writer.hpp"
#include "search/prepared_model.hpp"
#include "search/search.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/random_profiles.hpp"

namespace hmmjit {
namespace {

using test_support::ModelKind;
using test_support::random_hmm;
using test_support::random_target;
using test_support::TargetKind;

constexpr int kModels = 20, kTargets = 60;

Hmm model_number(int n) { return random_hmm(static_cast<std::uint64_t>(40 + n), 60 + 2 * n); }

// Tandem copies of the models' consensus, for regions that need clustering, and alignments.
class Tandems final : public TargetSource {
 public:
  explicit Tandems(int failing_block = -1) : failing_block_(failing_block) {}
  Result<bool> next(TargetBlock& block, std::size_t) override {
    if (at_ == kTargets) return false;
    if (at_ / kPerBlock == failing_block_) throw std::bad_alloc();
    block.set_first_index(static_cast<std::uint64_t>(at_));
    for (int i = 0; i < kPerBlock; ++i, ++at_) {
      block.begin_target(std::string("t").append(std::to_string(at_)), "", "");
      block.append(random_target(static_cast<std::uint64_t>(at_), 40 + 11 * at_,
                                 TargetKind::kTandem, model_number(at_ % kModels)));
      block.end_target();
    }
    return true;
  }
  Status rewind() override {
    at_ = 0;
    return {};
  }
  bool rewindable() const override { return true; }

 private:
  static constexpr int kPerBlock = 5;
  int failing_block_;
  int at_ = 0;
};

// One line per domain, with everything that reports print.
class Rows final : public ResultSink {
 public:
  Status receive(const ModelResult& result) override {
    for (const Hit& hit : result.hits.hits) {
      for (const domain::Domain& d : hit.score.domains) {
        lines.push_back(result.model.name + ' ' + hit.name + ' ' + std::to_string(hit.score.bits) +
                        ' ' + std::to_string(d.ienv) + '-' + std::to_string(d.jenv) + ' ' +
                        std::to_string(d.bits) + ' ' + d.alignment.sequence);
      }
    }
    return {};
  }
  std::vector<std::string> lines;
};

struct Outcome {
  Result<SearchStatistics> statistics;
  std::vector<std::string> lines;
};

// `out_of_memory`: while the second model is read.
Outcome run(const SearchOptions& options, Tandems targets = Tandems(), bool out_of_memory = false) {
  Rows rows;
  int at = 0;
  const ModelSource models = [&]() -> Result<std::optional<Hmm>> {
    if (at == kModels) return std::nullopt;
    if (out_of_memory && at == 1) throw std::bad_alloc();
    return model_number(at++);
  };
  Outcome outcome{search(options, models, targets, nullptr, rows, nullptr), {}};
  outcome.lines = std::move(rows.lines);
  return outcome;
}

void expect_out_of_memory(const Outcome& outcome) {
  ASSERT_FALSE(outcome.statistics);
  EXPECT_EQ(outcome.statistics.error().code, ErrorCode::kResources);
  EXPECT_NE(outcome.statistics.error().to_string().find("out of memory"), std::string::npos);
}

TEST(Pipeline, SameRowsForAnyThreadsAndMemory) {
  SearchOptions options;
  options.task_cells = 100'000;  // many small tasks
  const Outcome wanted = run(options);
  ASSERT_TRUE(wanted.statistics) << wanted.statistics.error().to_string();
  EXPECT_EQ(wanted.statistics->passes, 1u);
  EXPECT_GT(wanted.lines.size(), 200u);
  for (const int threads : {1, 2, 7}) {
    // A bound of one byte only makes it slow.
    for (const std::uint64_t memory : {std::uint64_t{0}, std::uint64_t{30'000}, std::uint64_t{1}}) {
      options.threads = threads;
      options.memory = memory;
      const Outcome got = run(options);
      ASSERT_TRUE(got.statistics) << got.statistics.error().to_string();
      EXPECT_EQ(got.lines, wanted.lines) << threads << " threads, memory " << memory;
      EXPECT_EQ(got.statistics->streamed, memory > 0);
      EXPECT_EQ(got.statistics->passes > 1, memory > 0);
    }
  }
}

// A server keeps the models of its profile files where there is memory for them.
TEST(Pipeline, ModelsAreKeptWhereTheyFit) {
  std::string file;
  for (int n = 0; n < kModels; ++n)
    build::append_hmm_binary(file, {model_number(n), 0, {}, {}, {}});
  const test_support::TemporaryFolder folder;
  const std::string path = folder.write("models.h3m", file);
  const auto kept = load_models(path, std::uint64_t{1} << 30);
  ASSERT_TRUE(kept) << kept.error().to_string();
  ASSERT_NE(*kept, nullptr);
  ASSERT_EQ((*kept)->size(), static_cast<std::size_t>(kModels));
  // Later models are longer.
  EXPECT_EQ(*load_models(path, kModels * (*kept)->front()->bytes()), nullptr);
  EXPECT_FALSE(load_models(folder.write("b.hmm", "not a model"), 1 << 20));
}

TEST(Pipeline, TheTimeOfTheFiltersFollowsFromTheirPace) {
  SearchProgress progress;
  EXPECT_EQ(progress.filter_seconds_left(1), 0);
  progress.target_bytes_read = 100;
  progress.target_bytes_total = 100;
  progress.cells_queued = 1000;
  EXPECT_EQ(progress.filter_seconds_left(1), 0);  // the rate is unknown
  progress.cells = 250;
  EXPECT_DOUBLE_EQ(progress.filter_seconds_left(2), 6);
  progress.target_bytes_total = 300;
  EXPECT_DOUBLE_EQ(progress.filter_seconds_left(2), 22);
  progress.target_bytes_total = 0;  // unknown
  EXPECT_DOUBLE_EQ(progress.filter_seconds_left(2), 6);
  progress.cells = 1000;
  EXPECT_EQ(progress.filter_seconds_left(2), 0);
}

TEST(Resources, ExhaustedMemoryIsOneErrorWhereverItHappens) {
  for (const int threads : {1, 4}) {
    for (const std::uint64_t memory : {std::uint64_t{0}, std::uint64_t{30'000}}) {
      SearchOptions options;
      options.threads = threads;
      options.memory = memory;  // targets in memory and streamed
      expect_out_of_memory(run(options, Tandems(), true));
      expect_out_of_memory(run(options, Tandems(0)));
      expect_out_of_memory(run(options, Tandems(7)));
    }
  }
}

TEST(Resources, LargeMatricesAreScoredAloneWithTheSameResult) {
  SearchOptions options;
  options.threads = 4;
  const Outcome wanted = run(options);
  ASSERT_TRUE(wanted.statistics) << wanted.statistics.error().to_string();
  EXPECT_EQ(wanted.statistics->scored_alone, 0u);
  EXPECT_GT(wanted.lines.size(), 200u);
  // Each of four threads gets an eighth: some bound is too small for that, but large enough for
  // one.
  std::uint64_t scored_alone = 0;
  for (std::size_t bytes = 8'000'000; scored_alone == 0; bytes /= 2) {
    options.domain.max_matrix_bytes = bytes;
    const Outcome alone = run(options);
    ASSERT_TRUE(alone.statistics) << alone.statistics.error().to_string();
    EXPECT_EQ(alone.lines, wanted.lines);
    scored_alone = alone.statistics->scored_alone;
  }
}

TEST(Resources, MatrixBeyondAllMemoryNamesTheTarget) {
  SearchOptions options;
  options.threads = 2;
  options.domain.max_matrix_bytes = 1000;
  const Outcome outcome = run(options);
  ASSERT_FALSE(outcome.statistics);
  EXPECT_EQ(outcome.statistics.error().code, ErrorCode::kResources);
  const std::string text = outcome.statistics.error().to_string();
  EXPECT_NE(text.find("of target t"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

}  // namespace
}  // namespace hmmjit
