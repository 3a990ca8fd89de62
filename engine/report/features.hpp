// Included domains as features of their sequences: GFF3, BED, FASTA of hits and of domains; of
// overlapping ones the best.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/output_file.hpp"
#include "core/sorted.hpp"
#include "io/text_output.hpp"
#include "model/alphabet.hpp"
#include "search/search.hpp"
#include "search/target_source.hpp"

namespace hmmjit {

/// Empty: not wanted.
struct FeaturePaths {
  std::string gff, bed;
  std::string fasta;         ///< included targets
  std::string domain_fasta;  ///< envelopes of included domains
  bool any() const { return !gff.empty() || !bed.empty() || sequences_needed(); }
  bool sequences_needed() const { return !fasta.empty() || !domain_fasta.empty(); }
};

/// Clan of a model by its name and by its accession without version.
using Clans = std::map<std::string, std::string, std::less<>>;
/// Pfam's table Pfam-A.clans.tsv: accession, clan accession, clan name, model name, description, by
/// tabs; or two columns, model and clan. Models without a clan are left out. Fails with kInput.
Result<Clans> read_clans(const std::string& path);

/// Which of overlapping domains are left out.
struct OverlapRule {
  bool resolve = false;
  /// With clans: models of one clan compete where their envelopes share a residue, others never.
  /// Without: any two models do where half of the shorter envelope is shared. Domains of one model
  /// never compete.
  std::optional<Clans> clans;
  bool nucleotides = false;  ///< targets have two strands
};

/// An included domain.
struct Feature {
  std::uint32_t model = 0;  ///< in FeatureWriter's list
  int number = 0;           ///< among the reported domains of its target and model
  std::uint64_t place = 0;  ///< among all reported domains, in the order of the tables
  int env_from = 0, env_to = 0, ali_from = 0, ali_to = 0, hmm_from = 0, hmm_to = 0;
  double log_p = 0, i_evalue = 0;
  float bits = 0;
  char strand = '.';  ///< of nucleotides: + or -; from <= to on both
};

/// Keeps the included domains of a search until its end, then writes them by target.
class FeatureWriter {
 public:
  /// Begins the files. `memory`: bytes that domains and buffers may take; what is more waits in a
  /// temporary file. The domains of a single target are not bounded. Fails with kOutput.
  static Result<std::unique_ptr<FeatureWriter>> create(
      const FeaturePaths& paths, OverlapRule rule,
      std::uint64_t memory = std::numeric_limits<std::uint64_t>::max());
  /// The next model. One thread at a time. Fails with kOutput, and where its stored hits cannot be
  /// read.
  Status add(const ModelResult& result);
  /// Writes all files. `targets`: the input of the search from its first target on, null where no
  /// sequences are needed. Fails with kInput where it no longer holds the targets of the search,
  /// and with kOutput at the first write that fails.
  Status write(TargetSource* targets, const Alphabet& alphabet);
  /// After `write`: for each reported domain, in the order of the tables, whether it remains when
  /// overlaps are resolved. Empty where they are not.
  const std::vector<bool>& kept() const { return kept_; }
  /// Complete but for their names.
  std::vector<OutputFile*> files();

 private:
  struct Model {
    std::string name, accession, clan;
  };
  // An included target with its included domains: of one model, or of all models.
  struct Target {
    std::uint64_t index = 0;  // in the input
    std::string name;
    int length = 0;
    std::vector<Feature> features;
  };
  struct ByTarget {
    static bool before(const Target& a, const Target& b) { return a.index < b.index; }
    static void encode(const Target& target, std::string& out);
    static bool decode(Decoder& decoder, Target& target);
    static std::uint64_t bytes(const Target& target) {
      return sizeof(Target) + target.name.size() + target.features.size() * sizeof(Feature);
    }
  };
  FeatureWriter(OverlapRule rule, std::uint64_t memory)
      : rule_(std::move(rule)), targets_(memory) {}
  Status add_hit(const Hit& hit, const HitList& sums, std::uint32_t model);
  // The next included target with the domains of all models; false after the last.
  Result<bool> next(Target& target);
  // Of different models.
  bool compete(const Feature& a, const Feature& b) const;
  void resolve(std::vector<Feature>& features) const;
  // `number`: of the last feature that was written.
  Status write_rows(const Target& target, std::uint64_t& number);
  Status write_sequences(const Target& target, const TargetBlock& block, const Alphabet& alphabet);

  OverlapRule rule_;
  std::vector<Model> models_;
  std::uint64_t reported_ = 0;  // domains so far
  std::vector<bool> kept_;
  Sorted<Target, ByTarget> targets_;
  std::optional<TextOutput> gff_, bed_, fasta_, domain_fasta_;
};

}  // namespace hmmjit
