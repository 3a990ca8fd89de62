// Libraries of mixed model lengths. Models of about one length share kernels, and which of them
// comes first, from where its kernels come and when, is chance: no answer may depend on it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>

#include "host_kernels.hpp"
#include "pairs_fixture.hpp"
#include "search_fixture.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {
namespace {

using gpu::Link;

constexpr int kLongest = 3600;

// Lengths next to which one kernel gives way to another: those of the first and finer kernels, of
// rows, of the planner's classes about the first two.
std::vector<int> lengths_about_edges() {
  std::set<int> out{1, 2, 3, 5, 17, kLongest};
  for (const int edge : {32,  48,  64,   96,   128,  192,  240,  256,  384,  512, 704,
                         768, 896, 1024, 1280, 1408, 1536, 2048, 2560, 3072, 3584}) {
    for (const int by : {-1, 0, 1}) out.insert(edge + by);
  }
  for (const int M : {1088, 1151, 1152, 1291, 1326, 1358, 1470, 1700, 1900, 2300, 2800, 3300})
    out.insert(M);
  return {out.begin(), out.end()};
}

SearchModel model_of(int M, const Alphabet& alphabet = amino_alphabet()) {
  return *make_search_model(test_support::random_hmm(static_cast<std::uint64_t>(M), M,
                                                     test_support::ModelKind::kTypical, alphabet));
}

// A length for each class of the planner up to the longest.
std::vector<int> all_classes() {
  std::set<int> out;
  for (int M = 1; M <= kLongest; ++M) out.insert(plan::class_length(M));
  return {out.begin(), out.end()};
}

enum class Source { kCached, kCompiled, kCoarseCached, kFineCached };

KernelScript::Fate fate(Source source, const plan::Plan& plan) {
  if (source == Source::kCached) return KernelScript::kCached;
  if (source == Source::kCompiled) return KernelScript::kCompiled;
  // Half-warm caches: of SSV those of powers of two, or those of all other lengths.
  const bool coarse = (plan.class_length & (plan.class_length - 1)) == 0;
  const bool cached = coarse == (source == Source::kCoarseCached);
  return cached ? KernelScript::kCached : KernelScript::kCompiled;
}

// All kernels that a class gets cover it, whichever classes were planned before.
void expect_covered(Chains& chains, int M) {
  static std::map<int, std::unique_ptr<SearchModel>> models;
  auto& model = models[M];
  if (model == nullptr) model = std::make_unique<SearchModel>(model_of(M));
  const auto ready = chains.ready(*model);
  ASSERT_TRUE(ready) << ready.error().to_string();
  EXPECT_TRUE(of_link(*ready, Link::kSsv));
  for (std::size_t link = 0; link < gpu::kLinks; ++link) {
    const gpu::ReadyKernel& kernel = (*ready)[link];
    if (!kernel || link == static_cast<std::size_t>(Link::kBias) ||
        link == static_cast<std::size_t>(Link::kGate))
      continue;
    EXPECT_GE(kernel.candidate().expected.covered_length, M)
        << kernel.name() << " for a model of " << M << " positions";
  }
}

TEST(MixedLengths, KernelsCoverTheirModelsInEveryOrder) {
  const std::vector<int> ascending = all_classes();
  EXPECT_GT(ascending.size(), 100u);
  for (const Source source :
       {Source::kCached, Source::kCompiled, Source::kCoarseCached, Source::kFineCached}) {
    for (int order = 0; order < 4; ++order) {
      std::vector<int> lengths = ascending;
      if (order == 1) std::ranges::reverse(lengths);
      if (order > 1) {
        test_support::Random random(static_cast<std::uint64_t>(order * 10) +
                                    static_cast<std::uint64_t>(source));
        for (std::size_t i = lengths.size(); i > 1; --i)
          std::swap(lengths[i - 1], lengths[random.next() % i]);
      }
      KernelScript script;
      script.fate = [source](const plan::Plan& plan) { return fate(source, plan); };
      Chains chains(scripted_kernels(script));
      for (const int M : lengths) expect_covered(chains, M);
      // And once more when all have been planned.
      for (const int M : lengths) expect_covered(chains, M);
      if (HasFailure()) FAIL() << "order " << order << ", source " << static_cast<int>(source);
    }
  }
}

// The classes that share a first kernel, each of them first and the others in all orders.
TEST(MixedLengths, PairsAreTheCpusWhicheverClassIsPlannedFirst) {
  std::size_t passed = 0;
  for (const std::vector<int>& group : std::vector<std::vector<int>>{
           {1025, 1151, 1358, 1536}, {1537, 1700, 2048}, {513, 704, 1024}, {2049, 2300, 2560}}) {
    std::vector<SearchModel> models;
    std::vector<std::shared_ptr<TargetBlock>> blocks;
    for (const int M : group) {
      models.push_back(model_of(M));
      std::vector<std::vector<Residue>> targets;
      // Fragments of the first and of the last positions; most are so unlike the model that
      // Viterbi decides, which sees none that MSV is sure about.
      for (const int last : {100, M / 2, M - 40, M}) {
        for (const double identity : {0.25, 0.3, 0.35, 0.4, 0.8})
          targets.push_back(fragment_of(models.back().hmm, 3, last - 99, last, identity));
      }
      blocks.push_back(block_of(targets));
    }
    std::vector<std::size_t> order(group.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    do {
      KernelScript script;
      const Source source = order[0] % 2 == 0 ? Source::kCached : Source::kCompiled;
      script.fate = [source](const plan::Plan& plan) { return fate(source, plan); };
      Chains chains(scripted_kernels(script));
      for (const std::size_t i : order) chains.planned(models[i]);
      for (const std::size_t i : order) passed += chains.compare(models[i], {blocks[i]});
      if (testing::Test::HasFailure()) {
        std::string text;
        for (const std::size_t i : order) text += fmt::format(" {}", group[i]);
        FAIL() << "planned in the order" << text;
      }
    } while (std::ranges::next_permutation(order).found);
  }
  EXPECT_GT(passed, 1000u);
}

// Lengths dense about every edge, all targets of targets_for(), shuffled.
TEST(MixedLengths, PairsAreTheCpusAtEveryEdge) {
  const std::vector<int> lengths = lengths_about_edges();
  std::size_t passed = 0, open = 0, survivors = 0;
  for (const Source source : {Source::kCompiled, Source::kCached}) {
    KernelScript script;
    script.fate = [source](const plan::Plan& plan) { return fate(source, plan); };
    Chains chains(scripted_kernels(script));
    std::vector<int> order = lengths;
    test_support::Random random(source == Source::kCached ? 5 : 6);
    for (std::size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random.next() % i]);
    std::vector<SearchModel> models;
    for (const int M : order) {
      // Half of the lengths from either source: what differs is which kernels there are.
      models.push_back(model_of(M));
      chains.planned(models.back());
    }
    std::size_t turn = static_cast<std::size_t>(source);
    for (const SearchModel& model : models) {
      if (++turn % 2 == 0) continue;
      passed += chains.compare(model, {block_of(targets_for(model.hmm, 1))});
    }
    open += chains.opened;
    survivors += chains.survivors;
  }
  EXPECT_GT(passed, 10 * lengths.size());
  EXPECT_LT(open, survivors / 20);
}

// Every stage's kernel in turn is late, and fails or comes in the end: what a chain does without it
// is left to the CPU, what it does with it is right.
TEST(MixedLengths, PairsAreTheCpusWhileACompileIsLateOrFails) {
  const std::vector<int> lengths{60, 1060, 1358};
  std::vector<SearchModel> models;
  std::vector<std::shared_ptr<TargetBlock>> blocks;
  for (const int M : lengths) {
    models.push_back(model_of(M));
    blocks.push_back(block_of(targets_for(models.back().hmm, 2)));
  }
  using Variant = std::pair<plan::Stage, std::string_view>;
  for (const auto& [stage, variant] :
       {Variant{plan::Stage::kMsv, ""}, Variant{plan::Stage::kBias, ""},
        Variant{plan::Stage::kGate, ""}, Variant{plan::Stage::kViterbi, "wavefront"},
        Variant{plan::Stage::kViterbi, "lane_scan"}, Variant{plan::Stage::kForward, ""}}) {
    for (const bool well : {true, false}) {
      KernelScript script;
      script.fate = [&, stage, variant](const plan::Plan& plan) {
        const bool late =
            plan.stage == stage && (variant.empty() || tested(plan).variant->name == variant);
        return late ? KernelScript::kLate : KernelScript::kCached;
      };
      Chains chains(scripted_kernels(script));
      for (std::size_t i = models.size(); i-- > 0;) chains.planned(models[i]);
      const bool decides =
          stage != plan::Stage::kMsv && stage != plan::Stage::kForward && variant != "wavefront";
      for (int round = 0; round < 2; ++round) {
        for (std::size_t i = 0; i < models.size(); ++i) {
          chains.compare(models[i], {blocks[i]});
          const auto state = chains.kernels.state(chains.planned(models[i])).kind;
          if (decides || round > 0) {
            EXPECT_EQ(state, round == 0 ? gpu::ChainState::kPending : gpu::ChainState::kReady);
          }
          const auto ready = chains.ready(models[i]);
          const bool there = std::ranges::any_of(*ready, [&](const gpu::ReadyKernel& kernel) {
            return kernel && kernel.candidate().variant->stage == stage &&
                   (variant.empty() || kernel.candidate().variant->name == variant);
          });
          // No wavefront kernel takes more than 1,280 positions at once.
          const bool planned = variant != "wavefront" || lengths[i] <= 1280;
          EXPECT_EQ(there, round == 1 && well && planned);
        }
        script.finish(well);
      }
    }
  }
}

// More on each list than comes with the first download, in blocks of which some are others' to do;
// and without the kernels that shorten the lists, which then take 8 KB more than the host's buffer.
TEST(MixedLengths, LongListsAreComplete) {
  const SearchModel model = model_of(12);
  std::vector<std::shared_ptr<TargetBlock>> blocks;
  for (std::uint64_t b = 0; b < 4; ++b) {
    std::vector<std::vector<Residue>> targets;
    for (std::uint64_t i = 0; i < 9'000; ++i)
      targets.push_back(
          i % 2 == 0 ? fragment_of(model.hmm, b * 10'000 + i, 1, 12, 0.9)
                     : test_support::random_target(
                           b * 10'000 + i, 20, test_support::TargetKind::kBackground, model.hmm));
    blocks.push_back(block_of(targets, b * 9'000));
  }
  using Stages = std::set<plan::Stage>;
  for (const Stages& missing :
       {Stages{}, Stages{plan::Stage::kGate}, Stages{plan::Stage::kViterbi},
        Stages{plan::Stage::kMsv}, Stages{plan::Stage::kMsv, plan::Stage::kGate}}) {
    for (const bool partly : {false, true}) {
      KernelScript script;
      script.fate = [&](const plan::Plan& plan) {
        return missing.contains(plan.stage) ? KernelScript::kFails : KernelScript::kCached;
      };
      Chains chains(scripted_kernels(script));
      const gpu::FilterLimits limits{.F1 = 0.9999, .F2 = 0.999, .F3 = 0.99};
      const std::vector<bool> claimed =
          partly ? std::vector<bool>{false, true, true, false} : std::vector<bool>{};
      const std::size_t passed = chains.compare(model, blocks, claimed, limits);
      if (missing.contains(plan::Stage::kGate)) {
        EXPECT_GT(chains.opened, partly ? 16'200u : 32'400u);
      } else {
        EXPECT_GT(passed, partly ? 7'560u : 15'120u);
      }
    }
  }
}

// A model in tiles takes one launch of the fast Viterbi kernel for each, with memory for what
// passes between them; where that is too much, the exact kernel does all.
TEST(MixedLengths, TheFastViterbiKernelTakesLongModelsInTilesWhereThereIsMemory) {
  for (const int M : {1358, 2300, 3100}) {
    const SearchModel model = model_of(M);
    const auto block = block_of(targets_for(model.hmm, 4));
    for (const std::size_t most_scratch : {std::size_t{1} << 30, std::size_t{0}}) {
      KernelScript script;
      Chains chains(scripted_kernels(script), most_scratch);
      EXPECT_GT(chains.compare(model, {block}), 0u);
      const auto fast = of_link(*chains.ready(model), Link::kViterbi),
                 exact = of_link(*chains.ready(model), Link::kExactViterbi);
      ASSERT_TRUE(fast && exact);
      const int tiles = plan::tiles_of(fast.candidate(), M);
      EXPECT_GT(tiles, 1);
      // Beyond 3,072 positions the exact one keeps its rows in device memory, and more of it.
      const bool in_memory = M > 3072;
      EXPECT_EQ(chains.launches["viterbi_wavefront"], most_scratch > 0 || in_memory ? tiles : 0);
      const std::string name = in_memory ? "viterbi_row_scan" : "viterbi_lane_scan";
      EXPECT_EQ(exact.candidate().variant->entry_name, name);
      EXPECT_EQ(chains.launches[name], 1);
    }
  }
}

// Kernels of a shorter model, which would give wrong results, are refused.
TEST(MixedLengths, KernelsThatCoverTooLittleAreRefused) {
  KernelScript script;
  Chains chains(scripted_kernels(script));
  const SearchModel longer = model_of(300), shorter = model_of(100);
  const auto targets = chains.upload({block_of(targets_for(longer.hmm, 3))});
  const auto small = chains.ready(shorter), large = chains.ready(longer);
  ASSERT_TRUE(small && large);
  ASSERT_TRUE(chains.run(longer, *targets, *large, {true}));
  for (const Link link : {Link::kSsv, Link::kMsv, Link::kViterbi, Link::kExactViterbi,
                          Link::kForward, Link::kFineSsv}) {
    auto mixed = *large;
    if (link == Link::kSsv) mixed[static_cast<std::size_t>(Link::kFineSsv)] = {};
    mixed[static_cast<std::size_t>(link)] = of_link(*small, link);
    EXPECT_FALSE(chains.run(longer, *targets, mixed, {true})) << static_cast<int>(link);
  }
}

// ---- whole searches -----------------------------------------------------------------------------

SearchData library(const std::vector<int>& lengths) {
  SearchData data;
  for (const int M : lengths) {
    data.models.push_back(test_support::random_hmm(static_cast<std::uint64_t>(M), M,
                                                   test_support::ModelKind::kTypical));
    data.models.back().name = fmt::format("model{}of{}", data.models.size(), M);
    for (const int last : {M, std::max(1, M / 2)}) {
      for (const double identity : {0.3, 0.4, 0.8})
        data.targets.push_back(
            fragment_of(data.models.back(), 5, std::max(1, last - 99), last, identity));
    }
  }
  for (std::uint64_t i = 0; i < 10; ++i)
    data.targets.push_back(test_support::random_target(
        i, 100, test_support::TargetKind::kBackground, data.models.front()));
  return data;
}

TEST(MixedLengths, SearchesAreTheCpusWhateverComesLateOrFails) {
  // Forwards and backwards: models of a class come in either order.
  std::vector<int> lengths{1,   40,  64,   65,   128,  200,  256,  257,  400,  513,
                           700, 897, 1024, 1025, 1137, 1151, 1291, 1358, 1536, 1537};
  for (const bool backwards : {false, true}) {
    if (backwards) std::ranges::reverse(lengths);
    const SearchData data = library(lengths);
    SearchOptions options = small_blocks(2);
    options.block_residues = 2'000;
    const SearchOutcome alone = run_search(data, nullptr, options);
    const std::uint64_t pairs = alone.statistics.blocks * data.models.size();
    for (int round = 0; round < 3; ++round) {
      FakeDriver driver({*plan::find_device("H200")});
      driver.on_launch = run_on_host;
      KernelScript script;
      // By turns late, failing or there: the same kernel always alike.
      script.fate = [round](const plan::Plan& plan) {
        // In lockstep, as these run here, they would take most of the time.
        if (plan.class_length > 300 && gpu::link_stage(Link::kParser) <= plan.stage &&
            plan.stage <= gpu::link_stage(Link::kEnvelope))
          return KernelScript::kFails;
        if (round == 0) return KernelScript::kCached;
        if (plan.stage == plan::Stage::kSsv && round == 1) return KernelScript::kCompiled;
        const auto turn = std::hash<std::string>()(fake_kernel(plan)->name) % 8;
        return turn == 0  ? KernelScript::kFails
               : turn < 4 ? KernelScript::kLate
               : turn < 6 ? KernelScript::kCompiled
                          : KernelScript::kCached;
      };
      gpu::Settings settings = fake_settings(driver);
      settings.finer_kernel_seconds = 0;
      settings.open_kernels = [&script]() -> Result<std::unique_ptr<gpu::KernelSource>> {
        return scripted_kernels(script);
      };
      gpu::GpuFilters gpu(std::move(settings));
      wait_until_started(gpu);
      std::atomic<bool> ended{false};
      std::thread compiler([&] {
        while (!ended) {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          script.finish();
        }
      });
      const SearchOutcome outcome = run_search(data, &gpu, options);
      ended = true;
      compiler.join();
      EXPECT_EQ(outcome.error, "");
      EXPECT_EQ(outcome.text, alone.text) << (backwards ? "backwards, " : "") << "round " << round;
      const gpu::Statistics statistics = gpu.statistics();
      if (round == 0) {
        EXPECT_EQ(statistics.blocks_done, pairs);
        EXPECT_EQ(statistics.models_declined, 0u);
      }
      EXPECT_EQ(statistics.blocks_given_back, 0u);
    }
  }
}

}  // namespace
}  // namespace hmmjit::tests
