// SSV and MSV kernels in lockstep execution against the scalar reference: every score, status,
// gate decision and list, on typical, adversarial and out-of-range models and targets.
#define HMMJIT_LOCKSTEP
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "layout/byte_tables.hpp"
#include "layout/packed_targets.hpp"
#include "lockstep/catalogue.hpp"
#include "lockstep/lockstep.hpp"
#include "lockstep/registry.hpp"
#include "model/score_statistics.hpp"
#include "reference/filters.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit {
namespace {

using hmmjit_device::ByteFilterParams;
using hmmjit_lockstep::KernelInstance;

/// Instances of the kernels of one stage, in order of registration.
std::vector<std::size_t> instances_of(const std::string& stage) {
  std::vector<std::size_t> out;
  const auto& all = hmmjit_lockstep::kernel_instances();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].kernel.starts_with(stage)) out.push_back(i);
  }
  return out;
}

struct Outcome {
  std::vector<hmmjit_device::FilterResult> results;
  std::map<std::uint32_t, hmmjit_device::FilterResult> survivors;
  std::vector<std::uint32_t> undecided;
};

/// Nodes one launch of this instance covers.
int covered_nodes(const KernelInstance& k) {
  if (k.kernel == "ssv_multi_lane") {
    return static_cast<int>(k.at("kL") * (4 * k.at("kHb") + 2 * k.at("kHh")));
  }
  if (k.kernel == "msv_multi_lane") return static_cast<int>(k.at("kL") * 2 * k.at("kH"));
  if (k.constants.contains("kQ")) return static_cast<int>(k.at("kQ") * 128);
  if (k.kernel.ends_with("sequence_groups")) return static_cast<int>(128 / k.at("kS") * k.at("kH"));
  if (k.kernel == "msv_warp_sync" || k.kernel == "msv_thread_speculative") {
    return static_cast<int>(k.at("kWords") * 4);
  }
  return hmmjit_lockstep::covered_by_entry(k);
}

/// Dynamic shared memory its launch needs.
std::size_t shared_bytes(const KernelInstance& k) {
  const auto at = [&](const char* name) { return static_cast<std::size_t>(k.at(name)); };
  if (k.kernel == "ssv_multi_lane") {
    const std::size_t L = at("kL");
    const auto segment = [&](std::size_t words) {
      return (words / 4 + (words % 4 == 3)) * 16 * std::max<std::size_t>(L, 8) +
             (words % 4 == 2) * 8 * std::max<std::size_t>(L, 16) + (words % 4 == 1) * 128;
    };
    return 32 * (segment(at("kHb")) + segment(at("kHh")));
  }
  if (k.kernel == "msv_multi_lane") {
    return 30 * ((at("kH") + 3) / 4) * 16 * std::max<std::size_t>(at("kL"), 8);
  }
  if (k.kernel.ends_with("warp_striped")) {
    const std::size_t rows = k.kernel.starts_with("ssv") ? 32 : 30;
    return 128 * at("kQ") * (rows * at("kShared") + at("kThreads") / 32 * at("kRows"));
  }
  if (k.kernel.ends_with("sequence_groups")) return 30 * at("kH") * (128 / at("kS"));
  if (k.kernel == "msv_warp_sync") {
    return 4 * (at("kShared") * 30 * at("kWords") + at("kThreads") / 32 * 2 * (at("kWords") + 1));
  }
  if (k.kernel == "msv_thread_speculative") return 0;
  return hmmjit_lockstep::shared_bytes_by_entry(k);
}

bool tiled(const KernelInstance& k) {
  return k.constants.contains("kTiled") && k.at("kTiled") != 0;
}

