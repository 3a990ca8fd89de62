// The lines before the first result, as hmmsearch prints them: what was searched with which
// settings other than the defaults.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hmmjit {

/// One line each, in the order of the header.
enum class HeaderLine {
  kQueryFile,
  kTargetFile,
  kMainFile,
  kAlignmentFile,
  kTargetTable,
  kDomainTable,
  kPfamTable,
  kTsv,
  kJson,
  kA3m,
  kTablesAs,
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
  kBiasFilter,
  kFirstTarget,
  kTargetCount,
  kIndexFile,
  kNull2,
  kZ,
  kDomZ,
  kArbitrarySeed,
  kSeed,
  kTargetFormat,
  kThreads,
};

/// "# program :: what it does" and the version, as at the top of the header and of a help text.
std::string search_banner(std::string_view program, std::string_view version);

/// Collects settings in any order.
class SearchHeader {
 public:
  SearchHeader(std::string_view program, std::string_view version);
  void set(HeaderLine line, std::string_view value);
  void set_e_value(HeaderLine line, double most);  ///< "E-value <= 0.01"
  void set_score(HeaderLine line, double least);   ///< "score >= 27"
  void set_p_value(HeaderLine line, double most);  ///< "<= 0.02"
  void set_space(HeaderLine line, double targets);
  /// 0: a seed of the moment.
  void set_seed(std::uint64_t seed);

  /// Between rules, with an empty line after them.
  std::string text() const;

 private:
  std::string banner_;
  std::vector<std::pair<HeaderLine, std::string>> lines_;
};

}  // namespace hmmjit
