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
#include <filesystem>
#include <optional>
#include <vector>

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

// Where the bytes of `path` end up: a symbolic link keeps being one, also one whose target does
// not exist yet. The folder is resolved as well, so that equal files have equal names.
std::string resolved(const std::string& path) {
  std::filesystem::path file = path;
  std::error_code error;
  for (int links = 0; links < 40 && std::filesystem::is_symlink(file, error); ++links) {
    const auto target = std::filesystem::read_symlink(file, error);
    if (error) break;
    file = target.is_absolute() ? target : file.parent_path() / target;
  }
  const auto folder =
      std::filesystem::canonical(file.has_parent_path() ? file.parent_path() : ".", error);
  return error ? file.string() : (folder / file.filename()).string();
}

// An open file that no name leads to any more.
int open_unnamed_temporary() {
  const char* folder = std::getenv("TMPDIR");
  std::string name =
      std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp") + "/hmmjit-output-XXXXXX";
  const int descriptor = ::mkostemp(name.data(), O_CLOEXEC);
  if (descriptor >= 0) ::unlink(name.c_str());
  return descriptor;
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
  if (::lstat(path.c_str(), &info) == 0) {
    if (S_ISLNK(info.st_mode)) file.path_ = resolved(path);
  } else if (errno == ENAMETOOLONG) {
    return output_error(path, "create", errno);
  }
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return output_error(path, "write", EISDIR);
  if (exists && !S_ISREG(info.st_mode)) {  // /dev/null, a pipe: there is no name to protect
    file.descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file.descriptor_ < 0) return output_error(path, "open for writing", errno);
    return file;
  }
  if (exists && ::access(path.c_str(), W_OK) != 0) return output_error(path, "overwrite", errno);
  std::string stem = file.path_ + ".tmp-";
  for (int attempt = 0; attempt < 100; ++attempt) {
    std::string name =
        stem + std::to_string(::getpid()) + "-" + std::to_string(g_counter.fetch_add(1));
    file.descriptor_ = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file.descriptor_ >= 0) {
      if (exists) ::fchmod(file.descriptor_, info.st_mode & 07777);
      file.temporary_ = std::move(name);
      file.slot_ = publish(file.temporary_);
      return file;
    }
    if (errno == ENAMETOOLONG && stem.starts_with(file.path_)) {
      // The name leaves no room for more: a short one beside it.
      stem = file.path_.substr(0, file.path_.rfind('/') + 1) + "hmmjit.tmp-";
    } else if (errno != EEXIST) {
      break;
    }
  }
  const int error = errno;
  if (exists && (error == EACCES || error == EPERM || error == EROFS)) {
    file.descriptor_ = open_unnamed_temporary();
    file.copied_ = true;
    if (file.descriptor_ >= 0) return file;
  }
  return output_error(path, "create", error);
}

OutputFile::OutputFile(OutputFile&& other) noexcept { *this = std::move(other); }

OutputFile& OutputFile::operator=(OutputFile&& other) noexcept {
  if (this == &other) return *this;
  discard();
  path_ = std::move(other.path_);
  temporary_ = std::exchange(other.temporary_, {});
  descriptor_ = std::exchange(other.descriptor_, -1);
  slot_ = std::exchange(other.slot_, -1);
  copied_ = other.copied_;
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

Status OutputFile::copy_into_place() {
  const int target = ::open(path_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (target < 0) return output_error(path_, "open for writing", errno);
  int error = 0;
  std::string bytes(kBufferBytes, '\0');
  off_t position = 0;
  for (;;) {
    const ssize_t got = ::pread(descriptor_, bytes.data(), bytes.size(), position);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    ssize_t done = 0;
    while (done < got && error == 0) {
      const ssize_t written = ::pwrite(target, bytes.data() + done,
                                       static_cast<std::size_t>(got - done), position + done);
      if (written >= 0) done += written;
      if (written < 0 && errno != EINTR) error = errno;
    }
    if (error != 0) break;
    position += got;
  }
  if (::close(target) != 0 && error == 0) error = errno;
  if (error != 0) return output_error(path_, "write", error);
  return {};
}

Status OutputFile::commit() {
  HMMJIT_TRY(flush());
  if (copied_) HMMJIT_TRY(copy_into_place());
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

namespace {

// What tells one regular file from another; nothing for what may be named several times.
struct Identity {
  std::string path;
  bool exists = false;
  dev_t device = 0;
  ino_t inode = 0;
};

std::optional<Identity> identity_of(const std::string& path, bool input) {
  struct stat info {};
  if (input && path == "-") {
    if (::fstat(STDIN_FILENO, &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
    return Identity{{}, true, info.st_dev, info.st_ino};
  }
  if (named_descriptor(path) >= 0) return std::nullopt;
  Identity identity{.path = resolved(path)};
  if (::stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return std::nullopt;
    identity.exists = true;
    identity.device = info.st_dev;
    identity.inode = info.st_ino;
  }
  return identity;
}

bool same_file(const std::optional<Identity>& a, const std::optional<Identity>& b) {
  if (!a || !b) return false;
  if (a->exists && b->exists && a->device == b->device && a->inode == b->inode) return true;
  return !a->path.empty() && a->path == b->path;
}

}  // namespace

Status check_outputs(std::span<const NamedFile> outputs, std::span<const NamedFile> inputs) {
  std::vector<std::optional<Identity>> known;
  for (const NamedFile& output : outputs) {
    if (output.path.empty())
      return fail(ErrorCode::kUsage, "the name of the output file is empty", output.option,
                  "give a file name, or leave the option out");
    const auto identity = identity_of(output.path, false);
    for (std::size_t i = 0; i < known.size(); ++i) {
      if (same_file(identity, known[i]))
        return fail(ErrorCode::kUsage, outputs[i].option + " writes the same file",
                    output.option + " " + output.path, "give each output a file of its own");
    }
    for (const NamedFile& input : inputs) {
      if (same_file(identity, identity_of(input.path, true)))
        return fail(ErrorCode::kUsage, "this is the " + input.option,
                    output.option + " " + output.path, "give the output another name");
    }
    known.push_back(identity);
  }
  return {};
}

}  // namespace hmmjit
