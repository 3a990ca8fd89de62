#include "search/target_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <random>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "search/fasta_pieces.hpp"
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

// ---- pieces of FASTA files
// -----------------------------------------------------------------------

// Records of every form that a reader accepts, in a file that pieces of 100 bytes divide anywhere.
std::string random_fasta(std::mt19937& random) {
  const auto below = [&](std::size_t n) { return random() % n; };
  const std::string_view letters = "ACDEFGHIKLMNPQRSTVWYacdxXBZ* \t";
  const std::string_view ends[] = {"\n", "\n", "\r\n", "\n\n", "\r", "\n \n"};
  std::string text = below(3) == 0 ? " \n\n" : "";
  const std::size_t records = 3 + below(40);
  for (std::size_t i = 0; i < records; ++i) {
    text += ">s" + std::to_string(i) + (below(4) == 0 ? " a > b >c" : "") +
            (below(9) == 0 ? std::string(below(400), '>') : "") + (below(3) == 0 ? "\r\n" : "\n");
    for (std::size_t line = below(8) == 0 ? 60 : below(4); line > 0; --line) {
      for (std::size_t n = below(70); n > 0; --n) text += letters[below(letters.size())];
      text += ends[below(std::size(ends))];
    }
    // A > anywhere in a line begins a record.
    if (below(10) == 0) text += "AC>m" + std::to_string(i) + "\nWY";
  }
  text += "\n>last\n" + std::string(below(2) == 0 ? 300 : 301, 'W');
  return text;
}

struct ReadOutcome {
  std::vector<std::string> text;
  std::string error;
};
// Reads to the end or to an error; `stop_at`: no more blocks than this.
ReadOutcome read_outcome(TargetSource& source, std::size_t stop_at = ~std::size_t{0}) {
  ReadOutcome out;
  for (; stop_at > 0; --stop_at) {
    TargetBlock block;
    const auto more = source.next(block, 100);
    if (!more) out.error = more.error().to_string();
    if (!more || !*more) break;
    EXPECT_EQ(block.first_index(), out.text.size());
    for (std::size_t i = 0; i < block.size(); ++i) {
      out.text.emplace_back(block[i].name).append(1, '|').append(block[i].description);
      out.text.back().append(block[i].residues.begin(), block[i].residues.end());
    }
  }
  return out;
}

class FastaPieces : public testing::Test {
 protected:
  std::unique_ptr<TargetSource> pieces(std::uint64_t smallest = 100) const {
    auto out = open_fasta_pieces(path_, {.alphabet = amino_alphabet()}, smallest);
    EXPECT_TRUE(out && *out) << text_;
    return *std::move(out);
  }
  std::unique_ptr<TargetSource> reader() const {
    auto out = open_target_file(path_, {.alphabet = amino_alphabet()});
    EXPECT_TRUE(out) << out.error().to_string();
    return *std::move(out);
  }
  void write(std::string text) {
    text_ = std::move(text);
    std::ofstream(path_, std::ios::binary) << text_;
  }

  const test_support::TemporaryFolder folder_;
  const std::string path_ = folder_.file("t.fa");
  std::string text_;
};

TEST_F(FastaPieces, AreTheTargetsOfOneReader) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    write(random_fasta(random));
    const ReadOutcome wanted = read_outcome(*reader());
    ASSERT_EQ(wanted.error, "");
    for (const std::uint64_t smallest : {1, 137}) {
      const auto source = pieces(smallest);
      (void)read_outcome(*source, round % 7);  // a pass that ends early
      ASSERT_TRUE(source->rewind());
      std::vector<std::jthread> threads;
      for (int t = 0; t < round % 4; ++t)
        threads.emplace_back([&](const std::stop_token& stop) {
          while (!stop.stop_requested())
            if (!source->read_ahead()) std::this_thread::yield();
        });
      for (int pass = 0; pass < 2; ++pass) {
        ASSERT_EQ(read_outcome(*source).text, wanted.text) << text_;
        EXPECT_EQ(source->bytes_read(), text_.size());
        ASSERT_TRUE(source->rewind());
      }
    }
  }
}

