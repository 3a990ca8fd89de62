// Compares every vector filter of every instruction set of this CPU with the scalar reference, bit
// for bit, on random and adversarial profiles and targets.
#include "cpu/filters.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/threads.hpp"
#include "cpu/kernels.hpp"
#include "hwy/targets.h"
#include "tests/support/random_profiles.hpp"

namespace hmmjit {
namespace {

using test_support::any_model_kind;
using test_support::any_target_kind;
using test_support::ModelKind;
using test_support::Random;
using test_support::TargetKind;

std::uint32_t bits(float v) { return std::bit_cast<std::uint32_t>(v); }

// A new seed in every run finds more than a fixed one; HMMJIT_SEED repeats a failure.
std::uint64_t base_seed() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("HMMJIT_SEED");
    const std::uint64_t value =
        given != nullptr
            ? std::strtoull(given, nullptr, 10)
            : static_cast<std::uint64_t>(::testing::UnitTest::GetInstance()->start_timestamp());
    std::printf("HMMJIT_SEED=%llu\n", static_cast<unsigned long long>(value));
    return value;
  }();
  return seed;
}

struct Outcome {
  reference::SsvResult ssv;
  float msv, msv_filter, viterbi, bias;
};

Outcome reference_outcome(const SearchModel& model, std::span<const Residue> target) {
  return {
      reference::ssv_filter(model.bytes, target), reference::msv_recurrence(model.bytes, target),
      reference::msv_filter(model.bytes, target), reference::viterbi_filter(model.words, target),
      reference::bias_filter(model.bias, target)};
}

struct Counts {
  int no_result = 0, ssv_overflow = 0, ssv_score = 0;
  int msv_overflow = 0, viterbi_overflow = 0, viterbi_none = 0, viterbi_score = 0;
  void add(const Outcome& o) {
    no_result += o.ssv.status == reference::SsvStatus::kNoResult;
    ssv_overflow += o.ssv.status == reference::SsvStatus::kOverflow;
    ssv_score += o.ssv.status == reference::SsvStatus::kScore;
    msv_overflow += std::isinf(o.msv);
    viterbi_overflow += std::isinf(o.viterbi) && o.viterbi > 0;
    viterbi_none += std::isinf(o.viterbi) && o.viterbi < 0;
    viterbi_score += std::isfinite(o.viterbi);
  }
};

// A model's name has its kind, length and seed.
std::string describe(const SearchModel& model, std::size_t L, TargetKind kind) {
  return model.hmm.name + " L " + std::to_string(L) + " target " + to_string(kind);
}

// The kernels of one instruction set, including those for vectors of other processors.
struct Tested {
  std::string target;
  cpu::VectorPorts ports;
};

std::vector<Tested> tested() {
  std::vector<Tested> all;
  for (const std::string_view name : cpu::available_targets()) {
    if (name == "SCALAR") continue;
    all.push_back({std::string(name), cpu::VectorPorts::kAlikeForAll});
    all.push_back({std::string(name), cpu::VectorPorts::kOneForMaxima});
  }
  return all;
}

// True if all filters agree; `what` names the case.
bool agree(const cpu::FilterTables& tables, cpu::FilterScratch& scratch,
           std::span<const Residue> target, const Outcome& expected, const std::string& what) {
  const reference::SsvResult ssv = tables.ssv(target, scratch);
  EXPECT_EQ(static_cast<int>(ssv.status), static_cast<int>(expected.ssv.status)) << what;
  EXPECT_EQ(bits(ssv.nats), bits(expected.ssv.nats)) << "SSV " << what;
  EXPECT_EQ(bits(tables.msv_recurrence(target, scratch)), bits(expected.msv)) << "MSV " << what;
  EXPECT_EQ(bits(tables.msv_filter(target, scratch)), bits(expected.msv_filter))
      << "MSV filter " << what;
  EXPECT_EQ(bits(tables.viterbi_filter(target, scratch)), bits(expected.viterbi))
      << "Viterbi " << what;
  EXPECT_EQ(bits(tables.bias_filter(target)), bits(expected.bias)) << "bias " << what;
  return !::testing::Test::HasFailure();
}

