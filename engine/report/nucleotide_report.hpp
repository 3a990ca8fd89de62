// The report and tables of nhmmer and nhmmscan, byte for byte (HMMER User's Guide).
#pragma once

#include <string>

#include "nucleotide/search.hpp"
#include "report/main_report.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// The hits of a query that the caller describes, as targets with one domain each: a model with
/// targets (nhmmer), or a sequence with models (nhmmscan). If it is a sequence, model.built is to
/// be set and model.M its length.
ModelResult nucleotide_result(nucleotide::HitList hits, const nucleotide::Options& options);

// Below, results have ModelResult::nucleotides, and a lot is all hits.

/// The report of one query, from "Query:" to "//".
void append_nucleotide_report(std::string& out, const ModelResult& result,
                              const ReportOptions& report);
/// --tblout. `marked`, here and below: rows begin with marks for KeptRows.
void append_nucleotide_table_header(std::string& out, const ModelResult& result);
void append_nucleotide_table(std::string& out, const HitLot& all, bool marked = false);
/// --dfamtblout, with the header that each query has.
void append_dfam_table(std::string& out, const HitLot& all, bool marked = false);
/// --aliscoresout
void append_column_scores(std::string& out, const HitLot& all);

}  // namespace hmmjit
