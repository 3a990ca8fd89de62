// Builds the page that `hmmjit report` makes from the JSON lines of the same search.
#pragma once

#include "report/html_page.hpp"
#include "report/records.hpp"
#include "report/tables.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// Adds the reported targets of one model. Models must come in order, from the first.
void add_to_page(Page& page, const ModelResult& result, bool alignments);
/// Keeps the `top` targets with the best E-values; 0: all.
void keep_best(Page& page, std::size_t top);
/// Sets the title and the lines about the run.
void describe_run(Page& page, const RunDescription& run, const RunTotals& totals);

}  // namespace hmmjit
