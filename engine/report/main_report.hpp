// hmmsearch's main report for one model, byte for byte (HMMER User's Guide).
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
  bool alignments = true;         ///< false with --noali
  int text_width = 120;           ///< 0: unlimited (--notextw)
  /// Writes tables of targets and domains as hmmscan does, with these rules (--as hmmscan).
  std::optional<Thresholds> scan = std::nullopt;
  /// The caller writes these tables, one range of targets at a time.
  bool scan_by_range = false;
  /// Memory for the hits of those tables, in bytes.
  std::uint64_t scan_memory = std::numeric_limits<std::uint64_t>::max();
  /// False for a slice of the models that is not the first (no header), or not the last (no
  /// trailer).
  bool begins = true, ends = true;
  /// Maximum number of targets aligned in -A and --a3m, best first (--seq-limit).
  std::size_t aligned_targets = kAllTargets;
  RecordOptions records = {};
};

// The parts of a model's report, in order.

/// Query, Accession and Description lines.
void append_query(std::string& out, const ModelInfo& model);
/// Column names of the scores.
void append_score_titles(std::string& out, const HitList& hits, const ReportOptions& options);
/// One row per reported hit. `above`: no earlier hit was below the inclusion threshold. `marks`:
/// the first character of each row; empty: blanks.
void append_score_rows(std::string& out, const HitLot& lot, const ReportOptions& options,
                       bool& above, std::string_view marks = {});
/// Ends the scores and begins the domain annotation.
void append_annotation_title(std::string& out, const HitList& hits, const ReportOptions& options);
void append_annotation_rows(std::string& out, const HitLot& lot, const ReportOptions& options);
/// Ends the annotation and appends the pipeline statistics. `by_sequence`: a sequence was searched
/// against models.
void append_statistics(std::string& out, const ModelResult& result, const FilterOptions& filters,
                       bool by_sequence = false);

/// The line with processor and elapsed times.
void append_cpu_time(std::string& out, double cpu_seconds, double seconds);
/// The line of append_cpu_time, then cells (nodes times residues) per second.
void append_times(std::string& out, double cpu_seconds, double seconds, double cells);

/// The blocks of an alignment. Residue numbers descend on the bottom strand.
void append_alignment(std::string& out, const std::string& model_name,
                      const std::string& target_name, const domain::Domain& domain,
                      int text_width);
/// As much of a description as fits on a line after `used` bytes; at least 32 bytes.
std::string_view cut_description(std::string_view description, int text_width, std::size_t used);

}  // namespace hmmjit
