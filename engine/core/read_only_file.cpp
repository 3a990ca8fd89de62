#include "core/read_only_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace hmmjit {

Result<ReadOnlyFile> ReadOnlyFile::open(const std::string& path) {
  ReadOnlyFile file;
  file.path_ = path;
  // Opening a pipe without a writer must not block.
  file.descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file.descriptor_ < 0 && errno == ENOMEM) throw std::bad_alloc();
  if (file.descriptor_ < 0)
    return fail(ErrorCode::kInput, std::string("cannot open: ") + std::strerror(errno), path,
                "check the name and permissions");
  struct stat info {};
  if (::fstat(file.descriptor_, &info) != 0 || !S_ISREG(info.st_mode))
    return fail(ErrorCode::kInput, "not a regular file", path, "name a file");
  file.size_ = static_cast<std::uint64_t>(info.st_size);
  return file;
}

ReadOnlyFile::ReadOnlyFile(ReadOnlyFile&& other) noexcept { *this = std::move(other); }

ReadOnlyFile& ReadOnlyFile::operator=(ReadOnlyFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

ReadOnlyFile::~ReadOnlyFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status ReadOnlyFile::read(std::uint64_t at, std::span<char> to) const {
  while (!to.empty()) {
    const ssize_t got = ::pread(descriptor_, to.data(), to.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0)
      return fail(ErrorCode::kInput, std::string("cannot read: ") + std::strerror(errno), path_);
    if (got == 0)
      return fail(ErrorCode::kInput, "the file was cut short while it was read", path_,
                  "do not change files that are in use");
    at += static_cast<std::uint64_t>(got);
    to = to.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

void ReadOnlyFile::prefetch(std::uint64_t at, std::uint64_t size) const {
  (void)::posix_fadvise(descriptor_, static_cast<off_t>(at), static_cast<off_t>(size),
                        POSIX_FADV_WILLNEED);
}

Result<std::string> read_whole_file(const std::string& path) {
  HMMJIT_ASSIGN(const ReadOnlyFile file, ReadOnlyFile::open(path));
  std::string bytes(file.size(), '\0');
  HMMJIT_TRY(file.read(0, bytes));
  return bytes;
}

Result<std::string> read_beginning(const std::string& path, std::size_t count) {
  HMMJIT_ASSIGN(const ReadOnlyFile file, ReadOnlyFile::open(path));
  std::string bytes(std::min<std::uint64_t>(count, file.size()), '\0');
  HMMJIT_TRY(file.read(0, bytes));
  return bytes;
}

std::string read_kernel_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && errno == ENOMEM) throw std::bad_alloc();
  std::string text;
  if (descriptor < 0) return text;
  const auto close = [&descriptor](void*) { ::close(descriptor); };
  const std::unique_ptr<void, decltype(close)> closer(&text, close);
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t got = ::read(descriptor, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace hmmjit
