#include "search/target_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "search/kept_targets.hpp"
#include "search/reader_source.hpp"
#include "tests/support/folder.hpp"

namespace hmmjit {
namespace {

// Targets "t0", "t1", ... of growing length in blocks of three; the last one has at least
// `longest`.
class Numbered final : public TargetSource {
 public:
  explicit Numbered(std::uint64_t count, std::uint64_t longest = 0)
      : count_(count), longest_(longest) {}
  Result<bool> next(TargetBlock& block, std::size_t) override {
    if (at_ == count_) return false;
    block.set_first_index(at_);
    for (int i = 0; i < 3 && at_ < count_; ++i, ++at_) {
      block.begin_target(std::string("t").append(std::to_string(at_)), at_ % 2 == 0 ? "acc" : "",
                         at_ % 3 == 0 ? "some words" : "");
      const std::uint64_t length = at_ + 1 == count_ ? std::max(at_, longest_) : at_;
      block.append(std::vector<Residue>(length, static_cast<Residue>(at_ % 20)));
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
  std::uint64_t count_, longest_, at_ = 0;
};

struct Seen {
  std::vector<std::string> text;
  std::vector<std::uint64_t> firsts;
};

Seen read_all(TargetSource& source) {
  Seen seen;
  for (;;) {
    TargetBlock block;
    const auto more = source.next(block, 100);
    EXPECT_TRUE(more) << more.error().to_string();
    if (!more || !*more) return seen;
    seen.firsts.push_back(block.first_index());
    for (std::size_t i = 0; i < block.size(); ++i) {
      const TargetView target = block[i];
      std::string text(target.name);
      for (const std::string_view part : {target.accession, target.description})
        text.append(1, '|').append(part);
      text.append(1, '|').append(target.residues.begin(), target.residues.end());
      seen.text.push_back(std::move(text));
    }
  }
}

TEST(KeptTargets, AreAllThereWhetherTheyFitOrNot) {
  Numbered source(20);
  const Seen all = read_all(source);
  for (const std::uint64_t memory : {0, 2000, 1 << 20}) {
    const auto kept = keep_targets(std::make_unique<Numbered>(20), memory);
    for (int pass = 0; pass < 3; ++pass) {
      const Seen seen = read_all(*kept);
      EXPECT_EQ(seen.text, all.text) << memory;
      EXPECT_EQ(seen.firsts, all.firsts) << memory;
      ASSERT_TRUE(kept->rewind());
    }
  }
}

TEST(KeptTargets, ASourceOfADatabaseBeginsWithItsFirstTarget) {
  const test_support::TemporaryFolder folder;
  const std::string path = folder.file("db");
  auto writer = DatabaseWriter::create(path, amino_alphabet());
  ASSERT_TRUE(writer);
  Numbered source(20);
  for (TargetBlock block; source.next(block, 100).value(); block = {})
    ASSERT_TRUE(writer->add(block));
  ASSERT_TRUE(writer->finish(""));
  source.rewind().value();
  const Seen all = read_all(source);
  const auto kept =
      keep_target_file(path, SequenceFormatOptions{.alphabet = amino_alphabet()}, 1 << 20);
  ASSERT_TRUE(kept) << kept.error().to_string();
  EXPECT_LT((*kept)->bytes(), 1u << 20) << "a small database needs less than it may take";
  for (int pass = 0; pass < 2; ++pass) EXPECT_EQ(read_all(*(*kept)->open()).text, all.text);
}

TEST(TargetFile, ThatChangesBetweenPassesIsAnError) {
  const test_support::TemporaryFolder folder;
  const std::string path = folder.file("t.fa");
  const std::string one = ">a\nACDEF\n", two = one + ">b\nGHIKL\n";
  for (const bool stops_early : {false, true}) {
    for (const std::string& later : {std::string(), one, two, two + one}) {
      std::ofstream(path) << two;
      auto source = open_target_file(path, SequenceFormatOptions{.alphabet = amino_alphabet()});
      ASSERT_TRUE(source) << source.error().to_string();
      if (stops_early) {
        TargetBlock block;
        ASSERT_TRUE((*source)->next(block, 1));
      } else {
        EXPECT_EQ(read_all(**source).text.size(), 2u);
      }
      std::ofstream(path) << later;
      ASSERT_TRUE((*source)->rewind());
      Result<bool> more = true;
      while (more && *more) {
        TargetBlock block;
        more = (*source)->next(block, 1);
      }
      // A first pass that stops early does not know what comes after it.
      ASSERT_EQ(more.has_value(), later == two || (stops_early && later.size() > two.size()));
      if (more) continue;
      EXPECT_EQ(more.error().to_string(),
                path + ": the file changed while it was read; do not change files that are in use");
    }
  }
}

TEST(BlockSpool, GivesBackWhatItTook) {
  Numbered source(50, 3'000'000);  // the last one is longer than the buffers
  const Seen wanted = read_all(source);
  ASSERT_TRUE(source.rewind());
  auto spool = BlockSpool::create();
  ASSERT_TRUE(spool);
  for (;;) {
    TargetBlock block;
    if (!*source.next(block, 100)) break;
    ASSERT_TRUE((*spool)->append(block));
  }
  for (int pass = 0; pass < 2; ++pass) {
    ASSERT_TRUE((*spool)->rewind());
    const Seen got = read_all(**spool);
    EXPECT_EQ(got.text, wanted.text);
    EXPECT_EQ(got.firsts, wanted.firsts);
  }
}

TEST(BlockSpool, SaysWhereItCannotWrite) {
  const char* before = std::getenv("TMPDIR");
  const std::string saved = before != nullptr ? before : "";
  ::setenv("TMPDIR", "/nowhere/at/all", 1);
  const auto spool = BlockSpool::create();
  if (before != nullptr)
    ::setenv("TMPDIR", saved.c_str(), 1);
  else
    ::unsetenv("TMPDIR");
  ASSERT_FALSE(spool);
  EXPECT_EQ(spool.error().code, ErrorCode::kOutput);
}

}  // namespace
}  // namespace hmmjit
