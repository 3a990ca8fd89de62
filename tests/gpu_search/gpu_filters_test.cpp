// What devices do, pair by pair, whatever becomes of their memory and of the devices themselves:
// which pairs they claim, deliver and leave to others, and what they say of them. No result of a
// search can show that: the threads of a search make it right whatever a device leaves out.
#include "gpu/gpu_filters.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <future>
#include <set>
#include <thread>

#include "gpu/stream_wait.hpp"
#include "host_kernels.hpp"
#include "pairs_fixture.hpp"
#include "search_fixture.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

using namespace std::chrono_literals;

// Long enough for a busy machine, short compared with the time limit of a test.
constexpr auto kPatience = 100s;

// Owns models, blocks and the board as a search does, but leaves all pairs to the devices.
class Owner final : public gpu::Client {
  const std::unique_ptr<gpu::GpuFilters> own_;

 public:
  using Pair = std::pair<ModelId, BlockId>;
  struct Delivered {
    ModelId model;
    std::vector<BlockId> blocks;
    std::vector<gpu::FilteredBlock> results;
  };
  explicit Owner(gpu::GpuFilters& given) : gpu(given) {}
  // With devices of its own, which it has once they are ready.
  explicit Owner(gpu::Settings settings, const gpu::HostLoad& load = kBusy)
      : own_(std::make_unique<gpu::GpuFilters>(std::move(settings))), host(load), gpu(*own_) {
    wait_until_started(gpu);
    attach();
  }

  void attach() { gpu.attach(*this, board_, {}); }
  void add_model(ModelId id, std::shared_ptr<const SearchModel> model) {
    models[id] = model;
    gpu.add_model(id, std::move(model));
  }
  // From now on pairs of the block can be offered.
  void announce_block(BlockId id, std::shared_ptr<TargetBlock> block) {
    blocks[id] = std::move(block);
    board_.add_block(id);
  }
  void add_announced_block(BlockId id) { gpu.add_block({id, blocks.at(id)}); }
  void add_block(BlockId id, std::shared_ptr<TargetBlock> block) {
    announce_block(id, std::move(block));
    add_announced_block(id);
  }
  void offer(ModelId model, BlockId block) {
    {
      const std::lock_guard lock(mutex_);
      offered_.insert({model, block});
    }
    board_.open(model, block, blocks.at(block));
    gpu.look_at_board();
    // Where no device will have the model any more, the pair is the owner's from the start.
    if (!board_.is_open(model, block)) left_to_owner(model, block);
  }
  void offer_all() {
    for (const auto& [model, m] : models)
      for (const auto& [block, b] : blocks) offer(model, block);
  }
  void do_all() {
    gpu.end_blocks();
    offer_all();
    EXPECT_TRUE(wait());
    gpu.detach();
  }
  // As if a thread of the owner had done it.
  void take(ModelId model, BlockId block) {
    EXPECT_EQ(board_.take_for_host(model, block), blocks.at(block));
    gpu.pair_taken();
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(offered_.erase({model, block}), 1u);
  }
  // False when some pairs are neither done nor left to the owner in time.
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, [&] { return offered_.empty(); });
  }
  bool wait_until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(1ms);
    }
    return true;
  }
  // A thread that has nothing else to do.
  std::jthread idle_thread() {
    return std::jthread([this](const std::stop_token& stop) {
      for (; !stop.stop_requested(); std::this_thread::sleep_for(1ms)) gpu.backfill(host);
    });
  }
  // All that was delivered, against the CPU.
  DecisionCounts expect_cpu(const gpu::FilterLimits& limits = {}) {
    const std::lock_guard lock(mutex_);
    DecisionCounts sum;
    for (const Delivered& delivery : deliveries) {
      std::vector<std::shared_ptr<TargetBlock>> of;
      for (const BlockId id : delivery.blocks) of.push_back(blocks.at(id));
      const DecisionCounts counts =
          expect_cpu_decisions(*models.at(delivery.model), of, std::vector<bool>(of.size(), true),
                               delivery.results, limits);
      sum.survivors += counts.survivors;
      sum.open += counts.open;
      sum.passed += counts.passed;
      sum.failed_forward += counts.failed_forward;
    }
    return sum;
  }
  std::size_t delivered() {
    const std::lock_guard lock(mutex_);
    return done_.size();
  }
  // A pair offered now falls back to the owner at once, without a notification.
  void expect_left(ModelId model, BlockId block) {
    board_.open(model, block, blocks.at(block));
    EXPECT_FALSE(board_.is_open(model, block));
    EXPECT_NE(board_.take_for_host(model, block), nullptr);
  }
  std::set<ModelId> models_left() const {
    std::set<ModelId> out;
    for (const auto& [model, block] : left) out.insert(model);
    return out;
  }

  std::map<ModelId, std::shared_ptr<const SearchModel>> models;
  std::map<BlockId, std::shared_ptr<TargetBlock>> blocks;
  std::vector<Delivered> deliveries;
  std::vector<Pair> left;  // to the owner's threads
  int stops = 0, early_deliveries = 0;
  /// Called with what comes early, without a lock.
  std::function<void(const std::vector<gpu::Delivery>&)> on_early;
  /// The load of its threads, as a device sees it.
  static constexpr gpu::HostLoad kBusy{.waiting = std::numeric_limits<std::size_t>::max()};
  const gpu::HostLoad host = kBusy;
  gpu::GpuFilters& gpu;

 private:
  void deliver(ModelId model, std::vector<gpu::Delivery> pairs, bool early) override {
    if (early) return deliver_early(model, std::move(pairs));
    {
      const std::lock_guard lock(mutex_);
      Delivered& delivery = deliveries.emplace_back();
      delivery.model = model;
      for (gpu::Delivery& pair : pairs) {
        EXPECT_TRUE(pair.claim) << "delivered without a claim";
        EXPECT_EQ(pair.claim.model(), model);
        const BlockId id = pair.claim.block();
        EXPECT_EQ(pair.claim.targets(), blocks.at(id));
        EXPECT_EQ(offered_.erase({model, id}), 1u) << "delivered, but not offered";
        EXPECT_TRUE(done_.insert({model, id}).second) << "delivered twice";
        pair.claim.finish();
        add_early({model, id}, pair.found);
        delivery.blocks.push_back(id);
        delivery.results.push_back(std::move(pair.found));
      }
    }
    changed_.notify_all();
  }
  void left_to_owner(ModelId model, BlockId block) {
    {
      const std::lock_guard lock(mutex_);
      // Begun by a device, or seen here before by the other way.
      if (board_.take_for_host(model, block) == nullptr) return;
      EXPECT_EQ(offered_.erase({model, block}), 1u) << "left, but not offered";
      left.push_back({model, block});
    }
    changed_.notify_all();
  }
  void deliver_early(ModelId model, std::vector<gpu::Delivery> pairs) {
    if (on_early) on_early(pairs);
    const std::lock_guard lock(mutex_);
    for (gpu::Delivery& pair : pairs) {
      const auto at =
          std::ranges::find(blocks, pair.targets, [](const auto& b) { return b.second; });
      ASSERT_NE(at, blocks.end());
      EXPECT_TRUE(offered_.contains({model, at->first})) << "early, but not offered";
      early_[{model, at->first}].push_back(std::move(pair.found));
    }
    ++early_deliveries;
  }
  // Merges early deliveries with the rest.
  void add_early(const Pair& pair, gpu::FilteredBlock& found) {
    const auto early = early_.find(pair);
    if (early == early_.end()) return;
    std::map<std::uint32_t, std::shared_ptr<const ParsedTarget>> passed;
    const auto add = [&](const gpu::FilteredBlock& part) {
      for (std::size_t i = 0; i < part.passed.size(); ++i) {
        const bool first =
            passed.emplace(part.passed[i], part.parsed.empty() ? nullptr : part.parsed[i]).second;
        EXPECT_TRUE(first) << "a target delivered twice";
      }
    };
    add(found);
    for (gpu::FilteredBlock& part : early->second) {
      add(part);
      found.open.insert(found.open.end(), part.open.begin(), part.open.end());
    }
    found.passed.clear();
    found.parsed.clear();
    for (auto& [index, parsed] : passed) {
      found.passed.push_back(index);
      found.parsed.push_back(std::move(parsed));
    }
    early_.erase(early);
  }
  gpu::HostLoad load() const override { return host; }
  void stopped(const Error&, bool) override {
    const std::lock_guard lock(mutex_);
    ++stops;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<Pair> offered_, done_;
  std::map<Pair, std::vector<gpu::FilteredBlock>> early_;
  WorkBoard board_{[this](ModelId model, BlockId block) { left_to_owner(model, block); }};
};

