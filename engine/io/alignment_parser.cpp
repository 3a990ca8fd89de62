#include "io/alignment_parser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "core/numbers.hpp"
#include "core/text_fields.hpp"
#include "io/c_numbers.hpp"
#include "io/sequence_parsing.hpp"

namespace hmmjit {

using namespace sequence_parsing;
using F = SequenceFormat;

AlignmentParser::AlignmentParser(BufferedInput& input, const Alphabet& alphabet,
                                 SequenceFormat format, std::string_view model)
    : format_(format),
      codes_(residue_table(alphabet)),
      gap_(static_cast<Residue>(alphabet.gap())),
      input_(input),
      alphabet_(alphabet),
      model_(model) {
  const auto set = [&](std::string_view characters, std::uint8_t code) {
    for (const char c : characters) codes_[static_cast<unsigned char>(c)] = code;
  };
  switch (format) {
    case F::kAlignedFasta:
      set(" ", kIgnored);
      break;
    case F::kA2m:  // 'O' marks a free insertion module
      set("_*~", kSpecial);
      set(" \t.Oo", kIgnored);
      break;
    case F::kPsiBlast:
      set("._*~Oo", kSpecial);
      break;
    case F::kSelex:
      set(" ", gap_);
      break;
    case F::kPhylip:
    case F::kPhylipSequential:
      set("_~", kSpecial);
      set(" \t0123456789", kIgnored);
      if (alphabet.type != AlphabetType::kAmino) set("O", gap_);  // a deletion
      set("?", static_cast<std::uint8_t>(alphabet.missing()));
      break;
    default:
      break;
  }
}

Result<std::optional<ParsedAlignment>> AlignmentParser::next() {
  out_ = {};
  if (ended_) return std::nullopt;
  HMMJIT_ASSIGN(const bool more, read());
  if (!more) return std::nullopt;
  if (out_.rows.empty()) return bad("an alignment without rows");
  const MultipleAlignment& all = out_.annotation;
  if (has_nul(all.name) || has_nul(all.accession.value_or("")) ||
      has_nul(all.description.value_or("")) || has_nul(all.rf + all.mm + all.cs))
    return bad("a NUL byte in the annotation of the alignment");
  for (const AlignedRow& row : out_.rows) {
    if (has_nul(row.name) || has_nul(row.accession) || has_nul(row.description))
      return nul_byte(fmt::format("{}:{}", input_.name(), row.line), row.name);
  }
  return std::move(out_);
}

Result<bool> AlignmentParser::next_line() {
  HMMJIT_ASSIGN(const bool more, input_.line(&line_));
  if (more && line_.ends_with('\r')) line_.remove_suffix(1);
  return more;
}

Result<bool> AlignmentParser::next_line_with_text() {
  do {
    HMMJIT_ASSIGN(const bool more, next_line());
    if (!more) return false;
  } while (is_blank(line_));
  return true;
}

std::unexpected<Error> AlignmentParser::bad(std::string message, std::uint64_t line) const {
  return fail(ErrorCode::kInput, std::move(message),
              line == 0 ? input_.where() : fmt::format("{}:{}", input_.name(), line),
              "correct the alignment, or state its format");
}

std::unexpected<Error> AlignmentParser::truncated() const {
  return fail(ErrorCode::kInput, "the file ends inside an alignment", input_.where(),
              "the file is truncated: fetch or write it again");
}

AlignedRow& AlignmentParser::add_row(std::string_view name) {
  AlignedRow& row = out_.rows.emplace_back();
  row.name = name;
  row.line = input_.line_number();
  return row;
}

Status AlignmentParser::append(AlignedRow& row, std::string_view text) const {
  return append(row, text, input_.line_number(),
                static_cast<std::size_t>(text.data() - line_.data()));
}

Status AlignmentParser::append(AlignedRow& row, std::string_view text, std::uint64_t line,
                               std::size_t column) const {
  auto to = row.codes.insert(row.codes.end(), text.size(), 0);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::uint8_t code = codes_[static_cast<unsigned char>(text[i])];
    if (code == kSpecial)
      return illegal_character(fmt::format("{}:{}:{}", input_.name(), line, column + i + 1),
                               row.name, text[i], alphabet_, model_);
    *to = code;
    to += code != kIgnored;
  }
  row.codes.erase(to, row.codes.end());
  return {};
}

