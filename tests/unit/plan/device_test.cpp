#include <gtest/gtest.h>

#include <set>

#include "plan/device_traits.hpp"
#include "plan/plan.hpp"

namespace hmmjit::plan {
namespace {

TEST(DeviceTable, SpellingDoesNotMatter) {
  EXPECT_EQ(find_device("rtx4090")->name, "RTX 4090");
  EXPECT_EQ(find_device("RTX-4090")->name, "RTX 4090");
  EXPECT_EQ(find_device("h200")->name, "H200");
  EXPECT_EQ(find_device("sm_90")->capability(), 90);
  EXPECT_EQ(find_device("compute_75")->name, "T4");
}

TEST(DeviceTable, UnknownNameListsTheKnownOnes) {
  for (const char* name : {"H900", "", "sm_", "sm_9x", "sm_1000"}) {
    const auto device = find_device(name);
    ASSERT_FALSE(device) << name;
    EXPECT_EQ(device.error().code, ErrorCode::kUsage);
    EXPECT_NE(device.error().remedy.find("RTX 5090"), std::string::npos);
  }
}

TEST(DeviceTable, ArchitecturesWithoutADeviceTakeTheirFamilysLimits) {
  const auto expect_like = [](const char* architecture, const char* name) {
    const auto device = find_device(architecture);
    ASSERT_TRUE(device) << device.error().to_string();
    const DeviceTraits like = *find_device(name);
    EXPECT_EQ(device->name, std::string(architecture) + ", assumed to be like " + name);
    EXPECT_EQ("sm_" + std::to_string(device->capability()), architecture);
    EXPECT_EQ(device->shared_per_block_limit, like.shared_per_block_limit) << architecture;
    EXPECT_EQ(device->max_threads_per_sm, like.max_threads_per_sm) << architecture;
    EXPECT_TRUE(make_plan(Stage::kSsv, 400, 29, *device)) << architecture;
  };
  expect_like("sm_103", "B200");
  expect_like("sm_121", "RTX 5090");
  expect_like("sm_999", "RTX 5090");
  EXPECT_EQ(find_device("sm_87")->capability(), 87);
}

TEST(DeviceTable, DevicesBeforeVoltaHaveNoKernels) {
  for (const DeviceTraits& device : device_table()) {
    EXPECT_EQ(compiler_gap(device).has_value(), device.name == "K40") << device.name;
  }
  EXPECT_NE(compiler_gap(*find_device("K40"))->find("capability 3.5"), std::string::npos);
  EXPECT_TRUE(compiler_gap({.name = "P100", .major = 6, .minor = 0}));
  EXPECT_NE(find_device("sm_60").error().message.find("sm_60 has compute capability 6.0"),
            std::string::npos);
}

// From the vendor's occupancy calculator.
TEST(Occupancy, AgreesWithTheVendorsCalculator) {
  const DeviceTraits h200 = *find_device("H200"), t4 = *find_device("T4"),
                     ada = *find_device("RTX 4090"), thor = *find_device("sm_110");
  EXPECT_EQ(occupancy(h200, 256, 32, 0).blocks_per_sm, 8);
  EXPECT_EQ(occupancy(h200, 256, 32, 0).limiter, "threads");
  EXPECT_EQ(occupancy(h200, 256, 64, 0).blocks_per_sm, 4);
  EXPECT_EQ(occupancy(h200, 256, 65, 0).blocks_per_sm, 3);
  EXPECT_EQ(occupancy(h200, 256, 255, 0).blocks_per_sm, 1);
  EXPECT_EQ(occupancy(h200, 256, 64, 0).limiter, "registers");
  // 2,560 registers a warp: 25 fit into 65,536, but only 6 into each of the four files of 16,384.
  EXPECT_EQ(occupancy(h200, 32, 80, 0).blocks_per_sm, 24);
  EXPECT_EQ(occupancy(h200, 32, 16, 0).blocks_per_sm, 32);
  EXPECT_EQ(occupancy(h200, 32, 16, 0).limiter, "blocks");
  EXPECT_EQ(occupancy(h200, 256, 32, 100 * 1024).blocks_per_sm, 2);
  EXPECT_EQ(occupancy(h200, 256, 32, 100 * 1024).limiter, "shared memory");
  EXPECT_EQ(occupancy(h200, 256, 32, 227 * 1024).blocks_per_sm, 1);
  EXPECT_EQ(occupancy(h200, 256, 32, 227 * 1024 + 1).blocks_per_sm, 0);
  EXPECT_EQ(occupancy(t4, 256, 32, 0).blocks_per_sm, 4);
  EXPECT_EQ(occupancy(t4, 256, 32, 32 * 1024).blocks_per_sm, 2);
  EXPECT_EQ(occupancy(ada, 512, 40, 0).blocks_per_sm, 3);
  EXPECT_EQ(occupancy(ada, 512, 40, 0).fraction, 1.0);
  EXPECT_EQ(occupancy(thor, 512, 40, 0).fraction, 1.0);
  EXPECT_EQ(occupancy(thor, 32, 16, 0).blocks_per_sm, 24);
  EXPECT_EQ(occupancy(thor, 256, 32, 227 * 1024).blocks_per_sm, 1);
  EXPECT_EQ(occupancy(h200, 1024, 65, 0).blocks_per_sm, 0);
  EXPECT_EQ(occupancy(h200, 1025, 16, 0).blocks_per_sm, 0);
  EXPECT_EQ(occupancy(h200, 256, 256, 0).blocks_per_sm, 0);
}

TEST(SizeClasses, CoverTightlyAndAreFewAndStable) {
  std::set<int> classes;
  int previous = 0;
  for (int length = 1; length <= 4000; ++length) {
    const int c = class_length(length);
    ASSERT_GE(c, length);
    ASSERT_GE(c, previous) << "a longer model never gets a smaller class";
    ASSERT_EQ(class_length(c), c) << "a class is its own class";
    if (length >= 48) {
      ASSERT_LT(static_cast<double>(c) / length, length > 768   ? 1.022
                                                 : length > 384 ? 1.043
                                                                : 1.085)
          << length;
    }
    ASSERT_LT(c - length, std::max(4, length / 11 + 1));
    previous = c;
    classes.insert(c);
    // Fine steps where most models are.
    if (length == 768) {
      EXPECT_LE(classes.size(), 72u);
    }
  }
  EXPECT_LE(classes.size(), 183u);
}

}  // namespace
}  // namespace hmmjit::plan
