// The provider with a real compiler, real files and no GPU.
#include "compile/kernel_provider.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "cache/bundle.hpp"
#include "core/digest.hpp"
#include "driver/driver.hpp"
#include "fake_driver/fake_driver.hpp"
#include "tests/support/folder.hpp"

namespace hmmjit::compile {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// ---- A small catalogue for these tests ----------------------------------------------------------

plan::Verdict accept_all(const plan::ModelShape&, const plan::DeviceTraits&) {
  return plan::Verdict::accept();
}
std::vector<plan::Constants> one_constant(const plan::ModelShape& shape,
                                          const plan::DeviceTraits&) {
  return {{{"kQ", shape.length}}};
}
plan::Expected expect_64(const plan::ModelShape& shape, const plan::Constants&,
                         const plan::DeviceTraits&) {
  return {.launch = {64},
          .registers = 64,
          .covered_length = shape.length,
          .cells_per_clock_per_sm = 1,
          .binding_resource = "issue"};
}

plan::KernelVariant variant(std::string_view name, std::string_view file) {
  return {.name = name,
          .stage = plan::Stage::kSsv,
          .template_file = file,
          .entry_name = "kernel",
          .accepts = accept_all,
          .constants = one_constant,
          .expected = expect_64};
}
const plan::KernelVariant kGood = variant("good", "good.cu");
const plan::KernelVariant kOther = variant("other", "other.cu");
const plan::KernelVariant kSpills = variant("spills", "spills.cu");
const plan::KernelVariant kBroken = variant("broken", "broken.cu");
const plan::KernelVariant kSlow = variant("slow", "slow.cu");

render::TemplateLibrary texts() {
  const std::string block = "#include \"plan_constants.h\"\n";
  const std::string head = "extern \"C\" __global__ void ";
  return render::TemplateLibrary::from_texts(
      {{"good.cu", block + head + "kernel(int* p) { p[threadIdx.x] += plan_constants::kQ; }\n"},
       {"other.cu", block + head + "kernel(int* p) { p[threadIdx.x] -= plan_constants::kQ; }\n"},
       // 128 values alive across a barrier in 32 registers.
       {"spills.cu",
        block + head +
            "__launch_bounds__(1024, 2) kernel(float* p) {\n"
            "  float v[128];\n"
            "#pragma unroll\n"
            "  for (int i = 0; i < 128; ++i) v[i] = p[i * 1024 + threadIdx.x];\n"
            "  __syncthreads();\n"
            "#pragma unroll\n"
            "  for (int i = 0; i < 128; ++i) p[i + 131072 * threadIdx.x] = v[127 - i] * v[i] + "
            "plan_constants::kQ;\n"
            "}\n"},
       {"broken.cu", block + "// a comment\n" + head +
                         "kernel(int* p) { *p = plan_constants::kQ + undefined_name; }\n"},
       {"slow.cu", block + head +
                       "kernel(float* p) {\n"
                       "  float v[64];\n"
                       "#pragma unroll\n"
                       "  for (int i = 0; i < 64; ++i) v[i] = p[i];\n"
                       "#pragma unroll\n"
                       "  for (int r = 0; r < 48; ++r)\n"
                       "#pragma unroll\n"
                       "    for (int i = 0; i < 64; ++i) v[i] = v[i] * v[(i + r) % 64] + "
                       "plan_constants::kQ;\n"
                       "#pragma unroll\n"
                       "  for (int i = 0; i < 64; ++i) p[i] = v[i];\n"
                       "}\n"}});
}

plan::Plan plan_of(const plan::KernelVariant& chosen, int length = 8,
                   std::vector<const plan::KernelVariant*> fallbacks = {},
                   const char* device = "H200") {
  plan::Plan p;
  p.model_length = p.class_length = length;
  p.alphabet_codes = 29;
  p.device = *plan::find_device(device);
  p.policy = "test";
  const plan::ModelShape shape{plan::Stage::kSsv, length, 29};
  const auto candidate = [&](const plan::KernelVariant& v) {
    plan::Candidate c;
    c.variant = &v;
    c.constants = v.constants(shape, p.device).front();
    c.expected = v.expected(shape, c.constants, p.device);
    return c;
  };
  p.chosen = candidate(chosen);
  for (const plan::KernelVariant* v : fallbacks) p.fallbacks.push_back(candidate(*v));
  return p;
}

// ---- Fixture ------------------------------------------------------------------------------------

class Provider : public testing::Test {
 protected:
  void SetUp() override {
    compiler_ = NvrtcLibrary::locate();
    if (!compiler_) GTEST_SKIP() << compiler_.error().to_string();
  }

