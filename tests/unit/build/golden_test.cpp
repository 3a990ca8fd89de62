// The numbers of models to the last bit, as digests. HMMER 3.4 gives these numbers for these
// inputs.
#include <gtest/gtest.h>

#include "build/alignment_model.hpp"
#include "build/calibration.hpp"
#include "build/sequence_model.hpp"
#include "core/digest.hpp"
#include "io/alignment_file.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit {
namespace {

using build::AlignmentOptions;

std::string numbers(Hmm hmm, std::uint32_t seed = 42) {
  hmm.calibration = build::calibrate(hmm, {.seed = seed}).value();
  build::apply_mask(hmm);
  std::string bytes = hmm.consensus;
  const auto add = [&](const auto& values) {
    bytes.append(reinterpret_cast<const char*>(std::data(values)),
                 std::size(values) * sizeof *std::data(values));
  };
  add(hmm.match);
  add(hmm.insert);
  add(hmm.transition);
  add(hmm.compo);
  add(std::span(&hmm.calibration, 1));
  return bytes;
}

std::string digest(const std::string& bytes) { return digest_of(bytes).hex().substr(0, 16); }

TEST(GoldenModels, OfAlignments) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const auto folder = shared / "spec/builder/golden";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no golden models in " << folder;
  using Columns = AlignmentOptions::Columns;
  using Weights = AlignmentOptions::Weights;
  using Effective = AlignmentOptions::Effective;
  using Prior = AlignmentOptions::Prior;
  const std::tuple<const char*, AlignmentOptions, const char*> cases[] = {
      {"two", {}, "05d9784fccc95d10"},
      {"one", {}, "8c319cd64de9ed05"},
      {"odd", {}, "0dd273eac4e55a2c"},
      {"frag", {}, "541ca90566fd0581"},
      {"ident300", {}, "c2c79f72fa5b935a"},
      {"anno", {}, "90a7048b9d891cc9"},
      {"anno", {.columns = Columns::kReference}, "513ae46b2eb45f2a"},
      {"anno", {.columns = Columns::kReference, .weights = Weights::kGiven}, "0501858b328a7d10"},
      {"frag", {.effective = Effective::kClusters}, "2a209a02ee1400e1"},
      {"frag", {.effective = Effective::kEntropyPower}, "f83a99d17eb2102b"},
      {"frag", {.prior = Prior::kLaplace}, "e5ad3dce5672e03c"},
      {"frag", {.prior = Prior::kNone}, "017458773e566c60"},
      {"frag", {.weights = Weights::kTree}, "bf12c8cbd70cfe4a"},
      {"frag", {.weights = Weights::kClusters}, "afc93da4c1d18ce6"},
      {"frag", {.least_occupied = 0.9f, .most_insertions = 5}, "b8f33f12d03ab727"}};
  for (const auto& [name, options, wanted] : cases) {
    auto reader = AlignmentReader::open((folder / (std::string(name) + ".sto")).string(),
                                        {.alphabet = &amino_alphabet()});
    ASSERT_TRUE(reader) << reader.error().to_string();
    const auto built = build::build_from_alignment(*reader->next().value(), options);
    ASSERT_TRUE(built) << built.error().to_string();
    EXPECT_EQ(digest(numbers(built->hmm)), wanted) << name;
  }
}

TEST(GoldenModels, OfSequences) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const auto folder = shared / "spec/builder/golden";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no golden models in " << folder;
  const std::tuple<const char*, const char*, double, double, std::uint32_t, const char*> cases[] = {
      {"singles.fa", "BLOSUM62", 0.02, 0.4, 42, "88b3350190d3d391"},
      {"singles.fa", "PAM30", 0.02, 0.4, 42, "0fcd58bd83d5b95a"},
      {"singles.fa", "BLOSUM62", 0.1, 0.7, 7, "b46b15f1eafd9d10"},
      {"stars.fa", "BLOSUM62", 0.02, 0.4, 42, "088053e820c75216"}};
  for (const auto& [file, matrix, open, extend, seed, wanted] : cases) {
    const auto system = build::make_score_system(build::find_matrix(matrix).value(), open, extend);
    ASSERT_TRUE(system) << system.error().to_string();
    std::string all;
    for (const auto& sequence : test_support::read_sequences(folder / file))
      all += numbers(build::build_from_sequence(*system, "s", sequence.residues).hmm, seed);
    EXPECT_EQ(digest(all), wanted) << file << " " << matrix;
  }
}

}  // namespace
}  // namespace hmmjit
