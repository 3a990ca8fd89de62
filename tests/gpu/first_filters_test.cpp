// Every variant of the first filters on a real device through the whole path: plan, provider,
// cache, driver, launch; scores against the scalar reference, occupancy against the plan, start-up
// times printed. A failed kernel, after which the device is of no use to this process. Skipped,
// saying why, if there is no device.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include "compile/kernel_provider.hpp"
#include "driver/driver.hpp"
#include "gpu/stream_wait.hpp"
#include "layout/packed_targets.hpp"
#include "layout/stages.hpp"
#include "reference/filters.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using hmmjit_device::ByteFilterParams;
constexpr double kF1 = 0.02;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Takes the value of a result that must be there.
template <typename T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return std::move(*result);
}
void must(const Status& status) {
  if (!status) throw std::runtime_error(status.error().to_string());
}

class Gpu : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto start = Clock::now();
    driver_ = driver::Driver::open();
    if (!driver_->ready()) return;
    const double opened = milliseconds_since(start);
    start = Clock::now();
    device_ = must(driver_->device(0));
    fmt::print("{}: driver {:.1f} ms, primary context {:.1f} ms\n", device_->traits().name, opened,
               milliseconds_since(start));
    folder_ = fs::temp_directory_path() / fmt::format("hmmjit_gpu_{}", getpid());
    fs::create_directories(folder_);
    fs::permissions(folder_, fs::perms::owner_all);
  }
  static void TearDownTestSuite() {
    device_.reset();
    if (!folder_.empty()) fs::remove_all(folder_);
  }
  void SetUp() override {
    if (!driver_->ready()) GTEST_SKIP() << "no device: " << driver_->report().message;
    compiler_ = compile::NvrtcLibrary::locate();
    if (!compiler_) GTEST_SKIP() << compiler_.error().to_string();
  }

  static std::unique_ptr<cache::KernelCache> open_cache(const char* name) {
    cache::Settings settings;
    settings.directory = (folder_ / name).string();
    return cache::KernelCache::open(settings);
  }
  std::unique_ptr<compile::KernelProvider> open_provider(cache::KernelCache& cache) {
    return std::make_unique<compile::KernelProvider>(
        must(render::TemplateLibrary::from_environment()), compiler_, cache,
        compile::ProviderSettings{.developer = {}, .on_event = {}});
  }

  static inline std::shared_ptr<driver::Driver> driver_;
  static inline driver::DevicePtr device_;
  static inline fs::path folder_;
  Result<std::shared_ptr<const compile::NvrtcLibrary>> compiler_ =
      fail(ErrorCode::kInternal, "not set");
};

/// Device memory with the bytes of a vector.
template <typename T>
driver::DeviceBuffer upload(const driver::DevicePtr& device, const driver::Stream& stream,
                            const std::vector<T>& values) {
  const std::size_t bytes = values.size() * sizeof(T);
  auto buffer = must(driver::DeviceBuffer::create(device, std::max<std::size_t>(bytes, 16)));
  if (bytes > 0) must(buffer.upload(stream, values.data(), bytes));
  return buffer;
}
template <typename T>
T* pointer(const driver::DeviceBuffer& buffer) {
  return reinterpret_cast<T*>(buffer.address());
}

/// One model against some targets: the reference's answers and one launch of any kernel.
class Problem {
 public:
  Problem(std::uint64_t seed, int length, int target_count, int longest)
      : model_(test_support::random_model(seed, length)) {
    test_support::Random random(seed + 1);
    for (int i = 0; i < target_count; ++i) {
      const auto kind = test_support::kAllTargetKinds[static_cast<std::size_t>(i) % 6];
      sequences_.push_back(test_support::random_target(random, {1, longest}, kind, model_->hmm));
    }
    const std::vector<std::span<const Residue>> views(sequences_.begin(), sequences_.end());
    targets_ = layout::pack_targets(views);
    layout::TableBlock block;
    stage_.emplace(model_->bytes, model_->hmm.calibration, kF1, targets_.class_lengths)
        .place(block, true);
    tables_.resize(block.bytes());
    block.copy_to(tables_.data());
    work_ = layout::whole_targets(targets_);
    for (const auto& residues : sequences_) {
      ssv_.push_back(reference::ssv_filter(model_->bytes, residues));
      msv_.push_back(reference::msv_recurrence(model_->bytes, residues));
    }
  }

