// Values of the reference program, as hexadecimal floats.
#include <gtest/gtest.h>

#include <map>

#include "core/threads.hpp"
#include "domain/domain.hpp"
#include "domains_of.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit::domain {
namespace {

using test_support::read_models;
using test_support::read_sequences;

struct Row {
  int ienv, jenv, iali, jali, hmm_from, hmm_to;
  float envelope, correction, accuracy;
};

void expect_sevenless(const DomainOptions& options) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const auto model = make_search_model(read_models(shared / "data/hmm/hmmer/fn3.hmm").at(0));
  const auto target = read_sequences(shared / "data/seq/small/7LESS_DROME").at(0);
  const FlushToZeroScope flush;
  const ForwardTables tables(*model);
  Workspace workspace;
  const auto nats = forward_filter(tables, target.residues, workspace);
  ASSERT_TRUE(nats.has_value());
  EXPECT_EQ(*nats, 0x1.cb1c16p+6f);
  const TargetView view{target.residues, target.name, {}, {}};
  const auto score = define_domains(tables, view, *nats, options, workspace);
  ASSERT_TRUE(score.has_value());
  EXPECT_EQ(score->expected_domains, 0x1.2dc40ap+3f);
  EXPECT_EQ(score->correction_nats, 0x1.171e06p+2f);
  EXPECT_EQ(score->regions, 9);
  EXPECT_EQ(score->clustered, 1);
  EXPECT_EQ(score->overlaps, 0);
  EXPECT_EQ(score->envelopes, 9);
  const Row rows[] = {
      {395, 411, 396, 409, 61, 74, -0x1.b1ffe8p+2f, 0x1.9602bap+0f, 0x1.cf4878p+3f},
      {437, 521, 439, 520, 2, 84, 0x1.642d24p+4f, -0x1.47bf1ep-1f, 0x1.441c34p+6f},
      {826, 914, 836, 913, 13, 85, 0x1.0257dp+2f, 0x1.309278p-3f, 0x1.026ec6p+6f},
      {1203, 1259, 1209, 1235, 10, 36, -0x1.2c22acp+1f, 0x1.19e0aap+0f, 0x1.75ca08p+5f},
      {1304, 1386, 1313, 1380, 14, 80, 0x1.5c9292p+3f, -0x1.0435bap-2f, 0x1.0f506ap+6f},
      {1739, 1769, 1754, 1768, 58, 72, -0x1.7733aep+2f, 0x1.03b79cp-3f, 0x1.b8a3fp+4f},
      {1799, 1891, 1799, 1890, 1, 85, 0x1.b6d2fp+4f, 0x1.5d39a4p+2f, 0x1.50eb6ap+6f},
      {1901, 1976, 1904, 1966, 6, 74, 0x1.97afbep+2f, -0x1.ca71dcp+0f, 0x1.124108p+6f},
      {1993, 2107, 1993, 2107, 1, 86, 0x1.6fd298p+1f, -0x1.5f7c48p+0f, 0x1.992c9ap+6f}};
  ASSERT_EQ(score->domains.size(), std::size(rows));
  for (std::size_t d = 0; d < std::size(rows); ++d) {
    SCOPED_TRACE(d);
    const Domain& domain = score->domains[d];
    EXPECT_EQ(domain.ienv, rows[d].ienv);
    EXPECT_EQ(domain.jenv, rows[d].jenv);
    EXPECT_EQ(domain.iali, rows[d].iali);
    EXPECT_EQ(domain.jali, rows[d].jali);
    EXPECT_EQ(domain.hmm_from, rows[d].hmm_from);
    EXPECT_EQ(domain.hmm_to, rows[d].hmm_to);
    EXPECT_EQ(domain.envelope_nats, rows[d].envelope);
    EXPECT_EQ(domain.correction_nats, rows[d].correction);
    EXPECT_EQ(domain.accuracy_sum, rows[d].accuracy);
  }
}

TEST(Golden, FibronectinDomainsOfSevenless) { expect_sevenless({}); }

TEST(Golden, FibronectinDomainsOfSevenlessInParts) {
  DomainOptions options;
  options.longest_in_one = 100;
  options.rows_of_part = 100;
  expect_sevenless(options);
}

struct ForwardCase {
  const char* model;
  const char* target;
  float nats, expected_domains, correction;
};

TEST(Golden, ForwardScoresExpectedDomainsAndNull2Sums) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const ForwardCase cases[] = {
      {"Pkinase", "7LESS_DROME", 0x1.58e9acp+6f, 0x1.442926p+0f, -0x1.f89a3ap+1f},
      {"globins4", "HBB_HUMAN", 0x1.207712p+7f, 0x1.0023b6p+0f, 0x1.0dcc18p+1f},
      {"globins4", "MYG_ESCGI", 0x1.22d4dcp+7f, 0x1.00a9a6p+0f, 0x1.dbd29ep+2f},
  };
  const FlushToZeroScope flush;
  Workspace workspace;
  for (const ForwardCase& c : cases) {
    SCOPED_TRACE(c.model);
    const auto model = make_search_model(
        read_models(shared / "data/hmm/hmmer" / (std::string(c.model) + ".hmm")).at(0));
    const ForwardTables tables(*model);
    const bool own_file = std::string(c.target) != "MYG_ESCGI";
    const auto targets =
        read_sequences(shared / "data/seq/small" / (own_file ? c.target : "globins45.fa"));
    const auto found = std::find_if(targets.begin(), targets.end(),
                                    [&](const auto& t) { return own_file || t.name == c.target; });
    ASSERT_NE(found, targets.end()) << c.target;
    const auto nats = forward_filter(tables, found->residues, workspace);
    ASSERT_TRUE(nats.has_value());
    EXPECT_EQ(*nats, c.nats);
    const auto score =
        define_domains(tables, {found->residues, found->name, {}, {}}, *nats, {}, workspace);
    ASSERT_TRUE(score.has_value());
    EXPECT_EQ(score->expected_domains, c.expected_domains);
    EXPECT_EQ(score->correction_nats, c.correction);
  }
}

}  // namespace
}  // namespace hmmjit::domain