Status AlignmentParser::equal_columns(const AlignedRow& row, std::uint64_t line) const {
  const AlignedRow& first = out_.rows.front();
  if (row.codes.size() == first.codes.size()) return {};
  return bad(fmt::format("row {} has {} columns, row {} has {}", row.name, row.codes.size(),
                         first.name, first.codes.size()),
             line);
}

namespace {

// HMMER accepts as a number any text with a digit and at most one point and one exponent.
std::optional<double> number(std::string_view word) {
  const auto exponent = word.find_first_of("eE");
  if (word.find_first_of("0123456789") == word.npos || std::ranges::count(word, '.') > 1 ||
      word.find_last_of("eE") != exponent ||
      (exponent != word.npos && word.find('.', exponent) != word.npos))
    return std::nullopt;
  return c_atof(word);
}

class StockholmParser final : public AlignmentParser {
 public:
  using AlignmentParser::AlignmentParser;

 private:
  static constexpr std::size_t kNoRow = static_cast<std::size_t>(-1);

  Result<bool> read() override {
    index_ = {};  // clear() takes time for the largest alignment so far
    layout_ = {};
    annotated_ = {};
    first_block_ = true;
    lines_ = rows_in_block_ = columns_ = width_ = 0;
    do {
      HMMJIT_ASSIGN(const bool more, next_line());
      if (!more) return false;
    } while (is_blank(line_) || (line_.starts_with('#') && !line_.starts_with("# STOCKHOLM")));
    if (!line_.starts_with("# STOCKHOLM 1."))
      return bad("an alignment must start with the line \"# STOCKHOLM 1.0\"");
    for (;;) {
      HMMJIT_ASSIGN(const bool more, next_line());
      if (!more) return truncated();
      const std::string_view text = trim_begin(line_);
      if (text.empty() || text.starts_with("//")) {
        HMMJIT_TRY(end_block());
        if (text.empty()) continue;
        break;
      }
      if (!text.starts_with('#')) {
        HMMJIT_TRY(sequence(text));
      } else if (text.size() > 3 && text.starts_with("#=G") &&
                 std::string_view("FSCR").contains(text[3])) {
        HMMJIT_TRY(annotation(text));
      } else if (text == "# STOCKHOLM 1.0") {
        return bad("a second header line inside an alignment: the // before it is missing");
      }
    }
    if (first_block_) return bad("an alignment without rows");
    const bool weighted = std::ranges::any_of(
        out_.rows, [](const AlignedRow& row) { return row.weight.has_value(); });
    for (const AlignedRow& row : out_.rows) {
      if (weighted && !row.weight)
        return bad(fmt::format("row {} has no weight, but others have", row.name), row.line);
      if (row.codes.size() != columns_)
        return bad(fmt::format("row {} is annotated, but has no sequence", row.name), row.line);
    }
    return true;
  }

  std::size_t row_named(std::string_view name) {
    const auto [it, added] = index_.try_emplace(std::string(name), out_.rows.size());
    if (added) add_row(name);
    return it->second;
  }

  static std::string line_of(std::string_view kind, std::string_view name) {
    return fmt::format("{}{}{}", kind, name.empty() ? "" : " ", name);
  }

  // Returns the row of the next line of a block. Every block must repeat the lines of the first
  // block, in order.
  Result<std::size_t> place(std::string_view kind, std::string_view name, std::string_view text) {
    if (text.empty()) return bad(line_of(kind, name) + " has no text");
    if (first_block_) {
      layout_.emplace_back(kind, name.empty() ? kNoRow : row_named(name));
    } else if (lines_ >= layout_.size() || layout_[lines_].first != kind ||
               (!name.empty() && out_.rows[layout_[lines_].second].name != name)) {
      return bad(line_of(kind, name) + " was not expected here: the blocks have different lines");
    }
    const std::size_t row = layout_[lines_].second;
    if (lines_++ > 0 && text.size() != width_)
      return bad(fmt::format("{} has {} columns in this block, the line before it {}",
                             line_of(kind, name), text.size(), width_));
    width_ = text.size();
    return row;
  }

