// FASTA. Translates residues by table, one vector at a time, and removes line ends.
#include <fmt/format.h>

#include <algorithm>

#include "io/sequence_parsing.hpp"
#include "io/translate.hpp"

namespace hmmjit::sequence_parsing {
namespace {

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

class FastaParser : public Parser {
 public:
  FastaParser(BufferedInput& input, const SequenceFormatOptions& options, bool file_header)
      : input_(input),
        alphabet_(options.alphabet),
        table_(classes(options)),
        lines_before_(options.lines_before),
        lines_(lines_before_),
        first_(file_header ? State::kFileHeader : State::kStart),
        state_(first_) {}

  void reset() override {
    chunk_ = {};
    position_ = 0;
    lines_ = lines_before_;
    state_ = first_;
    header_.clear();
  }

  Status read(TargetBlock& block, std::uint64_t residues, std::uint64_t targets) override {
    if (block.full(residues, targets)) return {};
    HMMJIT_ASSIGN(bool some, advance());
    if (some && block.size() == 0) {
      // Reserve: growth by doubling would copy every residue again. Unused pages are never touched.
      bool likely_all = chunk_.size() < kLikelyWhole;
      room_ = likely_all ? chunk_.size()
                         : static_cast<std::size_t>(std::min(residues, kReserve)) + kPiece;
      block.reserve(room_);
    } else {
      room_ = 0;  // unknown
    }
    while (true) {
      HMMJIT_ASSIGN(bool more, advance());
      if (!more) return finish(block);
      switch (state_) {
        case State::kFileHeader:
          HMMJIT_TRY(find_file_header());
          break;
        case State::kInFileHeader:
          skip_file_header();
          break;
        case State::kStart:
          HMMJIT_TRY(skip_to_first_record());
          break;
        case State::kHeader:
          HMMJIT_TRY(read_header(block));
          break;
        case State::kSequence: {
          Result<bool> ended = read_sequence(block);
          if (!ended) {
            block.abandon_target();
            return std::unexpected(ended.error());
          }
          if (!*ended) break;
          HMMJIT_TRY(end_target(block));
          state_ = State::kHeader;
          if (block.full(residues, targets)) return {};
          break;
        }
      }
    }
  }

 private:
  enum class State { kFileHeader, kInFileHeader, kStart, kHeader, kSequence };

  static std::array<std::uint8_t, 256> classes(const SequenceFormatOptions& options) {
    std::array<std::uint8_t, 256> table = unaligned_table(options);
    table['>'] = kSpecial;  // starts a record anywhere in a line
    return table;
  }

  // Makes unread bytes available; returns false at the end of the input.
  Result<bool> advance() {
    if (position_ < chunk_.size()) return true;
    lines_ += count_lines(chunk_.data(), chunk_.size(), line_end_);
    input_.skip(chunk_.size());
    position_ = 0;
    auto chunk = input_.peek();
    if (!chunk) {
      chunk_ = {};
      return std::unexpected(chunk.error());
    }
    chunk_ = *chunk;
    if (lines_ == 0) line_end_ = chunk_.contains('\n') ? '\n' : '\r';
    return !chunk_.empty();
  }

  // The position of the next unread byte.
  std::string where() const {
    return fmt::format("{}:{}", input_.name(),
                       lines_ + count_lines(chunk_.data(), position_, line_end_) + 1);
  }

  Status find_file_header() {
    while (position_ < chunk_.size() && is_space(chunk_[position_])) ++position_;
    if (position_ == chunk_.size()) return {};
    if (chunk_[position_] != '#') return no_file_header();
    state_ = State::kInFileHeader;
    return {};
  }

  std::unexpected<Error> no_file_header() const {
    return fail(ErrorCode::kInput, "an hmmpgmd file begins with a line that starts with #", where(),
                "if it is plain FASTA, state that format");
  }

  void skip_file_header() {
    const std::string_view rest = chunk_.substr(position_);
    const std::size_t end = find_line_end(rest.data(), rest.size());
    position_ += end;
    if (end < rest.size()) state_ = State::kStart;
  }

  Status skip_to_first_record() {
    while (position_ < chunk_.size() && is_space(chunk_[position_])) ++position_;
    if (position_ == chunk_.size()) return {};
    if (chunk_[position_] != '>') {
      return fail(ErrorCode::kInput,
                  fmt::format("FASTA must start with >, found \"{}\"",
                              chunk_[position_] >= ' ' && chunk_[position_] <= '~'
                                  ? chunk_.substr(position_, 1)
                                  : "?"),
                  where(), "check that this is a sequence file, or state its format");
    }
    ++position_;
    state_ = State::kHeader;
    return {};
  }