  int length() const { return model_->bytes.M; }
  std::size_t targets() const { return targets_.size(); }

  /// Launches and returns how many results differ from the reference.
  std::size_t wrong(const driver::DevicePtr& device, const driver::LoadedKernel& kernel,
                    const compile::Kernel& made, int resident_blocks) const {
    auto stream = must(driver::Stream::create(device));
    const auto residues = upload(device, stream, targets_.residues);
    const auto start = upload(device, stream, targets_.start);
    const auto lengths = upload(device, stream, targets_.length);
    const auto original = upload(device, stream, targets_.original);
    const auto length_class = upload(device, stream, targets_.length_class);
    const auto items = upload(device, stream, work_.items);
    const auto splits = upload(device, stream, work_.splits);
    const auto tables = upload(device, stream, tables_);
    std::vector<std::uint32_t> results(targets_.size(), 0xffffffffu);
    const auto results_buffer = upload(device, stream, results);
    const auto survivors =
        upload(device, stream, std::vector<hmmjit_device::Survivor>(targets_.size()));
    const auto undecided = upload(device, stream, results);
    const auto boundary = upload(device, stream, targets_.residues);
    const auto tile_best = upload(device, stream, std::vector<std::uint32_t>(work_.items.size()));
    hmmjit_device::Counters counters{};
    const auto counters_buffer =
        upload(device, stream, std::vector<hmmjit_device::Counters>{counters});

    const ByteProfile& profile = model_->bytes;
    ByteFilterParams p = stage_->parameters(tables.address());
    p.database = {pointer<std::uint8_t>(residues),
                  pointer<std::uint32_t>(start),
                  pointer<std::uint32_t>(lengths),
                  pointer<std::uint32_t>(original),
                  pointer<std::uint32_t>(length_class),
                  static_cast<std::uint32_t>(targets()),
                  0};
    p.items = pointer<hmmjit_device::WorkItem>(items);
    p.splits = pointer<hmmjit_device::SplitState>(splits);
    p.counters = pointer<hmmjit_device::Counters>(counters_buffer);
    p.results = pointer<std::uint32_t>(results_buffer);
    p.survivors = pointer<hmmjit_device::Survivor>(survivors);
    p.undecided = pointer<std::uint32_t>(undecided);
    p.boundary = pointer<std::uint8_t>(boundary);
    p.tile_best = pointer<std::uint32_t>(tile_best);
    p.item_count = static_cast<std::uint32_t>(work_.items.size());

    p.tile_count = static_cast<std::uint32_t>(plan::tiles_of(made.candidate, profile.M));
    const driver::LaunchGrid grid{
        .blocks = static_cast<unsigned>(device->traits().sm_count * resident_blocks),
        .block_threads = static_cast<unsigned>(made.candidate.expected.launch.block_threads),
        .dynamic_shared_bytes =
            static_cast<unsigned>(made.candidate.expected.launch.dynamic_shared_bytes)};
    for (p.tile = 0; p.tile < p.tile_count; ++p.tile) {
      must(counters_buffer.fill(stream, 0, sizeof counters.next));
      must(kernel.launch(stream, grid, &p));
    }
    must(results_buffer.download(stream, results.data(), results.size() * sizeof results[0]));
    must(stream.synchronize());

    std::size_t differences = 0;
    for (std::size_t t = 0; t < targets(); ++t) {
      const std::size_t original_index = targets_.original[t];
      const int L = static_cast<int>(sequences_[original_index].size());
      const layout::ByteAnswer answer = layout::byte_answer(profile, results[t], L);
      bool equal = false;
      if (made.candidate.variant->stage == plan::Stage::kSsv) {
        const reference::SsvResult& want = ssv_[original_index];
        equal = static_cast<reference::SsvStatus>(answer.status) == want.status &&
                (want.status != reference::SsvStatus::kScore || answer.nats == want.nats);
      } else {
        equal = answer.nats == msv_[original_index];
      }
      differences += !equal;
    }
    return differences;
  }

