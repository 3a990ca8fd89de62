// Viterbi kernels in lockstep against the scalar reference: every score and status on typical,
// adversarial and out-of-range models and targets.
#define HMMJIT_LOCKSTEP
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "common/gate_params.h"
#include "layout/packed_targets.hpp"
#include "layout/stages.hpp"
#include "lockstep/catalogue.hpp"
#include "lockstep/lockstep.hpp"
#include "lockstep/registry.hpp"
#include "lockstep/stage_tests.hpp"
#include "reference/filters.hpp"
#include "support/random_profiles.hpp"
#include "support/reference_forward.hpp"

namespace hmmjit {
namespace {

using hmmjit_device::WordFilterParams;
using hmmjit_lockstep::KernelInstance;

using hmmjit_lockstep::covered_by_entry;
using hmmjit_lockstep::shared_bytes_by_entry;
using hmmjit_lockstep::threads_by_entry;

/// The tables of a stage in host memory.
template <typename Stage>
std::vector<std::byte> tables_of(Stage& stage) {
  layout::TableBlock block;
  stage.place(block);
  std::vector<std::byte> out(block.bytes());
  block.copy_to(out.data());
  return out;
}
std::uintptr_t address(const std::vector<std::byte>& tables) {
  return reinterpret_cast<std::uintptr_t>(tables.data());
}

/// The inputs and outputs of one launch.
struct LaunchData {
  LaunchData(const KernelInstance& k, const WordProfile& profile,
             const layout::PackedTargets& packed, const std::vector<std::uint32_t>& listed)
      : kernel(k),
        targets(packed),
        stage(profile, packed.class_lengths),
        tables(tables_of(stage)),
        list(listed),
        results(listed.size(), 0xffffffffu),
        flagged(listed.size(), 0xffffffffu) {
    p = stage.parameters(address(tables));
    p.database = view(targets);
    p.list = {list.data(), nullptr, 1, static_cast<std::uint32_t>(list.size())};
    p.counters = &counters;
    p.results = results.data();
    p.flagged = flagged.data();
    p.tile_count = hmmjit_lockstep::tiles_by_entry(k, profile.M);
    // The size that the entry asks for; sanitizers find an access past it.
    const auto [per_warp, per_residue] = hmmjit_lockstep::scratch_by_entry(k);
    rows.assign(kBlocks * threads_by_entry(k) / 32 * per_warp / sizeof(std::int16_t),
                std::int16_t{4711});
    if (!rows.empty()) p.rows = rows.data();
    boundary.assign(packed.residues.size() * per_residue / sizeof(boundary.front()),
                    {0x12345678u, 0x9abcdef0u});
    if (!boundary.empty()) p.boundary = boundary.data();
  }
  static constexpr int kBlocks = 2;

  // Wider rows, with very good scores at the positions past the model's last.
  void fill_past_the_model() {
    const std::uint32_t from = p.stride, to = from + 64;
    const auto widen = [&](std::vector<std::int16_t>& wide, const std::int16_t* table,
                           std::size_t table_rows, std::int16_t score) {
      wide.assign(table_rows * to, score);
      for (std::size_t row = 0; row < table_rows; ++row)
        std::copy_n(table + row * from, p.model_length,
                    wide.begin() + static_cast<std::ptrdiff_t>(row * to));
    };
    widen(wide_emissions, p.emissions, hmmjit_device::kSymbolRows, hmmjit_device::kWordMostScore);
    widen(wide_transitions, p.transitions, hmmjit_device::kWordTransitions, 0);
    p.emissions = wide_emissions.data();
    p.transitions = wide_transitions.data();
    p.stride = to;
  }
  void launch() {
    for (p.tile = 0; p.tile < p.tile_count; ++p.tile) {
      counters.next = 0;
      hmmjit_lockstep::launch(kBlocks, threads_by_entry(kernel), shared_bytes_by_entry(kernel),
                              [&] { kernel.run(&p); });
    }
  }