class CpuFilters : public ::testing::TestWithParam<Tested> {
 protected:
  static cpu::FilterTables tables_of(const SearchModel& model) {
    return cpu::FilterTables(model, GetParam().target, GetParam().ports);
  }
  // True if all filters agree on a random target.
  bool check(const cpu::FilterTables& tables, const SearchModel& model, std::uint64_t seed, int L,
             TargetKind kind) {
    const auto target = test_support::random_target(seed, L, kind, model.hmm);
    const Outcome expected = reference_outcome(model, target);
    counts_.add(expected);
    return agree(tables, scratch_, target, expected, describe(model, target.size(), kind));
  }
  cpu::FilterScratch scratch_;
  Counts counts_;  // of random targets
};

TEST_P(CpuFilters, EqualReferenceForEveryModelLength) {
  const std::uint64_t seed = base_seed();
  Random random(seed);
  for (int M = 1; M <= 300; ++M) {
    const auto kind = any_model_kind(random);
    const auto model = test_support::random_model(seed + M, M, kind);
    const cpu::FilterTables tables = tables_of(*model);
    for (const TargetKind target_kind : {TargetKind::kHomologous, TargetKind::kUniformCodes}) {
      ASSERT_TRUE(check(tables, *model, seed ^ M, random.integer(1, 120), target_kind));
    }
  }
}

TEST_P(CpuFilters, EqualReferenceForEveryKindOfModelAndTarget) {
  const std::uint64_t seed = base_seed() + 1;
  Random random(seed);
  for (const int M : {1, 2, 15, 16, 17, 48, 63, 64, 127, 200, 255, 256, 401}) {
    for (const ModelKind kind : test_support::kAllModelKinds) {
      const std::uint64_t model_seed = random.next();
      const auto model = test_support::random_model(model_seed, M, kind);
      const cpu::FilterTables tables = tables_of(*model);
      for (const TargetKind target_kind : test_support::kAllTargetKinds) {
        ASSERT_TRUE(check(tables, *model, model_seed + 1, random.integer(1, 400), target_kind));
      }
    }
  }
  // The cases must reach every branch.
  EXPECT_GT(counts_.no_result, 10);
  EXPECT_GT(counts_.ssv_score, 10);
  EXPECT_GT(counts_.msv_overflow, 5);
  EXPECT_GT(counts_.viterbi_overflow, 5);
  EXPECT_GT(counts_.viterbi_score, 10);
}

TEST_P(CpuFilters, EqualReferenceForArbitraryQuantisedProfiles) {
  const std::uint64_t seed = base_seed() + 2;
  Random random(seed);
  for (int repeat = 0; repeat < 150; ++repeat) {
    const std::uint64_t model_seed = random.next();
    const int M = random.chance(0.5) ? random.integer(1, 40) : random.integer(1, 500);
    SearchModel model = *test_support::random_model(model_seed, M);
    model.bytes = test_support::random_byte_profile(model_seed, M, amino_alphabet());
    model.words = test_support::random_word_profile(model_seed, M, amino_alphabet());
    const cpu::FilterTables tables = tables_of(model);
    for (const TargetKind kind : {TargetKind::kBackground, TargetKind::kUniformCodes}) {
      ASSERT_TRUE(check(tables, model, model_seed + 1, random.integer(1, 200), kind));
    }
  }
  EXPECT_GT(counts_.no_result, 5);
  EXPECT_GT(counts_.msv_overflow, 5);
  EXPECT_GT(counts_.viterbi_overflow, 5);
  EXPECT_GT(counts_.viterbi_score, 5);
}

