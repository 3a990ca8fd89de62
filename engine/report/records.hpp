// Machine-readable results: a tab-separated table of domains, and JSON lines (docs/outputs.md).
#pragma once

#include <span>
#include <string>

#include "report/tables.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// Columns and members that a run adds to the records.
struct RecordOptions {
  /// Adds whether a domain remains after overlaps are resolved. Until the end of the search
  /// decides, each value is kKeptLater, a byte that no field contains.
  bool kept = false;
  std::string target_file = {};  ///< empty: no such column
  bool by_sequence = false;      ///< queries are sequences, hits are models (a scan)
};
inline constexpr char kKeptLater = '\1';

/// The line of column names.
void append_tsv_header(std::string& out, const RecordOptions& options = {});
/// One line per reported domain.
void append_tsv(std::string& out, const HitLot& lot, const RecordOptions& options = {});
/// The line of column names, and one line per reported target.
void append_target_tsv_header(std::string& out, const RecordOptions& options = {});
void append_target_tsv(std::string& out, const HitLot& lot, const RecordOptions& options = {});

/// A "model" line, or a "sequence" line for a scan, whose queries are sequences.
void append_json_query(std::string& out, const ModelResult& result,
                       const RecordOptions& options = {});
/// A "target" line per reported target, with its reported domains and, if `alignments`, their
/// alignments.
void append_json_targets(std::string& out, const HitLot& lot, bool alignments,
                         const RecordOptions& options = {});

/// Sums over all models of a run.
struct RunTotals {
  std::uint64_t models = 0, targets = 0, residues = 0;
  std::uint64_t targets_reported = 0, targets_included = 0;
  std::uint64_t domains_reported = 0, domains_included = 0;
  /// Adds a model without its domains.
  void add(const ModelResult& result);
  void add_domains(std::span<const Hit> hits);
  /// Adds all models of another run over the same targets.
  void add(const RunTotals& other);
};
/// The "run" line that ends a complete file.
void append_json_run(std::string& out, const RunDescription& run, const RunTotals& totals);

}  // namespace hmmjit
