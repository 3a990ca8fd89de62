#include "io/byte_source.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <optional>

#include "core/descriptor.hpp"
#include "core/remedy.hpp"

namespace hmmjit {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;

// Uninitialised memory: unused pages are never touched.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size) : data_(new char[size]), size_(size) {}
  char* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  std::span<char> span() const { return {data_.get(), size_}; }

 private:
  std::unique_ptr<char[]> data_;
  std::size_t size_ = 0;
};
// Chunks decompressed ahead: enough to keep a thread busy while the reader uses one chunk.
constexpr std::size_t kReadAhead = 4;

std::string errno_text(int error) { return std::strerror(error); }

// Raw input, not yet decoded, from memory or a file descriptor.
class RawBytes {
 public:
  explicit RawBytes(std::span<const char> bytes) : first_(bytes.data(), bytes.size()) {}
  RawBytes(int fd, bool owned, std::string name)
      : fd_(fd), owned_(owned ? fd : -1), name_(std::move(name)), start_(::lseek(fd, 0, SEEK_CUR)) {
    if (start_ == 0) ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }

  // Peeks at the first bytes without consuming them. Called once.
  Result<std::string_view> head() {
    if (fd_ >= 0) {
      HMMJIT_ASSIGN(const std::size_t n, read(head_));
      first_ = {head_.data(), n};
    }
    return first_.substr(0, head_.size());
  }
  // Fills `buffer`; returns less than its size only at the end of the input.
  Result<std::size_t> read(std::span<char> buffer) {
    std::size_t filled = std::min(buffer.size(), first_.size() - position_);
    if (filled > 0) std::memcpy(buffer.data(), first_.data() + position_, filled);
    position_ += filled;
    while (fd_ >= 0 && filled < buffer.size()) {
      const ssize_t n = ::read(fd_, buffer.data() + filled, buffer.size() - filled);
      if (n == 0) break;
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail(ErrorCode::kInput, "read failed: " + errno_text(errno), name_);
      filled += static_cast<std::size_t>(n);
    }
    return filled;
  }
  // The next bytes, about `chunk`: a view of memory, or of a buffer for the file.
  Result<std::span<const char>> next(std::size_t chunk) {
    if (fd_ < 0) {
      const std::string_view view = first_.substr(position_, chunk);
      position_ += view.size();
      return std::span<const char>(view);
    }
    if (buffer_.size() == 0) buffer_ = Buffer(chunk);
    HMMJIT_ASSIGN(const std::size_t n, read(buffer_.span()));
    return std::span<const char>(buffer_.data(), n);
  }
  Status rewind() {
    if (!rewindable() || (fd_ >= 0 && ::lseek(fd_, start_, SEEK_SET) < 0))
      return fail(ErrorCode::kInput, "cannot be read a second time", name_,
                  "give a file instead of a pipe");
    position_ = fd_ >= 0 ? first_.size() : 0;
    return {};
  }
  bool rewindable() const { return fd_ < 0 || start_ >= 0; }

 private:
  int fd_ = -1;
  Descriptor owned_;
  std::string name_;
  off_t start_ = 0;
  std::array<char, 4> head_{};
  std::string_view first_;  // bytes in memory, or bytes that head() read
  std::size_t position_ = 0;
  Buffer buffer_;  // of next()
};

// Compressed bytes that a decoder has read but not yet consumed.
class CompressedInput {
 public:
  explicit CompressedInput(RawBytes* raw) : raw_(raw), buffer_(kChunk / 4) {}
  void clear() { begin = end = 0; }
  // False at the end of the input.
  Result<bool> fill() {
    if (begin < end) return true;
    HMMJIT_ASSIGN(end, raw_->read(buffer_.span()));
    begin = 0;
    return end > 0;
  }
  char* data() { return buffer_.data(); }
  std::size_t begin = 0, end = 0;

 private:
  RawBytes* raw_;
  Buffer buffer_;
};

class Decompressor {
 public:
  Decompressor(RawBytes* raw, std::string name) : input_(raw), name_(std::move(name)) {}
  virtual ~Decompressor() = default;
  // Fills `out`; returns less than its size only at the end of the stream.
  virtual Result<std::size_t> decode(std::span<char> out) = 0;
  virtual void reset() = 0;

