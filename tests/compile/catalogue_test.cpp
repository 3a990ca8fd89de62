// Compiles the catalogue: the first choice of every plan, and of every variant forced by name,
// compiles without spills and within its promised registers, or the entry refuses the shape with a
// reason. No second candidate is tried.
//
// Default: every variant for one length and a sample of size classes and architectures, another in
// each run; HMMJIT_CATALOGUE=N: sample N. HMMJIT_CATALOGUE=all: every distinct kernel of plans for
// models of 1 to 3591 positions (the longest of Pfam) on the devices of the table, about 2300;
// --gtest_filter='*viterbi' selects one stage.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "compile/kernel_compiler.hpp"
#include "core/threads.hpp"

namespace hmmjit::compile {
namespace {

struct Task {
  plan::Candidate candidate;
  plan::DeviceTraits device;
  int length = 0;
};

/// One table device per architecture of the compiler; architectures without one use the device of a
/// neighbouring entry.
std::vector<plan::DeviceTraits> devices_for(const std::vector<int>& architectures) {
  std::vector<plan::DeviceTraits> out;
  for (const int architecture : architectures) {
    const plan::DeviceTraits* best = nullptr;
    for (const plan::DeviceTraits& device : plan::device_table()) {
      if (device.capability() <= architecture) best = &device;
      if (device.capability() == architecture) break;
    }
    if (best == nullptr) continue;
    plan::DeviceTraits device = *best;
    device.major = architecture / 10;
    device.minor = architecture % 10;
    out.push_back(device);
  }
  return out;
}

class Catalogue : public testing::TestWithParam<plan::Stage> {
 protected:
  void SetUp() override {
    compiler_ = NvrtcLibrary::locate();
    if (!compiler_) GTEST_SKIP() << compiler_.error().to_string();
    const auto architectures = (*compiler_)->architectures();
    ASSERT_TRUE(architectures);
    architectures_ = *architectures;
    templates_ = render::TemplateLibrary::from_environment();
    ASSERT_TRUE(templates_) << templates_.error().to_string();
    for (int length = 1; length <= kLongest; ++length) classes_.insert(plan::class_length(length));
    const char* wanted = std::getenv("HMMJIT_CATALOGUE");
    static const std::size_t drawn = std::random_device{}() % 1000;
    sample_ = wanted != nullptr ? std::strtoul(wanted, nullptr, 10) : drawn;
    if (!everything()) fmt::print("sample {} (HMMJIT_CATALOGUE repeats it)\n", sample_);
  }

  /// The first choice of one plan, once per kernel; counts refusals of demanded variants.
  void add(plan::Stage stage, int length, const plan::DeviceTraits& device,
           std::string_view variant = {}) {
    plan::PlanOptions options;
    options.variant = variant;
    const auto planned = plan::make_plan(stage, length, 29, device, options);
    if (!planned) {
      // Rows of the domain stage are in shared memory: too long models run on the CPU.
      const bool domain = is_domain(stage);
      EXPECT_TRUE(domain || !variant.empty()) << planned.error().to_string();
      EXPECT_TRUE(domain || planned.error().code == ErrorCode::kUsage)
          << planned.error().to_string();
      ++refused_;
      return;
    }
    ++plans_;
    std::string identity =
        fmt::format("{}/{}", planned->chosen.variant->entry_name, device.capability());
    for (const auto& [name, value] : planned->chosen.constants.list()) {
      identity += fmt::format("/{}", value);
    }
    if (seen_.insert(identity).second) tasks_.push_back({planned->chosen, device, length});
  }