  Status sequence(std::string_view text) {
    const std::string_view name = take_word(&text);
    text = trim(text);
    if (text.empty()) return bad(fmt::format("row {} has no sequence text", name));
    HMMJIT_ASSIGN(const std::size_t row, place("row", name, text));
    if (out_.rows[row].codes.size() > columns_)
      return bad(fmt::format("row {} stands twice in one block", name));
    ++rows_in_block_;
    return append(out_.rows[row], text);
  }

  Status annotation(std::string_view text) {
    const std::string_view marker = take_word(&text);
    if (marker.size() != 4) return bad(fmt::format("{} is no annotation", marker));
    const bool of_row = marker[3] == 'S' || marker[3] == 'R';
    const std::string_view name = of_row ? take_word(&text) : std::string_view();
    const std::string_view tag = take_word(&text);
    if (tag.empty())
      return bad(
          fmt::format("a {} line needs {}a tag", marker, of_row ? "a sequence name and " : ""));
    text = trim_begin(text);
    if (marker[3] == 'F') return of_file(tag, text);
    if (marker[3] == 'S') return of_sequence(name, tag, text);
    // Annotates the columns of a row (GR) or of the alignment (GC).
    text = trim_end(text);
    std::string* kept = nullptr;
    bool known = tag == "SS" || tag == "SA" || tag == "PP";
    if (!of_row) {
      MultipleAlignment& to = out_.annotation;
      kept = tag == "RF"        ? &to.rf
             : tag == "MM"      ? &to.mm
             : tag == "SS_cons" ? &to.cs
             : tag == "SA_cons" ? &to.sa
                                : nullptr;
      known = kept != nullptr || tag == "PP_cons";
    }
    // Other annotation may have another order in each block.
    HMMJIT_ASSIGN(
        const std::size_t row,
        place(known ? fmt::format("{} {}", marker, tag) : std::string(marker), name, text));
    std::size_t& columns = annotated_[fmt::format("{}{} {}", marker, row, tag)];
    if (columns != columns_)
      return bad(
          fmt::format("{} {} does not stand in every block once", line_of(marker, name), tag));
    columns += text.size();
    if (kept != nullptr) *kept += text;
    return {};
  }

  Status of_file(std::string_view tag, std::string_view text) {
    MultipleAlignment& to = out_.annotation;
    std::string_view rest = text;
    const std::string_view word = take_word(&rest);
    if (tag == "ID" || tag == "AC") {
      if (word.empty()) return bad(fmt::format("#=GF {} has no text", tag));
      if (!is_blank(rest))
        return bad(fmt::format("#=GF {} should have only one {} (no white space allowed)", tag,
                               tag == "ID" ? "name" : "accession"));
      (tag == "ID" ? to.name : to.accession.emplace()) = word;
    }
    if (tag == "DE") to.description = text;  // trailing blanks stay, for summaries
    std::optional<Cutoff>* cutoff = tag == "GA"   ? &to.ga
                                    : tag == "TC" ? &to.tc
                                    : tag == "NC" ? &to.nc
                                                  : nullptr;
    if (cutoff == nullptr || (tag == "NC" && word == "undefined")) return {};
    const auto sequence = number(word);
    const std::string_view second = take_word(&rest);
    const auto domain = second.empty() ? -99999.0 : number(second);
    if (!sequence || !domain) return bad(fmt::format("#=GF {} needs numbers", tag));
    *cutoff = Cutoff{static_cast<float>(*sequence), static_cast<float>(*domain)};
    return {};
  }

  Status of_sequence(std::string_view name, std::string_view tag, std::string_view text) {
    AlignedRow& row = out_.rows[row_named(name)];
    if (tag != "WT" && tag != "AC" && tag != "DE") return {};
    const bool again = tag == "WT"   ? row.weight.has_value()
                       : tag == "AC" ? !row.accession.empty()
                                     : !row.description.empty();
    if (again) return bad(fmt::format("row {} has a second #=GS {} line", name, tag));
    if (tag == "DE") {
      row.description = text;
      return {};
    }
    const std::string_view word = take_word(&text);
    if (word.empty() || !is_blank(text))
      return bad(fmt::format("#=GS {} of row {} should have one word", tag, name));
    if (tag == "AC") {
      row.accession = word;
      return {};
    }
    row.weight = number(word);
    if (!row.weight || *row.weight < 0) return bad(fmt::format("unusable weight of row {}", name));
    return {};
  }

