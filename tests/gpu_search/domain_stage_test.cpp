// The kernels behind the Forward filter, run in lockstep, against the CPU's domain stage: every
// score, region, cluster, envelope and alignment to the bit, on models and targets that pass no
// filter too. With HMMJIT_TEST_DEVICE set they are compiled for the first GPU and run there, also
// under compute-sanitizer.
#include "gpu/domain_stage.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "common/domain_params.h"
#include "core/threads.hpp"
#include "core/trace.hpp"
#include "domain/domain.hpp"
#include "domain/envelopes.hpp"
#include "domain/tables.hpp"
#include "gpu/kernel_source.hpp"
#include "host_kernels.hpp"
#include "io/hmm_file.hpp"
#include "io/sequence_file.hpp"
#include "lockstep/catalogue.hpp"
#include "pairs_fixture.hpp"
#include "plan/kernel_variant.hpp"
#include "search_fixture.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

const bool kOnDevice = std::getenv("HMMJIT_TEST_DEVICE") != nullptr;
#define NEEDS_FAKE_DRIVER() \
  if (kOnDevice) GTEST_SKIP() << "needs the fake driver"

class DomainStageTest : public testing::Test {
 protected:
  DomainStageTest() : fake_({*plan::find_device("H200")}) {
    fake_.on_launch = run_on_host;
    if (kOnDevice) {
      driver_ = driver::Driver::open();
      source_ = *gpu::open_kernel_source(driver_->report().version / 1000, {});
    } else {
      driver_ = driver::Driver::open(fake_.api());
    }
    device_ = *driver_->device(0);
    kernels_ = {kernel(plan::Stage::kParser), kernel(plan::Stage::kEnsemble),
                kernel(plan::Stage::kEnvelope)};
    origin_ = *driver::Event::create(device_, true);
    const auto stream = *driver::Stream::create(device_);
    EXPECT_TRUE(origin_.record(stream) && stream.synchronize());
  }
  void TearDown() override { EXPECT_EQ(fake_.calls("copy_behind_kernel"), 0); }

  // `variant`: that one, else the one these tests were written about. `length`: of the model that
  // it is made for.
  gpu::ReadyKernel kernel(plan::Stage stage, std::string_view variant = "four_lane",
                          int length = 240) {
    plan::PlanOptions options;
    options.variant = variant;
    const plan::Plan plan = *plan::make_plan(stage, length, 29, device_->traits(), options);
    const compile::KernelPtr made = kOnDevice ? *source_->get(plan) : fake_kernel(plan);
    auto loaded = *driver::LoadedKernel::load(driver_, made->image.bytes, made->image.entry_name);
    EXPECT_TRUE(loaded->prepare(*device_, made->candidate.expected.launch.block_threads,
                                made->candidate.expected.launch.dynamic_shared_bytes));
    return {{made, std::move(loaded), {.blocks_per_sm = 1}}, plan.alphabet_codes};
  }

  std::shared_ptr<gpu::DeviceTargets> upload(const std::vector<std::vector<Residue>>& targets) {
    block_ = block_of(targets);
    const std::vector<gpu::BlockRef> blocks{{1, block_}};
    auto packed = std::make_shared<gpu::PackedSegment>(gpu::pack_segment(blocks));
    auto uploader = *gpu::Uploader::create(device_);
    return *gpu::DeviceTargets::create(device_, packed, uploader);
  }

  // All requests in one launch.
  Result<gpu::DomainResult> run(gpu::DomainStage& stage, std::span<gpu::DomainRequest> requests,
                                const gpu::DomainLimits& limits = {}) {
    std::vector<gpu::DomainRequest*> pointers;
    for (gpu::DomainRequest& request : requests) pointers.push_back(&request);
    return stage.run(pointers, kernels_, limits, {});
  }
  Result<gpu::DomainResult> run(gpu::DomainStage& stage, gpu::DomainRequest& request,
                                const gpu::DomainLimits& limits = {}) {
    return run(stage, {&request, 1}, limits);
  }

  std::unique_ptr<gpu::DomainStage> stage(std::size_t workspace, gpu::Cascade::Resize resize = {}) {
    if (!resize) resize = [](std::size_t, std::size_t) -> Status { return {}; };
    return *gpu::DomainStage::create(device_, origin_, std::move(resize), workspace);
  }

