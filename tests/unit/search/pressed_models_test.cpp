// The MSV filter on the files of hmmpress, against its definition.
#include "search/pressed_models.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/threads.hpp"
#include "model/score_statistics.hpp"
#include "reference/filters.hpp"
#include "tests/support/command.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/random_profiles.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit {
namespace {

namespace fs = std::filesystem;

class PressedModels : public testing::Test {
 protected:
  void SetUp() override {
    if (!test_support::has_program("hmmpress")) GTEST_SKIP() << "hmmpress is not installed";
    std::string text;
    for (const test_support::ModelKind kind : test_support::kAllModelKinds) {
      for (const int M : {1, 2, 16, 17, 33, 90, 200})
        text += test_support::model_text(test_support::random_hmm(++seed_, M, kind));
    }
    folder_.write("m.hmm", text);
    ASSERT_TRUE(test_support::output_of("hmmpress '" + path() + "'"));
    models_ = test_support::read_models(path());
    options_.threads = 1;
    for (const test_support::TargetKind kind : test_support::kAllTargetKinds) {
      for (const int L : {0, 1, 5, 11, 60, 200})
        targets_.push_back(
            test_support::random_target(++seed_, L, kind, models_[targets_.size() % 49]));
    }
  }
  std::string path() const { return folder_.file("m.hmm"); }
  TargetBlock block(std::size_t first, std::size_t count) const {
    TargetBlock block;
    for (std::size_t i = first; i < first + count; ++i) {
      block.begin_target("t", "", "");
      block.append(targets_[i]);
      block.end_target();
    }
    return block;
  }
  bool passes(const SearchModel& model, std::span<const Residue> target) const {
    if (target.empty()) return false;
    const float null = null_score(static_cast<int>(target.size()));
    const double P =
        gumbel_survival(nats_to_bits(reference::msv_filter(model.bytes, target) - null),
                        model.hmm.calibration.msv_mu, model.hmm.calibration.msv_lambda);
    return !(P > options_.filters.F1);
  }
  Result<std::optional<SelectedModels>> filter(const TargetBlock& targets) const {
    return filter_pressed(path(), targets, options_);
  }

  const test_support::TemporaryFolder folder_;
  std::vector<Hmm> models_;
  std::vector<std::vector<Residue>> targets_;
  SearchOptions options_;
  std::uint64_t seed_ = 3;
};

TEST_F(PressedModels, AreThoseThatPassByDefinition) {
  std::vector<std::shared_ptr<const SearchModel>> models;
  std::uint64_t nodes = 0;
  for (const Hmm& hmm : models_) {
    models.push_back(make_search_model(hmm));
    nodes += static_cast<std::uint64_t>(hmm.M);
  }
  std::size_t passed = 0;
  // With the last of them, only overflows pass.
  for (const double F1 : {0.9, 0.3, 0.02, 1e-4, 1e-6, 1e-8, 1e-12}) {
    options_.filters.F1 = F1;
    for (const std::size_t count : {std::size_t{1}, targets_.size()}) {
      for (std::size_t first = 0; first + count <= targets_.size(); first += count) {
        const auto got = filter(block(first, count));
        ASSERT_TRUE(got && *got);
        std::vector<std::size_t> wanted;
        for (std::size_t m = 0; m < models.size(); ++m) {
          bool any = false;
          for (std::size_t t = first; t < first + count; ++t)
            any |= passes(*models[m], targets_[t]);
          if (any) wanted.push_back(m);
        }
        ASSERT_EQ((*got)->indices, wanted) << "targets " << first << " to " << first + count;
        EXPECT_EQ((*got)->models, models.size());
        EXPECT_EQ((*got)->nodes, nodes);
        for (const std::size_t m : wanted) {
          const auto query = (*got)->source();
          ASSERT_TRUE(query && *query);
          EXPECT_EQ((*query)->model().name, models_[m].name);
          EXPECT_EQ((*query)->model().match, models_[m].match);
        }
        EXPECT_FALSE(*(*got)->source());
        passed += wanted.size();
      }
    }
  }
  EXPECT_GT(passed, 500u);
}

TEST_F(PressedModels, AreNotUsedIfFilesDoNotBelongTogether) {
  const TargetBlock targets = block(0, 4);
  ASSERT_TRUE(*filter(targets));
  const std::string stored = test_support::read_file(path() + ".h3f");
  const std::string magic = stored.substr(0, 4);
  const std::string without_last = stored.substr(0, stored.rfind(magic, stored.size() - 5));
  std::string other_mu = stored;  // of the last model
  other_mu[stored.size() - 4 - sizeof(float) * kMaxBases - 3 * 8 - 6 * sizeof(float)] ^= 1;
  for (const std::string& damaged : {stored.substr(0, stored.size() - 1), "x" + stored,
                                     stored + stored, std::string(), without_last, other_mu}) {
    folder_.write("m.hmm.h3f", damaged);
    const auto got = filter(targets);
    ASSERT_TRUE(got) << got.error().to_string();
    EXPECT_FALSE(*got);
  }
  folder_.write("m.hmm.h3f", stored);
  fs::rename(path() + ".h3m", folder_.file("own"));
  EXPECT_FALSE(*filter(targets));
}

TEST_F(PressedModels, AreNotUsedForManyResiduesOrWithoutFilter) {
  TargetBlock many;
  for (int i = 0; i < 80; ++i) {
    many.begin_target("t", "", "");
    many.append(std::vector<Residue>(100, 3));
    many.end_target();
  }
  EXPECT_FALSE(*filter(many));
  options_.filters.F1 = 1;
  EXPECT_FALSE(*filter(block(0, 1)));
}

TEST_F(PressedModels, OfAnotherNameAreAnError) {
  options_.filters.F1 = 0.9;
  std::string binary = test_support::read_file(path() + ".h3m");
  // The first and the last one are compared beforehand.
  binary[binary.find(models_[1].name)] = '!';
  folder_.write("m.hmm.h3m", binary);
  const auto got = filter(block(0, targets_.size()));
  ASSERT_TRUE(got && *got);
  ASSERT_EQ((*got)->indices->at(1), 1u);
  ASSERT_TRUE((*got)->source());
  const auto query = (*got)->source();
  ASSERT_FALSE(query);
  EXPECT_EQ(query.error().code, ErrorCode::kInput);
}

}  // namespace
}  // namespace hmmjit