 protected:
  std::unexpected<Error> damaged(std::string message) const {
    return fail(ErrorCode::kInput, std::move(message), name_, "fetch or write the file again");
  }

  CompressedInput input_;
  std::string name_;
  bool ended_ = false;
};

class GzipDecompressor : public Decompressor {
 public:
  GzipDecompressor(RawBytes* raw, std::string name) : Decompressor(raw, std::move(name)) {
    ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK;  // +16: gzip wrapping only
  }
  ~GzipDecompressor() override {
    if (ready_) inflateEnd(&stream_);
  }
  void reset() override {
    inflateReset(&stream_);
    input_.clear();
    in_member_ = ended_ = false;
    members_ = 0;
  }
  Result<std::size_t> decode(std::span<char> out) override {
    if (!ready_) return fail(ErrorCode::kResources, "zlib could not be initialised", name_);
    std::size_t filled = 0;
    while (filled < out.size() && !ended_) {
      HMMJIT_ASSIGN(bool more, input_.fill());
      if (!more) {
        if (in_member_) return damaged("gzip data ends early: the file is truncated");
        ended_ = true;
        break;
      }
      if (!in_member_) {
        HMMJIT_ASSIGN(bool member, begin_member());
        if (!member) continue;
      }
      stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + input_.begin);
      stream_.avail_in = static_cast<uInt>(input_.end - input_.begin);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
      stream_.avail_out = static_cast<uInt>(out.size() - filled);
      int status = inflate(&stream_, Z_NO_FLUSH);
      input_.begin = input_.end - stream_.avail_in;
      filled = out.size() - stream_.avail_out;
      if (status == Z_STREAM_END) {
        in_member_ = false;
      } else if (status == Z_MEM_ERROR) {  // the window is allocated after the first piece
        throw std::bad_alloc();
      } else if (status != Z_OK && status != Z_BUF_ERROR) {
        return damaged(fmt::format("corrupt gzip data ({})",
                                   stream_.msg != nullptr ? stream_.msg : "bad stream"));
      }
    }
    return filled;
  }

 private:
  // Begins a member and returns true, or skips a byte of zero padding (from tapes and block
  // devices; gzip accepts it). Rejects anything else.
  Result<bool> begin_member() {
    if (members_ > 0 && input_.data()[input_.begin] == 0) {
      ++input_.begin;
      return false;
    }
    inflateReset(&stream_);
    if (static_cast<unsigned char>(input_.data()[input_.begin]) != 0x1f)
      return damaged("bytes that are not gzip data follow the gzip data");
    in_member_ = true;
    ++members_;
    return true;
  }

  z_stream stream_{};
  bool ready_ = false;
  bool in_member_ = false;
  std::uint64_t members_ = 0;
};

class ZstdDecompressor : public Decompressor {
 public:
  ZstdDecompressor(RawBytes* raw, std::string name)
      : Decompressor(raw, std::move(name)), stream_(ZSTD_createDStream()) {
    // Files written with `zstd --long` need windows above the default limit of 128 MiB.
    if (stream_ != nullptr) ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, 31);
  }
  ~ZstdDecompressor() override { ZSTD_freeDStream(stream_); }
  void reset() override {
    ZSTD_DCtx_reset(stream_, ZSTD_reset_session_only);
    input_.clear();
    in_frame_ = ended_ = false;
  }
  Result<std::size_t> decode(std::span<char> out) override {
    if (stream_ == nullptr) {
      return fail(ErrorCode::kResources, "zstd could not be initialised", name_);
    }
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    bool flush = true;  // the stream may still hold output when all input is consumed
    while (output.pos < output.size && !ended_) {
      HMMJIT_ASSIGN(bool more, input_.fill());
      if (!more && !(in_frame_ && flush)) {
        if (in_frame_) return damaged("zstd data ends early: the file is truncated");
        ended_ = true;
        break;
      }
      ZSTD_inBuffer in{input_.data(), more ? input_.end : 0, more ? input_.begin : 0};
      std::size_t before = output.pos;
      std::size_t hint = ZSTD_decompressStream(stream_, &output, &in);
      if (ZSTD_isError(hint) != 0 && ZSTD_getErrorCode(hint) == ZSTD_error_memory_allocation) {
        return fail(ErrorCode::kResources,
                    "out of memory: the window of the zstd data may take up to 2 GiB", name_,
                    "compress it with a smaller window (without zstd --long), or unpack it first");
      }
      if (ZSTD_isError(hint) != 0)
        return damaged(fmt::format("corrupt zstd data ({})", ZSTD_getErrorName(hint)));
      if (more) input_.begin = in.pos;
      in_frame_ = hint != 0;
      flush = output.pos > before;
    }
    return output.pos;
  }

 private:
  ZSTD_DStream* stream_;
  bool in_frame_ = false;
};

