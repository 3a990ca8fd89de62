// Writes generated models and targets as files, for tests in other languages, and the targets'
// genes on two contigs, the second one reversed. usage: write_inputs FOLDER
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "generated_inputs.hpp"

namespace {

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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  const hmmjit::tests::Inputs inputs = hmmjit::tests::make_inputs(42, 5, 300);
  std::ofstream(folder / "models.hmm") << inputs.models;
  std::ofstream(folder / "targets.fasta") << inputs.targets;
  const std::string bases = genes(inputs.targets);
  std::ofstream(folder / "contigs.fasta") << ">forward\n"
                                          << bases << "\n>reverse\n"
                                          << reverse_complement(bases) << "\n";
  return std::filesystem::file_size(folder / "models.hmm") > 0 ? 0 : 1;
}
