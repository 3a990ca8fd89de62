// Searches from a host program, with public headers only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <atomic>
#include <cfenv>
#include <cstring>
#include <limits>
#include <new>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "hmmjit/hmmjit.hpp"
#include "tests/support/comma_locale.hpp"
#include "tests/unit/api/support.hpp"

namespace {

using hmmjit::test_support::read_file;
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

TEST(Search, EqualsTheProgramsBytes) {
  const Inputs inputs = make_inputs(1, 6, 400);
  const hmmjit::test_support::TemporaryFolder folder;
  folder.write("m.hmm", inputs.models);
  folder.write("t.fa", inputs.targets);
  const std::string base = folder.path().string() + "/";
  const auto program = [&](std::string options, const std::vector<std::string>& outputs) {
    std::string command = "'" HMMJIT_PROGRAM "' search --quiet --cpu 2 --device cpu" + options;
    for (const std::string& output : outputs) {
      const std::string file = output.substr(output.find_first_not_of('-'));
      command += " " + output + " '" + base + (options.empty() ? "" : "scan_") + file + "'";
    }
    return std::system((command + " '" + base + "m.hmm' '" + base + "t.fa'").c_str());
  };
  ASSERT_EQ(program("", {"-o", "-A", "--tblout", "--domtblout", "--pfamtblout", "--tsv", "--json",
                         "--a3m"}),
            0);
  ASSERT_EQ(program(" --as hmmscan", {"-o", "--tblout", "--domtblout"}), 0);

  const hmmjit::SearchOptions options = on_cpu();
  const auto [models, targets] = parsed(inputs);
  const auto results = hmmjit::search(models, targets, options);
  ASSERT_EQ(results.models.size(), 6u);
  EXPECT_GT(results.statistics.hits_reported, 20u);
  const auto report = [&](hmmjit::ReportKind kind) {
    return stable(hmmjit::report_text(kind, results, hmmjit::ReportOptions(options)));
  };
  using hmmjit::ReportKind;
  EXPECT_EQ(report(ReportKind::kTargetTable), stable(read_file(base + "tblout")));
  EXPECT_EQ(report(ReportKind::kDomainTable), stable(read_file(base + "domtblout")));
  EXPECT_EQ(report(ReportKind::kPfamTable), stable(read_file(base + "pfamtblout")));
  EXPECT_EQ(report(ReportKind::kAlignment), stable(read_file(base + "A")));
  EXPECT_EQ(report(ReportKind::kTsv), stable(read_file(base + "tsv")));
  EXPECT_EQ(report(ReportKind::kA3m), stable(read_file(base + "a3m")));
  const auto without_run = [](const std::string& text) {
    return text.substr(0, text.rfind("\n{", text.size() - 2));
  };
  EXPECT_EQ(without_run(report(ReportKind::kJson)), without_run(stable(read_file(base + "json"))));
  {
    hmmjit::SearchOptions by_target = options;
    by_target.Z = 6;
    const auto scan = hmmjit::search(models, targets, by_target);
    const hmmjit::ReportOptions with(by_target);
    EXPECT_EQ(stable(hmmjit::report_text(ReportKind::kScanTargetTable, scan, with)),
              stable(read_file(base + "scan_tblout")));
    EXPECT_EQ(stable(hmmjit::report_text(ReportKind::kScanDomainTable, scan, with)),
              stable(read_file(base + "scan_domtblout")));
  }
  // The program's text also has a header, and a line about the alignment file for each model.
  std::istringstream lines(stable(read_file(base + "o")));
  std::string expected, line;
  bool body = false;
  while (std::getline(lines, line)) {
    body = body || line.starts_with("Query:");
    if (body && !line.starts_with("# Alignment of") && !line.starts_with("# No hits satisfy"))
      expected += line + "\n";
  }
  EXPECT_EQ(report(ReportKind::kMain), expected);

  // The same from files that are read during the search.
  const auto from_files = hmmjit::search(hmmjit::Models::from_file(base + "m.hmm"),
                                         hmmjit::Targets::from_file(base + "t.fa"), options);
  EXPECT_EQ(stable(hmmjit::report_text(ReportKind::kDomainTable, from_files)),
            report(ReportKind::kDomainTable));

  auto file = hmmjit::Report::to_file(ReportKind::kTargetTable, base + "api.tbl");
  for (const auto& model : results.models) file.add(model);
  EXPECT_FALSE(std::filesystem::exists(base + "api.tbl")) << "not before it is complete";
  file.complete();
  EXPECT_EQ(stable(read_file(base + "api.tbl")), report(ReportKind::kTargetTable));
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

TEST(Search, HitsDomainsAndAlignments) {
  const auto [models, targets] = parsed_inputs(2, 2, 200);
  const auto results = hmmjit::search(models, targets, on_cpu());
  std::size_t domains = 0;
  for (const hmmjit::ModelResult& model : results.models) {
    const hmmjit::ResultInfo& info = model.info();
    const hmmjit::ModelInfo& searched = models[info.model_index].info();
    EXPECT_STREQ(info.model_name, searched.name);
    EXPECT_EQ(info.model_length, searched.length);
    EXPECT_EQ(info.Z, 200);
    EXPECT_EQ(info.counts.targets, 200u);
    double before = 0;
    std::size_t reported = 0;
    for (const hmmjit::Hit& hit : model.hits()) {
      EXPECT_EQ("target" + std::to_string(hit.index), hit.name);
      EXPECT_THAT(hit.description, HasSubstr("number"));
      EXPECT_GE(hit.e_value, before);
      before = hit.e_value;
      reported += hit.reported;
      ASSERT_LT(hit.best_domain, hit.domains);
      const auto best = model.domains(hit)[hit.best_domain].score;
      for (const hmmjit::Domain& d : model.domains(hit)) {
        ++domains;
        EXPECT_LE(d.score, best);
        EXPECT_LE(1, d.envelope_from);
        EXPECT_LE(d.envelope_from, d.alignment_from);
        EXPECT_LE(d.alignment_from, d.alignment_to);
        EXPECT_LE(d.alignment_to, d.envelope_to);
        EXPECT_LE(d.envelope_to, hit.length);
        EXPECT_LE(d.model_to, info.model_length);
        EXPECT_GT(d.accuracy, 0);
        EXPECT_LE(d.accuracy, 1.0001);
        const std::size_t columns = std::strlen(d.model);
        EXPECT_GE(columns, static_cast<std::size_t>(d.alignment_to - d.alignment_from + 1));
        EXPECT_EQ(std::strlen(d.match), columns);
        EXPECT_EQ(std::strlen(d.sequence), columns);
        EXPECT_EQ(std::strlen(d.posterior), columns);
      }
    }
    EXPECT_EQ(reported, info.reported);
  }
  EXPECT_GT(domains, 10u);

  auto without = on_cpu();
  without.keep_alignments = false;
  const auto bare = hmmjit::search(models, targets, without);
  for (const hmmjit::Domain& d : bare.models[0].domains()) EXPECT_STREQ(d.model, "");
}

TEST(Search, SeveralAtOnceOnTheSameInputs) {
  const auto [models, targets] = parsed_inputs(4, 4, 200);
  const auto expected = hmmjit::report_text(hmmjit::ReportKind::kDomainTable,
                                            hmmjit::search(models, targets, on_cpu(1)));
  std::vector<std::thread> threads;
  std::atomic<int> equal{0};
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      const auto results = hmmjit::search(models, targets, on_cpu(1 + i % 3));
      equal += hmmjit::report_text(hmmjit::ReportKind::kDomainTable, results) == expected;
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(equal, 6);
}

TEST(Search, CallbacksSeeResultsInOrderAndProgress) {
  const Inputs inputs = make_inputs(5, 8, 200);
  std::vector<std::size_t> order;
  std::atomic<int> ticks{0};
  hmmjit::Progress last;
  hmmjit::SearchCallbacks callbacks;
  callbacks.result = [&](const hmmjit::ModelResult& result) {
    order.push_back(result.info().model_index);
  };
  callbacks.progress = [&](const hmmjit::Progress& progress) {
    ++ticks;
    last = progress;
    return true;
  };
  callbacks.interval = std::chrono::milliseconds(1);
  const hmmjit::test_support::TemporaryFolder folder;
  const std::string file = folder.file("t.fa");
  std::ofstream(file, std::ios::binary) << inputs.targets;
  const auto results = hmmjit::search(hmmjit::Models::from_memory(inputs.models),
                                      hmmjit::Targets::from_file(file), on_cpu(), callbacks);
  EXPECT_TRUE(results.models.empty());
  EXPECT_EQ(order, (std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_GE(ticks, 1);
  EXPECT_EQ(last.models_done, 8u);
  EXPECT_EQ(last.targets, 200u);
  EXPECT_EQ(last.target_bytes_read, inputs.targets.size());
  EXPECT_EQ(last.cells, last.cells_queued);
  ticks = 0;
  callbacks.interval = std::chrono::milliseconds::max();
  const auto [models, targets] = parsed(inputs);
  hmmjit::search(models, targets, on_cpu(), callbacks);
  EXPECT_EQ(ticks, 1) << "only that at the end";
}

TEST(Search, EndsWhenCancelled) {
  const auto [models, targets] = parsed_inputs(6, 30, 2000);
  // From another thread; by the progress callback; before it begins; by a throwing callback.
  hmmjit::SearchCallbacks callbacks;
  hmmjit::Cancellation cancellation;
  callbacks.cancellation = cancellation;
  std::size_t seen = 0;
  callbacks.result = [&](const hmmjit::ModelResult&) {
    if (++seen == 2) std::thread([&] { cancellation.cancel(); }).join();
  };
  EXPECT_EQ(code_of([&] { hmmjit::search(models, targets, on_cpu(), callbacks); }),
            hmmjit::ErrorCode::kInterrupted);
  EXPECT_GE(seen, 2u);
  EXPECT_LT(seen, 30u);
  EXPECT_EQ(code_of([&] { hmmjit::search(models, targets, on_cpu(), callbacks); }),
            hmmjit::ErrorCode::kInterrupted)
      << "cancelled before";

  hmmjit::SearchCallbacks ticking;
  ticking.interval = std::chrono::milliseconds(1);
  ticking.progress = [](const hmmjit::Progress&) { return false; };
  EXPECT_EQ(code_of([&] { hmmjit::search(models, targets, on_cpu(), ticking); }),
            hmmjit::ErrorCode::kInterrupted);

  hmmjit::SearchCallbacks throwing;
  int calls = 0;
  throwing.result = [&](const hmmjit::ModelResult&) {
    ++calls;
    throw std::runtime_error("of the host");
  };
  EXPECT_THROW(hmmjit::search(models, targets, on_cpu(), throwing), std::runtime_error);
  EXPECT_EQ(calls, 1) << "the search went on";
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

TEST(Search, RefusesTextThatWouldBreakTables) {
  hmmjit::Targets targets;
  targets.add({.name = "good", .residues = "ACDE", .accession = "P1", .description = "a\tb c"});
  std::string text;
  for (const char* name :
       {"two words", "line\nbreak", "tab\tbed", "bell\a", "return\r", "del\x7f"}) {
    EXPECT_EQ(code_of([&] { targets.add({.name = name, .residues = "ACDE"}); }, &text),
              hmmjit::ErrorCode::kUsage)
        << name;
    EXPECT_THAT(text, HasSubstr("target 2"));
  }
  EXPECT_EQ(code_of([&] { targets.add({.name = "a", .residues = "ACDE", .accession = "P 1"}); }),
            hmmjit::ErrorCode::kUsage);
  EXPECT_EQ(
      code_of([&] { targets.add({.name = "a", .residues = "ACDE", .description = "x\n>b"}); }),
      hmmjit::ErrorCode::kUsage);
  targets.add({.name = "\xc3\xa9", .residues = "ACDE"});  // UTF-8 is not a control character
  EXPECT_EQ(targets.size(), 2u);
}

TEST(Search, TargetsKnowTheirAlphabetUnlessAFileDoes) {
  EXPECT_EQ(hmmjit::Targets(hmmjit::Alphabet::kRna).alphabet(), hmmjit::Alphabet::kRna);
  EXPECT_EQ(hmmjit::Targets::from_memory(">a\nACDE\n").alphabet(), hmmjit::Alphabet::kAmino);
  EXPECT_FALSE(hmmjit::Targets::from_file("x").alphabet());
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
      _mm_setcsr(_mm_getcsr() ^
                 kRounding);  // a host that changes the mode must not affect the search
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
  callbacks.result = [](const hmmjit::ModelResult&) { throw std::bad_alloc(); };
  EXPECT_THROW(hmmjit::search(models, targets, on_cpu(), callbacks), std::bad_alloc);
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
