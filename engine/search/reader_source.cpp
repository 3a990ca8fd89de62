#include "search/reader_source.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/mutex.hpp"
#include "io/byte_source.hpp"
#include "search/fasta_pieces.hpp"

namespace hmmjit {
namespace {

class ReaderTargets final : public TargetSource {
 public:
  ReaderTargets(SequenceReader reader, std::uint64_t total)
      : reader_(std::move(reader)), total_(total) {}
  Result<bool> next(TargetBlock& block, std::size_t residues) override {
    HMMJIT_ASSIGN(const bool more, reader_.read_block(block, residues));
    // Every pass ends where the first one did, and not before one that stopped early.
    if ((complete_ && bytes_read() > most_read_) || (!more && bytes_read() < most_read_))
      return fail(ErrorCode::kInput, "the file changed while it was read", reader_.name(),
                  "do not change files that are in use");
    most_read_ = std::max(most_read_, bytes_read());
    complete_ |= !more;
    return more;
  }
  Status rewind() override { return reader_.rewind(); }
  bool rewindable() const override { return reader_.source().rewindable(); }
  bool read_ahead() override { return reader_.source().decode_ahead(); }
  int read_ahead_threads() const override {
    return reader_.source().compression() != Compression::kNone ? 1 : 0;
  }
  void limit_targets(std::uint64_t residues) override { reader_.limit_targets(residues); }
  std::uint64_t bytes_read() const override { return reader_.bytes_read(); }
  std::uint64_t bytes_total() const override { return total_; }

 private:
  SequenceReader reader_;
  std::uint64_t total_;
  std::uint64_t most_read_ = 0;  // in any pass
  bool complete_ = false;        // a pass reached the end
};

// A target database that many searches read. Keeps the blocks that they have read. Thread-safe.
class ResidentDatabase final : public ResidentTargets,
                               public std::enable_shared_from_this<ResidentDatabase> {
 public:
  // `memory`: bytes of the entries that are kept; 0: no bound.
  ResidentDatabase(std::shared_ptr<const TargetDatabase> database, std::uint64_t memory)
      : database_(std::move(database)), memory_(memory) {}
  std::unique_ptr<TargetSource> open() const override;
  std::uint64_t bytes() const override {
    const std::uint64_t all = database_->summary().targets * sizeof(TargetEntry);
    return memory_ > 0 ? std::min(memory_, all) : all;
  }

  struct Place {
    TargetBlock block;
    std::uint64_t bytes_read = 0;  // up to its end
  };
  std::optional<Place> at(std::size_t index) const {
    const MutexLock lock(mutex_);
    return index < blocks_.size() ? std::optional(blocks_[index]) : std::nullopt;
  }
  void keep(std::size_t index, const Place& place) const {
    const std::uint64_t bytes = place.block.size() * sizeof(TargetEntry);
    const MutexLock lock(mutex_);
    if (index != blocks_.size() || (memory_ > 0 && kept_ + bytes > memory_)) return;
    kept_ += bytes;
    blocks_.push_back(place);
  }
  std::uint64_t block_residues() const {
    return block_residues_of(database_->summary().file_bytes);
  }

 private:
  const std::shared_ptr<const TargetDatabase> database_;
  const std::uint64_t memory_;
  mutable Mutex mutex_;
  mutable std::vector<Place> blocks_ HMMJIT_GUARDED_BY(mutex_);
  mutable std::uint64_t kept_ HMMJIT_GUARDED_BY(mutex_) = 0;
};

class DatabaseTargets final : public TargetSource {
 public:
  // From target `first` to before `last`. `resident`: null if nothing is kept.
  explicit DatabaseTargets(std::shared_ptr<const TargetDatabase> database,
                           std::shared_ptr<const ResidentDatabase> resident = nullptr,
                           std::uint64_t first = 0, std::uint64_t last = ~std::uint64_t{0})
      : database_(std::move(database)),
        reader_(database_),
        resident_(std::move(resident)),
        first_(first),
        next_(first) {
    reader_.set_end(last);
  }
  Result<bool> next(TargetBlock& block, std::size_t residues) override {
    const std::size_t index = blocks_++;
    if (auto place = resident_ != nullptr ? resident_->at(index) : std::nullopt) {
      block = std::move(place->block);
      bytes_read_ = place->bytes_read;
    } else {
      if (reader_.targets_read() != next_) HMMJIT_TRY(reader_.seek(next_));
      const std::uint64_t before = reader_.bytes_read();
      if (resident_ != nullptr) residues = resident_->block_residues();
      HMMJIT_ASSIGN(const bool more, reader_.read_block(block, residues));
      if (!more) return false;
      bytes_read_ += reader_.bytes_read() - before;
      if (resident_ != nullptr) resident_->keep(index, {block, bytes_read_});
    }
    next_ = block.first_index() + block.size();
    return true;
  }
  Status rewind() override {
    blocks_ = 0;
    bytes_read_ = 0;
    next_ = first_;
    return {};
  }
  bool rewindable() const override { return true; }
  std::shared_ptr<const ResidentTargets> resident() const override { return resident_; }
  std::uint64_t bytes_read() const override { return bytes_read_; }
  std::uint64_t bytes_total() const override { return database_->summary().file_bytes; }

