// All output files of one search, written as results arrive.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "io/text_output.hpp"
#include "report/main_report.hpp"
#include "report/records.hpp"
#include "report/scan_tables.hpp"
#include "report/tables.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// Where an error of standard output is said to be.
inline constexpr const char* kStandardOutput = "standard output";

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
  bool takes_stored_hits() const override { return true; }

  /// Calls `use` with the hits of one model in their order, in lots: results that have the model's
  /// sums and some of its hits.
  using HitLots = std::function<Status(const std::function<Status(const ModelResult&)>& use)>;
  /// The same as receive, for a model with at least one reported hit and too many to hold:
  /// `totals` has the sums, `lots` is called twice or more often. `memory`: of what the writer
  /// itself may hold; the rest waits in temporary files.
  Status receive_in_lots(const ModelResult& totals, const HitLots& lots, std::uint64_t memory);
  /// Of a writer with ReportOptions::scan_by_range: whether the column names stand in an earlier
  /// piece, and the tables of further targets.
  void begin_scan(bool begun) { scan_begun_ = begun; }
  Status receive_scan(ScanTables& tables, bool only_with_hits);
  /// Counts of models that another piece of the result has.
  void count(const RunTotals& totals) { totals_.add(totals); }
  /// For programs that make the text of a query themselves, in order; they call it instead of
  /// receive.
  Status append(const QueryOutput& output);
  /// Closing lines; then, when every byte is written, all files and `others`, complete but for
  /// their names, are published together. With kProcessEnds the process is expected to end with
  /// success after that: signals are put off for good.
  Status complete(const RunDescription& run, std::span<OutputFile* const> others = {},
                  OutputFile::Afterwards afterwards = OutputFile::Afterwards::kProcessEnds);

 private:
  class Texts;
  ReportWriter() = default;
  Status write_main(const std::string& text);
  // What stands before the first model of all, whose widths it has.
  void write_headers(const ModelResult& first);
  Status write_saved_alignment(std::size_t rows);

  ReportPaths paths_;
  ReportOptions options_;
  FilterOptions filters_;
  std::string author_;
  std::optional<TextOutput> main_, alignment_, targets_, domains_, pfam_, tsv_, json_, a3m_;
  std::optional<ScanTables> scan_;
  RunTotals totals_;
  bool scan_begun_ = false;
  bool append_begun_ = false;
};

}  // namespace hmmjit
