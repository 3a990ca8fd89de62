// Makes and merges parts of a search from a host program, with public headers only.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "hmmjit/hmmjit.hpp"
#include "tests/unit/api/support.hpp"

namespace {

using hmmjit::ReportKind;
using hmmjit::tests::code_of;

struct PartSearch {
  hmmjit::test_support::TemporaryFolder folder;
  hmmjit::tests::Inputs inputs = hmmjit::tests::make_inputs(5, 6, 400);
  hmmjit::Models models = hmmjit::Models::from_memory(inputs.models);
  std::string database = folder.file("targets.hjdb");
  hmmjit::SearchOptions options = hmmjit::tests::on_cpu();

  PartSearch() { hmmjit::build_database({hmmjit::Targets::from_memory(inputs.targets)}, database); }
  std::vector<std::string> search_parts(std::uint32_t number) const {
    std::vector<std::string> files;
    for (std::uint32_t part = 1; part <= number; ++part) {
      files.push_back(folder.file("part" + std::string(1, static_cast<char>('a' + part))));
      const hmmjit::PartInfo info =
          hmmjit::search_part(models, database, {part, number}, files.back(), options);
      EXPECT_EQ(info.part, part);
    }
    return files;
  }
};

std::string text_of(ReportKind kind, const hmmjit::SearchResults& results) {
  return hmmjit::tests::without_times(hmmjit::report_text(kind, results));
}

TEST(Parts, MergedReportsAreThoseOfOneSearch) {
  const PartSearch data;
  const hmmjit::SearchResults whole =
      hmmjit::search(data.models, hmmjit::Targets::from_file(data.database), data.options);
  std::vector<std::string> files = data.search_parts(3);
  std::swap(files[0], files[2]);
  const hmmjit::SearchResults merged = hmmjit::merge_parts(files);
  ASSERT_EQ(merged.models.size(), whole.models.size());
  EXPECT_GT(merged.statistics.hits_reported, 10u);
  EXPECT_EQ(merged.statistics.hits_reported, whole.statistics.hits_reported);
  EXPECT_EQ(merged.statistics.domains_reported, whole.statistics.domains_reported);
  EXPECT_EQ(merged.statistics.targets, 400u);
  for (const ReportKind kind :
       {ReportKind::kMain, ReportKind::kTargetTable, ReportKind::kDomainTable,
        ReportKind::kPfamTable, ReportKind::kAlignment, ReportKind::kTsv, ReportKind::kJson,
        ReportKind::kA3m})
    EXPECT_EQ(text_of(kind, merged), text_of(kind, whole)) << static_cast<int>(kind);
  // One model at a time.
  std::vector<std::string> names;
  hmmjit::SearchCallbacks callbacks;
  callbacks.result = [&](const hmmjit::ModelResult& result) {
    names.push_back(result.info().model_name);
  };
  EXPECT_TRUE(hmmjit::merge_parts(files, callbacks).models.empty());
  EXPECT_EQ(names.size(), whole.models.size());
  callbacks.result = [](const hmmjit::ModelResult&) { throw std::runtime_error("enough"); };
  EXPECT_THROW(hmmjit::merge_parts(files, callbacks), std::runtime_error);
}

TEST(Parts, SharesOfTheModelsAreMergedToo) {
  const PartSearch data;
  const hmmjit::SearchResults whole =
      hmmjit::search(data.models, hmmjit::Targets::from_file(data.database), data.options);
  // More shares than models: some are empty.
  for (const std::uint32_t number : {2u, 3u, 9u}) {
    std::vector<std::string> files;
    for (std::uint32_t part = 1; part <= 2; ++part) {
      std::uint64_t models = 0;
      for (std::uint32_t model_part = 1; model_part <= number; ++model_part) {
        files.push_back(data.folder.file(std::to_string(part) + "_" + std::to_string(model_part)));
        const hmmjit::PartInfo info = hmmjit::search_part(
            data.models, data.database, {part, 2, model_part, number}, files.back(), data.options);
        EXPECT_EQ(info.model_part, model_part);
        EXPECT_EQ(info.last_model_part, model_part);
        EXPECT_EQ(info.model_parts, number);
        EXPECT_EQ(info.first_model, models);
        models = info.last_model;
      }
      EXPECT_EQ(models, whole.models.size());
    }
    const hmmjit::SearchResults merged = hmmjit::merge_parts(files);
    ASSERT_EQ(merged.models.size(), whole.models.size());
    for (const ReportKind kind :
         {ReportKind::kMain, ReportKind::kTargetTable, ReportKind::kDomainTable, ReportKind::kTsv})
      EXPECT_EQ(text_of(kind, merged), text_of(kind, whole)) << number;
    files.erase(files.begin() + 1);
    EXPECT_EQ(hmmjit::missing_parts(files), "3");
    EXPECT_THROW(hmmjit::merge_parts(files), hmmjit::Error);
  }
}

TEST(Parts, JoinedPartsHaveTheContentOfALargerOne) {
  const PartSearch data;
  const std::vector<std::string> files = data.search_parts(2);
  const hmmjit::PartInfo joined = hmmjit::join_parts(files, data.folder.file("joined"));
  const hmmjit::PartInfo once =
      hmmjit::search_part(data.models, data.database, {}, data.folder.file("once"), data.options);
  EXPECT_STREQ(joined.content, once.content);
  EXPECT_EQ(joined.last_part, 2u);
  EXPECT_EQ(joined.settings, once.settings);
  EXPECT_STREQ(hmmjit::verify_part(data.folder.file("joined")).content, joined.content);
  EXPECT_EQ(hmmjit::part_info(data.folder.file("joined")).targets_reported, once.targets_reported);
}

TEST(Parts, WhatIsWrongIsSaid) {
  const PartSearch data;
  const std::vector<std::string> files = data.search_parts(2);
  EXPECT_EQ(code_of([&] { hmmjit::merge_parts({files[1]}); }), hmmjit::ErrorCode::kInput);
  EXPECT_EQ(code_of([&] { hmmjit::merge_parts({}); }), hmmjit::ErrorCode::kUsage);
  EXPECT_EQ(code_of([&] { hmmjit::part_info(data.database); }), hmmjit::ErrorCode::kInput);
  const auto search = [&](std::uint32_t part, const hmmjit::SearchOptions& options) {
    return code_of([&] {
      hmmjit::search_part(data.models, data.database, {part, 2}, data.folder.file("no"), options);
    });
  };
  EXPECT_EQ(search(0, data.options), hmmjit::ErrorCode::kUsage);
  EXPECT_EQ(search(3, data.options), hmmjit::ErrorCode::kUsage);
  const auto share = [&](const hmmjit::Models& models, std::uint32_t model_part) {
    return code_of([&] {
      hmmjit::search_part(models, data.database, {1, 1, model_part, 2}, data.folder.file("no"),
                          data.options);
    });
  };
  EXPECT_EQ(share(data.models, 0), hmmjit::ErrorCode::kUsage);
  EXPECT_EQ(share(data.models, 3), hmmjit::ErrorCode::kUsage);
  std::ofstream(data.folder.file("models.hmm")) << data.inputs.models;  // without an index
  EXPECT_EQ(share(hmmjit::Models::from_file(data.folder.file("models.hmm")), 1),
            hmmjit::ErrorCode::kInput);
  // Files that stand for the models, or could.
  for (const char* suffix : {"", ".h3m", ".h3i", ".hjidx", ".h3m.hjidx"}) {
    const std::string file = data.folder.file("models.hmm");
    EXPECT_EQ(code_of([&] {
                hmmjit::search_part(hmmjit::Models::from_file(file), data.database, {},
                                    file + suffix, data.options);
              }),
              hmmjit::ErrorCode::kUsage)
        << suffix;
  }
  hmmjit::SearchOptions options = data.options;
  options.seed = 0;
  EXPECT_EQ(search(1, options), hmmjit::ErrorCode::kUsage);
  options = data.options;
  options.target_count = 3;
  EXPECT_EQ(search(1, options), hmmjit::ErrorCode::kUsage);
  options = data.options;
  options.E = 1;
  hmmjit::search_part(data.models, data.database, {2, 2}, data.folder.file("other"), options);
  EXPECT_EQ(code_of([&] {
              hmmjit::merge_parts({files[0], data.folder.file("other")});
            }),
            hmmjit::ErrorCode::kInput);
  EXPECT_FALSE(std::filesystem::exists(data.folder.file("no")));
}

}  // namespace