  // All targets of the segment against the CPU alone. Returns how many were parsed.
  std::size_t compare(const gpu::DomainRequest& request, const std::string& what) {
    const FlushToZeroScope flush;
    const domain::ForwardTables tables(*request.model);
    domain::Workspace workspace;
    const auto& packed = request.targets->packed();
    std::vector<TargetView> views;
    std::vector<const ParsedTarget*> found;
    std::size_t parsed = 0;
    for (std::size_t n = 0; n < request.passed.size(); ++n) {
      const auto& origin = packed.origins[packed.targets.original[request.passed[n]]];
      views.push_back((*block_)[origin.index]);
      found.push_back(request.parsed.empty() ? nullptr : request.parsed[n].get());
      parsed += found.back() != nullptr;
    }
    // Together and one by one; with all alignments, and with those of some targets not wanted.
    for (const std::size_t at_once : {std::size_t{1}, views.size()}) {
      for (const bool choosy : {false, true}) {
        domain::WantedTarget wanted;
        if (choosy) wanted = [](std::size_t, const domain::TargetScore& s) { return s.bits > 5; };
        for (std::size_t first = 0; first < views.size(); first += at_once) {
          std::vector<float> nats[2];
          std::vector<std::optional<domain::TargetScore>> scores[2];
          for (const bool with : {false, true}) {
            nats[with].assign(at_once, 0.0f);
            scores[with].assign(at_once, std::nullopt);
            std::span<const ParsedTarget* const> known;
            if (with) known = std::span<const ParsedTarget* const>(found).subspan(first, at_once);
            domain::score_targets_batch(
                tables, std::span<const TargetView>(views).subspan(first, at_once),
                [](std::size_t, float) { return true; }, {}, workspace, nats[with], scores[with],
                wanted, known);
          }
          for (std::size_t n = 0; n < at_once; ++n) {
            const int L = views[first + n].length();
            EXPECT_TRUE(nats[0][n] == nats[1][n] ||
                        (std::isnan(nats[0][n]) && std::isnan(nats[1][n])))
                << what << " L " << L << ": " << nats[0][n] << ' ' << nats[1][n];
            EXPECT_TRUE(scores[0][n] == scores[1][n])
                << what << " L " << L << ", " << (scores[0][n] ? scores[0][n]->regions : -1)
                << " regions, of " << at_once << " targets" << (choosy ? ", some wanted" : "");
          }
        }
      }
    }
    return parsed;
  }

  // Models of these lengths with random targets; and those of a search with so many targets.
  void everything(const std::vector<int>& lengths, std::uint64_t homologues,
                  int longest_target = 260);

  static std::vector<std::uint32_t> all_of(const gpu::DeviceTargets& targets) {
    std::vector<std::uint32_t> out;
    // Backwards: the order of the request is not that of the launch.
    for (auto i = static_cast<std::uint32_t>(targets.packed().targets.size()); i-- > 0;)
      out.push_back(i);
    return out;
  }

  FakeDriver fake_;
  std::unique_ptr<gpu::KernelSource> source_;
  std::shared_ptr<driver::Driver> driver_;
  driver::DevicePtr device_;
  driver::Event origin_;
  gpu::DomainKernels kernels_;
  std::shared_ptr<TargetBlock> block_;
};

constexpr std::size_t kWorkspace = std::size_t{64} << 20;

void DomainStageTest::everything(const std::vector<int>& lengths, std::uint64_t homologues,
                                 int longest_target) {
  auto stage = this->stage(kWorkspace);
  std::uint64_t seed = 40, envelopes = 0, regions = 0, several = 0, sampled = 0, clusters = 0,
                scored_clusters = 0, degenerate = 0;
  std::vector<gpu::DomainRequest> requests;
  const auto run_all = [&] {
    const auto result = run(*stage, requests);
    ASSERT_TRUE(result) << result.error().to_string();
    envelopes += result->envelopes;
    for (const auto& request : requests) {
      EXPECT_EQ(compare(request, std::to_string(request.model->hmm.M)), request.passed.size());
      const gpu::PackedSegment& packed = request.targets->packed();
      for (std::size_t n = 0; n < request.parsed.size(); ++n) {
        const auto& parsed = request.parsed[n];
        if (parsed == nullptr) continue;
        const auto residues =
            (*block_)[packed.origins[packed.targets.original[request.passed[n]]].index].residues;
        regions += parsed->regions.size();
        for (const ParsedRegion& region : parsed->regions) {
          several += region.multidomain;
          if (!region.sampled) continue;
          ++sampled;
          degenerate +=
              std::any_of(residues.begin() + (region.first - 1), residues.begin() + region.last,
                          [&](Residue x) { return x >= request.model->hmm.alphabet->K; });
          clusters += region.sampled->clusters.size();
          for (const auto& cluster : region.sampled->clusters)
            scored_clusters += cluster.envelope.has_value();
        }
      }
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
          made.push_back(test_support::random_target(random, {1, longest_target}, of, model->hmm));
        }
      }
      const auto targets = upload(made);
      requests.push_back({model, targets, all_of(*targets), {}});
      run_all();
    }
  }
  if (homologues == 0) return;
  // Homologues, for which regions and envelopes come about; several models in one launch.
  const SearchData data = make_search_data(7, 6, static_cast<int>(homologues), 150);
  const auto targets = upload(data.targets);
  for (const Hmm& hmm : data.models)
    requests.push_back({make_search_model(hmm), targets, all_of(*targets), {}});
  run_all();
  EXPECT_GT(3 * regions, homologues);
  EXPECT_GT(4 * envelopes, homologues);
  EXPECT_GT(3 * several, homologues);
  EXPECT_GT(9 * sampled, 8 * several);
  EXPECT_GT(degenerate, 0u);
  EXPECT_GT(3 * clusters, homologues);
  EXPECT_GT(10 * scored_clusters, 9 * clusters);
}

