// The outputs of hmmsearch, byte for byte, and hmmjit's own, as text or files.
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
  kMain,         ///< the text hmmsearch prints, without its header: see main_report_header
  kTargetTable,  ///< --tblout
  kDomainTable,  ///< --domtblout
  kPfamTable,    ///< --pfamtblout
  kAlignment,    ///< -A: Stockholm; needs results with alignments
  kTsv,          ///< --tsv: a line per reported domain
  kJson,         ///< --json: JSON lines, what `hmmjit report` reads
  kA3m,          ///< --a3m: alignments to the model; needs results with alignments
  /// --as hmmscan: tables by target. The search needs Z set to the number of models, because it
  /// drops hits that its own Z excludes.
  kScanTargetTable,
  kScanDomainTable,
  kHtmlPage,   ///< the self-contained page of `hmmjit report`
  kDfamTable,  ///< --dfamtblout of nhmmer
};

/// How an output looks; described in hmmjit.h. Kinds that a setting does not concern ignore it.
struct ReportOptions : hmmjit_report_options {
  HMMJIT_EXPORT ReportOptions() noexcept;
  /// With a search, which must live until the report is made.
  explicit ReportOptions(const hmmjit_search_options& of) noexcept : ReportOptions() {
    search = &of;
  }
};

/// The run, for the comment lines of an output. Null: the library's program and version, and empty.
struct RunInfo : hmmjit_run_info {
  RunInfo() noexcept : hmmjit_run_info{} { size = sizeof(hmmjit_run_info); }
};

/// One output. Results are added in model order, those of a search or of several. Movable; a report
/// that has been moved from can only be destroyed or assigned to. One thread at a time.
///
/// Members throw Error: kUsage for calls out of order, for options that make no sense, and for
/// results that a kind cannot be made of; kOutput for files; kResources.
class HMMJIT_EXPORT Report {
 public:
  /// Kept in memory: see take_text().
  explicit Report(ReportKind kind, const hmmjit_report_options& options = ReportOptions());
  /// Written to a file that appears under its name only when it is complete; a report destroyed
  /// before leaves none.
  static Report to_file(ReportKind kind, const std::string& path,
                        const hmmjit_report_options& options = ReportOptions());
  ~Report();
  Report(Report&&) noexcept;
  Report& operator=(Report&&) noexcept;

  /// Text at this place of the output, such as main_report_header() before the first result. Tables
  /// by target and pages are written in complete(): text stands in front of them. kUsage after
  /// complete().
  void add_text(const std::string& text);
  /// The next model. kUsage for alignment reports of results without alignments, for tables by
  /// target of results whose Z was counted, and after complete(); the report is then as before.
  void add(const ModelResult& result);
  /// A query whose rounds are done, as jackhmmer reports it: the main report has all rounds, other
  /// kinds the last one. kUsage for kPfamTable and tables by target, for kAlignment and kA3m where
  /// IterationOptions did not ask for them, and for a query that has a further round.
  void add(const IterativeSearch& search, std::size_t query);
  /// Writes the closing lines and, for a file, gives it its name. Once.
  void complete(const hmmjit_run_info& run = RunInfo());
  /// Takes the text written since the last call from a report in memory. kUsage for
  /// a file.
  std::string take_text();

  struct Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

/// The head of hmmsearch's main report: the files searched and the settings that are not
/// hmmsearch's defaults, each followed by a line feed. Thread-safe.
HMMJIT_EXPORT std::string main_report_header(
    const hmmjit_run_info& run, const hmmjit_report_options& options = ReportOptions());

/// The whole of one output as text, with the settings of the search:
/// ReportOptions(results.options). Throws as Report does. Thread-safe.
HMMJIT_EXPORT std::string report_text(ReportKind kind, const SearchResults& results);
/// The same with other settings. Those of the search are not taken from the results: begin with
/// ReportOptions(results.options).
HMMJIT_EXPORT std::string report_text(ReportKind kind, const SearchResults& results,
                                      const hmmjit_report_options& options,
                                      const hmmjit_run_info& run = RunInfo());

HMMJIT_END_NAMESPACE