// Gains on gap transitions and free paths, where shortcuts around delete states do not apply.
TEST_P(CpuFilters, EqualReferenceForHostileTransitions) {
  const std::uint64_t seed = base_seed() + 3;
  Random random(seed);
  for (int repeat = 0; repeat < 200; ++repeat) {
    const std::uint64_t model_seed = random.next();
    const int M = random.integer(1, 150);
    SearchModel model = *test_support::random_model(model_seed, M);
    WordProfile& words = model.words;
    words = test_support::random_word_profile(model_seed, M, amino_alphabet());
    const int gain = random.chance(0.5) ? 0 : random.integer(1, 3000);
    const double impossible = random.chance(0.5) ? 0.0 : 0.3;
    const int cheapest = random.chance(0.5) ? -300 : -20000;
    for (auto* v : {&words.md_out, &words.dd_out, &words.dm_in, &words.mi_out, &words.im_in}) {
      for (auto& word : *v) {
        word = static_cast<std::int16_t>(
            random.chance(impossible) ? -32768 : random.integer(cheapest, gain));
      }
    }
    for (auto& word : words.entry) {
      if (random.chance(impossible)) word = -32768;
    }
    // Transitions into the first node and out of the last, which no real profile has.
    words.mm_in[0] = words.im_in[0] = words.dm_in[0] = -32768;
    words.md_out[M - 1] = words.mi_out[M - 1] = words.ii_out[M - 1] = words.dd_out[M - 1] = -32768;
    const cpu::FilterTables tables = tables_of(model);
    const auto target = test_support::random_target(model_seed + 1, random.integer(1, 150),
                                                    TargetKind::kBackground, model.hmm);
    const float expected = reference::viterbi_filter(words, target);
    ASSERT_EQ(bits(tables.viterbi_filter(target, scratch_)), bits(expected))
        << describe(model, target.size(), TargetKind::kBackground);
  }
}

// The best cell and the bias fill a byte: 255 and above overflow, for any seed.
TEST_P(CpuFilters, MsvOverflowsFrom255On) {
  constexpr int kBias = 20, kRows = 4;
  SearchModel model = *test_support::random_model(1, 8);
  ByteProfile& bytes = model.bytes;
  bytes.bias = kBias;
  const std::vector<Residue> target(kRows, 0);
  const int gain = 255 - kBias - (bytes.base - bytes.tjb(kRows) - bytes.tbm);
  ASSERT_GT(gain, 1);
  ASSERT_LE(gain, kRows * kBias);
  for (const int missing : {0, 1}) {
    std::ranges::fill(bytes.cost, std::uint8_t{255});
    int left = gain - missing;
    for (std::size_t k = 0; left > 0; ++k) {
      const int step = std::min(left, kBias);
      bytes.cost[k] = static_cast<std::uint8_t>(kBias - step);
      left -= step;
    }
    const float expected = reference::msv_recurrence(bytes, target);
    EXPECT_EQ(std::isinf(expected), missing == 0);
    const cpu::FilterTables tables = tables_of(model);
    EXPECT_EQ(bits(tables.msv_recurrence(target, scratch_)), bits(expected)) << missing;
  }
}

// A path may begin at the floor, where no bound on its gain applies, and overflow from there.
TEST_P(CpuFilters, DeletesThatGainFromTheFloor) {
  constexpr int M = 150;
  SearchModel model = *test_support::random_model(1, M);
  WordProfile& words = model.words;
  std::ranges::fill(words.md_out, std::int16_t{0});
  std::ranges::fill(words.dd_out, std::int16_t{1000});
  std::ranges::fill(words.dm_in, std::int16_t{0});
  words.dm_in[0] = words.md_out[M - 1] = words.dd_out[M - 1] = -32768;
  std::fill_n(words.match.begin(), M, std::int16_t{-32768});  // of the first residue
  std::fill_n(words.match.begin() + M, M, std::int16_t{0});   // of the second
  const std::vector<Residue> target{0, 1};
  const float expected = reference::viterbi_filter(words, target);
  EXPECT_EQ(expected, std::numeric_limits<float>::infinity());
  const cpu::FilterTables tables = tables_of(model);
  EXPECT_EQ(bits(tables.viterbi_filter(target, scratch_)), bits(expected));
}

