// The report and tables of nhmmer and nhmmscan, byte for byte (HMMER User's Guide).
#pragma once

#include <cstdint>
#include <string>

#include "nucleotide/search.hpp"
#include "report/main_report.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// A query with its hits: a model with targets (nhmmer), or a sequence with models (nhmmscan).
struct NucleotideResult {
  ModelInfo query;  ///< if it is a sequence, `built` is set and M is its length
  nucleotide::HitList hits;
  std::uint64_t models = 1, nodes = 0;  ///< numbers of models and nodes searched with a sequence

  bool is_scan() const { return query.built.has_value(); }
};

/// The report of one query, from "Query:" to "//".
void append_nucleotide_report(std::string& out, const NucleotideResult& result,
                              const ReportOptions& report, const nucleotide::Options& options);
/// --tblout. `marked`, here and below: rows begin with marks for KeptRows.
void append_nucleotide_table_header(std::string& out, const NucleotideResult& result);
void append_nucleotide_table(std::string& out, const NucleotideResult& result, bool marked = false);
/// --dfamtblout, with the header that each query has.
void append_dfam_table(std::string& out, const NucleotideResult& result, bool marked = false);
/// --aliscoresout
void append_column_scores(std::string& out, const NucleotideResult& result);

/// The same hits as targets with one domain each, for all other outputs.
HitList single_domain_hits(const nucleotide::HitList& hits);
/// The inverse, without column scores. `longest_position`: see Extents::position.
NucleotideResult nucleotide_result(const ModelResult& single, std::int64_t longest_position);

}  // namespace hmmjit
