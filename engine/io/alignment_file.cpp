#include "io/alignment_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/numbers.hpp"

namespace hmmjit {
namespace {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

bool is_blank(std::string_view line) { return line.find_first_not_of(kBlanks) == line.npos; }

std::string_view trim(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  const std::size_t last = text.find_last_not_of(kBlanks);
  return text.substr(0, last == text.npos ? 0 : last + 1);
}

std::string_view take_word(std::string_view* text) {
  text->remove_prefix(std::min(text->find_first_not_of(kBlanks), text->size()));
  const std::string_view word = text->substr(0, text->find_first_of(kBlanks));
  text->remove_prefix(word.size());
  return word;
}

bool is_letter(char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }

// An alignment as text, before its alphabet is known.
struct TextAlignment {
  MultipleAlignment kept;  // all but the residues
  std::vector<std::string> rows;
  std::vector<std::optional<double>> weights;

  std::size_t add_row(std::string_view name) {
    kept.row_names.emplace_back(name);
    rows.emplace_back();
    weights.emplace_back();
    return rows.size() - 1;
  }
};

// How often each letter occurs decides between protein, DNA and RNA; the rules are HMMER's.
class AlphabetGuess {
 public:
  void add(std::string_view text) {
    for (const char c : text) {
      if (!is_letter(c)) continue;
      ++counts_[static_cast<std::size_t>(upper(c) - 'A')];
      ++total_;
    }
  }
  // Null where the letters do not tell.
  const Alphabet* decide() const {
    if (total_ <= 10) return nullptr;
    const auto count = [&](std::string_view letters) {
      std::uint64_t sum = 0;
      for (const char c : letters) sum += counts_[static_cast<std::size_t>(c - 'A')];
      return sum;
    };
    const auto kinds = [&](std::string_view letters) {
      return std::ranges::count_if(
          letters, [&](char c) { return counts_[static_cast<std::size_t>(c - 'A')] > 0; });
    };
    if (count("EFIJLOPQZ") > 0) return &amino_alphabet();
    const auto almost_all = [&](std::uint64_t n) {
      return static_cast<double>(n) >= 0.98 * static_cast<double>(total_);
    };
    if (almost_all(count("ACGTN")) && kinds("ACGT") == 4) return &dna_alphabet();
    if (almost_all(count("ACGUN")) && kinds("ACGU") == 4) return &rna_alphabet();
    if (count("DHKMRSVWY") > count("ACG") && kinds("ACGDHKMRSVWYNTX") >= 15 - 2)
      return &amino_alphabet();
    return nullptr;
  }

 private:
  std::array<std::uint64_t, 26> counts_{};
  std::uint64_t total_ = 0;
};

}  // namespace

struct AlignmentReader::State {
  explicit State(std::unique_ptr<ByteSource> source) : input(std::move(source)) {}

  BufferedInput input;
  SequenceFormat format = SequenceFormat::kStockholm;
  const Alphabet* alphabet = nullptr;
  bool ended = false;

  std::unexpected<Error> bad(std::string message) const {
    return fail(ErrorCode::kInput, std::move(message), input.where(),
                "correct the alignment, or name its format with --informat");
  }
  Result<bool> line_with_text(std::string_view* text) {
    do {
      HMMJIT_ASSIGN(const bool more, input.line(text));
      if (!more) return false;
    } while (is_blank(*text));
    return true;
  }

  Result<bool> read(TextAlignment& alignment) {
    if (ended) return false;
    switch (format) {
      case SequenceFormat::kStockholm:
      case SequenceFormat::kPfam:
        return read_stockholm(alignment);
      case SequenceFormat::kA2m:
      case SequenceFormat::kAlignedFasta:
        return read_fasta(alignment);
      case SequenceFormat::kPhylip:
      case SequenceFormat::kPhylipSequential:
        return read_phylip(alignment);
      default:
        return read_blocks(alignment);
    }
  }

  // ---- Stockholm ------------------------------------------------------------------------------

