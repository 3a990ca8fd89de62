// The engine with a host's own template and catalogue entry.
#include "hmmjit/engine.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "api/handles.hpp"
#include "cache/bundle.hpp"
#include "fake_driver/fake_driver.hpp"
#include "hmmjit/build.hpp"
#include "hmmjit/nhmmer.hpp"
#include "hmmjit/report.hpp"
#include "tests/unit/api/support.hpp"

namespace {

using namespace hmmjit::v0;
using hmmjit::tests::code_of;
using testing::HasSubstr;
using testing::Not;

// Internals are in scope; ambiguous names mean the public interface.
using hmmjit::v0::Error;
using hmmjit::v0::ErrorCode;

constexpr const char* kTemplate = R"(#include "plan_constants.h"
struct Parameters {
  float* values;
  int count;
  float factor;
};
extern "C" __global__ void scale(Parameters p) {
  using namespace plan_constants;
  const int first = (blockIdx.x * blockDim.x + threadIdx.x) * kPerThread;
  for (int i = first; i < first + kPerThread; ++i)
    if (i < p.count) p.values[i] *= p.factor;
}
)";
struct Parameters {
  float* values;
  int count;
  float factor;
};

Configuration configuration(int per_thread, int registers = 64, double rate = 1) {
  Configuration c;
  c.constants = {{"kPerThread", per_thread}};
  c.launch = {128, 1, 1, 0};
  c.expected.registers = registers;
  c.expected.items_per_clock_per_sm = rate;
  c.expected.binding_resource = "memory bandwidth";
  return c;
}

EngineSettings settings(const std::string& cache_folder = {}) {
  EngineSettings out;
  CacheSettings cache;
  cache.directory = cache_folder;
  out.cache = Cache(cache);
  out.templates = {{"own/scale.cu", kTemplate}};
  KernelVariant variant;
  variant.name = "scale_blocked";
  variant.family = "scaling";
  variant.template_file = "own/scale.cu";
  variant.entry_name = "scale";
  variant.accepts = [](const Problem& p, const Device&) {
    return constant(p.parameters, "size") > 0 ? Verdict{} : Verdict{false, "nothing to scale"};
  };
  variant.configurations = [](const Problem& p, const Device&) {
    const double rate = constant(p.parameters, "size") > 1000 ? 4 : 0.5;
    return std::vector{configuration(1), configuration(4, 64, rate)};
  };
  out.variants = {variant};
  return out;
}

Problem problem(std::int64_t size) { return {"scaling", {{"size", size}}}; }

