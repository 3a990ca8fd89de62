#include "search/fasta_pieces.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/read_only_file.hpp"
#include "io/translate.hpp"

namespace hmmjit {
namespace {

// Sixteen readers of 0.5 GB/s each are faster than a disk.
constexpr std::size_t kMostAhead = 16;

// The offset of the first > that begins a line, from `at` > 0 to before `end`; `end` if there is
// none.
Result<std::uint64_t> first_record(const ReadOnlyFile& file, std::uint64_t at, std::uint64_t end) {
  std::array<char, 16384> buffer;
  for (std::uint64_t from = at - 1; from + 1 < end; from += buffer.size() - 1) {
    const std::size_t n = std::min<std::uint64_t>(buffer.size(), end - from);
    HMMJIT_TRY(file.read(from, std::span(buffer).first(n)));
    const std::size_t found = std::string_view(buffer.data(), n).find("\n>");
    if (found != std::string_view::npos) return from + found + 1;
  }
  return end;
}

// Piece k has the records that begin in bytes [0, piece_bytes) from `begin` + k * piece_bytes on. A
// header is one line, so that a > which begins a line always begins a record.
class FastaPieces final : public TargetSource {
 public:
  FastaPieces(std::shared_ptr<const ReadOnlyFile> file, std::string path,
              const SequenceFormatOptions& options, std::uint64_t smallest_piece)
      : file_(std::move(file)),
        path_(std::move(path)),
        options_(options),
        smallest_piece_(smallest_piece) {
    options_.format = SequenceFormat::kFasta;
  }

  Result<bool> next(TargetBlock& block, std::size_t residues) override {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (started_ == taken_ && residues != block_residues_) plan(residues);
      if (taken_ == pieces_) break;
      Piece& piece = ring_[taken_ % ring_.size()];
      if (started_ == taken_) {
        make_one(lock);
      } else if (!piece.made) {
        changed_.wait(lock);
      } else if (piece.thrown != nullptr) {
        std::rethrow_exception(piece.thrown);
      } else if (!piece.blocks.empty()) {
        block = std::move(piece.blocks.front());
        piece.blocks.pop_front();
        ready_bytes_ -= block.bytes();
        block.set_first_index(targets_read_);
        targets_read_ += block.size();
        if (piece.blocks.empty() && !piece.error) release(piece);
        return true;
      } else if (piece.error) {
        const std::size_t failed = taken_;
        Error error = *std::move(piece.error);
        lock.unlock();
        return std::unexpected(with_line(failed, std::move(error)));
      } else {
        release(piece);
      }
    }
    if (!file_->has_size())
      return fail(ErrorCode::kInput, "the file changed while it was read", path_,
                  "do not change files that are in use");
    return false;
  }

  bool read_ahead() override {
    std::unique_lock lock(mutex_);
    if (room() == 0) return false;
    make_one(lock);
    return room() > 0;
  }
  int read_ahead_threads() const override {
    const std::scoped_lock lock(mutex_);
    return ring_.size() > 1 ? static_cast<int>(making_ + room()) : 0;
  }
  Status rewind() override {
    std::unique_lock lock(mutex_);
    while (making_ > 0) changed_.wait(lock);
    begin_ = taken_ = started_ = pieces_ = block_residues_ = 0;
    targets_read_ = ready_bytes_ = 0;
    return {};
  }
  bool rewindable() const override { return true; }
  void limit_targets(std::uint64_t residues) override { longest_ = residues; }
  void limit_ahead(std::uint64_t bytes) override { most_ahead_ = bytes; }
  std::uint64_t bytes_read() const override {
    return std::min(begin_ + taken_ * piece_bytes_, file_->size());
  }
  std::uint64_t bytes_total() const override { return file_->size(); }

 private:
  struct Piece {
    bool made = false;
    std::deque<TargetBlock> blocks = {};
    std::optional<Error> error = std::nullopt;  // after these blocks
    std::exception_ptr thrown = nullptr;
  };

  // Lays out the pieces of the rest of the file for blocks of so many residues.
  void plan(std::size_t residues) {
    begin_ = bytes_read();
    taken_ = started_ = 0;
    block_residues_ = residues;
    piece_bytes_ = std::max<std::uint64_t>(residues, smallest_piece_);
    pieces_ = (file_->size() - begin_ + piece_bytes_ - 1) / piece_bytes_;
    ring_ = std::vector<Piece>(std::clamp<std::uint64_t>(
        most_ahead_ / (2 * piece_bytes_), 1, std::clamp<std::uint64_t>(pieces_, 1, kMostAhead)));
  }
  void release(Piece& piece) {
    piece = {};
    ++taken_;
  }
  // For pieces. One of short targets takes several times its bytes.
  std::size_t room() const {
    return ready_bytes_ < most_ahead_ ? std::min(pieces_, taken_ + ring_.size()) - started_ : 0;
  }

