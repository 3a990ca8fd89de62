// Outputs compared with files. HMMJIT_UPDATE_GOLDEN=1 rewrites them for review.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/digest.hpp"
#include "plan/plan.hpp"
#include "render/renderer.hpp"

namespace hmmjit {
namespace {

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = std::string(HMMJIT_SOURCE_DIR "/tests/golden/") + name;
  if (std::getenv("HMMJIT_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path << ": missing; HMMJIT_UPDATE_GOLDEN=1 writes it";
  const std::string golden{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(text == golden)
      << path << ": cmake --build --preset release --target renew, then review its difference";
}

TEST(Golden, RenderedFixture) {
  const auto library =
      render::TemplateLibrary::from_folder(HMMJIT_SOURCE_DIR "/tests/golden/fixture");
  ASSERT_TRUE(library) << library.error().to_string();
  const auto source =
      render::render(*library, "ssv/example.cu", "example", {{"kH", 13}, {"kBig", 5'000'000'000}});
  ASSERT_TRUE(source) << source.error().to_string();
  expect_golden("example.rendered.cu", source->text);
}

// Devices and size classes determine every cache key: a change here affects users.
TEST(Golden, DevicesAndSizeClasses) {
  std::string text;
  for (const plan::DeviceTraits& d : plan::device_table()) {
    text += fmt::format("{}: sm_{}, {} SMs, {} kHz, {} threads, {} blocks, {} + {} shared bytes\n",
                        d.name, d.capability(), d.sm_count, d.clock_khz, d.max_threads_per_sm,
                        d.max_blocks_per_sm, d.shared_per_sm, d.shared_per_block_limit);
  }
  int previous = 0;
  for (int length = 1; length <= 4096; ++length) {
    const int c = plan::class_length(length);
    if (c != previous) text += fmt::format("class {}\n", c);
    previous = c;
  }
  expect_golden("devices_and_classes.txt", text);
}

// The rendered source of every variant's first choice, as a digest: shows which kernels, and
// therefore which of users' cache entries, an edit of a template or catalogue entry changes.
TEST(Golden, RenderedKernels) {
  const auto library = render::TemplateLibrary::from_environment();
  ASSERT_TRUE(library) << library.error().to_string();
  std::string text;
  for (const char* name : {"T4", "L40S", "H200"}) {
    const auto device = *plan::find_device(name);
    for (int i = 0; i < plan::kStages; ++i) {
      for (const plan::KernelVariant& v : plan::variants_of(static_cast<plan::Stage>(i))) {
        for (const int length : {45, 400, 2405}) {
          plan::PlanOptions options;
          options.variant = v.name;
          const std::string what =
              fmt::format("{} {}/{} {}", name, plan::stage_name(v.stage), v.name, length);
          const auto planned = plan::make_plan(v.stage, length, 29, device, options);
          if (!planned) {
            text += what + ": refused\n";
            continue;
          }
          const auto source = render::render(*library, planned->chosen);
          ASSERT_TRUE(source) << source.error().to_string();
          text += fmt::format("{}: {}", what, digest_of(source->text).hex());
          for (const auto& [constant, value] : planned->chosen.constants.list()) {
            text += fmt::format(" {} {}", constant, value);
          }
          text += '\n';
        }
      }
    }
  }
  expect_golden("rendered_kernels.txt", text);
}

}  // namespace
}  // namespace hmmjit
