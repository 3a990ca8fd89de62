// hmmsearch's command line syntax.
#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>

#include "hmmjit/option_table.hpp"
#include "hmmjit/search_options.hpp"

namespace hmmjit::tools {
namespace {

Result<ParsedOptions> parse(std::vector<std::string> words) {
  return parse_options(search_option_table(), words);
}

std::string failure(std::vector<std::string> words) {
  const auto parsed = parse(std::move(words));
  if (parsed) return "accepted";
  EXPECT_EQ(parsed.error().code, ErrorCode::kUsage);
  return parsed.error().message;
}

TEST(Options, AllSpellings) {
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"--domE=3", "a", "b"}, {"--domE", "3", "a", "b"}}) {
    const auto parsed = parse(words);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->real("--domE"), 3);
    EXPECT_EQ(parsed->arguments(), (std::vector<std::string>{"a", "b"}));
  }
  EXPECT_EQ(parse({"-E5"})->real("-E"), 5);
  EXPECT_EQ(parse({"-E", "1e-5"})->real("-E"), 1e-5);
  EXPECT_EQ(parse({"-T", "-5"})->real("-T"), -5);  // numbers may begin with '-'
  EXPECT_EQ(parse({"-T-5"})->real("-T"), -5);
  EXPECT_EQ(parse({"-o-x"})->text("-o"), "-x");
  EXPECT_EQ(parse({"--tblout=-x"})->text("--tblout"), "-x");
  EXPECT_TRUE(parse({"-hE3"})->is_set("-h"));
  EXPECT_EQ(parse({"-E", " 5\t"})->text("-E"), "5");
  EXPECT_EQ(parse({"--textw= 130 "})->integer("--textw"), 130);
}

TEST(Options, AbbreviationsAreHmmsearchsOwn) {
  EXPECT_EQ(parse({"--tbl", "x"})->text("--tblout"), "x");
  EXPECT_EQ(parse({"--domt=x"})->text("--domtblout"), "x");
  EXPECT_NE(failure({"--dom", "3"}).find("ambiguous"), std::string::npos);
  EXPECT_TRUE(parse({"--ac"})->is_set("--acc"));
  // --m was --max before --mem existed, and --se was --seed; --me is new.
  EXPECT_TRUE(parse({"--m"})->is_set("--max"));
  EXPECT_EQ(parse({"--me", "1G"})->text("--mem"), "1G");
  EXPECT_NE(failure({"--inc", "3"}).find("ambiguous"), std::string::npos);
  EXPECT_NE(failure({"--no"}).find("ambiguous"), std::string::npos);
  EXPECT_NE(failure({"--nosuch"}).find("no such option"), std::string::npos);
  EXPECT_NE(failure({"-q"}).find("no such option"), std::string::npos);
}