  Status end_block() {
    if (lines_ == 0) return {};
    if (rows_in_block_ != out_.rows.size() || lines_ != layout_.size())
      return bad(first_block_ ? fmt::format("{} rows are annotated or aligned, {} have a sequence",
                                            out_.rows.size(), rows_in_block_)
                              : fmt::format("a block of {} lines, the first block has {}", lines_,
                                            layout_.size()));
    columns_ += width_;
    lines_ = rows_in_block_ = width_ = 0;
    first_block_ = false;
    return {};
  }

  std::unordered_map<std::string, std::size_t> index_;       // from row names to rows
  std::vector<std::pair<std::string, std::size_t>> layout_;  // kind and row of each line in a block
  std::unordered_map<std::string, std::size_t> annotated_;   // columns of each so far
  bool first_block_ = true;
  std::size_t lines_ = 0, rows_in_block_ = 0;  // in the current block
  std::size_t columns_ = 0, width_ = 0;        // of the previous blocks; of the current block
};

// Aligned FASTA and A2M. In A2M, only upper case and '-' are consensus columns; the insertions
// between two of these are padded to the longest.
class AlignedFastaParser final : public AlignmentParser {
 public:
  using AlignmentParser::AlignmentParser;

 private:
  static constexpr std::uint8_t kInsertion = 0x80;  // flag of a code

  Result<bool> read() override {
    ended_ = true;
    const bool a2m = format_ == F::kA2m;
    for (;;) {
      HMMJIT_ASSIGN(const bool more, next_line_with_text());
      std::string_view text = more ? trim(line_) : std::string_view();
      if (!more || text.starts_with('>')) {
        if (!out_.rows.empty() && !a2m) HMMJIT_TRY(end_row());
        if (!more) break;
        text.remove_prefix(1);
        const std::string_view name = take_word(&text);
        if (name.empty()) return bad("no name after the > of an alignment row");
        line_.remove_prefix(static_cast<std::size_t>(text.data() - line_.data()));
        line_.remove_prefix(std::min(line_.find_first_not_of(" \t"), line_.size()));
        add_row(name).description = line_;
        continue;
      }
      if (out_.rows.empty()) return bad("an alignment row must start with >");
      AlignedRow& row = out_.rows.back();
      const std::size_t before = row.codes.size();
      HMMJIT_TRY(append(row, text));
      if (!a2m) continue;
      std::size_t i = before;
      for (const char c : text) {
        if (codes_[static_cast<unsigned char>(c)] == kIgnored) continue;
        if (c >= 'a' && c <= 'z') row.codes[i] |= kInsertion;
        ++i;
      }
    }
    if (out_.rows.empty()) return false;
    if (a2m) HMMJIT_TRY(pad());
    return true;
  }

  Status end_row() const {
    const AlignedRow& row = out_.rows.back();
    if (row.codes.empty()) return bad(fmt::format("row {} has no residues", row.name), row.line);
    return equal_columns(row, row.line);
  }

