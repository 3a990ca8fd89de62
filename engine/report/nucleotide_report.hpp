// The report and tables of nhmmer and nhmmscan, byte for byte (HMMER User's Guide).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nucleotide/search.hpp"
#include "report/main_report.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// A query with its hits, as targets with one domain each: a model with targets (nhmmer), or a
/// sequence with models (nhmmscan). If it is a sequence, model.built is set and model.M its length.
struct NucleotideResult : ModelResult {
  std::int64_t longest_position = 0;                   ///< see nucleotide::Extents
  std::uint64_t models = 1, nodes = 0;                 ///< searched with a sequence
  std::vector<std::vector<float>> column_scores = {};  ///< of each hit

  bool is_scan() const { return model.built.has_value(); }
};
/// The hits of a query that the caller describes.
NucleotideResult nucleotide_result(nucleotide::HitList hits);

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

}  // namespace hmmjit
