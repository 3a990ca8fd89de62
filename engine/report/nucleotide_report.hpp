// The report and tables of nhmmer and nhmmscan, byte for byte (HMMER User's Guide).
#pragma once

#include <string>

#include "nucleotide/search.hpp"
#include "report/main_report.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// Converts the hits of a query to targets with one domain each. The caller describes the query in
/// `model`: a model (nhmmer), or a sequence (nhmmscan) with `built` set and its length as M.
ModelResult nucleotide_result(nucleotide::HitList hits, const nucleotide::Options& options);

// Below, results have ModelResult::nucleotides, and a lot is all hits.

/// The report of one query, from "Query:" to "//".
void append_nucleotide_report(std::string& out, const ModelResult& result,
                              const ReportOptions& report);
/// --tblout. `marked`, here and below: rows begin with a mark for KeptRows.
void append_nucleotide_table_header(std::string& out, const ModelResult& result);
void append_nucleotide_table(std::string& out, const HitLot& all, bool marked = false);
/// --dfamtblout, with the header of each query.
void append_dfam_table(std::string& out, const HitLot& all, bool marked = false);
/// --aliscoresout
void append_column_scores(std::string& out, const HitLot& all);

}  // namespace hmmjit
