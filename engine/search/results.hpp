// Makes the complete result of a model that has all its hits, and passes it on.
#pragma once

#include "search/kept_hits.hpp"
#include "search/work.hpp"

namespace hmmjit::search_run {

/// Judges the hits of a model; releases its tables. Fails with errors that end the search.
Result<FinishedPtr> finish(ModelJob& job, const SearchOptions& options, KeptHits& hits,
                           Agenda& agenda);
/// The result of a model that has failed.
FinishedPtr empty_result(const Recipient& recipient);
/// Makes a part of the text; true with the last one.
bool make_part(const FormatPart& work);
/// Passes a result to its sink and adds it to `statistics`. One thread at a time.
Status deliver_result(const ModelResult& result, ResultSink& sink, SearchProgress& progress,
                      SearchStatistics& statistics);

}  // namespace hmmjit::search_run
