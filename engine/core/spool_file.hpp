// An unnamed temporary file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/descriptor.hpp"
#include "core/error.hpp"

namespace hmmjit {

/// An open file in `folder` (empty: $TMPDIR or /tmp) that has no name; -1 and errno on failure.
int open_unnamed_file(const std::string& folder = {});

/// Bytes are appended and can be read at any offset. The file disappears with the object or
/// process. One thread at a time.
class SpoolFile {
 public:
  /// Size of the pieces of for_each, in bytes.
  static constexpr std::size_t kPiece = std::size_t{1} << 20;

  /// `buffer`: bytes held in memory before they are written. `folder`: see open_unnamed_file. Fails
  /// with kOutput.
  static Result<SpoolFile> create(std::size_t buffer = std::size_t{1} << 16,
                                  std::string folder = {});

  /// Copies `bytes` only if the buffer has room for them.
  Status append(std::string_view bytes);
  std::uint64_t size() const { return written_ + buffer_.size(); }
  /// Reads at most `size` bytes from `offset` on; fewer at the end.
  Status read(std::uint64_t offset, std::size_t size, std::string& bytes);
  /// Frees the disk space of a range that will not be read again, if the file system can.
  void release(std::uint64_t begin, std::uint64_t end);
  /// Calls `use` with all bytes in order, piece by piece.
  Status for_each(const std::function<Status(std::string_view)>& use);

 private:
  SpoolFile() = default;
  Status flush();
  Status write(std::string_view bytes);
  std::unexpected<Error> failure(const char* action, int error) const;

  std::string folder_;
  Descriptor descriptor_;
  std::size_t limit_ = 0;
  std::uint64_t written_ = 0;
  std::string buffer_;
};

}  // namespace hmmjit
