// Results of a search: hits, domains, alignments.
//
//   for (const hmmjit::Hit& hit : results.models[0].hits())
//     if (hit.reported) std::cout << hit.name << ' ' << hit.score << ' ' << hit.e_value << '\n';
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hmmjit/error.hpp"

HMMJIT_BEGIN_NAMESPACE

// Plain data, not to be changed while others read it. Scores are in bits, E-values are expected
// numbers of false hits, coordinates are 1-based and inclusive, indices count from 0.
// Source: Eddy 2011 (PLoS Comput Biol 7:e1002195) and the HMMER user's guide, "Tabular output".

/// Alignment of a domain, one column per character; all texts that are not empty have equal length.
/// All are empty when the search did not keep alignments (ModelResult::has_alignments).
struct Alignment {
  std::string_view model;      ///< consensus, '.' at insertions
  std::string_view match;      ///< letters, '+' and blanks
  std::string_view sequence;   ///< residues, '-' at deletions, lower case at insertions
  std::string_view posterior;  ///< '0' to '9' and '*': posterior probability of each residue
  std::string_view reference;  ///< RF annotation of the model; empty: none
  std::string_view structure;  ///< CS annotation of the model; empty: none
};

/// One domain. Coordinates are 1-based and inclusive; scores in bits.
struct Domain {
  int envelope_from = 0, envelope_to = 0;    ///< on the target
  int alignment_from = 0, alignment_to = 0;  ///< on the target
  int model_from = 0, model_to = 0;          ///< on the model
  double score = 0;                          ///< bits
  double bias = 0;                           ///< bits taken off for composition
  double conditional_e_value = 0;            ///< given that the target is a hit
  double independent_e_value = 0;            ///< as if it were the only domain
  double ln_p = 0;                           ///< natural logarithm of the P-value
  double accuracy = 0;                       ///< mean posterior of the aligned residues, 0 to 1
  bool reported = false;  ///< satisfies the reporting thresholds, as does its target
  bool included = false;  ///< also satisfies the inclusion thresholds
  Alignment alignment;
};

/// One target. Texts are views: see ModelResult.
struct Hit {
  std::string_view name, accession, description;  ///< empty: none
  std::uint64_t index = 0;                        ///< position in the input, from 0
  int length = 0;                                 ///< residues
  double e_value = 0;                             ///< for Z targets
  double ln_p = 0;              ///< natural logarithm of the P-value: exact where the E-value is 0
  double score = 0;             ///< bits, of the whole target
  double bias = 0;              ///< bits taken off for composition
  double expected_domains = 0;  ///< mean number over all paths (Forward)
  /// Steps of domain definition, as in hmmsearch's tables: regions found (reg), regions resolved by
  /// clustering sampled paths (clu), envelopes that overlap their neighbour (ov), envelopes (env).
  int regions = 0, clustered = 0, overlaps = 0, envelopes = 0;
  bool reported = false;            ///< satisfies the reporting thresholds
  bool included = false;            ///< also satisfies the inclusion thresholds
  std::size_t best_domain = 0;      ///< index into `domains`
  std::span<const Domain> domains;  ///< all found, reported or not, by position
};

/// Targets searched, their residues, and targets that passed each filter.
struct FilterCounts {
  std::uint64_t targets = 0, residues = 0;
  std::uint64_t msv = 0, bias = 0, viterbi = 0, forward = 0;
};

/// The finished search of one model. Immutable; copies share; shareable between threads. Spans,
/// views and references stay valid while any copy lives. Only bytes and from_bytes throw.
///
/// `hits` holds what hmmsearch could print: reported targets first, best first, with the ties and
/// the order of hmmsearch; after them candidates that missed the thresholds in the end.
class HMMJIT_EXPORT ModelResult {
 public:
  std::size_t index() const;  ///< of the model in the input, from 0
  const std::string& model_name() const;
  const std::string& model_accession() const;    ///< empty: none
  const std::string& model_description() const;  ///< empty: none
  int model_length() const;                      ///< match states
  std::span<const Hit> hits() const;             ///< in hmmsearch's order
  /// Whether domains have alignments: SearchOptions::keep_alignments of the search.
  bool has_alignments() const;
  bool long_targets() const;     ///< of nhmmer: each domain is a hit, on one of two strands
  std::size_t reported() const;  ///< hits reported; of these,
  std::size_t included() const;  ///< hits that satisfy the inclusion thresholds
  double Z() const;              ///< targets assumed for E-values
  double domZ() const;           ///< targets assumed for conditional E-values
  const FilterCounts& counts() const;
  double seconds() const;  ///< from set-up to the last domain, while other models run as well

  /// Serialised, for another process with the same version of the library.
  std::string bytes() const;
  /// The inverse. Throws Error kInput for other bytes.
  static ModelResult from_bytes(std::string_view bytes);

  struct Impl;
  explicit ModelResult(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  const std::shared_ptr<const Impl>& impl() const { return impl_; }  ///< for the library itself

 private:
  std::shared_ptr<const Impl> impl_;
};

HMMJIT_END_NAMESPACE
