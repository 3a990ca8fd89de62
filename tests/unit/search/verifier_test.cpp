// Which scores of a device are recomputed.
#include "search/verifier.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/threads.hpp"
#include "tests/support/random_profiles.hpp"

namespace hmmjit::search_run {
namespace {

using namespace test_support;

// A batch of targets with the scores that follow from a device's results.
class VerifierTest : public testing::Test {
 protected:
  VerifierTest() {
    job_->prepared = std::make_shared<PreparedModel>(begin_search_model(random_hmm(5, 60)));
    for (std::uint64_t n = 0; n < 24; ++n)
      residues_.push_back(random_target(
          n + 1, 200, n % 2 == 0 ? TargetKind::kTandem : TargetKind::kHomologous, job_->hmm()));
    for (const auto& target : residues_) local_.views.push_back({target, "target", {}, {}});
    local_.forward_nats.resize(residues_.size());
    local_.scores.resize(residues_.size());
    domain::Workspace workspace;
    domain::score_targets_batch(job_->forward(), local_.views, passes_, {}, workspace,
                                local_.forward_nats, local_.scores);
    parsed_.resize(residues_.size());
    for (const ParsedTarget& of_device : parsed_) local_.parsed.push_back(&of_device);
  }

  // Checks all targets and returns the number checked.
  std::uint64_t check(const domain::DomainOptions& alone) {
    SearchOptions options;
    options.verify = 1000;
    Verifier verifier(options, progress_, alone);
    const Status status = verifier.check_scores(*job_, local_, passes_, all_);
    SearchStatistics statistics;
    verifier.add_to(statistics);
    EXPECT_EQ(!status, progress_.wrong_kernel.load());
    if (!status) error_ = status.error().message;
    return statistics.verified;
  }

  const FlushToZeroScope flush_;
  const domain::PassesForward passes_ = [](std::size_t, float) { return true; };
  const domain::WantedTarget all_ = [](std::size_t, const domain::TargetScore&) { return true; };
  JobPtr job_ = std::make_shared<ModelJob>();
  std::vector<std::vector<Residue>> residues_;
  std::vector<ParsedTarget> parsed_;
  ThreadState local_;
  SearchProgress progress_;
  std::string error_;
};

TEST_F(VerifierTest, ChecksEveryTargetAskedFor) {
  EXPECT_EQ(check({}), residues_.size());
  EXPECT_FALSE(progress_.wrong_kernel);
  // The first difference ends the search.
  ASSERT_TRUE(local_.scores[0]);
  local_.scores[0]->bits += 1;
  EXPECT_EQ(check({}), 1u);
  EXPECT_TRUE(progress_.wrong_kernel);
}

TEST_F(VerifierTest, ADifferenceNamesThePartThatDiffers) {
  domain::Domain& domain = local_.scores[0]->domains.at(0);
  for (int* const end : {&domain.jenv, &domain.jali}) {
    const int was = (*end)++;
    check({});
    const auto of_device = fmt::format("-{}", *end), of_cpu = fmt::format("-{}", was);
    EXPECT_THAT(error_, testing::ContainsRegex("GPU .*" + of_device + ".*CPU .*" + of_cpu));
    *end = was;
  }
  domain.alignment.pp += '*';
  check({});
  EXPECT_THAT(error_, testing::HasSubstr(domain.alignment.pp + ", CPU "));
}

// A device's results need no matrix on the CPU, but recomputing them does.
TEST_F(VerifierTest, WhatThereIsNoMemoryForIsNotChecked) {
  domain::DomainOptions small;
  small.max_matrix_bytes = 1;
  EXPECT_EQ(check(small), 0u);
  EXPECT_FALSE(progress_.wrong_kernel);
}

}  // namespace
}  // namespace hmmjit::search_run
