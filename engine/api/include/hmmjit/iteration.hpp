// Iterative searches as jackhmmer's: each round searches with a model of the hits of the round
// before (Johnson, Eddy & Portugaly 2010, BMC Bioinformatics 11:431).
//
//   hmmjit::IterativeSearch search(hmmjit::Targets::from_file("query.fasta"), targets);
//   while (!search.done())
//     for (const hmmjit::Round& round : search.next()) use(round.result, round.model);
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hmmjit/build.hpp"
#include "hmmjit/error.hpp"
#include "hmmjit/results.hpp"
#include "hmmjit/search.hpp"
#include "hmmjit/targets.hpp"

HMMJIT_BEGIN_NAMESPACE

/// Defaults are jackhmmer's.
struct IterationOptions {
  IterationOptions() { search.include.e_value = search.include_domain.e_value = 0.001; }
  int rounds = 5;  ///< -N: at most, 1 or more
  /// Options of every round. cutoffs, first_target and target_count must not be set;
  /// keep_alignments may be false only if there is one round.
  SearchOptions search;
  /// Options of all models. In later rounds match columns are those of the query (kReference);
  /// most_insertions is ignored.
  BuildOptions build;
  // Main report (Report::add).
  bool prefer_accession = false;  ///< --acc
  bool alignments = true;         ///< --noali turns them off
  int text_width = 120;           ///< columns, at least 120; 0: unlimited (--notextw)
  bool a3m = false;               ///< a Report of kA3m is wanted
  /// The file that the caller will write the last alignment to (a Report of kAlignment): the main
  /// report names it. Empty: none.
  std::string alignment_file;
};

/// One round of one query.
struct Round {
  std::size_t query = 0;  ///< index among the queries
  int number = 0;         ///< from 1
  ModelResult result;     ///< hits of the model
  Model model;            ///< the model of this round, calibrated
  /// Included domains, aligned with the query sequence if there is one, in Stockholm format. The
  /// next round's model is built from it (--chkali).
  std::string alignment;
  std::size_t included = 0;     ///< rows of the alignment, that of a query sequence among them
  std::size_t new_targets = 0;  ///< included now and not in the round before
  bool converged = false;       ///< nothing new: the last round
  bool last = false;            ///< converged, or as many rounds as asked for
};

/// Queries and the state of their rounds. Targets of a file are read once and kept in memory, up to
/// a third of the memory bound. Movable. One thread at a time.
class HMMJIT_EXPORT IterativeSearch {
 public:
  /// `queries`: protein sequences; those without residues are left out. Throws Error kUsage for
  /// options that make no sense, kInput for unreadable queries.
  IterativeSearch(const Targets& queries, const Targets& targets,
                  const IterationOptions& options = IterationOptions());
  /// The same from protein models: the first round searches with the model itself, and alignments
  /// have no row of a query. Options of the first model do not apply.
  IterativeSearch(const Models& queries, const Targets& targets,
                  const IterationOptions& options = IterationOptions());
  IterativeSearch(IterativeSearch&&) noexcept = default;
  IterativeSearch& operator=(IterativeSearch&&) noexcept = default;

  std::size_t queries() const;
  /// No query has a further round.
  bool done() const;
  /// The next round of every query that has one, side by side; empty once done. `callbacks.result`
  /// is not called. Throws Error as search does, and kInput if no model can be built from the hits;
  /// the next call returns the rounds that were finished by then, and searches the others.
  std::vector<Round> next(const SearchCallbacks& callbacks = {});

  struct Impl;
  const Impl& impl() const { return *impl_; }  ///< for the library itself

 private:
  IterativeSearch(const Targets& targets, const IterationOptions& options);
  std::shared_ptr<Impl> impl_;
};

HMMJIT_END_NAMESPACE
