#include "render/renderer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/comma_locale.hpp"
#include "tests/support/folder.hpp"

namespace hmmjit::render {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const char* const kKernel =
    "#include \"common/a.cuh\"\n"
    "#include \"plan_constants.h\"\n"
    "extern \"C\" __global__ void kernel(int* out) { *out = plan_constants::kQ + helper(); }\n";
const char* const kHelper =
    "#pragma once\n"
    "__device__ int helper() { return 1; }\n";

Result<RenderedSource> render_texts(std::map<std::string, std::string, std::less<>> texts,
                                    const plan::Constants& constants = {{"kQ", 4}}) {
  return render(TemplateLibrary::from_texts(std::move(texts)), "ssv/k.cu", "kernel", constants);
}

TEST(Renderer, IncludesOnceAndRelativeToTheIncluder) {
  const auto source = render_texts(
      {{"ssv/k.cu", std::string("#include \"near.cuh\"\n#include \"near.cuh\"\n") + kKernel},
       {"ssv/near.cuh", "#pragma once\nint near_one;\n"},
       {"near.cuh", "int wrong;\n"},
       {"common/a.cuh", kHelper}});
  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_THAT(source->text, Not(HasSubstr("wrong")));
  const auto first = source->text.find("int near_one;");
  EXPECT_NE(first, std::string::npos);
  EXPECT_EQ(source->text.find("int near_one;", first + 1), std::string::npos);
}

TEST(Renderer, DropsPartsForHostCompilers) {
  const std::string text = std::string(
                               "#ifndef __CUDACC_RTC__\n#include <cstdint>\n#else\n"
                               "typedef int device_only;\n#endif\n"
                               "#ifdef __CUDACC_RTC__\nint d;\n#if 1\nint e;\n#endif\n#else\n"
                               "#include <vector>\nint h;\n#endif\n") +
                           kKernel;
  const auto source = render_texts({{"ssv/k.cu", text}, {"common/a.cuh", kHelper}});
  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_THAT(source->text, Not(HasSubstr("cstdint")));
  EXPECT_THAT(source->text, Not(HasSubstr("int h;")));
  EXPECT_THAT(source->text, HasSubstr("device_only"));
  EXPECT_THAT(source->text, HasSubstr("int d;\n#if 1\nint e;\n#endif\n"));
  // Line numbers are those of the template: 14 lines, the include, the next line.
  EXPECT_THAT(source->text, HasSubstr("#line 16 \"/kernel_templates/ssv/k.cu\""));
}

struct Refusal {
  const char* what;
  std::string text;
  plan::Constants constants;
  const char* where;
  const char* message;
};

TEST(Renderer, Refusals) {
  const std::string kernel = kKernel;
  const Refusal cases[] = {
      {"unknown constant",
       kernel + "int x = plan_constants::kMissing;\n",
       {{"kQ", 4}},
       "ssv/k.cu:4",
       "unknown constant plan_constants::kMissing"},
      {"spaced qualifier is not missed in comments",
       kernel + "// plan_constants::kMissing\n",
       {{"kQ", 4}, {"kUnused", 1}},
       "ssv/k.cu",
       "no line uses the constant kUnused"},
      {"constant used in a comment only",
       kernel + "// kUnused\n/* kUnused */\n",
       {{"kQ", 4}, {"kUnused", 1}},
       "ssv/k.cu",
       "no line uses the constant kUnused"},
      {"constant used in a string only",
       kernel + "const char* s = \"kUnused\";\n",
       {{"kQ", 4}, {"kUnused", 1}},
       "ssv/k.cu",
       "no line uses the constant kUnused"},
      {"toolkit header",
       "#include <cuda_fp16.h>\n" + kernel,
       {{"kQ", 4}},
       "ssv/k.cu:1",
       "#include <cuda_fp16.h> in a template"},
      {"missing include",
       "\n#include \"nothing.cuh\"\n" + kernel,
       {{"kQ", 4}},
       "ssv/k.cu:2",
       "no template \"nothing.cuh\""},
      {"file from outside",
       "#include \"../../etc/passwd\"\n" + kernel,
       {{"kQ", 4}},
       "ssv/k.cu:1",
       "no template"},
      {"not ASCII", kernel + "// caf\xc3\xa9\n", {{"kQ", 4}}, "ssv/k.cu:4", "character 0xc3"},
      {"no constants",
       "extern \"C\" __global__ void kernel() {}\n",
       {},
       "ssv/k.cu",
       "no constants block"},
      {"bad name", kernel, {{"kQ", 4}, {"k Q", 1}}, "ssv/k.cu:2", "cannot be the name"},
      {"no endif", kernel + "#if 1\n", {{"kQ", 4}}, "ssv/k.cu:4", "#if without #endif"},
      {"no if", kernel + "#endif\n", {{"kQ", 4}}, "ssv/k.cu:4", "#endif without #if"},
  };
  for (const Refusal& c : cases) {
    const auto source =
        render_texts({{"ssv/k.cu", c.text}, {"common/a.cuh", kHelper}}, c.constants);
    ASSERT_FALSE(source) << c.what;
    EXPECT_EQ(source.error().code, ErrorCode::kCompile) << c.what;
    EXPECT_EQ(source.error().where, c.where) << c.what;
    EXPECT_THAT(source.error().message, HasSubstr(c.message)) << c.what;
  }
}

TEST(Renderer, MissingEntryAndEndlessInclude) {
  const auto library = TemplateLibrary::from_texts(
      {{"ssv/k.cu", kKernel}, {"common/a.cuh", kHelper}, {"loop.cu", "#include \"loop.cu\"\n"}});
  const auto entry = render(library, "ssv/k.cu", "other_kernel", {{"kQ", 4}});
  ASSERT_FALSE(entry);
  EXPECT_THAT(entry.error().message, HasSubstr("defines no other_kernel"));
  const auto loop = render(library, "loop.cu", "kernel", {});
  ASSERT_FALSE(loop);
  EXPECT_THAT(loop.error().message, HasSubstr("includes itself"));
  EXPECT_FALSE(render(library, "nothing.cu", "kernel", {}));
}

// Acceptance test L: locales do not change rendered bytes.
TEST(Renderer, LocaleDoesNotMatter) {
  const auto library = TemplateLibrary::embedded();
  const auto plan = plan::make_plan(plan::Stage::kSsv, 3591, 29, *plan::find_device("H200"));
  ASSERT_TRUE(plan);
  const std::string expected = render(library, plan->chosen)->text;
  const std::string expected_json = plan::plan_json(*plan);
  const std::string expected_text = plan::plan_text(*plan);
  const test_support::CommaLocale locale;
  if (!locale.made()) GTEST_SKIP() << "no locale with a decimal comma: install the package locales";
  EXPECT_EQ(std::string_view(std::localeconv()->decimal_point), ",");
  EXPECT_EQ(render(library, plan->chosen)->text, expected);
  EXPECT_EQ(plan::plan_json(*plan), expected_json);
  EXPECT_EQ(plan::plan_text(*plan), expected_text);
}

TEST(TemplateLibrary, EmbeddedEqualsTheSourceTree) {
  const auto embedded = TemplateLibrary::embedded();
  const auto folder = TemplateLibrary::from_folder(HMMJIT_SOURCE_DIR "/kernel_templates");
  ASSERT_TRUE(folder) << folder.error().to_string();
  EXPECT_EQ(embedded.texts(), folder->texts());
  EXPECT_EQ(embedded.origin(), "embedded");
}

TEST(TemplateLibrary, FolderFromTheEnvironment) {
  const test_support::TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  std::filesystem::create_directory(folder / "ssv");
  std::ofstream(folder / "ssv/k.cu") << "int x;\n";
  setenv("HMMJIT_TEMPLATE_DIR", folder.c_str(), 1);
  const auto library = TemplateLibrary::from_environment();
  ASSERT_TRUE(library);
  EXPECT_EQ(library->find("ssv/k.cu"), "int x;\n");
  EXPECT_EQ(library->find("ssv/warp_striped.cu"), std::nullopt);
  setenv("HMMJIT_TEMPLATE_DIR", (folder / "absent").c_str(), 1);
  const auto missing = TemplateLibrary::from_environment();
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kInput);
  unsetenv("HMMJIT_TEMPLATE_DIR");
  EXPECT_EQ(TemplateLibrary::from_environment()->origin(), "embedded");
}

}  // namespace
}  // namespace hmmjit::render
