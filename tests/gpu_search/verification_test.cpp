// Kernels that compute wrong scores are found, and the result is right all the same.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <mutex>
#include <optional>

#include "common/byte_filter.cuh"
#include "common/gate_params.h"
#include "host_kernels.hpp"
#include "search_fixture.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

namespace dev = hmmjit_device;

class Verification : public testing::Test {
 protected:
  Verification() : driver_({*plan::find_device("H200")}) { driver_.on_launch = run_on_host; }

  // Many short models, so that there are many chains; many targets to each of them.
  static const SearchData& data() {
    static const SearchData data = make_search_data(11, 24, 300);
    return data;
  }
  static std::string expected_of(const SearchData& data) {
    const auto cpu = make_cpu_backend();
    const SearchOutcome outcome = run_search(data, *cpu, small_blocks(2));
    EXPECT_EQ(outcome.error, "");
    return outcome.text;
  }
  static const std::string& expected() {
    static const std::string text = expected_of(data());
    return text;
  }

  struct Found {
    SearchOutcome outcome;
    std::vector<std::string> warnings;
    std::optional<int> chains;  // begun when the first difference was told of
    gpu::Statistics gpu;
  };
  // Every model a chain of its own: one segment.
  Found run(const SearchData& data, std::function<int(const FakeLaunch&)> on_launch,
            std::optional<int> verify = {}, int threads = 2) {
    std::atomic<int> chains{0};
    driver_.on_launch = [&](const FakeLaunch& launch) {
      if (launch.kernel.starts_with("ssv")) ++chains;
      return on_launch(launch);
    };
    Found found;
    std::mutex mutex;
    SearchOptions options = small_blocks(threads);
    options.verify = verify;
    options.on_warning = [&](const std::string& text) {
      const std::lock_guard lock(mutex);
      if (!found.chains) found.chains = chains.load();
      found.warnings.push_back(text);
    };
    gpu::Settings settings = fake_settings(driver_);
    settings.segment_residues = std::uint64_t{1} << 30;
    gpu::GpuFilters gpu(std::move(settings));
    wait_until_started(gpu);
    const auto backend = make_device_backend(gpu);
    found.outcome = run_search(data, *backend, options);
    found.gpu = gpu.statistics();
    return found;
  }
  // It is found after at most so many chains, and the result is right.
  void expect_found(const char* what, const Found& found, const std::string& wanted, int chains) {
    fmt::print("{}: found after {} chains, {} targets checked, {} differences, {} of the models "
               "searched again\n",
               what, found.chains.value_or(-1), found.outcome.statistics.verified,
               found.outcome.statistics.differences, found.outcome.statistics.searched_again);
    EXPECT_EQ(found.outcome.error, "");
    EXPECT_EQ(found.outcome.text, wanted) << what;
    EXPECT_GT(found.outcome.statistics.differences, 0u) << what;
    EXPECT_GT(found.outcome.statistics.searched_again, 0u) << what;
    ASSERT_TRUE(found.chains) << what;
    EXPECT_LE(*found.chains, chains) << what;
    EXPECT_THAT(found.warnings.front(), testing::HasSubstr("GPU and CPU differ")) << what;
  }

  FakeDriver driver_;
};

TEST_F(Verification, ChecksByDefaultAndFindsNothing) {
  const Found found = run(data(), run_on_host);
  EXPECT_EQ(found.outcome.text, expected());
  EXPECT_GT(found.outcome.statistics.verified, 0u);
  EXPECT_GT(found.outcome.statistics.verified_chains, 0u);
  EXPECT_EQ(found.outcome.statistics.differences, 0u);
  EXPECT_EQ(found.outcome.statistics.searched_again, 0u);
  EXPECT_THAT(found.warnings, testing::IsEmpty());
}

TEST_F(Verification, AsManyAsAskedForOrNone) {
  const Found none = run(data(), run_on_host, 0);
  EXPECT_EQ(none.outcome.statistics.verified, 0u);
  EXPECT_EQ(none.outcome.statistics.verified_chains, 0u);
  const Found many = run(data(), run_on_host, 400);
  EXPECT_EQ(many.outcome.text, expected());
  EXPECT_EQ(many.outcome.statistics.verified_chains, data().models.size());
  EXPECT_GT(many.outcome.statistics.verified, 200 * data().models.size());
  EXPECT_EQ(many.outcome.statistics.differences, 0u);
}

TEST_F(Verification, KernelsThatAreWrongAllOverAreFoundAtOnce) {
  for (const char* kernel : {"ssv_multi_lane", "msv_multi_lane", "bias_segments",
                             "viterbi_lane_scan", "viterbi_wavefront", "forward_row_scan",
                             "envelope_four_lane"}) {
    const Found found = run(data(), [kernel](const FakeLaunch& launch) {
      return launch.kernel == kernel ? run_on_host_wrongly(launch) : run_on_host(launch);
    });
    expect_found(kernel, found, expected(), 24);
  }
}

}  // namespace
}  // namespace hmmjit::tests