TEST(Engine, PlansAHostsProblemWithoutGpu) {
  const Engine engine(settings());
  const Device device = find_device("H200");
  const Plan large = engine.plan(problem(100'000), device);
  EXPECT_EQ(large.info().family, "scaling");
  EXPECT_EQ(constant(large.info().chosen.constants, "kPerThread"), 4);
  EXPECT_GT(large.info().chosen.blocks_per_sm, 0);
  EXPECT_NEAR(large.info().chosen.predicted_giga_items,
              4.0 * device.sm_count * device.clock_khz / 1e6, 1e-6);
  ASSERT_EQ(large.info().fallbacks.size(), 1u);
  EXPECT_THAT(large.info().text, HasSubstr("scaling, size 100000"));
  EXPECT_THAT(large.info().json, HasSubstr("\"kPerThread\":4"));
  const Plan small = engine.plan(problem(10), device);
  EXPECT_EQ(constant(small.info().chosen.constants, "kPerThread"), 1);
  EXPECT_THAT(engine.render(small).text, HasSubstr("enum : int { kPerThread = 1 };"));
}

TEST(Engine, SaysWhyNothingFits) {
  const Engine engine(settings());
  const Device device = find_device("H200");
  std::string text;
  EXPECT_EQ(code_of([&] { engine.plan(problem(0), device); }, &text), ErrorCode::kCompile);
  EXPECT_THAT(text, HasSubstr("nothing to scale"));
  EXPECT_EQ(code_of([&] { engine.plan({"other", {}}, device); }), ErrorCode::kUsage);
  PlanOptions forced;
  forced.variant = "unknown";
  EXPECT_EQ(code_of([&] { engine.plan(problem(5), device, forced); }), ErrorCode::kUsage);
  EngineSettings huge = settings();
  huge.variants[0].configurations = [](const Problem&, const Device&) {
    Configuration c = configuration(1);
    c.launch.dynamic_shared_bytes = 1 << 30;
    return std::vector{c};
  };
  EXPECT_EQ(code_of([&] { Engine(huge).plan(problem(5), device); }, &text), ErrorCode::kCompile);
  EXPECT_THAT(text, HasSubstr("shared memory"));
}

TEST(Engine, RefusesContradictoryCatalogues) {
  const auto refused = [](auto change) {
    EngineSettings s = settings();
    change(s);
    return code_of([&] { Engine{s}; }) == ErrorCode::kUsage;
  };
  EXPECT_TRUE(refused([](EngineSettings& s) { s.variants.push_back(s.variants[0]); }));
  EXPECT_TRUE(refused([](EngineSettings& s) { s.variants[0].name = "a/b"; }));
  EXPECT_TRUE(refused([](EngineSettings& s) { s.variants[0].family = "ssv"; }));
  EXPECT_TRUE(refused([](EngineSettings& s) { s.variants[0].template_file = "none.cu"; }));
  EXPECT_TRUE(refused([](EngineSettings& s) { s.variants[0].configurations = nullptr; }));
  EXPECT_TRUE(refused([](EngineSettings& s) { s.templates.push_back(s.templates[0]); }));
  EXPECT_TRUE(refused([](EngineSettings& s) {
    s.templates.push_back({"common/intrinsics.cuh", ""});
  }));
}

TEST(Engine, PlansTheSearchStagesToo) {
  const Engine engine(settings());
  const Plan plan = engine.plan_stage(Stage::kSsv, 150, find_device("H200"));
  EXPECT_EQ(plan.info().family, "ssv");
  EXPECT_THAT(plan.info().text, HasSubstr("GCUPS"));
  EXPECT_THAT(engine.render(plan).text, HasSubstr("__global__"));
  EXPECT_EQ(code_of([&] { engine.plan_stage(Stage::kSsv, 0, find_device("H200")); }),
            ErrorCode::kInput);
  for (const int stage : {-1, 77}) {
    EXPECT_EQ(
        code_of([&] { engine.plan_stage(static_cast<Stage>(stage), 150, find_device("H200")); }),
        ErrorCode::kUsage);
  }
  for (const char* name : {"bias", "gate", "parser", "ensemble", "envelope"}) {
    EXPECT_EQ(engine.plan_stage(find_stage(name), 150, find_device("H200")).info().family, name);
  }
  std::string text;
  EXPECT_EQ(code_of([] { find_stage("forwards"); }, &text), ErrorCode::kUsage);
  EXPECT_THAT(text, HasSubstr("ssv, msv, bias, viterbi, forward, gate"));
}

#define COMPILER_OR_SKIP() \
  if (const CompilerInfo info = compiler_info(); !info.found) GTEST_SKIP() << info.message

TEST(Engine, PassesOverAnImageThatBreaksItsPromise) {
  COMPILER_OR_SKIP();
  EngineSettings s = settings();
  s.variants[0].configurations = [](const Problem&, const Device&) {
    return std::vector{configuration(4, 2, 9), configuration(1)};
  };
  Engine engine(s);
  const KernelImage image = engine.compile(engine.plan(problem(1), find_device("H200")));
  EXPECT_EQ(constant(image.candidate().constants, "kPerThread"), 1);
  ASSERT_EQ(image.rejected().size(), 1u);
  EXPECT_THAT(image.rejected()[0].reason, HasSubstr("at most 2 promised"));

  s.variants[0].configurations = [](const Problem&, const Device&) {
    return std::vector{configuration(4, 2), configuration(1, 2)};
  };
  Engine other(s);
  std::string text;
  EXPECT_EQ(code_of([&] { other.compile(other.plan(problem(1), find_device("H200"))); }, &text),
            ErrorCode::kCompile);
  // The text is about the host's kernel, without model and search.
  EXPECT_THAT(text, HasSubstr("scaling, size 1 on H200: no image keeps what its catalogue entry"));
  EXPECT_THAT(text, HasSubstr("scale_blocked kPerThread 4"));
  EXPECT_THAT(text, HasSubstr("promise what the kernel needs (Expected::registers"));
  EXPECT_THAT(text, Not(HasSubstr("model")));
  EXPECT_THAT(text, Not(HasSubstr("search")));
}

// For a device newer than the compiler, the driver compiles PTX; if its code breaks the variant's
// promises, the next configuration is tried.
TEST(Engine, CodeOfTheDriverIsHeldAgainstItsPromises) {
  COMPILER_OR_SKIP();
  auto traits = to_traits(find_device("H200"));
  traits.major = 19;
  traits.minor = 0;
  hmmjit::tests::FakeDriver fake({traits});
  fake.registers = 40;
  const Gpu gpu = open_gpu(hmmjit::driver::Driver::open(fake.api()), 0);
  EngineSettings s = settings();
  s.variants[0].configurations = [](const Problem&, const Device&) {
    return std::vector{configuration(4, 32, 9), configuration(1)};
  };
  Engine engine(s);
  const Plan plan = engine.plan(problem(1), gpu.device());
  EXPECT_EQ(constant(plan.info().chosen.constants, "kPerThread"), 4);
  const Kernel kernel = engine.load(plan, gpu);
  EXPECT_EQ(constant(kernel.image().candidate().constants, "kPerThread"), 1);
  ASSERT_EQ(kernel.image().rejected().size(), 1u);
  EXPECT_THAT(kernel.image().rejected()[0].reason, HasSubstr("at most 32 promised"));

  fake.registers = 100;  // breaks the promises of both
  std::string text;
  EXPECT_EQ(code_of([&] { engine.load(plan, gpu); }, &text), ErrorCode::kCompile);
  EXPECT_THAT(text, HasSubstr("at most 64 promised"));
}

TEST(Engine, LoadsAndLaunchesOnADevice) {
  COMPILER_OR_SKIP();
  auto traits = to_traits(find_device("H200"));
  hmmjit::tests::FakeDriver fake({traits, traits});
  fake.on_launch = [](const hmmjit::tests::FakeLaunch& launch) {
    const auto& p = *static_cast<const Parameters*>(launch.parameters);
    EXPECT_EQ(launch.kernel, "scale");
    EXPECT_EQ(launch.block_threads, 128u);
    for (int i = 0; i < p.count; ++i) p.values[i] *= p.factor;
    return 0;
  };
  {
    const auto driver = hmmjit::driver::Driver::open(fake.api());
    const Gpu gpu = open_gpu(driver, 0), other = open_gpu(driver, 1);
    Engine engine(settings());
    fake.fail_call("library_load", hmmjit::driver::code::kInvalidImage);
    const Kernel kernel = engine.load(engine.plan(problem(100'000), gpu.device()), gpu);
    EXPECT_EQ(engine.statistics().refused, 1u) << "a refused image is made once more";
    EXPECT_GT(kernel.resident_blocks(), 0u);

    std::vector<float> values{1, 2, 3};
    const std::size_t bytes = values.size() * sizeof(float);
    Buffer buffer(gpu, bytes);
    Stream stream(gpu);
    Event begun(gpu, true), ended(gpu, true);
    buffer.upload(stream, values.data(), bytes);
    begun.record(stream);
    kernel.launch(stream, {1}, Parameters{buffer.pointer<float>(), 3, 2.0f});
    ended.record(stream);
    buffer.download(stream, values.data(), bytes);
    stream.synchronize();
    EXPECT_EQ(values, (std::vector<float>{2, 4, 6}));
    EXPECT_TRUE(ended.finished());
    EXPECT_GE(Event::milliseconds(begun, ended), 0);

    // On a stream of the host, which the library does not destroy.
    hmmjit::driver::StreamHandle own = nullptr;
    ASSERT_EQ(fake.api().stream_create(&own, 0, 0), 0);
    {
      const Stream lent = Stream::from_native(gpu, own);
      EXPECT_EQ(lent.native(), own);
      buffer.upload(lent, values.data(), bytes);
      kernel.launch(lent, {1}, Parameters{buffer.pointer<float>(), 3, 3.0f});
      buffer.download(lent, values.data(), bytes);
      ended.record(lent);
      EXPECT_NE(ended.native(), nullptr);
      EXPECT_NE(kernel.native(), nullptr);
      lent.synchronize();
      Stream moved = Stream::from_native(gpu, nullptr);  // the legacy default stream
      EXPECT_EQ(moved.native(), nullptr);
      moved = Stream::from_native(gpu, own);
    }
    EXPECT_EQ(values, (std::vector<float>{6, 12, 18}));
    EXPECT_EQ(fake.alive("stream"), 2) << "the host's stream is not destroyed";
    EXPECT_EQ(fake.api().stream_synchronize(own), 0);
    EXPECT_EQ(fake.api().stream_destroy(own), 0);

    EXPECT_EQ(code_of([&] { kernel.launch(stream, {1}, 7); }), ErrorCode::kUsage);
    EXPECT_EQ(code_of([&] { kernel.launch(stream, {0}, Parameters{}); }), ErrorCode::kUsage);
    EXPECT_EQ(code_of([&] { kernel.launch(Stream(other), {1}, Parameters{}); }), ErrorCode::kUsage);
    EXPECT_EQ(code_of([&] { buffer.download(stream, values.data(), bytes, 4); }),
              ErrorCode::kUsage);
    EXPECT_EQ(code_of([&] { Buffer(gpu, std::size_t{1} << 40); }), ErrorCode::kResources);
    EXPECT_EQ(code_of([&] { open_gpu(driver, 2); }), ErrorCode::kNoDevice);
  }
  EXPECT_EQ(fake.alive("memory"), 0);
  EXPECT_EQ(fake.alive("stream"), 0);
  EXPECT_EQ(fake.alive("event"), 0);
  EXPECT_EQ(fake.alive("library"), 0);
}

TEST(Engine, WhatEntriesThrowComesOutAsItIs) {
  EngineSettings s = settings();
  s.variants[0].configurations = [](const Problem&, const Device&) -> std::vector<Configuration> {
    throw std::bad_alloc();
  };
  EXPECT_THROW(Engine(s).plan(problem(5), find_device("H200")), std::bad_alloc);
}

TEST(Engine, CancelledBeforeItsFirstCompileItLooksForNoCompiler) {
  Engine engine(settings());
  const Plan plan = engine.plan(problem(1), find_device("H200"));
  engine.cancel();
  EXPECT_FALSE(engine.impl()->provider_ready) << "no compiler was looked for";
  EXPECT_EQ(engine.impl()->provider, nullptr);
  EXPECT_EQ(code_of([&] { engine.compile(plan); }), ErrorCode::kInterrupted);
  EXPECT_EQ(code_of([&] { engine.request(plan).get(); }), ErrorCode::kInterrupted);
  EXPECT_EQ(engine.impl()->provider, nullptr);
  const EngineStatistics s = engine.statistics();
  EXPECT_EQ(s.requests + s.compiled + s.memory_hits + s.disk_hits + s.failed, 0u);
}

TEST(Search, TellsTheHostWhatItGoesOnWithout) {
  const auto [models, targets] = hmmjit::tests::parsed_inputs(41, 3, 200);
  // Two devices that do not fit each other, and no kernel for either: nothing may be compiled, and
  // the CPU searches.
  hmmjit::tests::FakeDriver fake({to_traits(find_device("H200")), to_traits(find_device("T4"))});
  const auto open_driver = [&] { return hmmjit::driver::Driver::open(fake.api()); };
  SearchOptions options;
  options.device = HMMJIT_DEVICE_GPU;
  const std::int32_t gpus[] = {0, 1};
  options.gpus = gpus;
  options.gpu_count = 2;
  options.threads = 2;
  CacheSettings strict;
  strict.mode = CacheMode::kStrict;
  const Cache cache(strict);
  options.cache = cache.c_handle();
  std::vector<std::string> heard;
  std::atomic<int> strange{0}, inside{0};
  const unsigned mode = _mm_getcsr() & ~0x3fu;
  SearchCallbacks callbacks;
  callbacks.warning = [&](const Error& warning) {
    strange += inside++ != 0;  // one at a time
    strange += (_mm_getcsr() & ~0x3fu) != mode;
    heard.emplace_back(warning.what());
    --inside;
  };
  auto found = search_on(open_driver, models, targets, options, callbacks);
  // The CPU may end a search before the devices have started.
  for (int i = 0; i < 100 && heard.empty(); ++i)
    found = search_on(open_driver, models, targets, options, callbacks);
  EXPECT_EQ(strange, 0);
  EXPECT_THAT(heard, testing::Contains(HasSubstr("another architecture")));
  EXPECT_EQ(found.statistics.kernels_compiled, 0u);
  EXPECT_THAT(found.statistics.json, HasSubstr("\"devices\": ["));
  const std::string expected =
      report_text(ReportKind::kTsv, search(models, targets, hmmjit::tests::on_cpu()));
  EXPECT_EQ(report_text(ReportKind::kTsv, found), expected);

  std::atomic<int> opened{0};
  {
    const Targets kept = targets.keep();
    const auto open_counted = [&] {
      ++opened;
      return open_driver();
    };
    for (int i = 0; i < 2; ++i) {
      const auto again = search_on(open_counted, models, kept, options, callbacks);
      EXPECT_EQ(report_text(ReportKind::kTsv, again), expected);
    }
    Targets copy = kept;
    EXPECT_EQ(code_of([&] { copy.add({.name = "a", .residues = "ACD"}); }), ErrorCode::kUsage);
  }
  EXPECT_EQ(opened, 1) << "kept targets keep their devices";

  callbacks.warning = [](const Error&) { throw std::runtime_error("of the host"); };
  EXPECT_THROW(for (int i = 0; i < 100; ++i)
                   search_on(open_driver, models, targets, options, callbacks),
               std::runtime_error);
}

TEST(Search, OfNucleotidesStartsADevice) {
  Targets query(Alphabet::kDna), targets(Alphabet::kDna);
  const std::string family = "GATTACAGGCCTTAACGGTCATTGCAGTCCGATAGGCTTACGATCGGATTACCAGG";
  query.add({.name = "family", .residues = family});
  targets.add({.name = "chromosome", .residues = std::string(300, 'A') + family + "ACGT"});
  const Models models = build_models(query);
  hmmjit::tests::FakeDriver fake({to_traits(find_device("H200"))});
  std::atomic<int> opened{0};
  const auto open_driver = [&] {
    ++opened;
    return hmmjit::driver::Driver::open(fake.api());
  };
  // No kernel may be compiled, and the CPU does the rest.
  CacheSettings strict;
  strict.mode = CacheMode::kStrict;
  const Cache cache(strict);
  SearchOptions search(Program::kNhmmer);
  search.threads = 2;
  search.cache = cache.c_handle();
  NhmmerOptions options;
  options.search = &search;
  const auto table = [&] {
    const SearchResults found = nhmmer_on(open_driver, models, targets, options, {});
    EXPECT_EQ(found.models.at(0).hits().size(), 1u);
    return std::pair(report_text(ReportKind::kTargetTable, found),
                     std::string(found.statistics.device));
  };
  search.device = HMMJIT_DEVICE_CPU;
  const auto on_cpu = table();
  EXPECT_EQ(opened, 0);
  search.device = HMMJIT_DEVICE_AUTO;
  EXPECT_THAT(table().second, HasSubstr("a GPU pays from"));
  EXPECT_EQ(opened, 0) << "the search is too small for a device";
  search.device = HMMJIT_DEVICE_GPU;
  const auto on_device = table();
  EXPECT_EQ(opened, 1);
  EXPECT_EQ(on_device.first, on_cpu.first);
  EXPECT_THAT(on_device.second, HasSubstr("ready"));
  const std::int32_t two[] = {0, 1};
  search.gpus = two;
  search.gpu_count = 2;
  EXPECT_EQ(code_of([&] { nhmmer_on(open_driver, models, targets, options, {}); }),
            ErrorCode::kUsage);
}

// Like `hmmjit cache import` and `hmmjit cache clear`: the limit applies at once, and abandoned
// temporary files are removed.
TEST(Cache, ImportKeepsTheCapAndClearSweeps) {
  const hmmjit::test_support::TemporaryFolder folder;
  namespace cache = hmmjit::cache;
  const auto store = cache::EntryStore::open(folder.file("full"), {});
  ASSERT_TRUE(store);
  for (int i = 0; i < 40; ++i) {
    cache::CacheKey key;
    key.add("source", "kernel " + std::to_string(i));
    cache::Entry entry;
    entry.payload.assign(20000, static_cast<char>('a' + i % 26));
    ASSERT_TRUE(store->publish(key, entry));
  }
  const std::string bundle = folder.file("bundle");
  ASSERT_TRUE(cache::export_bundle(*store, bundle, {}));
  CacheSettings settings;
  settings.directory = folder.file("small");
  settings.max_bytes = store->scan().allocated_total / 2;
  Cache small(settings);
  EXPECT_EQ(small.import_bundle(bundle), 40u);
  EXPECT_LE(small.statistics().disk_bytes, settings.max_bytes);
  EXPECT_GT(small.statistics().entries, 0u);

  const std::filesystem::path abandoned = std::filesystem::path(settings.directory) / "tmp-1-0-old";
  std::ofstream(abandoned) << "half an entry";
  std::filesystem::last_write_time(
      abandoned, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  EXPECT_GT(small.clear(), 0u);
  EXPECT_EQ(small.statistics().entries, 0u);
  EXPECT_FALSE(std::filesystem::exists(abandoned));
}

TEST(Cache, SettingsThatCannotServeAreNamed) {
  CacheSettings settings;
  std::string text;
  EXPECT_EQ(code_of([&] { Cache(settings).clear(); }, &text), ErrorCode::kOutput);
  EXPECT_EQ(text, "this cache has no folder; open it with a directory");
  settings.mode = static_cast<CacheMode>(9);
  EXPECT_EQ(code_of([&] { Cache cache(settings); }), ErrorCode::kUsage);
}

TEST(Cache, MovesKernelsBetweenFolders) {
  COMPILER_OR_SKIP();
  const hmmjit::test_support::TemporaryFolder folder;
  EngineSettings s = settings(folder.path().string() + "/a");
  Engine engine(s);
  engine.compile(engine.plan(problem(1), find_device("H200")));
  EXPECT_EQ(s.cache.statistics().entries, 1u);
  EXPECT_EQ(s.cache.export_bundle(folder.path().string() + "/bundle"), 1u);
  CacheSettings other;
  other.directory = folder.path().string() + "/b";
  Cache cache(other);
  EXPECT_EQ(code_of([&] { cache.import_bundle(folder.path().string() + "/none"); }),
            ErrorCode::kInput);
  EXPECT_EQ(cache.import_bundle(folder.path().string() + "/bundle"), 1u);
  EXPECT_EQ(cache.clear(), 1u);
  EXPECT_EQ(cache.statistics().entries, 0u);
  CacheSettings memory_only;
  memory_only.mode = CacheMode::kOff;
  EXPECT_EQ(code_of([&] { Cache(memory_only).clear(); }), ErrorCode::kOutput);
}

}  // namespace
