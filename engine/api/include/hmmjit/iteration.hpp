// Iterative searches as jackhmmer's: each round searches with a model of the hits of the round
// before (Johnson, Eddy & Portugaly 2010, BMC Bioinformatics 11:431).
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

/// jackhmmer's, described in hmmjit.h. `search` points to SearchOptions(Program::kJackhmmer),
/// changed: cutoffs, first_target and target_count must not be set; keep_alignments may be 0 only
/// if there is one round. `build` concerns all models; in later rounds match columns are those of
/// the query, and most_insertions is ignored.
struct IterationOptions : hmmjit_iteration_options {
  HMMJIT_EXPORT IterationOptions() noexcept;
};

/// One round of one query; numbers are described in hmmjit.h.
struct Round : hmmjit_round_info {
  ModelResult result;  ///< hits of the model
  Model model;         ///< the model of this round, calibrated
  /// Included domains, aligned with the query sequence if there is one, in Stockholm format. The
  /// next round's model is built from it (--chkali).
  std::string alignment;
};

/// Queries and the state of their rounds. Targets of a file are read once and kept in memory, up to
/// a third of the memory bound. Movable. One thread at a time.
class HMMJIT_EXPORT IterativeSearch : public SharedHandle<struct IterativeSearchImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// `queries`: protein sequences; those without residues are left out. Throws Error kUsage for
  /// options that make no sense, kInput for unreadable queries.
  IterativeSearch(const Targets& queries, const Targets& targets,
                  const hmmjit_iteration_options& options = IterationOptions());
  /// The same from protein models: the first round searches with the model itself, and alignments
  /// have no row of a query. Options of the first model do not apply.
  IterativeSearch(const Models& queries, const Targets& targets,
                  const hmmjit_iteration_options& options = IterationOptions());
  IterativeSearch(IterativeSearch&&) noexcept = default;
  IterativeSearch& operator=(IterativeSearch&&) noexcept = default;

  std::size_t queries() const;
  /// No query has a further round.
  bool done() const;
  /// The next round of every query that has one, side by side; empty once done. `callbacks.result`
  /// is not called. Throws Error as search does, and kInput if no model can be built from the hits;
  /// the next call returns the rounds that were finished by then, and searches the others.
  std::vector<Round> next(const SearchCallbacks& callbacks = {});

 private:
  IterativeSearch(const Targets& targets, const hmmjit_iteration_options& options);
};

HMMJIT_END_NAMESPACE
