// Flat-file databases: EMBL/UniProt and GenBank/DDBJ records.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/text_fields.hpp"
#include "io/sequence_parsing.hpp"

namespace hmmjit::sequence_parsing {
namespace {

std::string_view first_token(std::string_view text, std::string_view separators) {
  std::size_t begin = std::min(text.find_first_not_of(separators), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_first_of(separators));
}

class FlatParser : public Parser {
 public:
  FlatParser(BufferedInput& input, const SequenceFormatOptions& options, SequenceFormat format)
      : input_(input), alphabet_(options.alphabet), embl_(format == SequenceFormat::kEmbl) {
    table_ = unaligned_table(options);
    for (char c = '0'; c <= '9'; ++c) table_[static_cast<unsigned char>(c)] = kIgnored;
  }

  void reset() override {}

  Status read(TargetBlock& block, std::uint64_t residues, std::uint64_t targets) override {
    while (!block.full(residues, targets)) {
      HMMJIT_ASSIGN(bool more, embl_ ? embl_header() : genbank_header());
      if (!more) return {};
      if (has_nul(name_) || has_nul(accession_) || has_nul(description_))
        return nul_byte(input_.where(), name_);
      block.begin_target(name_, accession_, description_);
      Status status = sequence(block);
      if (!status) {
        block.abandon_target();
        return status;
      }
      block.end_target();
    }
    return {};
  }

 private:
  std::unexpected<Error> bad(std::string message, std::string remedy) const {
    return fail(ErrorCode::kInput, std::move(message), input_.where(), std::move(remedy));
  }
  std::unexpected<Error> truncated() const {
    return bad(fmt::format("the file ends inside record {}", name_),
               "the file is truncated: fetch or write it again");
  }

  void clear() {
    name_.clear();
    accession_.clear();
    description_.clear();
  }

  Status add_description(std::string_view text) {
    if (!description_.empty()) description_ += ' ';
    description_ += trim_end(text);
    if (description_.size() <= kLongestHeader) return {};
    return bad(fmt::format("the description of {} has more than {} bytes", name_, kLongestHeader),
               "check what made the file: it is damaged, or of another kind");
  }

  // Reads up to and including the line that starts the sequence; false at the end of the input.
  Result<bool> embl_header() {
    clear();
    std::string_view line;
    do {
      HMMJIT_ASSIGN(bool more, input_.line(&line));
      if (!more) return false;
    } while (is_blank(line));
    if (!line.starts_with("ID   ")) {
      return bad("an EMBL record must start with an ID line", "check the format of the file");
    }
    name_ = first_token(line.substr(5), " ;\t\r\n");
    if (name_.empty()) return bad("the ID line has no name", "correct or remove the record");
    while (true) {
      HMMJIT_ASSIGN(bool more, input_.line(&line));
      if (!more) return truncated();
      if (line.starts_with("AC   ") && accession_.empty()) {
        accession_ = trim_end(line.substr(5, line.find(';') - 5));
      } else if (line.starts_with("DE   ")) {
        HMMJIT_TRY(add_description(line.substr(5)));
      } else if (line.starts_with("SQ   ")) {
        return true;
      }
    }
  }

  Result<bool> genbank_header() {
    clear();
    std::string_view line;
    do {  // database releases begin with a preamble
      HMMJIT_ASSIGN(bool more, input_.line(&line));
      if (!more) return false;
    } while (!line.starts_with("LOCUS   "));
    constexpr std::size_t kTextColumn = 12;
    name_ = first_token(line.substr(std::min(kTextColumn, line.size())), kBlanks);
    if (name_.empty()) return bad("the LOCUS line has no name", "correct or remove the record");
    while (true) {
      HMMJIT_ASSIGN(bool more, input_.line(&line));
      if (!more) return truncated();
      std::string_view text = line.substr(std::min(kTextColumn, line.size()));
      if (line.starts_with("VERSION   ")) {
        accession_ = first_token(text, kBlanks);
      } else if (line.starts_with("DEFINITION ")) {
        HMMJIT_TRY(add_description(text));
      } else if (line.starts_with("ORIGIN")) {
        return true;
      }
    }
  }

  Status sequence(TargetBlock& block) {
    std::string_view line;
    std::uint64_t length = 0;
    while (true) {
      HMMJIT_ASSIGN(bool more, input_.line(&line));
      if (!more) return truncated();
      if (line.starts_with("//")) {
        if (length > longest_) return does_not_fit(input_.where(), name_, length);
        return {};
      }
      codes_.clear();
      for (char c : line) {
        std::uint8_t code = table_[static_cast<unsigned char>(c)];
        if (code == kSpecial) return illegal_character(input_.where(), name_, c, alphabet_, model_);
        if (code != kIgnored) codes_.push_back(code);
      }
      length += codes_.size();
      if (length > kLongestTarget) return too_long(input_.where(), name_);
      if (length <= longest_) block.append(codes_);
    }
  }

  BufferedInput& input_;
  const Alphabet& alphabet_;
  bool embl_;
  std::array<std::uint8_t, 256> table_;
  std::string name_, accession_, description_;
  std::vector<Residue> codes_;
};

}  // namespace

std::unique_ptr<Parser> make_flat_parser(BufferedInput& input, const SequenceFormatOptions& options,
                                         SequenceFormat format) {
  return std::make_unique<FlatParser>(input, options, format);
}

}  // namespace hmmjit::sequence_parsing
