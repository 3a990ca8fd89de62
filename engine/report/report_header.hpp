// The lines above the results of a report: the program, the files, and the settings that differ
// from their defaults, in the order and words of HMMER's programs.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hmmjit {

/// The HMMER release that reports name when they take the place of HMMER's own.
inline constexpr std::string_view kHmmerVersion = "3.4 (Aug 2023)";

/// hmmsearch takes no narrower text (--textw).
inline constexpr int kNarrowestText = 120;

/// An option that differs from its default, by its name on the command line: {"-E", "1e-5"}. Flags
/// have no value.
struct HeaderSetting {
  std::string_view option;
  std::string value = {};
};

struct ReportHeader {
  /// The two lines that open a report. `reference`: HMMER's program whose result lines these are.
  static std::string banner(std::string_view program, std::string_view summary,
                            std::string_view version, std::string_view reference = "hmmsearch");
  /// HMMER's own opening lines of `program`, and one that names the hmmjit `version` behind them.
  static std::string hmmer_banner(std::string_view program, std::string_view summary,
                                  std::string_view version);
  /// Stands above and below the settings.
  static constexpr std::string_view kRule =
      "# - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -\n";
  /// "# label                 setting"; hmmbuild's labels take 34 columns.
  static std::string line(std::string_view label, std::string_view setting, int columns = 33);
  /// The lines of `settings` in the report of HMMER's program `reference`, such as "hmmsearch".
  /// Options without a line there are left out.
  static std::string settings(std::string_view reference, std::span<const HeaderSetting> settings);
};

}  // namespace hmmjit