constexpr gpu::HostLoad kOneIdleThread{
    .threads = 1, .cell_seconds = 1e-9, .filter_seconds_left = 1};

struct Sizes {
  int devices = 1;
  std::uint64_t segment_residues = 20'000;
  int lanes = gpu::Settings().lanes;
  bool wait_for_device = true;
};

class GpuFiltersTest : public testing::Test {
 protected:
  GpuFiltersTest() : driver_({h200(), h200()}) {
    driver_.on_launch = [this](const FakeLaunch& launch) { return run_there(launch); };
  }
  static plan::DeviceTraits h200() { return *plan::find_device("H200"); }

  // A kernel reads the memory of its own device only.
  int run_there(const FakeLaunch& launch) {
    ++launches_[static_cast<std::size_t>(launch.device)];
    if (!launch.kernel.ends_with("_four_lane")) {  // of which each has a batch of models
      const auto& database = *static_cast<const hmmjit_device::DatabaseView*>(launch.parameters);
      EXPECT_EQ(driver_.device_of(database.residues), launch.device) << launch.kernel;
      EXPECT_EQ(driver_.device_of(database.start), launch.device) << launch.kernel;
    }
    return run_on_host(launch);
  }

  gpu::Settings settings(const Sizes& sizes = {}) {
    gpu::Settings out = fake_settings(driver_, sizes.devices);
    out.segment_residues = sizes.segment_residues;
    out.lanes = sizes.lanes;
    out.wait_for_device = sizes.wait_for_device;
    out.open_kernels = [this]() -> Result<std::unique_ptr<gpu::KernelSource>> {
      return scripted_kernels(script_);
    };
    out.on_warning = [this](const std::string& text) {
      const std::lock_guard lock(mutex_);
      warnings_.push_back(text);
    };
    return out;
  }
  // The domain stage's kernels run in lockstep: most tests do without.
  static KernelScript::Fate no_domain_stage(const plan::Plan& plan) {
    return plan.stage >= plan::Stage::kParser ? KernelScript::kFails : KernelScript::kCached;
  }
  static KernelScript::Fate late_domain_stage(const plan::Plan& plan) {
    return plan.stage >= plan::Stage::kParser ? KernelScript::kLate : KernelScript::kCached;
  }

