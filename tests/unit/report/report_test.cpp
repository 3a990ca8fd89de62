// Reports of made-up results: the same text in one piece, in parts and in lots.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "report/report_writer.hpp"
#include "report/run_statistics.hpp"
#include "tests/support/folder.hpp"
#include "tests/unit/report/made_up.hpp"

namespace hmmjit {
namespace {

using test_support::make_hit;
using test_support::make_result;
using ::testing::HasSubstr;

// The text of a model in one output.
std::string text_of(OutputKind kind, const ModelResult& result, const ReportOptions& options = {}) {
  const OutputSettings settings{options, {}, "author"};
  Outputs outputs;
  outputs.push_back(make_output(kind, result, settings));
  std::string text;
  EXPECT_TRUE(write_model(result, outputs, [&](OutputKind, std::string_view piece) -> Status {
    text += piece;
    return {};
  }));
  return text;
}

// Files of a search for one model. As many threads format parts of hits in memory.
std::map<std::string, std::string> written(ModelResult result, std::size_t& parts) {
  const test_support::TemporaryFolder folder;
  ReportPaths paths{.files = {}, .alignment_name = folder.file("alignment")};
  for (const auto& [kind, name] : {std::pair{OutputKind::kMain, "main"},
                                   {OutputKind::kAlignment, "alignment"},
                                   {OutputKind::kTargets, "targets"},
                                   {OutputKind::kDomains, "domains"},
                                   {OutputKind::kPfam, "pfam"},
                                   {OutputKind::kTsv, "tsv"},
                                   {OutputKind::kJson, "json"},
                                   {OutputKind::kA3m, "a3m"},
                                   {OutputKind::kTargetTsv, "target_tsv"}})
    paths.files[kind] = folder.file(name);
  auto writer = ReportWriter::create(paths, {}, {}, "author", "# header\n");
  EXPECT_TRUE(writer);
  if (result.stored == nullptr) {
    result.prepared = (*writer)->prepare(result);
    parts = result.prepared->parts();
    std::vector<std::jthread> threads;
    for (std::size_t part = parts; part-- > 0;)
      threads.emplace_back([&, part] { result.prepared->make(part); });
  }
  EXPECT_TRUE((*writer)->receive(result));
  EXPECT_TRUE((*writer)->complete({}));
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    std::string text = test_support::read_file(entry.path());
    const std::string saved = folder.path().string();
    if (const std::size_t at = text.find(saved); at != text.npos) text.erase(at, saved.size());
    files[entry.path().filename().string()] = std::move(text);
  }
  return files;
}

TEST(ReportWriter, PartsAndLotsMakeTheTextMadeAtOnce) {
  for (const int count : {0, 1, 255, 256, 257, 1000}) {
    std::vector<Hit> hits;
    for (int i = 0; i < count; ++i) {
      hits.push_back(make_hit("target" + std::to_string(i), static_cast<std::uint64_t>(i),
                              60.0f - 0.05f * static_cast<float>(i)));
      if (count > 256 && (i % 7 == 0 || i % 5 == 0)) {
        // --pfamtblout lists a domain of one residue after its equals.
        auto& domains = hits.back().score.domains;
        domains.push_back(domains.front());
        domains.back().iali = domains.back().jali = 1;
      }
    }
    const ModelResult result = make_result(hits);
    std::size_t parts = 0;
    const auto files = written(result, parts);
    EXPECT_EQ(parts > 1, count > 256) << count;
    EXPECT_TRUE(files.at("main").starts_with("# header\n" + text_of(OutputKind::kMain, result) +
                                             (count == 0 ? "# No hits" : "# Alignment of ")))
        << count;
    EXPECT_TRUE(files.at("main").ends_with("\n[ok]\n")) << count;
    for (const auto& [name, kind] : {std::pair{"targets", OutputKind::kTargets},
                                     {"domains", OutputKind::kDomains},
                                     {"pfam", OutputKind::kPfam},
                                     {"json", OutputKind::kJson},
                                     {"a3m", OutputKind::kA3m},
                                     {"alignment", OutputKind::kAlignment}})
      EXPECT_THAT(files.at(name), HasSubstr(text_of(kind, result))) << count;
    for (const std::size_t lot : {std::size_t{1}, std::size_t{7}, hits.size() + 1})
      EXPECT_EQ(written(test_support::in_lots(result, lot), parts), files)
          << count << " in lots of " << lot;
  }
}

// In means, the code 0 stands for 0.01, as in Easel: hmmsearch prints 4 for 0 and 7.
TEST(RunStatistics, EveryCountOfADeviceHasItsName) {
  using Counts = gpu::Statistics;
  constexpr std::pair<const char*, std::uint64_t Counts::*> kNames[] = {
      {"segments", &Counts::segments},
      {"evictions", &Counts::evictions},
      {"upload_bytes", &Counts::upload_bytes},
      {"peak_device_bytes", &Counts::peak_device_bytes},
      {"launches", &Counts::launches},
      {"cells", &Counts::cells},
      {"chains", &Counts::chains},
      {"targets", &Counts::targets},
      {"passed_msv", &Counts::survivors},
      {"undecided", &Counts::undecided},
      {"viterbi_targets", &Counts::viterbi},
      {"viterbi_flagged", &Counts::viterbi_flagged},
      {"forward_targets", &Counts::forward},
      {"left_open", &Counts::open},
      {"parsed_targets", &Counts::parsed},
      {"sampled_regions", &Counts::sampled},
      {"scored_envelopes", &Counts::envelopes},
      {"passed", &Counts::passed},
      {"blocks_done", &Counts::blocks_done},
      {"blocks_given_back", &Counts::blocks_given_back},
      {"models_declined", &Counts::models_declined}};
  std::optional<Counts> counts(std::in_place);
  std::uint64_t number = 100;
  for (const auto& [name, count] : kNames) (*counts).*count = number++;
  const SearchStatistics search;
  const auto json =
      nlohmann::json::parse(run_statistics_json({"hmmjit", "0", search, counts, {}}))["gpu"];
  for (const auto& [name, count] : kNames)
    EXPECT_EQ(json.value(name, 0u), (*counts).*count) << name;
}

TEST(Stockholm, TheLeastPosteriorIsNotZero) {
  Hit first = make_hit("one", 0, 50.0f), second = make_hit("two", 1, 49.0f);
  first.score.domains[0].alignment.pp = "08*.765";
  second.score.domains[0].alignment.pp = "78*.065";
  const ModelResult result = make_result({first, second});
  const std::string out = text_of(OutputKind::kAlignment, result, {.text_width = 0});
  EXPECT_THAT(out, HasSubstr("#=GC PP_cons     .48..465."));
}

}  // namespace
}  // namespace hmmjit
