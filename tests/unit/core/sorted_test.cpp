// Values sorted through a temporary file, compared with a sort in memory.
#include "core/sorted.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace hmmjit {
namespace {

// Few keys, so that many values are equal; the text distinguishes them.
struct Record {
  std::uint64_t key = 0;
  std::string text;
  bool operator==(const Record&) const = default;
};

struct Order {
  static bool before(const Record& a, const Record& b) { return a.key < b.key; }
  inline static std::size_t encoded = 0;
  static void encode(const Record& record, std::string& out) {
    ++encoded;
    put_count(out, record.key);
    put_text(out, record.text);
  }
  static bool decode(Decoder& decoder, Record& record) {
    record.key = decoder.count();
    record.text = decoder.text();
    return decoder.ok() && record.text != "damaged";
  }
  static std::uint64_t bytes(const Record& record) { return sizeof record + record.text.size(); }
};
using SortedRecords = Sorted<Record, Order>;

std::vector<Record> make_records() {
  std::mt19937 random(4711);
  std::vector<Record> records;
  for (int i = 0; i < 20'000; ++i) {
    // Few keys with many records, and many with few; sorted and unsorted.
    const std::uint64_t key =
        i % 3 == 0 ? random() % 5
                   : (std::uint64_t{1} << 40) + (i < 10'000 ? static_cast<unsigned>(i) : random());
    records.push_back({key, std::to_string(i) + std::string(random() % 40, 'x')});
    if (i % 1000 == 0)
      records.back().text.assign(20'000, static_cast<char>(i));  // larger than a buffer
    if (i % 1000 == 1) records.back().text.clear();
  }
  return records;
}

// In memory, in a few runs, and in enough runs for several merges.
TEST(Sorted, EqualValuesKeepTheirOrderWhateverTheMemory) {
  const std::vector<Record> records = make_records();
  std::vector<Record> expected = records;
  std::ranges::stable_sort(expected, Order::before);
  for (const std::uint64_t memory :
       {SortedRecords::kUnbounded, std::uint64_t{1} << 20, std::uint64_t{1} << 14}) {
    SCOPED_TRACE(memory);
    SortedRecords sorted(memory);
    for (const Record& record : records) ASSERT_TRUE(sorted.add(record));
    for (int pass = 0; pass < 2; ++pass) {
      ASSERT_TRUE(sorted.begin());
      for (const Record& record : expected) {
        const auto found = sorted.next();
        ASSERT_TRUE(found && *found != nullptr);
        ASSERT_EQ(**found, record);
      }
      EXPECT_EQ(*sorted.next(), nullptr);
    }
    ASSERT_TRUE(sorted.begin());
    std::vector<Record> group, grouped;
    while (*sorted.next_group(group)) {
      EXPECT_TRUE(grouped.empty() || grouped.back().key < group.front().key);
      EXPECT_EQ(group.front().key, group.back().key);
      grouped.insert(grouped.end(), group.begin(), group.end());
    }
    EXPECT_EQ(grouped, expected);
  }
}

TEST(Sorted, RunsOfAnyLengthAreMerged) {
  const std::vector<Record> records = make_records();
  SortedRecords sorted(1 << 14);
  for (std::size_t at = 0; at < records.size();) {
    const std::size_t end = std::min(at + at % 97, records.size() - 1) + 1;
    std::vector<Record> run(records.begin() + static_cast<std::ptrdiff_t>(at),
                            records.begin() + static_cast<std::ptrdiff_t>(end));
    ASSERT_TRUE(sorted.add_run(run));
    EXPECT_TRUE(run.empty());
    at = end;
  }
  std::vector<Record> expected = records;
  std::ranges::stable_sort(expected, Order::before);
  ASSERT_TRUE(sorted.begin());
  for (const Record& record : expected) ASSERT_EQ(**sorted.next(), record);
}

TEST(Sorted, ValuesAreWrittenAFewTimesHoweverManyRunsThereAre) {
  SortedRecords sorted;
  Order::encoded = 0;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    std::vector<Record> run{{i % 2, std::to_string(i)}};
    ASSERT_TRUE(sorted.add_run(run));
  }
  EXPECT_LE(Order::encoded, 3 * 4000u);
  ASSERT_TRUE(sorted.begin());
  for (std::uint64_t i = 0; i < 4000; ++i)
    ASSERT_EQ((**sorted.next()).text, std::to_string(i % 2000 * 2 + i / 2000));
}

TEST(Sorted, NothingAdded) {
  SortedRecords sorted;
  std::vector<Record> group{{1, "left over"}};
  ASSERT_TRUE(sorted.begin());
  EXPECT_FALSE(*sorted.next_group(group));
  EXPECT_TRUE(group.empty());
}

TEST(Sorted, DamagedRecordsAndShortFilesAreErrors) {
  SortedRecords sorted;
  ASSERT_TRUE(sorted.add({1, "damaged"}));
  ASSERT_TRUE(sorted.spill());
  ASSERT_TRUE(sorted.begin());
  EXPECT_EQ(sorted.next().error().code, ErrorCode::kOutput);

  SpoolFile file = *SpoolFile::create();
  ASSERT_TRUE(SpoolRun::append(file, "record"));
  SpoolRun run(file, 0, file.size() - 2, 1 << 12);
  std::string_view record;
  const auto more = run.next(record);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::kOutput);
}

}  // namespace
}  // namespace hmmjit
