// Read-only memory mapping of a whole file.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/error.hpp"

namespace hmmjit {

/// Immutable after open; views stay valid while the object lives. Movable.
class MappedFile {
 public:
  /// Fails with kInput when the file is missing, unreadable or not a regular file.
  static Result<MappedFile> open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const char> bytes() const { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace hmmjit
