// The outputs of hmmsearch, byte for byte, and hmmjit's own, as text or files.
//
//   std::cout << hmmjit::report_text(hmmjit::ReportKind::kDomainTable, results);
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "hmmjit/error.hpp"
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

/// How an output looks. Kinds that a setting does not concern ignore it.
struct ReportOptions {
  bool prefer_accession = false;  ///< --acc
  /// --noali turns them off. Results without alignments are reported as with --noali in any case.
  bool alignments = true;
  int text_width = 120;  ///< columns of the main report, at least 120; 0: unlimited (--notextw)
  /// Filter settings of the search, which the main report repeats: P-values, 1 for a filter that is
  /// off. ReportOptions(results.options) has those of a search.
  double F1 = 0.02, F2 = 1e-3, F3 = 1e-5;
  bool bias_filter = true;
  /// Thresholds of the search, for the tables by target.
  Threshold report{10.0, {}}, report_domain{10.0, {}};
  Threshold include{0.01, {}}, include_domain{0.01, {}};
  ModelCutoffs cutoffs = ModelCutoffs::kNone;
  std::string page_title = {};   ///< of the HTML page; empty: the program
  std::size_t page_targets = 0;  ///< shown on it, those of the best E-values; 0: all

  ReportOptions() = default;
  /// With filters, thresholds and alignments of a search. Throws Error kUsage for options that a
  /// search refuses.
  HMMJIT_EXPORT explicit ReportOptions(const SearchOptions& options);
};

/// The run, for the comment lines of an output; empty fields are printed empty.
struct RunInfo {
  std::string program = "libhmmjit", version = {};  ///< version empty: the library's
  std::string query_file = {}, target_file = {}, settings = {}, folder = {}, date = {};
};

/// One output. Results are added in model order, those of a search or of several. Movable; a report
/// that has been moved from can only be destroyed or assigned to. One thread at a time.
///
/// Members throw Error: kUsage for calls out of order, for options that make no sense, and for
/// results that a kind cannot be made of; kOutput for files; kResources.
class HMMJIT_EXPORT Report {
 public:
  /// Kept in memory: see take_text().
  explicit Report(ReportKind kind, const ReportOptions& options = ReportOptions());
  /// Written to a file that appears under its name only when it is complete; a report destroyed
  /// before leaves none.
  static Report to_file(ReportKind kind, const std::string& path,
                        const ReportOptions& options = ReportOptions());
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
  void complete(const RunInfo& run = {});
  /// Takes the text written since the last call from a report in memory. kUsage for
  /// a file.
  std::string take_text();

  struct Impl;

 private:
  explicit Report(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The head of hmmsearch's main report: the files searched and the settings that are not
/// hmmsearch's defaults, each followed by a line feed. Thread-safe.
HMMJIT_EXPORT std::string main_report_header(const RunInfo& run, const SearchOptions& search,
                                             const ReportOptions& options = ReportOptions());

/// The whole of one output as text, with the settings of the search:
/// ReportOptions(results.options). Throws as Report does. Thread-safe.
HMMJIT_EXPORT std::string report_text(ReportKind kind, const SearchResults& results);
/// The same with other settings. Those of the search are not taken from the results: begin with
/// ReportOptions(results.options).
HMMJIT_EXPORT std::string report_text(ReportKind kind, const SearchResults& results,
                                      const ReportOptions& options, const RunInfo& run = {});

HMMJIT_END_NAMESPACE
