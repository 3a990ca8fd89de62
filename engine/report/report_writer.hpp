// All output files of one search, written as results arrive.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/output_file.hpp"
#include "report/main_report.hpp"
#include "report/records.hpp"
#include "report/scan_tables.hpp"
#include "report/tables.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// Where each kind of output goes; an empty path: not wanted (main report: standard output).
struct ReportPaths {
  std::string main, alignment, targets, domains, pfam;
  std::string tsv = {}, json = {}, a3m = {};
};

/// What the files get of one query, made elsewhere.
struct QueryOutput {
  std::string main, alignment, targets, domains, pfam, tsv, json, a3m;
  std::string targets_header, domains_header;  ///< written for the first query
  RunTotals totals;                            ///< of this query
};

/// Writes hmmsearch's outputs from the results of a search, in model order. Files appear under
/// their names only in `complete`; standard output is written as models complete.
class ReportWriter final : public ResultSink {
 public:
  /// `header`: the comment block that opens the main report. Fails with kOutput.
  static Result<std::unique_ptr<ReportWriter>> create(const ReportPaths& paths,
                                                      const ReportOptions& options,
                                                      const FilterOptions& filters,
                                                      std::string author,
                                                      const std::string& header);

  std::shared_ptr<PreparedResult> prepare(const ModelResult& result) const override;
  Status receive(const ModelResult& result) override;
  /// For programs that make the text of a query themselves, in order.
  Status append(const QueryOutput& output);
  /// Closing lines, then every file under its final name.
  Status complete(const RunDescription& run);

 private:
  class Texts;
  ReportWriter() = default;
  Status write_main(const std::string& text);

  ReportPaths paths_;
  ReportOptions options_;
  FilterOptions filters_;
  std::string author_;
  std::optional<OutputFile> main_, alignment_, targets_, domains_, pfam_, tsv_, json_, a3m_;
  std::optional<ScanTables> scan_;
  RunTotals totals_;
  bool headers_written_ = false;
};

}  // namespace hmmjit
