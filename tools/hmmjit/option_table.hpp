// Command-line options in hmmsearch's syntax, from tables that also generate help, reference,
// manual pages and completions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/output_file.hpp"
#include "report/report_header.hpp"

namespace hmmjit::tools {

enum class ValueType { kNone, kInteger, kReal, kString, kFile };

/// Headings of options in several commands.
inline constexpr std::string_view kBasic = "Basic options";
inline constexpr std::string_view kOutput = "Options directing output";
inline constexpr std::string_view kConstruction = "Options controlling model construction";
inline constexpr std::string_view kScoring = "Options controlling scoring system";
inline constexpr std::string_view kFilters = "Options controlling acceleration heuristics";
inline constexpr std::string_view kExpert = "Other expert options";
inline constexpr std::string_view kOwn = "Options that only hmmjit has";
inline constexpr std::string_view kPlain = "Options";

/// Values of --tformat and --qformat, as OptionTraits::offers.
inline constexpr std::string_view kSequenceFormatNames =
    "fasta,hmmpgmd,embl,uniprot,genbank,ddbj,stockholm,pfam,a2m,afa,psiblast,selex,clustal,"
    "clustallike,phylip,phylips,ncbi";

/// Properties that few options have. All lists are comma-separated names.
struct OptionTraits {
  std::string_view environment = {};  ///< variable read if the option is not given
  std::string_view excludes = {};     ///< itself, if listed, is ignored
  /// At least one of these must be given with this option, except with -h.
  std::string_view needs = {};
  std::string_view offers = {};  ///< values for shell completion
  bool closed = false;           ///< no values other than `offers`
  bool several = false;          ///< may be repeated
  bool listed = false;           ///< may be repeated, and takes lists: --stage ssv,msv
  bool own = false;              ///< ours: never makes an hmmsearch abbreviation ambiguous
};

// The most frequent traits.
inline constexpr OptionTraits kOurs{.own = true};
inline constexpr OptionTraits kSeveral{.several = true};
inline constexpr OptionTraits kListed{.listed = true};
constexpr OptionTraits excluding(std::string_view names) { return {.excludes = names}; }
constexpr OptionTraits needing(std::string_view names) { return {.needs = names}; }
constexpr OptionTraits offering(std::string_view values) { return {.offers = values}; }
constexpr OptionTraits one_of(std::string_view values) {
  return {.offers = values, .closed = true};
}
constexpr OptionTraits list_of(std::string_view values) {
  return {.offers = values, .listed = true};
}
constexpr OptionTraits from_environment(std::string_view variable) {
  return {.environment = variable};
}
constexpr OptionTraits ours(OptionTraits traits) {
  traits.own = true;
  return traits;
}

/// One option. All text is static.
struct OptionSpec : OptionTraits {
  /// `group`: heading in the help; empty: not listed. `names`: "-E", or "--output,-o". `value`: ""
  /// for a flag, otherwise the name of the value, its default and range: "x=10.0 x>0", "n n>=1",
  /// "s". The name gives the type: x a real number, n an integer, f an output file, others a text
  /// ("@f": a text displayed as f).
  constexpr OptionSpec(std::string_view heading, std::string_view names, std::string_view value,
                       std::string_view text, OptionTraits more = {})
      : OptionTraits(more), group(heading), help(text) {
    const std::size_t comma = std::min(names.find(','), names.size());
    name = names.substr(0, comma);
    other_name = names.substr(std::min(comma + 1, names.size()));
    const std::size_t blank = std::min(value.find(' '), value.size());
    range = value.substr(std::min(blank + 1, value.size()));
    value = value.substr(0, blank);
    const std::size_t equals = std::min(value.find('='), value.size());
    default_text = value.substr(std::min(equals + 1, value.size()));
    value_name = value.substr(0, equals);
    type = value_name.empty()  ? ValueType::kNone
           : value_name == "x" ? ValueType::kReal
           : value_name == "n" ? ValueType::kInteger
           : value_name == "f" ? ValueType::kFile
                               : ValueType::kString;
    if (value_name.starts_with('@')) value_name.remove_prefix(1);
  }
  std::string_view name, other_name, value_name, default_text, range, group, help;
  ValueType type = ValueType::kNone;
  /// Unknown to this program; exists for code shared with other programs.
  bool absent = false;
};

/// Options of several programs.
inline constexpr OptionSpec kPrintJson{kPlain, "--json", "", "print JSON"};
constexpr OptionSpec cpu_option(std::string_view group) {
  return {group, "--cpu", "n n>=0",
          "busy threads at most (0 and 1: one); default: all available cores",
          from_environment("HMMER_NCPU")};
}
constexpr OptionSpec banner_option(std::string_view group) {
  return {group, "--hmmer-banner", "",
          "name the original program in outputs, as when called by its name", kOurs};
}

using Replacements = std::initializer_list<std::pair<std::string_view, std::string>>;

/// A parsed command line. Look-ups need the full name of an option in the table.
class ParsedOptions {
 public:
  bool is_set(std::string_view name) const;
  /// True if this program has the option.
  bool knows(std::string_view name) const;
  std::string_view text(std::string_view name) const;  ///< given or default text
  /// The text as a string; empty if this program has no such option.
  std::string path(std::string_view name) const;
  double real(std::string_view name) const;
  int integer(std::string_view name) const;
  /// Busy threads: --cpu, at least one, or the number of granted cores.
  int threads() const;
  std::optional<double> given_real(std::string_view name) const;
  /// The values of a repeatable option.
  std::vector<std::string> list(std::string_view name) const;
  /// The value as a size above 0 ("400M"); 0 if not given. Fails with kUsage for other text.
  Result<std::uint64_t> bytes(std::string_view name) const;
  /// The first given option of these; null: none.
  const char* first_given(std::initializer_list<const char*> names) const;
  /// The options that hmmsearch's header shows (text differs from the default text), in table
  /// order.
  std::vector<HeaderSetting> changed() const;
  const std::vector<std::string>& arguments() const { return arguments_; }
  /// The same options with other arguments. In file names, replaces the first text of each pair by
  /// the second.
  ParsedOptions with(std::vector<std::string> arguments, Replacements words) const;
  /// The same options for other files: `files` has the new values of options. Reports and messages
  /// still use the names of given().
  ParsedOptions on_files(std::vector<std::string> arguments,
                         std::span<const NamedFile> files) const;
  /// The options before `on_files`.
  const ParsedOptions& given() const { return given_ ? *given_ : *this; }
  /// Words that parse to these options and arguments, without --server.
  std::vector<std::string> words() const;
  /// "-E 5 --max ": the set options, in table order, each with a trailing blank; without
  /// --hmmer-banner and --server, which do not affect results.
  std::string settings() const;