class PlainSource : public ByteSource {
 public:
  PlainSource(std::unique_ptr<RawBytes> raw, std::string name, std::size_t chunk)
      : raw_(std::move(raw)), chunk_(chunk) {
    name_ = std::move(name);
  }
  Result<std::span<const char>> next() override { return raw_->next(chunk_); }
  Status rewind() override { return raw_->rewind(); }
  bool rewindable() const override { return raw_->rewindable(); }

 private:
  std::unique_ptr<RawBytes> raw_;
  std::size_t chunk_;
};

// Decompresses into a ring buffer of chunks, ahead of the reader.
class DecodedSource : public ByteSource {
 public:
  DecodedSource(std::unique_ptr<RawBytes> raw, std::unique_ptr<Decompressor> decoder,
                std::string name, Compression compression, std::size_t chunk)
      : raw_(std::move(raw)), decoder_(std::move(decoder)) {
    name_ = std::move(name);
    compression_ = compression;
    for (Slot& slot : ring_) slot.bytes = Buffer(chunk);
  }

  Result<std::span<const char>> next() override {
    std::unique_lock lock(mutex_);
    if (holding_) {  // releases the previous view
      holding_ = false;
      ++taken_;
    }
    for (;;) {
      if (made_ > taken_) break;
      if (finished_) {
        if (thrown_ != nullptr) std::rethrow_exception(thrown_);
        if (error_) return std::unexpected(*error_);
        return std::span<const char>();
      }
      if (decoding_)
        changed_.wait(lock);
      else
        decode_one(lock);
    }
    const Slot& slot = ring_[taken_ % kReadAhead];
    holding_ = true;
    return std::span<const char>(slot.bytes.data(), slot.size);
  }
  bool decode_ahead() override {
    std::unique_lock lock(mutex_);
    if (!has_room()) return false;
    decode_one(lock);
    return has_room();
  }
  Status rewind() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !decoding_; });
    HMMJIT_TRY(raw_->rewind());
    decoder_->reset();
    made_ = taken_ = 0;
    finished_ = holding_ = false;
    error_.reset();
    thrown_ = nullptr;
    return {};
  }
  bool rewindable() const override { return raw_->rewindable(); }

 private:
  struct Slot {
    Buffer bytes;
    std::size_t size = 0;
  };
  bool has_room() const { return !decoding_ && !finished_ && made_ - taken_ < kReadAhead; }
  // Decodes the next chunk with the lock released; `decoding_` admits one thread at a time.
  void decode_one(std::unique_lock<std::mutex>& lock) {
    decoding_ = true;
    Slot& slot = ring_[made_ % kReadAhead];
    lock.unlock();
    Result<std::size_t> n = 0;
    std::exception_ptr thrown;
    try {
      n = decoder_->decode(slot.bytes.span());
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    decoding_ = false;
    if (thrown != nullptr) {  // the reader rethrows it
      thrown_ = std::move(thrown);
      finished_ = true;
    } else if (!n) {
      error_ = std::move(n).error();
      finished_ = true;
    } else {
      slot.size = *n;
      if (*n > 0) ++made_;
      if (*n < slot.bytes.size()) finished_ = true;
    }
    changed_.notify_all();
  }

  std::unique_ptr<RawBytes> raw_;
  std::unique_ptr<Decompressor> decoder_;
  std::array<Slot, kReadAhead> ring_;
  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::size_t made_ = 0, taken_ = 0;
  bool finished_ = false, holding_ = false, decoding_ = false;
  std::optional<Error> error_;
  std::exception_ptr thrown_;
};

