#include "io/hmm_file.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <ranges>

#include "io/c_numbers.hpp"
#include "tests/support/command.hpp"
#include "tests/support/shared_data.hpp"
#include "tests/unit/io/io_support.hpp"

namespace hmmjit::io_test {

using ::testing::HasSubstr;

template <typename Floats>
bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

::testing::AssertionResult same_model(const Hmm& a, const Hmm& b, bool calibration) {
  auto differ = [&](const char* what) {
    return ::testing::AssertionFailure() << a.name << " and " << b.name << " differ in " << what;
  };
  if (a.name != b.name) return differ("name");
  if (a.accession != b.accession) return differ("accession");
  if (a.description != b.description) return differ("description");
  if (a.M != b.M || a.alphabet != b.alphabet) return differ("size or alphabet");
  if (a.max_length != b.max_length) return differ("maximum length");
  if (!same_bits(a.match, b.match)) return differ("match emissions");
  if (!same_bits(a.insert, b.insert)) return differ("insert emissions");
  if (!same_bits(a.transition, b.transition)) return differ("transitions");
  if (!same_bits(a.compo, b.compo)) return differ("composition");
  if (a.consensus != b.consensus) return differ("consensus");
  if (a.rf != b.rf || a.mm != b.mm || a.cs != b.cs) return differ("annotation");
  // HMMER does not set the first element, which no node has.
  if (!std::ranges::equal(a.map | std::views::drop(1), b.map | std::views::drop(1)))
    return differ("alignment columns");
  auto cutoff = [](const std::optional<Cutoff>& x) {
    return x ? fmt::format("{} {}", x->sequence, x->domain) : "none";
  };
  if (cutoff(a.ga) != cutoff(b.ga) || cutoff(a.tc) != cutoff(b.tc) ||
      cutoff(a.nc) != cutoff(b.nc)) {
    return differ("cutoffs");
  }
  static_assert(sizeof(Calibration) == 6 * sizeof(float));
  if (calibration && std::memcmp(&a.calibration, &b.calibration, sizeof(Calibration)) != 0) {
    return differ("calibration");
  }
  return ::testing::AssertionSuccess();
}

namespace {

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

// A model of one node; `header` lines are inserted after ALPH.
std::string tiny_model(const std::string& version, const std::string& header = {},
                       const std::string& first_emission = "1.00000") {
  std::string emissions = "  " + first_emission;
  for (int i = 1; i < 20; ++i) emissions += " 3.00000";
  std::string columns = version == "a" || version == "b" || version == "c" || version == "d"
                            ? " 1 - -"
                        : version == "e" ? " 1 a - -"
                                         : " 1 a - - -";
  return "HMMER3/" + version + " [test]\nNAME tiny\nLENG 1\nALPH amino\n" + header +
         "HMM A C\n m->m\n" + emissions + "\n 0.1 3 3 0.1 3 0 *\n 1" + emissions + columns + "\n" +
         emissions + "\n 0.1 3 * 0.1 3 0 *\n//\n";
}

std::optional<std::size_t> count_of(const std::string& text) {
  const auto count = HmmReader::open(*open_memory_source("test", text))->count();
  return count ? std::optional(*count) : std::nullopt;
}

TEST(CNumbers, AtofEqualsTheLibraryOnAnyToken) {
  std::mt19937_64 random(20260101);
  const std::string_view alphabet = "0123456789.+-eExXnaifp* \t";
  std::vector<std::string> tokens = {"",     "-",   "+1.5",  ".",   ".5",    "5.",    "-0.0",
                                     "1e5",  "inf", "-inf",  "nan", "0x1p3", "1e999", "1e-999",
                                     "0.5x", "abc", "1.2.3", "  7", "00012", "2,5",   "1_0"};
  for (const char* digits : {"0.1234567890123456789", "999999999999999", "9007199254740993"})
    tokens.emplace_back(digits);
  for (int i = 0; i < 200000; ++i) {
    std::string token;
    if (i % 2 == 0) {
      token = fmt::format("{}.{:0{}}", random() % 40, random() % 1000000000, 1 + random() % 12);
    } else {
      std::size_t length = random() % 12;
      for (std::size_t j = 0; j < length; ++j) token += alphabet[random() % alphabet.size()];
    }
    tokens.push_back(token);
  }
  for (const std::string& token : tokens) {
    double expected = std::strtod(token.c_str(), nullptr);
    double got = c_atof(token);
    ASSERT_EQ(std::bit_cast<std::uint64_t>(got), std::bit_cast<std::uint64_t>(expected)) << token;
  }
}

TEST(CNumbers, AtoiTakesThePrefix) {
  EXPECT_EQ(c_atoi("71"), 71);
  EXPECT_EQ(c_atoi(" +71abc"), 71);
  EXPECT_EQ(c_atoi("-12"), -12);
  EXPECT_EQ(c_atoi("abc"), 0);
  EXPECT_EQ(c_atoi(""), 0);
  EXPECT_EQ(c_atoi("99999999999999999999"), 2147483647);
}

// This conversion determines all scores: round the decimal text to float, then apply expf.
TEST(HmmFile, ProbabilitiesAreTheSinglePrecisionExponential) {
  std::mt19937_64 random(7);
  std::vector<std::string> tokens = {"0.00000", "12",   "3",      "*",     "-1.5",        "+2.0",
                                     "1e-3",    "bad",  "inf",    "0x1p1", "123456",      ".5",
                                     "5.",      "*1.0", "1000.5", "2.0x",  "12345.678901"};
  for (int i = 0; i < 3000; ++i) {
    tokens.push_back(fmt::format("{}.{:05}", random() % 15, random() % 100000));
  }
  for (const std::string& token : tokens) {
    ModelsResult got = read_models_text(tiny_model("f", {}, token));
    ASSERT_EQ(got.error, "") << token;
    float expected =
        token[0] == '*' ? 0.0f : ::expf(static_cast<float>(-std::strtod(token.c_str(), nullptr)));
    float p = got.models.at(0).match[20];
    ASSERT_EQ(bits(p), bits(expected)) << token;
  }
}

TEST(HmmFile, HeaderFieldsAreKept) {
  ModelsResult got = read_models_text(
      tiny_model("f",
                 "ACC   PF1.2\nDESC  a text # with a hash  \nGA 25.1 20.5;\nTC 1 2\nNC -3 4\n"
                 "STATS LOCAL MSV -9.5 0.7\nSTATS LOCAL VITERBI -10 0.71\n"
                 "STATS local forward -4 0.72\nXYZ unknown\nRF No\n"));
  ASSERT_EQ(got.error, "");
  const Hmm& hmm = got.models.at(0);
  EXPECT_EQ(hmm.name, "tiny");
  EXPECT_EQ(hmm.accession, "PF1.2");
  EXPECT_EQ(hmm.description, "a text # with a hash");
  EXPECT_EQ(hmm.ga->sequence, 25.1f);
  EXPECT_EQ(hmm.ga->domain, 20.5f);
  EXPECT_EQ(hmm.nc->sequence, -3.0f);
  EXPECT_EQ(hmm.calibration.viterbi_mu, -10.0f);
  EXPECT_EQ(hmm.calibration.forward_lambda, 0.72f);
  EXPECT_EQ(hmm.compo[0], 0.0f);
}

TEST(HmmFile, ConsensusIsComputedWhereTheFileHasNone) {
  for (const char* version : {"a", "b", "c", "d", "e", "f"}) {
    // 3/e and 3/f have the column, but "CONS no" disables it.
    ModelsResult got = read_models_text(tiny_model(version));
    ASSERT_EQ(got.error, "");
    EXPECT_EQ(got.models.at(0).consensus, "a");
    got = read_models_text(tiny_model(version, {}, "0.10000"));
    EXPECT_EQ(got.models.at(0).consensus, "A");
  }
  ModelsResult got = read_models_text(tiny_model("f", "CONS yes\n", "0.10000"));
  EXPECT_EQ(got.models.at(0).consensus, "a");
}

TEST(HmmFile, AlphabetsMustAgree) {
  std::string dna =
      "HMMER3/f\nNAME nuc\nLENG 1\nMAXL 17\nALPH DNA\nHMM\n m->m\n 1 1 1 1\n 1 1 1 1 1 1 1\n"
      " 1 1 1 1 1 1 - - - -\n 1 1 1 1\n 1 1 1 1 1 1 1\n//\n";
  ModelsResult got = read_models_text(tiny_model("f") + dna);
  EXPECT_EQ(got.models.size(), 1u);
  EXPECT_THAT(got.error, HasSubstr("model nuc is DNA, but the models before it are amino"));
  got = read_models_text(dna);
  ASSERT_EQ(got.error, "");
  EXPECT_EQ(got.models.at(0).alphabet, &dna_alphabet());
  EXPECT_EQ(got.models.at(0).match.size(), 8u);
  EXPECT_EQ(got.models.at(0).max_length, 17);
}

TEST(HmmFile, VersionsMustAgree) {
  ModelsResult got = read_models_text(tiny_model("f") + tiny_model("e"));
  EXPECT_EQ(got.models.size(), 1u);
  EXPECT_THAT(got.error, HasSubstr("a HMMER3/e model follows models of another format version"));
  if (!test_support::has_program("hmmconvert")) GTEST_SKIP() << "hmmconvert is not installed";
  TemporaryFolder folder;
  const auto binary = test_support::output_of(
      "hmmconvert -b '" + folder.write("tiny.hmm", tiny_model("f")).string() + "'");
  ASSERT_TRUE(binary);
  EXPECT_EQ(read_models_text(*binary + *binary).models.size(), 2u);
  std::string older = *binary;
  --older[0];  // the magic number of 3/d
  got = read_models_text(*binary + older);
  EXPECT_EQ(got.models.size(), 1u);
  EXPECT_THAT(got.error, HasSubstr("no model of the same format version"));
}

TEST(HmmFile, CutsAtEveryByteAreErrorsOrWholeModels) {
  std::string model = tiny_model("f", "ACC x\n");
  for (std::size_t cut = 0; cut < model.size(); ++cut) {
    ModelsResult got = read_models_text(model.substr(0, cut));
    bool whole = cut + 1 == model.size();  // only the last line end is missing
    EXPECT_EQ(got.error.empty(), whole) << "cut at " << cut;
  }
}

TEST(HmmFile, MessagesAreOneLineWithoutControlCharacters) {
  ModelsResult got = read_models_text("HMMER3/f\nNAME \x1b[31mx\nLENG zero\n");
  EXPECT_THAT(got.error, HasSubstr("model ?[31mx: LENG must be"));
  got = read_models_text("# STOCKHOLM 1.0\na ACDE\n//\n");
  EXPECT_THAT(got.error, HasSubstr("format tag \"# STOCKHOLM\""));
}

TEST(HmmFile, LinesHaveALimit) {
  const std::string fits(kLongestModelLine - 6, 'd');
  const ModelsResult kept = read_models_text(tiny_model("f", "DESC  " + fits + "\n"));
  ASSERT_EQ(kept.models.size(), 1u) << kept.error;
  EXPECT_EQ(kept.models[0].description, fits);
  for (const std::string& header : {"DESC  " + fits + "d\n", "# " + fits + "ddddd\n"}) {
    const ModelsResult refused = read_models_text(tiny_model("f", header));
    EXPECT_TRUE(refused.models.empty());
    EXPECT_EQ(refused.code, ErrorCode::kInput);
    EXPECT_THAT(refused.error, HasSubstr("a line of more than 4194304 bytes"));
    EXPECT_THAT(refused.error, HasSubstr("text:"));
  }
}

TEST(HmmFile, ChunkSizeDoesNotMatter) {
  std::string text = tiny_model("f") + "\n# comment\n" + tiny_model("f", "DESC second\n");
  ModelsResult whole = read_models_text(text);
  ASSERT_EQ(whole.models.size(), 2u);
  for (std::size_t chunk : {1, 2, 3, 7, 64, 1000}) {
    ModelsResult got = read_models_text(text, chunk);
    ASSERT_EQ(got.models.size(), 2u);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(same_model(got.models[i], whole.models[i]));
  }
}

TEST(HmmFile, ModelsAreCountedByTheirLastLines) {
  EXPECT_EQ(count_of("HMMER3/f\n// in a header\nHMM  A\n//\r\n# //\n\n/// //\n HMM\n // "), 2u);
}

TEST(HmmFile, PressedDatabaseIsPreferred) {
  TemporaryFolder folder;
  std::string path = folder.write("db.hmm", tiny_model("f"));
  folder.write("db.hmm.h3m", "not a model\n");
  ModelsResult got = read_models(HmmReader::open(path));
  EXPECT_THAT(got.error, HasSubstr("db.hmm.h3f is missing"));
  for (const char* suffix : {".h3f", ".h3p", ".h3i"}) {
    folder.write(std::string("db.hmm") + suffix, "x");
  }
  got = read_models(HmmReader::open(path));
  EXPECT_THAT(got.error, HasSubstr("db.hmm.h3i is no index")) << "of an unfinished hmmpress";
  folder.write("db.hmm.h3i", "\xd3\xd3\xc9\xb3");
  got = read_models(HmmReader::open(path));
  EXPECT_THAT(got.error, HasSubstr("db.hmm.h3m:1: format tag \"not\""));
}

TEST(HmmFile, MissingFileIsNamed) {
  ModelsResult got = read_models(HmmReader::open("/nonexistent/x.hmm"));
  EXPECT_THAT(got.error, HasSubstr("/nonexistent/x.hmm: cannot be opened: No such file"));
  EXPECT_EQ(got.code, ErrorCode::kInput);
}

// MAXL of nucleotide models, as hmmbuild computed it before it rounded their probabilities.
TEST(HmmFile, LongestHitsOfNucleotideModels) {
  HMMJIT_SHARED_OR_SKIP(shared);
  int models = 0;
  for (const char* file : {"sine", "MADE1", "lam40", "cos12"}) {
    const ModelsResult got =
        read_models(HmmReader::open(shared / "data/dna/hmm" / (std::string(file) + ".hmm.gz")));
    ASSERT_EQ(got.error, "");
    for (const Hmm& hmm : got.models) {
      if (!hmm.max_length) continue;
      ++models;
      EXPECT_EQ(max_length(hmm, 1e-7), *hmm.max_length) << hmm.name;
    }
  }
  EXPECT_EQ(models, 47);
}

// hmmconvert reads a model with HMMER's code and writes its floats: reading the text must give the
// same bits as reading that binary.
class AgainstHmmconvert : public ::testing::TestWithParam<const char*> {};

TEST_P(AgainstHmmconvert, BinaryHoldsTheSameBits) {
  HMMJIT_SHARED_OR_SKIP(shared);
  if (!test_support::has_program("hmmconvert")) GTEST_SKIP() << "hmmconvert is not installed";
  auto path = shared / "data" / GetParam();
  auto binary = test_support::output_of("hmmconvert -b " + path.string());
  ASSERT_TRUE(binary);
  ModelsResult ours = read_models(HmmReader::open(path));
  ModelsResult theirs = read_models_text(*binary);
  ASSERT_EQ(ours.error, "");
  ASSERT_EQ(theirs.error, "");
  ASSERT_EQ(ours.models.size(), theirs.models.size());
  for (std::size_t i = 0; i < ours.models.size(); ++i) {
    // HMMER2 models are calibrated by hmmconvert, not by the reader.
    EXPECT_TRUE(same_model(ours.models[i], theirs.models[i], !ours.models[i].needs_calibration));
  }
  EXPECT_EQ(*HmmReader::open(path)->count(), ours.models.size());
  EXPECT_EQ(count_of(*binary), ours.models.size());
  const std::string cut = binary->substr(0, binary->size() - 1);
  EXPECT_EQ(read_models_text(cut).models.size(), ours.models.size() - 1);
  EXPECT_EQ(count_of(cut), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(
    Files, AgainstHmmconvert,
    ::testing::Values("edge/hmm_versions/fn3_3a.hmm", "edge/hmm_versions/fn3_3b.hmm",
                      "edge/hmm_versions/fn3_3c.hmm", "edge/hmm_versions/fn3_3d.hmm",
                      "edge/hmm_versions/fn3_3e.hmm", "edge/hmm_versions/fn3_3f.hmm",
                      "edge/hmm_versions/example_3b.hmm", "edge/hmm_versions/fn3_h2.hmm",
                      "edge/hmm_h2/example.hmm2", "edge/hmm_h2/RREFam.hmm2",
                      "edge/hmm_h2/Thioesterase.hmm2", "edge/hmm_bad/emission_text.hmm",
                      "edge/hmm_bad/emission_negative.hmm", "edge/hmm_bad/emission_all_star.hmm",
                      "edge/hmm_nucleotide/RF00001.hmm", "edge/hmm_nucleotide/MADE1.hmm",
                      "edge/hmm_odd/tabs.hmm", "edge/hmm_crlf/PF13419.hmm",
                      "hmm/lib/interproscan_pfam_small.hmm.gz"));

TEST(AgainstHmmconvert, TheDescriptionOfAVersion2ModelMayBeEmpty) {
  HMMJIT_SHARED_OR_SKIP(shared);
  if (!test_support::has_program("hmmconvert")) GTEST_SKIP() << "hmmconvert is not installed";
  auto text =
      test_support::output_of("hmmconvert -2 " + (shared / "data/hmm/hmmer/RRM_1.hmm").string() +
                              " | sed 's/^DESC.*/DESC/'");
  ASSERT_TRUE(text);
  ASSERT_NE(text->find("DESC\n"), text->npos);
  const ModelsResult got = read_models_text(*text);
  ASSERT_EQ(got.models.size(), 1u) << got.error;
  EXPECT_FALSE(got.models[0].description) << "HMMER's reports have no line for it";
}

}  // namespace
}  // namespace hmmjit::io_test
