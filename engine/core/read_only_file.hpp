// Files read at any offset, or mapped.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/aligned.hpp"
#include "core/descriptor.hpp"
#include "core/error.hpp"

namespace hmmjit {

/// Reads copy, so a file that changes or is truncated meanwhile yields other bytes or an error,
/// never a signal (a mapping would raise SIGBUS). Threads may read concurrently. Movable.
class ReadOnlyFile {
 public:
  /// Fails with kInput if the file is missing, unreadable or not a regular file; throws
  /// std::bad_alloc if the system has no memory to open it.
  static Result<ReadOnlyFile> open(const std::string& path);
  /// Size when the file was opened.
  std::uint64_t size() const { return size_; }
  /// Whether the file has this size still.
  bool has_size() const;
  /// Fills `to` with the bytes from offset `at` on. Fails with kInput if the file is shorter or
  /// unreadable.
  Status read(std::uint64_t at, std::span<char> to) const;
  /// Asks the system to read `size` bytes from offset `at` into its cache.
  void prefetch(std::uint64_t at, std::uint64_t size) const;

 private:
  std::string path_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0;
};

/// A mapping of a whole file. Immutable after open; views stay valid while the object lives.
/// Movable.
class MappedFile {
 public:
  /// Fails as ReadOnlyFile::open does, and with kResources if it cannot be mapped.
  static Result<MappedFile> open(const std::string& path);
  std::span<const char> bytes() const { return {data_.get(), data_.get_deleter().size}; }

 private:
  std::unique_ptr<const char, Unmap> data_;
};

/// All bytes of a file. Fails as ReadOnlyFile does.
Result<std::string> read_whole_file(const std::string& path);

/// The first `count` bytes of a file, or all of a shorter one. Fails as ReadOnlyFile does.
Result<std::string> read_beginning(const std::string& path, std::size_t count);

/// The content of a file in /proc or of a control group, whose size the system does not tell; empty
/// if unreadable. std::ifstream would mistake a lack of memory for a missing file.
std::string read_kernel_file(const std::string& path);
/// The number after the word `key` at the beginning of a line of such a file.
std::optional<std::uint64_t> value_in_kernel_file(const std::string& path, std::string_view key);

}  // namespace hmmjit