/// Everything one launch reads and writes, in host memory.
struct LaunchData {
  LaunchData(const ByteProfile& profile, const layout::PackedTargets& packed,
             const layout::WorkList& list, const std::vector<hmmjit_device::LengthClass>& lengths)
      : targets(packed),
        work(list),
        tables(layout::make_byte_tables(profile)),
        classes(lengths),
        splits(list.splits),
        boundary(packed.residues.size(), 0xee),  // poison
        tile_best(list.items.size(), 77),
        results(packed.size(), 0xffffffffu),
        survivors(packed.size()),
        undecided(packed.size(), 0xffffffffu) {
    p.database = {targets.residues.data(),
                  targets.start.data(),
                  targets.length.data(),
                  targets.original.data(),
                  targets.length_class.data(),
                  static_cast<std::uint32_t>(targets.size()),
                  0};
    p.items = work.items.data();
    p.splits = splits.data();
    p.classes = classes.data();
    p.emissions = tables.emissions.data();
    p.costs = tables.costs.data();
    p.counters = &counters;
    p.results = results.data();
    p.survivors = survivors.data();
    p.undecided = undecided.data();
    p.boundary = boundary.data();
    p.tile_best = tile_best.data();
    p.item_count = static_cast<std::uint32_t>(work.items.size());
    p.emission_stride = tables.stride;
    p.model_length = static_cast<std::uint32_t>(profile.M);
    p.tile_count = 1;
    p.base = static_cast<std::uint8_t>(profile.base);
    p.bias = profile.bias;
    p.tbm = profile.tbm;
    p.tec = profile.tec;
  }

  Outcome outcome() const {
    Outcome out;
    out.results = results;
    for (std::uint32_t i = 0; i < counters.survivors; ++i) {
      EXPECT_TRUE(out.survivors.emplace(survivors[i].target, survivors[i].result).second)
          << "survivor listed twice";
    }
    out.undecided.assign(undecided.begin(), undecided.begin() + counters.undecided);
    std::sort(out.undecided.begin(), out.undecided.end());
    return out;
  }

  const layout::PackedTargets& targets;
  const layout::WorkList& work;
  layout::ByteTables tables;
  std::vector<hmmjit_device::LengthClass> classes;
  std::vector<hmmjit_device::SplitState> splits;
  std::vector<std::uint8_t> boundary;
  std::vector<std::uint32_t> tile_best;
  std::vector<hmmjit_device::FilterResult> results;
  std::vector<hmmjit_device::Survivor> survivors;
  std::vector<std::uint32_t> undecided;
  hmmjit_device::Counters counters{};
  ByteFilterParams p{};
};

void launch(const KernelInstance& kernel, std::size_t shared, const ByteFilterParams& p) {
  hmmjit_lockstep::launch(2, static_cast<unsigned>(kernel.at("kThreads")), shared,
                          [&] { kernel.run(&p); });
}

Outcome run_ssv(const KernelInstance& kernel, const ByteProfile& profile,
                const layout::PackedTargets& targets, const layout::WorkList& work,
                const std::vector<hmmjit_device::LengthClass>& classes) {
  LaunchData data(profile, targets, work, classes);
  const int tile = covered_nodes(kernel);
  data.p.tile_count = static_cast<std::uint32_t>((profile.M + tile - 1) / tile);
  for (data.p.tile = 0; data.p.tile < data.p.tile_count; ++data.p.tile) {
    data.counters.next = 0;
    launch(kernel, shared_bytes(kernel), data.p);
  }
  for (std::size_t i = 0; i < data.splits.size(); ++i) {
    EXPECT_EQ(data.splits[i].best, work.splits[i].best);
    EXPECT_EQ(data.splits[i].missing, work.splits[i].missing);
  }
  return data.outcome();
}

// Largest cell value of the specification's plain-integer statement, as u.
int best_unsigned(const ByteProfile& profile, std::span<const Residue> residues) {
  std::vector<int> row(static_cast<std::size_t>(profile.M) + 1, -128);
  int best = -128;
  for (const Residue x : residues) {
    for (int k = profile.M; k >= 1; --k) {
      const int cost =
          profile.signed_cost(profile.cost[static_cast<std::size_t>(x) * profile.M + k - 1]);
      row[k] = std::max(-128, row[k - 1] - cost);
      best = std::max(best, row[k]);
    }
  }
  return std::min(best + 256, 255);
}

