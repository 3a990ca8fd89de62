#include "core/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace hmmjit {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;
constexpr int kSlots = 64;

// Names of live temporaries, readable from a signal handler: fixed storage, published by an
// atomic pointer per slot, never freed while published.
std::array<std::atomic<char*>, kSlots> g_temporaries{};
std::atomic<unsigned> g_counter{0};

int publish(const std::string& name) {
  char* copy = ::strdup(name.c_str());
  if (copy == nullptr) return -1;
  for (int i = 0; i < kSlots; ++i) {
    char* empty = nullptr;
    if (g_temporaries[i].compare_exchange_strong(empty, copy)) return i;
  }
  std::free(copy);
  return -1;
}

void withdraw(int slot) {
  if (slot >= 0) std::free(g_temporaries[slot].exchange(nullptr));
}

std::unexpected<Error> output_error(const std::string& path, const char* action, int error) {
  return fail(ErrorCode::kOutput, std::string("cannot ") + action + ": " + std::strerror(error),
              path, "check the folder's permissions and free space");
}

// The descriptor a path such as /dev/stdout or /dev/fd/3 stands for, -1 for other paths. Opened
// by name, a redirected descriptor would be written from its start, and a temporary beside it
// would lie in /dev.
int named_descriptor(const std::string& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (!path.starts_with(folder)) continue;
    int number = -1;
    const char* end = path.data() + path.size();
    const auto parsed = std::from_chars(path.data() + folder.size(), end, number);
    if (parsed.ec == std::errc{} && parsed.ptr == end) return number;
  }
  return -1;
}

// Where the bytes of `path` end up: a symbolic link keeps being one.
std::string resolved(const std::string& path) {
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) return path;
  std::string result(real);
  std::free(real);
  return result;
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  OutputFile file;
  file.path_ = path;
  if (const int number = named_descriptor(path); number >= 0) {
    file.descriptor_ = ::fcntl(number, F_DUPFD_CLOEXEC, 0);
    if (file.descriptor_ < 0) return output_error(path, "open for writing", errno);
    return file;
  }
  struct stat info {};
  if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) file.path_ = resolved(path);
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return output_error(path, "write", EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {  // /dev/null, a pipe: there is no name to protect
    file.descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.descriptor_ < 0) return output_error(path, "open for writing", errno);
    return file;
  }
  if (exists && ::access(path.c_str(), W_OK) != 0) return output_error(path, "overwrite", errno);
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string name = file.path_ + ".tmp-" + std::to_string(::getpid()) + "-" +
                       std::to_string(g_counter.fetch_add(1));
    file.descriptor_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.descriptor_ >= 0) {
      if (exists) ::fchmod(file.descriptor_, info.st_mode & 07777);
      file.temporary_ = std::move(name);
      file.slot_ = publish(file.temporary_);
      return file;
    }
    if (errno != EEXIST) break;
  }
  return output_error(path, "create", errno);
}

OutputFile::OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  path_ = std::move(other.path_);
  temporary_ = std::exchange(other.temporary_, {});
  descriptor_ = std::exchange(other.descriptor_, -1);
  slot_ = std::exchange(other.slot_, -1);
  write_error_ = other.write_error_;
  buffer_ = std::exchange(other.buffer_, {});
  return *this;
}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() noexcept {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = -1;
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  temporary_.clear();
  withdraw(slot_);
  slot_ = -1;
}

void OutputFile::write(std::string_view bytes) {
  buffer_.append(bytes);
  if (buffer_.size() >= kBufferBytes) (void)flush();
}

Status OutputFile::flush() {
  const char* data = buffer_.data();
  std::size_t left = write_error_ == 0 ? buffer_.size() : 0;
  while (left > 0) {
    const ssize_t written = ::write(descriptor_, data, left);
    if (written < 0) {
      if (errno == EINTR) continue;
      write_error_ = errno;
      break;
    }
    data += written;
    left -= static_cast<std::size_t>(written);
  }
  buffer_.clear();
  if (write_error_ != 0) return output_error(path_, "write", write_error_);
  return {};
}

Status OutputFile::write_at(std::uint64_t offset, std::string_view bytes) {
  HMMJIT_TRY(flush());
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0) {
      if (errno == EINTR) continue;
      write_error_ = errno;
      return output_error(path_, "write", write_error_);
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  return {};
}

Status OutputFile::commit() {
  HMMJIT_TRY(flush());
  if (::close(std::exchange(descriptor_, -1)) != 0) return output_error(path_, "close", errno);
  if (!temporary_.empty()) {
    if (::rename(temporary_.c_str(), path_.c_str()) != 0)
      return output_error(path_, "rename to", errno);
    temporary_.clear();
    withdraw(std::exchange(slot_, -1));
  }
  return {};
}

void OutputFile::discard_all_temporaries() noexcept {
  for (auto& entry : g_temporaries) {
    if (const char* name = entry.load()) ::unlink(name);
  }
}

}  // namespace hmmjit