TEST_F(DomainStageTest, EverythingIsTheCpusToTheBit) {
  // Lengths about stripes, about the length from which passes end early, and the longest of the
  // kernels compiled for this test.
  everything({1, 2, 3, 5, 8, 31, 99, 100, 101, 157, 240}, 60);
}

TEST_F(DomainStageTest, EverythingIsTheCpusToTheBitWithATargetABlock) {
  // Runs of two and three stripes a thread, full ones and others.
  for (const std::vector<int>& of_run : {std::vector{3, 31, 128, 200}, {381}}) {
    const int longest = std::ranges::max(of_run);
    kernels_.parser = kernel(plan::Stage::kParser, "four_warp", longest);
    kernels_.envelope = kernel(plan::Stage::kEnvelope, "four_warp", longest);
    everything(of_run, of_run.size() > 1 ? 3 : 0, 60);
  }
}

TEST_F(DomainStageTest, ThreadsWithManyStripesParseToTheBit) {
  // Runs whose cells fill two to five quads, with and without padding, and do not fill the last
  // lane.
  auto stage = this->stage(kWorkspace);
  for (const int M : {700, 1290, 1700, 2400}) {
    kernels_ = {kernel(plan::Stage::kParser, "four_warp", M), {}, {}};
    test_support::Random random(static_cast<std::uint64_t>(M));
    const auto model =
        test_support::random_model(random.next(), M, test_support::ModelKind::kTypical);
    std::vector<std::vector<Residue>> made;
    for (int n = 0; n < 4; ++n)
      made.push_back(test_support::random_target(random, {20, 60},
                                                 test_support::TargetKind::kTandem, model->hmm));
    const auto targets = upload(made);
    gpu::DomainRequest request{model, targets, all_of(*targets), {}};
    ASSERT_TRUE(run(*stage, request));
    EXPECT_EQ(compare(request, std::to_string(M)), made.size());
  }
}