TEST_P(CpuFilters, EqualReferenceForLongModels) {
  const std::uint64_t seed = base_seed() + 4;
  Random random(seed);
  for (const int M : {193, 385, 512, 768, 1023, 1024, 1025, 1537, 2048, 2049, 3000}) {
    const auto kind = any_model_kind(random);
    const auto model = test_support::random_model(seed + M, M, kind);
    const cpu::FilterTables tables = tables_of(*model);
    // Long enough for segments that span several tiles.
    for (const TargetKind target_kind : {TargetKind::kHomologous, TargetKind::kTandem}) {
      ASSERT_TRUE(check(tables, *model, seed + 1, random.integer(M / 2, M + 500), target_kind));
    }
  }
}

// One short segment at every position of a model too long for the registers: its score must survive
// the transition between tiles, and it is the best of the target.
TEST_P(CpuFilters, EqualReferenceForSegmentsAcrossTiles) {
  const std::uint64_t seed = base_seed() + 7;
  Random random(seed);
  int scores = 0, segments = 0;
  for (const int M : {400, 800, 1500, 2600}) {
    const auto model = test_support::random_model(seed + M, M, ModelKind::kTypical);
    const cpu::FilterTables tables = tables_of(*model);
    const auto best_residue = [&](int j) {
      Residue best = 0;
      for (Residue x = 1; x < 20; ++x) {
        const auto& cost = model->bytes.cost;
        if (cost[x * M + j] < cost[best * M + j]) best = x;
      }
      return best;
    };
    for (int start = 0; start + 12 < M; start += random.integer(1, 8)) {
      const int length = random.integer(4, 9);
      std::vector<Residue> target(static_cast<std::size_t>(random.integer(0, 7)), Residue{27});
      for (int j = start; j < start + length; ++j) target.push_back(best_residue(j));
      target.resize(target.size() + random.integer(0, 3), Residue{27});
      const auto expected = reference::ssv_filter(model->bytes, target);
      scores += expected.status == reference::SsvStatus::kScore;
      ++segments;
      ASSERT_EQ(tables.ssv(target, scratch_), expected)
          << "seed " << seed << " M " << M << " start " << start << " length " << length;
    }
  }
  EXPECT_GT(scores, segments / 2);
}

// Models and targets of any size, on a logarithmic scale. HMMJIT_FILTER_CASES sets the number of
// cases of up to 3000 x 50,000 cells; the default is a few small cases.
TEST_P(CpuFilters, EqualReferenceForAnySize) {
  const std::uint64_t seed = base_seed() + 10;
  const char* given = std::getenv("HMMJIT_FILTER_CASES");
  const int cases = given != nullptr ? std::atoi(given) : 200;
  const double most_cells = given != nullptr ? 1e9 : 5e5;
  Random random(seed);
  const auto spread = [&](double most) {
    return std::max(1, static_cast<int>(std::exp(random.real() * std::log(most + 1))));
  };
  for (int repeat = 0; repeat < cases; ++repeat) {
    const std::uint64_t case_seed = random.next();
    const int M = spread(3000);
    const int L = spread(std::min(50000.0, most_cells / M));
    const auto kind = any_model_kind(random);
    const Alphabet& alphabet = random.chance(0.2) ? dna_alphabet() : amino_alphabet();
    SearchModel model = *test_support::random_model(case_seed, M, kind, alphabet);
    if (random.chance(0.3)) {
      model.bytes = test_support::random_byte_profile(case_seed, M, alphabet);
      model.words = test_support::random_word_profile(case_seed, M, alphabet);
    }
    const cpu::FilterTables tables = tables_of(model);
    const auto target_kind = any_target_kind(random);
    ASSERT_TRUE(check(tables, model, case_seed + 1, L, target_kind));
  }
}

