// Searching in rounds, each with a model of what was found before, as jackhmmer does (Johnson, Eddy
// & Portugaly 2010, BMC Bioinformatics 11:431).
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
  /// Of every round; without cutoffs of models, first_target and target_count. keep_alignments
  /// false is of use with one round only.
  SearchOptions search;
  /// Of the first model and of those from alignments, whose match columns are always those of the
  /// query and of the positions added since (kReference); without most_insertions.
  BuildOptions build;
  // Of the main report (Report::add).
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
  ModelResult result;     ///< what the model found
  Model model;            ///< that was searched with, calibrated
  /// What was found within the inclusion thresholds, aligned with the query, in Stockholm format:
  /// what the next round's model is built from (--chkali).
  std::string alignment;
  std::size_t included = 0;     ///< rows of the alignment, the query's among them
  std::size_t new_targets = 0;  ///< included now and not in the round before
  bool converged = false;       ///< nothing new: the last round
  bool last = false;            ///< converged, or as many rounds as asked for
};

/// Queries on their way through the rounds. Targets of a file are read once and then stay in
/// memory, a third of the memory bound at most. Movable. One thread at a time.
class HMMJIT_EXPORT IterativeSearch {
 public:
  /// `queries`: protein sequences; those without residues are left out. Throws Error kUsage for
  /// options that make no sense, kInput for unreadable queries.
  IterativeSearch(const Targets& queries, const Targets& targets,
                  const IterationOptions& options = IterationOptions());
  ~IterativeSearch();
  IterativeSearch(IterativeSearch&&) noexcept;
  IterativeSearch& operator=(IterativeSearch&&) noexcept;

  std::size_t queries() const;
  /// No query has a further round.
  bool done() const;
  /// The next round of every query that has one, side by side; empty once done. `callbacks.result`
  /// is not called. Throws Error as search does, and kInput where no model can be built of what was
  /// found; rounds that had been finished by then come with the next call, the others are searched
  /// then.
  std::vector<Round> next(const SearchCallbacks& callbacks = {});

  struct Impl;
  const Impl& impl() const { return *impl_; }  ///< for the library itself

 private:
  std::unique_ptr<Impl> impl_;
};

HMMJIT_END_NAMESPACE
