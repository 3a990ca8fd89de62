// hmmsearch's main report of one model, byte for byte (HMMER User's Guide).
#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "report/records.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// No limit on targets.
inline constexpr std::size_t kAllTargets = std::numeric_limits<std::size_t>::max();

struct ReportOptions {
  bool prefer_accession = false;  ///< --acc
  bool alignments = true;         ///< --noali turns them off
  int text_width = 120;           ///< 0: unlimited (--notextw)
  /// Tables of targets and domains as hmmscan writes them, with these rules (--as hmmscan).
  std::optional<Thresholds> scan = std::nullopt;
  /// Those tables come range by range of the targets, from who drives the writer.
  bool scan_by_range = false;
  /// Bytes that the hits of those tables may take in memory.
  std::uint64_t scan_memory = std::numeric_limits<std::uint64_t>::max();
  /// Of a result that is written in several pieces, one after the other: this one has the header of
  /// the report, and what follows the last model.
  bool begins = true, ends = true;
  bool by_sequence = false;  ///< queries are sequences, hits are models (hmmscan)
  /// As many targets at most, the best, are aligned in -A and --a3m (--seq-limit).
  std::size_t aligned_targets = kAllTargets;
  RecordOptions records = {};
};

/// CPU and wall time lines of the statistics; the only volatile lines of the report.
struct ReportTimes {
  double user = 0, system = 0, elapsed = 0;
};

/// Query, Accession and Description lines.
void append_query(std::string& out, const ModelInfo& model);
/// `marks`: the first character of each hit's row; none: blanks.
void append_target_scores(std::string& out, const HitList& hits, const ReportOptions& options,
                          std::string_view marks = {});
/// Its lines of hits; `above`: no hit before these was below the inclusion threshold.
void append_score_rows(std::string& out, const HitList& hits, const ReportOptions& options,
                       bool& above, std::string_view marks = {});
/// Its column names.
void append_score_titles(std::string& out, const HitList& hits, const ReportOptions& options);
/// Of the hits [first, last), with what stands before the first of all and after the last.
void append_domain_annotation(std::string& out, const ModelInfo& model, const HitList& hits,
                              const ReportOptions& options, std::size_t first, std::size_t last);
/// Without what stands before the first of all.
void append_annotation_rows(std::string& out, const ModelInfo& model, const HitList& hits,
                            const ReportOptions& options, std::size_t first, std::size_t last);
void append_annotation_title(std::string& out, const ReportOptions& options);
void append_statistics(std::string& out, const ModelInfo& model, const HitList& hits,
                       const FilterOptions& filters, const ReportTimes& times,
                       bool by_sequence = false);

/// What stands before and after the domains of a model: from "Query:" on, and up to "//".
void append_report_head(std::string& out, const ModelResult& result, const ReportOptions& options);
void append_report_tail(std::string& out, const ModelResult& result, const ReportOptions& options,
                        const FilterOptions& filters, const ReportTimes& times);

/// The whole of one model, from "Query:" to "//".
void append_model_report(std::string& out, const ModelResult& result, const ReportOptions& options,
                         const FilterOptions& filters, const ReportTimes& times);

}  // namespace hmmjit