  Status pad() {
    std::vector<std::size_t> widest;  // insertions before each consensus column and at the end
    for (const AlignedRow& row : out_.rows) {
      std::vector<std::size_t> width(1, 0);
      for (const std::uint8_t code : row.codes) {
        if (code & kInsertion)
          ++width.back();
        else
          width.push_back(0);
      }
      if (widest.empty()) widest.assign(width.size(), 0);
      if (width.size() != widest.size())
        return bad(fmt::format("row {} has {} consensus columns, row {} has {}", row.name,
                               width.size() - 1, out_.rows.front().name, widest.size() - 1),
                   row.line);
      for (std::size_t k = 0; k < width.size(); ++k) widest[k] = std::max(widest[k], width[k]);
    }
    for (AlignedRow& row : out_.rows) {
      std::vector<Residue> padded;
      std::size_t k = 0, run = 0;
      for (const std::uint8_t code : row.codes) {
        if (code & kInsertion) {
          ++run;
        } else {
          padded.insert(padded.end(), widest[k++] - run, gap_);
          run = 0;
        }
        padded.push_back(code & ~kInsertion);
      }
      padded.insert(padded.end(), widest[k] - run, gap_);
      row.codes = std::move(padded);
    }
    std::string& rf = out_.annotation.rf;
    for (std::size_t k = 0; k < widest.size(); ++k)
      rf.append(k > 0 ? 1 : 0, 'x').append(widest[k], '.');
    return {};
  }
};

// Clustal and PSI-BLAST: blocks of lines with a name and aligned text. Clustal begins with a header
// and ends each block with a conservation line (or a blank one). In PSI-BLAST, upper case marks
// consensus columns.
class BlockParser final : public AlignmentParser {
 public:
  using AlignmentParser::AlignmentParser;

 private:
  Result<bool> read() override {
    ended_ = true;
    const bool clustal = format_ != F::kPsiBlast;
    HMMJIT_ASSIGN(bool more, next_line_with_text());
    if (!more) return false;
    if (clustal) {
      std::string_view rest = line_;
      const std::string_view program = take_word(&rest);
      if ((format_ == F::kClustal && !program.starts_with("CLUSTAL")) ||
          !rest.contains("alignment"))
        return bad("the header line of the Clustal format is missing");
      HMMJIT_ASSIGN(more, next_line_with_text());
      if (!more) return truncated();
    }
    std::size_t columns = 0;
    for (bool first = true; more; first = false) {
      std::size_t rows = 0, begin = 0, width = 0;
      do {
        std::string_view text = line_;
        const std::string_view name = take_word(&text);
        text = clustal ? take_word(&text) : trim(text);  // Clustal may append a count to the text
        if (text.empty()) return bad(fmt::format("row {} has no sequence text", name));
        const auto at = static_cast<std::size_t>(text.data() - line_.data());
        if (rows == 0) {
          begin = at;
          width = text.size();
        }
        if (at != begin || text.size() != width)
          return bad(fmt::format(
              "the text of row {} begins or ends in another column than the rows before", name));
        if (first) {
          add_row(name);
        } else if (rows >= out_.rows.size() || out_.rows[rows].name != name) {
          return bad(
              fmt::format("row {} was not expected here: the blocks name different rows", name));
        }
        HMMJIT_TRY(append(out_.rows[rows++], text));
        if (!clustal) HMMJIT_TRY(mark_consensus(text, columns));
        HMMJIT_ASSIGN(more, next_line());
        if (!more && clustal)
          return bad("the last block does not end with a line of conservation or a blank line");
      } while (more && !is_blank(line_) &&
               !(clustal && line_.find_first_not_of(" .:*") == line_.npos));
      if (rows != out_.rows.size())
        return bad(
            fmt::format("a block has {} rows, the first block has {}", rows, out_.rows.size()));
      columns += width;
      HMMJIT_ASSIGN(more, next_line_with_text());
    }
    return true;
  }

  Status mark_consensus(std::string_view text, std::size_t columns) {
    std::string& rf = out_.annotation.rf;
    rf.resize(columns + text.size(), '-');
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] < 'A' || text[i] > 'z') continue;
      const char mark = text[i] <= 'Z' ? 'x' : '.';
      char& column = rf[columns + i];
      if (column != '-' && column != mark)
        return bad(fmt::format("residue {} of the line, {}, is in another case than those above it",
                               i + 1, text[i]));
      column = mark;
    }
    return {};
  }
};

// In SELEX, blanks are gaps, even before and after the text: a block extends from the first to the
// last column in which any of its lines has text.
class SelexParser final : public AlignmentParser {
 public:
  using AlignmentParser::AlignmentParser;

 private:
  struct Line {
    std::string text;
    std::uint64_t number;
    std::string_view kind;  // "#=RF", ... or empty: a row
  };