  static std::vector<std::shared_ptr<const SearchModel>> some_models(int count, int longest = 60) {
    std::vector<std::shared_ptr<const SearchModel>> out;
    for (int i = 0; i < count; ++i) {
      const int M = 5 + (longest - 5) * i / std::max(1, count - 1);
      out.push_back(test_support::random_model(static_cast<std::uint64_t>(i), M));
    }
    return out;
  }
  static std::shared_ptr<TargetBlock> block_for(
      const std::vector<std::shared_ptr<const SearchModel>>& models, std::uint64_t seed) {
    std::vector<std::vector<Residue>> targets;
    test_support::Random random(seed);
    for (std::size_t m = 0; m < models.size(); m += 1 + models.size() / 6) {
      const Hmm& hmm = models[m]->hmm;
      for (const double identity : {0.4, 0.6, 0.9})
        targets.push_back(fragment_of(hmm, random.next(), 1, hmm.M, identity));
    }
    for (int i = 0; i < 6; ++i)
      targets.push_back(test_support::random_target(
          random, {0, 300}, test_support::TargetKind::kBackground, models.front()->hmm));
    targets.emplace_back();
    return block_of(targets, seed * 1000);
  }
  // Models 1 to `models`, and a block of targets of which an idle thread gets three at a time.
  static void fill_with_homologues(Owner& owner, ModelId models) {
    const Hmm hmm = test_support::random_hmm(3, 250, test_support::ModelKind::kTypical);
    for (ModelId model = 1; model <= models; ++model)
      owner.add_model(model, std::make_shared<const SearchModel>(*make_search_model(hmm)));
    std::vector<std::vector<Residue>> targets;
    for (std::uint64_t seed = 0; seed < 12; ++seed)
      targets.push_back(test_support::random_target(seed, 6'000 + 50 * static_cast<int>(seed),
                                                    test_support::TargetKind::kHomologous, hmm));
    owner.add_block(1, block_of(targets, 0));
  }
  // Further blocks for as many models, all of which are offered.
  static void offer_further(gpu::GpuFilters& gpu, Owner& owner, int count, BlockId first,
                            BlockId last) {
    const auto models = some_models(count);
    for (BlockId b = first; b <= last; ++b) owner.add_block(b, block_for(models, b));
    gpu.end_blocks();
    for (ModelId m = 0; m < models.size(); ++m)
      for (BlockId b = first; b <= last; ++b) owner.offer(m, b);
  }
  static std::vector<std::shared_ptr<const SearchModel>> add_models(Owner& owner, int count,
                                                                    int longest = 60) {
    const auto made = some_models(count, longest);
    for (std::size_t m = 0; m < made.size(); ++m) owner.add_model(m, made[m]);
    return made;
  }
  static void fill(Owner& owner, int models, int blocks) {
    const auto made = add_models(owner, models);
    for (int b = 1; b <= blocks; ++b)
      owner.add_block(static_cast<std::uint64_t>(b),
                      block_for(made, static_cast<std::uint64_t>(b)));
  }

  void expect_all_declined() {
    Owner owner(settings({.lanes = 1}));
    const gpu::GpuFilters& gpu = owner.gpu;
    fill(owner, 5, 4);
    owner.do_all();
    EXPECT_EQ(owner.models_left().size(), 5u);
    EXPECT_EQ(owner.left.size(), 20u);
    EXPECT_EQ(gpu.statistics().models_declined, 5u);
    EXPECT_EQ(owner.delivered(), 0u);
    EXPECT_EQ(gpu.statistics().launches, 0u);
    EXPECT_THAT(gpu.statistics().reason, testing::Not(testing::IsEmpty()));
    EXPECT_EQ(owner.stops, 0);
  }

  FakeDriver driver_;
  KernelScript script_;
  std::array<std::atomic<int>, 2> launches_{};  // by device
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};