  Result<bool> read_stockholm(TextAlignment& alignment) {
    std::string_view text;
    HMMJIT_ASSIGN(const bool more, line_with_text(&text));
    if (!more) return false;
    if (!text.starts_with("# STOCKHOLM 1."))
      return bad("an alignment must start with the line \"# STOCKHOLM 1.0\"");
    std::unordered_map<std::string, std::size_t> index;
    std::vector<std::size_t> block_of;
    std::size_t block = 1, in_block = 0;
    const auto row_named = [&](std::string_view name) {
      const auto [it, added] = index.try_emplace(std::string(name), alignment.rows.size());
      if (added) alignment.add_row(name);
      return it->second;
    };
    for (;;) {
      HMMJIT_ASSIGN(const bool got, input.line(&text));
      if (!got)
        return fail(ErrorCode::kInput, "the file ends inside an alignment", input.where(),
                    "the file is truncated: fetch or write it again");
      if (is_blank(text)) {
        if (in_block > 0) ++block;
        in_block = 0;
        continue;
      }
      text.remove_prefix(text.find_first_not_of(kBlanks));
      if (text.starts_with("//")) break;
      if (text.starts_with("#=GF")) {
        HMMJIT_TRY(file_annotation(alignment.kept, text.substr(4)));
      } else if (text.starts_with("#=GC")) {
        text.remove_prefix(4);
        const std::string_view tag = take_word(&text);
        if (std::string* line = column_annotation(alignment.kept, tag)) *line += trim(text);
      } else if (text.starts_with("#=GS")) {
        text.remove_prefix(4);
        const std::string_view name = take_word(&text), tag = take_word(&text);
        if (tag.empty()) return bad("a #=GS line needs a sequence name and a tag");
        const std::size_t row = row_named(name);
        if (tag != "WT") continue;
        const auto weight = parse_real(trim(text));
        if (!weight || !(*weight >= 0)) return bad(fmt::format("unusable weight of row {}", name));
        alignment.weights[row] = weight;
      } else if (text.front() != '#') {
        const std::string_view name = take_word(&text), aligned = take_word(&text);
        if (aligned.empty()) return bad(fmt::format("row {} has no sequence text", name));
        if (!is_blank(text)) return bad(fmt::format("row {} has text after its sequence", name));
        const std::size_t row = row_named(name);
        block_of.resize(alignment.rows.size(), 0);
        if (block_of[row] == block)
          return bad(fmt::format("row {} stands twice in one block", name));
        block_of[row] = block;
        ++in_block;
        alignment.rows[row] += aligned;
      }
    }
    if (alignment.rows.empty()) return bad("an alignment without rows");
    return true;
  }

  Status file_annotation(MultipleAlignment& kept, std::string_view text) const {
    const std::string_view tag = take_word(&text), value = trim(text);
    if (tag == "ID") kept.name = value.substr(0, value.find_first_of(kBlanks));
    if (tag == "AC") kept.accession = value.substr(0, value.find_first_of(kBlanks));
    if (tag == "DE") {  // blanks at its end are kept, as summaries show it
      text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
      kept.description = text.substr(0, text.find_last_not_of("\r\n") + 1);
    }
    std::optional<Cutoff>* cutoff = tag == "GA"   ? &kept.ga
                                    : tag == "TC" ? &kept.tc
                                    : tag == "NC" ? &kept.nc
                                                  : nullptr;
    if (cutoff == nullptr) return {};
    std::string_view rest = value;
    const auto number = [&]() -> std::optional<float> {
      std::string_view word = take_word(&rest);
      if (word.ends_with(';')) word.remove_suffix(1);
      const auto parsed = parse_real(word);
      return parsed ? std::optional(static_cast<float>(*parsed)) : std::nullopt;
    };
    const auto sequence = number();
    if (!sequence) return bad(fmt::format("unusable cutoff in #=GF {}", tag));
    *cutoff = Cutoff{*sequence, number().value_or(-99999.0f)};
    return {};
  }

