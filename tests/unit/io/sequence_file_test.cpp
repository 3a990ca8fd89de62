#include "io/sequence_file.hpp"

#include <gmock/gmock.h>

#include <cstdlib>
#include <tuple>

#include "tests/support/command.hpp"
#include "tests/support/shared_data.hpp"
#include "tests/unit/io/io_support.hpp"

namespace hmmjit::io_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using F = SequenceFormat;

// The number, thousands separated or not, that ends where `after` begins.
std::uint64_t number_before(const std::string& line, const std::string& after) {
  std::size_t end = line.find(after);
  if (end == line.npos) return 0;
  std::size_t begin = line.find_last_not_of("0123456789,", end - 1) + 1;
  std::string digits = line.substr(begin, end - begin);
  std::erase(digits, ',');
  return digits.empty() ? 0 : std::stoull(digits);
}

// Beginnings of files of other kinds, truncated anywhere, are never read past their end.
TEST(ForeignFile, EveryBeginningIsLookedAt) {
  using namespace std::string_view_literals;
  std::string tar(263, '\0');
  tar.replace(0, 6, "a.file");
  tar.replace(257, 5, "ustar");
  for (const auto& [whole, words] : std::vector<std::pair<std::string, std::string>>{
           {"BZh91AY&SY", "bzip2"},
           {std::string("\xfd"
                        "7zXZ\0\0"sv),
            "xz"},
           {"\x04\x22\x4d\x18", "lz4"},
           {"PK\x03\x04", "ZIP"},
           {tar, "tar"},
           {"version https://git-lfs.github.com/spec/v1\n", "LFS"},
           {"\xef\xbb\xbf>x", "byte order mark"},
           {" <!DOCTYPE html>", "HTML"},
           {"HMMER3/f", "profile HMM"},
           {">x", "FASTA"}}) {
    SCOPED_TRACE(words);
    for (std::size_t size = 0; size < whole.size(); ++size) {
      const auto found = recognise_other_file(std::string_view(whole).substr(0, size));
      if (found) {
        EXPECT_THAT(found->what, HasSubstr(words)) << size;
      }
    }
    const auto found = recognise_other_file(whole);
    ASSERT_TRUE(found);
    EXPECT_THAT(found->what, HasSubstr(words));
  }
}

TEST(FormatNames, AreThoseOfTformat) {
  EXPECT_EQ(*parse_sequence_format("FASTA"), F::kFasta);
  EXPECT_EQ(*parse_sequence_format("ddbj"), F::kGenbank);
  EXPECT_EQ(*parse_sequence_format("hmmpgmd"), F::kHmmpgmd);
  EXPECT_EQ(*parse_sequence_format("uniprot"), F::kEmbl);
  EXPECT_EQ(*parse_sequence_format("clustallike"), F::kClustalLike);
  auto unknown = parse_sequence_format("foo");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kUsage);
  EXPECT_THAT(unknown.error().to_string(), HasSubstr("\"foo\" is not a sequence format; use one"));
  EXPECT_EQ(*parse_sequence_format("Pfam", "", FileContent::kAlignments), F::kPfam);
  EXPECT_FALSE(parse_sequence_format("fasta", "", FileContent::kAlignments));
  for (const char* refused : {"daemon", "fmindex"}) {
    auto format = parse_sequence_format(refused);
    ASSERT_FALSE(format);
    EXPECT_EQ(format.error().code, ErrorCode::kUsage);
    EXPECT_THAT(format.error().to_string(), HasSubstr("convert the database to FASTA"));
  }
}

TEST(Fasta, LinesThatEndInCarriageReturnsAreCounted) {
  for (const std::size_t chunk : {std::size_t{3}, std::size_t{1} << 20})
    EXPECT_THAT(read_text(">x\rAC\r>a\rA1C\r", F::kFasta, "text", chunk).error,
                HasSubstr("text:4: illegal character 1"));
}