  std::unique_ptr<cache::KernelCache> open_cache(cache::Mode mode = cache::Mode::kReadWrite,
                                                 const char* name = "cache") {
    cache::Settings settings;
    settings.directory = (root_ / name).string();
    settings.mode = mode;
    return cache::KernelCache::open(settings);
  }
  ProviderSettings settings(int threads = 4) {
    ProviderSettings s;
    s.threads = threads;
    s.developer = {};
    s.on_event = [this](const ProviderEvent& event) {
      const std::lock_guard guard(mutex_);
      events_.push_back(event);
    };
    return s;
  }
  std::size_t entries() const {
    std::size_t count = 0;
    std::error_code error;
    for (fs::recursive_directory_iterator it(root_ / "cache", error), end; !error && it != end;
         it.increment(error)) {
      count += it->path().extension() == ".entry";
    }
    return count;
  }

  // The key of a job with other values of some components.
  static cache::CacheKey with(const CompileJob& job,
                              const std::map<std::string_view, std::string>& changes) {
    cache::CacheKey key;
    for (const cache::KeyComponent& c : job.key.components()) {
      const auto changed = changes.find(c.name);
      if (c.name != "schema") key.add(c.name, changed == changes.end() ? c.value : changed->second);
    }
    return key;
  }
  // Names of the kernels in the order in which they were compiled.
  std::vector<std::string> compiled() {
    const std::lock_guard guard(mutex_);
    std::vector<std::string> order;
    for (const ProviderEvent& e : events_) {
      if (e.kind == ProviderEvent::Kind::kCompiled) order.push_back(e.kernel);
    }
    return order;
  }