  static std::string* column_annotation(MultipleAlignment& kept, std::string_view tag) {
    if (tag == "RF") return &kept.rf;
    if (tag == "MM") return &kept.mm;
    if (tag == "SS_cons") return &kept.cs;
    if (tag == "SA_cons") return &kept.sa;
    return nullptr;
  }

  // ---- Aligned FASTA and A2M ------------------------------------------------------------------

  Result<bool> read_fasta(TextAlignment& alignment) {
    ended = true;
    std::string_view text;
    for (;;) {
      HMMJIT_ASSIGN(const bool more, input.line(&text));
      if (!more) break;
      if (is_blank(text)) continue;
      const std::size_t begin = text.find_first_not_of(kBlanks);
      if (text[begin] == '>') {
        text.remove_prefix(begin + 1);
        const std::string_view name = take_word(&text);
        if (name.empty()) return bad("no name after the > of an alignment row");
        alignment.add_row(name);
        continue;
      }
      if (alignment.rows.empty()) return bad("an alignment row must start with >");
      for (const char c : text) {
        if (kBlanks.find(c) == kBlanks.npos) alignment.rows.back() += c;
      }
    }
    if (alignment.rows.empty()) return false;
    if (format == SequenceFormat::kA2m) HMMJIT_TRY(pad_a2m(alignment));
    return true;
  }

  // In A2M only upper case and '-' stand in columns of their own; what lies between is made as wide
  // as its longest. 'O' stands for a free insertion module.
  Status pad_a2m(TextAlignment& alignment) {
    std::vector<std::size_t> widest;
    const auto is_column = [](char c) { return is_upper(c) || c == '-'; };
    for (std::size_t r = 0; r < alignment.rows.size(); ++r) {
      std::string& row = alignment.rows[r];
      std::erase_if(row, [](char c) { return c == '.' || c == 'O' || c == 'o'; });
      if (row.find_first_of("_*~") != row.npos)
        return bad(fmt::format("row {} has a character that A2M does not know", r + 1));
      std::vector<std::size_t> width(1, 0);
      for (const char c : row) {
        if (is_column(c))
          width.push_back(0);
        else
          ++width.back();
      }
      if (r == 0) widest.assign(width.size(), 0);
      if (width.size() != widest.size())
        return bad(fmt::format("row {} has {} consensus columns, row {} has {}",
                               alignment.kept.row_names[r], width.size() - 1,
                               alignment.kept.row_names[0], widest.size() - 1));
      for (std::size_t k = 0; k < width.size(); ++k) widest[k] = std::max(widest[k], width[k]);
    }
    for (std::string& row : alignment.rows) {
      std::string padded;
      std::size_t k = 0, run = 0;
      const auto fill = [&] { padded.append(widest[k] - run, '.'); };
      for (const char c : row) {
        if (is_column(c)) {
          fill();
          ++k;
          run = 0;
        } else {
          ++run;
        }
        padded += c;
      }
      fill();
      row = std::move(padded);
    }
    for (std::size_t k = 0; k < widest.size(); ++k) {
      if (k > 0) alignment.kept.rf += 'x';
      alignment.kept.rf.append(widest[k], '.');
    }
    return {};
  }

  // ---- Clustal, PSI-BLAST, SELEX --------------------------------------------------------------

