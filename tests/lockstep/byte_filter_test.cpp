// SSV and MSV kernels in lockstep against the scalar reference: every score, status, gate decision
// and list, on typical, adversarial and out-of-range models and targets.
#define HMMJIT_LOCKSTEP
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "layout/byte_tables.hpp"
#include "layout/packed_targets.hpp"
#include "layout/stages.hpp"
#include "lockstep/catalogue.hpp"
#include "lockstep/lockstep.hpp"
#include "lockstep/registry.hpp"
#include "lockstep/stage_tests.hpp"
#include "model/score_statistics.hpp"
#include "reference/filters.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit {
namespace reference {
void PrintTo(SsvStatus status, std::ostream* out) {
  *out << (status == SsvStatus::kScore      ? "score"
           : status == SsvStatus::kOverflow ? "overflow"
                                            : "no result");
}
}  // namespace reference
namespace {

using hmmjit_device::ByteFilterParams;
using hmmjit_lockstep::KernelInstance;

struct Outcome {
  std::vector<hmmjit_device::FilterResult> results;
  std::map<std::uint32_t, hmmjit_device::FilterResult> survivors;
  std::vector<std::uint32_t> undecided;
};

using hmmjit_lockstep::covered_by_entry;

/// The inputs and outputs of one launch, in host memory.
struct LaunchData {
  LaunchData(const KernelInstance& kernel, const ByteProfile& profile,
             const Calibration& calibration, double F1, const layout::PackedTargets& packed,
             const layout::WorkList& list)
      : targets(packed),
        work(list),
        stage(profile, calibration, F1, packed.class_lengths),
        splits(list.splits),
        // The size that the entry asks for, poisoned.
        boundary(packed.residues.size() * hmmjit_lockstep::scratch_by_entry(kernel).per_residue,
                 0xee),
        tile_best(list.items.size(), 77),
        results(packed.size(), 0xffffffffu),
        survivors(packed.size()),
        undecided(packed.size(), 0xffffffffu) {
    layout::TableBlock block;
    stage.place(block, true);
    tables.resize(block.bytes());
    block.copy_to(tables.data());
    p = stage.parameters(reinterpret_cast<std::uintptr_t>(tables.data()));
    p.database = view(targets);
    p.items = work.items.data();
    p.splits = splits.data();
    p.counters = &counters;
    p.results = results.data();
    p.survivors = survivors.data();
    p.undecided = undecided.data();
    p.boundary = boundary.empty() ? nullptr : boundary.data();
    p.tile_best = tile_best.data();
    p.item_count = static_cast<std::uint32_t>(work.items.size());
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
  layout::ByteStage stage;
  std::vector<std::byte> tables;
  std::vector<hmmjit_device::SplitState> splits;
  std::vector<std::uint8_t> boundary;
  std::vector<std::uint32_t> tile_best;
  std::vector<hmmjit_device::FilterResult> results;
  std::vector<hmmjit_device::Survivor> survivors;
  std::vector<std::uint32_t> undecided;
  hmmjit_device::Counters counters{};
  ByteFilterParams p{};
};

void launch(const KernelInstance& kernel, const ByteFilterParams& p) {
  hmmjit_lockstep::launch(2, hmmjit_lockstep::threads_by_entry(kernel),
                          hmmjit_lockstep::shared_bytes_by_entry(kernel), [&] { kernel.run(&p); });
}

Outcome run_ssv(const KernelInstance& kernel, LaunchData& data) {
  data.p.tile_count =
      hmmjit_lockstep::tiles_by_entry(kernel, static_cast<int>(data.p.model_length));
  for (data.p.tile = 0; data.p.tile < data.p.tile_count; ++data.p.tile) {
    data.counters.next = 0;
    launch(kernel, data.p);
  }
  for (std::size_t i = 0; i < data.splits.size(); ++i) {
    EXPECT_EQ(data.splits[i].best, data.work.splits[i].best);
    EXPECT_EQ(data.splits[i].missing, data.work.splits[i].missing);
  }
  return data.outcome();
}

// Largest cell value as u, computed in plain integers as the specification states it.
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
  LaunchData data(kernel, profile, calibration, F1, targets, work);
  const Outcome out = run_ssv(kernel, data);
  std::vector<std::uint32_t> undecided;
  std::size_t passed = 0;
  for (std::uint32_t t = 0; t < targets.size(); ++t) {
    const auto& residues = sequences[targets.original[t]];
    const int L = static_cast<int>(residues.size());
    const reference::SsvResult want = reference::ssv_filter(profile, residues);
    const std::uint32_t got = out.results[t];
    const auto status = static_cast<reference::SsvStatus>((got >> 16) & 3u);
    const auto best = static_cast<std::uint32_t>(best_unsigned(profile, residues));
    const std::string where = kernel.name + " " + what + " L " + std::to_string(L) + " target " +
                              std::to_string(targets.original[t]) + ": score " +
                              std::to_string(got & 0xffffu) + ", reference " + std::to_string(best);
    ASSERT_EQ(status, want.status) << where;
    if (want.status == reference::SsvStatus::kScore) {
      ASSERT_EQ(got & 0xffffu, best) << where;
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

// More than one batch per warp, the last one incomplete.
int target_count(const KernelInstance& k) {
  const bool many = !k.constants.contains("kS") || k.at("kS") > 8;
  return many && k.kernel != "msv_warp_sync" && !k.constants.contains("kQ") ? 41 : 13;
}

class SsvLockstep : public testing::TestWithParam<std::size_t> {
 protected:
  const KernelInstance& kernel() const { return instance(GetParam()); }
  std::vector<int> lengths() const { return lengths_of(kernel()); }
};

TEST_P(SsvLockstep, EqualsReferenceOnModelsOfEveryKind) {
  std::uint64_t seed = 1000 + GetParam();
  for (const int M : lengths()) {
    for (const auto kind : test_support::kAllModelKinds) {
      // Long rows are expensive to emulate: every kind at the full length, one at each other.
      if (++seed % 7 != 0 && M != covered_by_entry(kernel())) continue;
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
  if (hmmjit_lockstep::tile_length_by_entry(kernel()) > 0)
    GTEST_SKIP() << "tiled launches take whole targets";
  const int M = std::min(covered_by_entry(kernel()), 40);
  const auto model = test_support::random_model(77 + GetParam(), M);
  check(kernel(), model->bytes, model->hmm.calibration, 0.02,
        mixed_targets(GetParam(), model->hmm, 24, 700), "split", true);
}

// If the constants leave no room in a signed byte, as for long targets, SSV has no result and the
// MSV recurrence decides.
TEST(ByteStage, SsvIsNotUsableAtLengthsThatLeaveNoRoom) {
  const auto model = test_support::random_model(78, 24);
  ByteProfile profile = model->bytes;
  constexpr int kShort = 20, kLong = 300;
  ASSERT_LT(profile.tjb(kShort), profile.tjb(kLong));
  profile.tbm = static_cast<std::uint8_t>(126 - profile.tjb(kShort) - profile.tec - profile.bias);
  ASSERT_TRUE(reference::ssv_usable(profile, kShort));
  ASSERT_FALSE(reference::ssv_usable(profile, kLong));
  const std::vector<std::uint32_t> lengths{kShort, kLong};
  const auto classes = layout::make_length_classes(profile, model->hmm.calibration, 0.02, lengths);
  EXPECT_EQ(classes.at(0).ssv_usable, 1);
  EXPECT_EQ(classes.at(1).ssv_usable, 0);
  std::vector<std::vector<Residue>> targets;
  for (const int L : {kShort, kLong, kShort, kLong})
    targets.push_back(test_support::random_target(79 + targets.size(), L,
                                                  test_support::kAllTargetKinds[0], model->hmm));
  for (const std::size_t index : instances_of("ssv_")) {
    const KernelInstance& kernel = instance(index);
    if (covered_by_entry(kernel) < 24 || covered_by_entry(kernel) > 100) continue;
    check(kernel, profile, model->hmm.calibration, 0.02, targets, "no room", false);
    if (testing::Test::HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SsvLockstep, testing::ValuesIn(instances_of("ssv_")), instance_name);

// ---- scans of long targets ----------------------------------------------------------------------

// The largest value of each block, in plain integers.
std::vector<int> block_maxima(const ByteProfile& profile, std::span<const Residue> residues) {
  std::vector<int> out, row(static_cast<std::size_t>(profile.M) + 1, 0);
  for (std::size_t i = 0; i < residues.size(); ++i) {
    if (i % hmmjit_device::kBlockRows == 0) out.push_back(0);
    for (int k = profile.M; k >= 1; --k) {
      const std::size_t cell = static_cast<std::size_t>(residues[i]) * profile.M + k - 1;
      row[k] = residues[i] >= profile.Kp
                   ? 0
                   : std::max(0, row[k - 1] - profile.signed_cost(profile.cost[cell]));
      out.back() = std::max(out.back(), row[k]);
    }
  }
  return out;
}

class BlockScanLockstep : public testing::TestWithParam<std::size_t> {};

// Targets with copies of the model, runs of N, degenerate residues and paddings, in items that
// begin within them; forwards and backwards.
TEST_P(BlockScanLockstep, GivesTheLargestValueOfEachBlock) {
  const KernelInstance& kernel = instance(GetParam());
  int M = 0;
  for (const int length : {45, 128, 262, 1533, 3401})
    if (length <= covered_by_entry(kernel)) M = length;
  const auto model = test_support::random_model(31 + GetParam(), M,
                                                test_support::ModelKind::kTypical, dna_alphabet());
  test_support::Random random(7 + GetParam());
  const std::uint32_t blocks = 71;
  std::vector<Residue> residues(blocks * hmmjit_device::kBlockRows, kPaddingCode);
  for (std::size_t at = 0, n = 0; at + 10 < residues.size(); ++n) {
    const auto kind = test_support::kAllTargetKinds[n % 6];
    const auto target = test_support::random_target(
        random, {1, static_cast<int>(std::min<std::size_t>(residues.size() - at - 5, 1500))}, kind,
        model->hmm);
    std::copy(target.begin(), target.end(), residues.begin() + static_cast<std::ptrdiff_t>(at));
    if (n % 5 == 4)
      std::fill_n(residues.begin() + static_cast<std::ptrdiff_t>(at), target.size() / 2,
                  Residue{15});
    // The best residue of each node: far more than a byte holds.
    for (std::size_t k = 0; n % 9 == 2 && k < std::min<std::size_t>(target.size(), M); ++k) {
      const auto cost = [&](Residue x) {
        return model->bytes.cost[x * static_cast<std::size_t>(M) + k];
      };
      residues[at + k] = std::ranges::min(std::array<Residue, 4>{0, 1, 2, 3}, {}, cost);
    }
    at += target.size() + static_cast<std::size_t>(random.integer(1, 4));
  }
  const auto before = static_cast<std::uint32_t>((M + 63) / 64);
  const auto items = layout::scan_items(blocks, M > 500 ? 36 : 2 * before + 1, before);
  ASSERT_GE(items.size(), 2u);
  layout::ByteStage stage(model->bytes, model->hmm.calibration, 1.0, {});
  layout::TableBlock block;
  stage.place(block, false);
  std::vector<std::byte> tables(block.bytes());
  block.copy_to(tables.data());
  const int suspect = 127 - model->bytes.bias;
  std::size_t exact = 0, high = 0;
  for (const bool reverse : {false, true}) {
    ByteFilterParams p = stage.parameters(reinterpret_cast<std::uintptr_t>(tables.data()));
    hmmjit_device::Counters counters{};
    std::vector<std::uint8_t> best(blocks, 0xee);
    p.counters = &counters;
    p.database.residues = residues.data() + (reverse ? residues.size() : 0);
    p.reverse = reverse;
    p.items = items.data();
    p.item_count = static_cast<std::uint32_t>(items.size());
    p.block_best = best.data();
    launch(kernel, p);
    std::vector<Residue> read(residues);
    if (reverse) std::reverse(read.begin(), read.end());
    const std::vector<int> want = block_maxima(model->bytes, read);
    // Behind a value that high bytes may have overflowed.
    std::size_t unsure = 0;
    for (std::size_t b = 0; b < blocks; ++b) {
      if (b >= unsure) {
        ASSERT_EQ(std::min<int>(best[b], suspect), std::min(want[b], suspect))
            << kernel.name << " block " << b << " reverse " << reverse;
        ++exact;
      }
      if (best[b] < suspect) continue;
      unsure = b + 1 + (2 * (static_cast<std::size_t>(M) + 1) + 63) / 64;
      ++high;
    }
  }
  EXPECT_GE(exact, M > 500 ? 20u : 60u);
  EXPECT_GE(high, 2u);
}

std::vector<std::size_t> scan_instances() {
  std::vector<std::size_t> out = instances_of("ssv_multi_lane");
  std::erase_if(out, [](std::size_t n) { return instance(n).at("kScan") == 0; });
  return out;
}
INSTANTIATE_TEST_SUITE_P(All, BlockScanLockstep, testing::ValuesIn(scan_instances()),
                         instance_name);

// ---- MSV ----------------------------------------------------------------------------------------

class MsvLockstep : public testing::TestWithParam<std::size_t> {
 protected:
  const KernelInstance& kernel() const { return instance(GetParam()); }
  int most_nodes() const { return covered_by_entry(kernel()); }

  /// `undecided`: the launch reads its targets from the list that an SSV launch would leave.
  void check(const ByteProfile& profile, const Calibration& calibration, double F1,
             const std::vector<std::vector<Residue>>& sequences, const std::string& what,
             bool undecided) {
    std::vector<std::span<const Residue>> views(sequences.begin(), sequences.end());
    const layout::PackedTargets targets = layout::pack_targets(views);
    const layout::WorkList work = layout::whole_targets(targets);
    LaunchData data(kernel(), profile, calibration, F1, targets, work);
    if (undecided) {
      data.p.items = nullptr;
      for (std::uint32_t t = 1; t < targets.size(); t += 3) {
        data.undecided[data.counters.undecided++] = t;
      }
    }
    launch(kernel(), data.p);
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
  EXPECT_THAT(hmmjit_lockstep::variants_without_instance({plan::Stage::kSsv, plan::Stage::kMsv}),
              testing::IsEmpty())
      << "add constants for it to tests/lockstep/CMakeLists.txt";
}

INSTANTIATE_TEST_SUITE_P(All, MsvLockstep, testing::ValuesIn(instances_of("msv_")), instance_name);

}  // namespace
}  // namespace hmmjit
