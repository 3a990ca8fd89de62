#include "search/device_choice.hpp"

#include <gtest/gtest.h>

#include "tests/support/folder.hpp"

namespace hmmjit {
namespace {

SearchOptions with_threads(int threads) {
  SearchOptions options;
  options.threads = threads;
  return options;
}

TEST(DevicePays, LargeJobsYesSmallJobsNo) {
  std::string note;
  // 349 Pfam models against 65,000 proteins.
  EXPECT_TRUE(device_pays(with_threads(16), 67'195, 28e6, note));
  EXPECT_EQ(note, "");
  // Ten models against 4,000 proteins.
  EXPECT_FALSE(device_pays(with_threads(16), 2'000, 1.3e6, note));
  EXPECT_NE(note.find("pays from"), std::string::npos) << note;
  // With 16 cores and an H200, the CPU takes 3.07 and 0.66 s, the GPU 1.29 and 0.94 s.
  EXPECT_TRUE(device_pays(with_threads(16), 1'253, 312e6, note));
  EXPECT_FALSE(device_pays(with_threads(16), 338, 312e6, note));
}

TEST(DevicePays, MoreThreadsRaiseTheBar) {
  std::string note;
  const double positions = 400, residues = 200e6;  // 80 G cells
  EXPECT_TRUE(device_pays(with_threads(1), positions, residues, note));
  EXPECT_FALSE(device_pays(with_threads(64), positions, residues, note));
  EXPECT_TRUE(device_pays(with_threads(64), positions, residues, note, true)) << "started already";
}

TEST(DevicePays, UnknownSizesAreTakenForLarge) {
  std::string note;
  EXPECT_TRUE(device_pays(with_threads(16), std::nullopt, 1e3, note));
  EXPECT_TRUE(device_pays(with_threads(16), 10, std::nullopt, note));
}

TEST(DevicesThatPay, AnotherOneOnlyIfItSavesMoreThanItsStart) {
  constexpr double kPositions = 67'195;  // of 349 models
  // As measured with two H100s.
  EXPECT_EQ(devices_that_pay(kPositions * 45e6, 16, 2), 1);
  EXPECT_EQ(devices_that_pay(kPositions * 1.8e9, 16, 2), 2);
  EXPECT_EQ(devices_that_pay(kPositions * 1.8e9, 16, 1), 1);
  EXPECT_EQ(devices_that_pay(kPositions * 1.8e9, 15, 2), 1);  // too few threads
  EXPECT_EQ(devices_that_pay(kPositions * 100e9, 128, 8), 8);
  EXPECT_EQ(devices_that_pay(0, 128, 8), 1);
}

TEST(StartsDevices, AsManyAsPayAndSaysSo) {
  const auto start = [](double residues, DeviceChoice::Use use, std::string& note) {
    DeviceChoice choice{.use = use, .ordinals = {0, 1}};
    EXPECT_TRUE(starts_devices(
        choice, with_threads(16), [] { return 67'195; }, [=] { return residues; }, note));
    return choice.ordinals;
  };
  using Use = DeviceChoice::Use;
  std::string note;
  EXPECT_EQ(start(45e6, Use::kAuto, note), std::vector{0});
  EXPECT_TRUE(note.starts_with("1 of 2 GPUs: ")) << note;
  EXPECT_EQ(start(1.8e9, Use::kAuto, note), (std::vector{0, 1}));
  EXPECT_EQ(note, "");
  EXPECT_EQ(start(45e6, Use::kGpu, note), (std::vector{0, 1}));
}

TEST(DevicesPresent, AreCountedWithoutTheDriver) {
  EXPECT_EQ(devices_present("3,1"), 2);
  EXPECT_EQ(devices_present("0"), 1);
  EXPECT_EQ(devices_present("MIG-1,MIG-2"), 1);
  const test_support::TemporaryFolder nodes;
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "null"})
    nodes.write(name, "");
  EXPECT_EQ(devices_present(nullptr, nodes.path()), 2);
  EXPECT_EQ(devices_present(nullptr, nodes.path() / "none"), 1);
}

TEST(DevicePays, WithoutFiltersThereIsNothingToDo) {
  SearchOptions options = with_threads(1);
  options.filters.F1 = 1.0;
  std::string note;
  EXPECT_FALSE(device_pays(options, 1e6, 1e9, note));
  EXPECT_EQ(note, "the first filter is off (--F1 1)");
  options.filters.F2 = 1.0;
  EXPECT_FALSE(device_pays(options, 1e6, 1e9, note));
  EXPECT_EQ(note, "no filter to run (--max)");
}

TEST(SizesOfFiles, CompressedFilesCountAsTheirContents) {
  const test_support::TemporaryFolder folder;
  const std::string residues(1'150'000, 'A');
  EXPECT_NEAR(*residues_of_file(folder.write("t.fasta", residues)), 1e6, 1e4);
  EXPECT_NEAR(*residues_of_file(folder.write("t.fasta.gz", residues)), 2.5e6, 3e4);
  EXPECT_FALSE(residues_of_file(folder.file("none")));
  EXPECT_FALSE(residues_of_file("-"));
}

TEST(VisibleDevices, OnlyThoseUpToTheLastOneUsed) {
  EXPECT_EQ(visible_devices_up_to(0, nullptr), "0");
  EXPECT_EQ(visible_devices_up_to(2, nullptr), "0,1,2");
  EXPECT_EQ(visible_devices_up_to(0, "3,1"), "3");
  EXPECT_EQ(visible_devices_up_to(1, "GPU-5a,2,0"), "GPU-5a,2");
  // Nothing to omit.
  EXPECT_EQ(visible_devices_up_to(1, "3,1"), std::nullopt);
  EXPECT_EQ(visible_devices_up_to(0, ""), std::nullopt);
  EXPECT_EQ(visible_devices_up_to(3, "0"), std::nullopt);
}

// With a thousand models, starting more queues pays.
TEST(DeviceChoice, ManyModelsHaveAQueueOfTheDriverForEachStream) {
  EXPECT_EQ(driver_queues(std::nullopt), std::nullopt);
  EXPECT_EQ(driver_queues(199'999), std::nullopt);
  EXPECT_EQ(driver_queues(200'000), 16);
  const gpu::Settings settings = device_settings({});
  EXPECT_GE(16, settings.lanes + settings.domain_lanes);
  EXPECT_LT(8, settings.lanes + settings.domain_lanes);
}

}  // namespace
}  // namespace hmmjit
