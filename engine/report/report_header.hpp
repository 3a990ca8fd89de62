// The lines above a report's results: the program, the files, and the settings that differ from
// their defaults, in the order and wording of HMMER's programs.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace hmmjit {

/// The HMMER release named in reports that replace HMMER's.
inline constexpr std::string_view kHmmerVersion = "3.4 (Aug 2023)";

/// Narrowest text that hmmsearch accepts (--textw).
inline constexpr int kNarrowestText = 120;

/// An option that differs from its default, by its command-line name: {"-E", "1e-5"}. Flags have no
/// value.
struct HeaderSetting {
  std::string_view option;
  std::string value = {};
};

struct ReportHeader {
  /// The two lines that open a report. `reference`: the HMMER program whose result lines follow.
  static std::string banner(std::string_view program, std::string_view summary,
                            std::string_view version, std::string_view reference = "hmmsearch");
  /// As many lines as HMMER opens a report of `program` with. They name hmmjit and its `version`.
  static std::string hmmer_banner(std::string_view program, std::string_view summary,
                                  std::string_view version);
  /// The line above and below the settings.
  static constexpr std::string_view kRule =
      "# - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -\n";
  /// "# label                 setting"; hmmbuild's labels take 34 columns.
  static std::string line(std::string_view label, std::string_view setting, int columns = 33);
  /// The lines for `settings` in a report of HMMER's program `reference`, such as "hmmsearch".
  /// Omits options without a line there.
  static std::string settings(std::string_view reference, std::span<const HeaderSetting> settings);
};

}  // namespace hmmjit
