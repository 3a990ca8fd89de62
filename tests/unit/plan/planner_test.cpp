#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "plan/plan.hpp"

namespace hmmjit::plan {
namespace {

using testing::HasSubstr;

std::vector<DeviceTraits> served_devices() {
  std::vector<DeviceTraits> out;
  for (const DeviceTraits& device : device_table()) {
    if (!compiler_gap(device)) out.push_back(device);
  }
  return out;
}

TEST(Catalogue, EntriesAreComplete) {
  std::set<std::string_view> entries;
  for (int i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    EXPECT_EQ(find_stage(stage_name(stage)), stage);
    std::set<std::string_view> names;
    for (const KernelVariant& v : variants_of(stage)) {
      EXPECT_TRUE(names.insert(v.name).second) << v.name << " twice";
      EXPECT_EQ(v.stage, stage) << v.name;
      EXPECT_FALSE(v.template_file.empty() || v.entry_name.empty() || v.summary.empty()) << v.name;
      EXPECT_FALSE(v.references.empty()) << v.name;
      // Tests find the instances of a kernel by its name.
      const std::string_view file = v.template_file.substr(v.template_file.rfind('/') + 1);
      EXPECT_EQ(fmt::format("{}.cu", v.entry_name), fmt::format("{}_{}", stage_name(stage), file))
          << v.name << ": name the kernel after its stage and template";
      ASSERT_TRUE(v.accepts && v.constants && v.expected) << v.name;
    }
  }
}

TEST(Planner, ModelLengthHasBounds) {
  const auto device = *find_device("H200");
  for (const int length : {-1, 0, kMostPositions + 1, 2'000'000'000, 2'147'483'647}) {
    const auto plan = make_plan(Stage::kSsv, length, 29, device);
    ASSERT_FALSE(plan) << length;
    EXPECT_EQ(plan.error().code, ErrorCode::kInput) << length;
  }
  EXPECT_TRUE(make_plan(Stage::kSsv, kMostPositions, 29, device));
}

// The offers of every variant on every device cover the model and are consistent.
TEST(Catalogue, CandidatesKeepTheirContract) {
  for (const DeviceTraits& device : served_devices()) {
    for (int i = 0; i < kStages; ++i) {
      for (const KernelVariant& v : variants_of(static_cast<Stage>(i))) {
        for (const int length : {1, 7, 30, 100, 400, 1001, 2405, 3591, 20000}) {
          const ModelShape shape{v.stage, class_length(length), 29};
          const Verdict verdict = v.accepts(shape, device);
          if (!verdict.accepted) {
            EXPECT_FALSE(verdict.reason.empty()) << v.name;
            continue;
          }
          const auto list = v.constants(shape, device);
          ASSERT_FALSE(list.empty()) << v.name << " " << length;
          EXPECT_EQ(list, v.constants(shape, device)) << v.name << " is not a function";
          for (const Constants& c : list) {
            const Expected e = v.expected(shape, c, device);
            EXPECT_GE(e.covered_length, shape.length) << v.name << " " << length;
            EXPECT_GT(e.cells_per_clock_per_sm, 0) << v.name;
            EXPECT_FALSE(e.binding_resource.empty()) << v.name;
            EXPECT_GT(e.registers, 0) << v.name;
            const LaunchShape& l = e.launch;
            EXPECT_TRUE(l.block_threads > 0 && l.block_threads <= 1024 && l.block_threads % 32 == 0)
                << v.name;
          }
        }
      }
    }
  }
}

// With the highest prediction; other variants are rejected with a reason.
TEST(Planner, PlansEveryLengthOnEveryDevice) {
  for (const DeviceTraits& device : served_devices()) {
    for (const int length : {1, 7, 48, 100, 255, 400, 800, 1600, 2405, 3591}) {
      const auto plan = make_plan(Stage::kSsv, length, 29, device);
      ASSERT_TRUE(plan) << device.name << " " << length << ": " << plan.error().to_string();
      EXPECT_GE(plan->chosen.expected.covered_length, length);
      EXPECT_GE(plan->chosen.occupancy.blocks_per_sm, 1);
      EXPECT_GT(plan->chosen.predicted_gcups, 0);
      for (const Candidate& c : plan->fallbacks) {
        EXPECT_TRUE(!c.variant->competes || c.predicted_gcups <= plan->chosen.predicted_gcups);
      }
      for (const KernelVariant& v : variants_of(Stage::kSsv)) {
        const auto rejected = std::ranges::find(plan->rejected, v.name, &Rejection::variant);
        EXPECT_NE(plan->chosen.variant->name == v.name, rejected != plan->rejected.end()) << v.name;
        EXPECT_TRUE(rejected == plan->rejected.end() || !rejected->reason.empty()) << v.name;
      }
    }
  }
}

// Predictions of the domain stage are within 1.5 times what was measured (docs/performance.md).
TEST(Planner, PredictsTheMeasuredRatesOfTheDomainStage) {
  const auto device = *find_device("H100");
  struct Measured {
    int length;
    double parser, ensemble, envelope;  // Gcells/s; 0: not measured
  };
  for (const Measured& m : {Measured{80, 64.5, 2.07, 20.6}, Measured{150, 74.0, 4.09, 26.3},
                            Measured{300, 69.6, 7.30, 23.1}, Measured{400, 78.5, 8.65, 18.1},
                            Measured{700, 55.9, 6.94, 24.9}, Measured{1001, 42.5, 0, 28.4},
                            Measured{1400, 59.0, 4.09, 30.6}, Measured{1799, 45.5, 0, 29.6},
                            Measured{2405, 54.8, 0, 0}}) {
    for (const auto& [stage, measured] : {std::pair{Stage::kParser, m.parser},
                                          {Stage::kEnsemble, m.ensemble},
                                          {Stage::kEnvelope, m.envelope}}) {
      if (measured == 0) continue;
      const auto plan = make_plan(stage, m.length, 29, device);
      ASSERT_TRUE(plan) << m.length << ": " << plan.error().to_string();
      const double ratio = plan->chosen.predicted_gcups / measured;
      EXPECT_TRUE(ratio < 1.5 && ratio > 1 / 1.5)
          << static_cast<int>(stage) << " " << m.length << ": " << ratio;
    }
  }
}

TEST(Planner, ModelsOfOneClassShareAKernel) {
  const auto device = *find_device("H200");
  const auto a = make_plan(Stage::kSsv, 385, 29, device),
             b = make_plan(Stage::kSsv, 390, 29, device);
  EXPECT_EQ(a->class_length, b->class_length);
  EXPECT_EQ(a->chosen.constants, b->chosen.constants);
  EXPECT_GT(a->padding(), b->padding());
  PlanOptions exact;
  exact.exact_length = true;
  EXPECT_EQ(make_plan(Stage::kSsv, 385, 29, device, exact)->class_length, 385);
}

TEST(Planner, ForcedVariant) {
  const auto device = *find_device("A100");
  PlanOptions options;
  options.variant = "warp_striped";
  const auto plan = make_plan(Stage::kSsv, 400, 29, device, options);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->chosen.variant->name, "warp_striped");
  for (const Candidate& c : plan->fallbacks) EXPECT_EQ(c.variant->name, "warp_striped");

