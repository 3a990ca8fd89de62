// Records sorted by target through a temporary file, against the same in memory.
#include "search/records_by_target.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>
#include <vector>

namespace hmmjit {
namespace {

TEST(RecordsByTarget, AreThoseOfAMapWhateverTheMemory) {
  constexpr unsigned kSeed = 4711;
  std::mt19937 random(kSeed);
  std::map<std::uint64_t, std::vector<std::string>> expected;
  std::vector<std::pair<std::uint64_t, std::string>> records;
  for (int i = 0; i < 20'000; ++i) {
    // Few targets with many records, many with few; in order, as models give them, and not.
    const std::uint64_t target =
        i % 3 == 0 ? random() % 5
                   : (std::uint64_t{1} << 40) + (i < 10'000 ? static_cast<unsigned>(i) : random());
    std::string record = std::to_string(i) + std::string(random() % 40, 'x');
    if (i % 1000 == 0) record.assign(20'000, static_cast<char>(i));  // longer than any buffer
    if (i % 1000 == 1) record.clear();
    expected[target].push_back(record);
    records.emplace_back(target, std::move(record));
  }
  // In memory; a few runs; so many that they are merged, several times.
  for (const std::uint64_t memory :
       {RecordsByTarget::kUnbounded, std::uint64_t{1} << 20, std::uint64_t{1} << 14}) {
    SCOPED_TRACE(memory);
    RecordsByTarget sorted(memory);
    for (const auto& [target, record] : records) ASSERT_TRUE(sorted.add(target, record));
    auto want = expected.begin();
    std::uint64_t target = 0;
    std::vector<std::string> found;
    for (;;) {
      const auto more = sorted.next(target, found);
      ASSERT_TRUE(more);
      if (!*more) break;
      ASSERT_NE(want, expected.end());
      ASSERT_EQ(target, want->first);
      ASSERT_EQ(found, want->second);
      ++want;
    }
    EXPECT_EQ(want, expected.end());
    EXPECT_TRUE(found.empty());
  }
}

TEST(RecordsByTarget, NothingAdded) {
  RecordsByTarget sorted(1000);
  std::uint64_t target = 0;
  std::vector<std::string> records{"left over"};
  const auto more = sorted.next(target, records);
  ASSERT_TRUE(more);
  EXPECT_FALSE(*more);
  EXPECT_TRUE(records.empty());
}

}  // namespace
}  // namespace hmmjit
