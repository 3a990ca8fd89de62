#include "cache/compression.hpp"

#include <zstd.h>
#include <zstd_errors.h>

#include <new>

namespace hmmjit::cache {

std::string compress(std::string_view raw) {
  std::string packed(ZSTD_compressBound(raw.size()), '\0');
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), raw.data(), raw.size(), ZSTD_CLEVEL_DEFAULT);
  if (ZSTD_isError(size)) throw std::bad_alloc();  // the only possible failure with enough room
  packed.resize(size);
  return packed;
}

Result<std::string> decompress(std::string_view packed, std::uint64_t raw_size) {
  const auto bad = [] { return fail(ErrorCode::kInput, "compressed part cannot be read"); };
  if (raw_size > kMaxSectionBytes) return bad();
  if (ZSTD_getFrameContentSize(packed.data(), packed.size()) != raw_size) return bad();
  if (ZSTD_findFrameCompressedSize(packed.data(), packed.size()) != packed.size()) return bad();
  // Reject a forged size in the frame header before allocating: 4 bytes of a frame expand to at
  // most 128 KiB.
  if (raw_size / (std::uint64_t{128} << 10) > packed.size()) return bad();
  std::string raw(raw_size, '\0');
  const std::size_t size = ZSTD_decompress(raw.data(), raw.size(), packed.data(), packed.size());
  if (ZSTD_getErrorCode(size) == ZSTD_error_memory_allocation) throw std::bad_alloc();
  if (ZSTD_isError(size) || size != raw_size) return bad();
  return raw;
}

}  // namespace hmmjit::cache