  Result<bool> read_blocks(TextAlignment& alignment) {
    ended = true;
    const bool clustal =
        format == SequenceFormat::kClustal || format == SequenceFormat::kClustalLike;
    const bool selex = format == SequenceFormat::kSelex;
    std::string_view text;
    if (clustal) {
      HMMJIT_ASSIGN(const bool more, line_with_text(&text));
      if (!more) return false;
      const bool header = format == SequenceFormat::kClustal
                              ? text.starts_with("CLUSTAL")
                              : text.find("multiple sequence alignment") != text.npos;
      if (!header) return bad("the header line of the Clustal format is missing");
    }
    std::size_t in_block = 0;
    bool first_block = true;
    std::vector<std::string> lines;  // of a SELEX block, whose columns begin where its text does
    const auto end_block = [&]() -> Status {
      if (in_block == 0) return {};
      if (in_block != alignment.rows.size())
        return bad(fmt::format("a block has {} rows, the first block has {}", in_block,
                               alignment.rows.size()));
      if (selex) HMMJIT_TRY(add_selex_block(alignment, lines));
      lines.clear();
      first_block = false;
      in_block = 0;
      return {};
    };
    for (;;) {
      HMMJIT_ASSIGN(const bool more, input.line(&text));
      const bool conservation =
          more && clustal && text.find_first_not_of(" .:*\t\r\n") == text.npos;
      if (!more || is_blank(text) || conservation) {
        HMMJIT_TRY(end_block());
        if (!more) break;
        continue;
      }
      if (text.ends_with('\r')) text.remove_suffix(1);
      if (selex && text.front() == '#') {
        if (text.starts_with("#=")) lines.emplace_back(text);
        continue;
      }
      const std::string line(text);
      const std::string_view name = take_word(&text);
      if (first_block) {
        alignment.add_row(name);
      } else if (in_block >= alignment.rows.size() || alignment.kept.row_names[in_block] != name) {
        return bad(
            fmt::format("row {} was not expected here: the blocks name different rows", name));
      }
      if (selex) {
        lines.push_back(line);
        ++in_block;
        continue;
      }
      const std::string_view aligned = take_word(&text);
      if (aligned.empty()) return bad(fmt::format("row {} has no sequence text", name));
      if (clustal) take_word(&text);  // residue count at the line's end
      if (!is_blank(text)) return bad(fmt::format("row {} has text after its sequence", name));
      if (format == SequenceFormat::kPsiBlast && aligned.find_first_of("._*~") != aligned.npos)
        return bad(fmt::format("row {} has a character that PSI-BLAST does not know", name));
      alignment.rows[in_block++] += aligned;
    }
    // PSI-BLAST tells consensus columns by upper case.
    if (format == SequenceFormat::kPsiBlast && !alignment.rows.empty()) {
      alignment.kept.rf.assign(alignment.rows.front().size(), 'x');
      for (const std::string& row : alignment.rows) {
        for (std::size_t c = 0; c < std::min(row.size(), alignment.kept.rf.size()); ++c) {
          if (row[c] >= 'a' && row[c] <= 'z') alignment.kept.rf[c] = '.';
        }
      }
    }
    return !alignment.rows.empty();
  }

  // Rows and annotation lines of one block; blanks are gaps, also before and after the text.
  Status add_selex_block(TextAlignment& alignment, const std::vector<std::string>& lines) {
    std::size_t begin = std::string::npos, end = 0;
    for (const std::string& line : lines) {
      const std::size_t name_end = line.find_first_of(kBlanks);
      if (name_end == line.npos) continue;
      const std::size_t first = line.find_first_not_of(kBlanks, name_end);
      if (first == line.npos) continue;
      begin = std::min(begin, first);
      end = std::max(end, line.find_last_not_of(kBlanks) + 1);
    }
    if (begin == std::string::npos) return bad("a block of SELEX without aligned text");
    std::size_t row = 0;
    for (const std::string& line : lines) {
      std::string text = line.size() > begin ? line.substr(begin, end - begin) : std::string();
      text.resize(end - begin, ' ');
      if (!line.starts_with("#=")) {
        std::ranges::replace(text, ' ', '.');
        alignment.rows[row++] += text;
      } else if (line.starts_with("#=RF")) {
        std::ranges::replace(text, ' ', '.');
        alignment.kept.rf += text;
      } else if (line.starts_with("#=CS")) {
        std::ranges::replace(text, ' ', '.');
        alignment.kept.cs += text;
      } else if (line.starts_with("#=MM")) {
        std::ranges::replace(text, ' ', '.');
        alignment.kept.mm += text;
      }
    }
    return {};
  }

  // ---- PHYLIP ---------------------------------------------------------------------------------

