// What stands above hmmsearch's results: the program, the files, and the settings that differ from
// their defaults, in hmmsearch's order and words.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hmmjit {

/// The HMMER release that reports name when they take the place of HMMER's own.
inline constexpr std::string_view kHmmerVersion = "3.4 (Aug 2023)";

/// hmmsearch takes no narrower text (--textw).
inline constexpr int kNarrowestText = 120;

/// Settings in the order of their lines.
enum class HeaderLine : std::uint8_t {
  kMainReport,
  kAlignmentFile,
  kTargetTable,
  kDomainTable,
  kPfamTable,
  kTsv,
  kTargetTsv,
  kJson,
  kA3m,
  kFasta,
  kDomainFasta,
  kGff,
  kBed,
  kOverlaps,
  kClans,
  kByTarget,
  kMissingCutoffs,
  kCoverage,
  kAccessions,
  kAlignments,
  kTextWidth,
  kReport,
  kReportDomain,
  kInclude,
  kIncludeDomain,
  kCutoffs,
  kMaxSensitivity,
  kF1,
  kF2,
  kF3,
  kBias,
  kFirstTarget,
  kTargetCount,
  kIndexFile,
  kNull2,
  kZ,
  kDomZ,
  kSeed,
  kTargetFormat,
  kThreads,
};

class ReportHeader {
 public:
  /// The two lines that open a report. `reference`: HMMER's program whose result lines these are.
  static std::string banner(std::string_view program, std::string_view summary,
                            std::string_view version, std::string_view reference = "hmmsearch");
  /// HMMER's own opening lines of `program`, and one that names the hmmjit `version` behind them.
  static std::string hmmer_banner(std::string_view program, std::string_view summary,
                                  std::string_view version);
  /// Stands above and below the settings.
  static const char* const kRule;
  /// "# label                 setting"
  static std::string line(std::string_view label, std::string_view setting);

  void set(HeaderLine line, std::string_view setting);
  void set_e_value(HeaderLine line, double most);  ///< of a threshold
  void set_score(HeaderLine line, double least);   ///< of a threshold
  void set_p_value(HeaderLine line, double most);  ///< of a filter
  void set_size(HeaderLine line, double size);     ///< of a search space
  void set_seed(std::uint64_t seed);               ///< 0: one-time arbitrary
  void set_text_width(int columns);                ///< 0: unlimited
  /// "GA", "NC" or "TC"
  void set_cutoffs(std::string_view tag);
  // Settings with one other value than the default.
  void prefer_accessions() { set(HeaderLine::kAccessions, "yes"); }
  void without_alignments() { set(HeaderLine::kAlignments, "no"); }
  void with_max_sensitivity() {
    set(HeaderLine::kMaxSensitivity, "on [all heuristic filters off]");
  }
  void without_bias_filter() { set(HeaderLine::kBias, "off"); }
  void without_null2() { set(HeaderLine::kNull2, "off"); }

  /// The lines that have been set.
  std::string text() const;

 private:
  static constexpr std::size_t kLines = static_cast<std::size_t>(HeaderLine::kThreads) + 1;
  std::array<std::optional<std::string>, kLines> settings_;
  bool seed_is_fixed_ = false;
};

}  // namespace hmmjit