TEST_F(DomainStageTest, EnvelopesWithEmissionsOfTheirOwnAreTheCpusToTheBit) {
  const FlushToZeroScope flush;
  for (const int M : {1, 31, 101, 240, 381}) {
    const bool long_model = M % 2 != 0 && M > 100;
    kernels_ = {{}, {}, kernel(plan::Stage::kEnvelope, long_model ? "four_warp" : "four_lane", M)};
    test_support::Random random(static_cast<std::uint64_t>(M));
    const auto model =
        test_support::random_model(random.next(), M, test_support::ModelKind::kTypical);
    const domain::ForwardTables tables(*model);
    const domain::ForwardTables::Tables& t = tables.tables();
    std::vector<std::vector<Residue>> made;
    for (int n = 0; n < 20; ++n)
      made.push_back(test_support::random_target(random, {1, 200},
                                                 test_support::TargetKind::kTandem, model->hmm));
    const auto targets = upload(made);
    // The model's odds times a factor of each envelope and code.
    const std::size_t row = static_cast<std::size_t>(t.Q) * domain::kLanes, codes = 29;
    domain::EmissionRows rows;
    rows.zero(domain::kCodeRows + made.size() * codes, t.Q);
    for (std::size_t n = 0; n < made.size() * codes; ++n) {
      const float factor = 0.75f + 0.05f * static_cast<float>(random.integer(0, 8));
      for (std::size_t cell = 0; cell < row; ++cell)
        rows.odds[(domain::kCodeRows + n) * row + cell] =
            t.emission.odds[n % codes * row + cell] * factor;
      rows.deletion_bound[domain::kCodeRows + n] = -1.0f;
    }
    gpu::DomainRequest request{model, targets, all_of(*targets), {}};
    const auto& packed = targets->packed();
    const auto first_row = [&](std::size_t n) {
      return domain::kCodeRows +
             packed.origins[packed.targets.original[request.passed[n]]].index * codes;
    };
    for (std::size_t n = 0; n < request.passed.size(); ++n)
      request.own.push_back({{rows.odds.data() + first_row(n) * row, codes * row},
                             {rows.deletion_bound.data() + first_row(n), codes}});
    const auto done = run(*stage(kWorkspace), request);
    ASSERT_TRUE(done) << done.error().to_string();
    EXPECT_EQ(done->envelopes, made.size());
    ASSERT_EQ(request.scored.size(), made.size());
    std::vector<domain::Job> jobs(made.size());
    for (std::size_t n = 0; n < made.size(); ++n) {
      const auto& residues = made[packed.origins[packed.targets.original[request.passed[n]]].index];
      jobs[n].residues = residues.data();
      jobs[n].L = static_cast<int>(residues.size());
      const LengthModel odds = length_model(jobs[n].L, false);
      jobs[n].loop = odds.loop;
      jobs[n].move = odds.move;
      jobs[n].first_row = static_cast<int>(first_row(n));
      jobs[n].owner = n;
    }
    domain::EnvelopeScorer scorer;
    domain::Aligner aligner;
    scorer.start(tables, rows, std::move(jobs), false, std::size_t{1} << 30);
    std::size_t aligned = 0;
    for (auto set = scorer.next(); !set.empty(); set = scorer.next()) {
      for (const domain::Job& job : set) {
        ASSERT_TRUE(request.scored[job.owner]) << M << " L " << job.L;
        const ScoredEnvelope& scored = *request.scored[job.owner];
        EXPECT_EQ(scored.forward_nats, scorer.forward_nats(job)) << M << " L " << job.L;
        EXPECT_EQ(scored.sound, job.decoded.sound);
        if (!scored.sound) continue;  // dropped
        EXPECT_EQ(scored.accuracy, job.decoded.accuracy);
        domain::Domain want, got;
        want.ienv = got.ienv = 1;
        EXPECT_EQ(aligner.align(scorer.choices(job), model->hmm, want),
                  aligner.align(t, rows, job.first_row, job.residues, scored, model->hmm, got));
        EXPECT_EQ(want, got);
        aligned += want.alignment.match.size() > 20;
      }
    }
    EXPECT_TRUE(M < 30 || aligned > 5) << aligned;
  }
}

// By hand: pairs of a model and a target of real data, a line each with both names, with time for
// all that the kernels take however large it is. In a search the time it leaves decides what they
// do.
TEST_F(DomainStageTest, RealPairs) {
  const char* const pairs = std::getenv("HMMJIT_TEST_PAIRS");
  const char* const models = std::getenv("HMMJIT_TEST_MODELS");
  const char* const sequences = std::getenv("HMMJIT_TEST_TARGETS");
  if (pairs == nullptr || models == nullptr || sequences == nullptr)
    GTEST_SKIP() << "HMMJIT_TEST_PAIRS, HMMJIT_TEST_MODELS and HMMJIT_TEST_TARGETS name files";
  std::map<std::string, std::set<std::string>> wanted;
  std::ifstream lines(pairs);
  for (std::string model, target; lines >> model >> target;) wanted[model].insert(target);
  auto reader = SequenceReader::open(std::string(sequences), {.alphabet = amino_alphabet()});
  ASSERT_TRUE(reader) << reader.error().to_string();
  TargetBlock all;
  while (*reader->read_block(all, std::uint64_t{1} << 40)) {
  }
  std::map<std::string, std::size_t> at;
  for (std::size_t i = 0; i < all.size(); ++i) at.emplace(all[i].name, i);
  auto hmms = HmmReader::open(models);
  ASSERT_TRUE(hmms) << hmms.error().to_string();
  std::uint64_t asked = 0, parsed = 0, regions = 0, envelopes = 0;
  for (;;) {
    auto hmm = hmms->next();
    ASSERT_TRUE(hmm) << hmm.error().to_string();
    if (!*hmm) break;
    const auto of = wanted.find((*hmm)->name);
    if (of == wanted.end()) continue;
    std::vector<std::vector<Residue>> residues;
    for (const std::string& name : of->second) {
      const auto found = at.find(name);
      ASSERT_NE(found, at.end()) << name;
      const TargetView view = all[found->second];
      residues.emplace_back(view.residues.begin(), view.residues.end());
    }
    kernels_.parser = kernel(plan::Stage::kParser, "four_lane", (*hmm)->M);
    kernels_.envelope = kernel(plan::Stage::kEnvelope, "four_lane", (*hmm)->M);
    const auto targets = upload(residues);
    gpu::DomainRequest request{make_search_model(**hmm), targets, all_of(*targets), {}};
    const auto done = run(*stage(std::size_t{1} << 30), request, {.launch_seconds = 1000});
    ASSERT_TRUE(done) << done.error().to_string();
    compare(request, (*hmm)->name);
    asked += residues.size();
    parsed += done->targets;
    regions += done->regions;
    envelopes += done->envelopes;
    std::cout << fmt::format("{}: {} of {} targets, {} regions, {} envelopes\n", (*hmm)->name,
                             parsed, asked, regions, envelopes)
              << std::flush;
  }
  EXPECT_GT(parsed, 0u);
}