  Result<bool> read_phylip(TextAlignment& alignment) {
    ended = true;
    constexpr std::size_t kNameWidth = 10;
    std::string_view text;
    HMMJIT_ASSIGN(const bool more, line_with_text(&text));
    if (!more) return false;
    const auto rows = parse_int(take_word(&text)), columns = parse_int(take_word(&text));
    if (!rows || !columns || *rows < 1 || *columns < 1)
      return bad("PHYLIP must start with the number of rows and of columns");
    const auto width = static_cast<std::size_t>(*columns);
    const auto append = [&](std::size_t row, std::string_view part) -> Status {
      for (const char c : part) {
        if (kBlanks.find(c) != kBlanks.npos || (c >= '0' && c <= '9')) continue;
        alignment.rows[row] += c == '?' ? '~' : c;
      }
      if (alignment.rows[row].size() > width)
        return bad(fmt::format("row {} has more than {} columns", row + 1, width));
      return {};
    };
    const auto next_line = [&]() -> Status {
      HMMJIT_ASSIGN(const bool got, line_with_text(&text));
      if (got) return {};
      return fail(ErrorCode::kInput, "the file ends inside an alignment", input.where(),
                  "the file is truncated: fetch or write it again");
    };
    while (alignment.rows.size() < static_cast<std::size_t>(*rows)) {
      HMMJIT_TRY(next_line());
      std::string name(trim(text.substr(0, kNameWidth)));
      if (name.empty()) return bad("a PHYLIP row without a name");
      std::ranges::replace(name, ' ', '_');
      const std::size_t row = alignment.add_row(name);
      text.remove_prefix(std::min(kNameWidth, text.size()));
      HMMJIT_TRY(append(row, text));
      while (format == SequenceFormat::kPhylipSequential && alignment.rows[row].size() < width) {
        HMMJIT_TRY(next_line());
        HMMJIT_TRY(append(row, text));
      }
    }
    while (alignment.rows.front().size() < width) {
      for (std::size_t row = 0; row < alignment.rows.size(); ++row) {
        HMMJIT_TRY(next_line());
        HMMJIT_TRY(append(row, text));
      }
    }
    return true;
  }

  // ---- Text to codes --------------------------------------------------------------------------

