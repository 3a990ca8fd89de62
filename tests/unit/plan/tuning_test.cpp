#include "plan/tuning.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "plan/plan.hpp"

namespace hmmjit::plan {
namespace {

using testing::HasSubstr;

TunedChoice choice_for(const Plan& plan, const Candidate& candidate) {
  TunedChoice c;
  c.device = plan.device.name;
  c.capability = plan.device.capability();
  c.sm_count = plan.device.sm_count;
  c.catalogue = "one";
  c.stage = plan.stage;
  c.class_length = plan.class_length;
  c.variant = std::string(candidate.variant->name);
  c.constants = candidate.constants;
  c.gcups = 20000.5;
  c.planned_gcups = 19000;
  c.targets = 1000;
  c.residues = 350000;
  return c;
}

TuningTable some_table() {
  TuningTable table;
  const auto device = *find_device("H200");
  for (const int length : {100, 400, 1000}) {
    for (const Stage stage : {Stage::kSsv, Stage::kViterbi}) {
      const auto plan = *make_plan(stage, length, 29, device);
      table.add(choice_for(plan, plan.fallbacks.front()));
    }
  }
  return table;
}

TEST(TuningFile, RoundTrips) {
  const TuningTable table = some_table();
  EXPECT_EQ(table.size(), 6u);
  std::size_t skipped = 7;
  const TuningTable again = TuningTable::parse(table.text(), "one", &skipped);
  EXPECT_EQ(skipped, 0u);
  EXPECT_EQ(again.text(), table.text());
}

TEST(TuningFile, OtherCataloguesAndForeignLinesAreSkipped) {
  const TuningTable table = some_table();
  std::size_t skipped = 0;
  EXPECT_EQ(TuningTable::parse(table.text(), "two", &skipped).size(), 0u);
  EXPECT_EQ(skipped, 6u);
  const std::string mixed = "not json\n" + table.text() + "{}\n[1]\n\n{\"format\":2}\n";
  EXPECT_EQ(TuningTable::parse(mixed, "one", &skipped).text(), table.text());
  EXPECT_EQ(skipped, 4u);
}

// Acceptance test P for this reader: no bytes crash it, and accepted tunings are valid.
TEST(TuningFile, MutationsNeverBreakTheReader) {
  const std::string text = some_table().text();
  std::mt19937_64 random(3);
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = text;
    const int changes = 1 + static_cast<int>(random() % 8);
    for (int c = 0; c < changes; ++c) {
      if (damaged.empty()) break;
      const std::size_t at = random() % damaged.size();
      switch (random() % 4) {
        case 0:
          damaged[at] = static_cast<char>(random());
          break;
        case 1:
          damaged.erase(at, random() % 40);
          break;
        case 2:
          damaged.insert(at, std::to_string(random()));
          break;
        default:
          damaged.resize(at + 1);
      }
    }
    const TuningTable table = TuningTable::parse(damaged, "one");
    EXPECT_LE(table.size(), 12u);
    EXPECT_EQ(TuningTable::parse(table.text(), "one").text(), table.text());
    PlanOptions options;
    options.tuned = &table;
    if (round % 50 == 0) {
      EXPECT_TRUE(make_plan(Stage::kSsv, 400, 29, *find_device("H200"), options));
    }
  }
}

TEST(Planner, PrefersWhatWasMeasured) {
  const auto device = *find_device("H200");
  const auto plain = *make_plan(Stage::kSsv, 400, 29, device);
  EXPECT_EQ(plain.tuned, "");
  ASSERT_GE(plain.fallbacks.size(), 2u);
  TuningTable table;
  table.add(choice_for(plain, plain.fallbacks[1]));
  PlanOptions options;
  options.tuned = &table;
  const auto tuned = *make_plan(Stage::kSsv, 400, 29, device, options);
  EXPECT_EQ(tuned.chosen.constants, plain.fallbacks[1].constants);
  EXPECT_EQ(tuned.chosen.variant, plain.fallbacks[1].variant);
  EXPECT_EQ(tuned.fallbacks.size(), plain.fallbacks.size());
  EXPECT_EQ(tuned.fallbacks.front().constants, plain.chosen.constants);
  EXPECT_THAT(plan_text(tuned), HasSubstr("tuned      measured 20000 GCUPS"));
  EXPECT_THAT(plan_json(tuned), HasSubstr("\"tuned\":\"measured"));
  // Applies to all models of the class, and to no other class, stage or device.
  EXPECT_NE(make_plan(Stage::kSsv, plain.class_length, 29, device, options)->tuned, "");
  EXPECT_EQ(make_plan(Stage::kSsv, plain.class_length + 1, 29, device, options)->tuned, "");
  EXPECT_EQ(make_plan(Stage::kMsv, 400, 29, device, options)->tuned, "");
  EXPECT_EQ(make_plan(Stage::kSsv, 400, 29, *find_device("H100"), options)->tuned, "");
  DeviceTraits fewer = device;
  fewer.sm_count -= 2;
  EXPECT_EQ(make_plan(Stage::kSsv, 400, 29, fewer, options)->tuned, "");
}

TEST(Planner, MeasurementsThatNoLongerFitAreMisses) {
  const auto device = *find_device("H200");
  const auto plain = *make_plan(Stage::kSsv, 400, 29, device);
  PlanOptions options;
  TunedChoice gone = choice_for(plain, plain.fallbacks.front());
  gone.variant = "no_such_variant";
  TuningTable table;
  table.add(gone);
  options.tuned = &table;
  EXPECT_EQ(plan_json(*make_plan(Stage::kSsv, 400, 29, device, options)), plan_json(plain));
  TunedChoice other = choice_for(plain, plain.fallbacks.front());
  other.constants = {{"kS", 3}};
  table.add(other);
  EXPECT_EQ(plan_json(*make_plan(Stage::kSsv, 400, 29, device, options)), plan_json(plain));
  // Tunings do not override a named policy.
  table.add(choice_for(plain, plain.fallbacks.front()));
  options.policy = Policy::kCudampfpp;
  EXPECT_EQ(make_plan(Stage::kSsv, 400, 29, device, options)->tuned, "");
}

}  // namespace
}  // namespace hmmjit::plan
