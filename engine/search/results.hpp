// Makes the complete result of a model that has all its hits.
#pragma once

#include "search/kept_hits.hpp"
#include "search/work.hpp"

namespace hmmjit::search_run {

/// Judges the hits of a model; releases its tables. Fails with errors that end the search.
Result<FinishedPtr> finish(ModelJob& job, const SearchOptions& options, KeptHits& hits,
                           Agenda& agenda);
/// Makes a part of the text; true with the last one.
bool make_part(const FormatPart& work);

}  // namespace hmmjit::search_run