// The largest sizes: 150 million cells for each filter. The scalar reference takes seconds for one,
// so all instruction sets are compared with the same outcomes, and the number of cases depends on
// the machine (at least one).
TEST(CpuFiltersOfEverySet, EqualReferenceAtTheLargestSizes) {
  constexpr int kM = 3000, kL = 50000;
  constexpr auto kEnough = std::chrono::seconds(8);
  const auto begun = std::chrono::steady_clock::now();
  Random random(base_seed() + 11);
  for (const TargetKind kind :
       {TargetKind::kBackground, TargetKind::kHomologous, TargetKind::kUniformCodes}) {
    if (std::chrono::steady_clock::now() - begun > kEnough) break;
    const std::uint64_t seed = random.next();
    const auto model = test_support::random_model(seed, kM, ModelKind::kTypical);
    const auto target = test_support::random_target(seed + 1, kL, kind, model->hmm);
    const Outcome expected = reference_outcome(*model, target);
    for (const Tested& set : tested()) {
      const cpu::FilterTables tables(*model, set.target, set.ports);
      cpu::FilterScratch scratch;
      ASSERT_TRUE(
          agree(tables, scratch, target, expected, set.target + " " + describe(*model, kL, kind)));
    }
  }
}

// Scans of long targets, with thresholds that few, many and all rows reach, and some beyond the
// bytes of the SSV filter.
TEST_P(CpuFilters, ScansEqualReference) {
  const std::uint64_t seed = base_seed() + 9;
  Random random(seed);
  std::size_t diagonals = 0, records = 0;
  for (const int M : {1, 2, 6, 16, 33, 77, 128, 300, 700}) {
    const auto kind = M % 2 == 1 ? ModelKind::kTypical : ModelKind::kDeleteRich;
    const auto model = test_support::random_model(seed + M, M, kind, dna_alphabet());
    const cpu::FilterTables tables = tables_of(*model);
    std::vector<std::vector<Residue>> targets;
    for (const TargetKind of_target : test_support::kAllTargetKinds)
      targets.push_back(test_support::random_target(
          random, {0, of_target == TargetKind::kHomologous ? 6000 : 1500}, of_target, model->hmm));
    // Single hits across the borders of chunks.
    auto& sparse = targets.front() =
        test_support::random_target(random, {100 * std::min(M, 128), 200 * std::min(M, 128)},
                                    test_support::kAllTargetKinds[0], model->hmm);
    for (std::size_t at = 16u * M; at + M < sparse.size(); at += 16u * M) {
      const std::size_t first = at - static_cast<std::size_t>(random.integer(0, M));
      for (int k = 0; k < M; ++k)
        sparse[first + k] =
            dna_alphabet().digit[static_cast<unsigned char>(model->hmm.consensus[k])];
    }
    const std::vector<std::span<const Residue>> views(targets.begin(), targets.end());
    for (int round = 0; round < 5; ++round) {
      const int begin = random.integer(0, 170);
      const reference::SsvScan scan{
          .threshold = round == 4 ? random.integer(0, 255) : begin + random.integer(20, 60),
          .begin = begin,
          .floor = begin - (round == 3 ? 20 : 0)};
      std::vector<cpu::FoundDiagonal> found;
      tables.ssv_scan(model->bytes, scan, views, scratch_, found);
      const int threshold = random.integer(9000, 16000) - (round == 4 ? 30000 : 0);
      const int move = model->words.move(random.integer(1, 5000));
      for (std::size_t n = 0; n < views.size(); ++n) {
        std::vector<reference::Diagonal> got;
        for (const auto& f : found)
          if (f.target == n) got.push_back(f.diagonal);
        const std::string what =
            describe(*model, views[n].size(), test_support::kAllTargetKinds[n]);
        ASSERT_EQ(got, reference::ssv_scan(model->bytes, scan, views[n])) << what;
        diagonals += got.size();
        tables.viterbi_scan(model->words, move, threshold, views[n], scratch_, got);
        ASSERT_EQ(got, reference::viterbi_scan(model->words, move, threshold, views[n])) << what;
        records += got.size();
      }
    }
  }
  EXPECT_GT(diagonals, 1000u);
  EXPECT_GT(records, 1000u);
}

