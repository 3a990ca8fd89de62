// The kernels behind the Forward filter, run in lockstep, against the CPU's domain stage: every
// score, region, envelope and alignment to the bit, on models and targets that pass no filter too.
#include "gpu/domain_stage.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "common/domain_params.h"
#include "core/threads.hpp"
#include "core/trace.hpp"
#include "domain/domain.hpp"
#include "host_kernels.hpp"
#include "plan/kernel_variant.hpp"
#include "search_fixture.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

class DomainStageTest : public testing::Test {
 protected:
  DomainStageTest() : fake_({*plan::find_device("H200")}) {
    fake_.on_launch = run_on_host;
    driver_ = driver::Driver::open(fake_.api());
    device_ = *driver_->device(0);
    kernels_ = {kernel(plan::Stage::kParser), kernel(plan::Stage::kEnvelope)};
    origin_ = *driver::Event::create(device_, true);
  }

  gpu::ReadyKernel kernel(plan::Stage stage) {
    const plan::KernelVariant& variant = plan::variants_of(stage).front();
    const plan::ModelShape shape{.stage = stage, .length = 240, .alphabet_codes = 29};
    auto made = std::make_shared<compile::Kernel>();
    made->name = variant.entry_name;
    made->candidate.variant = &variant;
    made->candidate.constants = variant.constants(shape, device_->traits()).front();
    made->candidate.launch =
        variant.launch_shape(shape, made->candidate.constants, device_->traits());
    auto loaded = *driver::LoadedKernel::load(driver_, "image", std::string(variant.entry_name));
    EXPECT_TRUE(loaded->prepare(*device_, made->candidate.launch.block_threads,
                                made->candidate.launch.dynamic_shared_bytes));
    return {std::move(made), std::move(loaded), 1};
  }

  std::shared_ptr<gpu::DeviceTargets> upload(const std::vector<std::vector<Residue>>& targets) {
    TargetBlock block;
    for (const auto& residues : targets) {
      block.begin_target("target", "", "");
      block.append(residues);
      block.end_target();
    }
    block_ = std::make_shared<TargetBlock>(std::move(block));
    const std::vector<gpu::BlockRef> blocks{{1, block_}};
    auto packed = std::make_shared<gpu::PackedSegment>(gpu::pack_segment(blocks));
    auto uploader = *gpu::Uploader::create(device_);
    return *gpu::DeviceTargets::create(device_, packed, uploader);
  }

  std::unique_ptr<gpu::DomainStage> stage(std::size_t workspace) {
    return *gpu::DomainStage::create(
        device_, origin_, [](std::size_t, std::size_t) -> Status { return {}; }, workspace);
  }

  // Each target of the segment against the CPU alone. Returns how many were parsed.
  std::size_t compare(const gpu::DomainRequest& request, const std::string& what) {
    const FlushToZeroScope flush;
    const domain::ForwardTables tables(*request.model);
    domain::Workspace workspace;
    const auto& packed = request.targets->packed();
    std::size_t parsed = 0;
    for (std::size_t n = 0; n < request.passed.size(); ++n) {
      const auto& origin = packed.origins[packed.targets.original[request.passed[n]]];
      const TargetView view = (*block_)[origin.index];
      const ParsedTarget* const found = request.parsed.empty() ? nullptr : request.parsed[n].get();
      parsed += found != nullptr;
      std::optional<domain::TargetScore> scores[2];
      float nats[2] = {0, 0};
      for (const bool with : {false, true}) {
        domain::score_targets_batch(tables, {&view, 1}, [](std::size_t, float) { return true; }, {},
                                    workspace, {&nats[with], 1}, {&scores[with], 1}, {},
                                    {&found, 1});
        if (!with && found == nullptr) break;
        if (!with) continue;
        EXPECT_TRUE(nats[0] == nats[1] || (std::isnan(nats[0]) && std::isnan(nats[1])))
            << what << " L " << view.length() << ": " << nats[0] << ' ' << nats[1];
        EXPECT_TRUE(scores[0] == scores[1]) << what << " L " << view.length() << ", "
                                            << (scores[0] ? scores[0]->regions : -1) << " regions";
      }
    }
    return parsed;
  }

  static std::vector<std::uint32_t> all_of(const gpu::DeviceTargets& targets) {
    std::vector<std::uint32_t> out;
    // Backwards: the order of the request is not that of the launch.
    for (auto i = static_cast<std::uint32_t>(targets.packed().targets.size()); i-- > 0;)
      out.push_back(i);
    return out;
  }

  FakeDriver fake_;
  std::shared_ptr<driver::Driver> driver_;
  driver::DevicePtr device_;
  driver::Event origin_;
  gpu::DomainKernels kernels_;
  std::shared_ptr<TargetBlock> block_;
};

constexpr std::size_t kWorkspace = std::size_t{64} << 20;

