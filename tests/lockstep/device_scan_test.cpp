// Searches of long targets whose SSV runs on a device, which is the kernel itself in lockstep over
// a fake driver: they find what the CPU finds, whatever becomes of the device.
#include "nucleotide/device_scan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "fake_driver/fake_driver.hpp"
#include "lockstep/catalogue.hpp"
#include "lockstep/lockstep.hpp"
#include "lockstep/registry.hpp"
#include "nucleotide/windows.hpp"
#include "reference/scans.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::nucleotide {
namespace {

using test_support::Random;
using test_support::TargetKind;
using tests::FakeDriver;
using tests::FakeLaunch;

Query query_of(std::uint64_t seed, int M) {
  Query query;
  query.model = make_search_model(
      test_support::random_hmm(seed, M, test_support::ModelKind::kTypical, dna_alphabet()));
  query.window_length = max_length(query.model->hmm, 1e-7);
  query.report.e_value = 1e6;
  return query;
}

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

// The kernel's instance that computes fewest positions, whatever the plan's constants are, unless
// the plan has tiles.
int run_kernel(const FakeLaunch& launch) {
  const auto [model_length, tiles] = [&] {
    const auto shape = [](const auto& p) { return std::pair(p.model_length, p.tile_count); };
    return is_viterbi(launch)
               ? shape(*static_cast<const hmmjit_device::WordFilterParams*>(launch.parameters))
               : shape(*static_cast<const hmmjit_device::ByteFilterParams*>(launch.parameters));
  }();
  const hmmjit_lockstep::KernelInstance* best = nullptr;
  for (const auto& instance : hmmjit_lockstep::kernel_instances()) {
    const int positions = hmmjit_lockstep::covered_by_entry(instance);
    const bool covers =
        tiles > 1 ? instance.at("kTiled") == 1 : positions >= static_cast<int>(model_length);
    if (instance.kernel == launch.kernel && covers &&
        (best == nullptr || positions < hmmjit_lockstep::covered_by_entry(*best)))
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
    explicit Kernels(int refused) : refused_(refused) {}

   private:
    Result<compile::KernelPtr> make(const plan::Plan& plan) override {
      if (plan.model_length == refused_) return fail(ErrorCode::kCompile, "no compiler");
      auto kernel = std::make_shared<compile::Kernel>();
      kernel->name = std::string(plan.chosen.variant->name) + std::to_string(plan.class_length);
      kernel->candidate = plan.chosen;
      kernel->image.entry_name = plan.chosen.variant->entry_name;
      kernel->image.bytes = "image";
      return kernel;
    }
    const int refused_;
  };

  DeviceScanSearch()
      : driver_({[] {
          plan::DeviceTraits device = *plan::find_device("H200");
          device.sm_count = 1;
          return device;
        }()}) {
    driver_.on_launch = run_kernel;
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
  Result<std::vector<HitList>> search(const Options& options, DeviceScan* device) const {
    Search search(models_, options, device);
    for (std::size_t n = 0; n < targets_.size();) {
      TargetBlock block;
      for (int i = 0; i < 3 && n < targets_.size(); ++i, ++n) {
        block.begin_target(std::to_string(n), "", "");
        block.append(targets_[n]);
        block.end_target();
      }
      HMMJIT_TRY(search.add(block));
    }
    viterbi_cells_.push_back(search.times().viterbi.cells);
    std::vector<HitList> lists;
    for (std::size_t m = 0; m < models_.size(); ++m) lists.push_back(search.finish(m));
    return lists;
  }

  void expect_the_cpus_results(const Options& options, DeviceScan& device,
                               std::size_t least_hits = 4) const {
    const auto want = search(options, nullptr), got = search(options, &device);
    ASSERT_TRUE(want && got) << got.error().to_string();
    for (std::size_t m = 0; m < models_.size(); ++m) {
      const HitList &a = (*want)[m], &b = (*got)[m];
      EXPECT_GE(a.hits.size(), least_hits);
      ASSERT_EQ(a.hits.size(), b.hits.size());
      for (std::size_t n = 0; n < a.hits.size(); ++n) {
        EXPECT_EQ(a.hits[n].domain, b.hits[n].domain) << m << " " << n;
        EXPECT_EQ(a.hits[n].subject->index, b.hits[n].subject->index);
      }
      for (const auto member : {&Counters::residues, &Counters::msv, &Counters::bias,
                                &Counters::viterbi, &Counters::forward})
        EXPECT_EQ(a.counters.*member, b.counters.*member);
    }
  }

  FakeDriver driver_;
  mutable std::vector<std::uint64_t> viterbi_cells_;  // that threads computed, by search
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
    EXPECT_EQ(s.launches, strands == Strands::kBoth ? 18u + 6u : 9u + 6u);
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
    EXPECT_EQ(s.models_declined, 0u);
    EXPECT_EQ(s.state, "ready");
  }
  EXPECT_THAT(warnings_, testing::IsEmpty());
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
      for (const int end = height + random_.integer(0, 2); score < end && k > 0;) prepend(false);
      for (int n = 0; n < 6 && k > 0; ++n) prepend(true);
      for (const int end = 128 + random_.integer(0, 3); score < end && k > 0;) prepend(false);
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
  const int calls = driver_.total_calls();
  for (int nth = calls / 2; nth > 60; nth -= calls / 9) {
    warnings_.clear();
    driver_.fail_from(driver_.total_calls() + nth, driver::code::kIllegalAddress);
    DeviceScan device(settings());
    expect_the_cpus_results(options, device);
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
  // For SSV, for windows.
  for (const std::size_t limit : {20000, 130000}) {
    warnings_.clear();
    driver_.memory_limit = limit;
    DeviceScan device(settings());
    expect_the_cpus_results(short_pieces(), device);
    EXPECT_EQ(device.statistics().launches > 0, limit > 20000);
    ASSERT_THAT(warnings_, testing::SizeIs(1));
    EXPECT_THAT(warnings_[0], testing::HasSubstr("going on with the CPU for some targets"));
  }
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

// Windows whose cells are below the threshold are not scanned.
TEST_F(DeviceScanSearch, WindowsWithoutAHitAreNotScanned) {
  driver_.on_launch = [](const FakeLaunch& launch) {
    if (!is_viterbi(launch)) return run_kernel(launch);
    const auto& p = *static_cast<const hmmjit_device::WordFilterParams*>(launch.parameters);
    std::fill_n(p.results, p.list.fixed_count, 0x8000u | hmmjit_device::kStatusScore << 16);
    return 0;
  };
  DeviceScan device(settings());
  const auto lists = search({}, &device);
  ASSERT_TRUE(lists);
  EXPECT_EQ(viterbi_cells_, std::vector<std::uint64_t>{0});
  for (const HitList& list : *lists) {
    EXPECT_GT(list.counters.bias, 0u);
    EXPECT_EQ(list.counters.viterbi, 0u);
  }
}

// Random models, targets and options on this machine's device.
TEST_F(DeviceScanSearch, FindsWhatTheCpuFindsOnADevice) {
  if (std::getenv("HMMJIT_TEST_DEVICE") == nullptr) GTEST_SKIP() << "needs a device";
  gpu::Settings real = settings();
  real.open_driver = {};
  real.open_kernels = {};
  for (int run = 0; run < 100; ++run) {
    random_ = Random(static_cast<std::uint64_t>(run) + 100);
    const int longest = run % 5 == 4 ? 3500 : 400;
    models_.clear();
    for (int m = 0; m < 3; ++m)
      models_.push_back(query_of(random_.next(), random_.integer(8, longest)));
    targets_ = targets_for(models_, random_, random_.integer(1, 40));
    Options options;
    options.block_length = random_.integer(0, 1) == 0 ? 50000 : 262144;
    options.F1 =
        std::array{0.001, 0.02, 0.02, 0.1}[static_cast<std::size_t>(random_.integer(0, 3))];
    options.strands = std::array{Strands::kBoth, Strands::kBoth, Strands::kTop,
                                 Strands::kBottom}[static_cast<std::size_t>(random_.integer(0, 3))];
    if (random_.integer(0, 1) == 0) options.partition = Partition::kSerial;
    options.threads = random_.integer(1, 16);
    DeviceScan device(real);
    expect_the_cpus_results(options, device, 0);
    const gpu::Statistics s = device.statistics();
    EXPECT_EQ(s.blocks_done, 3u) << s.reason;
    EXPECT_GT(s.launches, 0u);
    if (HasFailure()) FAIL() << "run " << run;
  }
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
