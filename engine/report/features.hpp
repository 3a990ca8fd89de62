// Writes included domains as features of their sequences (GFF3, BED, FASTA of targets and domains)
// and resolves overlaps.
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

/// Paths of the outputs; empty: no output.
struct FeaturePaths {
  std::string gff, bed;
  std::string fasta;         ///< included targets
  std::string domain_fasta;  ///< envelopes of included domains
  bool any() const { return !gff.empty() || !bed.empty() || sequences_needed(); }
  bool sequences_needed() const { return !fasta.empty() || !domain_fasta.empty(); }
};

/// Maps a model's name, accession and accession without version to its clan.
using Clans = std::map<std::string, std::string, std::less<>>;
/// Reads Pfam's table Pfam-A.clans.tsv (tabs between accession, clan accession, clan name, model
/// name, description) or the two columns model and clan. Omits models without a clan.
Result<Clans> read_clans(const std::string& path);

/// The rule by which overlapping domains compete.
struct OverlapRule {
  bool resolve = false;
  /// With clans, two models compete if they belong to one clan and their envelopes share a residue.
  /// Without clans, any two models compete if they share half of the shorter envelope. Domains of
  /// one model never compete.
  std::optional<Clans> clans;
  bool nucleotides = false;  ///< targets have two strands
};

/// An included domain.
struct Feature {
  std::uint32_t model = 0;  ///< index of the model
  int number = 0;           ///< among the reported domains of its target and model
  std::uint64_t place = 0;  ///< among all reported domains, in the order of the tables
  int env_from = 0, env_to = 0, ali_from = 0, ali_to = 0, hmm_from = 0, hmm_to = 0;
  double log_p = 0, i_evalue = 0;
  float bits = 0;
  char strand = '.';  ///< + or - for nucleotides; from <= to on both strands
};

/// Collects the included domains of a search, then writes them by target.
class FeatureWriter {
 public:
  /// Opens the files. Domains and buffers may take `memory` bytes; the rest goes to a temporary
  /// file. Does not bound the domains of a single target. Fails with kOutput.
  static Result<std::unique_ptr<FeatureWriter>> create(
      const FeaturePaths& paths, OverlapRule rule,
      std::uint64_t memory = std::numeric_limits<std::uint64_t>::max());
  /// Adds the next model. One thread at a time. Fails with kOutput, and if stored hits cannot be
  /// read.
  Status add(const ModelResult& result);
  /// Writes all files. `targets`: the input of the search from its first target on; null if no
  /// output needs sequences. Fails with kInput if it no longer contains the targets of the search,
  /// and with kOutput at the first write that fails.
  Status write(TargetSource* targets, const Alphabet& alphabet);
  /// After `write`: for each reported domain, in table order, whether it remains after overlaps are
  /// resolved. Empty if they are not resolved.
  const std::vector<bool>& kept() const { return kept_; }
  /// The complete, unpublished files.
  std::vector<OutputFile*> files();

 private:
  struct Model {
    std::string name, accession, clan;
  };
  // An included target with its included domains, of one model or of all models.
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
  // Reads the next included target with the domains of all models; false after the last.
  Result<bool> next(Target& target);
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
