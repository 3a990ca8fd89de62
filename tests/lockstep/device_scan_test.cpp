// Searches of long targets whose SSV runs on a device, which is the kernel itself in lockstep over
// a fake driver: they find what the CPU finds, whatever becomes of the device.
#include "nucleotide/device_scan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <future>
#include <system_error>

#include "common/domain_params.h"
#include "core/threads.hpp"
#include "fake_driver/fake_driver.hpp"
#include "lockstep/catalogue.hpp"
#include "lockstep/lockstep.hpp"
#include "lockstep/registry.hpp"
#include "nucleotide/windows.hpp"
#include "reference/scans.hpp"
#include "support/nucleotide_queries.hpp"

namespace hmmjit::nucleotide {
namespace {

using test_support::Random;
using test_support::TargetKind;
using tests::FakeDriver;
using tests::FakeLaunch;

// Short pieces, so that hits lie across their borders.
Options short_pieces() {
  Options options;
  options.block_length = 7000;
  return options;
}

// Random residues with copies of the models, of which some lie across the borders of pieces and of
// items; runs of N; degenerate residues.
std::vector<std::vector<Residue>> targets_for(const std::vector<Query>& models, Random& random,
                                              int scale = 1) {
  std::vector<std::vector<Residue>> targets;
  for (int length : {0, 30000, 64, 7, 12001, 3000, 0, 128}) {
    length *= scale;
    std::vector<Residue> residues = test_support::random_target(
        random.next(), length, TargetKind::kBackground, models[0].model->hmm);
    for (int at = 300; at + 500 < length; at += random.integer(700, 3000 * scale)) {
      const Hmm& hmm =
          models[static_cast<std::size_t>(random.integer(0, static_cast<int>(models.size()) - 1))]
              .model->hmm;
      auto copy = test_support::random_target(random.next(), 400, TargetKind::kTandem, hmm);
      if (random.integer(0, 1) == 0) {
        std::ranges::reverse(copy);
        for (Residue& x : copy) x = complements()[x];
      }
      std::ranges::copy(copy, residues.begin() + at);
      for (int n = 0; n < 5; ++n)
        residues[static_cast<std::size_t>(at + random.integer(0, 450))] =
            static_cast<Residue>(random.integer(5, 15));
      if (random.integer(0, 3) == 0) std::fill_n(residues.begin() + at + 150, 90, Residue{15});
    }
    targets.push_back(std::move(residues));
  }
  return targets;
}

bool is_viterbi(const FakeLaunch& launch) { return launch.kernel == "viterbi_wavefront"; }
bool is_parser(const FakeLaunch& launch) { return launch.kernel == "parser_four_lane"; }
bool is_ensemble(const FakeLaunch& launch) { return launch.kernel == "ensemble_four_lane"; }
bool is_envelope(const FakeLaunch& launch) { return launch.kernel.starts_with("envelope_"); }
bool is_domain(const FakeLaunch& launch) {
  return is_parser(launch) || is_ensemble(launch) || is_envelope(launch);
}

// With the blocks and the shared memory of the launch, but only the first warps of each block.
int run_domain_kernel(const FakeLaunch& launch) {
  const FlushToZeroScope flush;
  for (const auto& instance : hmmjit_lockstep::kernel_instances())
    if (instance.kernel == launch.kernel)
      hmmjit_lockstep::launch(launch.blocks, hmmjit_lockstep::threads_by_entry(instance),
                              launch.shared_bytes, [&] { instance.run(launch.parameters); });
  return 0;
}

// The kernel's instance that computes fewest positions, whatever the plan's constants are, unless
// the plan has tiles.
int run_kernel(const FakeLaunch& launch) {
  if (is_domain(launch)) return run_domain_kernel(launch);
  const auto [model_length, tiles] = [&] {
    const auto shape = [](const auto& p) { return std::pair(p.model_length, p.tile_count); };
    return is_viterbi(launch)
               ? shape(*static_cast<const hmmjit_device::WordFilterParams*>(launch.parameters))
               : shape(*static_cast<const hmmjit_device::ByteFilterParams*>(launch.parameters));
  }();
  const hmmjit_lockstep::KernelInstance* best = nullptr;
  for (const auto& instance : hmmjit_lockstep::kernel_instances()) {
    if (instance.kernel != launch.kernel) continue;
    const int positions = hmmjit_lockstep::covered_by_entry(instance);
    const bool covers =
        tiles > 1 ? instance.at("kTiled") == 1 : positions >= static_cast<int>(model_length);
    if (covers && (best == nullptr || positions < hmmjit_lockstep::covered_by_entry(*best)))
      best = &instance;
  }
  hmmjit_lockstep::launch(2, hmmjit_lockstep::threads_by_entry(*best),
                          hmmjit_lockstep::shared_bytes_by_entry(*best),
                          [&] { best->run(launch.parameters); });
  return 0;
}

class DeviceScanSearch : public testing::Test {
 protected:
  class Kernels final : public gpu::InstantKernelSource {
   public:
    explicit Kernels(int refused, std::string_view refused_name = "none")
        : refused_(refused), refused_name_(refused_name) {}