 private:
  std::shared_ptr<const SearchModel> model_;
  std::vector<std::vector<Residue>> sequences_;
  layout::PackedTargets targets_;
  std::optional<layout::ByteStage> stage_;
  std::vector<std::byte> tables_;
  layout::WorkList work_;
  std::vector<reference::SsvResult> ssv_;
  std::vector<float> msv_;
};

TEST_F(Gpu, EveryVariantScoresAsTheReferenceWithThePlannedOccupancy) {
  constexpr int kTargets = 150, kLongestTarget = 300;
  std::map<int, Problem> problems;
  for (const int length : {7, 45, 131, 226, 400, 1001, 2405, 3591}) {
    problems.emplace(std::piecewise_construct, std::forward_as_tuple(length),
                     std::forward_as_tuple(static_cast<std::uint64_t>(length), length, kTargets,
                                           kLongestTarget));
  }
  const auto cache = open_cache("variants");
  const auto provider = open_provider(*cache);
  struct Asked {
    plan::Plan plan;
    compile::KernelProvider::Future future;
  };
  std::vector<Asked> asked;
  int refused = 0;
  for (const plan::Stage stage : {plan::Stage::kSsv, plan::Stage::kMsv}) {
    for (const auto& [length, problem] : problems) {
      std::vector<std::string> names{""};  // the policy's own choice, then each by name
      for (const auto& v : plan::variants_of(stage)) names.emplace_back(v.name);
      for (const std::string& name : names) {
        plan::PlanOptions options;
        options.variant = name;
        auto planned = plan::make_plan(stage, length, 29, device_->traits(), options);
        if (!planned) {
          ASSERT_FALSE(name.empty()) << planned.error().to_string();
          ++refused;
          continue;
        }
        auto future = provider->request(*planned);
        asked.push_back({std::move(*planned), std::move(future)});
      }
    }
  }
  int exact_occupancy = 0, fallbacks = 0;
  std::vector<double> load_times, prepare_times;
  std::size_t compared = 0;
  for (const Asked& a : asked) {
    const auto& kernel = a.future.get();
    const std::string what = fmt::format("{}/{} M {}", plan::stage_name(a.plan.stage),
                                         a.plan.chosen.variant->name, a.plan.model_length);
    if (!kernel) {
      ADD_FAILURE() << what << ": " << kernel.error().to_string();
      continue;
    }
    const compile::Kernel& made = **kernel;
    fallbacks += !made.rejected.empty();
    EXPECT_TRUE(made.rejected.empty()) << what << ": " << made.rejected[0].reason;
    auto start = Clock::now();
    const auto loaded =
        must(driver::LoadedKernel::load(driver_, made.image.bytes, made.image.entry_name));
    load_times.push_back(milliseconds_since(start));
    start = Clock::now();
    const auto resources =
        must(loaded->prepare(*device_, made.candidate.expected.launch.block_threads,
                             made.candidate.expected.launch.dynamic_shared_bytes));
    prepare_times.push_back(milliseconds_since(start));
    EXPECT_EQ(resources.registers, made.image.resources.registers) << what;
    EXPECT_LE(resources.local_bytes, made.candidate.expected.local_bytes) << what;
    // The plan counts with a ceiling of registers: never fewer blocks than it says.
    EXPECT_GE(resources.blocks_per_sm, made.candidate.occupancy.blocks_per_sm) << what;
    exact_occupancy += resources.blocks_per_sm == made.candidate.occupancy.blocks_per_sm;
    const Problem& problem = problems.at(a.plan.model_length);
    EXPECT_EQ(problem.wrong(device_, *loaded, made, resources.blocks_per_sm), 0u) << what;
    compared += problem.targets();
  }
  const auto statistics = provider->statistics();
  fmt::print(
      "{} plans ({} refusals), {} kernels compiled in {:.1f} CPU s, {} served by a fallback\n"
      "{} scores compared; occupancy equal to the plan's in {}, above it in {}\n"
      "load of an image: median {:.2f} ms, most {:.2f}; prepare: median {:.2f} ms, most {:.2f}\n",
      asked.size(), refused, statistics.compiled, statistics.compile_seconds, fallbacks, compared,
      exact_occupancy, asked.size() - static_cast<std::size_t>(exact_occupancy), median(load_times),
      std::ranges::max(load_times), median(prepare_times), std::ranges::max(prepare_times));
}

