// Searches both strands of long targets with nucleotide models; the results are those of nhmmer and
// nhmmscan (Wheeler & Eddy 2013). Targets are cut into pieces. SSV scans each strand of a piece for
// windows, which are searched like protein targets, with a composition correction for each
// envelope. Every domain is a hit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/cancellation.hpp"
#include "core/error.hpp"
#include "core/hidden.hpp"
#include "domain/domain.hpp"
#include "model/filter_counters.hpp"
#include "model/profile.hpp"
#include "model/targets.hpp"

namespace hmmjit::search_run {
class Verifier;
}
namespace hmmjit::nucleotide {

class DeviceScan;

enum class Strands { kBoth, kTop, kBottom };

/// How targets are cut into pieces. Affects results: a cut may divide a domain.
enum class Partition {
  kGathered,  ///< short targets share a block: nhmmer with worker threads
  kSerial,    ///< each target is cut separately: nhmmer --cpu 0
  /// Each target is one piece, searched as if it were the only one, bottom strand first: nhmmscan.
  kTargets,
};

struct Options {
  double F1 = 0.02, F2 = 3e-3, F3 = 3e-5;
  bool bias = true;
  int B1 = 110, B2 = 240, B3 = 1000;  ///< window lengths up to which bias counts in full
  /// `null2`: re-estimates emissions for each envelope. Other members as documented there.
  domain::DomainOptions domain;
  Strands strands = Strands::kBoth;
  Partition partition = Partition::kGathered;
  int block_length = 262144;   ///< maximum new residues per piece; no effect with kTargets
  std::optional<double> Z;     ///< search space of one strand in Mb (megabases)
  bool column_scores = false;  ///< fills Hit::column_scores
  /// If false, drops every domain's alignment text, which column scores need.
  bool keep_alignments = true;
  int threads = 1;                             ///< including the caller's
  const Cancellation* cancellation = nullptr;  ///< ends add() early; may be null
  bool cancelled() const { return cancellation != nullptr && cancellation->cancelled(); }
};

/// A hit passes by its score if one is given, otherwise by its E-value.
struct Rule {
  double e_value;
  std::optional<double> score = {};
};

/// A model to search with. Its cutoffs (--cut_ga) are the scores of both rules. Its alphabet
/// provides the background frequencies and the letters of displayed targets. A search completes
/// `model` when it finds the first diagonal: two searches of one model must not run at once.
struct Query {
  std::shared_ptr<SearchModel> model;
  int window_length = 0;  ///< W: MAXL of the model, --w_length, max_length(hmm, --w_beta)
  Rule report{10.0}, include{0.01};
};

/// Fails with kInput if a model of M positions or its window is too long for window positions.
Status check(std::string_view model, int M, int window_length);

/// The target of a hit or, in a Scan, its model.
struct Subject {
  std::uint64_t index = 0;                                  ///< position in the input, from 0
  std::string name = {}, accession = {}, description = {};  ///< empty: none
  std::int64_t length = 0;
};

struct Hit {
  std::shared_ptr<const Subject> subject;
  bool bottom = false;
  /// Coordinates on the whole target as displayed: from > to on the bottom strand. bias_nats: the
  /// composition correction; log_p: logarithm of the E-value.
  domain::Domain domain = {};
  bool reported = false, included = false;
  /// Scores of the alignment's columns in nats; a gap has its score in its last column, and
  /// -infinity in the others.
  std::vector<float> column_scores = {};
};

/// A hit, and the thresholds that apply to it.
struct StoredHit {
  Hit hit;
  Rule report, include;
};

/// Maxima over all stored hits, including duplicates and unreported hits, for column widths.
struct Extents {
  std::size_t name = 0, accession = 0, shown = 0;  ///< characters; shown: accession, else name
  std::int64_t position = 0;                       ///< of alignment ends
};

/// The result of a model or, in a Scan, of a target.
struct HitList {
  std::vector<Hit> hits;  ///< reported hits, in report order
  std::uint64_t reported = 0, included = 0;
  Extents extents;
  FilterCounters counters;
};

/// Core-seconds (thread CPU time) and cells of a search's stages; for the bias filter, residues.
struct Times {
  double setup_seconds = 0, domain_seconds = 0;
  domain::DomainPass ssv, msv, bias, viterbi;
  domain::DomainTimes domain;  ///< parts of domain_seconds
};

/// The complement of each code; the same table for DNA and RNA, whose codes are equal.
const std::array<Residue, 256>& complements();
/// The other strand of a part of a sequence, from its end.
std::vector<Residue> reverse_complement(std::span<const Residue> part);

/// The hits on each target of a block, of all models so far.
struct Scan {
  struct Target {
    std::vector<StoredHit> hits;  ///< in search order
    FilterCounters counters;
  };
  /// The result of a target, once all models have searched it. Call it once per target.
  HitList finish(std::size_t target);

  std::vector<Target> targets;
  std::uint64_t models = 0, nodes = 0;
};

/// Searches targets in order, reading each once for all models. For nhmmer: add(), finish(); for
/// nhmmscan: scan().
class Search {
 public:
  /// `device` computes SSV marks and more, for one search at a time; null: CPU only. `verifier`
  /// checks some of its answers; may be null.
  Search(std::vector<Query> queries, const Options& options, DeviceScan* device = nullptr,
         search_run::Verifier* verifier = nullptr);

  /// Searches whole targets with all models; results do not depend on the division into blocks.
  /// Fails with kResources if a matrix would be too large, with kInterrupted once cancelled, and as
  /// the verifier does. The block may then be released.
  Status add(const TargetBlock& block);
  /// The result of a model after the last block. Call it once per model.
  HitList finish(std::size_t query);
  /// Searches the next block and adds the hits to those of earlier models. Requires
  /// Partition::kTargets; `Z` and `column_scores` are ignored. Fails as add() does.
  Status scan(const TargetBlock& block, Scan& found);
  /// Sums over all threads. Do not call it during calls of other functions.
  Times times() const;

 private:
  struct State;
  Hidden<State> state_;
};

}  // namespace hmmjit::nucleotide
