// The outputs of hmmsearch, byte for byte, as text or files.
#pragma once

#include <memory>
#include <string>

#include "hmmjit/error.hpp"
#include "hmmjit/results.hpp"
#include "hmmjit/search.hpp"

HMMJIT_BEGIN_NAMESPACE

enum class ReportKind {
  kMain,         ///< the text hmmsearch prints
  kTargetTable,  ///< --tblout
  kDomainTable,  ///< --domtblout
  kPfamTable,    ///< --pfamtblout
  kAlignment,    ///< -A: Stockholm; needs alignments
  kTsv,          ///< --tsv: a line per reported domain
  kJson,         ///< --json: JSON lines
  kA3m,          ///< --a3m: alignments to the model; needs alignments
  /// --as hmmscan: tables by target, for a search whose Z is the number of models.
  kScanTargetTable,
  kScanDomainTable,
};

struct ReportOptions {
  bool prefer_accession = false;  ///< --acc
  bool alignments = true;         ///< --noali turns them off
  int text_width = 120;           ///< 0: unlimited (--notextw)
  /// Filter settings of the search, which the main report repeats.
  double F1 = 0.02, F2 = 1e-3, F3 = 1e-5;
  bool bias_filter = true;
  /// Thresholds of the search, for the tables by target.
  Threshold report{10.0, {}}, report_domain{10.0, {}};
  Threshold include{0.01, {}}, include_domain{0.01, {}};
  ModelCutoffs cutoffs = ModelCutoffs::kNone;

  ReportOptions() = default;
  /// With filters and thresholds of a search.
  HMMJIT_EXPORT explicit ReportOptions(const SearchOptions& options);
};

/// What the comment lines of an output say about the run; empty fields are printed empty.
struct RunInfo {
  std::string program = "libhmmjit", version;  ///< version empty: the library's
  std::string query_file, target_file, settings, folder, date;
};

/// One output. Results are added in model order. Movable; one thread at a time.
class HMMJIT_EXPORT Report {
 public:
  /// Kept in memory: see take_text().
  explicit Report(ReportKind kind, const ReportOptions& options = ReportOptions());
  /// Written to a file that appears under its name only when it is complete; a report destroyed
  /// before leaves none. Throws Error kOutput.
  static Report to_file(ReportKind kind, const std::string& path,
                        const ReportOptions& options = ReportOptions());
  ~Report();
  Report(Report&&) noexcept;
  Report& operator=(Report&&) noexcept;

  /// Text to stand in front of everything, such as a header of the main report.
  void add_text(const std::string& text);
  void add(const ModelResult& result);
  /// Writes the closing lines and, for a file, gives it its name. Throws Error kOutput.
  void complete(const RunInfo& run = {});
  /// What was written since the last call, of a report in memory; it is forgotten here.
  std::string take_text();

  struct Impl;

 private:
  explicit Report(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// The whole of one output as text.
HMMJIT_EXPORT std::string report_text(ReportKind kind, const SearchResults& results,
                                      const ReportOptions& options = ReportOptions(),
                                      const RunInfo& run = {});

HMMJIT_END_NAMESPACE