// Diagonals of two hits, the second of which is reached in the last rows of a target, about where a
// byte overflows. These rows are a block, in which no later cell shows that there was a hit.
TEST_P(CpuFilters, ScansFindHitsWhereBytesOverflow) {
  const std::uint64_t seed = base_seed() + 13;
  Random random(seed);
  std::size_t diagonals = 0;
  for (int repeat = 0; repeat < 30; ++repeat) {
    const int M = random.integer(200, 500);
    const auto model =
        test_support::random_model(seed + repeat, M, ModelKind::kTypical, dna_alphabet());
    const ByteProfile& profile = model->bytes;
    const auto gain = [&](int x, int k) {
      return profile.bias - profile.cost[static_cast<std::size_t>(x * M + k)];
    };
    const int height = 127 - profile.bias - random.integer(0, 20), begin = 100 - profile.bias;
    const reference::SsvScan scan{.threshold = begin + height, .begin = begin, .floor = begin};
    for (int n = 0; n < 20; ++n) {
      auto target = test_support::random_target(random.next(), 1026 + n % 2,
                                                TargetKind::kBackground, model->hmm);
      std::size_t at = target.size();
      int k = M - random.integer(1, 20), score = 0;
      const auto prepend = [&](int sign) {
        --k, --at;
        for (Residue x = 0; x < 4; ++x)
          if (x == 0 || sign * gain(x, k) > sign * gain(target[at], k)) target[at] = x;
        score += gain(target[at], k);
      };
      const auto prepend_until = [&](int end) {
        while (score < end && k > 0) prepend(1);
      };
      prepend_until(height + random.integer(0, 2));
      for (int worst = 0; worst < 6; ++worst) prepend(-1);
      prepend_until(254 + random.integer(0, 2 * profile.bias));
      std::vector<cpu::FoundDiagonal> found;
      std::vector<reference::Diagonal> got;
      tables_of(*model).ssv_scan(profile, scan, {{target}}, scratch_, found);
      for (const auto& f : found) got.push_back(f.diagonal);
      ASSERT_EQ(got, reference::ssv_scan(profile, scan, target))
          << "seed " << seed << " " << repeat;
      diagonals += got.size();
    }
  }
  EXPECT_GT(diagonals, 1000u);
}

// Batches of all sizes and mixtures of lengths, including empty targets, for models with every
// number of vectors that has kernels for several targets and some that have none. Targets are
// surrounded by residues of others.
TEST_P(CpuFilters, SsvBatchEqualsReference) {
  const std::uint64_t seed = base_seed() + 12;
  Random random(seed);
  int scores = 0;
  for (int repeat = 0; repeat < 300; ++repeat) {
    const std::uint64_t model_seed = random.next();
    const int M = repeat < 280 ? 1 + 2 * repeat + random.integer(0, 1) : random.integer(560, 1700);
    SearchModel model = *test_support::random_model(model_seed, M, any_model_kind(random));
    if (random.chance(0.2)) {
      model.bytes = test_support::random_byte_profile(model_seed, M, amino_alphabet());
    }
    const cpu::FilterTables tables = tables_of(model);
    std::vector<Residue> residues;
    std::vector<std::size_t> ends;
    const int count = random.integer(0, 20);
    const int longest = random.chance(0.3) ? 3 : 150;
    for (int i = 0; i < count; ++i) {
      const auto kind = any_target_kind(random);
      const int L = random.integer(0, longest);
      if (L > 0) {
        const auto target = test_support::random_target(random.next(), L, kind, model.hmm);
        residues.insert(residues.end(), target.begin(), target.end());
      }
      ends.push_back(residues.size());
    }
    std::vector<std::span<const Residue>> targets;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::size_t begin = i == 0 ? 0 : ends[i - 1];
      targets.emplace_back(residues.data() + begin, ends[i] - begin);
    }
    std::vector<reference::SsvResult> results(targets.size(),
                                              {reference::SsvStatus::kOverflow, -7.0f});
    tables.ssv_batch(targets, results, scratch_);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const auto expected = reference::ssv_filter(model.bytes, targets[i]);
      scores += expected.status == reference::SsvStatus::kScore;
      ASSERT_EQ(results[i], expected)
          << "seed " << seed << " repeat " << repeat << " M " << M << " target " << i << " of "
          << targets.size() << " L " << targets[i].size();
    }
  }
  EXPECT_GT(scores, 100);
}

