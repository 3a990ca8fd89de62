#include "core/read_only_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <new>

#include "core/numbers.hpp"
#include "core/remedy.hpp"
#include "core/text_fields.hpp"

namespace hmmjit {

namespace {

// Opens a regular file and sets `size`.
Result<Descriptor> open_regular_file(const std::string& path, std::uint64_t& size) {
  const auto other = [&] {
    return fail(ErrorCode::kInput, "not a regular file", path, "name a file");
  };
  if (path.contains('\0'))  // the system would end the name there
    return fail(ErrorCode::kInput, "the name contains a NUL", path, "check the name");
  struct stat info {};
  // Opening a pipe would end its writer, or wait for one.
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) return other();
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0 && errno == ENOMEM) throw std::bad_alloc();
  if (file.get() < 0)
    return fail(ErrorCode::kInput, std::string("cannot open: ") + std::strerror(errno), path,
                remedy_of(errno, "check the name and permissions"));
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)) return other();
  size = static_cast<std::uint64_t>(info.st_size);
  return file;
}

}  // namespace

Result<ReadOnlyFile> ReadOnlyFile::open(const std::string& path) {
  ReadOnlyFile file;
  file.path_ = path;
  HMMJIT_ASSIGN(file.descriptor_, open_regular_file(path, file.size_));
  return file;
}

bool ReadOnlyFile::has_size() const {
  struct stat info {};
  return ::fstat(descriptor_.get(), &info) == 0 &&
         static_cast<std::uint64_t>(info.st_size) == size_;
}

Status ReadOnlyFile::read(std::uint64_t at, std::span<char> to) const {
  const ssize_t got = read_fully(descriptor_.get(), to, at);
  if (got < 0)
    return fail(ErrorCode::kInput, std::string("cannot read: ") + std::strerror(errno), path_);
  if (static_cast<std::size_t>(got) < to.size())
    return fail(ErrorCode::kInput, "the file was cut short while it was read", path_,
                "do not change files that are in use");
  return {};
}

void ReadOnlyFile::prefetch(std::uint64_t at, std::uint64_t size) const {
  (void)::posix_fadvise(descriptor_.get(), static_cast<off_t>(at), static_cast<off_t>(size),
                        POSIX_FADV_WILLNEED);
}

Result<MappedFile> MappedFile::open(const std::string& path) {
  MappedFile mapped;
  std::uint64_t size = 0;
  HMMJIT_ASSIGN(const Descriptor file, open_regular_file(path, size));
  if (size == 0) return mapped;
  void* const data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED)
    return fail(ErrorCode::kResources, std::string("cannot map: ") + std::strerror(errno), path);
  mapped.data_ = {static_cast<const char*>(data), Unmap{size}};
  return mapped;
}

Result<std::string> read_whole_file(const std::string& path) {
  return read_beginning(path, std::numeric_limits<std::size_t>::max());
}

Result<std::string> read_beginning(const std::string& path, std::size_t count) {
  HMMJIT_ASSIGN(const ReadOnlyFile file, ReadOnlyFile::open(path));
  std::string bytes(std::min<std::uint64_t>(count, file.size()), '\0');
  HMMJIT_TRY(file.read(0, bytes));
  return bytes;
}

std::string read_kernel_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOMEM) throw std::bad_alloc();
  std::string text;
  if (file.get() < 0) return text;
  std::array<char, 4096> piece;
  for (;;) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
}

std::optional<std::uint64_t> value_in_kernel_file(const std::string& path, std::string_view key) {
  const std::string text = read_kernel_file(path);
  for (std::string_view rest = text; !rest.empty();) {
    std::string_view line = take_line(&rest);
    if (take_word(&line) == key) return parse_int(take_word(&line));
  }
  return std::nullopt;
}

}  // namespace hmmjit
