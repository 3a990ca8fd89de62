// The decisions of the filters against hmmsearch's four "Passed" counters.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <sstream>

#include "core/threads.hpp"
#include "model/score_statistics.hpp"
#include "reference/filters.hpp"
#include "tests/support/command.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/random_profiles.hpp"
#include "tests/support/reference_forward.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit {
namespace {

namespace fs = std::filesystem;
using test_support::ModelKind;
using test_support::Sequence;
using test_support::TargetKind;

struct Thresholds {
  double f1 = 0.02, f2 = 1e-3, f3 = 1e-5;
  bool bias = true;
};
using Counts = std::array<int, 4>;  // passed MSV, bias, Viterbi, Forward

Counts count_passes(const SearchModel& model, const std::vector<Sequence>& targets,
                    const Thresholds& limits) {
  const FlushToZeroScope flush;
  const Calibration& c = model.hmm.calibration;
  Counts counts{};
  for (const Sequence& target : targets) {
    const auto& residues = target.residues;
    if (residues.empty()) continue;
    const float null = null_score(static_cast<int>(residues.size()));
    const float msv = reference::msv_filter(model.bytes, residues);
    const auto msv_p = [&](float filter) {
      return gumbel_survival(nats_to_bits(msv - filter), c.msv_mu, c.msv_lambda);
    };
    double p = msv_p(null);
    if (p > limits.f1) continue;
    ++counts[0];
    float filter = null;
    if (limits.bias) {
      filter = reference::bias_filter(model.bias, residues);
      p = msv_p(filter);
      if (p > limits.f1) continue;
    }
    ++counts[1];
    if (p > limits.f2) {
      const float viterbi = reference::viterbi_filter(model.words, residues);
      p = gumbel_survival(nats_to_bits(viterbi - filter), c.viterbi_mu, c.viterbi_lambda);
      if (p > limits.f2) continue;
    }
    ++counts[2];
    const float forward = reference::forward_score(model.odds, residues);
    p = exponential_survival(nats_to_bits(forward - filter), c.forward_tau, c.forward_lambda);
    if (p > limits.f3) continue;
    ++counts[3];
  }
  return counts;
}

// One entry per model of the file, in order.
std::vector<Counts> hmmsearch_counts(const fs::path& models, const fs::path& targets,
                                     const std::string& options) {
  const auto text = test_support::output_of("hmmsearch --cpu 0 --noali -Z 1 " + options + " '" +
                                            models.string() + "' '" + targets.string() + "'");
  std::vector<Counts> all;
  if (!text) return all;
  std::istringstream lines(*text);
  constexpr std::string_view kLabels[] = {
      "Passed MSV filter:", "Passed bias filter:", "Passed Vit filter:", "Passed Fwd filter:"};
  for (std::string line; std::getline(lines, line);) {
    for (std::size_t i = 0; i < 4; ++i) {
      if (!line.starts_with(kLabels[i])) continue;
      if (i == 0) all.emplace_back();
      all.back()[i] = std::stoi(line.substr(kLabels[i].size()));
    }
  }
  return all;
}

void compare(const fs::path& models, const fs::path& targets, const Alphabet& alphabet,
             const Thresholds& limits, const std::string& options, Counts& total) {
  const auto expected = hmmsearch_counts(models, targets, options);
  const auto hmms = test_support::read_models(models);
  const auto sequences = test_support::read_sequences(targets, alphabet);
  ASSERT_EQ(expected.size(), hmms.size()) << "hmmsearch failed on " << models;
  for (std::size_t i = 0; i < hmms.size(); ++i) {
    SCOPED_TRACE(hmms[i].name + " " + options);
    EXPECT_EQ(count_passes(*make_search_model(hmms[i]), sequences, limits), expected[i]);
    for (std::size_t n = 0; n < 4; ++n) total[n] += expected[i][n];
  }
}

constexpr const char* kNoHmmsearch = "hmmsearch is not installed";

TEST(PipelineCounts, RealModelsAndProteins) {
  HMMJIT_SHARED_OR_SKIP(shared);
  if (!test_support::has_program("hmmsearch")) GTEST_SKIP() << kNoHmmsearch;
  const auto hmm = shared / "data/hmm/hmmer";
  Counts total{};
  for (const char* name : {"globins4.hmm", "fn3.hmm", "RRM_1.hmm", "XYPPX.hmm"}) {
    compare(hmm / name, shared / "data/seq/mmseqs2_query.fasta", amino_alphabet(), {}, "", total);
  }
  for (const char* name : {"M1.hmm", "20aa.hmm", "Pkinase.hmm"}) {
    compare(hmm / name, shared / "data/seq/short_proteins.fasta", amino_alphabet(),
            {0.3, 0.1, 0.05, false}, "--nobias --F1 0.3 --F2 0.1 --F3 0.05", total);
  }
  for (const int passed : total) EXPECT_GT(passed, 20);
}

// Adversarial models against every kind of target: all codes, tandem copies, low complexity.
TEST(PipelineCounts, GeneratedModelsAndTargets) {
  if (!test_support::has_program("hmmsearch")) GTEST_SKIP() << kNoHmmsearch;
  const test_support::TemporaryFolder folder;
  Counts total{};
  std::uint64_t seed = 100;
  for (const Alphabet* alphabet : {&amino_alphabet(), &dna_alphabet(), &rna_alphabet()}) {
    for (const ModelKind kind :
         {ModelKind::kTypical, ModelKind::kFlat, ModelKind::kStrong, ModelKind::kDeleteRich,
          ModelKind::kInsertRich, ModelKind::kExtreme}) {
      const int lengths[] = {1, 2, 7, 33, 140};
      std::string models, targets;
      for (const int M : lengths) {
        Hmm hmm = test_support::random_hmm(++seed, M, kind, *alphabet);
        hmm.calibration = {-6.0f, 0.7f, -6.0f, 0.7f, -3.0f, 0.7f};
        models += test_support::model_text(hmm);
        for (const TargetKind target : test_support::kAllTargetKinds) {
          for (const int L : {1, 5, 60, 350}) {
            const std::string name = fmt::format("t{}-{}-{}", M, to_string(target), L);
            targets += test_support::fasta_text(
                {name, test_support::random_target(++seed, L, target, hmm)}, *alphabet);
          }
        }
      }
      const fs::path model_file = folder.write("models.hmm", models);
      const fs::path target_file = folder.write("targets.fasta", targets);
      compare(model_file, target_file, *alphabet, {0.4, 0.2, 0.1, true},
              "--F1 0.4 --F2 0.2 --F3 0.1", total);
    }
  }
  for (const int passed : total) EXPECT_GT(passed, 500);
}

}  // namespace
}  // namespace hmmjit
