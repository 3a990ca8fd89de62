// A catalogue entry that no other code knows, one for each filter stage: the planner takes it where
// it is the best, and a search launches it with all that the entry asks for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "host_kernels.hpp"
#include "search_fixture.hpp"

namespace hmmjit::tests {
namespace {

namespace dev = hmmjit_device;

// Scratch of the entry: bytes for each warp and each residue.
struct NewVariant {
  plan::Stage stage;
  std::int64_t per_warp = 0;
  int per_residue = 0;
};
void PrintTo(const NewVariant& v, std::ostream* out) { *out << plan::stage_name(v.stage); }

std::string entry_of(plan::Stage stage) { return std::string(plan::stage_name(stage)) + "_new"; }

plan::KernelVariant variant_of(plan::Stage stage, std::string_view entry) {
  plan::KernelVariant out;
  out.name = "new";
  out.stage = stage;
  out.entry_name = entry;
  return out;
}

// Kernels of the catalogue, except for one stage.
class WithNewVariant final : public gpu::InstantKernelSource {
 public:
  explicit WithNewVariant(const NewVariant& wanted)
      : wanted_(wanted),
        entry_(entry_of(wanted.stage)),
        variant_(variant_of(wanted.stage, entry_)) {}

 private:
  Result<compile::KernelPtr> make(const plan::Plan& plan) override {
    auto kernel = std::make_shared<compile::Kernel>(*fake_kernel(plan));
    if (plan.stage == wanted_.stage) {
      kernel->candidate.variant = &variant_;
      kernel->candidate.constants = {{"kOfItsOwn", 1}};
      kernel->candidate.expected.scratch_per_warp = wanted_.per_warp;
      kernel->candidate.expected.scratch_per_residue = wanted_.per_residue;
    }
    kernel->image.entry_name = kernel->candidate.variant->entry_name;
    kernel->name = kernel->image.entry_name + " for " + std::to_string(plan.class_length);
    return kernel;
  }
  const NewVariant wanted_;
  const std::string entry_;
  const plan::KernelVariant variant_;
};

// Fills what the launch has been given; the fake driver's device memory is the host's, so that a
// sanitizer sees where it ends.
template <typename Params>
bool use_scratch(const FakeLaunch& launch, const Params& p, const NewVariant& wanted) {
  if constexpr (requires { p.rows; }) {
    if ((p.rows != nullptr) != (wanted.per_warp > 0)) return false;
    const std::size_t warps = std::size_t{launch.blocks} * launch.block_threads / 32;
    if (p.rows != nullptr)
      std::memset(static_cast<void*>(p.rows), 0x5a,
                  warps * static_cast<std::size_t>(wanted.per_warp));
  }
  if constexpr (requires { p.boundary; }) {
    if ((p.boundary != nullptr) != (wanted.per_residue > 0)) return false;
    std::size_t residues = 0;
    for (dev::u32 t = 0; t < p.database.targets; ++t)
      residues = std::max(
          residues, std::size_t{p.database.start[t]} * dev::kStartUnit + p.database.length[t]);
    if (p.boundary != nullptr)
      std::memset(static_cast<void*>(p.boundary), 0x5a,
                  residues * static_cast<std::size_t>(wanted.per_residue));
  }
  return true;
}

class NewVariants : public testing::TestWithParam<NewVariant> {};

TEST_P(NewVariants, IsLaunchedWithWhatItsEntryAsksFor) {
  const NewVariant wanted = GetParam();
  const SearchData data = make_search_data(11, 4, 200);
  const SearchOutcome expected = run_search(data, nullptr, small_blocks(2));
  ASSERT_EQ(expected.error, "");

  FakeDriver driver({*plan::find_device("H200")});
  std::atomic<int> launches{0}, without{0};
  driver.on_launch = [&](const FakeLaunch& launch) {
    if (launch.kernel == entry_of(wanted.stage)) {
      ++launches;
      if (!with_parameters(launch, [&](const auto& p) { return use_scratch(launch, p, wanted); }))
        ++without;
    }
    return run_on_host(launch);
  };
  gpu::Settings settings = fake_settings(driver);
  settings.open_kernels = [&]() -> Result<std::unique_ptr<gpu::KernelSource>> {
    return std::make_unique<WithNewVariant>(wanted);
  };
  gpu::GpuFilters gpu(std::move(settings));
  wait_until_started(gpu);
  const SearchOutcome outcome = run_search(data, &gpu, small_blocks(2));
  EXPECT_EQ(outcome.error, "");
  EXPECT_EQ(outcome.text, expected.text);
  EXPECT_GT(launches, 0);
  EXPECT_EQ(without, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Each, NewVariants,
    testing::Values(NewVariant{plan::Stage::kSsv, 0, 3}, NewVariant{plan::Stage::kMsv, 0, 3},
                    NewVariant{plan::Stage::kBias}, NewVariant{plan::Stage::kViterbi, 192, 5},
                    NewVariant{plan::Stage::kViterbi}, NewVariant{plan::Stage::kForward, 160, 0},
                    NewVariant{plan::Stage::kGate}));

TEST(NewVariants, TheFastestIsChosenWhateverItIsCalled) {
  for (const plan::Stage stage : {plan::Stage::kSsv, plan::Stage::kMsv, plan::Stage::kViterbi,
                                  plan::Stage::kForward, plan::Stage::kParser}) {
    const auto device = *plan::find_device("H200");
    plan::Plan plan = *plan::make_plan(stage, 200, 29, device);
    const plan::KernelVariant variant = variant_of(stage, "new");
    std::vector<plan::Offer> offers{{plan.chosen.variant, plan::Verdict::accept(), {plan.chosen}},
                                    {&variant, plan::Verdict::accept(), {plan.chosen}}};
    offers.back().configurations.front().expected.cells_per_clock_per_sm *= 1.01;
    plan.rejected.clear();
    ASSERT_TRUE(plan::choose(plan, offers, plan::Policy::kDefault, {}, "a test", nullptr));
    EXPECT_EQ(plan.chosen.variant, &variant) << plan::stage_name(stage);
  }
}

}  // namespace
}  // namespace hmmjit::tests