// Cells of the envelopes that a launch finds, whoever computes them.
std::uint64_t cells_of_envelopes(const gpu::DomainRequest& request) {
  std::uint64_t rows = 0;
  for (const auto& target : request.parsed) {
    for (const ParsedRegion& region : target ? target->regions : std::vector<ParsedRegion>()) {
      if (!region.multidomain) rows += static_cast<unsigned>(region.last - region.first + 1);
      if (!region.sampled) continue;
      for (const auto& cluster : region.sampled->clusters)
        rows += static_cast<unsigned>(cluster.last - cluster.first + 1);
    }
  }
  return rows * static_cast<unsigned>(request.model->hmm.M);
}
std::uint64_t cells_counted(const gpu::DomainWorkDone& work) {
  return std::accumulate(work.host_cells.begin(), work.host_cells.end(), work.cells);
}

TEST_F(DomainStageTest, WhatFindsNoRoomIsLeftToTheCpu) {
  const SearchData data = make_search_data(9, 3, 40, 150);
  const auto targets = upload(data.targets);
  bool some = false;
  for (const std::size_t kilobytes : {4, 16, 64, 256}) {
    auto stage = this->stage(kilobytes << 10);
    for (const Hmm& hmm : data.models) {
      gpu::DomainRequest request{make_search_model(hmm), targets, all_of(*targets), {}};
      const auto result = run(*stage, request);
      ASSERT_TRUE(result);
      const std::size_t parsed = compare(request, hmm.name);
      EXPECT_EQ(parsed, result->targets);
      EXPECT_EQ(cells_of_envelopes(request), cells_counted(result->work[2]));
      EXPECT_TRUE(kilobytes > 4 || parsed < request.passed.size());
      some = some || (parsed > 0 && parsed < request.passed.size());
    }
  }
  EXPECT_TRUE(some);
}

TEST_F(DomainStageTest, WhatWouldTakeTooLongIsLeftToTheCpu) {
  const SearchData data = make_search_data(7, 3, 60, 150);
  const auto targets = upload(data.targets);
  auto stage = this->stage(kWorkspace);
  for (const Hmm& hmm : data.models) {
    gpu::DomainRequest request{make_search_model(hmm), targets, all_of(*targets), {}};
    ASSERT_TRUE(run(*stage, request, {.launch_seconds = 0}));
    EXPECT_EQ(compare(request, hmm.name), 0u);
    const std::vector<std::uint32_t>& lengths = targets->packed().targets.length;
    std::vector<std::uint32_t> sorted = lengths;
    std::ranges::sort(sorted);
    const auto cells = [&](std::uint64_t length) { return length * static_cast<unsigned>(hmm.M); };
    double seconds = 1e-6;
    const auto most_cells = [&] {
      return gpu::DomainStage::most_cells(kernels_.parser, *device_, gpu::extent_of(*request.model),
                                          seconds);
    };
    while (cells(sorted[sorted.size() / 2]) > most_cells()) seconds *= 1.1;
    const auto result = run(*stage, request, {.launch_seconds = seconds});
    ASSERT_TRUE(result) << result.error().to_string();
    const std::size_t parsed = compare(request, hmm.name);
    EXPECT_GE(parsed, lengths.size() / 4);
    EXPECT_LT(parsed, lengths.size());
    for (std::size_t n = 0; n < request.passed.size(); ++n) {
      EXPECT_TRUE(request.parsed[n] == nullptr ||
                  cells(lengths[request.passed[n]]) <= most_cells());
    }
  }
}

