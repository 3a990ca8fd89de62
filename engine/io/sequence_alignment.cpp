// Alignment formats. Every row is a target without its gaps; columns do not matter to a search,
// but rows of unequal length show a damaged file and are refused.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "io/sequence_parsing.hpp"

namespace hmmjit::sequence_parsing {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

bool is_blank_line(std::string_view line) { return line.find_first_not_of(kBlanks) == line.npos; }

// Takes the first word off `*text`; empty when there is none.
std::string_view take_word(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(kBlanks), text->size()));
  std::string_view word = text->substr(0, text->find_first_of(kBlanks));
  text->remove_prefix(word.size());
  return word;
}

std::string_view trim(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  std::size_t last = text.find_last_not_of(kBlanks);
  return text.substr(0, last == text.npos ? 0 : last + 1);
}

struct Row {
  std::string name, accession, description;
  std::vector<Residue> residues;
  std::uint64_t columns = 0;
};

// Reads one alignment at a time and hands out its rows.
class AlignmentParser : public Parser {
 public:
  AlignmentParser(BufferedInput& input, const Alphabet& alphabet)
      : input_(input), alphabet_(alphabet) {
    for (std::size_t c = 0; c < table_.size(); ++c) {
      Residue code = alphabet.digit[c];
      table_[c] = code == kInvalidCode ? kSpecial : code;
    }
    for (char c : {' ', '\t', '\r', '\n'}) table_[static_cast<unsigned char>(c)] = kIgnored;
  }

  void reset() override {
    rows_.clear();
    next_ = 0;
  }

  Status read(TargetBlock& block, std::uint64_t residues, std::uint64_t targets) override {
    while (block.residue_count() < residues && block.size() < targets) {
      if (next_ == rows_.size()) {
        rows_.clear();
        next_ = 0;
        HMMJIT_ASSIGN(bool more, read_alignment());
        if (!more) return {};
        continue;
      }
      Row& row = rows_[next_++];
      if (has_nul(row.name) || has_nul(row.accession) || has_nul(row.description))
        return nul_byte(input_.where(), row.name);
      block.begin_target(row.name, row.accession, row.description);
      block.append(row.residues);
      block.end_target();
      row = Row();  // an alignment may be large: give its memory back as it is handed out
    }
    return {};
  }

 protected:
  // Fills rows_; false at the end of the input.
  virtual Result<bool> read_alignment() = 0;

  std::unexpected<Error> bad(std::string message) const {
    return fail(ErrorCode::kInput, std::move(message), input_.where(),
                "correct the alignment, or name its format with --tformat");
  }
  std::unexpected<Error> truncated() const {
    return fail(ErrorCode::kInput, "the file ends inside an alignment", input_.where(),
                "the file is truncated: fetch or write it again");
  }

  Result<bool> line_with_text(std::string_view* text) {
    do {
      HMMJIT_ASSIGN(bool more, input_.line(text));
      if (!more) return false;
    } while (is_blank_line(*text));
    return true;
  }

  Status append(Row& row, std::string_view text) {
    for (char c : text) {
      std::uint8_t code = table_[static_cast<unsigned char>(c)];
      if (code == kIgnored) continue;
      if (code == kSpecial) return illegal_character(input_.where(), row.name, c, alphabet_);
      ++row.columns;
      if (code != alphabet_.gap() && code != alphabet_.missing()) row.residues.push_back(code);
    }
    if (row.residues.size() > kLongestTarget) return too_long(input_.where(), row.name);
    return {};
  }

  Status check_columns() const {
    for (const Row& row : rows_) {
      if (row.columns != rows_[0].columns) {
        return bad(fmt::format("row {} has {} columns, row {} has {}", row.name, row.columns,
                               rows_[0].name, rows_[0].columns));
      }
    }
    return {};
  }

  Row& add_row(std::string_view name) {
    rows_.emplace_back().name = name;
    return rows_.back();
  }

  BufferedInput& input_;
  const Alphabet& alphabet_;
  std::array<std::uint8_t, 256> table_;
  std::vector<Row> rows_;

 private:
  std::size_t next_ = 0;
};

class StockholmParser : public AlignmentParser {
 public:
  using AlignmentParser::AlignmentParser;