// C strings end there: two targets would both be "a", or every output would contain a NUL.
TEST(Fasta, NulInAHeaderIsAnError) {
  using namespace std::string_literals;
  for (const std::string& text : {">x\nAC\n>a\0b words\nAC\n"s, ">x\nAC\n>a wo\0rds\nAC\n"s}) {
    for (const std::size_t chunk : {std::size_t{3}, std::size_t{1} << 20}) {
      ReadResult got = read_text(text, F::kFasta, "text", chunk);
      EXPECT_THAT(got.error, HasSubstr("text:3: NUL byte in the header of record a;"));
      EXPECT_EQ(got.targets.size(), 1u);
    }
  }
  EXPECT_THAT(read_text("ID   A\0B; 2 AA.\nSQ   x\n  AC\n//\n"s).error,
              HasSubstr("NUL byte in the header of record A;"));
}

ReadResult read_limited(const std::string& text, std::uint64_t longest, std::size_t chunk) {
  auto source = open_memory_source("text", text, chunk);
  // Three bytes are too few to recognise a format.
  const auto format = text.starts_with('>') ? SequenceFormat::kFasta : SequenceFormat::kEmbl;
  auto reader = SequenceReader::open(std::move(*source), {amino_alphabet(), format});
  if (!reader) return {{}, reader.error().to_string(), reader.error().code};
  reader->limit_targets(longest);
  return read_targets(std::move(reader));
}

TEST(Limits, ATargetThatDoesNotFitIsCountedAndNamed) {
  const std::string fasta = ">a\nACDEFGHIKL\n>b words\nACDEFG\nHIKLM\n";
  const std::string embl =
      "ID   a; 10 AA.\nSQ   x\n  ACDEFGHIKL\n//\nID   b; 11 AA.\nSQ   x\n  ACDEFG\n  HIKLM\n//\n";
  for (const std::string& text : {fasta, fasta + ">c\nAC\n", embl}) {
    for (const std::size_t chunk : {std::size_t{3}, std::size_t{1} << 20}) {
      const ReadResult got = read_limited(text, 10, chunk);
      ASSERT_EQ(got.targets.size(), 1u) << got.error;
      EXPECT_EQ(got.targets[0].residues, "ACDEFGHIKL");
      EXPECT_EQ(got.code, ErrorCode::kResources);
      EXPECT_THAT(got.error,
                  HasSubstr("sequence b has 11 residues, more than there is memory for"));
      EXPECT_EQ(read_limited(text, 11, chunk).error, "");
    }
  }
}

TEST(Limits, ADescriptionOfManyLinesIsBounded) {
  std::string text = "ID   a; 3 AA.\n";
  for (int n = 0; n < 17; ++n) text += "DE   " + std::string(1 << 20, 'x') + '\n';
  EXPECT_THAT(read_limited(text + "SQ   x\n  ACD\n//\n", 10, 1 << 20).error,
              HasSubstr("the description of a has more than"));
}

// One endless record, generated on the fly.
class EndlessRecord final : public ByteSource {
 public:
  Result<std::span<const char>> next() override {
    if (delivered_ == 0) std::ranges::copy(std::string_view(">endless words\n"), chunk_.begin());
    if (delivered_ == 1) std::ranges::fill(chunk_, 'A');
    ++delivered_;
    return std::span<const char>(chunk_);
  }
  Status rewind() override { return {}; }
  bool rewindable() const override { return true; }

 private:
  std::vector<char> chunk_ = std::vector<char>(1 << 20, 'A');
  std::uint64_t delivered_ = 0;
};

TEST(Limits, ATargetBeyondWhatAnyMemoryHoldsIsNamedAndNotKept) {
  auto reader = SequenceReader::open(std::make_unique<EndlessRecord>(),
                                     {amino_alphabet(), SequenceFormat::kFasta});
  ASSERT_TRUE(reader);
  reader->limit_targets(1 << 20);
  TargetBlock block;
  const auto more = reader->read_block(block, 1 << 20);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::kInput);
  EXPECT_THAT(more.error().to_string(),
              HasSubstr("sequence endless has more than 2147483644 residues"));
  EXPECT_LT(block.bytes(), 8u << 20);
}

TEST(Limits, HeaderLines) {
  const std::string fits(16 << 20, 'd');
  EXPECT_EQ(read_text(">a " + fits.substr(3) + "\nAC\n").error, "");
  for (const std::string& text : {">a " + fits + "\nAC\n", ">a " + fits}) {
    const ReadResult got = read_text(text, F::kFasta);
    EXPECT_EQ(got.code, ErrorCode::kInput);
    EXPECT_THAT(got.error,
                HasSubstr("text:1: the line that begins record a has more than 16777216 bytes"));
  }
  EXPECT_THAT(read_text("ID   a; 2 AA.\nDE   " + fits + "\nSQ   x\n  AC\n//\n").error,
              HasSubstr("text:2: a line of more than 16777216 bytes"));
}