  const auto unsuitable = make_plan(Stage::kSsv, 90'000, 29, device, options);
  ASSERT_FALSE(unsuitable);
  EXPECT_EQ(unsuitable.error().code, ErrorCode::kUsage);
  EXPECT_THAT(unsuitable.error().message, HasSubstr("registers"));
}

TEST(Planner, TiledViterbiTakesEveryModel) {
  for (const DeviceTraits& device : served_devices()) {
    for (const int length : {1, 44'929, 300'000, kMostPositions}) {
      const auto plan =
          make_plan(Stage::kViterbi, length, 29, device, {.variant = "wavefront_tiled"});
      EXPECT_TRUE(plan) << device.name << ' ' << plan.error().to_string();
    }
  }
}

// Equations 4 and 5 of CUDAMPF++: most sequences per warp whose words fit the register budget,
// then the fewest words.
TEST(Planner, CudampfppPolicy) {
  const auto device = *find_device("H200");
  PlanOptions options;
  options.policy = Policy::kCudampfpp;
  // One lane scores a sequence while its bytes fit the registers of 16 warps, then two lanes, ...
  const std::vector<std::pair<int, std::int64_t>> sequences_for{{30, 32},  {100, 32}, {200, 32},
                                                                {400, 16}, {900, 8},  {2405, 2}};
  std::int64_t previous = 32;
  for (const auto& [length, most] : sequences_for) {
    const auto plan = make_plan(Stage::kSsv, length, 29, device, options);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->policy, "cudampfpp");
    const Constants& chosen = plan->chosen.constants;
    EXPECT_EQ(chosen.at("kS"), most) << length;
    EXPECT_LE(chosen.at("kS"), previous) << length;
    previous = chosen.at("kS");
    constexpr int kBudget = 128;  // registers that leave 16 warps
    EXPECT_LE(plan->chosen.expected.registers, kBudget) << length;
    EXPECT_GE(plan->chosen.expected.covered_length, length);
    const auto words = [](const Constants& c) { return c.at("kHb") + c.at("kHh"); };
    for (const Candidate& c : plan->fallbacks) {
      if (!c.constants.find("kHb") || c.expected.registers > kBudget) continue;
      EXPECT_LE(c.constants.at("kS"), chosen.at("kS")) << length;
      if (c.constants.at("kS") == chosen.at("kS")) {
        EXPECT_GE(words(c.constants), words(chosen)) << length;
      }
    }
  }
  EXPECT_EQ(find_policy("cudampf++"), Policy::kCudampfpp);
  EXPECT_FALSE(find_policy("fastest"));
}

// A search uses two Viterbi kernels: a fast one, and an exact one for undecided targets.
TEST(Planner, KernelsThatLeaveTargetsToOthersCanBeLeftOut) {
  for (const DeviceTraits& device : served_devices()) {
    for (const int length : {1, 60, 400, 1024, 1280, 2000, 3072, 3591, 12000}) {
      const auto plan = [&](bool exact) {
        PlanOptions options;
        options.exact = exact;
        return make_plan(Stage::kViterbi, length, 29, device, options);
      };
      const auto exact = plan(true), any = plan(false);
      ASSERT_TRUE(exact && any) << device.name << ' ' << length;
      const auto decides = [](const Candidate& c) { return !c.variant->speculates; };
      EXPECT_TRUE(decides(exact->chosen) && std::ranges::all_of(exact->fallbacks, decides));
      // For both, the papers' designs rank below those made for searches.
      for (const Plan* made : {&*exact, &*any}) {
        const KernelVariant& chosen = *made->chosen.variant;
        EXPECT_TRUE(chosen.competes || chosen.completes) << device.name << ' ' << length;
      }
      const auto refused =
          std::ranges::find(exact->rejected, "wavefront_tiled", &Rejection::variant);
      ASSERT_NE(refused, exact->rejected.end());
      EXPECT_THAT(refused->reason, HasSubstr("another kernel"));
    }
  }
}

// Kernels use the memory that the caller provides: a boundary if the model is tiled, rows if they
// are not in shared memory.
TEST(Catalogue, ScratchIsDeclared) {
  const auto device = *find_device("H200");
  int tiled = 0, rows = 0;
  for (int i = 0; i < kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    for (const KernelVariant& v : variants_of(stage)) {
      for (const int length : {100, 5000, 40000}) {
        const ModelShape shape{stage, class_length(length), 29};
        if (!v.accepts(shape, device).accepted) continue;
        for (const Constants& c : v.constants(shape, device)) {
          const Expected e = v.expected(shape, c, device);
          // A stage without a pointer for it in its parameters cannot provide it.
          const bool bytes = stage == Stage::kSsv || stage == Stage::kMsv;
          const bool words = stage == Stage::kViterbi, floats = stage == Stage::kForward;
          EXPECT_TRUE(bytes || words || e.scratch_per_residue == 0) << v.name;
          EXPECT_TRUE(words || floats || e.scratch_per_warp == 0) << v.name;
          if (e.tile_length > 0) {
            EXPECT_GE(e.scratch_per_residue, bytes ? 1 : 8) << v.name;
            ++tiled;
          }
          if (v.entry_name == "viterbi_row_scan") {
            const bool shared = c.at("kShared") != 0;
            EXPECT_EQ(e.scratch_per_warp, shared ? 0 : 6 * c.at("kNodes")) << length;
            rows += !shared;
          }
        }
      }
    }
  }
  EXPECT_GT(tiled, 0);
  EXPECT_GT(rows, 0);
}

// A library of 349 Pfam models, 23 to 673 positions, needs at most one kernel for each size class.
TEST(Planner, KernelsOfALibraryAreFewAndComputeLittlePadding) {
  constexpr int kShortest = 23, kLongest = 673;
  std::set<int> classes;
  for (int length = kShortest; length <= kLongest; ++length) classes.insert(class_length(length));
  for (const char* name : {"T4", "A100", "H200", "B200", "RTX 5090"}) {
    const auto device = *find_device(name);
    for (int i = 0; i < kStages; ++i) {
      const auto stage = static_cast<Stage>(i);
      std::set<std::string> kernels;
      double computed = 0, real = 0;
      for (int length = kShortest; length <= kLongest; ++length) {
        const auto planned = make_plan(stage, length, 29, device);
        // Rows of the domain stage are in shared memory: too long models run on the CPU.
        if (!planned && stage >= Stage::kParser) continue;
        ASSERT_TRUE(planned) << planned.error().to_string();
        std::string identity(planned->chosen.variant->name);
        for (const auto& [constant, value] : planned->chosen.constants.list())
          identity += fmt::format("/{}", value);
        kernels.insert(std::move(identity));
        // Kernels of the domain stage compute the model's own rows; one serves all lengths.
        computed += stage >= Stage::kParser ? length : planned->chosen.expected.covered_length;
        real += length;
      }
      EXPECT_LE(kernels.size(), classes.size()) << name << stage_name(stage);
      EXPECT_LT(computed / real - 1, 0.09) << name << stage_name(stage);
    }
  }
}

TEST(Planner, NamesWhatBindsAnSsvKernel) {
  for (const auto& [variant, binding] : {std::pair{"multi_lane_byte", "integer pipe"},
                                         {"multi_lane_half", "shared memory bandwidth"}}) {
    const auto plan = make_plan(Stage::kSsv, 400, 29, *find_device("H200"), {.variant = variant});
    EXPECT_EQ(plan->chosen.expected.binding_resource, binding);
  }
}

TEST(Constants, KeepOrderAndRefuseRepeats) {
  Constants c{{"kS", 4}, {"kL", 8}};
  c.add("kH", 13);
  EXPECT_EQ(c.list()[2].first, "kH");
  EXPECT_EQ(c.at("kL"), 8);
  EXPECT_EQ(c.find("kQ"), std::nullopt);
  EXPECT_THROW((void)c.at("kQ"), std::out_of_range);
  EXPECT_THROW(c.add("kS", 1), std::invalid_argument);
}

}  // namespace
}  // namespace hmmjit::plan