  Result<std::shared_ptr<const NvrtcLibrary>> compiler_ = fail(ErrorCode::kInternal, "not set");
  const Result<std::shared_ptr<const NvrtcLibrary>> no_compiler_ =
      fail(ErrorCode::kCompile, "no run-time compiler found");
  test_support::TemporaryFolder folder_;
  fs::path root_ = folder_.path();
  std::mutex mutex_;
  std::vector<ProviderEvent> events_;
};

TEST_F(Provider, CompilesOnceThenMemoryThenDisk) {
  {
    const auto cache = open_cache();
    KernelProvider provider(texts(), compiler_, *cache, settings());
    const auto first = provider.get(plan_of(kGood));
    ASSERT_TRUE(first) << first.error().to_string();
    EXPECT_EQ((*first)->origin, cache::Layer::kNone);
    EXPECT_GT((*first)->image.resources.registers, 0);
    EXPECT_EQ((*first)->image.resources.spill_bytes, 0);
    EXPECT_EQ((*first)->image.architecture, "sm_90");
    EXPECT_EQ(*provider.get(plan_of(kGood)), *first) << "one object per kernel";
    EXPECT_EQ(provider.statistics().compiled, 1u);
    EXPECT_EQ(provider.statistics().shared, 1u);
  }
  const auto cache = open_cache();
  KernelProvider provider(texts(), compiler_, *cache, settings());
  const auto again = provider.get(plan_of(kGood));
  ASSERT_TRUE(again);
  EXPECT_EQ((*again)->origin, cache::Layer::kUser);
  EXPECT_EQ(provider.statistics().compiled, 0u);
  EXPECT_EQ(provider.statistics().disk_hits, 1u);
  EXPECT_LT((*again)->obtain_seconds, 0.1);
}

TEST_F(Provider, SingleFlightAmongThreads) {
  const auto cache = open_cache();
  KernelProvider provider(texts(), compiler_, *cache, settings());
  std::vector<std::thread> threads;
  std::atomic<int> succeeded{0};
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      if (provider.get(plan_of(t % 2 == 0 ? kGood : kOther))) ++succeeded;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(succeeded, 16);
  EXPECT_EQ(provider.statistics().compiled, 2u);
}

// Acceptance test A with a compiler: processes on one empty cache.
TEST_F(Provider, ProcessesShareOneCompile) {
  const std::string out = (root_ / "out").string();
  std::string command =
      "HMMJIT_CACHE_DIR='" + (root_ / "cache").string() + "'; export HMMJIT_CACHE_DIR;";
  constexpr int kProcesses = 16;
  for (int i = 0; i < kProcesses; ++i) {
    command += "'" KERNEL_WORKER "' 400 H200 > '" + out + std::to_string(i) + "' & ";
  }
  command += "wait";
  ASSERT_EQ(std::system(command.c_str()), 0);
  int compiled = 0;
  std::set<std::string> digests;
  for (int i = 0; i < kProcesses; ++i) {
    std::ifstream file(out + std::to_string(i));
    std::string first, digest;
    file >> first >> digest;
    ASSERT_TRUE(first.starts_with("compiled=")) << "process " << i;
    compiled += first == "compiled=1";
    digests.insert(digest);
  }
  EXPECT_EQ(compiled, 1);
  EXPECT_EQ(digests.size(), 1u);
  EXPECT_EQ(entries(), 1u);
}

// Acceptance test F: a source error is reported in template coordinates and never published.
TEST_F(Provider, CompileErrorIsExplainedAndNotPublished) {
  const auto cache = open_cache();
  auto s = settings();
  s.developer.dump = (root_ / "dump").string();
  KernelProvider provider(texts(), compiler_, *cache, s);
  for (int round = 0; round < 2; ++round) {
    const auto kernel = provider.get(plan_of(kBroken));
    ASSERT_FALSE(kernel);
    EXPECT_EQ(kernel.error().code, ErrorCode::kCompile);
    EXPECT_THAT(kernel.error().message, HasSubstr("broken.cu:3: error: identifier"));
    EXPECT_THAT(kernel.error().message, HasSubstr("undefined_name"));
    EXPECT_THAT(kernel.error().message, HasSubstr("--gpu-architecture=sm_90"));
    EXPECT_THAT(kernel.error().remedy, HasSubstr(s.developer.dump));
  }
  EXPECT_EQ(entries(), 0u);
  ASSERT_EQ(events_.size(), 1u) << "the failure is remembered, not repeated";
  EXPECT_EQ(events_[0].kind, ProviderEvent::Kind::kFailed);
  EXPECT_THAT(events_[0].log, HasSubstr("undefined_name"));
  EXPECT_THAT(events_[0].options, HasSubstr("--std=c++17"));
  int dumped = 0;
  for (const auto& file : fs::directory_iterator(s.developer.dump)) {
    dumped += file.path().extension() == ".cu" || file.path().extension() == ".log";
  }
  EXPECT_EQ(dumped, 2);
}

TEST_F(Provider, RefusedOptionKeepsTheReason) {
  static const std::string_view kOptions[] = {"--no-such-option"};
  plan::KernelVariant odd = kGood;
  odd.compile_options = kOptions;
  const auto cache = open_cache();
  KernelProvider provider(texts(), compiler_, *cache, settings());
  const auto kernel = provider.get(plan_of(odd));
  ASSERT_FALSE(kernel);
  EXPECT_THAT(kernel.error().message, HasSubstr("no-such-option"));
  EXPECT_EQ(entries(), 0u);
}

// Acceptance test G: a change of any key component is a miss that `explain` names.
TEST_F(Provider, EachKeyComponentIsNamed) {
  const auto job =
      make_job(texts(), plan_of(kGood).chosen, *plan::find_device("H200"), compiler_->get());
  ASSERT_TRUE(job);
  const auto cache = open_cache();
  ASSERT_TRUE(cache->publish(job->key,
                             {.attributes = {}, .log = {}, .attachments = {}, .payload = "image"}));
  std::set<std::string> seen;
  for (const cache::KeyComponent& changed : job->key.components()) {
    if (changed.name == "schema") continue;
    seen.insert(changed.name);
    const cache::CacheKey key = with(*job, {{changed.name, changed.value + "x"}});
    EXPECT_FALSE(cache->find(key)) << changed.name;
    const auto nearest = cache->nearest(key);
    ASSERT_TRUE(nearest);
    ASSERT_EQ(nearest->differences.size(), 1u);
    EXPECT_EQ(nearest->differences[0].component, changed.name);
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre("abi", "kind", "target", "compiler", "options",
                                                  "entry", "file", "source"));
}

TEST_F(Provider, KeyFollowsConstantsArchitectureAndOptions) {
  static const std::string_view kOptions[] = {"--fmad=false"};
  plan::KernelVariant strict = kGood;
  strict.compile_options = kOptions;
  const auto key = [&](const plan::Plan& p) {
    return make_job(texts(), p.chosen, p.device, compiler_->get())->key.digest();
  };
  const auto base = key(plan_of(kGood));
  EXPECT_EQ(base, key(plan_of(kGood)));
  EXPECT_EQ(base, key(plan_of(kGood, 8, {}, "H100"))) << "equal architecture, equal kernel";
  EXPECT_NE(base, key(plan_of(kGood, 12)));
  EXPECT_NE(base, key(plan_of(kGood, 8, {}, "A100")));
  EXPECT_NE(base, key(plan_of(kOther)));
  EXPECT_NE(base, key(plan_of(strict)));
}

// Acceptance test K.
TEST_F(Provider, SpillingAndBrokenVariantsArePassedOverWithTheReason) {
  const auto cache = open_cache();
  KernelProvider provider(texts(), compiler_, *cache, settings());
  for (const auto& [variant, reason] :
       {std::pair{&kSpills, "spills "}, {&kBroken, "broken.cu:3"}}) {
    const auto kernel = provider.get(plan_of(*variant, 8, {&kGood}));
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    EXPECT_EQ((*kernel)->candidate.variant->name, "good");
    ASSERT_EQ((*kernel)->rejected.size(), 1u);
    EXPECT_THAT((*kernel)->rejected[0].variant, HasSubstr(variant->name));
    EXPECT_THAT((*kernel)->rejected[0].reason, HasSubstr(reason));
  }
  EXPECT_EQ(provider.statistics().rejected, 1u);

  const auto none = provider.get(plan_of(kSpills, 12));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error().message, HasSubstr("every candidate was rejected"));
  EXPECT_THAT(none.error().message, HasSubstr("spills "));
}

