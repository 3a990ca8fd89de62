// Outputs, as text or files: hmmsearch's, byte for byte, and hmmjit's own.
//
//   std::cout << hmmjit::report_text(hmmjit::ReportKind::kDomainTable, results);
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "hmmjit/error.hpp"
#include "hmmjit/hmmjit.h"
#include "hmmjit/iteration.hpp"
#include "hmmjit/results.hpp"
#include "hmmjit/search.hpp"

HMMJIT_BEGIN_NAMESPACE

/// Source of the formats: HMMER user's guide, "Tabular output"; docs/outputs.md for hmmjit's own.
enum class ReportKind {
  kMain,         ///< hmmsearch's report without its header: see main_report_header
  kTargetTable,  ///< --tblout
  kDomainTable,  ///< --domtblout
  kPfamTable,    ///< --pfamtblout
  kAlignment,    ///< -A: Stockholm; needs results with alignments
  kTsv,          ///< --tsv: one line per reported domain
  kJson,         ///< --json: JSON lines, the input of `hmmjit report`
  kA3m,          ///< --a3m: alignments to the model; needs results with alignments
  /// --as hmmscan: tables by target. Set the search's Z to the number of models: a search drops
  /// hits that its Z excludes.
  kScanTargetTable,
  kScanDomainTable,
  kHtmlPage,   ///< the self-contained page of `hmmjit report`
  kDfamTable,  ///< --dfamtblout of nhmmer
};

/// Settings of an output; for members see hmmjit.h. Each kind ignores settings of other kinds.
struct ReportOptions : hmmjit_report_options {
  HMMJIT_EXPORT ReportOptions() noexcept;
  /// With the options of a search, which must outlive the report.
  explicit ReportOptions(const hmmjit_search_options& of) noexcept : ReportOptions() {
    search = &of;
  }
};

/// The run, for the comment lines of an output. Null: the library's name and version; other texts
/// are empty.
struct RunInfo : hmmjit_run_info {
  RunInfo() noexcept : hmmjit_run_info{} { size = sizeof(hmmjit_run_info); }
};

/// One output. Add results in model order, of one or several searches. Movable; a moved-from report
/// can only be destroyed or assigned to. One thread at a time.
///
/// Members throw Error: kUsage for calls out of order, for invalid options, and for results that
/// the kind cannot show; kOutput for files; kResources.
class HMMJIT_EXPORT Report {
 public:
  /// A report in memory: see take_text().
  explicit Report(ReportKind kind, const hmmjit_report_options& options = ReportOptions());
  /// A report in a file that appears once complete; a report destroyed earlier leaves no file.
  static Report to_file(ReportKind kind, const std::string& path,
                        const hmmjit_report_options& options = ReportOptions());
  ~Report();
  Report(Report&&) noexcept;
  Report& operator=(Report&&) noexcept;

  /// Adds text here to the output, such as main_report_header() before the first result. complete()
  /// writes tables by target and pages: text precedes them. kUsage after complete().
  void add_text(const std::string& text);
  /// Adds the next model. kUsage for alignment reports of results without alignments, for tables by
  /// target of results whose Z was counted, and after complete(); the report is then unchanged.
  void add(const ModelResult& result);
  /// Adds a query whose rounds are done, as jackhmmer reports it: all rounds in the main report,
  /// the last one in other kinds. kUsage for kPfamTable and tables by target, for kAlignment and
  /// kA3m unless IterationOptions request them, and for an unfinished query.
  void add(const IterativeSearch& search, std::size_t query);
  /// Writes the closing lines; a file then gets its name. Call it once.
  void complete(const hmmjit_run_info& run = RunInfo());
  /// Takes the text added since the last call from a report in memory. kUsage for a file.
  std::string take_text();

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

/// The head of hmmsearch's main report: the searched files and the settings that differ from
/// hmmsearch's defaults, one per line. Thread-safe.
HMMJIT_EXPORT std::string main_report_header(
    const hmmjit_run_info& run, const hmmjit_report_options& options = ReportOptions());

/// One complete output as text, with the settings of the search: ReportOptions(results.options).
/// Throws as Report does. Thread-safe.
HMMJIT_EXPORT std::string report_text(ReportKind kind, const SearchResults& results);
/// The same with other settings. Does not take the search's from the results: start from
/// ReportOptions(results.options).
HMMJIT_EXPORT std::string report_text(ReportKind kind, const SearchResults& results,
                                      const hmmjit_report_options& options,
                                      const hmmjit_run_info& run = RunInfo());

HMMJIT_END_NAMESPACE