void check(const KernelInstance& kernel, const ByteProfile& profile, const Calibration& calibration,
           double F1, const std::vector<std::vector<Residue>>& sequences, const std::string& what,
           bool split) {
  std::vector<std::span<const Residue>> views(sequences.begin(), sequences.end());
  const layout::PackedTargets targets = layout::pack_targets(views);
  const layout::WorkList work =
      split ? layout::split_targets(targets,
                                    16 * ((static_cast<std::uint32_t>(profile.M) + 15) / 16 + 1),
                                    static_cast<std::uint32_t>(profile.M))
            : layout::whole_targets(targets);
  const auto classes = layout::make_length_classes(profile, calibration, F1, targets.class_lengths);
  const Outcome out = run_ssv(kernel, profile, targets, work, classes);
  std::vector<std::uint32_t> undecided;
  std::size_t passed = 0;
  for (std::uint32_t t = 0; t < targets.size(); ++t) {
    const auto& residues = sequences[targets.original[t]];
    const int L = static_cast<int>(residues.size());
    const reference::SsvResult want = reference::ssv_filter(profile, residues);
    const std::uint32_t got = out.results[t];
    const auto status = static_cast<reference::SsvStatus>((got >> 16) & 3u);
    ASSERT_EQ(status, want.status) << kernel.name << ' ' << what << " L " << L;
    if (want.status == reference::SsvStatus::kScore) {
      ASSERT_EQ(got & 0xffffu, static_cast<std::uint32_t>(best_unsigned(profile, residues)))
          << kernel.name << ' ' << what << " L " << L;
      ASSERT_EQ(reference::ssv_decide(profile, static_cast<int>(got & 0xffffu), L), want);
    }
    bool pass = false;
    if (want.status == reference::SsvStatus::kNoResult) {
      undecided.push_back(t);
    } else {
      const float bits = nats_to_bits(want.nats - null_score(L));
      pass = !(gumbel_survival(bits, calibration.msv_mu, calibration.msv_lambda) > F1);
    }
    EXPECT_EQ((got & hmmjit_device::kResultPassed) != 0, pass) << kernel.name << ' ' << what;
    EXPECT_EQ(out.survivors.contains(t), pass);
    if (pass && out.survivors.contains(t)) {
      EXPECT_EQ(out.survivors.at(t), got);
    }
    passed += pass;
  }
  EXPECT_EQ(out.undecided, undecided) << kernel.name << ' ' << what;
  EXPECT_EQ(out.survivors.size(), passed);
}

std::vector<std::vector<Residue>> mixed_targets(std::uint64_t seed, const Hmm& hmm, int count,
                                                int longest) {
  test_support::Random random(seed);
  std::vector<std::vector<Residue>> out;
  for (int i = 0; i < count; ++i) {
    const auto kind = test_support::kAllTargetKinds[static_cast<std::size_t>(i) % 6];
    out.push_back(
        test_support::random_target(random.next(), random.integer(1, longest), kind, hmm));
  }
  return out;
}

// More than one batch of a warp, the last one incomplete.
int target_count(const KernelInstance& k) {
  const bool many = !k.constants.contains("kS") || k.at("kS") > 8;
  return many && k.kernel != "msv_warp_sync" && !k.constants.contains("kQ") ? 41 : 13;
}

class SsvLockstep : public testing::TestWithParam<std::size_t> {
 protected:
  const KernelInstance& kernel() const { return hmmjit_lockstep::kernel_instances()[GetParam()]; }
  // Model lengths that fit: full, one short of full, well short, tiny; several tiles if tiled.
  std::vector<int> lengths() const {
    const int full = covered_nodes(kernel());
    std::vector<int> out{full, std::max(1, full - 1), std::max(1, full / 2 + 1), 1};
    if (tiled(kernel())) out.insert(out.end(), {full + 1, 2 * full, 3 * full - 2});
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
  }
};

