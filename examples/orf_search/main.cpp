// Finds protein domains in nucleotide contigs: translates open reading frames in memory and
// searches them with libhmmjit. Prints GFF3.
#include <cstdio>
#include <fstream>
#include <hmmjit/hmmjit.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace {

struct Contig {
  std::string name, bases;
};

struct Orf {
  std::size_t contig;
  std::size_t begin;  // first base on its strand, from 0
  bool reverse;
};

std::vector<Contig> read_contigs(const char* path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(std::string("cannot read ") + path);
  std::vector<Contig> contigs;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('>')) {
      contigs.push_back({line.substr(1, line.find_first_of(" \t\r") - 1), {}});
    } else if (!contigs.empty()) {
      for (const char c : line) {
        if (c > ' ') contigs.back().bases += static_cast<char>(c & ~0x20);  // upper case
      }
    }
  }
  return contigs;
}

std::string reverse_complement(const std::string& bases) {
  std::string out(bases.rbegin(), bases.rend());
  for (char& c : out) c = c == 'A' ? 'T' : c == 'T' ? 'A' : c == 'C' ? 'G' : c == 'G' ? 'C' : 'N';
  return out;
}

// The standard genetic code; 'X' for a codon with an unknown base.
char translate(const char* codon) {
  static constexpr char kCode[] =
      "FFLLSSSSYY**CC*WLLLLPPPPHHQQRRRRIIIMTTTTNNKKSSRRVVVVAAAADDEEGGGG";
  static constexpr std::string_view kBases = "TCAG";
  std::size_t index = 0;
  for (int i = 0; i < 3; ++i) {
    const std::size_t base = kBases.find(codon[i]);
    if (base == std::string_view::npos) return 'X';
    index = 4 * index + base;
  }
  return kCode[index];
}

// Adds every stretch between stop codons of at least `shortest` residues.
void add_orfs(const Contig& contig, std::size_t number, std::size_t shortest,
              hmmjit::Targets& targets, std::vector<Orf>& orfs) {
  for (const bool reverse : {false, true}) {
    const std::string bases = reverse ? reverse_complement(contig.bases) : contig.bases;
    for (std::size_t frame = 0; frame < 3; ++frame) {
      std::string protein;
      std::size_t begin = frame;
      const auto end_orf = [&](std::size_t next) {
        if (protein.size() >= shortest) {
          targets.add({.name = contig.name + "_orf" + std::to_string(orfs.size() + 1),
                       .residues = protein});
          orfs.push_back({number, begin, reverse});
        }
        protein.clear();
        begin = next;
      };
      std::size_t at = frame;
      for (; at + 3 <= bases.size(); at += 3) {
        const char residue = translate(bases.data() + at);
        if (residue == '*') {
          end_orf(at + 3);
        } else {
          protein += residue;
        }
      }
      end_orf(at);
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s PROFILES CONTIGS > GFF\n", argv[0]);
    return 2;
  }
  constexpr std::size_t kShortest = 30;  // residues
  const std::vector<Contig> contigs = read_contigs(argv[2]);
  hmmjit::Targets targets;
  std::vector<Orf> orfs;
  for (std::size_t i = 0; i < contigs.size(); ++i)
    add_orfs(contigs[i], i, kShortest, targets, orfs);
  std::fprintf(stderr, "%zu contigs, %zu open reading frames\n", contigs.size(), orfs.size());

  hmmjit::SearchOptions options;
  options.E = options.domE = 1e-3;
  options.keep_alignments = 0;  // only coordinates are printed
  hmmjit::SearchCallbacks callbacks;
  std::puts("##gff-version 3");
  // Called in profile order, one at a time.
  callbacks.result = [&](const hmmjit::ModelResult& result) {
    for (const hmmjit::Hit& hit : result.hits()) {
      for (const hmmjit::Domain& domain : result.domains(hit)) {
        if (!hit.reported || !domain.reported) continue;
        const Orf& orf = orfs[hit.index];
        const Contig& contig = contigs[orf.contig];
        // 1-based, inclusive, on the forward strand.
        std::size_t from = orf.begin + 3 * static_cast<std::size_t>(domain.envelope_from - 1) + 1;
        std::size_t to = orf.begin + 3 * static_cast<std::size_t>(domain.envelope_to);
        if (orf.reverse) {
          const std::size_t length = contig.bases.size();
          std::tie(from, to) = std::pair(length - to + 1, length - from + 1);
        }
        std::printf("%s\tlibhmmjit\tprotein_match\t%zu\t%zu\t%.1f\t%c\t.\tName=%s;evalue=%.2g\n",
                    contig.name.c_str(), from, to, domain.score, orf.reverse ? '-' : '+',
                    result.info().model_name, domain.independent_e_value);
      }
    }
  };
  callbacks.interval = std::chrono::seconds(1);
  callbacks.progress = [](const hmmjit::Progress& progress) {
    std::fprintf(stderr, "%llu models done\n",
                 static_cast<unsigned long long>(progress.models_done));
    return true;
  };
  const auto done = hmmjit::search(hmmjit::Models::from_file(argv[1]), targets, options, callbacks);
  std::fprintf(stderr, "%llu domains in %.2f s\n",
               static_cast<unsigned long long>(done.statistics.domains_reported),
               done.statistics.wall_seconds);
  return 0;
} catch (const hmmjit::Error& error) {
  std::fprintf(stderr, "orf_search: %s\n", error.what());
  return static_cast<int>(error.code());
} catch (const std::exception& error) {
  std::fprintf(stderr, "orf_search: %s\n", error.what());
  return 1;
}