// A kernel serves models of many lengths, each at a rate of its own.
TEST_F(DomainStageTest, ExpectedTimesAreThoseOfTheModelsLength) {
  kernels_.parser = kernel(plan::Stage::kParser, "four_lane", 400);
  const SearchData data = make_search_data(7, 1, 60, 20);
  gpu::DomainRequest request{make_search_model(data.models.front()), upload(data.targets), {}, {}};
  request.passed = all_of(*request.targets);
  const gpu::ModelExtent extent = gpu::extent_of(*request.model);
  const auto stage = this->stage(kWorkspace);
  const auto result = run(*stage, request);
  ASSERT_TRUE(result) << result.error().to_string();
  const gpu::DomainWorkDone& parsed = result->work.front();
  ASSERT_GT(parsed.cells, 0u);
  plan::PlanOptions options;
  options.variant = "four_lane";
  const plan::Plan own = *plan::make_plan(plan::Stage::kParser, extent.positions,
                                          extent.alphabet_codes, device_->traits(), options);
  EXPECT_EQ(own.chosen.constants, kernels_.parser.candidate().constants);
  EXPECT_LT(own.chosen.predicted_gcups, 0.9 * kernels_.parser.candidate().predicted_gcups);
  EXPECT_NEAR(1e-9 * static_cast<double>(parsed.cells) / parsed.expected_seconds,
              own.chosen.predicted_gcups, 0.1 * own.chosen.predicted_gcups);
}

// The tables of long models exceed the upload of one launch: another launch takes the rest.
TEST_F(DomainStageTest, WhatALaunchHasNoRoomForIsLeftOut) {
  NEEDS_FAKE_DRIVER();
  const SearchModel model =
      *make_search_model(test_support::random_hmm(5, 1400, test_support::ModelKind::kTypical));
  kernels_.parser = kernel(plan::Stage::kParser, "four_lane", 1400);
  const auto shared = std::make_shared<const SearchModel>(model);
  const auto targets = upload({std::vector<Residue>(12, Residue{3})});
  auto stage = this->stage(kWorkspace);
  std::vector<gpu::DomainRequest> requests(gpu::DomainStage::kMostRequests);
  std::vector<gpu::DomainRequest*> pointers;
  for (gpu::DomainRequest& request : requests) {
    request = {shared, targets, all_of(*targets), {}};
    pointers.push_back(&request);
  }
  std::size_t launches = 0;
  while (!pointers.empty()) {
    ASSERT_TRUE(stage->run(pointers, kernels_, {}, {}));
    ASSERT_FALSE(pointers.front()->left_out);
    for (const gpu::DomainRequest* request : pointers)
      EXPECT_EQ(request->left_out, request->parsed.empty());
    std::erase_if(pointers, [](const gpu::DomainRequest* request) { return !request->left_out; });
    ++launches;
  }
  EXPECT_EQ(launches, 2u);
  for (const gpu::DomainRequest& request : requests) EXPECT_EQ(request.parsed.size(), 1u);
}

TEST_F(DomainStageTest, WhatDoesNotFitTakesNoRoomFromOthers) {
  NEEDS_FAKE_DRIVER();
  const SearchData data = make_search_data(7, 1, 4, 150);
  const auto targets = upload(data.targets);
  const auto model = make_search_model(data.models.front());
  // What follows the emissions of each takes half of the room that is left, if it stays there.
  const std::vector<float> too_many(std::size_t{2} << 20);
  std::vector<gpu::DomainRequest> requests;
  for (std::size_t floats = std::size_t{1} << 19; floats > 100; floats /= 2) {
    requests.push_back({model, targets, all_of(*targets), {}});
    requests.back().emissions = too_many;
    requests.back().bounds = std::span(too_many).first(floats);
  }
  requests.push_back({model, targets, all_of(*targets), {}});
  ASSERT_TRUE(run(*stage(kWorkspace), requests));
  for (const gpu::DomainRequest& request : requests)
    EXPECT_EQ(request.parsed.empty(), &request != &requests.back());
}

TEST_F(DomainStageTest, AnswersOfAnEarlierLaunchAreNotTakenForThisOnes) {
  NEEDS_FAKE_DRIVER();
  const SearchData data = make_search_data(7, 2, 60, 150);
  const auto targets = upload(data.targets);
  auto stage = this->stage(kWorkspace);
  gpu::DomainRequest request{make_search_model(data.models[1]), targets, all_of(*targets), {}};
  ASSERT_TRUE(run(*stage, request));
  EXPECT_TRUE(request.parsed.front() != nullptr);
  fake_.on_launch = [](const FakeLaunch&) { return 0; };  // no warp comes to anything
  ASSERT_TRUE(run(*stage, request));
  for (const auto& parsed : request.parsed) EXPECT_TRUE(parsed == nullptr);
}