TEST_F(GpuFiltersTest, DoesEveryPairOnceWheneverItIsOffered) {
  for (const int devices : {1, 2}) {
    for (const bool started : {false, true}) {
      for (const bool early : {false, true}) {
        // The domain stage's kernels run in lockstep, which takes most of the time.
        const bool domains = started && early;
        script_.fate = domains ? nullptr : no_domain_stage;
        launches_[0] = launches_[1] = 0;
        script_.asked.clear();
        gpu::GpuFilters gpu(settings({.devices = devices, .segment_residues = 4'000}));
        if (started) wait_until_started(gpu);
        Owner owner(gpu);
        owner.attach();
        if (early) {
          // Offers of blocks that are in no segment yet.
          // Two classes, whose domain stages have kernels of their own.
          const auto made = add_models(owner, 9, domains ? 280 : 60);
          for (std::uint64_t b = 1; b <= 6; ++b) {
            owner.announce_block(b, block_for(made, b));
            for (std::size_t m = 0; m < made.size(); ++m) owner.offer(m, b);
            owner.add_announced_block(b);
          }
          gpu.end_blocks();
        } else {
          fill(owner, 9, 6);
          gpu.end_blocks();
          owner.offer_all();
        }
        EXPECT_TRUE(owner.wait()) << devices << started << early;
        gpu.detach();
        const gpu::Statistics statistics = gpu.statistics();
        EXPECT_EQ(owner.delivered(), 54u);
        EXPECT_EQ(statistics.blocks_done, 54u);
        EXPECT_THAT(owner.left, testing::IsEmpty());
        EXPECT_EQ(statistics.blocks_given_back, 0u);
        EXPECT_EQ(statistics.models_declined, 0u);
        EXPECT_EQ(statistics.evictions, 0u);
        EXPECT_GE(statistics.segments, static_cast<std::uint64_t>(devices));
        EXPECT_GE(statistics.chains, 9 * statistics.segments);
        // Models of a class share their kernels, and each kernel is loaded once.
        std::set<std::string> kernels;
        for (const plan::Plan& plan : script_.asked) {
          if (domains || no_domain_stage(plan) == KernelScript::kCached)
            kernels.insert(fake_kernel(plan)->name);
        }
        EXPECT_TRUE(
            owner.wait_until([&] { return gpu.statistics().distinct_kernels == kernels.size(); }));
        // Half of the targets each.
        EXPECT_GT(launches_[0], 0);
        EXPECT_EQ(launches_[1] > 0, devices == 2);
        // Every stage counts what it has seen.
        const DecisionCounts counts = owner.expect_cpu();
        EXPECT_EQ(statistics.passed, counts.passed);
        EXPECT_EQ(statistics.open, counts.open);
        // A chain that begins while pairs of its segment are still being offered computes all of
        // it.
        EXPECT_GE(statistics.survivors, counts.survivors);
        if (statistics.chains == 9 * statistics.segments) {
          EXPECT_EQ(statistics.survivors, counts.survivors);
        }
        EXPECT_EQ(statistics.forward, counts.passed + counts.failed_forward);
        EXPECT_EQ(statistics.parsed, domains ? counts.passed : 0u);
        EXPECT_GT(statistics.viterbi, 0u);
        EXPECT_GT(counts.passed, 20u);
        EXPECT_LT(counts.open, counts.survivors / 5);
        if (HasFailure()) FAIL() << devices << started << early;
      }
    }
  }
  EXPECT_THAT(warnings_, testing::IsEmpty());
}

// Threads of the owner are faster at some of a segment's blocks.
TEST_F(GpuFiltersTest, SaysNothingOfBlocksThatOthersHaveTaken) {
  script_.fate = no_domain_stage;
  for (const unsigned mask : {0x2au, 0x15u, 0x01u, 0x20u, 0x3fu}) {
    Owner owner(settings());
    gpu::GpuFilters& gpu = owner.gpu;
    fill(owner, 8, 6);
    // Taken before a lane can claim them, since blocks without a segment are on no device.
    for (std::uint64_t m = 0; m < 8; ++m) {
      for (std::uint64_t b = 1; b <= 6; ++b) {
        owner.offer(m, b);
        if ((mask >> (b - 1) & 1u) != 0 && m % 3 != 0) owner.take(m, b);
      }
    }
    gpu.end_blocks();
    EXPECT_TRUE(owner.wait());
    gpu.detach();
    EXPECT_THAT(owner.left, testing::IsEmpty());
    EXPECT_EQ(gpu.statistics().blocks_given_back, 0u);
    EXPECT_EQ(gpu.statistics().state, "ready") << gpu.statistics().reason;
    const std::uint64_t taken = 5u * static_cast<unsigned>(std::popcount(mask));
    EXPECT_EQ(owner.delivered(), 48 - taken);
    EXPECT_EQ(gpu.statistics().blocks_done, 48 - taken);
    EXPECT_GT(owner.expect_cpu().passed, 5u);
  }
}

// Every image is refused, that which is made again too; or no SSV kernel can be compiled.
TEST_F(GpuFiltersTest, ModelsWithoutAKernelAreDeclinedOnceAndNotTried) {
  driver_.refuses = [](const std::string&) { return true; };
  expect_all_declined();
  driver_.refuses = nullptr;
  script_.fate = [](const plan::Plan& plan) {
    return plan.stage == plan::Stage::kSsv ? KernelScript::kFails : KernelScript::kCached;
  };
  expect_all_declined();
}

// They are still being compiled when the filters have long ended, as with an empty cache.
TEST_F(GpuFiltersTest, TargetsWaitForTheKernelsOfTheDomainStage) {
  script_.fate = late_domain_stage;
  Owner owner(settings());
  gpu::GpuFilters& gpu = owner.gpu;
  fill(owner, 4, 3);
  gpu.end_blocks();
  owner.offer_all();
  // More where a lane claims pairs of a model while others are being offered.
  ASSERT_TRUE(owner.wait_until([&] { return gpu.statistics().chains >= 4; }));
  std::this_thread::sleep_for(20ms);
  EXPECT_LT(owner.delivered(), 12u);
  EXPECT_EQ(gpu.statistics().parsed, 0u);
  script_.finish();
  EXPECT_TRUE(owner.wait());
  gpu.detach();
  EXPECT_EQ(owner.delivered(), 12u);
  const DecisionCounts counts = owner.expect_cpu();
  EXPECT_GT(counts.passed, 5u);
  EXPECT_EQ(gpu.statistics().parsed, counts.passed);
}

// Not the whole chain at once, of which the device could do most.
TEST_F(GpuFiltersTest, IdleThreadsAreGivenPartsOfAChain) {
  script_.fate = late_domain_stage;
  Owner owner(settings({.wait_for_device = false}), kOneIdleThread);
  gpu::GpuFilters& gpu = owner.gpu;
  std::jthread idle = owner.idle_thread();
  fill_with_homologues(owner, 1);
  gpu.end_blocks();
  owner.offer_all();
  EXPECT_TRUE(owner.wait());
  idle = {};
  gpu.detach();
  EXPECT_EQ(owner.delivered(), 1u);
  EXPECT_EQ(gpu.statistics().parsed, 0u);
  const DecisionCounts counts = owner.expect_cpu();
  EXPECT_GE(counts.passed, 9u);
  EXPECT_GE(owner.early_deliveries, 2);  // of three targets each
}

TEST_F(GpuFiltersTest, AtTheEndOfASearchThreadsScoreFewTargets) {
  Owner owner(settings({.wait_for_device = false}), {.threads = 16, .cell_seconds = 1e-9});
  const gpu::GpuFilters& gpu = owner.gpu;
  fill_with_homologues(owner, 1);
  owner.do_all();
  EXPECT_EQ(owner.early_deliveries, 0);
  EXPECT_EQ(gpu.statistics().parsed, 0u);
  EXPECT_GT(gpu.statistics()
                .domain_stages[0]
                .host_cells[static_cast<std::size_t>(gpu::HostReason::kTime)],
            0u);
  EXPECT_GE(owner.expect_cpu().passed, 9u);
}

TEST_F(GpuFiltersTest, HalvesOfASegmentThatDoesNotFitKeepItsModels) {
  script_.fate = no_domain_stage;
  std::atomic<bool> refuse{false};
  driver_.on_call = [&](const char* member, int) {
    return std::string(member) == "memory_allocate" && refuse.exchange(false)
               ? driver::code::kOutOfMemory
               : 0;
  };
  Owner owner(settings({.segment_residues = 1 << 30, .lanes = 1}));
  gpu::GpuFilters& gpu = owner.gpu;
  fill(owner, 5, 4);
  gpu.end_blocks();
  owner.offer_all();
  ASSERT_TRUE(owner.wait());
  // The lane has what it needs: the next memory asked for is that of the second segment.
  refuse = true;
  offer_further(gpu, owner, 5, 5, 8);
  EXPECT_TRUE(owner.wait());
  gpu.detach();
  EXPECT_FALSE(refuse);
  EXPECT_EQ(gpu.statistics().blocks_done, 40u);
  EXPECT_EQ(gpu.statistics().blocks_given_back, 0u);
  EXPECT_EQ(owner.delivered(), 40u);
  EXPECT_THAT(warnings_, testing::ElementsAre(testing::HasSubstr("smaller pieces")));
  owner.expect_cpu();
}

// It must not claim pairs that it cannot do: they would all fall to the CPU.
TEST_F(GpuFiltersTest, ALaneWithoutMemoryForASegmentLeavesItToTheOthers) {
  script_.fate = no_domain_stage;
  std::mutex mutex;
  std::condition_variable changed;
  bool begun = false, refused = false;
  std::thread::id loader, starved;
  driver_.on_call = [&](const char* member, int) {
    const std::lock_guard lock(mutex);
    if (!begun || std::string(member) != "memory_allocate") return 0;
    const std::thread::id me = std::this_thread::get_id();
    if (loader == std::thread::id()) loader = me;
    if (me == loader || (starved != std::thread::id() && me != starved)) return 0;
    starved = me;
    refused = true;
    changed.notify_all();
    return driver::code::kOutOfMemory;
  };
  driver_.on_launch = [&](const FakeLaunch& launch) {
    {
      std::unique_lock lock(mutex);
      EXPECT_TRUE(changed.wait_for(lock, kPatience, [&] { return !begun || refused; }));
    }
    return run_there(launch);
  };
  Owner owner(settings({.segment_residues = 1 << 30, .lanes = 2}));
  gpu::GpuFilters& gpu = owner.gpu;
  fill(owner, 12, 1);
  gpu.end_blocks();
  owner.offer_all();
  ASSERT_TRUE(owner.wait());
  {
    const std::lock_guard lock(mutex);
    begun = true;
  }
  offer_further(gpu, owner, 12, 2, 9);
  EXPECT_TRUE(owner.wait());
  gpu.detach();
  EXPECT_EQ(owner.delivered(), 108u);
  EXPECT_EQ(gpu.statistics().blocks_given_back, 0u);
  EXPECT_THAT(warnings_, testing::ElementsAre(testing::HasSubstr("fewer chains at a time")));
  owner.expect_cpu();
}

TEST_F(GpuFiltersTest, ASegmentThatNoLaneHasMemoryForIsLeftToTheOwner) {
  script_.fate = no_domain_stage;
  std::atomic<bool> begun{false};
  std::atomic<int> allocated{0};
  driver_.on_call = [&](const char* member, int) {
    constexpr int kOfSegment = 10;  // buffers; then come those of lanes
    const bool refuses =
        begun && std::string(member) == "memory_allocate" && allocated++ >= kOfSegment;
    return refuses ? driver::code::kOutOfMemory : 0;
  };
  Owner owner(settings({.segment_residues = 1 << 30, .lanes = 2}));
  gpu::GpuFilters& gpu = owner.gpu;
  fill(owner, 5, 1);
  gpu.end_blocks();
  owner.offer_all();
  ASSERT_TRUE(owner.wait());
  begun = true;
  offer_further(gpu, owner, 5, 2, 9);
  EXPECT_TRUE(owner.wait());
  gpu.detach();
  EXPECT_EQ(owner.delivered(), 5u);
  EXPECT_EQ(owner.left.size(), 40u);
  EXPECT_EQ(gpu.statistics().blocks_given_back, 0u);
  EXPECT_EQ(gpu.statistics().state, "ready");
}

TEST_F(GpuFiltersTest, PairsOfALostDeviceGoToTheOther) {
  script_.fate = no_domain_stage;
  std::atomic<int> failed{0};
  driver_.on_launch = [&](const FakeLaunch& launch) {
    if (launch.device == 1 && ++failed > 0) return driver::code::kLaunchFailed;
    return run_there(launch);
  };
  Owner owner(settings({.devices = 2, .segment_residues = 3'000, .lanes = 2}));
  gpu::GpuFilters& gpu = owner.gpu;
  fill(owner, 12, 12);
  gpu.end_blocks();
  const std::uint64_t segments = gpu.statistics().segments;
  EXPECT_GE(segments, 4u);
  owner.offer_all();
  EXPECT_TRUE(owner.wait());
  gpu.detach();
  EXPECT_GT(failed, 0);
  EXPECT_EQ(owner.stops, 0);
  EXPECT_EQ(owner.delivered() + owner.left.size(), 144u);
  EXPECT_EQ(gpu.statistics().blocks_done, owner.delivered());
  EXPECT_EQ(gpu.statistics().blocks_given_back, owner.left.size());
  // Running pairs go back to the owner, at most one launch per lane.
  EXPECT_GE(owner.left.size(), 1u);
  EXPECT_LE(owner.models_left().size(), 2u);
  EXPECT_GT(owner.delivered(), 120u);
  EXPECT_THAT(warnings_, testing::ElementsAre(testing::HasSubstr("device 1 is given up")));
  owner.expect_cpu();
}

// The thread that gives idle threads their parts of a chain has one of a device that is lost
// meanwhile, and all lanes of that device have gone when it lets go of the targets.
TEST_F(GpuFiltersTest, ASegmentOfALostDeviceMovesWhenNobodyWorksOnIt) {
  script_.fate = late_domain_stage;
  std::atomic<int> lost{-1}, worked{-1};
  driver_.on_launch = [&](const FakeLaunch& launch) {
    if (launch.device == lost) return driver::code::kLaunchFailed;
    worked = launch.device;
    return run_there(launch);
  };
  Owner owner(settings({.devices = 2, .wait_for_device = false}), kOneIdleThread);
  gpu::GpuFilters& gpu = owner.gpu;
  std::atomic<bool> held{false}, let_go{false};
  owner.on_early = [&](const std::vector<gpu::Delivery>& pairs) {
    if (std::ranges::none_of(pairs, [](const auto& pair) { return !pair.found.passed.empty(); }) ||
        held.exchange(true))
      return;
    EXPECT_TRUE(owner.wait_until([&] { return let_go.load(); }));
  };
  std::jthread idle = owner.idle_thread();
  fill_with_homologues(owner, 3);
  gpu.end_blocks();
  owner.offer(1, 1);
  ASSERT_TRUE(owner.wait_until([&] { return held.load(); }));
  lost = worked.load();
  owner.offer(2, 1);
  ASSERT_TRUE(owner.wait_until([&] { return gpu.statistics().blocks_given_back == 1; }));
  std::this_thread::sleep_for(200ms);  // every lane has left the device
  owner.offer(3, 1);
  let_go = true;
  EXPECT_TRUE(owner.wait());
  script_.finish();
  idle = {};
  gpu.detach();
  EXPECT_EQ(owner.delivered(), 2u);
  EXPECT_EQ(owner.models_left(), std::set<ModelId>{2});
  EXPECT_NE(worked, lost);
  EXPECT_EQ(owner.stops, 0);
  owner.expect_cpu();
}

// Two segments fit. The third makes the first go, whose residues the host has given up: it has to
// be packed again before it comes back, even where the packer is late.
TEST_F(GpuFiltersTest, AnEvictedSegmentIsPackedAgainBeforeItComesBack) {
  script_.fate = no_domain_stage;
  std::mutex mutex;
  std::condition_variable changed;
  bool hold = false, held = false;
  driver_.on_call = [&](const char* member, int) {
    if (std::string(member) != "event_synchronize") return 0;  // of uploads only
    std::unique_lock lock(mutex);
    if (!hold) return 0;
    held = true;
    changed.notify_all();
    changed.wait_for(lock, kPatience, [&] { return !hold; });
    return 0;
  };
  constexpr int kResidues = 600'000;
  gpu::Settings s = settings({.segment_residues = kResidues, .lanes = 2});
  s.vram = 2'200'000;
  Owner owner(std::move(s));
  gpu::GpuFilters& gpu = owner.gpu;
  const auto models = add_models(owner, 3, 12);
  for (std::uint64_t b = 1; b <= 3; ++b) {
    std::vector<std::vector<Residue>> targets;
    for (std::uint64_t t = 0; t < 20; ++t)
      targets.push_back(test_support::random_target(
          b * 100 + t, kResidues / 20 + 1,
          t == 3 ? test_support::TargetKind::kTandem : test_support::TargetKind::kBackground,
          models.back()->hmm));
    owner.add_block(b, block_of(targets, b * 100));
  }
  gpu.end_blocks();
  ASSERT_EQ(gpu.statistics().segments, 3u);
  owner.offer(0, 1);
  ASSERT_TRUE(owner.wait());
  owner.offer(0, 2);
  ASSERT_TRUE(owner.wait());
  EXPECT_EQ(gpu.statistics().evictions, 0u);
  const std::uint64_t two_segments = gpu.statistics().upload_bytes;
  {
    const std::lock_guard lock(mutex);
    hold = true;
  }
  owner.offer(0, 3);
  {
    std::unique_lock lock(mutex);
    EXPECT_TRUE(changed.wait_for(lock, kPatience, [&] { return held; }));
  }
  EXPECT_EQ(gpu.statistics().evictions, 1u);
  // Segment 1 is out, and the packer waits for the upload of segment 3.
  owner.offer(1, 1);
  std::this_thread::sleep_for(100ms);
  {
    const std::lock_guard lock(mutex);
    hold = false;
  }
  changed.notify_all();
  EXPECT_TRUE(owner.wait());
  // The one not used for longest had to go: this was its second upload, the fourth in all.
  EXPECT_GT(gpu.statistics().upload_bytes, 3 * two_segments / 2 + two_segments / 4);
  for (std::uint64_t b = 1; b <= 3; ++b) owner.offer(2, b);
  EXPECT_TRUE(owner.wait());
  gpu.detach();
  EXPECT_EQ(owner.delivered(), 7u);
  EXPECT_THAT(owner.left, testing::IsEmpty());
  EXPECT_EQ(gpu.statistics().state, "ready") << gpu.statistics().reason;
  EXPECT_GE(gpu.statistics().evictions, 2u);
  EXPECT_LE(gpu.statistics().peak_device_bytes, 2'200'000u);
  EXPECT_GT(gpu.statistics().peak_device_bytes, 2u * kResidues);
  EXPECT_THAT(warnings_, testing::IsEmpty());
  owner.expect_cpu();
}

// Nothing of an earlier search is left, though its blocks had the same numbers and were streamed.
TEST_F(GpuFiltersTest, ASecondSearchBeginsAnew) {
  script_.fate = no_domain_stage;
  gpu::GpuFilters gpu(settings());
  wait_until_started(gpu);
  std::uint64_t before = 0;
  for (const bool streamed : {false, true, false, true, false}) {
    Owner owner(gpu);
    owner.attach();
    if (streamed) gpu.set_streaming();
    const auto models = add_models(owner, 6);
    for (std::uint64_t b = 1; b <= 4; ++b) {
      owner.announce_block(b, block_for(models, b));
      for (std::size_t m = 0; m + 1 < models.size(); ++m) owner.offer(m, b);
      owner.add_announced_block(b);
    }
    gpu.end_blocks();
    EXPECT_TRUE(owner.wait()) << streamed;
    // Later: only streamed blocks have been released.
    if (!streamed) {
      std::this_thread::sleep_for(50ms);  // in which a lane could drop what it has done
      for (std::uint64_t b = 1; b <= 4; ++b) {
        EXPECT_TRUE(gpu.serves(5, b));
        owner.offer(5, b);
      }
      EXPECT_TRUE(owner.wait());
    } else {
      EXPECT_TRUE(owner.wait_until([&] { return owner.blocks.at(1).use_count() == 1; }));
      owner.expect_left(5, 1);
    }
    gpu.detach();
    const std::uint64_t pairs = streamed ? 20 : 24;
    EXPECT_EQ(owner.delivered(), pairs);
    EXPECT_EQ(gpu.statistics().blocks_done - before, pairs);
    before = gpu.statistics().blocks_done;
    EXPECT_THAT(owner.left, testing::IsEmpty());
    owner.expect_cpu();
    if (HasFailure()) FAIL() << "streamed " << streamed;
  }
  std::vector<std::string> threads;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    std::getline(std::ifstream(thread.path() / "comm"), threads.emplace_back());
  EXPECT_THAT(threads, testing::IsSupersetOf({"hmmjit packer", "hmmjit filters"}));
}

// Once for each kernel, not for each chain.
TEST_F(GpuFiltersTest, ARefusedImageIsMadeAgainOnce) {
  script_.fate = no_domain_stage;
  script_.refused_is_another = true;
  driver_.refuses = [](const std::string& image) { return !image.ends_with(" again"); };
  Owner owner(settings({.segment_residues = 1, .lanes = 2}));
  const gpu::GpuFilters& gpu = owner.gpu;
  fill(owner, 12, 4);
  owner.do_all();
  EXPECT_EQ(owner.delivered(), 48u);
  EXPECT_THAT(owner.left, testing::IsEmpty());
  const auto kernels = static_cast<int>(gpu.statistics().distinct_kernels);
  EXPECT_GE(kernels, 6);
  EXPECT_GE(script_.refused, kernels);
  // A lane may have asked for one while it was being made again.
  EXPECT_LE(script_.refused, 2 * kernels);
  EXPECT_GT(gpu.statistics().chains, 2u * static_cast<unsigned>(kernels));
  owner.expect_cpu();
}

// Kernels that a search leaves to be compiled after it.
TEST(ChainKernelsThatAreLate, AreUnfinishedUntilTheyAreMade) {
  KernelScript script;
  // Compiled late for one class, and not at all for the other.
  script.fate = [](const plan::Plan& plan) {
    // One for all classes.
    if (plan.stage == plan::Stage::kBias || plan.stage >= plan::Stage::kGate)
      return KernelScript::kCached;
    return plan.class_length > 512 ? KernelScript::kLate : KernelScript::kFails;
  };
  Chains chains(scripted_kernels(script));
  for (const int M : {100, 700}) {
    for (const Alphabet* alphabet : {&amino_alphabet(), &dna_alphabet()})
      chains.planned(model_of(M, *alphabet));
  }
  EXPECT_EQ(chains.kernels.unfinished_lengths(), std::vector{plan::class_length(700)});
  script.finish();
  EXPECT_EQ(chains.kernels.unfinished_lengths(), std::vector<int>{});
}

TEST(ChainKernelsOfTwoAlphabets, AreNotShared) {
  KernelScript script;
  Chains chains(scripted_kernels(script));
  for (const int M : {100, 1000}) {
    for (const Alphabet* alphabet : {&amino_alphabet(), &dna_alphabet(), &amino_alphabet()}) {
      const SearchModel model = model_of(M, *alphabet);
      const auto ready = chains.ready(model);
      ASSERT_TRUE(ready) << ready.error().to_string();
      for (std::size_t link = 0; link < gpu::kLinks; ++link) {
        const gpu::ReadyKernel& kernel = (*ready)[link];
        if (!kernel && M == 1000 && link > static_cast<std::size_t>(gpu::Link::kParser)) continue;
        ASSERT_TRUE(kernel) << link;
        EXPECT_EQ(kernel.extent().alphabet_codes, alphabet->Kp);
      }
      chains.compare(model, {block_of(targets_for(model.hmm, 8))});
    }
  }
  // Asked for once for each alphabet, and for no other.
  std::map<int, int> asked;
  for (const plan::Plan& plan : script.asked) ++asked[plan.alphabet_codes];
  EXPECT_EQ(asked.size(), 2u);
  EXPECT_EQ(asked[amino_alphabet().Kp], asked[dna_alphabet().Kp]);
}

// A launch may have to wait for others: as long as some come to an end, it is not lost.
TEST(StreamWait, ALaunchIsNotLostWhileOthersComeToAnEnd) {
  FakeDriver fake({*plan::find_device("H200")});
  const auto driver = driver::Driver::open(fake.api());
  const driver::DevicePtr device = *driver->device(0);
  const auto stream = *driver::Stream::create(device);
  std::atomic<double> progress{Trace::now()};
  constexpr double kTimeout = 0.5;
  for (const bool others : {true, false}) {
    const double begun = Trace::now();
    std::promise<void> queued;
    std::function<void()> end;
    fake.on_stream_end = [&](std::function<void()> given) {
      end = std::move(given);
      queued.set_value();
    };
    std::thread other([&] {
      while (others && Trace::now() < begun + 4 * kTimeout) {
        progress = Trace::now();
        std::this_thread::sleep_for(1ms);
      }
      queued.get_future().wait();
      if (others) end();
    });
    const Status waited = gpu::wait_for(stream, *device, {kTimeout, &progress});
    other.join();
    if (!others) end();
    EXPECT_EQ(waited.has_value(), others);
    EXPECT_EQ(device->abandoned(), !others);
    EXPECT_GE(Trace::now() - begun, others ? 4 * kTimeout : kTimeout);
    if (others) {
      EXPECT_GE(progress.load(), begun + 4 * kTimeout);
    }
  }
}

// The error of a launch that has begun comes with the end of its stream, at once.
TEST(StreamWait, AFailedLaunchEndsIt) {
  FakeDriver fake({*plan::find_device("H200")});
  const auto driver = driver::Driver::open(fake.api());
  const driver::DevicePtr device = *driver->device(0);
  const auto stream = *driver::Stream::create(device);
  fake.fail_call("stream_end", driver::code::kLaunchFailed);
  const Status waited = gpu::wait_for(stream, *device, {});
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, ErrorCode::kInternal);
  EXPECT_FALSE(device->abandoned());
  EXPECT_EQ(fake.calls("stream_query"), 0);
}

}  // namespace
}  // namespace hmmjit::tests
