// Hits of one model: which candidates are kept, what is reported and included, in which order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "domain/domain.hpp"
#include "model/filter_counters.hpp"
#include "model/hmm.hpp"
#include "search/options.hpp"

namespace hmmjit {

class ResultSink;

/// Where the result of a model goes: a sink, and its place among the results there.
struct Recipient {
  ResultSink* sink = nullptr;
  std::size_t index = 0;
};

/// Name, accession and description of a model, or of the sequence a model was built from.
struct QueryNames {
  std::string name;
  std::optional<std::string> accession = {}, description = {};
};

/// One target with at least one domain. Owns its text: the target block may be gone.
struct Hit {
  struct Flags {
    bool reported = false, included = false;
  };

  std::string name, accession, description;  ///< empty: none
  std::uint64_t index = 0;                   ///< position in the whole input, from 0
  int length = 0;
  domain::TargetScore score;
  Flags flags;
  std::vector<Flags> domain_flags;  ///< of score.domains
  int reported_domains = 0, included_domains = 0;
  double sort_key = 0;

  const domain::Domain& best_domain() const { return score.domains[score.best_domain]; }
  const std::string& shown_name(bool prefer_accession) const {
    return prefer_accession && !accession.empty() ? accession : name;
  }
};

/// Approximate bytes of a hit in memory.
std::uint64_t hit_bytes(const Hit& hit);

/// The share of a model of `length` positions that a domain covers.
inline double model_coverage(const domain::Domain& domain, int length) {
  return static_cast<double>(domain.hmm_to - domain.hmm_from + 1) / static_cast<double>(length);
}

/// The thresholds that hold for one model: the user's, or the model's own cutoffs.
struct ModelThresholds {
  Thresholds rules;
  bool cutoffs = false;  ///< model cutoffs in force: every reported hit is included
  int length = 0;        ///< of the model; 0: no coverage is demanded

  bool include_by_e_value() const { return !rules.include_target.score; }
};

/// The tag of such cutoffs in a model file, "GA", "NC" or "TC"; "table" for kTable, empty for
/// kNone.
std::string_view cutoff_name(ModelCutoffs cutoffs);
/// The cutoffs of a table for a model: by its name, its accession, or that without a version.
std::optional<Cutoff> find_cutoff(const CutoffTable& table, std::string_view name,
                                  std::string_view accession);
/// The cutoffs that `rules` name for a model, if it has them; `rules.cutoffs` is not kNone.
std::optional<Cutoff> cutoff_of(const Hmm& hmm, const Thresholds& rules);
/// The error of a model without them.
std::unexpected<Error> lacks_cutoffs(const Thresholds& rules, const std::string& model);
/// Fails with kInput when the rules name cutoffs and the model has none, unless rules.missing says
/// that the other thresholds then hold. `cutoff`: replaces the model's own.
Result<ModelThresholds> thresholds_for(const Thresholds& rules, const Hmm& hmm,
                                       std::optional<Cutoff> cutoff = {});

/// True when a target must be kept: it might be reported in the end. `index` is the target's own
/// position in the input, so that the answer does not depend on threads.
bool is_candidate(const ModelThresholds& thresholds, const domain::TargetScore& score,
                  std::uint64_t index);

/// Counts of one searched model, or of a part of its targets.
struct HitCounts {
  std::uint64_t candidates = 0, reported = 0, included = 0;
  /// Longest text over all candidates, reported or not: hmmsearch's column widths.
  std::size_t longest_name = 0, longest_accession = 0, longest_shown = 0;
  FilterCounters counters;

  HitCounts& operator+=(const HitCounts& other);
  /// Makes room for the names of a candidate.
  void widen(const Hit& hit);
  void count(const Hit::Flags& flags) {
    reported += flags.reported;
    included += flags.included;
  }
};

/// Search spaces and counts of one searched model.
struct HitTotals : HitCounts {
  double Z = 0, domZ = 0;
  bool Z_is_set = false, domZ_is_set = false;  ///< by the user
  bool sorted_by_score = false;                ///< inclusion is by score, so is the order
};

/// All that the reports need of one searched model.
struct HitList : HitTotals {
  std::vector<Hit> hits;  ///< all candidates, sorted as hmmsearch prints them
};

/// Applies the final thresholds, flags duplicate domains, and sorts. `hits`: the candidates in
/// any order; `counters` over the input. `whole_targets`: the targets of the whole search where the
/// input is a part of it; the search space of domains is then only what the part contributes.
HitList finish_hits(const ModelThresholds& thresholds, std::vector<Hit> hits,
                    const FilterCounters& counters,
                    std::optional<std::uint64_t> whole_targets = std::nullopt);

// The steps of finish_hits, for results that are put together from parts:

/// Sets the sort key of a hit, and whether the target is reported and included at search space Z.
void judge_target(const ModelThresholds& thresholds, double Z, Hit& hit);
/// Flags and counts the domains of a judged target at search space `domZ`.
void judge_domains(const ModelThresholds& thresholds, double domZ, Hit& hit);
/// True when `a` stands before `b` in the output; of equal hits, the one with the lower index.
bool stands_before(const Hit& a, const Hit& b);

/// Fails with kInternal if an index occurs twice in the hits of one model, which must be sorted.
/// The hits of a target that was delivered twice have equal scores, except with --seed 0, and are
/// neighbours. Different targets may have one name.
Status check_each_once(const std::vector<Hit>& hits, const std::string& model);
std::unexpected<Error> found_twice(const Hit& hit, const std::string& model);

/// The list hmmscan makes of one target: `hits` are models in the place of targets (name,
/// accession, description, length), each judged by finish_hits for its own model with `Z`, the
/// number of models. The search space of domains is the number of models reported for this target.
HitList finish_scan(const Thresholds& rules, std::vector<Hit> hits, double Z);

}  // namespace hmmjit