  Result<MultipleAlignment> digitise(TextAlignment text) {
    MultipleAlignment alignment = std::move(text.kept);
    alignment.columns = text.rows.front().size();
    for (std::size_t r = 0; r < text.rows.size(); ++r) {
      if (text.rows[r].size() != alignment.columns)
        return bad(fmt::format("row {} has {} columns, row {} has {}", alignment.row_names[r],
                               text.rows[r].size(), alignment.row_names[0], alignment.columns));
    }
    for (const auto& [line, what] :
         {std::pair(&alignment.rf, "RF"), std::pair(&alignment.mm, "MM"),
          std::pair(&alignment.cs, "SS_cons"), std::pair(&alignment.sa, "SA_cons")}) {
      if (!line->empty() && line->size() != alignment.columns)
        return bad(fmt::format("the {} line has {} columns, the rows have {}", what, line->size(),
                               alignment.columns));
    }
    if (alphabet == nullptr) {
      AlphabetGuess guess;
      for (const std::string& row : text.rows) guess.add(row);
      alphabet = guess.decide();
      if (alphabet == nullptr)
        return fail(ErrorCode::kInput,
                    "the letters do not tell whether this is protein, DNA or RNA", input.name(),
                    "say --amino if it is protein");
    }
    alignment.alphabet = alphabet;
    alignment.residues.reserve(text.rows.size() * alignment.columns);
    for (std::size_t r = 0; r < text.rows.size(); ++r) {
      for (const char c : text.rows[r]) {
        const Residue code = alphabet->digit[static_cast<unsigned char>(c)];
        if (code == kInvalidCode)
          return bad(fmt::format(
              "illegal character {} in row {}",
              c > ' ' && c < 0x7f ? std::string(1, c)
                                  : fmt::format("(byte 0x{:02x})", static_cast<unsigned char>(c)),
              alignment.row_names[r]));
        alignment.residues.push_back(code);
      }
      text.rows[r] = {};
    }
    if (std::ranges::any_of(text.weights, [](const auto& w) { return w.has_value(); })) {
      for (const auto& weight : text.weights) alignment.weights.push_back(weight.value_or(1.0));
    }
    return alignment;
  }
};

namespace {

std::optional<SequenceFormat> recognise(std::string_view name, std::string_view head) {
  for (const std::string_view suffix : {".gz", ".zst"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  std::string_view line;
  while (!head.empty() && is_blank(line)) {
    line = head.substr(0, head.find('\n'));
    head.remove_prefix(std::min(line.size() + 1, head.size()));
  }
  if (is_blank(line)) return std::nullopt;
  if (line.starts_with("# STOCKHOLM")) return SequenceFormat::kStockholm;
  if (trim(line).starts_with(">"))
    return name.ends_with(".a2m") ? SequenceFormat::kA2m : SequenceFormat::kAlignedFasta;
  if (line.starts_with("CLUSTAL")) return SequenceFormat::kClustal;
  if (line.find("multiple sequence alignment") != line.npos) return SequenceFormat::kClustalLike;
  std::string_view rest = line;
  const auto rows = parse_int(take_word(&rest)), columns = parse_int(take_word(&rest));
  if (rows && columns && is_blank(rest))
    return name.ends_with(".phys") ? SequenceFormat::kPhylipSequential : SequenceFormat::kPhylip;
  if (name.ends_with(".pb")) return SequenceFormat::kPsiBlast;
  // A comment, or a name and a run of aligned text.
  if (line.starts_with("#")) return SequenceFormat::kSelex;
  rest = line;
  take_word(&rest);
  const std::string_view aligned = trim(rest);
  const bool text = !aligned.empty() && std::ranges::all_of(aligned, [](char c) {
    return is_letter(c) || std::string_view("-_.~* ").find(c) != std::string_view::npos;
  });
  if (text) return SequenceFormat::kSelex;
  return std::nullopt;
}

}  // namespace

AlignmentReader::AlignmentReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
AlignmentReader::AlignmentReader(AlignmentReader&&) noexcept = default;
AlignmentReader& AlignmentReader::operator=(AlignmentReader&&) noexcept = default;
AlignmentReader::~AlignmentReader() = default;

Result<AlignmentReader> AlignmentReader::open(const std::string& path,
                                              const AlignmentFileOptions& options) {
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path));
  return open(std::move(source), options);
}

Result<AlignmentReader> AlignmentReader::open(std::unique_ptr<ByteSource> source,
                                              const AlignmentFileOptions& options) {
  auto state = std::make_unique<State>(std::move(source));
  state->alphabet = options.alphabet;
  std::optional<SequenceFormat> format = options.format;
  if (!format) {
    HMMJIT_ASSIGN(const std::string_view head, state->input.peek());
    format = recognise(state->input.name(), head);
  }
  if (!format)
    return fail(ErrorCode::kInput, "the alignment file is empty or in no known format",
                state->input.name(), "check the file, or name its format with --informat");
  switch (*format) {
    case SequenceFormat::kFasta:
    case SequenceFormat::kHmmpgmd:
    case SequenceFormat::kEmbl:
    case SequenceFormat::kGenbank:
      return fail(ErrorCode::kUsage,
                  fmt::format("{} is no alignment format", sequence_format_name(*format)),
                  "--informat", "use stockholm, afa, a2m, clustal, psiblast, selex or phylip");
    default:
      state->format = *format;
  }
  return AlignmentReader(std::move(state));
}

Result<std::optional<MultipleAlignment>> AlignmentReader::next() {
  TextAlignment text;
  HMMJIT_ASSIGN(const bool more, state_->read(text));
  if (!more) return std::nullopt;
  HMMJIT_ASSIGN(MultipleAlignment alignment, state_->digitise(std::move(text)));
  return alignment;
}

const std::string& AlignmentReader::name() const { return state_->input.name(); }

}  // namespace hmmjit