// Batches of all sizes and mixtures of lengths, with and without flush-to-zero.
TEST_P(CpuFilters, BiasBatchEqualsReference) {
  const std::uint64_t seed = base_seed() + 8;
  Random random(seed);
  for (int repeat = 0; repeat < 120; ++repeat) {
    const std::uint64_t model_seed = random.next();
    const int M = random.integer(1, 300);
    const auto kind = any_model_kind(random);
    SearchModel model = *test_support::random_model(model_seed, M, kind);
    // States that vanish, overflow or are NaN, which no model file gives.
    const bool hostile = repeat % 4 == 3;
    if (hostile) {
      constexpr float kValues[] = {0.0f,   -1.0f,
                                   1e-40f, 1e-30f,
                                   1e30f,  std::numeric_limits<float>::max(),
                                   1.0f,   std::numeric_limits<float>::infinity(),
                                   -0.0f,  std::numeric_limits<float>::quiet_NaN()};
      const auto value = [&] { return kValues[random.integer(0, std::size(kValues) - 1)]; };
      for (float& odds : model.bias.odds[1]) {
        if (random.chance(0.1)) odds = value();
      }
      if (random.chance(0.3)) model.bias.t10 = value();
      if (random.chance(0.3)) model.bias.t11 = value();
      if (random.chance(0.1)) model.bias.odds[0][random.integer(0, 19)] = value();
    }
    const cpu::FilterTables tables = tables_of(model);
    std::vector<std::vector<Residue>> targets(
        static_cast<std::size_t>(repeat < 70 ? repeat : random.integer(1, 200)));
    const int longest = random.chance(0.2) ? 3 : 250;
    for (auto& target : targets) {
      const int L = random.chance(0.02) ? 3000 : random.integer(0, longest);
      const auto target_kind = any_target_kind(random);
      if (L > 0) target = test_support::random_target(random.next(), L, target_kind, model.hmm);
    }
    const std::vector<std::span<const Residue>> spans(targets.begin(), targets.end());
    std::vector<float> scores(targets.size());
    const auto compare = [&](std::string_view mode) {
      std::fill(scores.begin(), scores.end(), -7.0f);
      tables.bias_filter_batch(spans, scores);
      for (std::size_t i = 0; i < targets.size(); ++i) {
        ASSERT_EQ(bits(scores[i]), bits(reference::bias_filter(model.bias, targets[i])))
            << "seed " << seed << " repeat " << repeat << (hostile ? " hostile" : "") << " target "
            << i << " of " << targets.size() << " L " << targets[i].size() << mode;
      }
    };
    ASSERT_NO_FATAL_FAILURE(compare(""));
    const FlushToZeroScope flush;
    ASSERT_NO_FATAL_FAILURE(compare(" flush-to-zero"));
  }
}