TEST(Options, StandAnywhereBeforeTwoHyphens) {
  const auto mixed = parse({"a", "--max", "b", "-E", "5"});
  EXPECT_EQ(mixed->arguments(), (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(mixed->is_set("--max"));
  EXPECT_EQ(mixed->real("-E"), 5);
  EXPECT_EQ(parse({"a", "--", "--max"})->arguments(), (std::vector<std::string>{"a", "--max"}));
  EXPECT_EQ(parse({"--", "-a", "b"})->arguments(), (std::vector<std::string>{"-a", "b"}));
  EXPECT_EQ(parse({"-", "b"})->arguments(), (std::vector<std::string>{"-", "b"}));
}

TEST(Options, WrongValues) {
  EXPECT_NE(failure({"--textw", "100"}).find("range n>=120"), std::string::npos);
  EXPECT_NE(failure({"--textw=abc"}).find("integer"), std::string::npos);
  EXPECT_NE(failure({"--cpu", "1e3"}).find("integer"), std::string::npos);
  EXPECT_NE(failure({"--seed", "0x10"}).find("integer"), std::string::npos);
  EXPECT_NE(failure({"--cpu", "-1"}).find("range n>=0"), std::string::npos);
  EXPECT_NE(failure({"-E", "0"}).find("range x>0"), std::string::npos);
  EXPECT_NE(failure({"-E", " "}).find("real"), std::string::npos);
  EXPECT_NE(failure({"-E", "1e-5x"}).find("real"), std::string::npos);
  EXPECT_NE(failure({"-Eh"}).find("real"), std::string::npos);
  EXPECT_NE(failure({"-o", "-x"}).find("looks like an option"), std::string::npos);
  EXPECT_NE(failure({"--tblout"}).find("requires an argument"), std::string::npos);
  EXPECT_NE(failure({"--max=3"}).find("does not take"), std::string::npos);
  EXPECT_NE(failure({"-E", "5", "-E", "6"}).find("already"), std::string::npos);
  const auto memory = parse({"--mem", "lots"});
  ASSERT_TRUE(memory);
  EXPECT_EQ(make_search_options(*memory).error().code, ErrorCode::kUsage);
  EXPECT_NE(failure({"--restrictdb_n", "0"}).find("range n>=1"), std::string::npos);
  for (const char* option : {"--F1", "--F2", "--F3", "-T", "--domT", "--incT", "-E", "-Z"})
    EXPECT_NE(failure({option, "nan"}).find("real"), std::string::npos) << option;
  EXPECT_NE(failure({"-E", "0x"}).find("real"), std::string::npos);
  EXPECT_NE(failure({"-E", "1e-400"}).find("range x>0"), std::string::npos);
}

TEST(Options, HyphensAndUnderscoresAreTheSame) {
  EXPECT_TRUE(parse({"--cut-ga"})->is_set("--cut_ga"));
  EXPECT_EQ(parse({"--seq_limit", "3", "-A", "x"})->integer("--seq-limit"), 3);
  EXPECT_EQ(parse({"--seq_l=3", "--a3m", "x"})->integer("--seq-limit"), 3);
}

TEST(Options, SomeNeedOthers) {
  EXPECT_NE(failure({"--seq-limit", "3"}).find("nothing without -A or --a3m or --part"),
            std::string::npos);
  EXPECT_TRUE(parse({"-h", "--seq_limit", "1"}));  // AlphaFold 3 tests for the option like this
}

TEST(Options, SwappedLettersAreOneError) {
  const std::vector<std::string> names{"search", "scan", "cache", "plan"};
  EXPECT_EQ(did_you_mean("sacn", names, ""), "did you mean scan?");
  EXPECT_EQ(did_you_mean("scna", names, ""), "did you mean scan?");
  EXPECT_EQ(did_you_mean("saxn", names, "none"), "none");
  EXPECT_EQ(did_you_mean("serach", names, ""), "did you mean search?");
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

// Users mean gigabytes, but would get bytes.
TEST(Options, MemoryWithoutAUnit) {
  for (const char* size : {"1", "64", "65535", "2K"}) {
    const auto options = make_search_options(*parse({"--mem", size}));
    ASSERT_FALSE(options) << size;
    EXPECT_EQ(options.error().code, ErrorCode::kUsage);
    EXPECT_NE(options.error().to_string().find("write a unit"), std::string::npos);
  }
  EXPECT_EQ(make_search_options(*parse({"--mem", "64K"}))->memory, std::uint64_t{64} << 10);
}

// Numbers of strtod; too large ones are infinite.
TEST(Options, RealNumbersAsHmmsearchTakesThem) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(parse({"-E", "0x10"})->real("-E"), 16);
  EXPECT_EQ(parse({"-E", "0x1p-2"})->real("-E"), 0.25);
  EXPECT_EQ(parse({"-E", "1e400"})->real("-E"), kInfinity);
  EXPECT_EQ(parse({"-T", "-1e400"})->real("-T"), -kInfinity);
  EXPECT_EQ(parse({"-E", "inf"})->real("-E"), kInfinity);
  EXPECT_EQ(parse({"-E", ".5"})->real("-E"), 0.5);
  EXPECT_EQ(parse({"-E", "+5."})->real("-E"), 5);
}

TEST(Options, Exclusions) {
  const std::vector<std::vector<std::string>> bad = {
      {"-E", "5", "-T", "3"},          {"--domE", "5", "--domT", "3"},
      {"--incE", "5", "--incT", "3"},  {"--incdomE", "5", "--incdomT", "3"},
      {"--cut_ga", "--domE", "4"},     {"--cut_ga", "--cut_tc"},
      {"--cut_nc", "--incdomT", "4"},  {"--max", "--F1", "0.1"},
      {"--max", "--F3", "0.1"},        {"--max", "--nobias"},
      {"--textw", "200", "--notextw"}, {"-T", "3", "--cut_tc"}};
  for (const auto& words : bad)
    EXPECT_NE(failure(words).find("incompatible"), std::string::npos) << words.front();
  EXPECT_TRUE(parse({"-E", "5", "--domT", "3", "--incE", "1", "--incdomT", "9"}));
}

TEST(Options, Environment) {
  ::setenv("HMMER_NCPU", "3", 1);
  EXPECT_EQ(make_search_options(*parse({}))->threads, 3);
  EXPECT_EQ(make_search_options(*parse({"--cpu", "5"}))->threads, 5);
  EXPECT_EQ(make_search_options(*parse({"--cpu", "0"}))->threads, 1);
  ::setenv("HMMER_NCPU", "abc", 1);
  EXPECT_NE(failure({}).find("HMMER_NCPU"), std::string::npos);
  ::unsetenv("HMMER_NCPU");
}

TEST(Options, Defaults) {
  const SearchOptions options = *make_search_options(*parse({}));
  EXPECT_EQ(options.thresholds.target.e_value, 10.0);
  EXPECT_EQ(options.thresholds.include_domain.e_value, 0.01);
  EXPECT_FALSE(options.thresholds.domain.score);
  EXPECT_EQ(options.filters.F1, 0.02);
  EXPECT_EQ(options.filters.F2, 1e-3);
  EXPECT_EQ(options.filters.F3, 1e-5);
  EXPECT_TRUE(options.filters.bias && options.domain.null2 && options.domain.reseed);
  EXPECT_EQ(options.domain.seed, 42u);
  EXPECT_EQ(make_search_options(*parse({"--F1", "7"}))->filters.F1, 1.0);
  EXPECT_FALSE(make_search_options(*parse({"--seed", "0"}))->domain.reseed);
  EXPECT_FALSE(make_search_options(*parse({"--max"}))->filters.bias);
  EXPECT_FALSE(make_search_options(*parse({"--noali"}))->keep_alignments);
  EXPECT_TRUE(make_search_options(*parse({"--noali", "-A", "x"}))->keep_alignments);
}

TEST(Options, SettingsFollowTheTable) {
  const auto parsed = parse({"--seed", "7", "--max", "-E", "3", "-o", "f"});
  EXPECT_EQ(parsed->settings(), "-o f -E 3 --max --seed 7 ");
  EXPECT_EQ(ReportHeader::settings("hmmsearch", parsed->changed()),
            "# output directed to file:         f\n"
            "# sequence reporting threshold:    E-value <= 3\n"
            "# Max sensitivity mode:            on [all heuristic filters off]\n"
            "# random number seed set to:       7\n");
  EXPECT_EQ(ReportHeader::settings("hmmsearch", parse({"-E", "10.0"})->changed()), "");
  EXPECT_EQ(ReportHeader::settings("hmmsearch", parse({"-E", "10"})->changed()),
            "# sequence reporting threshold:    E-value <= 10\n");
}

TEST(Options, HelpNamesEveryListedOption) {
  const std::string help = option_help(search_option_table());
  for (const OptionSpec& option : search_option_table()) {
    if (option.group.empty()) continue;
    EXPECT_NE(help.find("  " + std::string(option.name)), std::string::npos) << option.name;
    EXPECT_FALSE(option.help.empty()) << option.name;
  }
}

}  // namespace
}  // namespace hmmjit::tools