  Result<bool> read() override {
    ended_ = true;
    std::vector<std::string_view> layout;  // kinds of the lines of the first block
    for (bool first = true;; first = false) {
      HMMJIT_ASSIGN(const std::vector<Line> block, read_block());
      if (block.empty()) return !first;
      std::size_t row = 0;
      for (std::size_t i = 0; i < block.size(); ++i) {
        const Line& line = block[i];
        if (first) {
          layout.push_back(line.kind);
          HMMJIT_TRY(check_annotation(layout, line));
        } else if (i >= layout.size() || layout[i] != line.kind) {
          return bad("a line that was not expected here: the blocks have different lines",
                     line.number);
        }
        if (!line.kind.empty()) continue;
        std::string_view rest = line.text;
        const std::string_view name = take_word(&rest);
        if (first)
          add_row(name).line = line.number;
        else if (out_.rows[row].name != name)
          return bad(
              fmt::format("row {} was not expected here: the blocks name different rows", name),
              line.number);
        ++row;
      }
      if (block.size() != layout.size())
        return bad(
            fmt::format("a block of {} lines, the first block has {}", block.size(), layout.size()),
            block.back().number);
      HMMJIT_TRY(append_block(block));
    }
  }

  // Reads the lines up to a blank line; none at the end of the input.
  Result<std::vector<Line>> read_block() {
    std::vector<Line> block;
    for (;;) {
      HMMJIT_ASSIGN(const bool more, next_line());
      if (!more || (is_blank(line_) && !block.empty())) return block;
      if (is_blank(line_) || (line_.starts_with('#') && !line_.starts_with("#="))) continue;
      std::string_view kind;
      for (const std::string_view each : {"#=RF", "#=MM", "#=CS", "#=SS", "#=SA"}) {
        if (line_.starts_with(each)) kind = each;
      }
      block.push_back({std::string(line_), line_number(), kind});
    }
  }

  Status check_annotation(const std::vector<std::string_view>& layout, const Line& line) const {
    if (line.kind.empty() || line.kind == "#=MM") return {};
    const bool of_row = line.kind == "#=SS" || line.kind == "#=SA";
    if (of_row && out_.rows.empty())
      return bad(fmt::format("{} must follow a sequence", line.kind), line.number);
    // #=SS and #=SA may be repeated after the next row.
    auto begin = layout.rbegin() + 1;
    const auto end = of_row ? std::find(begin, layout.rend(), "") : layout.rend();
    if (std::find(begin, end, line.kind) == end) return {};
    return bad(fmt::format("a second {} line", line.kind), line.number);
  }

  Status append_block(const std::vector<Line>& block) {
    constexpr std::size_t kNone = std::string::npos;
    const auto text_of = [](const Line& line) {
      std::string_view rest = line.text;
      take_word(&rest);
      return line.text.find_first_not_of(kBlanks, line.text.size() - rest.size());
    };
    std::size_t begin = kNone, end = 0;
    for (const Line& line : block) {
      if (text_of(line) == kNone) continue;
      begin = std::min(begin, text_of(line));
      end = std::max(end, trim_end(line.text).size());
    }
    if (begin == kNone) return {};
    const std::size_t columns = out_.rows.empty() ? 0 : out_.rows.front().codes.size();
    std::size_t row = 0;
    for (const Line& line : block) {
      const std::size_t first = std::min(text_of(line), end);  // end: no text
      const std::string_view text =
          first < end ? trim_end(std::string_view(line.text).substr(first)) : std::string_view();
      const std::size_t before = first - begin, after = end - first - text.size();
      if (line.kind.empty()) {
        AlignedRow& to = out_.rows[row++];
        to.codes.insert(to.codes.end(), before, gap_);
        HMMJIT_TRY(append(to, text, line.number, first));
        to.codes.insert(to.codes.end(), after, gap_);
        continue;
      }
      MultipleAlignment& kept = out_.annotation;
      std::string* to = line.kind == "#=RF"   ? &kept.rf
                        : line.kind == "#=MM" ? &kept.mm
                        : line.kind == "#=CS" ? &kept.cs
                                              : nullptr;
      if (to == nullptr) continue;
      to->resize(columns);  // the last of several #=MM lines of a block counts
      to->append(before, '.').append(text).append(after, '.');
    }
    return {};
  }
};

