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
  /// Bytes of memory that the hits for those tables may take.
  std::uint64_t scan_memory = std::numeric_limits<std::uint64_t>::max();
  /// A result may be written in several consecutive pieces: the first has the report's header, the
  /// last its trailer.
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
/// The same line, followed by cells (nodes times residues) per second.
void append_times(std::string& out, double cpu_seconds, double seconds, double cells);

/// The blocks of an alignment. Residue numbers descend if it lies on the bottom strand.
void append_alignment(std::string& out, const std::string& model_name,
                      const std::string& target_name, const domain::Domain& domain,
                      int text_width);
/// The part of a description that fits on a line after `used` bytes; at least 32 bytes.
std::string_view cut_description(std::string_view description, int text_width, std::size_t used);

}  // namespace hmmjit