 private:
  std::shared_ptr<const TargetDatabase> database_;
  DatabaseReader reader_;
  std::shared_ptr<const ResidentDatabase> resident_;
  std::size_t blocks_ = 0;
  std::uint64_t first_, next_, bytes_read_ = 0;
};

std::unique_ptr<TargetSource> ResidentDatabase::open() const {
  return std::make_unique<DatabaseTargets>(database_, shared_from_this());
}

Result<std::shared_ptr<const TargetDatabase>> open_database(const std::string& path,
                                                            const SequenceFormatOptions& options,
                                                            DatabaseAccess access) {
  if (options.format)
    return fail(
        ErrorCode::kUsage,
        "the file is a target database, not " + std::string(sequence_format_name(*options.format)),
        path, "leave out its format");
  HMMJIT_ASSIGN(auto database, TargetDatabase::open(path, access));
  const Alphabet& alphabet = *database->summary().alphabet;
  if (!same_codes(alphabet, options.alphabet))
    return fail(ErrorCode::kInput,
                "the target database holds " + std::string(alphabet.name) + " sequences, not " +
                    std::string(options.alphabet.name),
                path, "use one alphabet for all files (hmmjit db build: --alphabet)");
  return database;
}

}  // namespace

Result<std::unique_ptr<TargetSource>> open_target_file(const std::string& name,
                                                       const SequenceFormatOptions& options,
                                                       DatabaseAccess access) {
  const std::string path = find_sequence_file(name);
  HMMJIT_ASSIGN(const bool is_database, is_target_database_file(path));
  if (is_database) {
    HMMJIT_ASSIGN(auto database, open_database(path, options, access));
    return std::make_unique<DatabaseTargets>(std::move(database));
  }
  struct stat info {};
  (void)::stat(path.c_str(), &info);
  SequenceFormatOptions known = options;
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_sequence_source(path, known));
  const bool plain = path != "-" && source->compression() == Compression::kNone &&
                     known.format != SequenceFormat::kNcbi;
  const std::uint64_t total =
      plain && S_ISREG(info.st_mode) ? static_cast<std::uint64_t>(info.st_size) : 0;
  HMMJIT_ASSIGN(SequenceReader reader, SequenceReader::open(std::move(source), known));
  if (total > 0 && reader.format() == SequenceFormat::kFasta) {
    HMMJIT_ASSIGN(auto pieces, open_fasta_pieces(path, known, std::uint64_t{1} << 18));
    if (pieces != nullptr) return pieces;
  }
  return std::make_unique<ReaderTargets>(std::move(reader), total);
}

std::unique_ptr<TargetSource> open_target_range(std::shared_ptr<const TargetDatabase> database,
                                                std::uint64_t first, std::uint64_t last) {
  return std::make_unique<DatabaseTargets>(std::move(database), nullptr, first, last);
}

Result<std::shared_ptr<const ResidentTargets>> keep_target_file(
    const std::string& name, const SequenceFormatOptions& options, std::uint64_t memory) {
  const std::string path = find_sequence_file(name);
  HMMJIT_ASSIGN(const bool is_database, is_target_database_file(path));
  if (is_database) {
    HMMJIT_ASSIGN(auto database, open_database(path, options, DatabaseAccess::kResident));
    return std::make_shared<const ResidentDatabase>(std::move(database), memory);
  }
  HMMJIT_ASSIGN(const std::unique_ptr<TargetSource> source, open_target_file(path, options));
  return load_targets(*source, memory);
}

}  // namespace hmmjit
