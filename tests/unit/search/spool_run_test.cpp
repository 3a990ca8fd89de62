// Runs of records in a temporary file, merged.
#include "search/spool_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace hmmjit {
namespace {

// A key, and a text that says from where the record comes.
struct Record {
  std::uint32_t key = 0;
  std::string text;
  bool operator==(const Record&) const = default;
};

bool before(const Record& a, const Record& b) { return a.key < b.key; }

Status read(SpoolRun& run, Record& record) {
  std::uint32_t head[2];
  HMMJIT_ASSIGN(const std::string_view bytes, run.take(sizeof head));
  std::memcpy(head, bytes.data(), sizeof head);
  record.key = head[0];
  HMMJIT_ASSIGN(record.text, run.take(head[1]));
  return {};
}

struct Written {
  SpoolFile file;
  std::vector<SpoolRange> runs;
};

Written write(const std::vector<std::vector<Record>>& runs) {
  Written out{*SpoolFile::create(kSpoolWriteBuffer), {}};
  for (const auto& run : runs) {
    const std::uint64_t begin = out.file.size();
    for (const Record& record : run) {
      const std::uint32_t head[2] = {record.key, static_cast<std::uint32_t>(record.text.size())};
      EXPECT_TRUE(out.file.append({reinterpret_cast<const char*>(head), sizeof head}));
      EXPECT_TRUE(out.file.append(record.text));
    }
    out.runs.push_back({begin, out.file.size()});
  }
  return out;
}

// Keys that often are equal, runs without records, and records longer than a buffer.
TEST(MergedRuns, AreInOrderAndEqualRecordsInThatOfTheirRuns) {
  std::mt19937 random(11);
  for (int round = 0; round < 30; ++round) {
    std::vector<std::vector<Record>> runs(random() % 7);
    std::vector<Record> all;
    for (std::size_t r = 0; r < runs.size(); ++r) {
      for (std::size_t i = random() % 200; i > 0; --i) {
        const std::size_t filler = random() % 50 == 0 ? 6000 : random() % 40;
        runs[r].push_back({static_cast<std::uint32_t>(random() % 50),
                           fmt::format("{} of {} {}", i, r, std::string(filler, 'x'))});
      }
      std::ranges::stable_sort(runs[r], before);
      all.insert(all.end(), runs[r].begin(), runs[r].end());
    }
    std::ranges::stable_sort(all, before);
    Written written = write(runs);
    MergedRuns<Record> merged(written.file, written.runs, round % 2 == 0 ? 0 : 1 << 20, read,
                              before);
    ASSERT_TRUE(merged.open());
    for (const Record& expected : all) {
      ASSERT_FALSE(merged.empty());
      const Record found = std::move(merged.front());
      ASSERT_EQ(found, expected) << "round " << round;
      ASSERT_TRUE(merged.advance());
    }
    EXPECT_TRUE(merged.empty());
  }
}

TEST(MergedRuns, ARunThatEndsWithinARecordIsDamaged) {
  Written written = write({{{1, "first"}, {3, "third"}}, {{2, "second"}}});
  written.runs[0].end -= 2;
  MergedRuns<Record> merged(written.file, written.runs, 1 << 20, read, before);
  ASSERT_TRUE(merged.open());
  const Status failed = merged.advance();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kOutput);
}

// A reader may look at a part of a record, and leave the rest to whoever uses it.
TEST(MergedRuns, TheRestOfARecordIsReadFromItsRun) {
  Written written = write({{{1, "one"}, {2, "two"}}, {{1, "uno"}}});
  const auto peek = [](SpoolRun& run, std::uint32_t& key) -> Status {
    HMMJIT_ASSIGN(const std::string_view bytes, run.peek(sizeof key));
    std::memcpy(&key, bytes.data(), sizeof key);
    return {};
  };
  MergedRuns<std::uint32_t> merged(
      written.file, written.runs, 1 << 20, peek,
      [](const std::uint32_t& a, const std::uint32_t& b) { return a < b; });
  ASSERT_TRUE(merged.open());
  std::vector<std::string> texts;
  while (!merged.empty()) {
    Record record;
    ASSERT_TRUE(read(merged.front_run(), record));
    EXPECT_EQ(record.key, merged.front());
    texts.push_back(record.text);
    ASSERT_TRUE(merged.advance());
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"one", "uno", "two"}));
}

}  // namespace
}  // namespace hmmjit
