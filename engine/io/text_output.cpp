#include "io/text_output.hpp"

#include <zlib.h>
#include <zstd.h>

#include <array>
#include <new>
#include <utility>

namespace hmmjit {

namespace {

using Sink = std::function<void(std::string_view)>;

class Gzip final : public Compressor {
 public:
  Gzip() {
    constexpr int kGzipWindow = 15 + 16, kMemory = 8;
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemory,
                     Z_DEFAULT_STRATEGY) != Z_OK)
      throw std::bad_alloc();
  }
  ~Gzip() override { deflateEnd(&stream_); }

  void compress(std::string_view text, bool end, const Sink& out) override {
    constexpr std::size_t kMost = std::size_t{1} << 30;  // per call
    do {
      const std::string_view piece = text.substr(0, kMost);
      text.remove_prefix(piece.size());
      stream_.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(piece.data()));
      stream_.avail_in = static_cast<uInt>(piece.size());
      const int mode = end && text.empty() ? Z_FINISH : Z_NO_FLUSH;
      do {
        stream_.next_out = reinterpret_cast<Bytef*>(buffer_.data());
        stream_.avail_out = static_cast<uInt>(buffer_.size());
        deflate(&stream_, mode);
        out({buffer_.data(), buffer_.size() - stream_.avail_out});
      } while (stream_.avail_out == 0);
    } while (!text.empty());
  }

 private:
  z_stream stream_{};
  std::array<char, 1 << 16> buffer_;
};

class Zstandard final : public Compressor {
 public:
  Zstandard() : stream_(ZSTD_createCStream()) {
    if (stream_ == nullptr) throw std::bad_alloc();
    ZSTD_CCtx_setParameter(stream_, ZSTD_c_checksumFlag, 1);
  }
  ~Zstandard() override { ZSTD_freeCStream(stream_); }

  void compress(std::string_view text, bool end, const Sink& out) override {
    ZSTD_inBuffer in{text.data(), text.size(), 0};
    std::size_t left = 0;
    do {
      ZSTD_outBuffer room{buffer_.data(), buffer_.size(), 0};
      left = ZSTD_compressStream2(stream_, &room, &in, end ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left)) throw std::bad_alloc();  // the only possible error
      out({buffer_.data(), room.pos});
    } while (in.pos < in.size || (end && left > 0));
  }

 private:
  ZSTD_CStream* stream_;
  std::array<char, 1 << 16> buffer_;
};

}  // namespace

std::unique_ptr<Compressor> make_gzip() { return std::make_unique<Gzip>(); }

std::string_view compressed_suffix(std::string_view name) {
  for (const std::string_view suffix : {".gz", ".zst"}) {
    if (name.ends_with(suffix)) return suffix;
  }
  return {};
}

TextOutput::TextOutput(OutputFile file) : file_(std::move(file)) {
  const std::string_view suffix = compressed_suffix(file_.path());
  if (suffix == ".gz") compressor_ = make_gzip();
  if (suffix == ".zst") compressor_ = std::make_unique<Zstandard>();
}

Result<TextOutput> TextOutput::create(const std::string& path) {
  HMMJIT_ASSIGN(OutputFile file, OutputFile::create(path));
  return TextOutput(std::move(file));
}

void TextOutput::compress(std::string_view text, bool end) {
  compressor_->compress(text, end, [this](std::string_view bytes) { file_.write(bytes); });
}

void TextOutput::write(std::string_view text) {
  if (compressor_ == nullptr) {
    file_.write(text);
  } else if (!text.empty()) {
    compress(text, false);
  }
}

Status TextOutput::flush() {
  if (compressor_ != nullptr && !std::exchange(ended_, true)) compress({}, true);
  return file_.flush();
}

Status TextOutput::commit() {
  HMMJIT_TRY(flush());
  return file_.commit();
}

}  // namespace hmmjit