// Acceptance test J through the compiler: PTX for a device newer than it.
TEST_F(Provider, NewerDeviceGetsPtx) {
  plan::Plan p = plan_of(kGood);
  p.device.major = 13;
  p.device.minor = 0;
  const auto cache = open_cache();
  KernelProvider provider(texts(), compiler_, *cache, settings());
  const auto kernel = provider.get(p);
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  EXPECT_EQ((*kernel)->image.kind, ImageKind::kPtx);
  EXPECT_THAT((*kernel)->image.bytes, HasSubstr(".entry kernel"));
  EXPECT_THAT((*kernel)->target.explanation, HasSubstr("sm_130 is newer"));
}

// Acceptance test M: the same key and bytes from two processes with different working directories,
// locales, time zones, homes and search paths.
TEST_F(Provider, ImagesAreReproducible) {
  struct Surroundings {
    const char *name, *folder, *environment;
  };
  const std::string other_home = (root_ / "home").string();
  const std::string other =
      "TZ=Asia/Tokyo LC_ALL=de_DE.UTF-8 LANG=tr_TR.UTF-8 PATH=/usr/bin:/bin " +
      ("HOME='" + other_home + "' TMPDIR='" + other_home + "'");
  const Surroundings all[] = {{"one", ".", "TZ=UTC LC_ALL=C"}, {"two", "/", other.c_str()}};
  fs::create_directories(other_home);
  std::set<std::string> images, entries;
  for (const Surroundings& s : all) {
    const fs::path cache = root_ / s.name, out = root_ / (std::string(s.name) + ".out");
    fs::create_directories(root_);
    const std::string command = fmt::format(
        "cd '{}' && cd {} && {} HMMJIT_CACHE_DIR='{}' '{}' 700 T4 > '{}'", root_.string(), s.folder,
        s.environment, cache.string(), KERNEL_WORKER, out.string());
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    std::ifstream file(out);
    std::string compiled, digest;
    file >> compiled >> digest;
    EXPECT_EQ(compiled, "compiled=1");
    images.insert(digest);
    // An entry's path below the cache is the digest of its key.
    for (const auto& entry : fs::recursive_directory_iterator(cache)) {
      if (entry.path().extension() == ".entry") {
        entries.insert(fs::relative(entry.path(), cache).string());
      }
    }
  }
  EXPECT_EQ(images.size(), 1u);
  EXPECT_EQ(entries.size(), 1u);
}

