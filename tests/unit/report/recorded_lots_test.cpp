// Recorded searches, written with their hits in lots, give the same bytes as from memory.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "report/outputs.hpp"
#include "search/reader_source.hpp"
#include "tests/support/shared_data.hpp"
#include "tests/unit/report/made_up.hpp"

namespace hmmjit {
namespace {

namespace fs = std::filesystem;

// Model and target files of short recorded searches.
std::set<std::pair<fs::path, fs::path>> recorded_searches(const fs::path& data) {
  constexpr std::uintmax_t kLargestModels = 200'000, kLargestTargets = 1'800'000;
  std::set<std::pair<fs::path, fs::path>> found;
  std::ifstream commands(data / "expected" / "commands.tsv");
  for (std::string line; std::getline(commands, line);) {
    std::vector<fs::path> files;
    std::istringstream words(line.substr(0, line.find(" > ")));
    for (std::string word; words >> word;) {
      if (!word.starts_with("hmm/") && !word.starts_with("seq/")) continue;
      fs::path path = data / word;
      if (!fs::exists(path)) path += ".gz";
      files.push_back(path);
    }
    if (files.size() < 2 || !fs::exists(files.back()) ||
        fs::file_size(files.back()) > kLargestTargets)
      continue;
    for (std::size_t i = 0; i + 1 < files.size(); ++i) {
      if (files[i].extension() == ".hmm" && fs::exists(files[i]) &&
          fs::file_size(files[i]) <= kLargestModels)
        found.emplace(files[i], files.back());
    }
  }
  return found;
}

using Texts = std::array<std::string, kOutputKinds>;

Texts write(const ModelResult& result) {
  const OutputSettings settings{{}, {}, "author"};
  Outputs outputs;
  for (const OutputKind kind : kAllOutputs) {
    if (kind != OutputKind::kDfam && kind != OutputKind::kColumnScores)  // of nucleotides only
      outputs.push_back(make_output(kind, result, settings));
  }
  Texts texts;
  EXPECT_TRUE(write_model(result, outputs, [&](OutputKind kind, std::string_view text) -> Status {
    texts[static_cast<std::size_t>(kind)] += text;
    return {};
  }));
  return texts;
}

class Compare final : public ResultSink {
 public:
  Status receive(const ModelResult& result) override {
    const Texts whole = write(result);
    for (const std::size_t lot : {std::size_t{1}, std::size_t{7}, result.hits.hits.size() + 1}) {
      const Texts in_lots = write(test_support::in_lots(result, lot));
      for (std::size_t kind = 0; kind < kOutputKinds; ++kind)
        EXPECT_TRUE(in_lots[kind] == whole[kind])
            << result.model.name << ", output " << kind << ", lots of " << lot;
    }
    hits += result.hits.reported;
    return {};
  }
  std::uint64_t hits = 0;
};

TEST(RecordedResults, LotsOfAnySizeMakeTheSameBytes) {
  HMMJIT_SHARED_OR_SKIP(shared);
  std::uint64_t hits = 0, searches = 0;
  for (const auto& [models, targets] : recorded_searches(shared / "data")) {
    SCOPED_TRACE(models.string() + " " + targets.string());
    auto source = open_target_file(targets.string(), {amino_alphabet()});
    ASSERT_TRUE(source) << source.error().message;
    SearchOptions options;
    options.threads = 2;
    Compare sink;
    const auto queries = test_support::read_models(models);
    const ModelSource next = [&, i = std::size_t{0}]() mutable -> Result<std::optional<Query>> {
      if (i == queries.size()) return std::nullopt;
      return Query(queries[i++]);
    };
    ASSERT_TRUE(search(options, next, **source, nullptr, sink, nullptr));
    hits += sink.hits;
    ++searches;
  }
  EXPECT_GT(searches, 10u);
  EXPECT_GT(hits, 500u);
}

}  // namespace
}  // namespace hmmjit