TEST(Hmmpgmd, IsFastaUnderALineOfItsOwn) {
  const std::string text = "#3 2 0 > none of this counts\n>1 words\nACD\n>2\nEF\n";
  for (const char* before : {"", "\n \n\t"}) {
    for (const std::size_t chunk : {1, 7, 1 << 20}) {
      ReadResult got = read_text(before + text, F::kHmmpgmd, "text", chunk);
      EXPECT_EQ(got.error, "");
      EXPECT_THAT(got.targets,
                  ElementsAre(Target{"1", "", "words", "ACD"}, Target{"2", "", "", "EF"}));
    }
  }
  EXPECT_THAT(read_text(">1\nAC\n", F::kHmmpgmd).error, HasSubstr("begins with a line"));
  EXPECT_THAT(read_text(" \n", F::kHmmpgmd).error, HasSubstr("begins with a line"));
  EXPECT_THAT(read_text("#a\n#b\n>1\nAC\n", F::kHmmpgmd).error, HasSubstr("must start with >"));
  EXPECT_EQ(read_text("#a\n", F::kHmmpgmd).error, "");
  // Every pass reads that line again.
  auto source = open_memory_source("x", text);
  auto reader = SequenceReader::open(std::move(*source), {amino_alphabet(), F::kHmmpgmd});
  ASSERT_TRUE(reader);
  for (int pass = 0; pass < 3; ++pass) {
    TargetBlock block;
    ASSERT_TRUE(*reader->read_block(block, 1000));
    EXPECT_EQ(block.size(), 2u);
    ASSERT_TRUE(reader->rewind());
  }
}

// Each of the 256 bytes inside a sequence, at every offset of a vector.
TEST(Fasta, EveryByteIsAResidueWhiteSpaceOrAnError) {
  const Alphabet& amino = amino_alphabet();
  for (int c = 0; c < 256; ++c) {
    char byte = static_cast<char>(c);
    Residue code = amino.digit[static_cast<std::size_t>(c)];
    for (std::size_t before : {0, 1, 31, 63, 64, 100}) {
      std::string text = ">a\n" + std::string(before, 'L') + byte + std::string(70, 'M') + "\n";
      ReadResult got = read_text(text);
      SCOPED_TRACE(std::to_string(c) + " after " + std::to_string(before));
      std::string left(before, 'L'), right(70, 'M');
      if (byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n') {
        ASSERT_EQ(got.targets.at(0).residues, left + right);
      } else if (byte == '>') {
        ASSERT_THAT(got.targets, ElementsAre(Target{"a", "", "", left}, Target{right, "", "", ""}));
      } else if (code == kInvalidCode || byte == '-') {
        ASSERT_THAT(got.error, HasSubstr(c >= 0x80 ? "non-ASCII character" : "illegal character"));
        ASSERT_THAT(got.error, HasSubstr("text:2:"));
      } else {
        ASSERT_EQ(got.targets.at(0).residues, left + amino.symbols[code] + right);
      }
    }
  }
}

TEST(Fasta, BlocksEndAtTheLimits) {
  std::string text;
  for (int i = 0; i < 10; ++i)
    text += ">s" + std::to_string(i) + "\n" + std::string(100, 'A') + "\n";
  auto source = open_memory_source("x", text);
  auto reader = SequenceReader::open(std::move(*source), {amino_alphabet()});
  ASSERT_TRUE(reader);
  TargetBlock block;
  ASSERT_TRUE(*reader->read_block(block, 250));  // 300 residues are the first at or above 250
  EXPECT_EQ(block.size(), 3u);
  ASSERT_TRUE(*reader->read_block(block, 10000, 5));  // appended to: 5 in all
  EXPECT_EQ(block.size(), 5u);
  EXPECT_EQ(block.first_index(), 0u);
  TargetBlock next;
  ASSERT_TRUE(*reader->read_block(next, 10000));
  EXPECT_EQ(next.size(), 5u);
  EXPECT_EQ(next.first_index(), 5u);
  EXPECT_EQ(next[0].name, "s5");
  EXPECT_FALSE(*reader->read_block(next, 10000));
  EXPECT_EQ(reader->targets_read(), 10u);
  ASSERT_TRUE(reader->rewind());
  TargetBlock again;
  ASSERT_TRUE(*reader->read_block(again, 10000));
  EXPECT_EQ(again.size(), 10u);
}

