#include "core/spool_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/interruption.hpp"
#include "core/remedy.hpp"

namespace hmmjit {

int open_unnamed_file(const std::string& folder) {
  const char* usual = std::getenv("TMPDIR");
  if (usual == nullptr || *usual == '\0') usual = "/tmp";
  std::string name = (folder.empty() ? std::string(usual) : folder) + "/hmmjit-XXXXXX";
  const InterruptionHold hold;  // while the file has a name
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor >= 0) ::unlink(name.c_str());
  return descriptor;
}

std::unexpected<Error> SpoolFile::failure(const char* action, int error) const {
  return fail(ErrorCode::kOutput,
              std::string("cannot ") + action + " a temporary file: " + std::strerror(error),
              folder_,
              remedy_of(error, folder_.empty() ? "set TMPDIR to a folder with free space"
                                               : "check the folder's permissions and free space"));
}

Result<SpoolFile> SpoolFile::create(std::size_t buffer, std::string folder) {
  SpoolFile file;
  file.limit_ = buffer;
  file.folder_ = std::move(folder);
  file.descriptor_ = Descriptor(open_unnamed_file(file.folder_));
  if (file.descriptor_.get() < 0) return file.failure("create", errno);
  return file;
}

Status SpoolFile::append(std::string_view bytes) {
  if (buffer_.size() + bytes.size() >= limit_) HMMJIT_TRY(flush());
  if (bytes.size() >= limit_) return write(bytes);
  buffer_ += bytes;
  return {};
}

Status SpoolFile::flush() {
  HMMJIT_TRY(write(buffer_));
  buffer_.clear();
  return {};
}

Status SpoolFile::write(std::string_view bytes) {
  if (const int error = write_all(descriptor_.get(), bytes, written_))
    return failure("write", error);
  written_ += bytes.size();
  return {};
}

void SpoolFile::release(std::uint64_t begin, std::uint64_t end) {
  (void)::fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    static_cast<off_t>(begin), static_cast<off_t>(end - begin));
}

Status SpoolFile::read(std::uint64_t offset, std::size_t size, std::string& bytes) {
  HMMJIT_TRY(flush());
  bytes.resize(size);
  const ssize_t got = read_fully(descriptor_.get(), bytes, offset);
  if (got < 0) return failure("read", errno);
  bytes.resize(static_cast<std::size_t>(got));
  return {};
}

Status SpoolFile::for_each(const std::function<Status(std::string_view)>& use) {
  std::string bytes;
  for (std::uint64_t at = 0; at < size(); at += bytes.size()) {
    HMMJIT_TRY(read(at, kPiece, bytes));
    if (bytes.empty()) return failure("read", EIO);
    HMMJIT_TRY(use(bytes));
  }
  return {};
}

}  // namespace hmmjit
