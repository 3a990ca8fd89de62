// Searches from a host program, with public headers only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <atomic>
#include <cfenv>
#include <limits>
#include <new>
#include <system_error>

#include "hmmjit/hmmjit.hpp"
#include "tests/support/comma_locale.hpp"
#include "tests/unit/api/support.hpp"

namespace {

using hmmjit::tests::code_of;
using hmmjit::tests::Inputs;
using hmmjit::tests::make_inputs;
using hmmjit::tests::on_cpu;
using hmmjit::tests::parsed;
using hmmjit::tests::parsed_inputs;
using testing::HasSubstr;

// Omits lines that depend on the run: times, dates, folders, program.
std::string stable(const std::string& text) {
  return hmmjit::tests::without_lines(
      text, {"# CPU time", "# Mc/sec", "# Program", "# Version", "# Query file", "# Target file",
             "# Option settings", "# Current dir", "# Date", "#=GF AU"});
}

// A host's locale must not affect reading and writing.
TEST(Search, TheHostsLocaleDoesNotMatter) {
  const Inputs inputs = make_inputs(5, 3, 200);
  const auto outputs = [&] {
    auto options = on_cpu();
    options.E = 2.5;
    const auto [models, targets] = parsed(inputs);
    const auto results = hmmjit::search(models, targets, options);
    std::string out;
    for (const auto kind : {hmmjit::ReportKind::kMain, hmmjit::ReportKind::kTargetTable,
                            hmmjit::ReportKind::kDomainTable, hmmjit::ReportKind::kTsv,
                            hmmjit::ReportKind::kAlignment, hmmjit::ReportKind::kA3m}) {
      out += stable(hmmjit::report_text(kind, results, hmmjit::ReportOptions(options)));
    }
    return out + hmmjit::main_report_header(hmmjit::RunInfo(), hmmjit::ReportOptions(options));
  };
  const std::string expected = outputs();
  EXPECT_THAT(expected, HasSubstr("e-"));
  EXPECT_THAT(expected, HasSubstr("<= 2.5"));
  const hmmjit::test_support::CommaLocale locale;
  if (!locale.made()) GTEST_SKIP() << "no locale with a decimal comma: install the package locales";
  char text[16];
  std::snprintf(text, sizeof text, "%.1f", 0.5);
  EXPECT_STREQ(text, "0,5");
  EXPECT_TRUE(outputs() == expected);
}

TEST(Search, NamesWhatIsWrong) {
  using hmmjit::ErrorCode;
  const Inputs inputs = make_inputs(7, 1, 20);
  const auto [models, targets] = parsed(inputs);
  std::string text;
  EXPECT_EQ(code_of([] { hmmjit::Models::load("/nowhere/x.hmm"); }, &text), ErrorCode::kInput);
  EXPECT_THAT(text, HasSubstr("/nowhere/x.hmm"));
  EXPECT_EQ(code_of([&] { hmmjit::Models::from_memory(inputs.targets, "given"); }, &text),
            ErrorCode::kInput);
  EXPECT_THAT(text, HasSubstr("given"));
  EXPECT_EQ(code_of([&] { hmmjit::search(hmmjit::Models::from_file("/nowhere"), targets); }),
            ErrorCode::kInput);
  EXPECT_EQ(code_of([&] { hmmjit::search(models, hmmjit::Targets::from_file("/nowhere")); }),
            ErrorCode::kInput);
  EXPECT_EQ(code_of([&] { hmmjit::search(hmmjit::Models(), targets); }), ErrorCode::kInput);
  EXPECT_EQ(code_of([] { hmmjit::Targets::from_memory(">a\nAC1DE\n"); }, &text), ErrorCode::kInput);
  EXPECT_THAT(text, HasSubstr("memory:2"));
  EXPECT_EQ(code_of([] { hmmjit::Targets::from_file("x", "nonsense"); }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([] { hmmjit::Targets(static_cast<hmmjit::Alphabet>(7)); }), ErrorCode::kUsage);
  const hmmjit::test_support::TemporaryFolder folder;
  const std::string nul("\0x", 2);
  EXPECT_EQ(code_of([&] { hmmjit::Models::load(folder.write("m", inputs.models).string() + nul); }),
            ErrorCode::kInput);
  EXPECT_EQ(
      code_of([&] { hmmjit::Targets::load(folder.write("t", inputs.targets).string() + nul); }),
      ErrorCode::kInput);
  hmmjit::Targets own;
  EXPECT_EQ(code_of([&] { own.add({.name = "a", .residues = "AC-DE"}); }), ErrorCode::kInput);
  EXPECT_EQ(code_of([&] { own.add({.name = "", .residues = "ACDE"}); }), ErrorCode::kUsage);
  EXPECT_EQ(own.size(), 0u);
  EXPECT_EQ(code_of([] { hmmjit::Targets::from_file("x").add({.name = "a", .residues = "A"}); }),
            ErrorCode::kUsage);
  EXPECT_EQ(code_of([&] { hmmjit::search(models, hmmjit::Targets(hmmjit::Alphabet::kDna)); }),
            ErrorCode::kInput);
  const auto with = [&](auto change) {
    auto options = on_cpu();
    change(options);
    return code_of([&] { hmmjit::search(models, targets, options); });
  };
  using O = hmmjit::SearchOptions;
  EXPECT_EQ(with([](O& o) { o.F1 = 0; }), ErrorCode::kUsage);
  EXPECT_EQ(with([](O& o) { o.Z = -1.0; }), ErrorCode::kUsage);
  EXPECT_EQ(with([](O& o) { o.threads = -1; }), ErrorCode::kUsage);
  const std::int32_t twice[] = {0, 0};
  EXPECT_EQ(with([&](O& o) {
              o.gpus = twice;
              o.gpu_count = 2;
            }),
            ErrorCode::kUsage);
  EXPECT_EQ(with([](O& o) { o.cutoffs = HMMJIT_CUT_TC; }), ErrorCode::kInput)
      << "these models have gathering cutoffs only";
  if (!hmmjit::driver_info().ready) {
    EXPECT_EQ(with([](O& o) { o.device = HMMJIT_DEVICE_GPU; }), ErrorCode::kNoDevice);
  }
  EXPECT_EQ(code_of([&] {
              hmmjit::Report::to_file(hmmjit::ReportKind::kMain, "/nowhere/out").complete();
            }),
            ErrorCode::kOutput);
  EXPECT_EQ(code_of([&] { hmmjit::build_database({}, folder.file("t.hjdb")); }), ErrorCode::kUsage);
  EXPECT_EQ(code_of([&] { hmmjit::build_database({targets}, "/nowhere/x.hjdb"); }),
            ErrorCode::kOutput);
}

// The control bits of the floating-point unit in a host function, without the sticky flags.
unsigned float_mode() { return _mm_getcsr() & ~0x3fu; }

TEST(Search, OnlyCallbacksRunInTheHostsFloatingPointMode) {
  const auto [models, targets] = parsed_inputs(11, 12, 200);
  const auto expected =
      hmmjit::report_text(hmmjit::ReportKind::kTsv, hmmjit::search(models, targets, on_cpu()));
  constexpr unsigned kRounding = 0x6000;
  std::fenv_t before;
  std::fegetenv(&before);
  for (void (*const set_mode)() :
       {+[] {}, +[] { std::fesetround(FE_TOWARDZERO); },
        +[] { feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW); }}) {
    set_mode();
    const unsigned wanted = float_mode();
    std::atomic<int> results{0}, ticks{0}, strange{0};
    const auto look = [&] {
      strange += float_mode() != wanted;
      volatile double smallest = std::numeric_limits<double>::min();
      volatile double half = smallest / 2;
      strange += half == 0;
      // A host that changes the mode must not affect the search.
      _mm_setcsr(_mm_getcsr() ^ kRounding);
    };
    hmmjit::SearchResults found;
    hmmjit::SearchCallbacks callbacks;
    callbacks.interval = std::chrono::milliseconds(1);
    callbacks.result = [&](const hmmjit::ModelResult& result) {
      look();
      ++results;
      found.models.push_back(result);
    };
    callbacks.progress = [&](const hmmjit::Progress&) {
      look();
      ++ticks;
      return true;
    };
    hmmjit::search(models, targets, on_cpu(3), callbacks);
    const auto text = hmmjit::report_text(hmmjit::ReportKind::kTsv, found);
    EXPECT_EQ(float_mode(), wanted) << "the caller has its mode back";
    std::fesetenv(&before);
    EXPECT_EQ(results, 12);
    EXPECT_GE(ticks, 1);
    EXPECT_EQ(strange, 0);
    EXPECT_EQ(text, expected);
  }
}

TEST(Search, WhatCallbacksThrowComesOutAsItIs) {
  const auto [models, targets] = parsed_inputs(12, 4, 60);
  // Exception types that the library translates if it throws them itself.
  hmmjit::SearchCallbacks callbacks;
  int calls = 0;
  callbacks.result = [&](const hmmjit::ModelResult&) {
    ++calls;
    throw std::bad_alloc();
  };
  EXPECT_THROW(hmmjit::search(models, targets, on_cpu(), callbacks), std::bad_alloc);
  EXPECT_EQ(calls, 1) << "the search went on";
  callbacks.result = [](const hmmjit::ModelResult&) {
    throw std::system_error(std::make_error_code(std::errc::io_error));
  };
  EXPECT_THROW(hmmjit::search(models, targets, on_cpu(), callbacks), std::system_error);
  EXPECT_THROW(models.for_each([](const hmmjit::Model&) -> bool { throw std::length_error("x"); }),
               std::length_error);
  const hmmjit::test_support::TemporaryFolder folder;
  const std::string database = folder.file("t.hjdb"), part = folder.file("part");
  hmmjit::build_database({targets}, database);
  hmmjit::search_part(models, database, {}, part, on_cpu());
  EXPECT_THROW(hmmjit::merge_parts({part}, callbacks), std::system_error);
}

TEST(Search, VisitorsMayAddToWhatTheyVisit) {
  auto [models, targets] = parsed_inputs(12, 4, 60);
  const std::size_t count[] = {models.size(), targets.size()};
  std::size_t visited[] = {0, 0};
  models.for_each([&](const hmmjit::Model& model) {
    models.add(model);
    return ++visited[0] < 100;
  });
  targets.for_each([&](std::uint64_t, const hmmjit::Sequence& target) {
    targets.add(target);
    return ++visited[1] < 1000;
  });
  EXPECT_EQ(visited[0], count[0]);
  EXPECT_EQ(visited[1], count[1]);
  EXPECT_EQ(targets.size(), 2 * count[1]);
  const std::uint64_t residues = targets.residues();
  hmmjit::Targets joined;
  joined.add(targets);
  joined.add(targets);
  EXPECT_EQ(joined.size(), 4 * count[1]);
  EXPECT_EQ(joined.residues(), 2 * residues);
  EXPECT_EQ(code_of([&] { joined.add(joined); }), hmmjit::ErrorCode::kUsage);
}

// Designated initialisers must compile without warnings under -Wextra
// (-Wmissing-field-initializers) and -Werror.
TEST(Search, OptionsAreNamedOneAtATime) {
  const hmmjit::SearchCallbacks callbacks{.interval = std::chrono::milliseconds(5)};
  EXPECT_FALSE(callbacks.result);
  EXPECT_EQ(hmmjit::KernelVariant{.name = "mine"}.summary, "");
  EXPECT_EQ((hmmjit::Problem{.family = "mine"}.parameters.size()), 0u);
  EXPECT_EQ((hmmjit::Configuration{.constants = {}}.expected.binding_resource), "");
  EXPECT_EQ(hmmjit::TemplateText{.path = "mine.cu"}.text, "");
  EXPECT_EQ(hmmjit::EngineSettings{.variants = {}}.templates.size(), 0u);
  EXPECT_EQ(hmmjit::CacheSettings{.directory = "x"}.system_directory, "");
}

}  // namespace
