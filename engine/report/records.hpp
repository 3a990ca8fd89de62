// Machine-readable results: a tab separated table of domains, and JSON lines (docs/outputs.md).
#pragma once

#include <string>

#include "report/tables.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// The line of column names.
void append_tsv_header(std::string& out);
/// One line per reported domain; a reported target without reported domains has one line whose
/// domain columns are empty.
void append_tsv(std::string& out, const ModelResult& result);

/// A "model" line and a "target" line per reported target, its reported domains inside, with their
/// alignments if `alignments`.
void append_json(std::string& out, const ModelResult& result, bool alignments);

/// Sums over all models of a run.
struct RunTotals {
  std::uint64_t models = 0, targets = 0, residues = 0;
  std::uint64_t targets_reported = 0, targets_included = 0;
  std::uint64_t domains_reported = 0, domains_included = 0;
  void add(const ModelResult& result);
  RunTotals& operator+=(const RunTotals& other);
};
/// The "run" line that ends a complete file.
void append_json_run(std::string& out, const RunDescription& run, const RunTotals& totals);

}  // namespace hmmjit
