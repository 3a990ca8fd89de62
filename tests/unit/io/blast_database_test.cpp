// Protein databases of BLAST. tests/scenario/blast_test.py reads databases of makeblastdb.
#include "io/blast_database.hpp"

#include <gmock/gmock.h>

#include "io_support.hpp"
#include "tests/support/blast_volume.hpp"

namespace hmmjit::io_test {
namespace {

using namespace test_support;
using testing::ElementsAre;
using testing::HasSubstr;
using F = SequenceFormat;

const std::string kResidues = "\x01\x02\x03\x16\x15\x18\x19\x1b\x1a";  // ABCYXU*JO

ReadResult read_volume(const std::array<std::string, 3>& files, std::uint64_t block_residues = 1000,
                       const Alphabet& alphabet = amino_alphabet()) {
  auto source = open_blast_volume("db", {files[0], files[1], files[2]}, alphabet);
  if (!source) return read_targets(std::unexpected(source.error()));
  return read_targets(SequenceReader::open(std::move(*source), {alphabet, F::kNcbi}),
                      block_residues, alphabet);
}

std::string general() {
  return ber_member(10, ber(0x30, ber_member(0, ber_string("BL_ORD_ID")) +
                                      ber_member(1, ber_member(0, ber_integer("\x07")))));
}

TEST(BlastDatabase, BothVersionsAndEveryLetter) {
  for (const std::uint32_t version : {4u, 5u}) {
    for (const bool open : {true, false}) {
      const auto files =
          blast_volume({{definition_line("seq1 some words", general(), open), kResidues},
                        {definition_line("seq2", general(), open), ""},
                        {definition_line("seq3", general(), open), ""}},
                       version);
      for (const std::uint64_t block : {1u, 1000u}) {
        const ReadResult got = read_volume(files, block);
        EXPECT_EQ(got.error, "");
        EXPECT_THAT(got.targets,
                    ElementsAre(Target{"seq1", "", "some words", "ABCYXU*JO"},
                                Target{"seq2", "", "", ""}, Target{"seq3", "", "", ""}));
      }
    }
  }
}

// Runs of ambiguous nucleotides may cross the bytes of four, and begin in one piece of the stream
// and end in another.
TEST(BlastDatabase, Nucleotides) {
  constexpr std::string_view kLetters = "-ACMGRSVTWYHKDBN";
  const std::string all = "ACGTMRSVWYHKDBN", repeated((3 << 20) - 2500, 'C');
  std::vector<std::string> residues{all, repeated + std::string(5000, 'N') + repeated};
  for (std::size_t length = 0; length < 9; ++length) residues.push_back(all.substr(0, length));
  std::vector<BlastRecord> records;
  std::vector<Target> wanted;
  for (const std::string& letters : residues) {
    std::string codes;
    for (const char c : letters) codes += static_cast<char>(kLetters.find(c));
    const std::string name = std::to_string(records.size());
    records.push_back({definition_line(name, general()), codes});
    wanted.push_back({name, "", "", letters});
  }
  using Kind = BlastResidues;
  for (const Kind kind : {Kind::kNucleotides, Kind::kNucleotidesWide}) {
    for (const std::uint32_t version : {4u, 5u}) {
      auto files = blast_volume(records, version, kind);
      const ReadResult got = read_volume(files, 1000, dna_alphabet());
      EXPECT_EQ(got.error, "");
      EXPECT_TRUE(got.targets == wanted);
      EXPECT_THAT(read_volume(files).error, HasSubstr("its index is not one of proteins"));
      EXPECT_THAT(read_volume(blast_volume(records, version), 1000, dna_alphabet()).error,
                  HasSubstr("its index is not one of nucleotides"));
    }
  }
  // Number of words, length and position of a run.
  const std::vector<BlastRecord> one{{definition_line("s", general()), std::string(5, '\x0f')}};
  for (const Kind kind : {Kind::kNucleotides, Kind::kNucleotidesWide}) {
    const auto files = blast_volume(one, 4, kind);
    const bool wide = kind == Kind::kNucleotidesWide;
    const std::array<std::pair<std::size_t, int>, 3> flips{
        {{6, wide ? 1 : 3}, {wide ? 8 : 7, 1}, {files[2].size() - 1, 1}}};
    for (const auto& [at, bit] : flips) {
      auto damaged = files;
      damaged[2][at] = static_cast<char>(damaged[2][at] ^ bit);
      EXPECT_THAT(read_volume(damaged, 1000, dna_alphabet()).error,
                  HasSubstr("record 0 lies outside the file"));
    }
  }
}

// hmmsearch's rule; the scenario test compares with hmmsearch itself.
TEST(BlastDatabase, NamesAccessionsDescriptions) {
  const std::string both = ber_member(7, text_identifier("AATM_RABIT", "P12345"));
  const std::string accession = ber_member(9, text_identifier("", "WP_000000001"));
  const std::string other = ber_member(4, text_identifier("", "AAA11111"));
  const std::string name = ber_member(6, text_identifier("S12345", ""));
  const std::string gi = ber_member(11, ber_integer("\x05"));
  const std::string local = ber_member(0, ber_member(1, ber_string("mine")));
  const std::string local_number =
      ber_member(0, ber_member(0, ber_integer(std::string_view("\x01\0", 2))));
  const std::string pdb =
      ber_member(14, ber(0x30, ber_member(0, ber_string("1ABC")) + ber_member(1, ber_integer("A")) +
                                   ber_member(2, ber_member(0, ber_string("yesterday")))));
  const std::string chain =
      ber_member(14, ber(0x30, ber_member(0, ber_string("1ABC")) + ber_member(1, ber_integer("A")) +
                                   ber_member(3, ber_string("AA"))));
  const std::string patent =
      ber_member(8, ber(0x30, ber_member(0, ber_integer("\x2a")) +
                                  ber_member(1, ber(0x30, ber_member(0, ber_string("US"))))));
  struct Case {
    std::string lines, name, accession, description;
  };
  const std::vector<Case> cases{
      {definition_line("t", gi + both), "AATM_RABIT", "P12345", "t"},
      {definition_line("t", accession), "WP_000000001", "", "t"},
      {definition_line("t", name), "S12345", "", "t"},
      {definition_line("t", local), "mine", "", "t"},
      {definition_line("t", local_number), "256", "", "t"},
      {definition_line("t", pdb), "1ABC", "", "t"},
      {definition_line("", general()), "gnl|BL_ORD_ID|7", "", ""},
      {definition_line("", ber_member(11, ber_integer("\x01\x02"))), "gi|258", "", ""},
      {definition_line("", ber_member(2, ber_integer("7"))), "bbm|55", "", ""},
      {definition_line("t", ber_member(1, ber_integer(std::string("\0\xc8", 2)))), "200", "", "t"},
      {definition_line("word more", general()), "word", "", "more"},
      {definition_line("t", chain), "1ABC_AA", "", "t"},
      {definition_line("t", patent), "42", "", "t"},
      {definition_line("", accession), "WP_000000001", "", ""},
      {definition_line("  two\twords ", gi), "gi|5", "", "two\twords "},
      // nr: one line for each of the identical sequences.
      {definition_line("a", accession) + definition_line("b", other), "WP_000000001", "", "b"},
      {definition_line("a", accession) + definition_line("b", both), "AATM_RABIT", "P12345", "b"},
      {definition_line("a", both) + definition_line("", other), "AATM_RABIT", "P12345", ""},
  };
  for (const Case& c : cases) {
    const ReadResult got = read_volume(blast_volume({{c.lines, "\x01"}}));
    if (c.name.empty()) {
      EXPECT_THAT(got.error, HasSubstr("without a name"));
      continue;
    }
    EXPECT_EQ(got.error, "");
    EXPECT_THAT(got.targets, ElementsAre(Target{c.name, c.accession, c.description, "A"}));
  }
}

TEST(BlastDatabase, DamageIsAnError) {
  const auto whole = blast_volume({{definition_line("seq1", general()), kResidues},
                                   {definition_line("seq2", general()), kResidues}});
  ASSERT_EQ(read_volume(whole).error, "");
  const auto expect = [&](std::array<std::string, 3> files, const std::string& words) {
    const ReadResult got = read_volume(files);
    EXPECT_THAT(got.error, HasSubstr(words));
    EXPECT_EQ(got.code, ErrorCode::kInput);
  };
  for (std::size_t length = 0; length < whole[0].size(); ++length)
    expect({whole[0].substr(0, length), whole[1], whole[2]}, "index ends early");
  for (std::size_t length = 0; length < whole[1].size(); ++length)
    expect({whole[0], whole[1].substr(0, length), whole[2]}, "record ");
  for (std::size_t length = 0; length < whole[2].size(); ++length)
    expect({whole[0], whole[1], whole[2].substr(0, length)}, "record ");
  auto files = whole;
  files[0][3] = 3;
  expect(files, "version 4 or 5");
  files = whole;
  files[0][7] = 0;
  expect(files, "not one of proteins");
  files = whole;
  files[2][2] = 28;
  expect(files, "no residue has this code");
  files = whole;
  files[2][2] = 0;
  expect(files, "illegal character -");
  files = whole;
  files[1][2] = 0x31;
  expect(files, "definition line of record 0 cannot be read");
}

TEST(BlastDatabase, FilesAliasesAndFolders) {
  TemporaryFolder folder;
  const auto write = [&](const std::string& name, const std::string& target) {
    const auto files = blast_volume({{definition_line(target, general()), kResidues}});
    folder.write(name + ".pin", files[0]);
    folder.write(name + ".phr", files[1]);
    return folder.write(name + ".psq", files[2]);
  };
  const std::string base = folder.path() / "all";
  write("all.00", "one");
  write("all 01", "two");
  folder.write("all.pal",
               "# comment\nTITLE all of it\nDBLIST all.00 \"all 01\" all.00\nNSEQ 2\nLENGTH 18\n");
  // With the format asserted, without, and with a file of the same name.
  for (const std::optional<F> format : {std::optional<F>(), std::optional<F>(F::kNcbi)}) {
    auto reader = SequenceReader::open(base, {amino_alphabet(), format});
    ASSERT_TRUE(reader) << reader.error().to_string();
    EXPECT_EQ(reader->format(), F::kNcbi);
    const std::uint64_t volume = std::filesystem::file_size(folder.file("all.00.phr")) +
                                 std::filesystem::file_size(folder.file("all.00.psq"));
    for (const std::uint64_t most : {1u, 2u, 3u}) {
      TargetBlock block;
      ASSERT_TRUE(*reader->read_block(block, 1000, most));
      ASSERT_EQ(block.size(), std::min<std::uint64_t>(most, 2));
      EXPECT_EQ(block[0].name, "one");
      EXPECT_EQ(block[block.size() - 1].name, most == 1 ? "one" : "two");
      EXPECT_EQ(reader->bytes_read(), block.size() * (volume - 1));
      ASSERT_TRUE(reader->source().rewindable() && reader->rewind());
    }
  }
  folder.write("all", ">fasta\nACD\n");
  EXPECT_EQ(read_targets(SequenceReader::open(base, {amino_alphabet()})).targets[0].name, "fasta");
  EXPECT_EQ(read_targets(SequenceReader::open(base, {amino_alphabet(), F::kNcbi})).targets[0].name,
            "one");

  ASSERT_EQ(::setenv("BLASTDB", folder.path().c_str(), 1), 0);
  EXPECT_EQ(find_sequence_file("all.00"), folder.file("all.00"));
  EXPECT_EQ(read_targets(SequenceReader::open("all.00", {amino_alphabet()})).targets.size(), 1u);
  ::unsetenv("BLASTDB");

  const auto refused = [&](const std::string& name, const std::string& words) {
    const ReadResult got =
        read_targets(SequenceReader::open(folder.path() / name, {amino_alphabet(), F::kNcbi}));
    EXPECT_THAT(got.error, HasSubstr(words));
    EXPECT_EQ(got.code, ErrorCode::kInput);
  };
  folder.write("part.pal", "DBLIST all.00\nGILIST some.gil\n");
  refused("part", "a part of the database only (GILIST)");
  folder.write("loop.pal", "DBLIST loop\n");
  refused("loop", "aliases name one another");
  folder.write("none.pal", "TITLE x\n");
  refused("none", "names no database");
  folder.write("gap.pal", "DBLIST all.00 all.07\n");
  refused("gap", "all.07");
  folder.write("dna.nin", "");
  refused("dna", "of nucleotides");
  refused("nothing", "neither .pin nor .pal");
  std::filesystem::remove(folder.path() / "all 01.phr");
  refused("all", "all 01.phr");
  EXPECT_THAT(read_targets(SequenceReader::open("-", {amino_alphabet(), F::kNcbi})).error,
              HasSubstr("no pipe delivers"));
  EXPECT_THAT(read_text(">x\nACD\n", F::kNcbi).error, HasSubstr("from its files only"));
  EXPECT_THAT(
      read_targets(SequenceReader::open(folder.path() / "all.00", {dna_alphabet(), F::kNcbi}))
          .error,
      HasSubstr("a BLAST database of proteins"));
}

}  // namespace
}  // namespace hmmjit::io_test