// Acceptance test M over time: the images of a few real kernels, by NVRTC build. Each build has its
// own golden file; HMMJIT_UPDATE_GOLDEN=1 writes it.
TEST_F(Provider, ImagesOfThisCompilerBuildAreTheGoldenOnes) {
  std::string build = (*compiler_)->identity();
  std::ranges::replace_if(
      build, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.'; },
      '_');
  const fs::path path = fs::path(HMMJIT_SOURCE_DIR "/tests/golden") / ("cubins_" + build + ".txt");
  const auto templates = render::TemplateLibrary::from_environment();
  ASSERT_TRUE(templates);
  std::string text;
  for (const char* name : {"T4", "H200", "RTX 5090"}) {
    for (const plan::Stage stage : {plan::Stage::kSsv, plan::Stage::kMsv}) {
      const auto planned = plan::make_plan(stage, 100, 29, *plan::find_device(name));
      ASSERT_TRUE(planned);
      const auto job = make_job(*templates, planned->chosen, planned->device, compiler_->get());
      ASSERT_TRUE(job);
      const auto image = run_job(*job, **compiler_, {}, nullptr);
      ASSERT_TRUE(image) << image.error().to_string();
      text += fmt::format("{} {} {} {}\n", name, plan::stage_name(stage), image->bytes.size(),
                          digest_of(image->bytes).hex());
    }
  }
  if (std::getenv("HMMJIT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  if (!fs::exists(path))
    GTEST_SKIP() << "no goldens for " << (*compiler_)->identity() << ": " << path;
  EXPECT_EQ(text, test_support::read_file(path)) << path;
}

// Acceptance test O: warm for three architectures, export, import, run in mode strict: no compile;
// the same on a machine without a compiler.
TEST_F(Provider, BundleServesAMachineThatMayNotCompile) {
  const std::vector<const char*> devices{"T4", "A100", "H200"};
  const std::string bundle = (root_ / "kernels.bundle").string();
  {
    const auto cache = open_cache();
    KernelProvider provider(texts(), compiler_, *cache, settings());
    for (const char* device : devices) {
      ASSERT_TRUE(provider.get(plan_of(kGood, 8, {}, device)));
    }
    EXPECT_EQ(provider.statistics().compiled, 3u);
    const auto exported = cache::export_bundle(*cache->user_store(), bundle, {});
    ASSERT_TRUE(exported) << exported.error().to_string();
    EXPECT_EQ(exported->entries, 3u);
  }
  {
    const auto empty = open_cache(cache::Mode::kReadWrite, "imported");
    ASSERT_TRUE(cache::import_bundle(*empty->user_store(), bundle));
  }
  for (const bool with_compiler : {true, false}) {
    const auto strict = open_cache(cache::Mode::kStrict, "imported");
    KernelProvider provider(texts(), with_compiler ? compiler_ : no_compiler_, *strict, settings());
    for (const char* device : devices) {
      const auto kernel = provider.get(plan_of(kGood, 8, {}, device));
      ASSERT_TRUE(kernel) << device << ": " << kernel.error().to_string();
      EXPECT_EQ(*(*kernel)->key.find("compiler"), (*compiler_)->identity());
    }
    EXPECT_EQ(provider.statistics().compiled, 0u);
    const auto missing = provider.get(plan_of(kOther));
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().message, HasSubstr("mode strict forbids compiling"));
  }
  const auto cache = open_cache(cache::Mode::kReadWrite, "imported");
  KernelProvider provider(texts(), no_compiler_, *cache, settings());
  EXPECT_TRUE(provider.get(plan_of(kGood)));
  const auto missing = provider.get(plan_of(kOther));
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("no run-time compiler found"));
}

// An exception in a thread of the pool reaches the callers that wait for the kernel.
TEST_F(Provider, MemoryThatRunsOutWhileCompilingIsAnErrorOfResources) {
  const auto cache = open_cache();
  ProviderSettings failing = settings();
  failing.on_event = [](const ProviderEvent&) { throw std::bad_alloc(); };
  KernelProvider provider(texts(), compiler_, *cache, failing);
  const auto kernel = provider.request(plan_of(kGood)).get();
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code, ErrorCode::kResources) << kernel.error().to_string();
}

