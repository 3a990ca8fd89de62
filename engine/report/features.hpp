// Writes included domains as features of their sequences (GFF3, BED, FASTA of targets and domains);
// resolves overlaps.
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

/// An empty path is an output that is not wanted.
struct FeaturePaths {
  std::string gff, bed;
  std::string fasta;         ///< included targets
  std::string domain_fasta;  ///< envelopes of included domains
  bool any() const { return !gff.empty() || !bed.empty() || sequences_needed(); }
  bool sequences_needed() const { return !fasta.empty() || !domain_fasta.empty(); }
};

/// Maps a model's name, and its accession without version, to its clan.
using Clans = std::map<std::string, std::string, std::less<>>;
/// Pfam's table Pfam-A.clans.tsv: accession, clan accession, clan name, model name, description, by
/// tabs; or two columns, model and clan. Models without a clan are left out. Fails with kInput.
Result<Clans> read_clans(const std::string& path);

/// The rule by which overlapping domains compete.
struct OverlapRule {
  bool resolve = false;
  /// With clans, models of one clan compete if their envelopes share a residue, and others never.
  /// Without clans, any two models compete if they share half of the shorter envelope. Domains of
  /// one model never compete.
  std::optional<Clans> clans;
  bool nucleotides = false;  ///< targets have two strands
};

/// An included domain.
struct Feature {
  std::uint32_t model = 0;  ///< its index
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
  /// Begins the files. Domains and buffers may take `memory` bytes; the rest goes to a temporary
  /// file. The domains of a single target are not bounded. Fails with kOutput.
  static Result<std::unique_ptr<FeatureWriter>> create(
      const FeaturePaths& paths, OverlapRule rule,
      std::uint64_t memory = std::numeric_limits<std::uint64_t>::max());
  /// Adds the next model. Call it from one thread at a time. Fails with kOutput, and if stored hits
  /// cannot be read.
  Status add(const ModelResult& result);
  /// Writes all files. `targets`: the input of the search from its first target on, null where no
  /// sequences are needed. Fails with kInput where it no longer holds the targets of the search,
  /// and with kOutput at the first write that fails.
  Status write(TargetSource* targets, const Alphabet& alphabet);
  /// After `write`: for each reported domain, in the order of the tables, whether it remains when
  /// overlaps are resolved. Empty where they are not.
  const std::vector<bool>& kept() const { return kept_; }
  /// The files, which only lack their final names.
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
  // `a` and `b` are of different models.
  bool compete(const Feature& a, const Feature& b) const;
  void resolve(std::vector<Feature>& features) const;
  // `number` counts the features written.
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