TEST_F(Gpu, ColdAndWarmStart) {
  const Problem problem(1, 400, 60, 300);
  for (const char* state : {"cold", "warm", "warm"}) {
    const auto begin = Clock::now();
    const auto planned = must(plan::make_plan(plan::Stage::kSsv, 400, 29, device_->traits()));
    const auto cache = open_cache("start");
    const auto provider = open_provider(*cache);
    const double opened = milliseconds_since(begin);
    auto start = Clock::now();
    const auto kernel = must(provider->get(planned));
    const double obtained = milliseconds_since(start);
    start = Clock::now();
    const auto loaded =
        must(driver::LoadedKernel::load(driver_, kernel->image.bytes, kernel->image.entry_name));
    const auto resources =
        must(loaded->prepare(*device_, kernel->candidate.expected.launch.block_threads,
                             kernel->candidate.expected.launch.dynamic_shared_bytes));
    const double ready = milliseconds_since(start);
    start = Clock::now();
    EXPECT_EQ(problem.wrong(device_, *loaded, *kernel, resources.blocks_per_sm), 0u);
    fmt::print(
        "{}: plan and open {:.1f} ms, kernel {:.1f} ms ({}), load and prepare {:.2f} ms, first "
        "scores {:.1f} ms, in all {:.1f} ms\n",
        state, opened, obtained, cache::layer_name(kernel->origin), ready,
        milliseconds_since(start), milliseconds_since(begin));
    EXPECT_EQ(kernel->origin,
              std::string_view(state) == "cold" ? cache::Layer::kNone : cache::Layer::kUser);
  }
}

// Last, since no later launch of this process succeeds.
TEST(GpuFailure, AFailedKernelEndsAllWaitsAtOnce) {
  constexpr std::string_view kTrap =
      ".version 6.3\n.target sm_75\n.address_size 64\n"
      ".visible .entry fail(.param .u64 delay) {\n"
      "  .reg .u64 %now, %end, %delay;\n  .reg .pred %more;\n"
      "  ld.param.u64 %delay, [delay];\n"
      "  mov.u64 %now, %globaltimer;\n  add.u64 %end, %now, %delay;\n"
      "wait:\n  mov.u64 %now, %globaltimer;\n  setp.lt.u64 %more, %now, %end;\n"
      "  @%more bra wait;\n  trap;\n}\n";
  const auto driver = driver::Driver::open();
  if (!driver->ready()) GTEST_SKIP() << "no device: " << driver->report().message;
  const auto device = must(driver->device(0));
  const auto kernel = must(driver::LoadedKernel::load(driver, kTrap, "fail"));
  const auto failing = must(driver::Stream::create(device));
  const auto other = must(driver::Stream::create(device));
  const auto start = Clock::now();
  const std::uint64_t delay = 200'000'000;  // ns
  must(kernel->launch(failing, {}, &delay));
  must(kernel->launch(other, {}, &delay));
  const auto wait = [&](const driver::Stream& stream) {
    const Status waited = gpu::wait_for(stream, *device, {.timeout = 10});
    ASSERT_FALSE(waited);
    fmt::print("after {:.0f} ms: {}\n", milliseconds_since(start), waited.error().to_string());
    EXPECT_FALSE(device->abandoned());
  };
  const std::jthread meanwhile([&] { wait(other); });
  wait(failing);
}

}  // namespace
}  // namespace hmmjit