// Without a compiler, the stored key must be of the right kernel, not the most similar one.
TEST_F(Provider, WithoutCompilerTheSameKernelOfAnyMakerServes) {
  const plan::Plan p = plan_of(kGood);
  const auto own = make_job(texts(), p.chosen, p.device, nullptr);
  ASSERT_TRUE(own);
  const auto compiled = make_job(texts(), p.chosen, p.device, compiler_->get());
  const auto image = run_job(*compiled, **compiler_, {}, nullptr);
  ASSERT_TRUE(image);
  const cache::Entry entry = to_entry(*compiled, *image);
  cache::Entry wrong = entry;
  wrong.payload = "an image for another architecture";
  const auto cache = open_cache();
  ASSERT_TRUE(cache->publish(with(*own, {{"target", "sm_80"}}), wrong));  // one difference
  {
    KernelProvider provider(texts(), no_compiler_, *cache, settings());
    const auto kernel = provider.get(p);
    ASSERT_FALSE(kernel);
    EXPECT_THAT(kernel.error().message, HasSubstr("no run-time compiler found"));
  }
  ASSERT_TRUE(
      cache->publish(with(*own, {{"compiler", "nvrtc 12.4 x"}, {"options", "-other"}}), entry));
  {
    KernelProvider provider(texts(), no_compiler_, *cache, settings());
    EXPECT_NE(provider.cache_state(p)->layer, cache::Layer::kNone);
    // Planned kernels that are slow to compile give way to others unless they are found.
    EXPECT_TRUE(provider.find(p));
    // The folder is read once, not for every kernel.
    const plan::Plan later = plan_of(kOther);
    const auto other = make_job(texts(), later.chosen, later.device, compiler_->get());
    ASSERT_TRUE(cache->publish(other->key, entry));
    EXPECT_FALSE(provider.find(later));
    EXPECT_TRUE(KernelProvider(texts(), no_compiler_, *cache, settings()).find(later));
  }
  KernelProvider provider(texts(), no_compiler_, *cache, settings());
  const auto kernel = provider.get(p);
  ASSERT_TRUE(kernel) << kernel.error().to_string();
  EXPECT_EQ((*kernel)->image.bytes, image->bytes);
  EXPECT_EQ(*(*kernel)->key.find("compiler"), "nvrtc 12.4 x");
  // Refused by the driver, it is removed from the cache although another compiler made it.
  EXPECT_FALSE(provider.refused(p, *kernel, "bad image"));
  EXPECT_EQ(entries(), 2u);
}

// Kernels installed with the program work with any compiler; those in the user's folder from
// another compiler do not.
TEST_F(Provider, InstalledKernelsOfAnotherCompilerNeedNoCompile) {
  const plan::Plan p = plan_of(kGood);
  const auto own = make_job(texts(), p.chosen, p.device, compiler_->get());
  const auto image = run_job(*own, **compiler_, {}, nullptr);
  ASSERT_TRUE(image);
  ASSERT_TRUE(open_cache(cache::Mode::kReadWrite, "other")
                  ->publish(with(*own, {{"compiler", "nvrtc 12.4 x"}}), to_entry(*own, *image)));
  for (const bool installed : {true, false}) {
    cache::Settings folders;
    folders.directory = (root_ / (installed ? "user" : "other")).string();
    if (installed) folders.system_directory = (root_ / "other").string();
    const auto cache = cache::KernelCache::open(folders);
    KernelProvider provider(texts(), compiler_, *cache, settings());
    EXPECT_EQ(provider.cache_state(p)->layer,
              installed ? cache::Layer::kSystem : cache::Layer::kNone);
    EXPECT_EQ(provider.find(p).has_value(), installed);
    const auto kernel = provider.get(p);
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    EXPECT_EQ(provider.statistics().compiled, installed ? 0u : 1u);
    EXPECT_EQ(*(*kernel)->key.find("compiler") == "nvrtc 12.4 x", installed);
    if (!installed) continue;
    // A kernel that the driver refuses is compiled here.
    const auto again = provider.refused(p, *kernel, "bad image");
    ASSERT_TRUE(again) << again.error().to_string();
    EXPECT_EQ(provider.statistics().compiled, 1u);
    EXPECT_EQ((*again)->origin, cache::Layer::kNone);
  }
}

// Volta is too old for NVRTC 13, and a future GPU too new for any.
TEST_F(Provider, InstalledKernelsServeGpusThatTheCompilerDoesNotKnow) {
  plan::Plan future = plan_of(kGood);
  future.device.major = 13;
  future.device.minor = 0;
  for (const plan::Plan& p : {plan_of(kGood, 8, {}, "V100"), future}) {
    const auto own = make_job(texts(), p.chosen, p.device, nullptr);
    const cache::CacheKey key = with(*own, {{"compiler", "nvrtc 12.4 x"}});
    KernelImage image;
    image.bytes = "image";
    ASSERT_TRUE(open_cache(cache::Mode::kReadWrite, "other")->publish(key, to_entry(*own, image)));
    cache::Settings folders;
    folders.system_directory = (root_ / "other").string();
    const auto cache = cache::KernelCache::open(folders);
    KernelProvider provider(texts(), compiler_, *cache, settings());
    EXPECT_EQ(provider.cache_state(p)->layer, cache::Layer::kSystem);
    const auto kernel = provider.get(p);
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    EXPECT_EQ((*kernel)->image.bytes, "image");
    EXPECT_EQ((*kernel)->target.architecture, own->target.architecture);
  }
}

