// Parsers of all alignment formats, shared by model building and target reading.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/byte_source.hpp"
#include "io/sequence_format.hpp"
#include "model/multiple_alignment.hpp"

namespace hmmjit {

struct AlignedRow {
  std::string name, accession, description;
  std::optional<double> weight;
  std::vector<Residue> codes;  ///< one for each column, gaps included
  std::uint64_t line = 0;      ///< line on which the row begins
};

struct ParsedAlignment {
  MultipleAlignment annotation;  ///< all but rows, alphabet and columns
  std::vector<AlignedRow> rows;
};

/// Parses one format. Accepts and refuses the same input as HMMER. Errors name the faulty line, and
/// the column of an illegal character.
class AlignmentParser {
 public:
  AlignmentParser(BufferedInput& input, const Alphabet& alphabet, SequenceFormat format,
                  std::string_view model);
  virtual ~AlignmentParser() = default;
  /// The next alignment; nullopt after the last.
  Result<std::optional<ParsedAlignment>> next();
  /// Call it after the input is rewound.
  void reset() { ended_ = false; }

 protected:
  /// Fills `out_`; false at the end of the input.
  virtual Result<bool> read() = 0;

  /// Reads the next line into `line_`, without its line end; false at the end of the input.
  Result<bool> next_line();
  Result<bool> next_line_with_text();
  /// An error at the last line read, or at `line`.
  std::unexpected<Error> bad(std::string message, std::uint64_t line = 0) const;
  std::unexpected<Error> truncated() const;
  AlignedRow& add_row(std::string_view name);
  /// Appends `text`, a part of `line_`, to `row`.
  Status append(AlignedRow& row, std::string_view text) const;
  /// The same for `text` that begins at `column` (from 0) of line `line`.
  Status append(AlignedRow& row, std::string_view text, std::uint64_t line,
                std::size_t column) const;
  Status equal_columns(const AlignedRow& row, std::uint64_t line) const;
  std::uint64_t line_number() const { return input_.line_number(); }

  const SequenceFormat format_;
  std::array<std::uint8_t, 256> codes_;  // code of each character; see sequence_parsing.hpp
  Residue gap_;
  ParsedAlignment out_;
  std::string_view line_;
  bool ended_ = false;  // set after the only alignment of a format that holds one

 private:
  BufferedInput& input_;
  const Alphabet& alphabet_;
  std::string model_;
};

/// `model`: see SequenceFormatOptions.
std::unique_ptr<AlignmentParser> make_alignment_parser(BufferedInput& input,
                                                       const Alphabet& alphabet,
                                                       const RecognisedFormat& format,
                                                       std::string_view model = {});

}  // namespace hmmjit