TEST_F(DomainStageTest, EverythingIsTheCpusToTheBit) {
  // Lengths about stripes, about the length from which passes end early, and the longest of the
  // kernels compiled for this test.
  const std::vector<int> lengths{1, 2, 3, 5, 8, 31, 99, 100, 101, 157, 240};
  auto stage = this->stage(kWorkspace);
  std::uint64_t seed = 40, envelopes = 0, regions = 0;
  std::vector<gpu::DomainRequest> requests;
  const auto run = [&] {
    std::vector<gpu::DomainRequest*> pointers;
    for (auto& request : requests) pointers.push_back(&request);
    const auto result = stage->run(pointers, kernels_, {});
    ASSERT_TRUE(result) << result.error().to_string();
    envelopes += result->envelopes;
    for (const auto& request : requests) {
      EXPECT_EQ(compare(request, std::to_string(request.model->hmm.M)), request.passed.size());
      for (const auto& parsed : request.parsed) regions += parsed ? parsed->regions.size() : 0;
    }
    requests.clear();
  };
  for (const auto kind : test_support::kAllModelKinds) {
    for (const int M : lengths) {
      if (++seed % 3 != 0) continue;
      auto model = test_support::random_model(seed, M, kind);
      test_support::Random random(seed);
      std::vector<std::vector<Residue>> made;
      for (const auto target : test_support::kAllTargetKinds) {
        for (const auto of : {target, test_support::TargetKind::kTandem}) {
          made.push_back(
              test_support::random_target(random.next(), random.integer(1, 260), of, model->hmm));
        }
      }
      const auto targets = upload(made);
      requests.push_back({model, targets, all_of(*targets), {}});
      run();
    }
  }
  // Homologues, for which regions and envelopes come about; several models in one launch.
  const SearchData data = make_search_data(7, 6, 60, 150);
  const auto targets = upload(data.targets);
  for (const Hmm& hmm : data.models)
    requests.push_back({make_search_model(hmm), targets, all_of(*targets), {}});
  run();
  EXPECT_GT(regions, 20u);
  EXPECT_GT(envelopes, 15u);
}

TEST_F(DomainStageTest, WhatFindsNoRoomIsLeftToTheCpu) {
  const SearchData data = make_search_data(9, 3, 40, 150);
  const auto targets = upload(data.targets);
  bool some = false;
  for (const std::size_t kilobytes : {4, 16, 64, 256}) {
    auto stage = this->stage(kilobytes << 10);
    for (const Hmm& hmm : data.models) {
      gpu::DomainRequest request{make_search_model(hmm), targets, all_of(*targets), {}};
      gpu::DomainRequest* const pointer = &request;
      const auto result = stage->run({&pointer, 1}, kernels_, {});
      ASSERT_TRUE(result);
      const std::size_t parsed = compare(request, hmm.name);
      EXPECT_EQ(parsed, result->targets);
      EXPECT_TRUE(kilobytes > 4 || parsed < request.passed.size());
      some = some || (parsed > 0 && parsed < request.passed.size());
    }
  }
  EXPECT_TRUE(some);
}

TEST_F(DomainStageTest, AnswersOfAnEarlierLaunchAreNotTakenForThisOnes) {
  const SearchData data = make_search_data(7, 2, 60, 150);
  const auto targets = upload(data.targets);
  auto stage = this->stage(kWorkspace);
  gpu::DomainRequest request{make_search_model(data.models[1]), targets, all_of(*targets), {}};
  gpu::DomainRequest* const pointer = &request;
  ASSERT_TRUE(stage->run({&pointer, 1}, kernels_, {}));
  EXPECT_TRUE(request.parsed.front() != nullptr);
  fake_.on_launch = [](const FakeLaunch&) { return 0; };  // no warp comes to anything
  ASSERT_TRUE(stage->run({&pointer, 1}, kernels_, {}));
  for (const auto& parsed : request.parsed) EXPECT_TRUE(parsed == nullptr);
}

TEST_F(DomainStageTest, ImpossibleAnswersAreErrors) {
  const SearchData data = make_search_data(7, 2, 60, 150);
  const auto targets = upload(data.targets);
  auto stage = this->stage(kWorkspace);
  fake_.on_launch = [](const FakeLaunch& launch) {
    const int code = run_on_host(launch);
    const auto& batch = *static_cast<const hmmjit_device::DomainBatch*>(launch.parameters);
    if (launch.kernel == "parser_four_lane") {
      for (std::uint32_t i = 0; i < batch.models->target_count; ++i)
        batch.models->parsed[i].words = 0x7fffffffu;
    }
    return code;
  };
  gpu::DomainRequest request{make_search_model(data.models[1]), targets, all_of(*targets), {}};
  gpu::DomainRequest* const pointer = &request;
  const auto result = stage->run({&pointer, 1}, kernels_, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "a kernel returned impossible regions");
}

}  // namespace
}  // namespace hmmjit::tests
