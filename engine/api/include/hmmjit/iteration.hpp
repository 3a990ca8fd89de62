// Iterative searches, as in jackhmmer: each round searches with a model of the previous round's
// hits (Johnson, Eddy & Portugaly 2010, BMC Bioinformatics 11:431).
//
//   hmmjit::IterativeSearch search(hmmjit::Targets::from_file("query.fasta"), targets);
//   while (!search.done())
//     for (const hmmjit::Round& round : search.next()) use(round.result, round.model);
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hmmjit/build.hpp"
#include "hmmjit/error.hpp"
#include "hmmjit/results.hpp"
#include "hmmjit/search.hpp"
#include "hmmjit/targets.hpp"

HMMJIT_BEGIN_NAMESPACE

/// jackhmmer's defaults; for members see hmmjit.h. To change `search`, start from
/// SearchOptions(Program::kJackhmmer); cutoffs, first_target and target_count must not be set;
/// keep_alignments may be 0 only with one round. `build` applies to all models, except that in
/// later rounds the query determines the match columns, and most_insertions has no effect.
struct IterationOptions : hmmjit_iteration_options {
  HMMJIT_EXPORT IterationOptions() noexcept;
};

/// One round of one query; for members see hmmjit.h.
struct Round : hmmjit_round_info {
  ModelResult result;  ///< hits of the model
  Model model;         ///< the model of this round, calibrated
  /// Included domains, aligned with the query sequence, if any, in Stockholm format: the input of
  /// the next round's model (--chkali).
  std::string alignment;
};

/// Queries and the state of their rounds. Reads the targets of a file once and keeps them in
/// memory, up to a third of the memory bound. Movable. One thread at a time.
class HMMJIT_EXPORT IterativeSearch : public SharedHandle<struct IterativeSearchImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// `queries`: protein sequences; skips sequences without residues. Throws Error kUsage for
  /// invalid options, kInput for unreadable queries.
  IterativeSearch(const Targets& queries, const Targets& targets,
                  const hmmjit_iteration_options& options = IterationOptions());
  /// The same with protein models as queries: the first round searches with the model itself, and
  /// alignments have no row for the query. Options of the first model have no effect.
  IterativeSearch(const Models& queries, const Targets& targets,
                  const hmmjit_iteration_options& options = IterationOptions());
  IterativeSearch(IterativeSearch&&) noexcept = default;
  IterativeSearch& operator=(IterativeSearch&&) noexcept = default;

  std::size_t queries() const;
  /// True if no query has a further round.
  bool done() const;
  /// Runs the next round of every unfinished query, concurrently; returns none once done. Does not
  /// call `callbacks.result`. Throws Error as search does, and kInput if no model can be built from
  /// the hits; the next call then returns the rounds finished before the error, and searches the
  /// others.
  std::vector<Round> next(const SearchCallbacks& callbacks = {});

 private:
  IterativeSearch(const Targets& targets, const hmmjit_iteration_options& options);
};

HMMJIT_END_NAMESPACE
