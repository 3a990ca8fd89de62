// The whole path of a kernel on real data, without a GPU: planned for a model of Debian's
// hmmer-examples, rendered, compiled by the host's compiler, loaded, and launched over a fake
// driver with the plan's threads and shared memory, in lockstep; every answer for real proteins is
// compared with the CPU filters. The other tests here use small constants of their own; this one
// runs the kernels of a search.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "bench/bench.hpp"
#include "fake_driver/fake_driver.hpp"
#include "lockstep/lockstep.hpp"
#include "render/renderer.hpp"
#include "support/folder.hpp"
#include "support/shared_data.hpp"

namespace hmmjit::tests {
namespace {

using plan::Stage;
namespace fs = std::filesystem;

const fs::path kExamples = "/usr/share/doc/hmmer/examples/tutorial";

/// One thread of a rendered kernel that has been loaded as a host library.
using HostKernel = void (*)(const void* params);

class HostCompiler {
 public:
  Result<HostKernel> compile(const plan::Candidate& candidate) {
    auto rendered = render::render(templates_, candidate);
    if (!rendered) return std::unexpected(rendered.error());
    const auto known = compiled_.find(rendered->text);
    if (known != compiled_.end()) return known->second;
    const std::string base = (folder_.path() / fmt::format("k{}", compiled_.size())).string();
    std::ofstream(base + ".cu") << rendered->text;
    std::ofstream(base + ".cpp") << fmt::format(R"(#define HMMJIT_LOCKSTEP
#include "lockstep/lockstep.hpp"
#include "{}.cu"
template <class P> void call(void (*kernel)(P), const void* params) {{
  kernel(*static_cast<const P*>(params));
}}
extern "C" void run(const void* params) {{ call({}, params); }}
)",
                                                base, rendered->entry_name);
    const std::string command = fmt::format(
        HMMJIT_TEST_COMPILER " -shared -o '{}.so' '{}.cpp' 2>'{}.log'", base, base, base);
    if (std::system(command.c_str()) != 0) {
      std::ifstream log(base + ".log");
      return fail(ErrorCode::kCompile,
                  std::string(std::istreambuf_iterator<char>(log), {}).substr(0, 2000),
                  rendered->file_name);
    }
    void* library = dlopen((base + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return fail(ErrorCode::kInternal, dlerror());
    const auto kernel = reinterpret_cast<HostKernel>(dlsym(library, "run"));
    compiled_[rendered->text] = kernel;
    return kernel;
  }

 private:
  render::TemplateLibrary templates_ = render::TemplateLibrary::embedded();
  test_support::TemporaryFolder folder_;
  std::map<std::string, HostKernel> compiled_;
};

/// Compiles kernels with the host's compiler; a launch uses the latest kernel of an entry.
class RenderedKernels final : public gpu::InstantKernelSource {
 public:
  int launch(const FakeLaunch& launch) {
    const auto found = loaded_.find(launch.kernel);
    if (found == loaded_.end()) return driver::code::kNotFound;
    ++launches_[launch.kernel];
    hmmjit_lockstep::launch(launch.blocks, launch.block_threads, launch.shared_bytes,
                            [&] { found->second(launch.parameters); });
    return 0;
  }
  const std::map<std::string, int>& launches() const { return launches_; }

 private:
  Result<compile::KernelPtr> make(const plan::Plan& plan) override {
    const plan::Candidate& candidate = plan.chosen;
    const auto host = compiler_.compile(candidate);
    if (!host) return std::unexpected(host.error());
    const std::string entry(candidate.variant->entry_name);
    loaded_[entry] = *host;
    auto kernel = std::make_shared<compile::Kernel>();
    kernel->name = entry;
    kernel->candidate = candidate;
    kernel->image.entry_name = entry;
    kernel->image.bytes = "compiled by the host";
    return kernel;
  }
  HostCompiler compiler_;
  std::map<std::string, HostKernel> loaded_;
  std::map<std::string, int> launches_;
};

struct Case {
  std::string model, device;
  Stage stage;
  bool every_variant;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string device = info.param.device;
  std::erase_if(device, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
  return fmt::format("{}_{}_{}", info.param.model, plan::stage_name(info.param.stage), device);
}

class RenderedKernel : public testing::TestWithParam<Case> {};

TEST_P(RenderedKernel, GivesTheCpusAnswersForRealProteins) {
  const auto& [model_name, device_name, stage, every_variant] = GetParam();
  const fs::path path = kExamples / (model_name + ".hmm");
  if (!fs::exists(path)) GTEST_SKIP() << path << " is missing: install the package hmmer-examples";
  const auto model = make_search_model(test_support::read_models(path).at(0));
  bench::Sequences proteins;
  for (const char* file : {"globins45.fa", "HBB_HUMAN", "7LESS_DROME"}) {
    for (auto& s : test_support::read_sequences(kExamples / file)) proteins.push_back(s.residues);
  }
  ASSERT_GE(proteins.size(), 47u);
  if (every_variant) {
    proteins.erase(proteins.begin(), proteins.begin() + 30);
    proteins.back().resize(1000);
  }

  // One SM: blocks run one after another here.
  plan::DeviceTraits device = *plan::find_device(device_name);
  device.sm_count = 1;
  FakeDriver driver({device});
  driver.blocks_per_sm = 2;
  RenderedKernels kernels;
  driver.on_launch = [&](const FakeLaunch& launch) { return kernels.launch(launch); };
  auto bench = bench::Bench::create(driver::Driver::open(driver.api()), 0, kernels, proteins,
                                    {.repeats = 1, .seconds = 3600, .threads = 1});
  ASSERT_TRUE(bench) << bench.error().to_string();
  (*bench)->use_model(model);

  const auto plan = plan::make_plan(stage, model->hmm.M, model->bytes.Kp, device);
  ASSERT_TRUE(plan) << plan.error().to_string();
  std::size_t measured_kernels = 0;
  for (const plan::Candidate& candidate : bench::candidates_of(*plan, 1)) {
    if (!every_variant && !(candidate.variant == plan->chosen.variant)) continue;
    const auto measured = (*bench)->measure(*plan, candidate);
    ASSERT_TRUE(measured) << measured.error().to_string();
    EXPECT_EQ(measured->refused, "") << candidate.variant->name;
    EXPECT_EQ(measured->wrong, 0u)
        << candidate.variant->name << ' ' << bench::constants_text(candidate.constants) << ": "
        << measured->first_wrong;
    EXPECT_EQ(measured->targets, 2 * proteins.size());  // each reversed as well
    EXPECT_GE(kernels.launches().at(std::string(candidate.variant->entry_name)), 1);
    ++measured_kernels;
  }
  RecordProperty("kernels", static_cast<int>(measured_kernels));
  // Bias and Forward have one design each.
  const bool several = every_variant && stage != Stage::kBias && stage != Stage::kForward;
  EXPECT_GE(measured_kernels, several ? 5u : 1u);
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const Stage stage :
       {Stage::kSsv, Stage::kMsv, Stage::kBias, Stage::kViterbi, Stage::kForward}) {
    out.push_back({"globins4", "H200", stage, true});
    out.push_back({"fn3", "T4", stage, false});
    out.push_back({"Pkinase", "RTX 4090", stage, false});
    out.push_back({"Pkinase", "H200", stage, false});
  }
  return out;
}
INSTANTIATE_TEST_SUITE_P(HmmerExamples, RenderedKernel, testing::ValuesIn(cases()), name_of);

}  // namespace
}  // namespace hmmjit::tests
