// Values of HMMER 3.4, as hexadecimal floats and digests. The domains of globins4 and Pkinase are
// recorded from this library.
#include <gtest/gtest.h>

#include <cmath>

#include "core/digest.hpp"
#include "core/threads.hpp"
#include "domain/domain.hpp"
#include "domains_of.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit::domain {
namespace {

struct GoldenCase {
  const char *model, *file, *target;
  float nats, expected_domains, correction;
  const char* domains;  // a digest of places and scores
};

std::string digest_of_domains(const TargetScore& score) {
  std::string bytes;
  const auto add = [&](auto value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const Domain& d : score.domains) {
    for (const int place : {d.ienv, d.jenv, d.iali, d.jali, d.hmm_from, d.hmm_to}) add(place);
    for (const float nats : {d.envelope_nats, d.correction_nats, d.accuracy_sum}) add(nats);
  }
  return digest_of(bytes).hex().substr(0, 16);
}

TEST(Golden, ScoresAndDomainsOfRealProteins) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const GoldenCase cases[] = {{"fn3", "7LESS_DROME", "7LESS_DROME", 0x1.cb1c16p+6f, 0x1.2dc40ap+3f,
                               0x1.171e06p+2f, "6a14618066e06aa4"},
                              {"Pkinase", "7LESS_DROME", "7LESS_DROME", 0x1.58e9acp+6f,
                               0x1.442926p+0f, -0x1.f89a3ap+1f, "890d4fd58b79530f"},
                              {"globins4", "HBB_HUMAN", "HBB_HUMAN", 0x1.207712p+7f, 0x1.0023b6p+0f,
                               0x1.0dcc18p+1f, "7b34c21003c83bb6"},
                              {"globins4", "globins45.fa", "MYG_ESCGI", 0x1.22d4dcp+7f,
                               0x1.00a9a6p+0f, 0x1.dbd29ep+2f, "f0cf8608ed777d1e"}};
  const FlushToZeroScope flush;
  Workspace workspace;
  for (const GoldenCase& c : cases) {
    SCOPED_TRACE(std::string(c.model) + " " + c.target);
    const auto model = make_search_model(
        test_support::read_models(shared / "data/hmm/hmmer" / (std::string(c.model) + ".hmm"))
            .at(0));
    const ForwardTables tables(*model);
    const auto targets = test_support::read_sequences(shared / "data/seq/small" / c.file);
    const auto found = std::ranges::find(targets, c.target, &test_support::Sequence::name);
    ASSERT_NE(found, targets.end());
    const auto nats = forward_filter(tables, found->residues, workspace);
    ASSERT_TRUE(nats.has_value());
    EXPECT_EQ(*nats, c.nats);
    const auto score =
        define_domains(tables, {found->residues, found->name, {}, {}}, *nats, {}, workspace);
    ASSERT_TRUE(score.has_value());
    EXPECT_EQ(score->expected_domains, c.expected_domains);
    EXPECT_EQ(score->correction_nats, c.correction);
    EXPECT_EQ(digest_of_domains(*score), c.domains);
  }
}

}  // namespace
}  // namespace hmmjit::domain