  const KernelInstance& kernel;
  const layout::PackedTargets& targets;
  layout::WordStage stage;
  std::vector<std::byte> tables;
  std::vector<std::int16_t> wide_emissions, wide_transitions;
  std::vector<std::uint32_t> list, results, flagged;
  std::vector<hmmjit_device::WordBoundary> boundary;
  std::vector<std::int16_t> rows;
  hmmjit_device::LateCounters counters{};
  WordFilterParams p{};
};

struct Tally {
  int scores = 0, overflows = 0, flagged = 0;
};

/// The true best end score over all rows, by the reference's C.
void check_result(const WordProfile& profile, std::uint32_t got,
                  const std::vector<Residue>& residues, const std::string& what, Tally& tally) {
  const int L = static_cast<int>(residues.size());
  const float want = reference::viterbi_filter(profile, residues);
  const std::uint32_t status = got >> 16;
  if (status == hmmjit_device::kStatusOverflow) {
    ++tally.overflows;
    ASSERT_EQ(want, std::numeric_limits<float>::infinity()) << what << " L " << L;
  } else if (status == hmmjit_device::kStatusScore) {
    ++tally.scores;
    const int C = static_cast<std::int16_t>(got & 0xffffu);
    ASSERT_EQ(reference::viterbi_nats(profile, C, L), want) << what << " L " << L << " C " << C;
  } else {
    ASSERT_EQ(status, hmmjit_device::kStatusNoResult) << what;
    ++tally.flagged;
  }
}

layout::PackedTargets pack(const std::vector<std::vector<Residue>>& sequences) {
  const std::vector<std::span<const Residue>> views(sequences.begin(), sequences.end());
  return layout::pack_targets(views);
}

std::vector<std::uint32_t> everything(const layout::PackedTargets& targets) {
  std::vector<std::uint32_t> list(targets.size());
  std::iota(list.begin(), list.end(), 0u);
  return list;
}

/// Runs the kernel and compares every slot; `list`: the targets, in sorted order.
Tally check(const KernelInstance& kernel, const WordProfile& profile,
            const std::vector<std::vector<Residue>>& sequences, const std::string& what,
            bool partial) {
  const layout::PackedTargets targets = pack(sequences);
  std::vector<std::uint32_t> list = everything(targets);
  if (partial) std::erase_if(list, [](std::uint32_t t) { return t % 3 == 1; });
  LaunchData data(kernel, profile, targets, list);
  data.launch();
  Tally tally;
  std::vector<std::uint32_t> flagged;
  for (std::uint32_t s = 0; s < list.size(); ++s) {
    check_result(profile, data.results[s], sequences[targets.original[list[s]]],
                 kernel.name + " " + what, tally);
    if (data.results[s] >> 16 == hmmjit_device::kStatusNoResult) flagged.push_back(s);
    if (testing::Test::HasFatalFailure()) return tally;
  }
  std::vector<std::uint32_t> listed(data.flagged.begin(),
                                    data.flagged.begin() + data.counters.flagged);
  std::sort(listed.begin(), listed.end());
  EXPECT_EQ(listed, flagged) << kernel.name << ' ' << what;
  return tally;
}

class ViterbiLockstep : public testing::TestWithParam<std::size_t> {
 protected:
  const KernelInstance& kernel() const { return instance(GetParam()); }
  bool speculates() const { return hmmjit_lockstep::speculates_by_entry(kernel()); }
  std::vector<int> lengths() const { return lengths_of(kernel()); }
  int target_count() const {
    return kernel().constants.contains("kS") && kernel().at("kS") > 8 ? 41 : 13;
  }
};

TEST_P(ViterbiLockstep, EqualsReferenceOnModelsOfEveryKind) {
  std::uint64_t seed = 1000 + GetParam();
  Tally total;
  for (const int M : lengths()) {
    for (const auto kind : test_support::kAllModelKinds) {
      if (++seed % 7 != 0 && M != covered_by_entry(kernel())) continue;
      const auto model = test_support::random_model(seed, M, kind);
      if (!layout::viterbi_row_scan_gap(model->words).empty()) continue;
      if (speculates() && !layout::viterbi_wavefront_gap(model->words).empty()) continue;
      const Tally tally =
          check(kernel(), model->words, mixed_targets(seed, model->hmm, target_count(), 60),
                test_support::to_string(kind) + " M " + std::to_string(M), seed % 2 == 0);
      total.scores += tally.scores;
      total.flagged += tally.flagged;
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(total.scores, total.flagged);
  if (!speculates()) {
    EXPECT_EQ(total.flagged, 0);
  }
}

// Kernels that read the model's length read nothing past it.
TEST_P(ViterbiLockstep, WhatLiesPastTheModelDoesNotMatter) {
  const std::string& name = kernel().kernel;
  if (name != "viterbi_row_scan" && name != "viterbi_lane_scan" && name != "viterbi_wavefront")
    GTEST_SKIP() << "relies on impossible scores there";
  std::uint64_t seed = 9000 + GetParam();
  for (const int M : lengths()) {
    for (const int length : {M, (M + 15) / 16 * 16 - 16, M / 2}) {
      if (length < 1) continue;
      const auto model = test_support::random_model(++seed, length);
      const auto sequences = mixed_targets(seed, model->hmm, target_count(), 60);
      const layout::PackedTargets targets = pack(sequences);
      LaunchData data(kernel(), model->words, targets, everything(targets));
      data.fill_past_the_model();
      data.launch();
      Tally tally;
      for (std::uint32_t s = 0; s < data.list.size(); ++s)
        check_result(model->words, data.results[s], sequences[targets.original[data.list[s]]],
                     kernel().name + " M " + std::to_string(length), tally);
    }
  }
}

/// Values that probabilities do not give, but within the kernel's preconditions.
WordProfile adversarial_profile(std::uint64_t seed, int M, bool speculates) {
  WordProfile words = test_support::random_word_profile(seed, M, amino_alphabet());
  test_support::Random random(seed);
  if (!speculates) return words;
  const int extreme = random.integer(0, 3);
  for (auto& score : words.match) {
    if (extreme == 0) score = random.chance(0.5) ? std::int16_t{-32768} : score;
    if (extreme == 1 && random.chance(0.2)) score = hmmjit_device::kWordMostScore;
    score = std::min<std::int16_t>(score, hmmjit_device::kWordMostScore);
  }
  for (auto& entry : words.entry) {
    if (extreme == 2) entry = static_cast<std::int16_t>(random.integer(-22600, 0));
    if (extreme == 3) entry = random.chance(0.5) ? std::int16_t{-22600} : std::int16_t{0};
  }
  // Costs near the clamp: raised ones must stay irrelevant.
  for (auto* row : {&words.mm_in, &words.im_in, &words.dm_in, &words.md_out, &words.mi_out,
                    &words.ii_out, &words.dd_out}) {
    for (auto& cost : *row) {
      if (random.chance(0.05)) cost = static_cast<std::int16_t>(random.integer(-32768, -20000));
    }
  }
  return words;
}

TEST_P(ViterbiLockstep, EqualsReferenceOutsideProbabilityModels) {
  std::uint64_t seed = 5000 + 100 * GetParam();
  Tally total;
  for (const int M : lengths()) {
    for (int repeat = 0; repeat < (M > 100 ? 2 : 4); ++repeat) {
      const WordProfile profile = adversarial_profile(++seed, M, speculates());
      ASSERT_EQ(speculates() ? layout::viterbi_wavefront_gap(profile)
                             : layout::viterbi_row_scan_gap(profile),
                "");
      const auto model = test_support::random_model(seed, M);
      const Tally tally =
          check(kernel(), profile, mixed_targets(seed, model->hmm, target_count(), 60),
                "adversarial " + std::to_string(seed), repeat % 2 == 1);
      total.scores += tally.scores;
      total.overflows += tally.overflows;
      total.flagged += tally.flagged;
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(total.scores, 0);
  if (speculates()) {
    EXPECT_GT(total.flagged, 0) << "no target tested the check of the speculation";
  } else {
    EXPECT_GT(total.overflows, 0) << "no target overflowed";
  }
}

INSTANTIATE_TEST_SUITE_P(All, ViterbiLockstep, testing::ValuesIn(instances_of("viterbi_")),
                         instance_name);

// A model whose positions all score `match` for residue 0 and whose paths consist of matches; in a
// target of L residues J matters for cells above `limit`, relative to the begin score.
WordProfile plain_profile(int M, std::int16_t match, int L, int limit) {
  WordProfile words = test_support::random_model(1, M)->words;
  std::fill(words.match.begin(), words.match.end(), std::int16_t{-4000});
  std::fill_n(words.match.begin(), M, match);
  for (auto* row : {&words.entry, &words.mm_in}) std::fill(row->begin(), row->end(), 0);
  for (auto* row :
       {&words.im_in, &words.dm_in, &words.md_out, &words.mi_out, &words.ii_out, &words.dd_out})
    std::fill(row->begin(), row->end(), std::int16_t{-20000});
  words.ej = static_cast<std::int16_t>(-limit - words.move(L));
  return words;
}

std::vector<KernelInstance> speculating_kernels() {
  std::vector<KernelInstance> out;
  for (const std::size_t i : instances_of("viterbi_")) {
    if (hmmjit_lockstep::speculates_by_entry(instance(i))) out.push_back(instance(i));
  }
  EXPECT_GT(out.size(), 3u);
  return out;
}

// Two equal domains. If the first pays for the path through J by one, the second begins higher.
TEST(ViterbiSpeculation, EndsWhereJMatters) {
  constexpr int kMatches = 3, kScore = 100;
  std::vector<Residue> target(2 * kMatches + 4, Residue{0});
  for (std::size_t i = kMatches; i < kMatches + 4; ++i) target[i] = Residue{1};
  const int L = static_cast<int>(target.size());
  // The highest cell; above `limit` it flags its target.
  const int best = kMatches * kScore;
  for (const int limit : {best - 2, best - 1, best, best + 1}) {
    const WordProfile profile = plain_profile(kMatches, kScore, L, limit);
    ASSERT_EQ(layout::viterbi_wavefront_gap(profile), "");
    for (const KernelInstance& kernel : speculating_kernels()) {
      const Tally tally =
          check(kernel, profile, {target, target, target}, "limit " + std::to_string(limit), false);
      EXPECT_EQ(tally.flagged, best > limit ? 3 : 0) << kernel.name << " limit " << limit;
      if (HasFatalFailure()) return;
    }
  }
}

// Cells above the range of the packed words flag their target, whether J matters or not: two
// matches later they would wrap around.
TEST(ViterbiSpeculation, EndsWhereCellsHaveNoRoom) {
  constexpr int kMatches = 5;
  constexpr std::int16_t kScore = 3900;
  std::vector<Residue> target(kMatches, Residue{0});
  const WordProfile profile = plain_profile(kMatches, kScore, kMatches, 20'000);
  ASSERT_EQ(layout::viterbi_wavefront_gap(profile), "");
  for (const KernelInstance& kernel : speculating_kernels()) {
    const Tally tally = check(kernel, profile, {target, target}, "no room", false);
    EXPECT_EQ(tally.flagged, 2) << kernel.name;
    if (HasFatalFailure()) return;
  }
}

// The wavefront kernel flags, the row-by-row kernel decides: together they give every score of the
// reference.
void check_pipeline(const std::string& exact) {
  SCOPED_TRACE(exact);
  const KernelInstance* wave = nullptr;
  const KernelInstance* scan = nullptr;
  for (const KernelInstance& k : hmmjit_lockstep::kernel_instances()) {
    if (k.kernel.starts_with("viterbi_") && hmmjit_lockstep::speculates_by_entry(k) &&
        covered_by_entry(k) == 64 && hmmjit_lockstep::tile_length_by_entry(k) == 0)
      wave = &k;
    if (k.kernel == exact && covered_by_entry(k) >= 64) scan = &k;
  }
  ASSERT_TRUE(wave != nullptr && scan != nullptr);
  const auto model = test_support::random_model(99, 61);
  const auto sequences = mixed_targets(3, model->hmm, 40, 160);
  const layout::PackedTargets targets = pack(sequences);
  const auto list = everything(targets);
  LaunchData first(*wave, model->words, targets, list);
  first.launch();
  ASSERT_GT(first.counters.flagged, 0u);
  ASSERT_LT(first.counters.flagged, list.size());
  LaunchData second(*scan, model->words, targets, list);
  second.results = first.results;
  second.flagged = first.flagged;
  second.counters = first.counters;
  second.p.only_flagged = 1;
  second.launch();
  Tally tally;
  for (std::uint32_t s = 0; s < list.size(); ++s) {
    check_result(model->words, second.results[s], sequences[targets.original[s]], "pipeline",
                 tally);
  }
  EXPECT_EQ(tally.flagged, 0);
}

TEST(ViterbiPipeline, FlaggedTargetsAreDecided) {
  for (const char* exact : {"viterbi_row_scan", "viterbi_lane_scan", "viterbi_warp_striped",
                            "viterbi_warp_sync", "viterbi_thread_coalesced"})
    check_pipeline(exact);
}

// ---- Forward and bias: within the guard band ----------------------------------------------------

class ForwardLockstep : public testing::TestWithParam<std::size_t> {};

TEST_P(ForwardLockstep, StaysWithinTheGuardBand) {
  const KernelInstance& kernel = instance(GetParam());
  const int full = covered_by_entry(kernel);
  std::uint64_t seed = 300 + GetParam();
  double worst = 0;
  for (const int M : {full, std::max(1, full - 1), full / 2 + 1, 1}) {
    for (const auto kind : test_support::kAllModelKinds) {
      if (++seed % 4 != 0 && M != full) continue;
      const auto model = test_support::random_model(seed, M, kind);
      const auto sequences =
          mixed_targets(seed, model->hmm, GetParam() % 2 == 0 ? 41 : 13, M == full ? 60 : 150);
      const layout::PackedTargets targets = pack(sequences);
      const auto list = everything(targets);
      layout::FloatStage stage(model->odds);
      const auto tables = tables_of(stage);
      const auto lengths = layout::make_float_lengths(targets.class_lengths);
      std::vector<float> results(list.size(), 12345.0f);
      hmmjit_device::LateCounters counters{};
      hmmjit_device::FloatFilterParams p = stage.parameters(address(tables));
      p.database = view(targets);
      p.list = {list.data(), nullptr, 1, static_cast<std::uint32_t>(list.size())};
      p.lengths = lengths.data();
      p.counters = &counters;
      p.results = results.data();
      constexpr unsigned kBlocks = 2;
      const std::size_t per_warp = hmmjit_lockstep::scratch_by_entry(kernel).per_warp;
      std::vector<float> rows(kBlocks * threads_by_entry(kernel) / 32 * per_warp / sizeof(float),
                              4711.0f);
      p.rows = rows.empty() ? nullptr : rows.data();
      hmmjit_lockstep::launch(kBlocks, threads_by_entry(kernel), shared_bytes_by_entry(kernel),
                              [&] { kernel.run(&p); });
      for (std::size_t s = 0; s < list.size(); ++s) {
        const auto& residues = sequences[targets.original[list[s]]];
        const int L = static_cast<int>(residues.size());
        const float want = reference::forward_score(model->odds, residues);
        if (std::isinf(want)) {
          ASSERT_EQ(results[s], want) << kernel.name << " M " << M << " L " << L;
          continue;
        }
        const double difference = std::fabs(static_cast<double>(results[s]) - want);
        ASSERT_LT(difference, layout::forward_guard(L))
            << kernel.name << ' ' << test_support::to_string(kind) << " M " << M << " L " << L
            << " got " << results[s] << " want " << want;
        worst = std::max(worst, difference / layout::forward_guard(L));
      }
    }
  }
  EXPECT_LT(worst, 0.1) << "the guard band is meant to be wide";
}

INSTANTIATE_TEST_SUITE_P(All, ForwardLockstep, testing::ValuesIn(instances_of("forward_")),
                         instance_name);

class BiasLockstep : public testing::TestWithParam<std::size_t> {};

TEST_P(BiasLockstep, StaysWithinTheGuardBand) {
  const KernelInstance& kernel = instance(GetParam());
  std::uint64_t seed = 700 + GetParam();
  for (const int M : {1, 12, 200}) {
    for (const auto kind : test_support::kAllModelKinds) {
      auto model = test_support::random_hmm(++seed, M, kind);
      if (seed % 5 == 0) std::fill(model.compo.begin(), model.compo.end(), 0.0f);
      const BiasModel bias = make_bias_model(model);
      const auto sequences = mixed_targets(seed, model, 70, seed % 2 ? 900 : 70);
      const layout::PackedTargets targets = pack(sequences);
      const auto list = everything(targets);
      layout::BiasStage stage(bias);
      const auto tables = tables_of(stage);
      const auto lengths = layout::make_bias_lengths(targets.class_lengths);
      std::vector<float> results(list.size(), 12345.0f);
      hmmjit_device::LateCounters counters{};
      hmmjit_device::BiasParams p = stage.parameters(address(tables));
      p.database = view(targets);
      p.list = {nullptr, nullptr, 1, static_cast<std::uint32_t>(list.size())};
      p.p1 = lengths.data();
      p.counters = &counters;
      p.results = results.data();
      hmmjit_lockstep::launch(2, threads_by_entry(kernel), shared_bytes_by_entry(kernel),
                              [&] { kernel.run(&p); });
      for (std::size_t s = 0; s < list.size(); ++s) {
        const auto& residues = sequences[targets.original[s]];
        const int L = static_cast<int>(residues.size());
        const float want = reference::bias_filter(bias, residues);
        const float got = layout::bias_nats(results[s], L);
        ASSERT_LT(std::fabs(got - want), layout::bias_guard(results[s], L))
            << kernel.name << ' ' << test_support::to_string(kind) << " M " << M << " L " << L
            << " got " << got << " want " << want;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, BiasLockstep, testing::ValuesIn(instances_of("bias_")),
                         instance_name);

// tests/gpu_search has those of the domain stage.
TEST(LateLockstep, EveryKernelOfTheCatalogueIsExecuted) {
  EXPECT_THAT(
      hmmjit_lockstep::variants_without_instance(
          {plan::Stage::kBias, plan::Stage::kViterbi, plan::Stage::kForward, plan::Stage::kGate}),
      testing::IsEmpty())
      << "add constants for it to tests/lockstep/CMakeLists.txt";
}

// The gate after Forward: on any grid it judges every candidate of the list once, lists those that
// may pass and counts those that surely fail.
class GateLockstep : public testing::TestWithParam<std::size_t> {};

TEST_P(GateLockstep, JudgesEveryCandidateOnce) {
  const KernelInstance& kernel = instance(GetParam());
  const std::vector<std::uint32_t> length{100, 400}, length_class{0, 1};
  for (const std::uint32_t count : {0u, 1u, 63u, 64u, 65u, 1000u}) {
    std::vector<hmmjit_device::Candidate> candidates;
    std::vector<float> forward;
    std::vector<std::uint32_t> expected;
    std::uint32_t failing = 0;
    test_support::Random random(count + 1);
    // Scores in steps of 0.02 bits around a threshold between two of them, wider than the guard.
    constexpr double kThreshold = 20.01;
    std::vector<std::uint32_t> lengths, classes;
    for (std::uint32_t t = 0; t < count; ++t) {
      lengths.push_back(length[t % 2]);
      classes.push_back(length_class[t % 2]);
      const float filter = 1.5f;
      const double bits = 10.0 + 0.02 * static_cast<double>(t);
      candidates.push_back({t, 0, filter, 0});
      forward.push_back(static_cast<float>(bits * std::log(2.0)) + filter);
      if (bits > kThreshold) {
        expected.push_back(t);
      } else {
        ++failing;
      }
    }
    std::shuffle(candidates.begin(), candidates.end(), std::minstd_rand(count));
    std::vector<float> shuffled;
    for (const auto& c : candidates) shuffled.push_back(forward[c.target]);
    const std::vector<float> null_nats{0.0f, 0.0f};
    std::vector<std::uint32_t> passed(count + 1, 0xffffffffu);
    hmmjit_device::GateCounters counters{};
    hmmjit_device::GateParams p{};
    p.database.length = lengths.data();
    p.database.length_class = classes.data();
    p.list = {reinterpret_cast<const std::uint32_t*>(candidates.data()), nullptr,
              hmmjit_device::kCandidateStride, count};
    p.null_nats = null_nats.data();
    p.forward = shuffled.data();
    p.passed = passed.data();
    p.counters = &counters;
    p.forward_gate = {static_cast<float>(kThreshold), 21.0f};
    p.stage = hmmjit_device::kAfterForward;
    hmmjit_lockstep::launch(3, threads_by_entry(kernel), 0, [&] { kernel.run(&p); });
    EXPECT_EQ(counters.failed_forward, failing) << count;
    EXPECT_EQ(counters.residues[hmmjit_device::kAfterForward],
              std::accumulate(lengths.begin(), lengths.begin() + count, 0u));
    ASSERT_EQ(counters.passed, expected.size()) << count;
    std::sort(passed.begin(), passed.begin() + counters.passed);
    EXPECT_TRUE(std::equal(expected.begin(), expected.end(), passed.begin())) << count;
    EXPECT_EQ(passed[counters.passed], 0xffffffffu) << count;
  }
}

INSTANTIATE_TEST_SUITE_P(All, GateLockstep, testing::ValuesIn(instances_of("gate_")),
                         instance_name);

}  // namespace
}  // namespace hmmjit