// PHYLIP: the numbers of rows and columns, then rows that begin with a name: of fixed width, or one
// word (width 0). A file may hold several alignments.
class PhylipParser final : public AlignmentParser {
 public:
  PhylipParser(BufferedInput& input, const Alphabet& alphabet, const RecognisedFormat& format,
               std::string_view model)
      : AlignmentParser(input, alphabet, format.format, model), name_width_(format.name_width) {}

 private:
  Result<bool> read() override {
    HMMJIT_ASSIGN(const bool more, next_line_with_text());
    if (!more) return false;
    std::string_view text = line_;
    const auto rows = parse_int(take_word(&text)), columns = parse_int(take_word(&text));
    if (!rows || !columns || *rows < 1 || *columns < 1)
      return bad("PHYLIP must start with the number of rows and of columns");
    const auto count = static_cast<std::size_t>(*rows), width = static_cast<std::size_t>(*columns);
    const bool interleaved = format_ == F::kPhylip;
    while (out_.rows.size() < count) {
      HMMJIT_TRY(named_line(interleaved && !out_.rows.empty()));
      while (!interleaved && out_.rows.back().codes.size() < width) {
        HMMJIT_TRY(continuation(out_.rows.back(), false));
      }
      if (interleaved) HMMJIT_TRY(equal_columns(out_.rows.back(), line_number()));
      HMMJIT_TRY(check(out_.rows.back(), width));
    }
    while (out_.rows.front().codes.size() < width) {
      for (std::size_t i = 0; i < out_.rows.size(); ++i) {
        HMMJIT_TRY(continuation(out_.rows[i], i > 0));
        HMMJIT_TRY(equal_columns(out_.rows[i], line_number()));
      }
      HMMJIT_TRY(check(out_.rows.front(), width));
    }
    return true;
  }

  Status check(const AlignedRow& row, std::size_t width) const {
    if (row.codes.size() <= width) return {};
    return bad(fmt::format("row {} has {} columns, the first line says {}", row.name,
                           row.codes.size(), width));
  }

  // Reads the next line of a block; blank lines are allowed only before its first line.
  Status block_line(bool in_block) {
    HMMJIT_ASSIGN(const bool more, in_block ? next_line() : next_line_with_text());
    if (!more) return truncated();
    if (is_blank(line_)) return bad("a blank line inside a block of rows");
    return {};
  }

  Status named_line(bool in_block) {
    HMMJIT_TRY(block_line(in_block));
    std::string_view text = line_;
    std::string name;
    if (name_width_ == 0) {
      name = take_word(&text);
    } else {
      if (text.size() < name_width_) return bad("the line is too short for a name");
      name = text.substr(0, name_width_);
      text.remove_prefix(name_width_);
    }
    if (std::ranges::any_of(name, [](char c) { return c < ' ' || c > '~'; }))
      return bad("a character in a name that PHYLIP does not allow");
    name = std::string(trim(name));
    if (name.empty()) return bad("a PHYLIP row without a name");
    std::ranges::replace(name, ' ', '_');  // target names contain no blanks
    return append(add_row(name), text);
  }

  Status continuation(AlignedRow& row, bool in_block) {
    HMMJIT_TRY(block_line(in_block));
    return append(row, line_);
  }

  std::size_t name_width_;
};

}  // namespace

std::unique_ptr<AlignmentParser> make_alignment_parser(BufferedInput& input,
                                                       const Alphabet& alphabet,
                                                       const RecognisedFormat& format,
                                                       std::string_view model) {
  switch (format.format) {
    case F::kA2m:
    case F::kAlignedFasta:
      return std::make_unique<AlignedFastaParser>(input, alphabet, format.format, model);
    case F::kPsiBlast:
    case F::kClustal:
    case F::kClustalLike:
      return std::make_unique<BlockParser>(input, alphabet, format.format, model);
    case F::kSelex:
      return std::make_unique<SelexParser>(input, alphabet, format.format, model);
    case F::kPhylip:
    case F::kPhylipSequential:
      return std::make_unique<PhylipParser>(input, alphabet, format, model);
    default:
      return std::make_unique<StockholmParser>(input, alphabet, format.format, model);
  }
}

}  // namespace hmmjit