TEST(Fasta, ErrorsCountLinesAcrossChunks) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += ">s\nACDEF\n";
  text += ">bad\nAC1\n";
  for (std::size_t chunk : {1, 7, 64, 1 << 20}) {
    ReadResult got = read_text(text, F::kFasta, "text", chunk);
    EXPECT_EQ(got.targets.size(), 100u);
    EXPECT_THAT(got.error, HasSubstr("text:202: illegal character 1"));
  }
}

TEST(FlatFiles, Embl) {
  std::string text =
      "ID   A_HUMAN   Reviewed; 6 AA.\nAC   P1; P2;\nAC   P3;\nDE   RecName: Full=X;  \n"
      "DE            Short=Y;\nSQ   SEQUENCE\n     ACDEFG HIK 9\n     lm*_\n//\n\n"
      "ID   B;\r\nSQ   x\r\n  AC\r\n//\r\n";
  ReadResult got = read_text(text);
  EXPECT_EQ(got.error, "");
  EXPECT_THAT(got.targets, ElementsAre(Target{"A_HUMAN", "P1", "RecName: Full=X;          Short=Y;",
                                              "ACDEFGHIKLM*-"},
                                       Target{"B", "", "", "AC"}));
  EXPECT_THAT(read_text(text.substr(0, 100)).error,
              HasSubstr("the file ends inside record A_HUMAN"));
  EXPECT_THAT(read_text("ID   A;\nSQ   x\nAC-D\n//\n").error,
              HasSubstr("text:3: illegal character - in amino sequence A"));
  EXPECT_THAT(read_text(text + "junk\n").error, HasSubstr("must start with an ID line"));
}

TEST(FlatFiles, Genbank) {
  std::string text =
      "LOCUS       AB 3 aa\nDEFINITION  line one\n            line two.\nACCESSION   Q1\n"
      "VERSION     Q1.2 GI:3\nORIGIN\n        1 acd\n//\ntrailer\n"
      "LOCUS       CD\nORIGIN\n        1 ef\n//\n";
  EXPECT_THAT(read_text(text).targets,
              ElementsAre(Target{"AB", "Q1.2", "line one", "ACD"}, Target{"CD", "", "", "EF"}));
  EXPECT_EQ(read_text("x\n" + text, std::nullopt, "file.gb").targets.size(), 2u);
  EXPECT_EQ(read_text("  Genetic Sequence Data Bank\n" + text).targets.size(), 2u);
}

TEST(Alignments, Stockholm) {
  std::string text =
      "# STOCKHOLM 1.0\n#=GF ID t\n#=GS b/1-3 DE  beta chain  of   it  \n#=GS a AC  P1234.5\n"
      "#=GS b/1-3 OS x\na      ACDE-.~_F\nb/1-3  aCde...*F\n#=GR a SS HHHHHHHHH\n"
      "#=GC SS_cons HHHHHHHHH\n\n\na      GG\nb/1-3  --\n#=GR a SS HH\n#=GC SS_cons HH\n//\n"
      "# STOCKHOLM 1.0\n\nx ACD\n//\n";
  Target b{"b/1-3", "", "beta chain  of   it  ", "ACDE*F"}, a{"a", "P1234.5", "", "ACDEFGG"};
  EXPECT_THAT(read_text(text).targets, ElementsAre(b, a, Target{"x", "", "", "ACD"}));
  // Weights are all or none in each alignment.
  EXPECT_EQ(read_text("# STOCKHOLM 1.0\n#=GS a WT 1\na AC\n//\n# STOCKHOLM 1.0\na AC\n//\n").error,
            "");
  EXPECT_THAT(read_text("# STOCKHOLM 1.0\n#=GS a WT 1\na AC\nb AC\n//\n").error,
              HasSubstr("text:4: row b has no weight"));
  // One target a block: rows wait in the reader.
  EXPECT_EQ(read_text(text, F::kStockholm, "text", 5, 1).targets.size(), 3u);
  EXPECT_THAT(read_text(text.substr(0, text.size() - 3)).error, HasSubstr("ends inside an align"));
  EXPECT_THAT(read_text("# STOCKHOLM 1.0\na AC\nb A\n//\n").error,
              HasSubstr("text:3: row b has 1 columns in this block, the line before it 2"));
  EXPECT_THAT(read_text("# STOCKHOLM 1.0\na AC\n#=GC RF x\n//\n").error,
              HasSubstr("text:3: #=GC RF has 1 columns in this block, the line before it 2"));
  EXPECT_THAT(read_text("# STOCKHOLM 1.0\na AC\n\na AC\n#=GC RF xx\n//\n").error,
              HasSubstr("#=GC RF was not expected here"));
  EXPECT_THAT(read_text("# STOCKHOLM 1.0\na AC\n#=GC RF xx\n#=GC RF xx\n//\n").error,
              HasSubstr("#=GC RF does not stand in every block once"));
  EXPECT_THAT(read_text("# STOCKHOLM 1.0\na A1\n//\n").error,
              HasSubstr("text:2:4: illegal character 1 in amino sequence a"));
  EXPECT_THAT(read_text("# STOCKHOLM 1.0\na AC\na AC\n//\n").error,
              HasSubstr("twice in one block"));
}