 protected:
  Result<bool> read_alignment() override {
    std::string_view text;
    HMMJIT_ASSIGN(bool more, line_with_text(&text));
    if (!more) return false;
    if (!text.starts_with("# STOCKHOLM 1.")) {
      return bad("an alignment must start with the line \"# STOCKHOLM 1.0\"");
    }
    index_.clear();
    std::uint64_t in_block = 0;  // rows of the current block
    std::vector<std::uint64_t> block_of;
    std::uint64_t block = 1;
    while (true) {
      HMMJIT_ASSIGN(bool got, input_.line(&text));
      if (!got) return truncated();
      if (is_blank_line(text)) {
        if (in_block > 0) ++block;
        in_block = 0;
        continue;
      }
      text.remove_prefix(text.find_first_not_of(kBlanks));
      if (text.starts_with("//")) break;
      if (text[0] == '#') {
        if (text.starts_with("#=GS")) HMMJIT_TRY(sequence_annotation(text.substr(4)));
        continue;
      }
      std::string_view name = take_word(&text);
      std::string_view aligned = take_word(&text);
      if (aligned.empty()) return bad(fmt::format("row {} has no sequence text", name));
      if (!is_blank_line(text)) return bad(fmt::format("row {} has text after its sequence", name));
      std::size_t i = row_named(name);
      block_of.resize(rows_.size(), 0);
      if (block_of[i] == block) {
        return bad(fmt::format("row {} stands twice in one block", name));
      }
      block_of[i] = block;
      ++in_block;
      HMMJIT_TRY(append(rows_[i], aligned));
    }
    if (rows_.empty()) return bad("an alignment without rows");
    HMMJIT_TRY(check_columns());
    return true;
  }

 private:
  std::size_t row_named(std::string_view name) {
    auto [it, added] = index_.try_emplace(std::string(name), rows_.size());
    if (added) add_row(name);
    return it->second;
  }

  Status sequence_annotation(std::string_view text) {
    std::string_view name = take_word(&text);
    std::string_view tag = take_word(&text);
    if (tag.empty()) return bad("a #=GS line needs a sequence name and a tag");
    std::size_t i = row_named(name);
    if (tag != "AC" && tag != "DE") return {};
    std::string& value = tag == "AC" ? rows_[i].accession : rows_[i].description;
    if (!value.empty()) return bad(fmt::format("row {} has a second #=GS {} line", name, tag));
    value = trim(text);
    return {};
  }

  std::unordered_map<std::string, std::size_t> index_;
};

// Aligned FASTA and A2M: records as in FASTA, with gaps. In A2M, '.' may be left out, so rows
// agree only in the columns that are upper case or '-'; 'O' stands for a free insertion module.
class AlignedFastaParser : public AlignmentParser {
 public:
  AlignedFastaParser(BufferedInput& input, const Alphabet& alphabet, bool a2m)
      : AlignmentParser(input, alphabet), a2m_(a2m) {}

 protected:
  Result<bool> read_alignment() override {
    std::string_view text;
    while (true) {
      HMMJIT_ASSIGN(bool more, input_.line(&text));
      if (!more) break;
      if (is_blank_line(text)) continue;
      std::size_t begin = text.find_first_not_of(kBlanks);
      if (text[begin] == '>') {
        text.remove_prefix(begin + 1);
        std::string_view name = take_word(&text);
        if (name.empty()) return bad("no name after the > of an alignment row");
        text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
        if (text.ends_with('\r')) text.remove_suffix(1);
        add_row(name).description = text;
        continue;
      }
      if (rows_.empty()) return bad("an alignment row must start with >");
      Row& row = rows_.back();
      if (!a2m_) {
        HMMJIT_TRY(append(row, text));
      } else {
        kept_.clear();
        std::uint64_t consensus = 0;
        for (char c : text) {
          if (c == 'O' || c == 'o') continue;
          kept_ += c;
          consensus += (c >= 'A' && c <= 'Z') || c == '-';
        }
        std::uint64_t before = row.columns;
        HMMJIT_TRY(append(row, kept_));
        row.columns = before + consensus;
      }
    }
    if (rows_.empty()) return false;
    HMMJIT_TRY(check_columns());
    return true;
  }

 private:
  bool a2m_;
  std::string kept_;
};

// Blocks of "name text" lines: Clustal, PSI-BLAST and SELEX differ in header, annotation lines
// and what may follow the text.
class BlockParser : public AlignmentParser {
 public:
  BlockParser(BufferedInput& input, const Alphabet& alphabet, SequenceFormat format)
      : AlignmentParser(input, alphabet), format_(format) {}

 protected:
  Result<bool> read_alignment() override {
    bool clustal = format_ == SequenceFormat::kClustal || format_ == SequenceFormat::kClustalLike;
    bool selex = format_ == SequenceFormat::kSelex;
    std::string_view text;
    if (clustal) {
      HMMJIT_ASSIGN(bool more, line_with_text(&text));
      if (!more) return false;
      bool header = format_ == SequenceFormat::kClustal
                        ? text.starts_with("CLUSTAL")
                        : text.find("multiple sequence alignment") != text.npos;
      if (!header) return bad("the header line of the Clustal format is missing");
    }
    std::size_t in_block = 0;
    bool first_block = true;
    while (true) {
      HMMJIT_ASSIGN(bool more, input_.line(&text));
      bool separator = !more || is_blank_line(text) || (clustal && is_conservation(text));
      if (separator) {
        if (in_block > 0) {
          if (in_block != rows_.size()) {
            return bad(
                fmt::format("a block has {} rows, the first block has {}", in_block, rows_.size()));
          }
          HMMJIT_TRY(check_block());
          first_block = false;
          in_block = 0;
        }
        if (!more) break;
        continue;
      }
      if (selex && text[0] == '#') continue;
      std::string_view name = take_word(&text);
      if (first_block) {
        add_row(name);
      } else if (in_block >= rows_.size() || rows_[in_block].name != name) {
        return bad(
            fmt::format("row {} was not expected here: the blocks name different rows", name));
      }
      Row& row = rows_[in_block++];
      std::string_view aligned = selex ? text : take_word(&text);
      if (is_blank_line(aligned) && !selex) {
        return bad(fmt::format("row {} has no sequence text", name));
      }
      if (clustal) take_word(&text);  // residue count at the line's end
      if (!selex && !is_blank_line(text)) {
        return bad(fmt::format("row {} has text after its sequence", name));
      }
      HMMJIT_TRY(append(row, aligned));
    }
    return !rows_.empty();
  }