 private:
  friend Result<ParsedOptions> parse_options(std::span<const OptionSpec> table,
                                             std::span<const std::string> arguments,
                                             bool with_environment);
  std::size_t find(std::string_view name) const;

  std::span<const OptionSpec> table_;
  std::vector<std::optional<std::string>> values_;
  std::vector<std::string> arguments_;
  std::shared_ptr<const ParsedOptions> given_;
};

/// Parses options before, between and after the arguments ("-" is an argument, "--" ends the
/// options). `-E5`, `-E 5`, `--domE=3`, `--domE 3`; long names may be abbreviated while unique, and
/// '_' and '-' within them are the same (AlphaFold 3 writes --seq_limit). Fails with kUsage. Option
/// names in the table must be unique. `with_environment`: variables replace options that are not
/// given.
Result<ParsedOptions> parse_options(std::span<const OptionSpec> table,
                                    std::span<const std::string> arguments,
                                    bool with_environment = true);

/// The option and its value as one word: a value may begin with '-'.
std::string word_of(const OptionSpec& option, std::string_view value);

/// Index of the first positional argument; arguments.size(): none.
std::size_t first_argument(std::span<const OptionSpec> table,
                           std::span<const std::string> arguments);

/// `text` with each `what` replaced by `by`.
std::string replaced(std::string_view text, std::string_view what, std::string_view by);
/// `text` with all `words` replaced, which must begin with '{'. Does not search the replacements.
std::string replaced(std::string_view text, Replacements words);

/// Splits "a,b" into its items.
std::vector<std::string> split_list(std::string_view list, char separator = ',');

/// "did you mean NAME?", or `otherwise` if no name is near `typed`. A short word may differ by one
/// insertion, deletion, substitution or transposition, a longer one by two (Damerau 1964, CACM
/// 7:171).
std::string did_you_mean(std::string_view typed, std::span<const std::string> names,
                         std::string otherwise);

/// "set number of threads  [4]  (n>0)"
std::string help_of(const OptionSpec& option);
/// The option list of the help text, grouped in table order.
std::string option_help(std::span<const OptionSpec> table);

}  // namespace hmmjit::tools