Compression recognise(std::string_view head) {
  auto byte = [&](std::size_t i) { return static_cast<unsigned char>(head[i]); };
  if (head.size() >= 2 && byte(0) == 0x1f && byte(1) == 0x8b) return Compression::kGzip;
  if (head.size() >= 4) {
    std::uint32_t magic =
        byte(0) | byte(1) << 8 | byte(2) << 16 | static_cast<std::uint32_t>(byte(3)) << 24;
    // A zstd file may also begin with a skippable frame (RFC 8878, section 3.1.2).
    if (magic == ZSTD_MAGICNUMBER || (magic & 0xfffffff0u) == ZSTD_MAGIC_SKIPPABLE_START) {
      return Compression::kZstd;
    }
  }
  return Compression::kNone;
}

// Rejects uncompressed data under a compressed file's name, unless the file is empty.
Status check_name(const std::string& name, std::string_view head) {
  for (auto [suffix, format] : {std::pair{".gz", "gzip"}, std::pair{".zst", "zstd"}}) {
    if (!head.empty() && name.ends_with(suffix)) {
      return fail(ErrorCode::kInput,
                  fmt::format("the name ends in {} but the data is not {}", suffix, format), name,
                  "fetch the file again, or rename it if it is plain text");
    }
  }
  return {};
}

Result<std::unique_ptr<ByteSource>> decoded(std::unique_ptr<RawBytes> raw, std::string name,
                                            std::size_t chunk) {
  HMMJIT_ASSIGN(const std::string_view head, raw->head());
  const Compression compression = recognise(head);
  if (compression == Compression::kNone) {
    HMMJIT_TRY(check_name(name, head));
    return std::make_unique<PlainSource>(std::move(raw), std::move(name), chunk);
  }
  std::unique_ptr<Decompressor> decoder;
  if (compression == Compression::kGzip) {
    decoder = std::make_unique<GzipDecompressor>(raw.get(), name);
  } else {
    decoder = std::make_unique<ZstdDecompressor>(raw.get(), name);
  }
  return std::make_unique<DecodedSource>(std::move(raw), std::move(decoder), std::move(name),
                                         compression, chunk);
}

// A byte range of an uncompressed file.
class FileRange final : public ByteSource {
 public:
  FileRange(std::shared_ptr<const ReadOnlyFile> file, std::string name, std::uint64_t first,
            std::uint64_t last)
      : file_(std::move(file)), first_(first), last_(last), at_(first) {
    name_ = std::move(name);
  }
  Result<std::span<const char>> next() override {
    bytes_.resize(std::min<std::uint64_t>(kChunk, last_ - at_));
    HMMJIT_TRY(file_->read(at_, bytes_));
    at_ += bytes_.size();
    return std::span<const char>(bytes_);
  }
  Status rewind() override {
    at_ = first_;
    return {};
  }
  bool rewindable() const override { return true; }

 private:
  std::shared_ptr<const ReadOnlyFile> file_;
  std::uint64_t first_, last_, at_;
  std::string bytes_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> open_byte_source(const std::string& path) {
  if (path == "-") {
    std::string name = "standard input";
    return decoded(std::make_unique<RawBytes>(STDIN_FILENO, false, name), name, kChunk);
  }
  if (path.contains('\0'))  // the system would end the name there
    return fail(ErrorCode::kInput, "the name contains a NUL", path, "check the name");
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    int error = errno;
    if (error == ENOMEM) throw std::bad_alloc();
    return fail(ErrorCode::kInput, "cannot be opened: " + errno_text(error), path,
                remedy_of(error, error == ENOENT ? "check the name" : "check its permissions"));
  }
  auto raw = std::make_unique<RawBytes>(fd, true, path);
  struct stat status;
  if (::fstat(fd, &status) == 0 && S_ISDIR(status.st_mode)) {
    return fail(ErrorCode::kInput, "is a directory", path, "name a file in it");
  }
  return decoded(std::move(raw), path, kChunk);
}

