// Compressed streams: damage is an error, never a hang or a crash; reading twice gives equal bytes.
#include <zlib.h>
#include <zstd.h>

#include "io/byte_source.hpp"
#include "tests/fuzz/entry.hpp"

using namespace hmmjit;

namespace {

std::string drain(ByteSource& source) {
  std::string all;
  while (true) {
    auto chunk = source.next();
    if (!chunk) return all + chunk.error().to_string();
    if (chunk->empty()) return all;
    all.append(chunk->data(), chunk->size());
    if (all.size() > (std::size_t{1} << 24)) return all;  // repetitive data expands a thousandfold
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto source = open_memory_source("fuzz", {reinterpret_cast<const char*>(data), size}, 1000);
  if (!source) return 0;
  std::string first = drain(**source);
  require((*source)->rewind().has_value());
  require(drain(**source) == first);
  return 0;
}

std::vector<std::string> fuzz_seeds() {
  std::string text;
  for (int i = 0; i < 300; ++i) text += ">seq" + std::to_string(i * i) + "\nACDEFGHIKL\n";
  std::string zst(ZSTD_compressBound(text.size()), '\0');
  zst.resize(ZSTD_compress(zst.data(), zst.size(), text.data(), text.size(), 3));
  std::string gz(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(text.data());
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(gz.data());
  stream.avail_out = static_cast<uInt>(gz.size());
  deflate(&stream, Z_FINISH);
  gz.resize(stream.total_out);
  deflateEnd(&stream);
  return {text, gz, zst, gz + gz, zst + zst};
}

std::vector<std::string> fuzz_folders() { return {}; }