  void compile_all() {
    ASSERT_FALSE(tasks_.empty());
    std::atomic<std::size_t> next{0};
    std::mutex mutex;
    std::vector<std::string> failures;
    std::size_t done = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < available_cores(); ++t) {
      threads.emplace_back([&] {
        for (std::size_t at = next++; at < tasks_.size(); at = next++) {
          const Task& task = tasks_[at];
          const plan::KernelVariant& variant = *task.candidate.variant;
          const std::string where =
              fmt::format("{}/{} sm_{} length {}", plan::stage_name(variant.stage), variant.name,
                          task.device.capability(), task.length);
          const auto job = make_job(*templates_, task.candidate, task.device, compiler_->get());
          const auto image = job ? run_job(*job, **compiler_, {}, nullptr)
                                 : Result<KernelImage>(std::unexpected(job.error()));
          const std::lock_guard guard(mutex);
          if (++done % 100 == 0) {
            fmt::print("{} of {} kernels, {} failures\n", done, tasks_.size(), failures.size());
            std::fflush(stdout);
          }
          if (!image) {
            failures.push_back(where + ": " + image.error().to_string());
            continue;
          }
          if (image->bytes.find(".nv.global") != std::string::npos)
            failures.push_back(where + ": a constant is a variable, which takes long to load");
          if (const auto reason = gate(image->resources, task.candidate, task.device)) {
            failures.push_back(where + ": " + *reason);
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    fmt::print("{} plans, {} distinct kernels, {} refusals\n", plans_, tasks_.size(), refused_);
    for (const std::string& failure : failures) ADD_FAILURE() << failure;
  }

  static bool is_domain(plan::Stage stage) {
    return stage >= plan::Stage::kParser && stage <= plan::Stage::kEnvelope;
  }

  /// Both tests have nearly the same kernels of the domain stage; a run compiles those of one.
  bool left_to_the_other(std::size_t test) const {
    return !everything() && is_domain(GetParam()) && sample_ / 90 % 2 != test;
  }

  static bool everything() {
    const char* mode = std::getenv("HMMJIT_CATALOGUE");
    return mode != nullptr && std::string_view(mode) == "all";
  }

  static constexpr int kLongest = 3591;
  Result<std::shared_ptr<const NvrtcLibrary>> compiler_ = fail(ErrorCode::kInternal, "not set");
  Result<render::TemplateLibrary> templates_ = fail(ErrorCode::kInternal, "not set");
  std::vector<int> architectures_;
  std::set<int> classes_;
  std::vector<Task> tasks_;
  std::set<std::string> seen_;
  std::size_t plans_ = 0, refused_ = 0, sample_ = 0;
};

TEST_P(Catalogue, FirstChoicesOfPlans) {
  if (left_to_the_other(0)) return;
  const plan::Stage stage = GetParam();
  if (everything()) {
    for (const plan::DeviceTraits& device : plan::device_table()) {
      if (std::ranges::find(architectures_, device.capability()) == architectures_.end()) continue;
      for (const int length : classes_) add(stage, length, device);
    }
  } else {
    const auto devices = devices_for(architectures_);
    std::size_t index = sample_, step = sample_ + static_cast<std::size_t>(stage);
    for (const int length : classes_) {
      if (index++ % 90 != 0) continue;
      add(stage, length, devices[step % devices.size()]);
      step += 5;  // coprime to the number of architectures
    }
  }
  compile_all();
}

TEST_P(Catalogue, FirstChoicesOfDemandedVariants) {
  if (everything()) GTEST_SKIP() << "the other test has the plans' kernels; this one is a sample";
  if (left_to_the_other(1)) return;
  const auto devices = devices_for(architectures_);
  std::size_t step = sample_ + static_cast<std::size_t>(GetParam());
  // Every variant accepts the shortest; some refuse the others.
  constexpr std::array kLengths{24, 700, 24, 3840};
  const auto variants = plan::variants_of(GetParam());
  for (const plan::KernelVariant& v : variants) {
    add(v.stage, kLengths[step % kLengths.size()], devices[step % devices.size()], v.name);
    step += 5;
  }
  if (tasks_.empty()) add(GetParam(), kLengths[0], devices[0], variants[0].name);
  compile_all();
}

INSTANTIATE_TEST_SUITE_P(Stages, Catalogue,
                         testing::Values(plan::Stage::kSsv, plan::Stage::kMsv, plan::Stage::kBias,
                                         plan::Stage::kViterbi, plan::Stage::kForward,
                                         plan::Stage::kGate, plan::Stage::kParser,
                                         plan::Stage::kEnsemble, plan::Stage::kEnvelope),
                         [](const auto& instance) {
                           return std::string(stage_name(instance.param));
                         });

}  // namespace
}  // namespace hmmjit::compile
