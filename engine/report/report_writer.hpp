// All output files of one search, written as results arrive.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/output_file.hpp"
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
  /// Closing lines; then, when every byte is written, all files and `others`, complete but for
  /// their names, are published together. The process is expected to end with success after that:
  /// signals are put off for good.
  Status complete(const RunDescription& run, std::span<OutputFile* const> others = {});

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