  // Parses the next piece with the lock released.
  void make_one(std::unique_lock<std::mutex>& lock) {
    Piece made;  // may throw: no piece has been begun yet
    const std::size_t k = started_++;
    ++making_;
    lock.unlock();
    try {
      if (Status status = parse(k, 0, made.blocks); !status) made.error = std::move(status).error();
    } catch (...) {
      made.blocks.clear();
      made.thrown = std::current_exception();
    }
    made.made = true;
    lock.lock();
    for (const TargetBlock& block : made.blocks) ready_bytes_ += block.bytes();
    ring_[k % ring_.size()] = std::move(made);
    --making_;
    changed_.notify_all();
  }

  // `lines_before`: line ends before the piece, for the positions of errors.
  Status parse(std::size_t k, std::uint64_t lines_before, std::deque<TargetBlock>& blocks) const {
    HMMJIT_ASSIGN(const auto range, range_of(k));
    if (range.first == range.second) return {};
    SequenceFormatOptions options = options_;
    options.lines_before = lines_before;
    HMMJIT_ASSIGN(
        SequenceReader reader,
        SequenceReader::open(file_range(file_, path_, range.first, range.second), options));
    reader.limit_targets(longest_);
    for (;;) {
      TargetBlock block;
      HMMJIT_ASSIGN(const bool more, reader.read_block(block, block_residues_));
      if (!more) return {};
      block.finish();
      blocks.push_back(std::move(block));
    }
  }

  // The bytes of the records that begin in piece k.
  Result<std::pair<std::uint64_t, std::uint64_t>> range_of(std::size_t k) const {
    const std::uint64_t begin = begin_ + k * piece_bytes_;
    const std::uint64_t end = std::min(begin + piece_bytes_, file_->size());
    HMMJIT_ASSIGN(const std::uint64_t first, begin == 0 ? 0 : first_record(*file_, begin, end));
    if (first == end) return std::pair(end, end);
    HMMJIT_ASSIGN(const std::uint64_t last, first_record(*file_, end, file_->size()));
    return std::pair(first, last);
  }

  // The error of piece k, whose line counts from the start of the piece, as of the whole file.
  Error with_line(std::size_t k, Error error) const {
    const auto range = range_of(k);
    if (!range) return error;
    std::string buffer;
    std::uint64_t lines = 0;
    for (std::uint64_t at = 0; at < range->first; at += buffer.size()) {
      buffer.resize(std::min<std::uint64_t>(range->first - at, std::uint64_t{1} << 20));
      if (!file_->read(at, buffer)) return error;
      lines += sequence_parsing::count_lines(buffer.data(), buffer.size(), '\n');
    }
    std::deque<TargetBlock> blocks;
    Status again = parse(k, lines, blocks);
    return again ? error : std::move(again).error();
  }

  const std::shared_ptr<const ReadOnlyFile> file_;
  const std::string path_;
  SequenceFormatOptions options_;
  const std::uint64_t smallest_piece_;
  std::uint64_t longest_ = ~std::uint64_t{0}, most_ahead_ = std::uint64_t{1} << 27;
  // The plan. Changes only while no piece is being made.
  std::size_t block_residues_ = 0, pieces_ = 0;
  std::uint64_t begin_ = 0, piece_bytes_ = 0;

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::vector<Piece> ring_;  // of the pieces from `taken_` to before `started_`
  std::size_t taken_ = 0, started_ = 0, making_ = 0;
  std::uint64_t targets_read_ = 0, ready_bytes_ = 0;
};

}  // namespace

Result<std::unique_ptr<TargetSource>> open_fasta_pieces(const std::string& path,
                                                        const SequenceFormatOptions& options,
                                                        std::uint64_t smallest_piece) {
  HMMJIT_ASSIGN(ReadOnlyFile file, ReadOnlyFile::open(path));
  const std::uint64_t head = std::min(file.size(), std::uint64_t{1} << 20);
  HMMJIT_ASSIGN(const std::uint64_t second, first_record(file, 1, head));
  if (file.size() < 2 * smallest_piece || second == head) return nullptr;
  return std::make_unique<FastaPieces>(std::make_shared<const ReadOnlyFile>(std::move(file)), path,
                                       options, smallest_piece);
}

}  // namespace hmmjit