TEST(Alignments, AlignedFastaAndA2m) {
  EXPECT_THAT(
      read_text(">one x y \nACDEFGHIK-MN\n>two\nAC--GHI\nKLLMN\n", F::kAlignedFasta).targets,
      ElementsAre(Target{"one", "", "x y ", "ACDEFGHIKMN"}, Target{"two", "", "", "ACGHIKLLMN"}));
  EXPECT_THAT(read_text(">one\nACD\n>two\nA-\n", F::kAlignedFasta).error,
              HasSubstr("text:3: row two has 2 columns, row one has 3"));
  // Insertions are lower case; '.' may be left out.
  EXPECT_THAT(read_text(">a\nACDEfg\n>b\nAC-E..\n>c\nACOAE\n", F::kA2m).targets,
              ElementsAre(Target{"a", "", "", "ACDEFG"}, Target{"b", "", "", "ACE"},
                          Target{"c", "", "", "ACAE"}));
  EXPECT_THAT(read_text(">a\nACDE\n>b\nACD\n", F::kA2m).error,
              HasSubstr("text:3: row b has 3 consensus columns"));
}

TEST(Alignments, Clustal) {
  std::string blocks =
      "\n\none  ACDEFGH 7\ntwo  AC--GH- 4\n     **  **\n\n\none  IKM-N 11\ntwo  IKLLM 9\n      "
      "***\n"
      "\none -\ntwo N\n    *\n";
  Target one{"one", "", "", "ACDEFGHIKMN"}, two{"two", "", "", "ACGHIKLLMN"};
  for (const char* header :
       {"CLUSTAL W (1.83) multiple sequence alignment", "CLUSTAL format alignment by MAFFT",
        "MUSCLE (3.8) multiple sequence alignment"}) {
    ReadResult got = read_text(header + blocks);
    EXPECT_EQ(got.error, "");
    EXPECT_THAT(got.targets, ElementsAre(one, two));
  }
  EXPECT_THAT(read_text("CLUSTAL alignment\n\na AC\nb AC\n\na AC\n\n").error,
              HasSubstr("text:7: a block has 1 rows"));
  EXPECT_THAT(read_text("CLUSTAL W alignment\n\na AC\nb AC\n\nb AC\na AC\n").error,
              HasSubstr("row b was not expected here"));
}

TEST(Alignments, Phylip) {
  Target a{"seqA", "", "", "ACDEFGHIKL"}, b{"seq_B", "", "", "ACDEFGHIL"};
  std::string interleaved = " 2 10\nseqA      ACD EF\nseq B     ACD EF\n\nGHIKL\nGHI-L\n";
  std::string sequential = "2 10\nseqA      ACD\nEFGHIKL\nseq B     ACDEF\nGHI-L\n";
  EXPECT_THAT(read_text(interleaved).targets, ElementsAre(a, b));
  EXPECT_THAT(read_text(interleaved, F::kPhylip).targets, ElementsAre(a, b));
  EXPECT_THAT(read_text(sequential).targets, ElementsAre(a, b));
  EXPECT_THAT(read_text(sequential, F::kPhylipSequential).targets, ElementsAre(a, b));
  EXPECT_THAT(read_text("2 4\na_name_longer ACDE\nb AC-E\n").targets,
              ElementsAre(Target{"a_name_longer", "", "", "ACDE"}, Target{"b", "", "", "ACE"}));
  EXPECT_THAT(read_text(interleaved.substr(0, 45), F::kPhylip).error, HasSubstr("ends inside"));
}

