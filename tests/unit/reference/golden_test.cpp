// Scores of real models against real sequences, bit for bit (conformance notes, golden values).
#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <stdexcept>

#include "core/threads.hpp"
#include "reference/filters.hpp"
#include "tests/support/reference_forward.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit {
namespace {

using test_support::read_models;
using test_support::read_sequences;
using test_support::Sequence;

std::shared_ptr<const SearchModel> load(const std::filesystem::path& shared, const char* name) {
  return make_search_model(read_models(shared / "data/hmm/hmmer" / name).at(0));
}

Sequence find(const std::vector<Sequence>& sequences, std::string_view name) {
  for (const auto& s : sequences) {
    if (s.name == name) return s;
  }
  throw std::runtime_error("no such sequence");
}

TEST(Golden, QuantisedConstants) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const struct {
    const char* file;
    int M, tbm, bias;
  } kCases[] = {
      {"globins4.hmm", 149, 40, 17}, {"fn3.hmm", 86, 36, 18}, {"Pkinase.hmm", 260, 45, 17}};
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.file);
    const auto model = load(shared, c.file);
    EXPECT_EQ(model->bytes.M, c.M);
    EXPECT_EQ(model->bytes.tbm, c.tbm);
    EXPECT_EQ(model->bytes.tec, 3);
    EXPECT_EQ(model->bytes.bias, c.bias);
    EXPECT_EQ(model->words.ec, -500);
    EXPECT_EQ(model->words.ej, -500);
  }
}

TEST(Golden, RandomTargetsOfLength400) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const FlushToZeroScope flush;
  const struct {
    float msv, bias, viterbi, forward;
  } kScores[] = {{-0x1.d91274p+3f, -0x1.d37b8p+2f, -0x1.e6de54p+3f, -0x1.1c7d0ep+3f},
                 {-0x1.8f22eap+3f, -0x1.cbad6p+2f, -0x1.c8a888p+3f, -0x1.12418p+3f},
                 {-0x1.ca48f2p+3f, -0x1.c0fcep+2f, -0x1.d978a8p+3f, -0x1.10fe62p+3f},
                 {-0x1.b41aaep+3f, -0x1.caab26p+2f, -0x1.bf9bcep+3f, -0x1.fa3bacp+2f},
                 {-0x1.4c982p+3f, -0x1.bfc276p+2f, -0x1.81c4dp+3f, -0x1.eee1p+2f},
                 {-0x1.805968p+3f, -0x1.c5de78p+2f, -0x1.956bcp+3f, -0x1.f61a16p+2f},
                 {-0x1.e7dbf6p+3f, -0x1.c808e4p+2f, -0x1.f5fee6p+3f, -0x1.10f916p+3f},
                 {-0x1.9687aap+3f, -0x1.c6e128p+2f, -0x1.af2688p+3f, -0x1.dc5a74p+2f},
                 {-0x1.a5512cp+3f, -0x1.bfbab2p+2f, -0x1.c4443cp+3f, -0x1.fdc212p+2f},
                 {-0x1.b41aaep+3f, -0x1.c9a396p+2f, -0x1.d12cfcp+3f, -0x1.09384p+3f}};
  const auto model = load(shared, "globins4.hmm");
  const auto targets = read_sequences(shared / "data/seq/small/rndseq400-10.fa");
  ASSERT_EQ(targets.size(), std::size(kScores));
  EXPECT_EQ(null_score(400), -0x1.bf889ep+2f);
  EXPECT_EQ(model->bytes.tjb(400), 21);
  EXPECT_EQ(model->words.move(400), -3535);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    SCOPED_TRACE(targets[i].name);
    const auto& residues = targets[i].residues;
    ASSERT_EQ(residues.size(), 400u);
    const reference::SsvResult expected{reference::SsvStatus::kScore, kScores[i].msv};
    EXPECT_EQ(reference::ssv_filter(model->bytes, residues), expected);
    EXPECT_EQ(reference::msv_recurrence(model->bytes, residues), kScores[i].msv);
    EXPECT_EQ(reference::msv_filter(model->bytes, residues), kScores[i].msv);
    EXPECT_EQ(reference::bias_filter(model->bias, residues), kScores[i].bias);
    EXPECT_EQ(reference::viterbi_filter(model->words, residues), kScores[i].viterbi);
    const auto forward = reference::forward(model->odds, residues, length_model(400, true));
    EXPECT_EQ(forward.nats, kScores[i].forward);
    EXPECT_EQ(forward.total, 0.0f);
    EXPECT_EQ(forward.scale, std::vector<float>(401, 1.0f));
  }
}

TEST(Golden, StrongHits) {
  HMMJIT_SHARED_OR_SKIP(shared);
  const FlushToZeroScope flush;
  const auto small = shared / "data/seq/small";
  const Sequence hbb = read_sequences(small / "HBB_HUMAN").at(0);
  const Sequence myg = find(read_sequences(small / "globins45.fa"), "MYG_ESCGI");
  const Sequence sevenless = read_sequences(small / "7LESS_DROME").at(0);
  const struct {
    const char* model;
    const Sequence* target;
    int L;
    float null, bias, forward, total;
  } kCases[] = {
      {"globins4.hmm", &hbb, 146, -0x1.7f2b64p+2f, -0x1.59d11cp+2f, 0x1.207712p+7f, 0x1.28f7dap+7f},
      {"globins4.hmm", &myg, 153, -0x1.82282p+2f, -0x1.118128p+2f, 0x1.22d4dcp+7f, 0x1.1fb778p+7f},
      {"Pkinase.hmm", &sevenless, 2554, -0x1.1b0f4p+3f, -0x1.23501ap+3f, 0x1.58e9acp+6f,
       0x1.64113p+6f},
      {"fn3.hmm", &sevenless, 2554, -0x1.1b0f4p+3f, -0x1.133b0cp+3f, 0x1.cb1c16p+6f,
       0x1.dbc756p+6f}};
  for (const auto& c : kCases) {
    SCOPED_TRACE(std::string(c.model) + " x " + c.target->name);
    const auto model = load(shared, c.model);
    const auto& residues = c.target->residues;
    ASSERT_EQ(static_cast<int>(residues.size()), c.L);
    EXPECT_EQ(null_score(c.L), c.null);
    EXPECT_EQ(reference::msv_filter(model->bytes, residues), INFINITY);
    EXPECT_EQ(reference::viterbi_filter(model->words, residues), INFINITY);
    EXPECT_EQ(reference::bias_filter(model->bias, residues), c.bias);
    const auto forward = reference::forward(model->odds, residues, length_model(c.L, true));
    EXPECT_EQ(forward.nats, c.forward);
    EXPECT_EQ(forward.total, c.total);
  }
}

}  // namespace
}  // namespace hmmjit