TEST_F(Provider, CancellationStopsRunningAndQueuedCompiles) {
  const auto cache = open_cache(cache::Mode::kOff);
  KernelProvider provider(texts(), compiler_, *cache, settings(1));
  std::vector<KernelProvider::Future> futures;
  for (int i = 1; i <= 12; ++i) futures.push_back(provider.request(plan_of(kSlow, i)));
  std::this_thread::sleep_for(std::chrono::milliseconds(30));
  const auto start = std::chrono::steady_clock::now();
  provider.cancel();
  int interrupted = 0;
  for (auto& future : futures) {
    const auto& kernel = future.get();
    if (!kernel) {
      EXPECT_EQ(kernel.error().code, ErrorCode::kInterrupted);
      ++interrupted;
    }
  }
  EXPECT_GE(interrupted, 11);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  const auto late = provider.get(plan_of(kGood));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::kInterrupted);
}

TEST_F(Provider, UrgentKernelsComeFirst) {
  const auto cache = open_cache(cache::Mode::kOff);
  KernelProvider provider(texts(), compiler_, *cache, settings(1));
  std::vector<KernelProvider::Future> futures;
  for (int i = 1; i <= 6; ++i) futures.push_back(provider.request(plan_of(kGood, i), 0));
  futures.push_back(provider.request(plan_of(kOther, 1), 9));
  for (auto& future : futures) ASSERT_TRUE(future.get());
  const std::vector<std::string> order = compiled();
  ASSERT_EQ(order.size(), 7u);
  // The first may have begun before the urgent request.
  const auto urgent = std::ranges::find_if(
      order, [](const std::string& name) { return name.find(".other.") != std::string::npos; });
  EXPECT_LE(urgent - order.begin(), 1);
}

TEST_F(Provider, EquallyUrgentKernelsComeInTheOrderOfRequests) {
  std::vector<plan::KernelVariant> variants;
  for (const char* name : {"first", "second", "third", "fourth", "fifth"})
    variants.push_back(variant(name, "good.cu"));
  const auto cache = open_cache(cache::Mode::kOff);
  KernelProvider provider(texts(), compiler_, *cache, settings(1));
  std::vector<KernelProvider::Future> futures;
  // Different lengths, so that all kernels are distinct.
  for (const plan::KernelVariant& v : variants)
    futures.push_back(provider.request(plan_of(v, 1 + static_cast<int>(futures.size())), 3));
  for (auto& future : futures) ASSERT_TRUE(future.get());
  std::vector<testing::Matcher<std::string>> names;
  for (const plan::KernelVariant& v : variants)
    names.push_back(HasSubstr("." + std::string(v.name) + "."));
  EXPECT_THAT(compiled(), testing::ElementsAreArray(names));
}

// Variants of different stages may have the same name, and plans the same constants.
TEST_F(Provider, StagesHaveKernelsOfTheirOwn) {
  plan::KernelVariant same_name = variant("good", "other.cu");
  same_name.stage = plan::Stage::kMsv;
  const auto cache = open_cache();
  KernelProvider provider(texts(), compiler_, *cache, settings());
  const plan::Plan ssv = plan_of(kGood);
  plan::Plan msv = plan_of(same_name);
  msv.stage = plan::Stage::kMsv;
  ASSERT_TRUE(std::ranges::equal(ssv.chosen.constants.list(), msv.chosen.constants.list()));
  const auto one = provider.request(ssv), other = provider.request(msv);
  ASSERT_TRUE(one.get() && other.get());
  EXPECT_EQ(provider.statistics().shared, 0u);
  EXPECT_EQ(provider.statistics().compiled, 2u);
  EXPECT_NE((*one.get())->image.bytes, (*other.get())->image.bytes);
}

