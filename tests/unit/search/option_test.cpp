// What the command line takes beyond hmmsearch's syntax, which
// tests/scenario/cases/option_lines.txt compares.
#include <gtest/gtest.h>

#include <cstdlib>

#include "hmmjit/option_table.hpp"
#include "hmmjit/search_options.hpp"

namespace hmmjit::tools {
namespace {

Result<ParsedOptions> parse(std::vector<std::string> words) {
  return parse_options(search_option_table(), words);
}

TEST(Options, NewOnesTakeNoAbbreviationFromHmmsearchs) {
  // --m was --max before --mem existed, and --se was --seed; --me is new.
  EXPECT_TRUE(parse({"--m"})->is_set("--max"));
  EXPECT_EQ(parse({"--se", "7"})->integer("--seed"), 7);
  EXPECT_EQ(parse({"--me", "1G"})->text("--mem"), "1G");
}

TEST(Options, HyphensAndUnderscoresAreTheSame) {
  EXPECT_TRUE(parse({"--cut-ga"})->is_set("--cut_ga"));
  EXPECT_EQ(parse({"--seq_limit", "3", "-A", "x"})->integer("--seq-limit"), 3);
  EXPECT_EQ(parse({"--seq_l=3", "--a3m", "x"})->integer("--seq-limit"), 3);
}

TEST(Options, Sizes) {
  EXPECT_EQ(parse({"--vram", "1.5K"})->bytes("--vram").value(), 1536u);
  for (const char* size : {"0", "0.4", "lots"}) {
    const auto options = parse({"--vram", size});
    ASSERT_TRUE(options) << size;
    const auto bytes = options->bytes("--vram");
    ASSERT_FALSE(bytes) << size;
    EXPECT_EQ(bytes.error().code, ErrorCode::kUsage);
    EXPECT_EQ(bytes.error().message, "option --vram takes a size; got " + std::string(size));
    EXPECT_EQ(bytes.error().remedy, "write for example --vram 400M or --vram 2G");
  }
}

TEST(Options, ThreadsFollowTheOptionThenTheEnvironment) {
  ::setenv("HMMER_NCPU", "3", 1);
  EXPECT_EQ(make_search_options(*parse({}))->threads, 3);
  EXPECT_EQ(make_search_options(*parse({"--cpu", "5"}))->threads, 5);
  EXPECT_EQ(make_search_options(*parse({"--cpu", "0"}))->threads, 1);
  ::setenv("HMMER_NCPU", "abc", 1);
  const auto parsed = parse({});
  ::unsetenv("HMMER_NCPU");
  ASSERT_FALSE(parsed);
  EXPECT_NE(parsed.error().message.find("HMMER_NCPU"), std::string::npos);
}

TEST(Options, AlignmentsAreKeptForThoseWhoAskForThem) {
  EXPECT_FALSE(make_search_options(*parse({"--noali"}))->keep_alignments);
  EXPECT_TRUE(make_search_options(*parse({"--noali", "-A", "x"}))->keep_alignments);
}

TEST(Options, SettingsFollowTheTable) {
  EXPECT_EQ(parse({"--seed", "7", "--max", "-E", "3", "-o", "f"})->settings(),
            "-o f -E 3 --max --seed 7 ");
}

}  // namespace
}  // namespace hmmjit::tools
