#include "parts/part_set.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "parts/model_index.hpp"
#include "parts/part_writer.hpp"
#include "search/reader_source.hpp"
#include "tests/support/folder.hpp"

namespace hmmjit::parts {
namespace {

TEST(PartSetTest, EveryTargetBelongsToOnePart) {
  const test_support::TemporaryFolder folder;
  std::mt19937 random(3);
  for (const int targets : {0, 1, 2, 50}) {
    auto writer = DatabaseWriter::create(folder.file("db"), amino_alphabet());
    ASSERT_TRUE(writer);
    TargetBlock block;
    for (int i = 0; i < targets; ++i) {
      block.begin_target(fmt::format("t{}", i), {}, {});
      block.append(std::vector<Residue>(random() % 300, Residue{3}));
      block.end_target();
    }
    ASSERT_TRUE(writer->add(block));
    ASSERT_TRUE(writer->finish(""));
    const auto database = TargetDatabase::open(folder.file("db")).value();
    for (const std::uint32_t parts : {1u, 2u, 3u, 7u, 64u, 1000u, 4294967295u}) {
      std::uint64_t next = 0;
      for (std::uint32_t i = 1; i <= std::min(parts, 1000u); ++i) {
        PartPlace place;
        place.part = {i, i == 1000u ? parts : i, parts};
        ASSERT_TRUE(place_targets(*database, place));
        EXPECT_EQ(place.first_target, next);
        next = place.last_target;
        // The source delivers these targets, with their indices in the whole database.
        if (parts > 64) continue;
        const auto source = open_target_range(database, place.first_target, place.last_target);
        for (int pass = 0; pass < 2; ++pass) {
          std::uint64_t index = place.first_target;
          for (;;) {
            TargetBlock found;
            if (!source->next(found, 500).value()) break;
            EXPECT_EQ(found.first_index(), index);
            for (std::size_t t = 0; t < found.size(); ++t)
              EXPECT_EQ(found[t].name, fmt::format("t{}", index++));
          }
          EXPECT_EQ(index, place.last_target);
          ASSERT_TRUE(source->rewind());
        }
      }
      EXPECT_EQ(next, static_cast<std::uint64_t>(targets));
    }
  }
}

TEST(PartSetTest, MissingPartsAreNamed) {
  const MissingPart one{{5, 5, 9}, {1, 1, 1}};
  EXPECT_EQ(describe_missing(std::vector{one}), "part 5 of 9");
  EXPECT_EQ(missing_array(std::vector{one}), "5");
  const std::vector<MissingPart> several = {
      {{3, 3, 64}, {1, 1, 1}}, {{17, 17, 64}, {1, 1, 1}}, {{40, 42, 64}, {1, 1, 1}}};
  EXPECT_EQ(describe_missing(several), "parts 3, 17, 40-42 of 64");
  EXPECT_EQ(missing_array(several), "3,17,40-42");
  // Two model parts of four parts: tasks 1 to 8.
  const std::vector<MissingPart> models = {{{4, 4, 4}, {1, 1, 2}}, {{1, 4, 4}, {2, 2, 2}}};
  EXPECT_EQ(missing_array(models), "4-8");
  EXPECT_EQ(describe_missing(models),
            "parts 4 of 4 of model part 1/2; parts 1-4 of 4 of model part 2/2");
}

TEST(PartSetTest, EveryModelBelongsToOnePart) {
  ModelIndex index;
  std::mt19937 random(5);
  index.offsets.push_back(0);
  index.positions.push_back(0);
  for (int i = 0; i < 40; ++i) {
    index.offsets.push_back(index.offsets.back() + 10);
    index.positions.push_back(index.positions.back() + 1 + random() % 500);
  }
  for (const std::uint32_t parts : {1u, 2u, 3u, 40u, 1000u}) {
    std::uint64_t next = 0;
    for (std::uint32_t j = 1; j <= parts; ++j) {
      const auto [first, last] = index.models_of({j, j, parts});
      EXPECT_EQ(first, next);
      next = last;
    }
    EXPECT_EQ(next, 40u);
  }
}

// A part without hits: share `i` of `of`, ten targets each, and one of one or two models.
std::string write_part(const std::string& path, std::uint32_t i, std::uint32_t of,
                       std::uint64_t first_target, std::uint64_t counted = 10, Share models = {},
                       std::uint64_t first_model = 0) {
  PartPlace place;
  place.part = {i, i, of};
  place.first_target = first_target;
  place.last_target = first_target + 10;
  place.model_part = models;
  place.first_model = first_model;
  PartSettings settings;
  settings.targets = 100;
  auto writer = PartWriter::create(path, settings, place);
  EXPECT_TRUE(writer);
  ModelHead head;
  head.index = first_model;
  head.name = "model";
  head.M = 5;
  head.counters.targets = counted;
  EXPECT_TRUE(writer->add_model(head, ModelResult()));
  EXPECT_TRUE(writer->finish({}, first_model + 1, models.of));
  return path;
}

std::string missing_of(const std::vector<std::string>& paths) {
  const auto set = PartSet::open(paths);
  if (!set) return "error: " + set.error().message;
  const Status complete = set->require_complete();
  EXPECT_EQ(complete.has_value(), set->missing().empty());
  return describe_missing(set->missing());
}

TEST(PartSetTest, PartsThatNoFileHoldsAreMissing) {
  const test_support::TemporaryFolder folder;
  const std::string one = write_part(folder.file("1"), 1, 4, 0),
                    two = write_part(folder.file("2"), 2, 4, 10),
                    three = write_part(folder.file("3"), 3, 4, 20),
                    four = write_part(folder.file("4"), 4, 4, 30);
  EXPECT_EQ(missing_of({one, two, three, four}), "no part");
  EXPECT_EQ(missing_of({four, two, one, three}), "no part");
  EXPECT_EQ(missing_of({one, two, four}), "part 3 of 4");
  EXPECT_EQ(missing_of({one, four}), "parts 2-3 of 4");
  EXPECT_EQ(missing_of({two, four}), "parts 1, 3 of 4");
  EXPECT_EQ(missing_of({one, two, three}), "part 4 of 4");
  // From two shares of the models.
  const std::string first = write_part(folder.file("a"), 1, 2, 0, 10, {1, 1, 2}),
                    second = write_part(folder.file("b"), 2, 2, 10, 10, {1, 1, 2}),
                    third = write_part(folder.file("c"), 1, 2, 0, 10, {2, 2, 2}, 1),
                    fourth = write_part(folder.file("d"), 2, 2, 10, 10, {2, 2, 2}, 1);
  EXPECT_EQ(missing_of({first, second, third, fourth}), "no part");
  EXPECT_EQ(missing_of({third, fourth}), "parts 1-2 of 2 of model part 1/2");
  EXPECT_EQ(missing_of({first, second, fourth}), "part 1 of 2 of model part 2/2");
}

TEST(PartSetTest, APlaceHeldTwiceCountsOnceWhereBothAreEqual) {
  const test_support::TemporaryFolder folder;
  const std::string one = write_part(folder.file("1"), 1, 2, 0),
                    two = write_part(folder.file("2"), 2, 2, 10),
                    again = write_part(folder.file("2 again"), 2, 2, 10),
                    other = write_part(folder.file("2 other"), 2, 2, 10, 9);
  EXPECT_EQ(missing_of({one, two, again}), "no part");
  const auto set = PartSet::open(std::vector{one, two, again});
  ASSERT_TRUE(set);
  EXPECT_EQ(set->groups().front().parts.size(), 2u);
  for (const auto& paths : {std::vector{one, two, other}, std::vector{other, one, two}}) {
    const auto refused = PartSet::open(paths);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kInput);
    EXPECT_NE(refused.error().message.find("two results for part 2/2"), std::string::npos)
        << refused.error().message;
  }
}

TEST(PartSetTest, PartsOfAnotherDatabaseAreRefused) {
  const test_support::TemporaryFolder folder;
  const std::string one = write_part(folder.file("1"), 1, 3, 0);
  for (const std::uint64_t first : {9u, 11u}) {
    const std::string two = write_part(folder.file("2"), 2, 3, first);
    const auto refused = PartSet::open(std::vector{one, two});
    ASSERT_FALSE(refused) << first;
    EXPECT_NE(refused.error().message.find("another database"), std::string::npos)
        << refused.error().message;
    // Nothing is known about the targets between parts that are not adjacent.
    EXPECT_EQ(missing_of({one, write_part(folder.file("3"), 3, 3, first + 10)}), "part 2 of 3");
  }
}

}  // namespace
}  // namespace hmmjit::parts