 private:
  static bool is_conservation(std::string_view text) {
    return text.find_first_not_of(" .:*\t\r\n") == text.npos;
  }
  // SELEX shows gaps as blanks too, also at the line ends: its rows cannot be compared.
  Status check_block() const {
    return format_ == SequenceFormat::kSelex ? Status() : check_columns();
  }

  SequenceFormat format_;
};

// PHYLIP: counts of rows and columns, then rows that begin with their name, in a column of fixed
// width (strict) or up to the first blank (relaxed, width 0).
class PhylipParser : public AlignmentParser {
 public:
  PhylipParser(BufferedInput& input, const Alphabet& alphabet, bool interleaved,
               std::size_t name_width)
      : AlignmentParser(input, alphabet), interleaved_(interleaved), name_width_(name_width) {
    for (char c = '0'; c <= '9'; ++c) table_[static_cast<unsigned char>(c)] = kIgnored;
    table_['?'] = static_cast<std::uint8_t>(alphabet.missing());
  }

 protected:
  Result<bool> read_alignment() override {
    std::string_view text;
    HMMJIT_ASSIGN(bool more, line_with_text(&text));
    if (!more) return false;
    std::uint64_t count = 0;
    columns_ = 0;
    if (!number(take_word(&text), &count) || !number(take_word(&text), &columns_)) {
      return bad("PHYLIP must start with the number of rows and of columns");
    }
    while (rows_.size() < count) {
      HMMJIT_TRY(named_line());
      while (!interleaved_ && rows_.back().columns < columns_) {
        HMMJIT_TRY(continuation(rows_.back()));
      }
    }
    while (rows_[0].columns < columns_) {
      for (Row& row : rows_) HMMJIT_TRY(continuation(row));
    }
    for (const Row& row : rows_) {
      if (row.columns != columns_) {
        return bad(fmt::format("row {} has {} columns, the first line says {}", row.name,
                               row.columns, columns_));
      }
    }
    return true;
  }

 private:
  static bool number(std::string_view word, std::uint64_t* value) {
    if (word.empty() || word.size() > 12) return false;
    *value = 0;
    for (char c : word) {
      if (c < '0' || c > '9') return false;
      *value = *value * 10 + static_cast<std::uint64_t>(c - '0');
    }
    return *value > 0;
  }
  Status named_line() {
    std::string_view text;
    HMMJIT_ASSIGN(bool more, line_with_text(&text));
    if (!more) return truncated();
    std::string name;
    if (name_width_ == 0) {
      name = take_word(&text);
    } else {
      name = trim(text.substr(0, name_width_));
      text.remove_prefix(std::min(name_width_, text.size()));
    }
    if (name.empty()) return bad("a PHYLIP row without a name");
    // Strict names may hold blanks, names of targets may not.
    std::ranges::replace_if(
        name, [](char c) { return kBlanks.find(c) != kBlanks.npos; }, '_');
    return append(add_row(name), text);
  }
  Status continuation(Row& row) {
    std::string_view text;
    HMMJIT_ASSIGN(bool more, line_with_text(&text));
    if (!more) return truncated();
    return append(row, text);
  }

  bool interleaved_;
  std::size_t name_width_;
  std::uint64_t columns_ = 0;
};

}  // namespace

std::unique_ptr<Parser> make_alignment_parser(BufferedInput& input, const Alphabet& alphabet,
                                              SequenceFormat format,
                                              std::size_t phylip_name_width) {
  switch (format) {
    case SequenceFormat::kA2m:
    case SequenceFormat::kAlignedFasta:
      return std::make_unique<AlignedFastaParser>(input, alphabet, format == SequenceFormat::kA2m);
    case SequenceFormat::kPsiBlast:
    case SequenceFormat::kSelex:
    case SequenceFormat::kClustal:
    case SequenceFormat::kClustalLike:
      return std::make_unique<BlockParser>(input, alphabet, format);
    case SequenceFormat::kPhylip:
    case SequenceFormat::kPhylipSequential:
      return std::make_unique<PhylipParser>(input, alphabet, format == SequenceFormat::kPhylip,
                                            phylip_name_width);
    default:
      return std::make_unique<StockholmParser>(input, alphabet);
  }
}

}  // namespace hmmjit::sequence_parsing
