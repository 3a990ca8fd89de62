// Hits stored on disk return as finish_hits gives them: order, flags, sums, text.
#include "search/stored_hits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "search/hit_coding.hpp"

namespace hmmjit {
namespace {

std::string letters(std::mt19937_64& random, std::size_t length) {
  std::string text(length, 'a');
  for (char& c : text) c = static_cast<char>('a' + random() % 26);
  return text;
}

// Few values of scores and names, so that many hits are equal except for their place.
std::vector<Hit> make_hits(std::mt19937_64& random, std::size_t count) {
  std::vector<Hit> hits(count);
  for (std::size_t n = 0; n < count; ++n) {
    Hit& hit = hits[n];
    hit.name = letters(random, 1 + random() % 2);
    if (random() % 2 == 0) hit.accession = letters(random, random() % 30);
    hit.description = letters(random, random() % 40);
    hit.index = n;
    hit.length = 100;
    hit.score.bits = static_cast<float>(random() % 40);
    hit.score.log_p = -0.5 * static_cast<double>(hit.score.bits);
    hit.score.overlaps = static_cast<int>(random() % 2);
    hit.score.domains.resize(1 + random() % 4);
    hit.score.best_domain = random() % hit.score.domains.size();
    for (domain::Domain& d : hit.score.domains) {
      d.iali = d.ienv = 1 + static_cast<int>(random() % 3);
      d.jali = d.jenv = 50 + static_cast<int>(random() % 3);
      d.hmm_from = 1;
      d.hmm_to = 30;
      d.bits = static_cast<float>(random() % 40);
      d.log_p = -0.5 * static_cast<double>(d.bits);
      d.envelope_nats = static_cast<float>(random() % 1000) / 7;
      for (std::string* line :
           {&d.alignment.model, &d.alignment.match, &d.alignment.sequence, &d.alignment.pp})
        *line = letters(random, 30);
    }
  }
  return hits;
}

// All parts of a hit that outputs may show.
std::string text_of(const Hit& hit) {
  std::string text;
  Hit all = hit;
  all.domain_flags.assign(hit.score.domains.size(), Hit::Flags{true, true});
  encode_hit(all, true, text);
  text += hit.flags.included ? 'i' : '-';
  for (const Hit::Flags& flags : hit.domain_flags) {
    text += flags.reported ? 'r' : '-';
    text += flags.included ? 'i' : '-';
  }
  text += std::to_string(hit.reported_domains);
  text += ' ';
  text += std::to_string(hit.included_domains);
  return text;
}

void expect_same(const ModelThresholds& thresholds, std::size_t count, std::size_t of_run,
                 std::uint64_t memory) {
  SCOPED_TRACE(::testing::Message() << count << " hits, runs of " << of_run);
  std::mt19937_64 random(count + of_run);
  std::vector<Hit> hits = make_hits(random, count);
  FilterCounters counters;
  counters.targets = 4000;
  const HitList wanted = finish_hits(thresholds, hits, counters);
  std::ranges::shuffle(hits, random);
  StoredHits stored("model", thresholds, true, memory);
  for (std::size_t at = 0; at < count; at += of_run) {
    std::vector<Hit> run(hits.begin() + static_cast<std::ptrdiff_t>(at),
                         hits.begin() + static_cast<std::ptrdiff_t>(std::min(count, at + of_run)));
    ASSERT_TRUE(stored.add(run));
    EXPECT_TRUE(run.empty());
  }
  const auto list = stored.finish(counters, std::nullopt);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->candidates, wanted.candidates);
  EXPECT_EQ(list->reported, wanted.reported);
  EXPECT_EQ(list->included, wanted.included);
  EXPECT_EQ(list->domZ, wanted.domZ);
  EXPECT_EQ(list->longest_name, wanted.longest_name);
  EXPECT_EQ(list->longest_accession, wanted.longest_accession);
  EXPECT_EQ(list->longest_shown, wanted.longest_shown);
  std::vector<std::string> texts;
  std::uint64_t domains = 0;
  for (const Hit& hit : wanted.hits) {
    if (!hit.flags.reported) continue;
    texts.push_back(text_of(hit));
    domains += static_cast<std::uint64_t>(hit.reported_domains);
  }
  ASSERT_GT(texts.size(), count / 4);
  ASSERT_LT(texts.size(), count);  // some are candidates only
  for (int pass = 0; pass < 2; ++pass) {
    std::vector<std::string> got;
    const Status read = stored.for_each_lot([&](std::span<Hit> lot) -> Status {
      for (const Hit& hit : lot) got.push_back(text_of(hit));
      return {};
    });
    ASSERT_TRUE(read);
    EXPECT_EQ(got, texts);
    EXPECT_EQ(stored.domains_reported(), domains);
  }
}

TEST(StoredHits, AreThoseOfFinishHits) {
  ModelThresholds by_e_value;
  by_e_value.rules.target.e_value = 10;
  by_e_value.rules.domain.e_value = 1;
  ModelThresholds by_score = by_e_value;
  by_score.rules.target.score = by_score.rules.include_target.score = 12;
  for (const ModelThresholds& thresholds : {by_e_value, by_score}) {
    expect_same(thresholds, 50, 50, 1 << 20);
    expect_same(thresholds, 3000, 700, 1 << 20);
    expect_same(thresholds, 3000, 10, 1 << 10);  // 300 runs: merged several times
  }
}

TEST(StoredHits, NothingReported) {
  ModelThresholds thresholds;
  thresholds.rules.target.e_value = 1e-300;
  std::mt19937_64 random(3);
  StoredHits stored("model", thresholds, true, 1 << 20);
  std::vector<Hit> hits = make_hits(random, 20);
  ASSERT_TRUE(stored.add(hits));
  const auto list = stored.finish({}, 1000);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->candidates, 20u);
  EXPECT_EQ(list->reported, 0u);
  EXPECT_TRUE(stored.for_each_lot([](std::span<Hit>) -> Status {
    ADD_FAILURE();
    return {};
  }));
}

// Added together or in different runs, reported or not.
TEST(StoredHits, ATargetThatWasFoundTwiceIsAnError) {
  for (const double e_value : {1e30, 1e-300}) {
    for (const bool in_one_run : {true, false}) {
      for (const std::size_t runs : {std::size_t{2}, std::size_t{67}}) {
        ModelThresholds thresholds;
        thresholds.rules.target.e_value = e_value;
        StoredHits stored("RRM_1", thresholds, true, 1 << 20);
        std::mt19937_64 random(5);
        std::vector<Hit> hits = make_hits(random, 4 * runs);
        const Hit twice = hits[1];
        if (in_one_run) {
          hits[2] = twice;
        } else {
          hits.back() = twice;
        }
        for (std::size_t at = 0; at < hits.size(); at += 4) {
          const auto first = hits.begin() + static_cast<std::ptrdiff_t>(at);
          std::vector<Hit> run(first, first + 4);
          ASSERT_TRUE(stored.add(run));
        }
        ASSERT_TRUE(stored.finish({}, 1000));
        const Status read = stored.for_each_lot([](std::span<Hit>) -> Status { return {}; });
        ASSERT_FALSE(read);
        EXPECT_EQ(read.error().code, ErrorCode::kInternal);
        EXPECT_EQ(read.error().where, "model RRM_1");
        EXPECT_NE(read.error().message.find("a target was reported twice: " + twice.name),
                  std::string::npos);
      }
    }
  }
}

}  // namespace
}  // namespace hmmjit