   private:
    Result<compile::KernelPtr> make(const plan::Plan& plan) override {
      if (plan.model_length == refused_ ||
          std::string_view(plan.chosen.variant->entry_name).starts_with(refused_name_))
        return fail(ErrorCode::kCompile, "no compiler");
      auto kernel = std::make_shared<compile::Kernel>();
      kernel->name = std::string(plan.chosen.variant->name) + std::to_string(plan.class_length);
      kernel->candidate = plan.chosen;
      kernel->image.entry_name = plan.chosen.variant->entry_name;
      kernel->image.bytes = "image";
      return kernel;
    }
    const int refused_;
    const std::string_view refused_name_;
  };

  DeviceScanSearch()
      : driver_({[] {
          plan::DeviceTraits device = *plan::find_device("H200");
          device.sm_count = 1;
          return device;
        }()}) {
    driver_.on_launch = [this](const FakeLaunch& launch) {
      ++launches_[is_domain(launch)];
      return run_kernel(launch);
    };
  }

  gpu::Settings settings(int refused = 0) {
    gpu::Settings out;
    out.demanded = true;
    out.wait_for_device = true;
    out.open_driver = [this] { return driver::Driver::open(driver_.api()); };
    out.open_kernels = [refused]() -> Result<std::unique_ptr<gpu::KernelSource>> {
      return std::make_unique<Kernels>(refused);
    };
    out.on_warning = [this](const std::string& text) { warnings_.push_back(text); };
    return out;
  }

  // Blocks of three targets.
  Result<std::vector<HitList>> search(const Options& options, DeviceScan* device,
                                      search_run::Verifier* verifier = nullptr) const {
    Search search(models_, options, device, verifier);
    std::vector<HitList> lists;
    for (std::size_t n = 0; n < targets_.size();) {
      TargetBlock block;
      for (int i = 0; i < 3 && n < targets_.size(); ++i, ++n) {
        block.begin_target(std::to_string(n), "", "");
        block.append(targets_[n]);
        block.end_target();
      }
      if (options.partition == Partition::kTargets) {
        Scan scan;
        HMMJIT_TRY(search.scan(block, scan));
        for (std::size_t i = 0; i < block.size(); ++i) lists.push_back(scan.finish(i));
      } else {
        HMMJIT_TRY(search.add(block));
      }
    }
    const Times times = search.times();
    viterbi_cells_.push_back(times.viterbi.cells);
    forward_cells_.push_back(times.domain.forward.cells);
    ensemble_cells_.push_back(times.domain.ensemble.cells);
    envelope_cells_.push_back(times.domain.envelope.cells);
    for (std::size_t m = 0; m < models_.size() && options.partition != Partition::kTargets; ++m)
      lists.push_back(search.finish(m));
    return lists;
  }

  void expect_the_cpus_results(const Options& options, DeviceScan& device,
                               std::size_t least_hits = 4) const {
    const auto want = search(options, nullptr);
    expect_results(want, search(options, &device), least_hits);
  }
  void expect_results(const Result<std::vector<HitList>>& want,
                      const Result<std::vector<HitList>>& got, std::size_t least_hits = 4) const {
    ASSERT_TRUE(want && got) << got.error().to_string();
    ASSERT_EQ(want->size(), got->size());
    for (std::size_t m = 0; m < want->size(); ++m) {
      const HitList &a = (*want)[m], &b = (*got)[m];
      EXPECT_GE(a.hits.size(), least_hits);
      ASSERT_EQ(a.hits.size(), b.hits.size());
      for (std::size_t n = 0; n < a.hits.size(); ++n) {
        EXPECT_EQ(a.hits[n].domain, b.hits[n].domain) << m << " " << n;
        EXPECT_EQ(a.hits[n].subject->index, b.hits[n].subject->index);
        EXPECT_EQ(a.hits[n].bottom, b.hits[n].bottom);
      }
      for (const auto member :
           {&FilterCounters::residues, &FilterCounters::msv, &FilterCounters::bias,
            &FilterCounters::viterbi, &FilterCounters::forward})
        EXPECT_EQ(a.counters.*member, b.counters.*member);
    }
    EXPECT_EQ(driver_.calls("copy_behind_kernel"), 0);
  }