TEST_F(DomainStageTest, EveryKernelOfTheCatalogueIsExecuted) {
  NEEDS_FAKE_DRIVER();
  EXPECT_THAT(hmmjit_lockstep::variants_without_instance(
                  {plan::Stage::kParser, plan::Stage::kEnsemble, plan::Stage::kEnvelope}),
              testing::IsEmpty())
      << "add constants for it to tests/gpu_search/CMakeLists.txt";
  const SearchData data = make_search_data(7, 2, 6, 100);
  const auto targets = upload(data.targets);
  for (gpu::ReadyKernel gpu::DomainKernels::*const member :
       {&gpu::DomainKernels::parser, &gpu::DomainKernels::ensemble,
        &gpu::DomainKernels::envelope}) {
    const gpu::ReadyKernel usual = kernels_.*member;
    for (const plan::KernelVariant& v : plan::variants_of(usual.candidate().variant->stage)) {
      kernels_.*member = kernel(v.stage, v.name);
      int launches = 0;
      fake_.on_launch = [&](const FakeLaunch& launch) {
        launches += launch.kernel == v.entry_name;
        return run_on_host(launch);
      };
      gpu::DomainRequest request{make_search_model(data.models[1]), targets, all_of(*targets), {}};
      ASSERT_TRUE(run(*stage(kWorkspace), request));
      EXPECT_GT(compare(request, std::string(v.name)), 0u);
      EXPECT_GT(launches, 0) << v.entry_name;
    }
    kernels_.*member = usual;
  }
}

// Kernels of long models, whose warps have room for fewer targets; models need not be as long.
TEST_F(DomainStageTest, EveryNumberOfTargetsInAWarpGivesTheSame) {
  const SearchData data = make_search_data(8, 2, 14, 120);
  const auto targets = upload(data.targets);
  for (const std::int64_t each : {4, 2, 1}) {
    for (const auto& [stage, member] :
         {std::pair(plan::Stage::kParser, &gpu::DomainKernels::parser),
          {plan::Stage::kEnvelope, &gpu::DomainKernels::envelope}}) {
      int length = 900;
      do {
        kernels_.*member = kernel(stage, "four_lane", length += 100);
      } while ((kernels_.*member).candidate().constants.at("kTargets") > each);
      ASSERT_EQ((kernels_.*member).candidate().constants.at("kTargets"), each) << length;
    }
    for (const Hmm& hmm : data.models) {
      gpu::DomainRequest request{make_search_model(hmm), targets, all_of(*targets), {}};
      const auto done = run(*stage(kWorkspace), request);
      ASSERT_TRUE(done) << done.error().to_string();
      EXPECT_GT(done->envelopes, 0u);
      const std::size_t parsed = compare(request, fmt::format("{} targets a warp", each));
      EXPECT_EQ(parsed, done->targets);
      EXPECT_GT(parsed, 8u);
    }
  }
}

// Sampled traces find tables of the model and of their rows in shared memory, or where they are
// when the warps leave no room.
TEST_F(DomainStageTest, TracesNeedNoRoomForTables) {
  NEEDS_FAKE_DRIVER();
  const SearchData data = make_search_data(7, 3, 30, 150);
  const auto targets = upload(data.targets);
  fake_.on_launch = [&](const FakeLaunch& launch) {
    auto batch = *static_cast<const hmmjit_device::DomainBatch*>(launch.parameters);
    EXPECT_EQ(batch.shared_floats, launch.shared_bytes / sizeof(float));
    batch.shared_floats = 0;
    FakeLaunch less = launch;
    less.parameters = &batch;
    return run_on_host(less);
  };
  auto stage = this->stage(kWorkspace);
  std::size_t sampled = 0;
  for (const Hmm& hmm : data.models) {
    gpu::DomainRequest request{make_search_model(hmm), targets, all_of(*targets), {}};
    ASSERT_TRUE(run(*stage, request));
    EXPECT_EQ(compare(request, "no room"), request.passed.size());
    for (const auto& parsed : request.parsed) {
      if (parsed == nullptr) continue;
      for (const ParsedRegion& region : parsed->regions) sampled += region.sampled.has_value();
    }
  }
  EXPECT_GT(sampled, 5u);
}

