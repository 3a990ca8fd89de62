#include "core/spool_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace hmmjit {
namespace {

std::unexpected<Error> spool_error(const char* action, int error) {
  return fail(ErrorCode::kOutput,
              std::string("cannot ") + action + " a temporary file: " + std::strerror(error), {},
              "set TMPDIR to a folder with free space");
}

}  // namespace

Result<SpoolFile> SpoolFile::create(std::size_t buffer) {
  const char* folder = std::getenv("TMPDIR");
  std::string name =
      std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/hmmjit-spool-XXXXXX";
  SpoolFile file;
  file.limit_ = buffer;
  file.descriptor_ = ::mkostemp(name.data(), O_CLOEXEC);
  if (file.descriptor_ < 0) return spool_error("create", errno);
  ::unlink(name.c_str());
  return file;
}

SpoolFile::SpoolFile(SpoolFile&& other) noexcept { *this = std::move(other); }

SpoolFile& SpoolFile::operator=(SpoolFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(limit_, other.limit_);
  std::swap(written_, other.written_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

SpoolFile::~SpoolFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

Status SpoolFile::append(std::string_view bytes) {
  buffer_ += bytes;
  return buffer_.size() < limit_ ? Status{} : flush();
}

Status SpoolFile::flush() {
  std::string_view left = buffer_;
  while (!left.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, left.data(), left.size(), static_cast<off_t>(written_));
    if (written < 0) {
      if (errno == EINTR) continue;
      return spool_error("write", errno);
    }
    left.remove_prefix(static_cast<std::size_t>(written));
    written_ += static_cast<std::uint64_t>(written);
  }
  buffer_.clear();
  return {};
}

Status SpoolFile::read(std::uint64_t offset, std::size_t size, std::string& bytes) {
  HMMJIT_TRY(flush());
  bytes.resize(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(descriptor_, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return spool_error("read", errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return {};
}

Status SpoolFile::for_each(const std::function<Status(std::string_view)>& use) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  std::string bytes;
  for (std::uint64_t at = 0; at < size(); at += bytes.size()) {
    HMMJIT_TRY(read(at, kPiece, bytes));
    if (bytes.empty()) return spool_error("read", EIO);
    HMMJIT_TRY(use(bytes));
  }
  return {};
}

}  // namespace hmmjit