// The logarithm of the bias kernels against the C library's. HMMJIT_LOG_STRIDE=1 tests every
// positive float (a minute per instruction set).
TEST_P(CpuFilters, RoundedLogsEqualLibrary) {
  const cpu::BiasKernels* kernels = nullptr;
  for (const std::int64_t bit : {std::int64_t{HWY_AVX3}, std::int64_t{HWY_AVX2},
                                 std::int64_t{HWY_SSE4}, std::int64_t{HWY_NEON}}) {
    if (GetParam().target == hwy::TargetName(bit)) kernels = cpu::bias_kernels(bit);
  }
  ASSERT_NE(kernels, nullptr);
  std::vector<float> values, logs;
  std::size_t compared = 0;
  const auto compare = [&] {
    logs.resize(values.size());
    kernels->rounded_logs(values.data(), logs.data(), values.size());
    compared += values.size();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto expected = static_cast<float>(std::log(static_cast<double>(values[i])));
      if (bits(logs[i]) != bits(expected)) {
        ADD_FAILURE() << "log of float bits " << bits(values[i]) << ": " << bits(logs[i])
                      << ", library " << bits(expected);
        return;
      }
    }
    values.clear();
  };
  const auto add = [&](std::uint32_t pattern) {
    values.push_back(std::bit_cast<float>(pattern));
    if (values.size() == 4001) compare();
  };

  Random random(base_seed() + 9);
  const char* given = std::getenv("HMMJIT_LOG_STRIDE");
  const std::uint32_t stride =
      given != nullptr ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10)) : 397;
  ASSERT_GT(stride, 0U);
  const auto first = static_cast<std::uint32_t>(random.integer(0, static_cast<int>(stride) - 1));
  for (std::uint32_t pattern = first; pattern < 0x7f800000U && !HasFailure(); pattern += stride) {
    add(pattern);
  }
  // For these, the library's logarithm lies within one unit of a double of the midpoint between two
  // floats (found by trying all): only the library's result decides the rounding.
  for (const std::uint32_t pattern : {0x38dcbe38U, 0x3bf86ef0U, 0x3c413d3aU, 0x41178febU}) {
    for (int repeat = 0; repeat < 17; ++repeat) add(pattern);
    compare();
    add(pattern);
    compare();
  }
  // Around 1, the range of the bias filter; around zero and infinity; NaN; negative values.
  for (const std::uint32_t centre : {0x3f800000U, 0x3f3504f3U, 0x3fb504f3U, 0x40000000U,
                                     0x00800000U, 0x00010000U, 0x7f800000U, 0x80010000U}) {
    for (std::uint32_t i = 0; i < 0x20000U && !HasFailure(); ++i) add(centre - 0x10000U + i);
  }
  // Floats whose logarithm is close to the midpoint between two floats: for logarithms of large
  // magnitude, midpoints are far denser than the arguments, so search around each candidate.
  for (int i = 0; i < 100000 && !HasFailure(); ++i) {
    const auto y = static_cast<float>(174.0 * random.real() * random.real() - 87.0);
    const double middle =
        (static_cast<double>(y) + std::nextafter(y, std::numeric_limits<float>::infinity())) / 2;
    const std::uint32_t pattern = bits(static_cast<float>(std::exp(middle)));
    for (std::uint32_t j = 0; j < 9; ++j) add(pattern - 4 + j);
  }
  compare();
  EXPECT_GT(compared, std::size_t{0x7f800000U} / stride);
}

TEST(CpuFilterTables, RejectsUnknownTarget) {
  const auto model = test_support::random_model(1, 10);
  EXPECT_THROW(cpu::FilterTables(*model, "AVX9"), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(Targets, CpuFilters, ::testing::ValuesIn(tested()),
                         [](const auto& tested) {
                           const bool alike = tested.param.ports == cpu::VectorPorts::kAlikeForAll;
                           return tested.param.target + (alike ? "" : "OnePort");
                         });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CpuFilters);

}  // namespace
}  // namespace hmmjit