TEST_P(SsvLockstep, EqualsReferenceOnModelsOfEveryKind) {
  std::uint64_t seed = 1000 + GetParam();
  for (const int M : lengths()) {
    for (const auto kind : test_support::kAllModelKinds) {
      // Long rows are dear to emulate: every kind at the full length, one at each other.
      if (++seed % 7 != 0 && M != covered_nodes(kernel())) continue;
      const auto model = test_support::random_model(seed, M, kind);
      const auto targets = mixed_targets(seed, model->hmm, target_count(kernel()), 50);
      check(kernel(), model->bytes, model->hmm.calibration, 0.02, targets,
            test_support::to_string(kind) + " M " + std::to_string(M), false);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(SsvLockstep, EqualsReferenceOutsideProbabilityModels) {
  std::uint64_t seed = 5000 + GetParam();
  Calibration calibration{-5.0f, 0.7f, -6.0f, 0.7f, -4.0f, 0.7f};
  for (const int M : lengths()) {
    for (int repeat = 0; repeat < 3; ++repeat) {
      const ByteProfile profile = test_support::random_byte_profile(++seed, M, amino_alphabet());
      const auto model = test_support::random_model(seed, M);
      check(kernel(), profile, calibration, repeat == 2 ? -1.0 : 0.3,
            mixed_targets(seed, model->hmm, target_count(kernel()), 50), "random bytes", false);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(SsvLockstep, SplitTargetsGiveTheSameAnswers) {
  if (tiled(kernel())) GTEST_SKIP() << "tiled launches take whole targets";
  const int M = std::min(covered_nodes(kernel()), 40);
  const auto model = test_support::random_model(77 + GetParam(), M);
  check(kernel(), model->bytes, model->hmm.calibration, 0.02,
        mixed_targets(GetParam(), model->hmm, 24, 700), "split", true);
}

std::string instance_name(const testing::TestParamInfo<std::size_t>& instance) {
  return hmmjit_lockstep::kernel_instances()[instance.param].name;
}

INSTANTIATE_TEST_SUITE_P(All, SsvLockstep, testing::ValuesIn(instances_of("ssv_")), instance_name);

// ---- MSV
// -----------------------------------------------------------------------------------------

class MsvLockstep : public testing::TestWithParam<std::size_t> {
 protected:
  const KernelInstance& kernel() const { return hmmjit_lockstep::kernel_instances()[GetParam()]; }
  int most_nodes() const { return covered_nodes(kernel()); }

  /// `undecided`: the launch takes its targets from the list an SSV launch would have left.
  void check(const ByteProfile& profile, const Calibration& calibration, double F1,
             const std::vector<std::vector<Residue>>& sequences, const std::string& what,
             bool undecided) {
    std::vector<std::span<const Residue>> views(sequences.begin(), sequences.end());
    const layout::PackedTargets targets = layout::pack_targets(views);
    const layout::WorkList work = layout::whole_targets(targets);
    LaunchData data(profile, targets, work,
                    layout::make_length_classes(profile, calibration, F1, targets.class_lengths));
    if (undecided) {
      data.p.items = nullptr;
      for (std::uint32_t t = 1; t < targets.size(); t += 3) {
        data.undecided[data.counters.undecided++] = t;
      }
    }
    launch(kernel(), shared_bytes(kernel()), data.p);
    const auto listed = data.counters.undecided;
    Outcome out = data.outcome();
    EXPECT_EQ(data.counters.undecided, listed);
    std::size_t passed = 0;
    for (std::uint32_t t = 0; t < targets.size(); ++t) {
      const std::uint32_t got = out.results[t];
      if (undecided && t % 3 != 1) {
        ASSERT_EQ(got, 0xffffffffu) << "a target nobody asked for";
        continue;
      }
      const auto& residues = sequences[targets.original[t]];
      const int L = static_cast<int>(residues.size());
      const float want = reference::msv_recurrence(profile, residues);
      const std::uint32_t status = (got >> 16) & 3u;
      ASSERT_EQ(status == hmmjit_device::kStatusOverflow, std::isinf(want))
          << kernel().name << ' ' << what << " L " << L;
      if (!std::isinf(want)) {
        ASSERT_EQ(status, hmmjit_device::kStatusScore);
        ASSERT_EQ(reference::msv_nats(profile, static_cast<int>(got & 0xffffu), L), want)
            << kernel().name << ' ' << what << " L " << L;
      }
      const float bits = nats_to_bits(want - null_score(L));
      const bool pass = !(gumbel_survival(bits, calibration.msv_mu, calibration.msv_lambda) > F1);
      EXPECT_EQ((got & hmmjit_device::kResultPassed) != 0, pass);
      EXPECT_NE(got & hmmjit_device::kResultMsv, 0u);
      EXPECT_EQ(out.survivors.contains(t), pass);
      passed += pass;
    }
    EXPECT_EQ(out.survivors.size(), passed);
  }
};

TEST_P(MsvLockstep, EqualsReferenceOnModelsOfEveryKind) {
  std::uint64_t seed = 9000 + GetParam();
  for (const int M : {most_nodes(), std::max(1, most_nodes() * 2 / 3), 1}) {
    for (const auto kind : test_support::kAllModelKinds) {
      if (++seed % 7 != 0 && M > 150) continue;
      const auto model = test_support::random_model(seed, M, kind);
      check(model->bytes, model->hmm.calibration, 0.02,
            mixed_targets(seed, model->hmm, target_count(kernel()), M > 150 ? 120 : 160),
            test_support::to_string(kind), seed % 2 == 0);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(MsvLockstep, EqualsReferenceOutsideProbabilityModels) {
  std::uint64_t seed = 7000 + GetParam();
  Calibration calibration{-5.0f, 0.7f, -6.0f, 0.7f, -4.0f, 0.7f};
  for (int repeat = 0; repeat < (most_nodes() > 150 ? 3 : 6); ++repeat) {
    const int M = std::max(1, most_nodes() - repeat);
    const ByteProfile profile = test_support::random_byte_profile(++seed, M, amino_alphabet());
    const auto model = test_support::random_model(seed, M);
    check(profile, calibration, repeat == 2 ? -1.0 : 0.3,
          mixed_targets(seed, model->hmm, target_count(kernel()), 90), "random bytes", false);
    if (HasFatalFailure()) return;
  }
}

TEST(ByteLockstep, EveryKernelOfTheCatalogueIsExecuted) {
  EXPECT_THAT(hmmjit_lockstep::kernels_without_instance({plan::Stage::kSsv, plan::Stage::kMsv}),
              testing::IsEmpty())
      << "add constants for it to tests/lockstep/CMakeLists.txt";
}

// A search takes the width of a tile from the entry, the kernel from its constants.
TEST(ByteLockstep, TilesAreAsWideAsTheEntrySays) {
  int seen = 0;
  for (const KernelInstance& k : hmmjit_lockstep::kernel_instances()) {
    if (!k.constants.contains("kTiled")) continue;
    ++seen;
    EXPECT_EQ(hmmjit_lockstep::tile_length_by_entry(k), k.at("kTiled") ? covered_nodes(k) : 0)
        << k.name;
  }
  EXPECT_GT(seen, 0);
}

INSTANTIATE_TEST_SUITE_P(All, MsvLockstep, testing::ValuesIn(instances_of("msv_")), instance_name);

}  // namespace
}  // namespace hmmjit