TEST_F(FastaPieces, FailAsOneReaderDoes) {
  std::mt19937 random(8);
  for (int round = 0; round < 60; ++round) {
    std::string text = random_fasta(random);
    text.insert(random() % text.size(), round % 3 == 0   ? std::string_view("1", 1)
                                        : round % 3 == 1 ? std::string_view("\n> \n")
                                                         : std::string_view("\0", 1));
    write(std::move(text));
    const ReadOutcome wanted = read_outcome(*reader());
    const auto source = pieces(1);
    const ReadOutcome got = read_outcome(*source);
    EXPECT_EQ(got.error, wanted.error) << text_;
    if (wanted.error.empty()) {
      EXPECT_EQ(got.text, wanted.text);
    }
  }
}

TEST_F(FastaPieces, RefuseTargetsThatThereIsNoMemoryFor) {
  write(">a\nACDEF\n>b\n" + std::string(900, 'A') + "\n>c\nACD\n");
  const auto one = reader(), source = pieces();
  for (TargetSource* each : {one.get(), source.get()}) each->limit_targets(800);
  const std::string error = read_outcome(*source).error;
  EXPECT_EQ(error, read_outcome(*one).error);
  EXPECT_EQ(error, path_ +
                       ":5: sequence b has 900 residues, more than there is memory for; allow more "
                       "memory, or leave out the sequence");
}

TEST_F(FastaPieces, AreReadAheadWhileThereIsRoom) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += ">s\n" + std::string(100, 'A') + "\n";
  write(text);
  const auto source = pieces();
  EXPECT_FALSE(source->read_ahead()) << "the size of pieces is not known yet";
  source->limit_ahead(1000);
  TargetBlock block;
  ASSERT_TRUE(*source->next(block, 100));
  EXPECT_EQ(source->read_ahead_threads(), 5);
  int ahead = 1;
  while (source->read_ahead()) ++ahead;
  EXPECT_EQ(ahead, 5);
  EXPECT_EQ(source->read_ahead_threads(), 0);

  const auto alone = pieces();
  alone->limit_ahead(300);
  ASSERT_TRUE(*alone->next(block = {}, 100));
  EXPECT_EQ(alone->read_ahead_threads(), 0);
  EXPECT_FALSE(alone->read_ahead());
}

TEST_F(FastaPieces, EndWithAnErrorWhenTheFileIsCutShort) {
  write(">a\n" + std::string(500, 'A') + "\n>b\nACD\n>c\n" + std::string(500, 'A') + "\n");
  const auto source = pieces();
  std::ofstream(path_) << text_.substr(0, 700);
  EXPECT_EQ(
      read_outcome(*source).error,
      path_ + ": the file was cut short while it was read; do not change files that are in use");
}

TEST_F(FastaPieces, EndWithAnErrorWhenTheFileGrows) {
  write(">a\n" + std::string(500, 'A') + "\n>b\nACD\n");
  for (int passes = 0; passes < 2; ++passes) {
    const auto source = pieces();
    if (passes > 0) {
      EXPECT_EQ(read_outcome(*source).text.size(), 3u);
      ASSERT_TRUE(source->rewind());
    }
    std::ofstream(path_, std::ios::app) << ">c\nACD\n";
    EXPECT_EQ(read_outcome(*source).error,
              path_ + ": the file changed while it was read; do not change files that are in use");
  }
}

TEST_F(FastaPieces, HaveTheSizeOfTheBlocksThatAreAskedFor) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += ">s\n" + std::string(100, 'A') + "\n";
  write(text);
  const auto source = pieces(1);
  std::size_t targets = 0;
  for (const std::size_t residues : {100, 1000, 1000, 300, 5000}) {
    TargetBlock block;
    ASSERT_TRUE(*source->next(block, residues));
    EXPECT_EQ(block.first_index(), targets);
    EXPECT_GE(block.residue_count() + 200, residues);
    targets += block.size();
  }
  TargetBlock rest;
  while (*source->next(rest = {}, 10'000)) targets += rest.size();
  EXPECT_EQ(targets, 100u);
}

TEST_F(FastaPieces, AreNotFoundWhereLinesBeginNoRecords) {
  for (const std::string& text :
       {">a\rACD\r>b\rACD\r" + std::string(300, 'A'), ">a\nACD" + std::string(300, 'A'),
        std::string(">a\nA\n>b\nA\n")}) {
    write(text);
    const auto source = open_fasta_pieces(path_, {.alphabet = amino_alphabet()}, 100);
    ASSERT_TRUE(source);
    EXPECT_EQ(*source, nullptr);
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