Result<std::unique_ptr<ByteSource>> open_memory_source(std::string name,
                                                       std::span<const char> bytes,
                                                       std::size_t chunk) {
  return decoded(std::make_unique<RawBytes>(bytes), std::move(name), chunk);
}

Result<std::unique_ptr<ByteSource>> open_file_range(const std::string& path, std::uint64_t first,
                                                    std::uint64_t last) {
  HMMJIT_ASSIGN(ReadOnlyFile file, ReadOnlyFile::open(path));
  return file_range(std::make_shared<const ReadOnlyFile>(std::move(file)), path, first, last);
}

std::unique_ptr<ByteSource> file_range(std::shared_ptr<const ReadOnlyFile> file, std::string name,
                                       std::uint64_t first, std::uint64_t last) {
  return std::make_unique<FileRange>(std::move(file), std::move(name), first, last);
}

Result<std::string> read_text(const std::string& path, std::size_t most, std::string_view what,
                              std::string remedy) {
  HMMJIT_ASSIGN(const std::unique_ptr<ByteSource> source, open_byte_source(path));
  std::string text;
  for (;;) {
    HMMJIT_ASSIGN(const std::span<const char> bytes, source->next());
    if (bytes.empty()) return text;
    text.append(bytes.begin(), bytes.end());
    if (text.size() > most)
      return fail(ErrorCode::kInput, fmt::format("the file is too large for {}", what), path,
                  std::move(remedy));
  }
}

Result<bool> BufferedInput::refill() {
  if (ended_) return false;
  chunk_offset_ += chunk_.size();
  HMMJIT_ASSIGN(chunk_, source_->next());
  joined_ = {};
  position_ = 0;
  ended_ = chunk_.empty();
  return !ended_;
}

Result<std::string_view> BufferedInput::peek(std::size_t least) {
  if (position_ >= chunk_.size()) HMMJIT_TRY(refill());
  if (chunk_.size() - position_ < least && !ended_) {
    std::vector<char> joined(chunk_.begin() + static_cast<std::ptrdiff_t>(position_), chunk_.end());
    while (joined.size() < least && !ended_) {
      HMMJIT_ASSIGN(const std::span<const char> more, source_->next());
      ended_ = more.empty();
      joined.insert(joined.end(), more.begin(), more.end());
    }
    joined_ = std::move(joined);
    chunk_ = joined_;
    chunk_offset_ += std::exchange(position_, 0);
  }
  return std::string_view(chunk_.data() + position_, chunk_.size() - position_);
}

Result<bool> BufferedInput::line(std::string_view* text) {
  std::string_view rest;
  std::size_t least = 1, length = 0;
  do {
    HMMJIT_ASSIGN(rest, peek(least));
    if (rest.empty()) return false;
    length = std::min(rest.find('\n'), rest.size());
    if (length > longest_line_) {
      ++line_number_;
      return fail(ErrorCode::kInput, fmt::format("a line of more than {} bytes", longest_line_),
                  where(), "check what made the file: it is damaged, or of another kind");
    }
    least = 2 * rest.size();
  } while (length == rest.size() && !ended_);
  position_ += std::min(length + 1, rest.size());
  ++line_number_;
  *text = rest.substr(0, length);
  return true;
}

Result<bool> BufferedInput::read(void* destination, std::size_t count) {
  HMMJIT_ASSIGN(const std::string_view bytes, peek(count));
  if (bytes.size() < count) return false;
  std::memcpy(destination, bytes.data(), count);
  position_ += count;
  return true;
}

Status BufferedInput::rewind() {
  HMMJIT_TRY(source_->rewind());
  chunk_ = {};
  chunk_offset_ = 0;
  position_ = 0;
  ended_ = false;
  line_number_ = 0;
  return {};
}

std::string BufferedInput::where() const {
  return fmt::format("{}:{}", source_->name(), line_number_);
}

}  // namespace hmmjit