// Acceptance point 10: an image that the driver refuses is discarded and made again, once.
TEST_F(Provider, ImageRefusedByTheDriverIsRebuiltOnce) {
  const auto cache = open_cache();
  KernelProvider provider(texts(), compiler_, *cache, settings());
  tests::FakeDriver fake({*plan::find_device("H200")});
  const auto driver = driver::Driver::open(fake.api());
  const plan::Plan p = plan_of(kGood);
  auto kernel = *provider.get(p);
  fake.fail_call("library_load", driver::code::kInvalidImage);
  const auto refused = driver::LoadedKernel::load(driver, kernel->image.bytes, "kernel");
  ASSERT_FALSE(refused);
  ASSERT_EQ(refused.error().code, ErrorCode::kCompile);
  const auto rebuilt = provider.refused(p, kernel, refused.error().message);
  ASSERT_TRUE(rebuilt);
  EXPECT_NE(*rebuilt, kernel);
  EXPECT_EQ(provider.statistics().compiled, 2u);
  EXPECT_EQ(cache->counters().get(cache::Counter::kRefusedEntries), 1u);
  EXPECT_EQ(entries(), 1u) << "the rebuilt one";
  EXPECT_TRUE(driver::LoadedKernel::load(driver, (*rebuilt)->image.bytes, "kernel"));
  const auto again = provider.refused(p, *rebuilt, "still");
  ASSERT_FALSE(again);
  EXPECT_THAT(again.error().message, HasSubstr("refused this kernel again"));
}

TEST_F(Provider, DumpThenOverride) {
  const auto cache = open_cache();
  auto s = settings();
  s.developer.dump = (root_ / "dump").string();
  std::string name;
  {
    KernelProvider provider(texts(), compiler_, *cache, s);
    const auto kernel = provider.get(plan_of(kGood));
    ASSERT_TRUE(kernel);
    name = (*kernel)->name;
  }
  for (const char* suffix : {".cu", ".json", ".log", ".cubin"}) {
    EXPECT_TRUE(fs::exists(root_ / "dump" / (name + suffix))) << suffix;
  }
  // Edited source: another kernel, keyed by its own content.
  fs::create_directories(root_ / "edited");
  {
    std::string text = test_support::read_file(root_ / "dump" / (name + ".cu"));
    text.replace(text.find("+="), 2, "*=");
    std::ofstream(root_ / "edited" / (name + ".cu")) << text;
  }
  auto edited = settings();
  edited.developer.override_from = (root_ / "edited").string();
  std::string original, changed;
  {
    KernelProvider provider(texts(), compiler_, *cache, edited);
    const auto kernel = provider.get(plan_of(kGood));
    ASSERT_TRUE(kernel) << kernel.error().to_string();
    EXPECT_EQ(provider.statistics().compiled, 1u);
    changed = (*kernel)->image.bytes;
    KernelProvider plain(texts(), compiler_, *cache, settings());
    original = (*plain.get(plan_of(kGood)))->image.bytes;
    EXPECT_NE(changed, original);
  }
  // A cubin takes precedence over everything.
  std::ofstream(root_ / "edited" / (name + ".cubin")) << original;
  KernelProvider provider(texts(), compiler_, *cache, edited);
  const auto kernel = provider.get(plan_of(kGood));
  ASSERT_TRUE(kernel);
  EXPECT_EQ((*kernel)->image.bytes, original);
}

TEST_F(Provider, LineInformationIsForWhoAsksForIt) {
  const auto cache = open_cache();
  KernelProvider plain(texts(), compiler_, *cache, settings());
  auto s = settings();
  s.developer.line_info = true;
  KernelProvider profiled(texts(), compiler_, *cache, s);
  const auto without = plain.get(plan_of(kGood)), with = profiled.get(plan_of(kGood));
  ASSERT_TRUE(without && with);
  EXPECT_NE((*without)->name, (*with)->name) << "kernels of their own in the cache";
  EXPECT_EQ((*without)->image.bytes.find(".debug_line"), std::string::npos);
  EXPECT_NE((*with)->image.bytes.find(".debug_line"), std::string::npos);
}

TEST_F(Provider, ReadOnlyHomeDoesNotMatter) {
  cache::Settings unwritable;
  unwritable.directory = "/proc/no_folder_can_be_made_here";
  const auto cache = cache::KernelCache::open(unwritable);
  KernelProvider provider(texts(), compiler_, *cache, settings());
  EXPECT_TRUE(provider.get(plan_of(kGood)));
}

TEST_F(Provider, KnownArchitecturesEqualTheCompilersAnswer) {
  const auto known = (*compiler_)->architectures();
  const auto queried = (*compiler_)->queried_architectures();
  ASSERT_TRUE(known && queried);
  EXPECT_EQ(*known, *queried);
}

}  // namespace
}  // namespace hmmjit::compile
