// Searching DNA and RNA models in long targets, with the results of nhmmer.
//
//   const hmmjit::SearchResults results =
//       hmmjit::nhmmer(hmmjit::Models::load("MADE1.hmm"),
//                      hmmjit::Targets::from_file("chromosome.fa"));
#pragma once

#include "hmmjit/error.hpp"
#include "hmmjit/search.hpp"

HMMJIT_BEGIN_NAMESPACE

/// nhmmer's defaults; for members see hmmjit.h. To change `search`, start from
/// SearchOptions(Program::kNhmmer).
struct NhmmerOptions : hmmjit_nhmmer_options {
  HMMJIT_EXPORT NhmmerOptions() noexcept;
};

/// Searches every model in every target, on both strands, as nhmmer with worker threads does: see
/// hmmjit_nhmmer. Each call starts the GPU anew. Throws Error as search does, and kInput for
/// protein models. A cancelled search ends within about a second, or a few with models of thousands
/// of positions.
HMMJIT_EXPORT SearchResults nhmmer(const Models& models, const Targets& targets,
                                   const hmmjit_nhmmer_options& options = NhmmerOptions(),
                                   const SearchCallbacks& callbacks = {});

HMMJIT_END_NAMESPACE