TEST_F(DomainStageTest, KernelsBeginWithTheLongestItemsAndAsManyAsFindRoom) {
  NEEDS_FAKE_DRIVER();
  namespace dev = hmmjit_device;
  const SearchData data = make_search_data(7, 3, 30, 150);
  const auto targets = upload(data.targets);
  for (const std::size_t kilobytes : {1024, 65536}) {
    std::size_t items = 0, at_once = 0;
    fake_.on_launch = [&](const FakeLaunch& launch) {
      const auto& batch = *static_cast<const dev::DomainBatch*>(launch.parameters);
      const bool regions = launch.kernel == "ensemble_four_lane";
      std::uint64_t reserved = 0;
      for (unsigned m = 0; launch.kernel != "parser_four_lane" && m < batch.count; ++m) {
        const dev::DomainParams& p = batch.models[m];
        const dev::u32 count = regions ? p.region_count : p.envelope_count;
        const dev::u32 most = regions ? p.most_regions : p.most_envelopes;
        EXPECT_EQ(count, regions ? p.counters->regions : p.counters->envelopes);
        std::set<dev::u32> listed;
        dev::u32 before = 0xffffffffu;
        for (dev::u32 n = 0; n < count; ++n) {
          const dev::u32 entry = (regions ? p.region_order : p.envelope_order)[n];
          if (entry >= count || !listed.insert(entry).second) return 1;
          const dev::RegionItem& item = (regions ? p.regions : p.envelopes)[entry];
          const dev::u32 length = item.last - item.first + 1;
          EXPECT_LE(length, before);
          before = length;
          // One of each model may always begin.
          if (n > 0 && n < most) {
            reserved += dev::reserved_units(regions ? dev::region_units(length, p.stripes)
                                                    : dev::envelope_units(length, p.stripes));
          }
        }
        items += count;
        at_once += most;
      }
      EXPECT_LE(reserved, (kilobytes << 10) / dev::kWorkspaceUnit);
      return run_on_host(launch);
    };
    auto stage = this->stage(kilobytes << 10);
    std::vector<gpu::DomainRequest> requests;
    for (const Hmm& hmm : data.models)
      requests.push_back({make_search_model(hmm), targets, all_of(*targets), {}});
    ASSERT_TRUE(run(*stage, requests));
    EXPECT_EQ(at_once < items, kilobytes == 1024);
  }
}

TEST_F(DomainStageTest, TheWorkspaceGrowsToWhatALaunchNeedsAndMemoryAllows) {
  NEEDS_FAKE_DRIVER();
  const SearchData data = make_search_data(7, 4, 12, 150);
  const auto targets = upload(data.targets);
  constexpr std::size_t kMost = gpu::DomainStage::kMostWorkspace;
  for (const std::size_t memory : {kMost, std::size_t{48} << 20}) {
    std::size_t taken = 0, most_at_once = 0;
    int times = 0;
    auto stage = this->stage(kMost, [&](std::size_t from, std::size_t to) -> Status {
      if (taken - from + to > gpu::DomainStage::bytes(memory))
        return fail(ErrorCode::kResources, "no more memory", "test");
      taken = taken - from + to;
      times += to > from;
      return {};
    });
    const std::size_t lists = taken;
    EXPECT_EQ(lists, gpu::DomainStage::bytes(0));
    fake_.on_launch = [&](const FakeLaunch& launch) {
      const auto& p = *static_cast<const hmmjit_device::DomainBatch*>(launch.parameters)->models;
      EXPECT_LE(std::size_t{p.workspace_units} * hmmjit_device::kWorkspaceUnit, taken - lists);
      EXPECT_EQ(fake_.device_of(p.workspace), 0);
      most_at_once = std::max<std::size_t>(most_at_once, p.most_envelopes);
      return run_on_host(launch);
    };
    // Few targets, then all: the second launch needs more, the third no more than that.
    std::vector<std::uint32_t> few = all_of(*targets);
    few.resize(2);
    std::size_t before = 0;
    for (const auto& passed : {few, all_of(*targets), all_of(*targets)}) {
      std::vector<gpu::DomainRequest> requests;
      for (const Hmm& hmm : data.models)
        requests.push_back({make_search_model(hmm), targets, passed, {}});
      before = taken;
      const auto result = run(*stage, requests);
      ASSERT_TRUE(result) << result.error().to_string();
      // One of the models: what it costs is the CPU's part.
      EXPECT_EQ(compare(requests[1], "grown"), passed.size());
    }
    EXPECT_EQ(taken, before);
    EXPECT_LE(taken, gpu::DomainStage::bytes(memory));
    EXPECT_GE(times, memory == kMost ? 3 : 2);  // lists, then workspaces
    EXPECT_GT(most_at_once, 0u);
  }
}

TEST_F(DomainStageTest, ImpossibleAnswersAreErrors) {
  NEEDS_FAKE_DRIVER();
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
  const auto result = run(*stage, request);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message, "a kernel returned impossible regions for model model1");
}

}  // namespace
}  // namespace hmmjit::tests
