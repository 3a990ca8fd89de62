// Searching DNA and RNA models in long targets, with the results of nhmmer.
//
//   const hmmjit::SearchResults results =
//       hmmjit::nhmmer(hmmjit::Models::load("MADE1.hmm"),
//                      hmmjit::Targets::from_file("chromosome.fa"));
#pragma once

#include "hmmjit/error.hpp"
#include "hmmjit/search.hpp"

HMMJIT_BEGIN_NAMESPACE

enum class Strands { kBoth, kTop, kBottom };

/// Defaults are nhmmer's.
struct NhmmerOptions {
  NhmmerOptions() {
    search.F2 = 3e-3;
    search.F3 = 3e-5;
  }
  /// Z is in millions of residues. Thresholds of domains have no effect, nor have vram, gpus,
  /// verify and cache. `memory` bounds the models of a pass and the targets, but not the hits.
  SearchOptions search;
  Strands strands = Strands::kBoth;   ///< --watson, --crick
  int window_length = 0;              ///< --w_length: the longest hit expected; 0: the model's
  double window_beta = 0;             ///< --w_beta: tail mass at which it is determined
  int B1 = 110, B2 = 240, B3 = 1000;  ///< windows of the bias filter
  int block_length = 262144;          ///< residues of the pieces of targets, 50,000 at least
};

/// Searches every model in every target, on both strands, as nhmmer with worker threads does. Every
/// domain is a hit of its own. Positions on the bottom strand run down: alignment_from >
/// alignment_to. ln_p is the logarithm of the E-value, and counts of filters are residues.
///
/// Throws Error as search does, kInput for models of proteins, and kNoDevice where a GPU is
/// demanded. A cancelled search ends within a second or so.
HMMJIT_EXPORT SearchResults nhmmer(const Models& models, const Targets& targets,
                                   const NhmmerOptions& options = {},
                                   const SearchCallbacks& callbacks = {});

HMMJIT_END_NAMESPACE
