// Streams of bytes from files and standard input: plain, gzip or zstd.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/read_only_file.hpp"

namespace hmmjit {

enum class Compression { kNone, kGzip, kZstd };

/// A stream delivered in large chunks. One thread reads one source.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Returns the next bytes, about 1 MiB except at the end; empty at the end of the input. The view
  /// is valid until the next call. Fails with kInput on read errors and on corrupt or truncated
  /// compressed data.
  virtual Result<std::span<const char>> next() = 0;
  /// Restarts at the first byte. Fails with kInput if the input is a pipe or terminal.
  virtual Status rewind() = 0;
  virtual bool rewindable() const = 0;
  /// Decompresses one chunk ahead of the reader if there is room for it. Thread-safe. Returns true
  /// if there is room for another chunk.
  virtual bool decode_ahead() { return false; }

  /// Name for messages: the path, or "standard input".
  const std::string& name() const { return name_; }
  Compression compression() const { return compression_; }

 protected:
  std::string name_;
  Compression compression_ = Compression::kNone;
};

/// Opens `path`, or standard input for "-". Compression is recognised by the first bytes of the
/// data, not by the name: gzip (any number of members, hence also BGZF) and zstd (any number of
/// frames). Rejects uncompressed data under a name in .gz or .zst (usually a failed download) with
/// kInput.
Result<std::unique_ptr<ByteSource>> open_byte_source(const std::string& path);

/// A source over bytes in memory, which must outlive it; delivers `chunk` bytes at a time.
/// Recognises compression like open_byte_source. Readers recognise a format from the first chunk
/// alone.
Result<std::unique_ptr<ByteSource>> open_memory_source(std::string name,
                                                       std::span<const char> bytes,
                                                       std::size_t chunk = std::size_t{1} << 20);

/// Bytes [first, last) of an uncompressed file. Fails as ReadOnlyFile::open does.
Result<std::unique_ptr<ByteSource>> open_file_range(const std::string& path, std::uint64_t first,
                                                    std::uint64_t last);
/// The same of an open file, whose ranges any number of threads may read; `name` is for messages.
std::unique_ptr<ByteSource> file_range(std::shared_ptr<const ReadOnlyFile> file, std::string name,
                                       std::uint64_t first, std::uint64_t last);

/// All bytes of a file, decompressed. Fails with kInput if they exceed `most`; the error says that
/// this is too large for `what` ("a score matrix").
Result<std::string> read_text(const std::string& path, std::size_t most, std::string_view what,
                              std::string remedy = {});

/// Lines and raw records of a ByteSource.
class BufferedInput {
 public:
  explicit BufferedInput(std::unique_ptr<ByteSource> source) : source_(std::move(source)) {}
  /// Makes line() fail for lines longer than `bytes`: an input without line ends (kilobytes of
  /// compressed data can expand to gigabytes) must not exhaust memory.
  void limit_lines(std::size_t bytes) { longest_line_ = bytes; }

  /// The unread bytes of the current chunk, or of the next one; empty at the end. If they are fewer
  /// than `least`, copies further chunks to them until there are enough or the input ends.
  Result<std::string_view> peek(std::size_t least = 1);
  /// Marks `count` bytes of the last peek as read. Does not count lines.
  void skip(std::size_t count) { position_ += count; }
  /// Counts `bytes`, which did not come through the source, as delivered.
  void count(std::size_t bytes) { chunk_offset_ += bytes; }
  /// The next line without its LF (a CR stays). False at the end. The view is valid until the next
  /// call. The last line may lack its LF. Fails with kInput if a line is too long.
  Result<bool> line(std::string_view* text);
  /// Reads `count` bytes; false if the input ends first.
  Result<bool> read(void* destination, std::size_t count);
  Status rewind();

  /// Number of bytes read so far, after decompression.
  std::uint64_t offset() const { return chunk_offset_ + position_; }
  /// Bytes that the source has delivered so far.
  std::uint64_t delivered() const { return chunk_offset_ + chunk_.size(); }
  /// Number of the last line returned, from 1.
  std::uint64_t line_number() const { return line_number_; }
  ByteSource& source() const { return *source_; }
  const std::string& name() const { return source_->name(); }
  /// "name:line" of the last line returned.
  std::string where() const;

 private:
  Result<bool> refill();  // false at the end

  std::unique_ptr<ByteSource> source_;
  std::size_t longest_line_ = std::numeric_limits<std::size_t>::max();
  std::span<const char> chunk_;
  std::vector<char> joined_;  // copied chunks; chunk_ then views it
  std::uint64_t chunk_offset_ = 0;
  std::size_t position_ = 0;
  bool ended_ = false;
  std::uint64_t line_number_ = 0;
};

}  // namespace hmmjit
