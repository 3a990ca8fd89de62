// Features of targets on made-up results: coordinates, and overlapping domains.
#include "report/features.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <sstream>
#include <tuple>

#include "tests/support/folder.hpp"
#include "tests/unit/report/made_up.hpp"

namespace hmmjit {
namespace {

// A model with one domain on the target "t", residues `from` to `to`.
ModelResult make_result(const std::string& model, int from, int to, float bits) {
  Hit hit = test_support::make_hit("t", 0, bits);
  hit.length = 100;
  domain::Domain& domain = hit.score.domains.front();
  domain.ienv = domain.iali = from, domain.jenv = domain.jali = to;
  ModelResult result = test_support::make_result({hit});
  result.model = {model, std::nullopt, std::nullopt, 8};
  return result;
}

// The BED file of a search.
std::string bed_of(std::vector<ModelResult> results, OverlapRule rule) {
  const test_support::TemporaryFolder folder;
  FeaturePaths paths;
  paths.bed = folder.file("t.bed");
  const auto writer = FeatureWriter::create(paths, std::move(rule));
  EXPECT_TRUE(writer);
  for (std::size_t i = 0; i < results.size(); ++i) {
    results[i].index = i;
    EXPECT_TRUE((*writer)->add(results[i]));
  }
  EXPECT_TRUE((*writer)->write(nullptr, amino_alphabet()));
  for (OutputFile* file : (*writer)->files()) EXPECT_TRUE(file->commit());
  return test_support::read_file(paths.bed);
}

// BED ranges are zero-based and half-open.
TEST(Features, BedCountsFromZero) {
  EXPECT_EQ(bed_of({make_result("model", 1, 20, 50.0f)}, {}),
            "t\t0\t20\tmodel\t50\t.\t7.71e-22\t50.0\n");  // exp(-50) * 4 targets
}

// docs/outputs.md: two models compete if they share half of the shorter envelope.
TEST(Features, HalfOfTheShorterEnvelopeIsAnOverlap) {
  const ModelResult good = make_result("good", 1, 40, 50.0f);
  const auto rows = [&](int from, int to) {
    const std::string bed = bed_of({make_result("poor", from, to, 30.0f), good}, {true, {}});
    EXPECT_NE(bed.find("good"), bed.npos);
    return std::count(bed.begin(), bed.end(), '\n');
  };
  EXPECT_EQ(rows(30, 50), 1);  // 11 of 21 residues
  EXPECT_EQ(rows(31, 50), 1);  // 10 of 20
  EXPECT_EQ(rows(31, 51), 2);  // 10 of 21
  EXPECT_EQ(rows(41, 60), 2);  // none
}

// Every feature compared with every better one that is kept.
TEST(Features, ManyOverlapsAreResolvedAsOneByOne) {
  std::mt19937 random(3);
  const auto at_most = [&](unsigned most) { return static_cast<int>(random() % (most + 1)); };
  std::vector<ModelResult> results;
  struct Envelope {
    int from, to, bits;
  };
  std::vector<Envelope> kept;
  for (int n = 0; n < 600; ++n) {
    const int from = 1 + at_most(4000), to = from + at_most(n % 50 == 0 ? 900 : 40);
    const int bits = 1000 - n;
    results.push_back(make_result("m" + std::to_string(n), from, to, static_cast<float>(bits)));
    const bool beaten = std::ranges::any_of(kept, [&](const Envelope& k) {
      return 2 * (std::min(k.to, to) - std::max(k.from, from) + 1) >=
             std::min(k.to - k.from, to - from) + 1;
    });
    if (!beaten) kept.push_back({from, to, bits});
  }
  std::ranges::sort(kept, {}, [](const Envelope& k) { return std::tuple(k.from, k.to, -k.bits); });
  std::string wanted;
  for (const Envelope& k : kept)
    wanted += "t\t" + std::to_string(k.from - 1) + "\t" + std::to_string(k.to) + "\tm" +
              std::to_string(1000 - k.bits) + "\n";
  std::istringstream rows(bed_of(std::move(results), {true, {}}));
  std::string found;
  for (std::string line; std::getline(rows, line);) {
    std::size_t end = 0;
    for (int field = 0; field < 4; ++field) end = line.find('\t', end + (field > 0));
    found += line.substr(0, end) + "\n";
  }
  EXPECT_EQ(found, wanted);
  EXPECT_GT(kept.size(), 100u);
  EXPECT_LT(kept.size(), 500u);
}

}  // namespace
}  // namespace hmmjit
