// Scores, domains and alignments against the installed hmmsearch, on real and generated models.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "core/threads.hpp"
#include "domain/domain.hpp"
#include "domains_of.hpp"
#include "model/score_statistics.hpp"
#include "tests/support/command.hpp"
#include "tests/support/folder.hpp"
#include "tests/support/random_profiles.hpp"
#include "tests/support/shared_data.hpp"

namespace hmmjit::domain {
namespace {

using test_support::ModelKind;
using test_support::Random;
using test_support::read_file;
using test_support::Sequence;
using test_support::TargetKind;

std::string text_of(double value, const char* format) {
  return fmt::format(fmt::runtime(format), value);
}

// The rows of hmmsearch's tables for one model, one entry per target or domain.
struct Rows {
  std::multiset<std::string> targets, domains;
};

Rows rows_of_tables(const std::string& tbl, const std::string& domtbl) {
  Rows rows;
  const auto fields = [](const std::string& line) {
    std::istringstream in(line);
    return std::vector<std::string>{std::istream_iterator<std::string>(in), {}};
  };
  std::istringstream targets(tbl), domains(domtbl);
  for (std::string line; std::getline(targets, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto f = fields(line);
    rows.targets.insert(fmt::format("{} {} {} {} {} {} {} {} {} {}", f[0], f[4], f[5], f[6], f[10],
                                    f[11], f[12], f[13], f[14], f[15]));
  }
  for (std::string line; std::getline(domains, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto f = fields(line);
    rows.domains.insert(fmt::format("{} {} {} {} {} {} {} {} {} {} {}", f[0], f[12], f[13], f[14],
                                    f[15], f[16], f[17], f[18], f[19], f[20], f[21]));
  }
  return rows;
}

// All targets are scored (--max) and all domains reported; Z is 1.
void compare(const Hmm& hmm, const std::vector<Sequence>& candidates, const DomainOptions& options,
             std::size_t& domain_count) {
  const FlushToZeroScope flush;
  const auto model = make_search_model(hmm);
  const ForwardTables tables(*model);
  Workspace workspace;
  std::vector<Sequence> targets;
  Rows mine;
  std::vector<std::string> lines;
  for (const Sequence& target : candidates) {
    const auto nats = forward_filter(tables, target.residues, workspace);
    if (!nats) continue;  // the reference aborts here
    targets.push_back(target);
    const auto score =
        define_domains(tables, {target.residues, target.name, {}, {}}, *nats, options, workspace);
    if (!score) continue;
    const double kBitsPerNat = 1.44269504088896341;
    mine.targets.insert(fmt::format(
        "{} {} {} {} {} {} {} {} {} {}", target.name, text_of(e_value(score->log_p), "{:.2g}"),
        text_of(score->bits, "{:.1f}"), text_of(score->pre_bits - score->bits, "{:.1f}"),
        text_of(score->expected_domains, "{:.1f}"), score->regions, score->clustered,
        score->overlaps, score->envelopes, score->domains.size()));
    for (const Domain& d : score->domains) {
      const double span = std::fabs(static_cast<float>(d.jenv - d.ienv));
      mine.domains.insert(
          fmt::format("{} {} {} {} {} {} {} {} {} {} {}", target.name,
                      text_of(e_value(d.log_p), "{:.2g}"), text_of(d.bits, "{:.1f}"),
                      text_of(static_cast<double>(d.bias_nats) * kBitsPerNat, "{:.1f}"), d.hmm_from,
                      d.hmm_to, d.iali, d.jali, d.ienv, d.jenv,
                      text_of(static_cast<double>(d.accuracy_sum) / (1.0 + span), "{:.2f}")));
      const Alignment& a = d.alignment;
      lines.push_back(fmt::format(" {} {} {}", d.hmm_from, a.model, d.hmm_to));
      lines.push_back(fmt::format(" {}\n", a.match));
      lines.push_back(fmt::format(" {} {} {}", d.iali, a.sequence, d.jali));
      lines.push_back(fmt::format(" {} PP\n", a.pp));
      if (!a.cs.empty()) lines.push_back(fmt::format(" {} CS\n", a.cs));
      if (!a.rf.empty()) lines.push_back(fmt::format(" {} RF\n", a.rf));
    }
  }
  domain_count += mine.domains.size();

  const test_support::TemporaryFolder folder;
  std::ofstream(folder.path() / "m.hmm") << test_support::model_text(hmm);
  {
    std::ofstream out(folder.path() / "t.fa");
    for (const Sequence& t : targets) out << test_support::fasta_text(t);
  }
  const auto report = test_support::output_of(fmt::format(
      "hmmsearch --cpu 0 --max -E 1e9 --domE 1e9 -Z 1 --domZ 1 --notextw {} --seed {} --tblout "
      "'{}' --domtblout '{}' '{}' '{}'",
      options.null2 ? "" : "--nonull2", options.seed, folder.file("t"), folder.file("d"),
      folder.file("m.hmm"), folder.file("t.fa")));
  ASSERT_TRUE(report.has_value());
  const Rows theirs =
      rows_of_tables(read_file(folder.path() / "t"), read_file(folder.path() / "d"));
  EXPECT_EQ(mine.targets, theirs.targets);
  EXPECT_EQ(mine.domains, theirs.domains);
  for (const std::string& line : lines) {
    // Numbers are padded to a common width in the report: search for the text after them.
    const auto text = line.substr(line.find_first_of("0123456789") == 1 ? line.find(' ', 1) : 0);
    EXPECT_NE(report->find(text), std::string::npos) << line;
  }
}

TEST(Live, GeneratedModels) {
  if (!test_support::has_program("hmmsearch")) GTEST_SKIP() << "hmmsearch is not installed";
  const std::uint64_t seed = static_cast<std::uint64_t>(::time(nullptr)) / 86400;
  std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  Random random(seed);
  std::size_t domains = 0;
  for (const ModelKind kind : {ModelKind::kTypical, ModelKind::kFlat, ModelKind::kStrong,
                               ModelKind::kDeleteRich, ModelKind::kInsertRich}) {
    for (const int M : {1, 7, 60, 120}) {
      SCOPED_TRACE(to_string(kind) + " " + std::to_string(M));
      // Compare only the digits that the text has.
      const test_support::TemporaryFolder folder;
      std::ofstream(folder.path() / "m.hmm")
          << test_support::model_text(test_support::random_hmm(random.next(), M, kind));
      const Hmm hmm = test_support::read_models(folder.path() / "m.hmm").at(0);
      std::vector<Sequence> targets;
      for (int n = 0; n < 10; ++n) {
        static constexpr TargetKind kKinds[] = {TargetKind::kTandem, TargetKind::kHomologous,
                                                TargetKind::kTandem, TargetKind::kUniformCodes,
                                                TargetKind::kLowComplexity};
        auto codes = test_support::random_target(random, {1, 400}, kKinds[n % 5], hmm);
        // Gaps are not part of a FASTA target.
        std::erase(codes, static_cast<Residue>(hmm.alphabet->gap()));
        if (!codes.empty()) targets.push_back({fmt::format("t{}", n), std::move(codes)});
      }
      DomainOptions options;
      options.seed = static_cast<std::uint32_t>(random.integer(1, 1000));
      options.null2 = random.chance(0.8);
      compare(hmm, targets, options, domains);
    }
  }
  EXPECT_GT(domains, 100u);
}

// A model of identical nodes, which mostly emit `residue`.
Hmm alike_hmm(int M, Residue residue) {
  Hmm alike = test_support::random_hmm(5, M);
  const auto K = static_cast<std::size_t>(alike.alphabet->K);
  for (std::size_t i = 0; i < alike.match.size(); ++i)
    alike.match[i] = i % K == residue ? 0.81f : 0.01f;
  for (int k = 0; k <= M; ++k) {
    float* const t = alike.transition.data() + static_cast<std::size_t>(k) * kTransitions;
    t[kMM] = 0.99f, t[kMI] = 0.01f, t[kMD] = 0.0f;
    if (k < M) t[kDM] = 0.5f, t[kDD] = 0.5f;
  }
  const test_support::TemporaryFolder folder;
  std::ofstream(folder.path() / "m.hmm") << test_support::model_text(alike);
  return test_support::read_models(folder.path() / "m.hmm").at(0);
}

// The alignment takes the last of equally good ends, like hmmsearch: a model of identical nodes,
// and targets that may align to any of them.
TEST(Live, EquallyGoodAlignments) {
  if (!test_support::has_program("hmmsearch")) GTEST_SKIP() << "hmmsearch is not installed";
  std::size_t domains = 0;
  for (const int M : {2, 5, 9, 16}) {
    SCOPED_TRACE(M);
    const Hmm hmm = alike_hmm(M, 0);
    std::vector<Sequence> targets;
    for (const char* text : {"A", "AA", "AAA", "ACA", "AAAA", "CAC"})
      targets.push_back({text, test_support::digitise(text)});
    compare(hmm, targets, {}, domains);
  }
  EXPECT_GE(domains, 8u);
}

// Sampled domains in a region whose only degenerate residue is its last: its null2 odds are the
// mean over the residues that it stands for.
TEST(Live, RegionsThatEndWithADegenerateResidue) {
  if (!test_support::has_program("hmmsearch")) GTEST_SKIP() << "hmmsearch is not installed";
  std::size_t domains = 0;
  for (const int M : {5, 9, 16}) {
    SCOPED_TRACE(M);
    std::vector<Sequence> targets;
    for (std::size_t n = 4; n < 60; n += 5) {
      // Any number of domains, up to the last residue, scores nearly as well.
      for (const char last : {'B', 'X'})
        targets.push_back(
            {fmt::format("{}{}", last, n), test_support::digitise(std::string(n, 'D') + last)});
    }
    compare(alike_hmm(M, amino_alphabet().digit['D']), targets, {}, domains);
  }
  EXPECT_GT(domains, 30u);
}

TEST(Live, RealModels) {
  if (!test_support::has_program("hmmsearch")) GTEST_SKIP() << "hmmsearch is not installed";
  HMMJIT_SHARED_OR_SKIP(shared);
  std::size_t domains = 0;
  const std::filesystem::path small = shared / "data/seq/small";
  for (const char* name : {"fn3", "Pkinase", "globins4", "20aa", "M1", "XYPPX", "LuxC"}) {
    SCOPED_TRACE(name);
    const Hmm hmm =
        test_support::read_models(shared / "data/hmm/hmmer" / (std::string(name) + ".hmm")).at(0);
    std::vector<Sequence> targets;
    for (const char* file : {"7LESS_DROME", "globins45.fa", "LuxC.faa", "PKSI.faa"}) {
      for (Sequence& t : test_support::read_sequences(small / file)) {
        if (targets.size() < 70) targets.push_back(std::move(t));
      }
    }
    targets.push_back({"star1", test_support::digitise("ACDEFGHIK*MNPQRSTVWY")});
    targets.push_back({"star2", test_support::digitise("ACDEFGHIKL*MNPQRSTVWY")});
    // hmm text without its annotation: CS and RF are compared by the scenario tests.
    Hmm plain = hmm;
    plain.cs.clear();
    plain.rf.clear();
    compare(plain, targets, {}, domains);
  }
  EXPECT_GT(domains, 100u);
}

}  // namespace
}  // namespace hmmjit::domain
