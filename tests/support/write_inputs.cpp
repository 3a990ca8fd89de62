// Writes generated models and targets as files, for tests in other languages, and the targets'
// genes on two contigs, the second one reversed; or, from a seed, models and targets that are
// difficult in many ways. usage: write_inputs FOLDER [SEED]
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/threads.hpp"
#include "generated_inputs.hpp"
#include "random_profiles.hpp"
#include "reference_forward.hpp"
#include "shared_data.hpp"

namespace {

using namespace hmmjit;
using namespace hmmjit::test_support;

// A codon for each residue, an unknown one for other codes.
std::string codon(char residue) {
  static const std::string residues = "ACDEFGHIKLMNPQRSTVWY";
  static const char* const codons[] = {"GCT", "TGT", "GAT", "GAA", "TTT", "GGT", "CAT",
                                       "ATT", "AAA", "CTT", "ATG", "AAT", "CCT", "CAA",
                                       "CGT", "TCT", "ACT", "GTT", "TGG", "TAT"};
  const auto found = residues.find(residue);
  return found == std::string::npos ? "NNN" : codons[found];
}

std::string genes(const std::string& fasta) {
  std::string out;
  std::istringstream lines(fasta);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with('>')) {
      out += "TAA";
    } else {
      for (const char residue : line) out += codon(residue);
    }
  }
  return out + "TAA";
}

std::string reverse_complement(std::string bases) {
  std::ranges::reverse(bases);
  for (char& c : bases) c = c == 'A' ? 'T' : c == 'T' ? 'A' : c == 'C' ? 'G' : c == 'G' ? 'C' : c;
  return bases;
}

// A model of identical nodes, which mostly emit `residue`: many alignments are equally good.
Hmm alike_hmm(int M, char residue) {
  Hmm hmm = random_hmm(5, M);
  hmm.name = std::string("alike-") + residue + std::to_string(M);
  const auto K = static_cast<std::size_t>(hmm.alphabet->K);
  const Residue likely = hmm.alphabet->digit[static_cast<unsigned char>(residue)];
  for (std::size_t i = 0; i < hmm.match.size(); ++i) hmm.match[i] = i % K == likely ? 0.81f : 0.01f;
  for (int k = 0; k <= M; ++k) {
    float* const t = hmm.transition.data() + static_cast<std::size_t>(k) * kTransitions;
    t[kMM] = 0.99f, t[kMI] = 0.01f, t[kMD] = 0.0f;
    if (k < M) t[kDM] = 0.5f, t[kDD] = 0.5f;
  }
  return hmm;
}

// ALPHABET.hmm, ALPHABET.fasta, and for searches without filters ALPHABET.few.fasta, whose targets
// have a Forward score for each model: at others hmmsearch --max ends.
void write_difficult(const std::filesystem::path& folder, const Alphabet& alphabet, Random random) {
  std::vector<Hmm> models;
  std::vector<Sequence> targets, few;
  for (const ModelKind kind : kAllModelKinds) {
    if (kind == ModelKind::kImpossible) continue;
    for (const int M : {1, 2, 7, 33, 60, 140}) {
      models.push_back(random_hmm(random.next(), M, kind, alphabet));
      for (const TargetKind target : kAllTargetKinds) {
        for (const int L : {1, 5, 60, 350}) {
          targets.push_back({"t" + std::to_string(targets.size()),
                             random_target(random.next(), L, target, models.back())});
          if (targets.size() % 7 == 0) few.push_back(targets.back());
        }
      }
    }
  }
  if (alphabet.type == AlphabetType::kAmino) {
    for (const int M : {2, 5, 9, 16}) models.push_back(alike_hmm(M, 'A'));
    for (const char* text : {"A", "AA", "AAA", "ACA", "AAAA", "CAC", "ACDEFGHIK*MNPQRSTVWY"})
      few.push_back({text, digitise(text)});
    // Any number of domains, up to the last residue, scores nearly as well. The null2 odds of a
    // degenerate residue are the mean over the residues that it stands for.
    for (const int M : {5, 9, 16}) models.push_back(alike_hmm(M, 'D'));
    for (std::size_t n = 4; n < 60; n += 5) {
      for (const char last : {'B', 'X'})
        few.push_back({last + std::to_string(n), digitise(std::string(n, 'D') + last)});
    }
  }
  const std::string base = folder / alphabet.name;
  std::ofstream hmm(base + ".hmm"), fasta(base + ".fasta"), few_fasta(base + ".few.fasta");
  const FlushToZeroScope flush;
  for (Hmm& model : models) {
    model.calibration = {-6.0f, 0.7f, -6.0f, 0.7f, -3.0f, 0.7f};
    hmm << model_text(model);
    std::erase_if(few, [odds = make_search_model(model)->odds](const Sequence& target) {
      return !std::isfinite(reference::forward_score(odds, target.residues));
    });
  }
  for (const Sequence& target : targets) fasta << fasta_text(target, alphabet);
  for (const Sequence& target : few) few_fasta << fasta_text(target, alphabet);
}

// Models of many lengths, up to the longest of Pfam, and targets of all kinds for each.
void write_lengths(const std::filesystem::path& folder) {
  std::ofstream hmm(folder / "lengths.hmm"), fasta(folder / "lengths.fasta");
  Random random(1);
  for (const int M : {7, 45, 131, 226, 400, 1001, 2405, 3591}) {
    const Hmm model = random_hmm(random.next(), M);
    hmm << model_text(model);
    for (std::size_t n = 0; n < 24; ++n)
      fasta << fasta_text({model.name + "/" + std::to_string(n),
                           random_target(random, {1, 300}, kAllTargetKinds[n % 6], model)});
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) return 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  if (argc == 3) {
    const Random random(std::stoull(argv[2]));
    for (const Alphabet* alphabet : {&amino_alphabet(), &dna_alphabet(), &rna_alphabet()})
      write_difficult(folder, *alphabet, random);
    return 0;
  }
  write_lengths(folder);
  const hmmjit::tests::Inputs inputs = hmmjit::tests::make_inputs(42, 5, 300);
  std::ofstream(folder / "models.hmm") << inputs.models;
  std::ofstream(folder / "targets.fasta") << inputs.targets;
  const std::string bases = genes(inputs.targets);
  std::ofstream(folder / "contigs.fasta") << ">forward\n"
                                          << bases << "\n>reverse\n"
                                          << reverse_complement(bases) << "\n";
  return std::filesystem::file_size(folder / "models.hmm") > 0 ? 0 : 1;
}