  FakeDriver driver_;
  // That threads computed, by search.
  mutable std::vector<std::uint64_t> viterbi_cells_, forward_cells_, ensemble_cells_,
      envelope_cells_;
  std::array<std::atomic<int>, 2> launches_{};  // of filters, of the domain stage
  std::vector<std::string> warnings_;
  std::vector<Query> models_{query_of(1, 45), query_of(2, 128), query_of(3, 262)};
  Random random_{4};
  std::vector<std::vector<Residue>> targets_ = targets_for(models_, random_);
};

TEST_F(DeviceScanSearch, FindsWhatTheCpuFinds) {
  for (const Strands strands : {Strands::kBoth, Strands::kTop, Strands::kBottom}) {
    Options options = short_pieces();
    options.strands = strands;
    if (strands == Strands::kBoth) options.F1 = 0.1;
    if (strands == Strands::kTop) options.partition = Partition::kSerial;
    options.threads = strands == Strands::kBottom ? 3 : 1;
    DeviceScan device(settings());
    expect_the_cpus_results(options, device);
    const gpu::Statistics s = device.statistics();
    // Three blocks, three models; the residues of a block with the paddings between them. The last
    // block has no windows.
    EXPECT_EQ(s.blocks_done, 3u);
    EXPECT_EQ(launches_[0], strands == Strands::kBoth ? 18 + 6 : 9 + 6);
    EXPECT_EQ(s.launches, static_cast<std::uint64_t>(launches_[0] + launches_[1]));
    for (auto& count : launches_) count = 0;
    std::uint64_t rows = 5;
    for (const auto& target : targets_) rows += target.size();
    const auto cells = [&](gpu::Timed stage) {
      return s.stages[static_cast<std::size_t>(stage)].cells;
    };
    EXPECT_EQ(cells(gpu::Timed::kSsv),
              (strands == Strands::kBoth ? 2 : 1) * rows * (45 + 128 + 262));
    // All windows, of which threads scan those with a hit.
    const std::uint64_t by_cpu = viterbi_cells_[0], by_both = viterbi_cells_[1];
    viterbi_cells_.clear();
    EXPECT_EQ(cells(gpu::Timed::kViterbi), by_cpu);
    EXPECT_GT(by_both, 0u);
    EXPECT_LT(by_both, by_cpu) << by_both;
    // Threads parse only windows whose emissions change within them.
    EXPECT_GT(s.domain_stages[0].cells, 0u);
    EXPECT_LT(6 * forward_cells_[1], forward_cells_[0]) << forward_cells_[1];
    forward_cells_.clear();
    // And score only the envelopes of runs that began with emissions of before.
    EXPECT_GT(s.envelopes, 70u);
    EXPECT_GT(s.domain_stages[2].cells, 0u);
    EXPECT_EQ(s.domain_stages[2].host_cells, (decltype(s.domain_stages[2].host_cells){}));
    EXPECT_LT(6 * envelope_cells_[1], envelope_cells_[0]) << envelope_cells_[1];
    envelope_cells_.clear();
    EXPECT_EQ(s.models_declined, 0u);
    EXPECT_EQ(s.state, "ready");
  }
  EXPECT_THAT(warnings_, testing::IsEmpty());
}

// Every window passes: no Viterbi kernel is made, and none is asked for.
TEST_F(DeviceScanSearch, WithoutTheViterbiFilterNoWindowIsDecided) {
  Options options = short_pieces();
  options.F2 = 1;
  DeviceScan device(settings());
  expect_the_cpus_results(options, device);
  const gpu::Statistics s = device.statistics();
  EXPECT_EQ(s.stages[static_cast<std::size_t>(gpu::Timed::kViterbi)].cells, 0u);
  EXPECT_EQ(s.blocks_done, 3u);
  EXPECT_THAT(warnings_, testing::IsEmpty());
}

// Several domains in a region, as in arrays of repeats: sampled traces and clusters.
TEST_F(DeviceScanSearch, FindsWhatTheCpuFindsInRepeats) {
  models_ = {query_of(11, 45), query_of(12, 70)};
  for (auto& target : targets_) {
    for (std::size_t at = 0; at + 2000 < target.size(); at += 3000) {
      const Hmm& hmm = models_[at / 3000 % 2].model->hmm;
      auto array = test_support::random_target(random_.next(), 900, TargetKind::kTandem, hmm);
      // Residues are lost and exchanged.
      for (int n = 0; n < 250; ++n)
        array[static_cast<std::size_t>(random_.integer(0, 899))] =
            static_cast<Residue>(random_.integer(0, 3));
      for (int n = 0; n < 60; ++n)
        array.erase(array.begin() + random_.integer(0, static_cast<int>(array.size()) - 1));
      std::ranges::copy(array, target.begin() + static_cast<std::ptrdiff_t>(at));
    }
  }
  DeviceScan device(settings());
  expect_the_cpus_results(short_pieces(), device);
  EXPECT_GT(device.statistics().sampled, 10u);
  EXPECT_GT(device.statistics().envelopes, 10u);
  EXPECT_GT(ensemble_cells_[0], 0u);
  EXPECT_LT(2 * ensemble_cells_[1], ensemble_cells_[0]);
}

// nhmmscan: the emissions of each target are the models' own at its beginning.
TEST_F(DeviceScanSearch, FindsWhatTheCpuFindsInTargets) {
  for (const Strands strands : {Strands::kBoth, Strands::kBottom}) {
    Options options;
    options.partition = Partition::kTargets;
    options.strands = strands;
    options.threads = 2;
    DeviceScan device(settings());
    expect_the_cpus_results(options, device, 0);
    EXPECT_GT(device.statistics().parsed, 0u);
    EXPECT_LT(6 * forward_cells_[1], forward_cells_[0]) << forward_cells_[1];
    EXPECT_LT(6 * envelope_cells_[1], envelope_cells_[0]) << envelope_cells_[1];
    forward_cells_.clear();
    envelope_cells_.clear();
  }
}

// A device's answers are checked, by default the first one of each kernel.
TEST_F(DeviceScanSearch, ChecksTheDevice) {
  const auto want = search(short_pieces(), nullptr);
  for (const std::optional<int> verify : {std::optional<int>(), {0}, {40}}) {
    SearchOptions options;
    options.verify = verify;
    SearchProgress progress;
    search_run::Verifier verifier(options, progress, options.domain);
    DeviceScan device(settings());
    expect_results(want, search(short_pieces(), &device, &verifier));
    EXPECT_FALSE(progress.wrong_kernel);
    SearchStatistics statistics;
    verifier.add_to(statistics);
    EXPECT_GE(statistics.verified, verify ? *verify * 20u : 4u);
    EXPECT_TRUE(verify != 0 || statistics.verified == 0);
  }
}

// Answers that are a little too low, which loses hits.
TEST_F(DeviceScanSearch, KernelsThatComputeWrongScoresAreFound) {
  namespace dev = hmmjit_device;
  const auto spoil_domains = [](const FakeLaunch& launch) {
    const auto& batch = *static_cast<const dev::DomainBatch*>(launch.parameters);
    for (unsigned m = 0; m < batch.count; ++m) {
      const dev::DomainParams& p = batch.models[m];
      for (unsigned n = 0; is_parser(launch) && n < p.target_count; ++n)
        p.parsed[n].last_c *= 0.99f;
      for (unsigned n = 0; is_envelope(launch) && n < p.envelope_count; ++n)
        p.scored[n].last_c *= 0.99f;
    }
  };
  for (const std::string_view wrong : {"ssv", "viterbi", "parser", "envelope"}) {
    driver_.on_launch = [&](const FakeLaunch& launch) {
      run_kernel(launch);
      if (!launch.kernel.starts_with(wrong)) return 0;
      if (is_domain(launch)) {
        spoil_domains(launch);
      } else if (is_viterbi(launch)) {
        const auto& p = *static_cast<const dev::WordFilterParams*>(launch.parameters);
        for (unsigned n = 0; n < p.list.fixed_count; ++n)
          p.results[n] = (p.results[n] & 0xffff0000u) | ((p.results[n] - 1) & 0xffffu);
      } else {
        const auto& p = *static_cast<const dev::ByteFilterParams*>(launch.parameters);
        for (unsigned n = 0; n < p.item_count; ++n) {
          const dev::WorkItem& item = p.items[n];
          for (unsigned b = item.target + item.split; b < item.target + item.rows / dev::kBlockRows;
               ++b)
            if (p.block_best[b] > 0) --p.block_best[b];
        }
      }
      return 0;
    };
    SearchOptions options;
    options.verify = 64;
    SearchProgress progress;
    search_run::Verifier verifier(options, progress, options.domain);
    DeviceScan device(settings());
    const auto found = search(short_pieces(), &device, &verifier);
    ASSERT_FALSE(found) << wrong;
    EXPECT_TRUE(progress.wrong_kernel) << wrong;
    EXPECT_THAT(found.error().message, testing::HasSubstr("GPU and CPU differ at the "));
    const bool domains = wrong == "parser" || wrong == "envelope";
    EXPECT_THAT(found.error().where, testing::HasSubstr(domains          ? "four_lane"
                                                        : wrong == "ssv" ? "multi_lane_blocks"
                                                                         : "wavefront"));
    EXPECT_THAT(warnings_, testing::IsEmpty());
  }
}

// What a device does not answer for, after either round.
TEST_F(DeviceScanSearch, EnvelopesWithoutAnAnswerAreLeftToTheCpu) {
  std::atomic<unsigned> number = 0;
  driver_.on_launch = [&](const FakeLaunch& launch) {
    run_kernel(launch);
    if (!is_envelope(launch)) return 0;
    const auto& batch = *static_cast<const hmmjit_device::DomainBatch*>(launch.parameters);
    for (unsigned m = 0; m < batch.count; ++m) {
      const hmmjit_device::DomainParams& p = batch.models[m];
      for (unsigned n = 0; n < p.envelope_count; ++n)
        if (++number % 3 == 0) p.scored[n].status = hmmjit_device::kLeftToHost;
    }
    return 0;
  };
  DeviceScan device(settings());
  expect_the_cpus_results(short_pieces(), device);
  EXPECT_GT(envelope_cells_[1], 0u);
  EXPECT_LT(envelope_cells_[1], envelope_cells_[0]);
  const auto host = [&](const DeviceScan& of, gpu::HostReason why) {
    return of.statistics().domain_stages[2].host_cells[static_cast<std::size_t>(why)];
  };
  EXPECT_GT(host(device, gpu::HostReason::kTime), envelope_cells_[1]);  // with other scores

  driver_.on_launch = [](const FakeLaunch& launch) { return run_kernel(launch); };
  envelope_cells_.clear();
  gpu::Settings without = settings();
  without.open_kernels = []() -> Result<std::unique_ptr<gpu::KernelSource>> {
    return std::make_unique<Kernels>(0, "envelope");
  };
  DeviceScan other(without);
  expect_the_cpus_results(short_pieces(), other);
  EXPECT_EQ(envelope_cells_[0], envelope_cells_[1]);
  EXPECT_GT(host(other, gpu::HostReason::kKind), envelope_cells_[1]);
}

// A diagonal with two hits: the scan begins anew after the first, and reaches the second in the
// first row of a block, in which the plain recurrence exceeds a byte and the diagonal ends.
TEST_F(DeviceScanSearch, RowsAfterAByteOverflowAreScanned) {
  constexpr int kBorder = 12 * hmmjit_device::kBlockRows;
  for (int repeat = 0; repeat < 8; ++repeat) {
    const int M = random_.integer(110, 260);
    const Query query = query_of(random_.next(), M);
    const SearchModel& model = *query.model;
    const auto gain = [&](int x, int k) {
      return model.bytes.bias - model.bytes.cost[static_cast<std::size_t>(x * M + k)];
    };
    const int height = random_.integer(45, 60);
    std::vector<Residue> target = test_support::random_target(random_.next(), 24 * kBorder,
                                                              TargetKind::kBackground, model.hmm);
    for (int border = kBorder; border < 24 * kBorder; border += kBorder) {
      int k = M - random_.integer(2, 20), at = border + 1, score = 0;
      // The residue at `at` that gains most, or that loses least.
      const auto choose = [&](int node, bool loses) {
        int best = -1;
        for (int x = 0; x < 4; ++x)
          if ((!loses || gain(x, node) < 0) && (best < 0 || gain(x, node) > gain(best, node)))
            best = x;
        target[static_cast<std::size_t>(at)] = static_cast<Residue>(best);
        return gain(best, node);
      };
      for (int n = 0; n < 4; ++n) target[static_cast<std::size_t>(at + n)] = Residue{15};
      const auto prepend = [&](bool loses) {
        --at, --k;
        score += choose(k, loses);
      };
      const auto prepend_until = [&](int end) {
        while (score < end && k > 0) prepend(false);
      };
      prepend_until(height + random_.integer(0, 2));
      for (int n = 0; n < 6 && k > 0; ++n) prepend(true);
      prepend_until(128 + random_.integer(0, 3));
    }
    TargetBlock block;
    block.begin_target("t", "", "");
    block.append(target);
    block.end_target();
    BlockStrands strands;
    strands.assign(block, false, 1);
    DeviceScan device(settings());
    device.use_models({{&model, height}}, true, false);
    device.begin_block(strands.top(), 1);
    const auto marks = device.marks(0);
    ASSERT_NE(marks, nullptr);
    std::vector<cpu::MarkedRows> rows;
    const Piece whole{0, 1, static_cast<std::int64_t>(target.size())};
    marks->append(strands.part(0, whole, query.window_length, false), 0, rows);
    ASSERT_TRUE(device.end_block());
    const reference::SsvScan scan{.threshold = 100 + height, .begin = 100, .floor = 100};
    cpu::FilterScratch scratch;
    std::vector<cpu::FoundDiagonal> found;
    cpu::FilterTables(model).ssv_scan(model.bytes, scan, {{target}}, scratch, found, &rows);
    std::vector<reference::Diagonal> got;
    for (const auto& f : found) got.push_back(f.diagonal);
    EXPECT_EQ(got, reference::ssv_scan(model.bytes, scan, target)) << repeat << " M " << M;
    EXPECT_GT(got.size(), 20u);
    EXPECT_LT(rows.size(), 60u);
  }
}

// Cells below the threshold are what the device is for.
TEST_F(DeviceScanSearch, RowsThatTheDeviceDoesNotMarkAreNotScanned) {
  driver_.on_launch = [](const FakeLaunch& launch) {
    const auto& p = *static_cast<const hmmjit_device::ByteFilterParams*>(launch.parameters);
    for (std::uint32_t i = 0; i < p.item_count; ++i)
      std::fill_n(p.block_best + p.items[i].target, p.items[i].rows / hmmjit_device::kBlockRows, 0);
    return 0;
  };
  DeviceScan device(settings());
  const auto lists = search({}, &device);
  ASSERT_TRUE(lists);
  for (const HitList& list : *lists) EXPECT_EQ(list.counters.msv, 0u);
}

TEST_F(DeviceScanSearch, GoesOnWithoutALostDevice) {
  const Options options = short_pieces();
  {
    DeviceScan device(settings());
    ASSERT_TRUE(search(options, &device));
  }
  const auto want = search(options, nullptr);
  const int calls = driver_.total_calls();
  for (int nth = calls / 2; nth > 60; nth -= calls / 9) {
    warnings_.clear();
    driver_.fail_from(driver_.total_calls() + nth, driver::code::kIllegalAddress);
    DeviceScan device(settings());
    expect_results(want, search(options, &device));
    EXPECT_EQ(device.statistics().state, "failed");
    ASSERT_THAT(warnings_, testing::SizeIs(1)) << nth;
    EXPECT_THAT(warnings_[0], testing::StartsWith("device 0 is given up: "));
    driver_.fail_from(0, 0);
  }
}

TEST_F(DeviceScanSearch, TheCpuTakesModelsWithoutAKernel) {
  DeviceScan device(settings(128));
  expect_the_cpus_results(short_pieces(), device);
  EXPECT_EQ(device.statistics().models_declined, 3u);
  ASSERT_THAT(warnings_, testing::SizeIs(1));
  EXPECT_THAT(warnings_[0], testing::StartsWith("no kernel for some models"));
}

TEST_F(DeviceScanSearch, TargetsBeyondTheDevicesMemoryAreLeftToTheCpu) {
  // For SSV, for windows, for their domains.
  for (const std::size_t limit : {20000, 130000, 4 << 20}) {
    warnings_.clear();
    driver_.memory_limit = limit;
    DeviceScan device(settings());
    expect_the_cpus_results(short_pieces(), device);
    EXPECT_EQ(device.statistics().launches > 0, limit > 20000);
    ASSERT_THAT(warnings_, testing::SizeIs(1));
    EXPECT_THAT(warnings_[0], testing::HasSubstr("going on with the CPU for some targets"));
  }
}

TEST_F(DeviceScanSearch, MemoryIsCountedAndBounded) {
  for (const std::uint64_t vram : {0, 1 << 16, 200'000'000}) {
    gpu::Settings bounded = settings();
    bounded.vram = vram;
    DeviceScan device(bounded);
    expect_the_cpus_results(short_pieces(), device);
    const std::uint64_t peak = device.statistics().peak_device_bytes;
    EXPECT_LE(peak, vram > 0 ? vram : peak);
    EXPECT_EQ(peak > gpu::DomainStage::kLeastWorkspace, vram != 1 << 16);
  }
}

// The first kernels find no memory. Later blocks request them again.
TEST_F(DeviceScanSearch, KernelsThatFindNoMemoryAreRequestedAgain) {
  class LateMemory final : public gpu::InstantKernelSource {
    Result<compile::KernelPtr> make(const plan::Plan& plan) override {
      if (made_++ < 2) return fail(ErrorCode::kResources, "no memory");
      return kernels_.get(plan);
    }
    Kernels kernels_{0};
    std::atomic<int> made_ = 0;
  };
  models_.resize(1);
  gpu::Settings late = settings();
  late.open_kernels = []() -> Result<std::unique_ptr<gpu::KernelSource>> {
    return std::make_unique<LateMemory>();
  };
  DeviceScan device(late);
  expect_the_cpus_results(short_pieces(), device);
  EXPECT_EQ(device.statistics().blocks_done, 2u);
  EXPECT_GT(launches_[0], 0);
  EXPECT_EQ(device.statistics().models_declined, 0u);
  EXPECT_THAT(warnings_, testing::SizeIs(1));
}

// The longest model takes two tiles.
TEST_F(DeviceScanSearch, BestCellsAreTheHighestThatTheScanFinds) {
  models_.push_back(query_of(5, 1300));
  for (const Query& query : models_) {
    const SearchModel& model = *query.model;
    std::vector<std::span<const Residue>> windows;
    for (const auto& target : targets_)
      for (std::size_t at = 0; at + 900 < target.size(); at += 700)
        windows.push_back(std::span(target).subspan(
            at, static_cast<std::size_t>(random_.integer(1, random_.integer(1, 900)))));
    DeviceScan device(settings());
    device.use_models({{&model, 0, query.window_length}}, true, false);
    device.begin_block(targets_[1], 1);
    ASSERT_TRUE(device.takes_windows(0));
    device.request_cells(0, layout::pack_targets(windows));
    const auto best = device.best_cells(0);
    ASSERT_NE(best, nullptr);
    ASSERT_TRUE(device.end_block());
    std::size_t known = 0, longer = 0;
    for (std::size_t n = 0; n < windows.size(); ++n) {
      if ((*best)[n] == kUnknownCell) continue;
      ++known;
      longer += windows[n].size() > static_cast<std::size_t>(query.window_length);
      const int move = model.words.move(
          viterbi_length(static_cast<std::int64_t>(windows[n].size()), query.window_length));
      const auto found = [&](int threshold) {
        return !reference::viterbi_scan(model.words, move, threshold, windows[n]).empty();
      };
      EXPECT_TRUE(found((*best)[n])) << n;
      EXPECT_FALSE(found((*best)[n] + 1)) << n;
    }
    EXPECT_GT(known, windows.size() / 3);
    EXPECT_EQ(longer > 0, query.window_length < 900);
    EXPECT_EQ(device.statistics().launches, model.hmm.M > 1000 ? 2u : 1u);
  }
}

std::shared_ptr<const TargetBlock> windows_of(std::span<const std::vector<Residue>> targets) {
  auto windows = std::make_shared<TargetBlock>();
  for (const auto& target : targets) {
    for (std::size_t at = 0; at + 300 < target.size(); at += 450) {
      windows->begin_target("", "", "");
      windows->append(std::span(target).subspan(at, 200 + at % 100));
      windows->end_target();
    }
  }
  return windows;
}

TEST_F(DeviceScanSearch, WindowsAreParsedWithTheEmissionsOfTheRequest) {
  const FlushToZeroScope flush;
  const auto driver = driver::Driver::open(driver_.api());
  Kernels source(0);
  gpu::Counters counters;
  const gpu::Settings settings = this->settings();
  ScanMemory memory(settings);
  WindowParser parser(*driver->device(0), driver, source, counters, settings, memory);
  const auto windows = windows_of(std::span(targets_).first(2));
  std::vector<TargetView> views;
  for (std::size_t n = 0; n < windows->size(); ++n) views.push_back((*windows)[n]);
  std::vector<std::unique_ptr<DomainModel>> domains;
  for (std::size_t m = 0; m < models_.size(); ++m) {
    domains.push_back(std::make_unique<DomainModel>(*models_[m].model, models_[m].window_length));
    // Other odds than the model's, of one residue.
    const auto own = domains[m]->emissions.after(0);
    const domain::ForwardTables::Tables& t = domains[m]->tables.tables();
    auto state = std::make_shared<EmissionState>();
    state->rows.zero(domain::kCodeRows, t.Q);
    const std::size_t row = static_cast<std::size_t>(t.Q) * domain::kLanes;
    for (std::size_t n = 0; n < domain::kCodeRows * row; ++n)
      state->rows.odds.data()[n] = own->rows.odds.data()[n] * (n < row ? 1.01f : 1.0f);
    std::fill_n(state->rows.deletion_bound.data(), domain::kCodeRows, -1.0f);
    parser.request(m, {models_[m].model, {own, std::move(state)}, windows, 42, 1});
  }
  domain::Workspace workspace;
  for (std::size_t m = 0; m < models_.size(); ++m) {
    const auto found = parser.parsed(m);
    ASSERT_TRUE(found != nullptr && found->size() == 2);
    std::vector<std::vector<float>> scores;
    for (const ParsedWindows& windows_parsed : *found) {
      ASSERT_EQ(windows_parsed.windows.size(), views.size());
      std::vector<const ParsedTarget*> parsed;
      for (const auto& window : windows_parsed.windows) parsed.push_back(window.get());
      EXPECT_THAT(parsed, testing::Each(testing::NotNull()));
      // Scores, and envelopes with their regions.
      const auto find = [&](std::span<const ParsedTarget* const> known) {
        const domain::EmissionRows& rows = windows_parsed.emissions->rows;
        std::vector<float> nats(views.size());
        std::vector<std::vector<domain::FoundEnvelope>> envelopes(views.size());
        domain::find_envelopes_batch(
            domains[m]->tables, rows, rows, views, [](std::size_t, float) { return true; }, {},
            workspace, nats, envelopes, known);
        std::vector<std::array<std::size_t, 4>> places;
        for (std::size_t n = 0; n < envelopes.size(); ++n)
          for (const auto& e : envelopes[n])
            places.push_back(
                {n, static_cast<std::size_t>(e.first), static_cast<std::size_t>(e.last), e.region});
        return std::pair(nats, places);
      };
      const auto want = find({}), got = find(parsed);
      EXPECT_EQ(want, got);
      EXPECT_GT(want.second.size(), 5u);
      scores.push_back(got.first);
    }
    EXPECT_NE(scores[0], scores[1]);
    EXPECT_EQ(parser.parsed(m), nullptr);  // after its last use
  }
  EXPECT_TRUE(parser.finish());
}

TEST_F(DeviceScanSearch, WindowsThatWaitForAKernelAreTakenBack) {
  class LateKernels final : public gpu::InstantKernelSource {
   public:
    void request(const plan::Plan&, int, Made made) override { made_.set_value(std::move(made)); }
    Made requested() { return made_.get_future().get(); }

   private:
    Result<compile::KernelPtr> make(const plan::Plan&) override { return nullptr; }
    std::promise<Made> made_;
  };
  const auto driver = driver::Driver::open(driver_.api());
  LateKernels source;
  gpu::Counters counters;
  gpu::Settings settings = this->settings();
  settings.wait_for_device = false;
  ScanMemory memory(settings);
  WindowParser parser(*driver->device(0), driver, source, counters, settings, memory);
  const Query& query = models_[0];
  DomainModel model(*query.model, query.window_length);
  parser.request(0, {query.model, {model.emissions.after(0)}, windows_of(targets_), 42, 2});
  const auto made = source.requested();
  EXPECT_EQ(parser.parsed(0), nullptr);
  EXPECT_EQ(parser.parsed(0), nullptr);
  EXPECT_TRUE(parser.finish());
  made(fail(ErrorCode::kCompile, "no compiler"));
}

TEST_F(DeviceScanSearch, WindowsWhoseKernelsFindNoMemoryAreTakenBackAtOnce) {
  class NoMemory final : public gpu::InstantKernelSource {
   public:
    std::atomic<int> asked = 0;

   private:
    Result<compile::KernelPtr> make(const plan::Plan&) override {
      ++asked;
      return fail(ErrorCode::kResources, "no memory");
    }
  } source;
  const auto driver = driver::Driver::open(driver_.api());
  gpu::Counters counters;
  const gpu::Settings settings = this->settings();
  ScanMemory memory(settings);
  WindowParser parser(*driver->device(0), driver, source, counters, settings, memory);
  const Query& query = models_[0];
  DomainModel model(*query.model, query.window_length);
  for (std::size_t m = 0; m < 3; ++m) {
    parser.request(m, {query.model, {model.emissions.after(0)}, windows_of(targets_), 42, 1});
    EXPECT_EQ(parser.parsed(m), nullptr);
  }
  EXPECT_TRUE(parser.finish());
  EXPECT_LE(source.asked, 3 * 3);  // requests and lanes
}

TEST_F(DeviceScanSearch, FindsWhatTheCpuFindsWhereAThreadIsRefused) {
  driver_.on_call = [](const char* member, int) -> int {
    if (std::string_view(member) == "event_create")
      throw std::system_error(EAGAIN, std::generic_category());
    return 0;
  };
  gpu::Settings relaxed = settings();
  relaxed.demanded = false;
  DeviceScan device(relaxed);
  expect_the_cpus_results({}, device);
  driver_.on_call = {};
}

TEST_F(DeviceScanSearch, FailsWithoutADemandedDevice) {
  driver_.init_code = driver::code::kNoDevice;
  DeviceScan device(settings());
  EXPECT_FALSE(search({}, &device));
  gpu::Settings relaxed = settings();
  relaxed.demanded = false;
  DeviceScan other(relaxed);
  expect_the_cpus_results({}, other);
  EXPECT_THAT(warnings_, testing::IsEmpty());
}

}  // namespace
}  // namespace hmmjit::nucleotide
