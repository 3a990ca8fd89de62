#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "parts/part_reader.hpp"
#include "parts/part_writer.hpp"
#include "tests/support/folder.hpp"

namespace hmmjit::parts {
namespace {

// Random hits, in the order of a report.
std::vector<Hit> make_hits(std::mt19937& random, std::size_t count) {
  std::vector<Hit> hits(count);
  const auto number = [&](int limit) { return static_cast<int>(random() % unsigned(limit)); };
  const auto real = [&] { return static_cast<float>(number(100000)) / 317.0f - 100.0f; };
  for (std::size_t i = 0; i < count; ++i) {
    Hit& hit = hits[i];
    hit.index = 1000 + i;
    hit.length = 1 + number(3000);
    hit.name = fmt::format("target{}", number(1000));
    if (number(2) != 0) hit.accession = fmt::format("A{}", number(1000));
    if (number(2) != 0) hit.description = std::string(unsigned(number(200)), 'd');
    hit.score.bits = real();
    hit.score.pre_bits = real();
    hit.score.correction_nats = real();
    hit.score.log_p = -1.0 / (1.0 + number(1000));
    hit.score.expected_domains = real();
    hit.score.regions = number(9);
    hit.score.clustered = number(9);
    hit.score.overlaps = number(9);
    hit.score.envelopes = number(9);
    hit.score.domains.resize(1 + unsigned(number(4)));
    hit.score.best_domain = random() % hit.score.domains.size();
    for (domain::Domain& d : hit.score.domains) {
      d.ienv = number(1000), d.jenv = number(1000), d.iali = number(1000), d.jali = number(1000);
      d.hmm_from = number(100), d.hmm_to = number(100);
      d.envelope_nats = real(), d.correction_nats = real(), d.bias_nats = real();
      d.accuracy_sum = real(), d.bits = real(), d.log_p = -3.0 * number(1000);
      const bool reported = number(4) != 0;
      hit.domain_flags.push_back({reported, false});
      const auto columns = 1 + unsigned(number(100));
      if (!reported) continue;
      d.alignment.model = std::string(columns, 'm');
      d.alignment.match = std::string(columns, '+');
      d.alignment.sequence = std::string(columns, 's');
      d.alignment.pp = std::string(columns, '9');
      if (number(2) != 0) d.alignment.cs = std::string(columns, 'H');
    }
    hit.flags.reported = true;
  }
  return hits;
}

ModelHead make_head(std::uint64_t index, std::size_t hits) {
  ModelHead head;
  head.index = index;
  head.model = {index * 77, index + 1};
  head.name = fmt::format("model{}", index);
  head.M = 10 + static_cast<int>(index);
  if (index % 2 != 0) head.cutoff = Cutoff{25.5f, 24.0f};
  head.accession = fmt::format("PF{}", index);
  head.consensus = std::string(static_cast<std::size_t>(head.M), 'c');
  head.counters = {100, 20000, 9, 8, 7, 6};
  head.candidates = hits + 2;
  head.reported = hits;
  head.included = hits / 2;
  head.longest_name = 31;
  head.longest_accession = 5;
  head.longest_shown = 17;
  return head;
}

PartSettings make_settings() {
  PartSettings settings;
  settings.thresholds.target = {1e-3, 25.25};
  settings.thresholds.domain.e_value = 0.1;
  settings.thresholds.Z = 12345.6789;
  settings.filters.F3 = 1.0 / 3.0;
  settings.database_identity = 0x0123456789abcdef;
  settings.targets = 5000;
  settings.residues = 777777;
  return settings;
}

struct WrittenPart {
  std::vector<std::vector<Hit>> hits;
  Digest content;
};

WrittenPart write_part(const std::string& path, const std::vector<std::size_t>& counts,
                       const std::string& host = "here") {
  std::mt19937 random(7);
  PartPlace place;
  place.part = {3, 4, 9};
  place.first_target = 1000;
  place.last_target = 2000;
  WrittenPart written;
  auto writer = PartWriter::create(path, make_settings(), place);
  EXPECT_TRUE(writer);
  for (std::size_t model = 0; model < counts.size(); ++model) {
    const std::vector<Hit>& hits = written.hits.emplace_back(make_hits(random, counts[model]));
    ModelResult result;
    result.hits.hits = hits;
    for (Hit& hit : result.hits.hits) hit.flags.reported = true;
    EXPECT_TRUE(writer->add_model(make_head(model, counts[model]), result));
  }
  PartOrigin origin;
  origin.program = "test";
  origin.host = host;
  origin.options = {{"-E", "5"}, {"--noali", ""}};
  written.content = writer->finish(origin, counts.size(), counts.size()).value_or(Digest{});
  return written;
}

using test_support::read_file;
void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

Status verify(const std::string& path) {
  const auto part = PartFile::open(path);
  return part ? (*part)->verify() : Status(std::unexpected(part.error()));
}

TEST(PartFileTest, WhatWasWrittenIsRead) {
  const test_support::TemporaryFolder folder;
  const std::string path = folder.file("a.hjpart");
  // Many blocks of hits; a model in the middle of one, and models without hits.
  const WrittenPart written = write_part(path, {3, 0, 900, 1, 0, 0, 40});
  const auto part = PartFile::open(path);
  ASSERT_TRUE(part) << part.error().to_string();
  ASSERT_GT((*part)->hit_blocks(), 3u);
  EXPECT_EQ((*part)->settings().text(), make_settings().text());
  EXPECT_EQ((*part)->settings().thresholds.Z, 12345.6789);
  EXPECT_EQ((*part)->settings().filters.F3, 1.0 / 3.0);
  EXPECT_EQ((*part)->settings().thresholds.target.score, 25.25);
  EXPECT_EQ((*part)->place().part.text(), "3-4/9");
  EXPECT_EQ((*part)->content(), written.content);
  EXPECT_EQ((*part)->origin().options.front().second, "5");
  EXPECT_TRUE((*part)->verify());
  PartCursor cursor(*part);
  ModelHead head;
  Hit hit;
  // Read the hits of each model twice, like a merge in lots, and again from the third model on.
  for (std::size_t model : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 2u, 3u}) {
    if (model == 2) {
      ASSERT_TRUE(cursor.seek(model));
    }
    ASSERT_TRUE(cursor.next_model(head).value());
    const ModelHead want = make_head(model, written.hits[model].size());
    EXPECT_EQ(head.index, model);
    EXPECT_EQ(head.name, want.name);
    EXPECT_EQ(head.model, want.model);
    EXPECT_EQ(head.cutoff.has_value(), want.cutoff.has_value());
    EXPECT_FALSE(head.accession) << "this part does not describe models";
    EXPECT_EQ(head.counters.viterbi, want.counters.viterbi);
    EXPECT_EQ(head.longest_shown, 17u);
    for (int repeat = 0; repeat < 2; ++repeat) {
      ASSERT_TRUE(cursor.begin_hits(head));
      for (const Hit& expected : written.hits[model]) {
        ASSERT_TRUE(cursor.next_hit(hit).value());
        EXPECT_EQ(hit.score, expected.score);
        EXPECT_EQ(hit.name, expected.name);
        EXPECT_EQ(hit.accession, expected.accession);
        EXPECT_EQ(hit.description, expected.description);
        EXPECT_EQ(hit.index, expected.index);
        EXPECT_EQ(hit.length, expected.length);
      }
      EXPECT_FALSE(cursor.next_hit(hit).value());
    }
  }
}

TEST(PartFileTest, TheContentDoesNotDependOnItsOrigin) {
  const test_support::TemporaryFolder folder;
  const Digest here = write_part(folder.file("a"), {3, 0, 9}, "here").content;
  const Digest there = write_part(folder.file("b"), {3, 0, 9}, "there").content;
  EXPECT_EQ(here, there);
  EXPECT_NE(read_file(folder.file("a")), read_file(folder.file("b")));
  EXPECT_NE(write_part(folder.file("c"), {3, 0, 8}).content, here);
}

TEST(PartFileTest, EveryByteIsChecked) {
  const test_support::TemporaryFolder folder;
  const std::string path = folder.file("a.hjpart"), damaged = folder.file("b.hjpart");
  write_part(path, {3, 0, 2});
  const std::string whole = read_file(path);
  ASSERT_TRUE(verify(path));
  for (std::size_t i = 0; i < whole.size(); ++i) {
    std::string bytes = whole;
    bytes[i] = static_cast<char>(bytes[i] ^ (1 << (i % 8)));
    std::filesystem::remove(damaged);  // a new file is faster than one that is truncated
    write_file(damaged, bytes);
    const Status found = verify(damaged);
    ASSERT_FALSE(found) << "byte " << i;
    EXPECT_EQ(found.error().code, ErrorCode::kInput);
    EXPECT_EQ(found.error().where, damaged);
  }
  write_file(damaged, whole);
  for (std::size_t size = whole.size(); size-- > 0;) {
    std::filesystem::resize_file(damaged, size);
    ASSERT_FALSE(verify(damaged)) << size << " bytes";
  }
  write_file(damaged, whole + '\0');
  EXPECT_FALSE(verify(damaged));
}

TEST(PartFileTest, TheFirstSettingThatDiffersIsNamed) {
  EXPECT_FALSE(first_difference("a: 1\nb: 2\n", "a: 1\nb: 2\n"));
  const auto value = first_difference("a: 1\nb: 2\nc: 3\n", "a: 1\nb: 4\nc: 5\n");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->name, "b");
  EXPECT_EQ(value->value, "2");
  EXPECT_EQ(value->other, "4");
  const auto missing = first_difference("a: 1\n", "a: 1\nb: 2\n");
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->name, "b");
  EXPECT_EQ(missing->value, "");
  PartSettings settings = make_settings(), other = settings;
  other.seed = 7;
  const auto seed = first_difference(settings.text(), other.text());
  ASSERT_TRUE(seed);
  EXPECT_EQ(seed->name, "seed");
  EXPECT_EQ(seed->value, "42");
  EXPECT_EQ(seed->other, "7");
}

TEST(PartFileTest, SharesAreRead) {
  EXPECT_EQ(parse_share("3/64", "--part")->text(), "3/64");
  EXPECT_EQ(parse_share("3-7/64", "--part")->last, 7u);
  for (const char* wrong : {"", "/", "3", "3/", "/3", "0/3", "4/3", "3-2/4", "1-5/4", "1/2/3",
                            "a/b", "-1/2", "1/4294967296", " 1/2", "1-/2"})
    EXPECT_FALSE(parse_share(wrong, "--part")) << wrong;
}

}  // namespace
}  // namespace hmmjit::parts
