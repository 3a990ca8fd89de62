// An unnamed temporary file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace hmmjit {

/// Bytes are appended and read back at any offset. The file lies in $TMPDIR or /tmp and ends with
/// the object or the process. One thread at a time.
class SpoolFile {
 public:
  /// `buffer`: bytes held in memory before they are written. Fails with kOutput.
  static Result<SpoolFile> create(std::size_t buffer = std::size_t{1} << 16);
  SpoolFile(SpoolFile&& other) noexcept;
  SpoolFile& operator=(SpoolFile&& other) noexcept;
  ~SpoolFile();

  Status append(std::string_view bytes);
  std::uint64_t size() const { return written_ + buffer_.size(); }
  /// At most `size` bytes from `offset` on; fewer at the end.
  Status read(std::uint64_t offset, std::size_t size, std::string& bytes);
  /// Calls `use` with all bytes in order, in pieces.
  Status for_each(const std::function<Status(std::string_view)>& use);

 private:
  SpoolFile() = default;
  Status flush();

  int descriptor_ = -1;
  std::size_t limit_ = 0;
  std::uint64_t written_ = 0;
  std::string buffer_;
};

}  // namespace hmmjit