// Alignments are also recognised in compressed data and streams.
TEST(Alignments, CompressedNeedNoFormatName) {
  TemporaryFolder folder;
  std::string text = "# STOCKHOLM 1.0\na AC-D\n//\n";
  for (auto [name, bytes] : {std::pair{"x.sto.gz", gzip(text)}, {"x.sto.zst", zstd(text)}}) {
    auto got = read_targets(SequenceReader::open(folder.write(name, bytes), {amino_alphabet()}));
    EXPECT_THAT(got.targets, ElementsAre(Target{"a", "", "", "ACD"}));
  }
}

TEST(SequenceFile, IsLookedForInBlastdb) {
  TemporaryFolder folder;
  folder.write("hmmjit_test_db", ">a\nACD\n");
  ::setenv("BLASTDB", ("/nonexistent::" + folder.path().string()).c_str(), 1);
  auto got = read_targets(SequenceReader::open("hmmjit_test_db", {amino_alphabet()}));
  ::unsetenv("BLASTDB");
  EXPECT_THAT(got.targets, ElementsAre(Target{"a", "", "", "ACD"}));
  got = read_targets(SequenceReader::open("hmmjit_test_db", {amino_alphabet()}));
  EXPECT_THAT(got.error, HasSubstr("hmmjit_test_db: cannot be opened"));
}

// They fill memory with their names; read_text() checks the size of blocks.
TEST(SequenceFile, RecordsWithoutResiduesFillBlocks) {
  for (const auto& [head, record, format] : {std::tuple("", ">a b\n", F::kFasta),
                                             {"", "ID   a;\nSQ   x\n//\n", F::kEmbl},
                                             {"", "LOCUS       a\nORIGIN\n//\n", F::kGenbank},
                                             {">a\nA\n", ">b\n-\n", F::kAlignedFasta}}) {
    std::string text = head;
    for (int n = 0; n < 20; ++n) text += record;
    EXPECT_GE(read_text(text, format, "text", 1 << 20, 100).targets.size(), 20u) << record;
  }
}

// hmmsearch's counts of targets and residues for each format.
TEST(SequenceFile, CountsEqualHmmsearch) {
  HMMJIT_SHARED_OR_SKIP(shared);
  if (!test_support::has_program("hmmsearch")) GTEST_SKIP() << "hmmsearch is not installed";
  const std::string model = (shared / "data/hmm/hmmer/globins4.hmm").string();
  for (const char* file :
       {"easel_formats/embl", "easel_formats/fasta", "easel_formats/fasta.bad.2",
        "easel_formats/fasta.odd.1", "easel_formats/genbank", "easel_formats/genbank.2",
        "easel_formats/stockholm.1", "easel_formats/uniprot", "seq_formats/20aa-alitest.sto",
        "seq_formats/globins4.sto", "seq_odd/cr_only.fasta", "seq_odd/degenerate_BJZXUO.fasta",
        "seq_odd/empty_sequences.fasta", "seq_odd/internal_star.fasta", "seq_odd/x_runs.fasta",
        "seq_odd/gz_two_members.fasta.gz", "seq_bad_real/biopython_flowers.pro.gz"}) {
    SCOPED_TRACE(file);
    auto path = shared / "data/edge" / file;
    auto out = test_support::output_of("hmmsearch --noali --cpu 0 " + model + " " + path.string());
    ASSERT_TRUE(out);
    ReadResult got = read_targets(SequenceReader::open(path, {amino_alphabet()}));
    std::uint64_t residues = 0;
    for (const Target& t : got.targets) residues += t.residues.size();
    // "Target sequences:   2  (497 residues searched)"
    std::string line = out->substr(out->find("Target sequences:"));
    EXPECT_EQ(got.targets.size(), number_before(line, "  ("));
    EXPECT_EQ(residues, number_before(line, " residues searched)"));
  }
}

}  // namespace
}  // namespace hmmjit::io_test
