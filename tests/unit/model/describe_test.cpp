#include "model/describe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/random_profiles.hpp"

namespace hmmjit {
namespace {

using testing::HasSubstr;

long lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

TEST(Describe, EveryViewOfEveryModelPrints) {
  for (const Alphabet* alphabet : {&amino_alphabet(), &dna_alphabet()}) {
    for (const int M : {1, 30}) {
      const auto model =
          test_support::random_model(3, M, test_support::ModelKind::kImpossible, *alphabet);
      std::set<std::string> texts;
      for (const auto& view : describe_views()) {
        const auto text = describe(*model, view.name);
        ASSERT_TRUE(text) << text.error().to_string();
        EXPECT_TRUE(text->ends_with('\n'));
        EXPECT_FALSE(view.content.empty());
        texts.insert(*text);
      }
      EXPECT_EQ(texts.size(), describe_views().size());
    }
  }
}

TEST(Describe, ValuesAreTheTables) {
  const auto model = test_support::random_model(3, 30);
  EXPECT_THAT(*describe(*model, "model"), HasSubstr("\nnodes 30\n"));
  EXPECT_THAT(*describe(*model, "constants"), HasSubstr("\nbyte_base 190\n"));
  EXPECT_THAT(*describe(*model, "length", {.length = 400}),
              HasSubstr("\nnull_score -0x1.bf889ep+2\n"));
  EXPECT_THAT(*describe(*model, "length", {.length = 400}), HasSubstr("\nword_move -3535\n"));
  const std::string bytes = *describe(*model, "bytes", {.first_node = 7, .last_node = 9});
  EXPECT_EQ(lines(bytes), 4);
  EXPECT_TRUE(bytes.starts_with("# node A C D E"));
  EXPECT_THAT(bytes, HasSubstr("\n7 " + std::to_string(model->bytes.cost[6]) + " " +
                               std::to_string(model->bytes.cost[30 + 6]) + " "));
  EXPECT_EQ(lines(*describe(*model, "odds")), 31);
}

TEST(Describe, DigestsFollowTheTables) {
  const auto model = test_support::random_model(3, 30);
  EXPECT_EQ(*describe(*model, "constants"),
            *describe(*test_support::random_model(3, 30), "constants"));
  SearchModel changed = *model;
  changed.odds.match[100] = 0.5f;
  EXPECT_NE(*describe(*model, "constants"), *describe(changed, "constants"));
}

TEST(Describe, SaysWhatIsWrong) {
  const auto model = test_support::random_model(3, 30);
  const auto unknown = describe(*model, "bites");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsage);
  EXPECT_THAT(unknown.error().to_string(), HasSubstr("bites"));
  EXPECT_THAT(unknown.error().to_string(), HasSubstr("bytes"));
  EXPECT_FALSE(describe(*model, "bytes", {.first_node = 0}));
  EXPECT_FALSE(describe(*model, "bytes", {.first_node = 5, .last_node = 4}));
  EXPECT_FALSE(describe(*model, "bytes", {.first_node = 1, .last_node = 31}));
  EXPECT_FALSE(describe(*model, "length", {.length = 0}));
}

}  // namespace
}  // namespace hmmjit