  // Reads header bytes up to the line end; begins the target once the line is complete.
  Status read_header(TargetBlock& block) {
    std::string_view piece = chunk_.substr(position_);
    std::size_t end = find_line_end(piece.data(), piece.size());
    bool whole = end < piece.size();
    piece = piece.substr(0, end);
    if (header_.size() + piece.size() > kLongestHeader) {
      const std::string_view begin = header_.empty() ? piece : std::string_view(header_);
      constexpr std::size_t kShown = 40;
      return fail(ErrorCode::kInput,
                  fmt::format("the line that begins record {} has more than {} bytes",
                              begin.substr(0, std::min(begin.find_first_of(" \t"), kShown)),
                              kLongestHeader),
                  where(), "check what made the file: it is damaged, or of another kind");
    }
    if (!whole) {
      header_.append(piece);
      position_ = chunk_.size();
      return {};
    }
    if (header_.empty()) {
      HMMJIT_TRY(begin_target(block, piece));
    } else {
      header_.append(piece);
      HMMJIT_TRY(begin_target(block, header_));
      header_.clear();
    }
    position_ += piece.size();  // the line end is skipped as white space of the sequence
    return {};
  }

  Status begin_target(TargetBlock& block, std::string_view line) {
    auto blank = [](char c) { return c == ' ' || c == '\t'; };
    std::size_t i = 0;
    while (i < line.size() && blank(line[i])) ++i;
    std::size_t start = i;
    while (i < line.size() && !is_space(line[i])) ++i;
    std::string_view name = line.substr(start, i - start);
    if (has_nul(line)) return nul_byte(where(), name);
    if (name.empty()) {
      return fail(ErrorCode::kInput, "no name after the > of a FASTA record", where(),
                  "give every record a name");
    }
    while (i < line.size() && blank(line[i])) ++i;
    std::string_view description = line.substr(i);
    // NCBI's nr joins the descriptions of identical sequences with control-A; the first counts.
    description = description.substr(0, description.find('\x01'));
    block.begin_target(name, {}, description);
    length_ = 0;
    state_ = State::kSequence;
    return {};
  }

  // Appends residues up to the next record (returns true) or the end of the chunk (false).
  Result<bool> read_sequence(TargetBlock& block) {
    while (position_ < chunk_.size()) {
      std::size_t n = std::min(chunk_.size() - position_, kPiece);
      std::size_t written = 0;
      std::size_t taken = translate(table_, chunk_.data() + position_, n, buffer_.data(), &written);
      if (written > 0) {
        length_ += written;
        if (length_ > kLongestTarget) return too_long(where(), begun_name(block));
        if (length_ <= longest_) {
          make_room(block);
          block.append({buffer_.data(), written});
        }
      }
      position_ += taken;
      if (taken < n) {
        if (chunk_[position_] != '>') {
          return illegal_character(where(), {}, chunk_[position_], alphabet_, model_);
        }
        ++position_;
        return true;
      }
    }
    return false;
  }

  // The name of the target being read.
  static std::string_view begun_name(const TargetBlock& block) {
    return block[block.size() - 1].name;
  }

  // Quadruples the memory of the block for an unexpectedly long target: copies are then few and
  // small, and unused pages are never touched.
  void make_room(TargetBlock& block) {
    const std::uint64_t others = block.residue_count() + block.size() + 1;
    const std::uint64_t needed = others + length_;
    if (needed <= room_) return;
    room_ = std::max(needed, std::min(4 * needed, others + longest_));
    block.reserve(room_ + kPiece);
  }

  Status end_target(TargetBlock& block) {
    if (length_ <= longest_) {
      block.end_target();
      return {};
    }
    auto error = does_not_fit(where(), begun_name(block), length_);
    block.abandon_target();
    return error;
  }

  Status finish(TargetBlock& block) {
    if (state_ == State::kFileHeader) return no_file_header();
    if (state_ == State::kHeader) {  // the file ends inside a header line
      std::string header = std::move(header_);
      header_.clear();
      HMMJIT_TRY(begin_target(block, header));
    }
    if (state_ == State::kSequence) HMMJIT_TRY(end_target(block));
    if (state_ != State::kInFileHeader) state_ = State::kStart;
    return {};
  }

  static constexpr std::size_t kPiece = 16384;
  static constexpr std::size_t kLikelyWhole = std::size_t{1} << 19;
  static constexpr std::uint64_t kReserve = std::uint64_t{1} << 26;

  BufferedInput& input_;
  const Alphabet& alphabet_;
  TranslationTable table_;
  std::array<Residue, kPiece + kTranslateSlack> buffer_;
  std::string_view chunk_;
  std::size_t position_ = 0;
  const std::uint64_t lines_before_;
  std::uint64_t lines_;  // line ends before chunk_
  char line_end_ = '\n';
  State first_;              // initial state of every pass
  State state_;
  std::string header_;  // start of a header line that continues in the next chunk
  std::uint64_t length_ = 0;
  std::uint64_t room_ = 0;  // residues that the block has memory for
};

}  // namespace

std::unique_ptr<Parser> make_fasta_parser(BufferedInput& input,
                                          const SequenceFormatOptions& options, bool file_header) {
  return std::make_unique<FastaParser>(input, options, file_header);
}

}  // namespace hmmjit::sequence_parsing
