// Command line options in hmmsearch's syntax, from one table that also makes the help text.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace hmmjit::tools {

enum class ValueType { kNone, kInteger, kReal, kString, kFile };

/// What --tformat and --qformat take, as OptionSpec::offers.
inline constexpr std::string_view kSequenceFormatNames =
    "fasta,hmmpgmd,embl,uniprot,genbank,ddbj,stockholm,pfam,a2m,afa,psiblast,selex,clustal,"
    "clustallike,phylip,phylips,ncbi";

/// One option. All text is static.
struct OptionSpec {
  std::string_view name;  ///< "-E", "--tblout"
  ValueType type = ValueType::kNone;
  std::string_view value_name = {};  ///< "x", "n", "f", "s": shown as <x>
  std::string_view default_text = {};
  std::string_view range = {};        ///< "x>0", "n>=120", "0<=x<0.5"; empty: any value
  std::string_view environment = {};  ///< variable read when the option is not given
  std::string_view excludes = {};     ///< comma separated names; itself is ignored
  std::string_view group = {};        ///< heading in the help; empty: not listed
  std::string_view help = {};
  std::string_view offers = {};  ///< values that shells offer, comma separated
  bool own = false;              ///< ours: never makes an hmmsearch abbreviation ambiguous
  /// Comma separated names; without any of them this one is an error, unless -h asks for help.
  std::string_view needs = {};
  /// Unknown to this program: only there so that code shared by several may ask for it.
  bool absent = false;
};

/// A parsed command line. Look-ups by full name; names must stand in the table.
class ParsedOptions {
 public:
  bool is_set(std::string_view name) const;
  /// Whether this program has the option at all.
  bool knows(std::string_view name) const;
  std::string_view text(std::string_view name) const;  ///< given or default text
  double real(std::string_view name) const;
  std::int64_t integer(std::string_view name) const;
  std::optional<double> given_real(std::string_view name) const;
  /// The value as a size above 0, "400M"; fails with kUsage where it is none.
  Result<std::uint64_t> bytes(std::string_view name) const;
  /// Where the text came from differs from the default text: hmmsearch then mentions the option.
  bool differs_from_default(std::string_view name) const;
  const std::vector<std::string>& arguments() const { return arguments_; }
  /// The same options with other arguments, and `replacement` wherever the name of a file has
  /// `placeholder`.
  ParsedOptions with(std::vector<std::string> arguments, std::string_view placeholder,
                     std::string_view replacement) const;
  /// "-E 5 --max ": the options set, in table order, each followed by a blank; without
  /// --hmmer-banner, which HMMER does not have.
  std::string settings() const;

 private:
  friend Result<ParsedOptions> parse_options(std::span<const OptionSpec> table,
                                             std::span<const std::string> arguments);
  std::size_t find(std::string_view name) const;

  std::span<const OptionSpec> table_;
  std::vector<std::optional<std::string>> values_;
  std::vector<std::string> arguments_;
};

/// Parses options, which may stand before, between and after the arguments ("-" is an argument,
/// "--" ends the options). `-E5`, `-E 5`, `--domE=3`, `--domE 3`; long names may be abbreviated
/// while unique, and '_' and '-' within them are the same (AlphaFold 3 writes --seq_limit). Fails
/// with kUsage. Option names in the table must be unique.
Result<ParsedOptions> parse_options(std::span<const OptionSpec> table,
                                    std::span<const std::string> arguments);

/// The option list of the help text, grouped in table order.
std::string option_help(std::span<const OptionSpec> table);

}  // namespace hmmjit::tools
