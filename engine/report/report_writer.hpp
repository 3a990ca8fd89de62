// All output files of one search, written as results arrive.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/spool_file.hpp"
#include "io/text_output.hpp"
#include "report/main_report.hpp"
#include "report/records.hpp"
#include "report/scan.hpp"
#include "report/tables.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// Where an error of standard output is said to be.
inline constexpr const char* kStandardOutput = "standard output";

/// Where each kind of output goes; an empty path: not wanted (main report: standard output). A path
/// with "{query}" is a file for each query, complete as soon as the query is.
struct ReportPaths {
  std::string main, alignment, targets, domains, pfam;
  std::string tsv = {}, json = {}, a3m = {}, target_tsv = {};
};
/// `path` with the name of a query for "{query}"; a '/' of the name becomes '_'.
std::string path_of_query(std::string path, std::string_view query);

/// What the files get of one query, made elsewhere.
struct QueryOutput {
  std::string main, alignment, targets, domains, pfam, tsv, json, a3m, target_tsv;
  std::string targets_header, domains_header;  ///< written for the first query
  RunTotals totals;                            ///< of this query
};

/// Tables that several searches write one after the other: a writer leaves them here unpublished
/// for the writer of the next search, unless `ends`.
struct JoinedOutputs {
  bool tsv = false, target_tsv = false, json = false;  ///< the tables that are joined
  bool begun = false, ends = false;
  std::vector<TextOutput> files = {};
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
                                                      const std::string& header,
                                                      JoinedOutputs* joined = nullptr);
  /// What files of single queries say about the run; before the first of them.
  void describe(const RunDescription& run) { run_ = run; }

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
  /// Around all calls of `append` for a query.
  Status begin_query(const std::string& name);
  Status end_query();
  /// With RecordOptions::kept, before `complete`: for each reported domain whether it remains.
  void resolve(std::vector<bool> kept) { kept_ = std::move(kept); }
  /// Closing lines; then, when every byte is written, all files and `others`, complete but for
  /// their names, are published together. With kProcessEnds the process is expected to end with
  /// success after that: signals are put off for good.
  Status complete(const RunDescription& run, std::span<OutputFile* const> others = {},
                  OutputFile::Afterwards afterwards = OutputFile::Afterwards::kProcessEnds);

 private:
  // In the order in which a result is written. What every search can have comes first.
  enum Kind : std::size_t {
    kTargets, kDomains, kPfam, kTsv, kTargetTsv, kJson, kA3m, kAlignment, kMain, kKinds
  };
  struct Output {
    std::string path;
    bool by_query = false;  // the path has "{query}"
    bool joined = false;    // with the outputs of other searches
    bool begun = false;     // column names are written
    std::optional<TextOutput> file;  // none: not wanted, or between two queries
    std::optional<SpoolFile> held;   // what is written when the kept domains are known
  };
  class Texts;
  ReportWriter() = default;
  bool wanted(Kind kind) const { return outputs_[kind].file || outputs_[kind].by_query; }
  Status put(Kind kind, std::string_view text);
  // Writes what was held, with the kept domains known.
  Status release(Kind kind);
  // What stands before the first model of a file, whose widths it has.
  Status write_headers(const std::string& targets, const std::string& domains);
  Status write_headers(const ModelResult& first);
  Status write_trailer(Kind kind, const RunDescription& run, const RunTotals& totals);
  Status write_saved_alignment(std::size_t rows);

  std::array<Output, kKinds> outputs_;
  JoinedOutputs* joined_ = nullptr;
  ReportOptions options_;
  FilterOptions filters_;
  std::string author_, header_;
  RunDescription run_;
  std::optional<ScanTables> scan_;
  RunTotals totals_, query_totals_;
  std::set<std::string> queries_;  // with files of their own
  std::vector<bool> kept_;
  bool scan_begun_ = false;
};

}  // namespace hmmjit
