#include "core/output_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <expected>
#include <filesystem>
#include <map>
#include <new>
#include <optional>
#include <tuple>
#include <vector>

#include "core/descriptor.hpp"
#include "core/interruption.hpp"
#include "core/remedy.hpp"
#include "core/spool_file.hpp"

namespace hmmjit {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 18;

// Names of live temporaries in fixed storage, which a signal handler can read. Zero-initialised, so
// pages that hold no name are never written and take no memory.
struct LiveTemporary {
  enum : int { kFree = 0, kFilling, kLive };
  std::atomic<int> state{kFree};
  char name[PATH_MAX] = {};
};
constinit std::array<LiveTemporary, 64> g_temporaries{};
std::atomic<bool> g_any_published{false};

int register_temporary(const std::string& name) {
  if (name.size() >= PATH_MAX) return -1;
  for (std::size_t i = 0; i < g_temporaries.size(); ++i) {
    int state = LiveTemporary::kFree;
    if (!g_temporaries[i].state.compare_exchange_strong(state, LiveTemporary::kFilling)) continue;
    std::memcpy(g_temporaries[i].name, name.c_str(), name.size() + 1);
    g_temporaries[i].state = LiveTemporary::kLive;
    return static_cast<int>(i);
  }
  return -1;
}

void forget_temporary(int slot) {
  if (slot >= 0) g_temporaries[static_cast<std::size_t>(slot)].state = LiveTemporary::kFree;
}

const char* usual_remedy_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return "make the folder first (mkdir -p), or correct the name";
    case EISDIR:
      return "name a file in it";
    case ENOSPC:
    case EDQUOT:
      return "free space there, or write elsewhere";
    case EACCES:
    case EPERM:
    case EROFS:
      return "check the folder's permissions, or write elsewhere";
    default:
      return "check the folder's permissions and free space";
  }
}

// The descriptor of a path such as /dev/stdout or /dev/fd/3; -1 for other paths. Opening such a
// path by name would overwrite a redirected file from its start and put the temporary into /dev.
int named_descriptor(const std::string& path) {
  if (path == "-" || path == "/dev/stdout") return STDOUT_FILENO;
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

std::unexpected<Error> output_error(const std::string& path, const char* action, int error) {
  return fail(ErrorCode::kOutput, std::string("cannot ") + action + ": " + std::strerror(error),
              named_descriptor(path) == STDOUT_FILENO ? "standard output" : path,
              remedy_of(error, usual_remedy_of(error)));
}

// Gives a new file the owner, group and permissions of the file that it will replace. Only root may
// set the owner. If the group cannot be set, the new file's group gets no more than everybody has.
void take_permissions(int file, const struct stat& old) {
  mode_t mode = old.st_mode & 0777;
  if (::fchown(file, old.st_uid, old.st_gid) != 0 &&
      ::fchown(file, static_cast<uid_t>(-1), old.st_gid) != 0)
    mode &= 0707 | mode << 3;
  ::fchmod(file, mode);
}

bool same_inode(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// True for a folder such as /tmp, where everybody may write but not touch other users' files.
bool is_shared_folder(const struct stat& info) {
  return (info.st_mode & S_ISVTX) != 0 && (info.st_mode & S_IWOTH) != 0;
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

// Follows `path` through symbolic links, which are kept even if the target does not exist yet.
// Fails with EACCES at a link that another user has put into a shared folder, as the kernel does if
// fs.protected_symlinks is on (Documentation/admin-guide/sysctl/fs.rst of Linux).
std::expected<std::filesystem::path, int> follow_links(const std::string& path) {
  std::filesystem::path file = path;
  for (int links = 0; links < 40; ++links) {
    const Descriptor link(::open(file.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (link.get() < 0) break;
    struct stat info {
    }, folder{};
    std::array<char, PATH_MAX> text;
    ssize_t length = -1;
    if (::fstat(link.get(), &info) == 0 && S_ISLNK(info.st_mode))
      length = ::readlinkat(link.get(), "", text.data(), text.size());
    if (length <= 0) break;
    if (::stat(folder_of(file).c_str(), &folder) == 0 && is_shared_folder(folder) &&
        info.st_uid != ::geteuid() && info.st_uid != folder.st_uid)
      return std::unexpected(EACCES);
    const std::filesystem::path target(std::string(text.data(), static_cast<std::size_t>(length)));
    file = target.is_absolute() ? target : file.parent_path() / target;
  }
  return file;
}

// A name that is equal for all paths of a file, except hard links. The file need not exist.
std::string canonical_name(const std::string& path) {
  const std::filesystem::path file = follow_links(path).value_or(path);
  std::error_code error;
  const auto folder = std::filesystem::canonical(folder_of(file), error);
  if (error == std::errc::not_enough_memory) throw std::bad_alloc();
  return error ? file.string() : (folder / file.filename()).string();
}

// ---- Temporaries
//
// A temporary lies next to its output, under a name that the next run finds, and its process holds
// a lock on it. A killed process, on any machine, leaves an unlocked temporary, which the next run
// removes. On file systems without locks nothing is removed.

constexpr int kNumberedNames = 8, kOtherNames = 100;

// True if we hold the lock (or locks do not exist) and the file has not been removed or replaced.
bool take_lock(int descriptor, const std::string& name, bool without_locks) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  if (::fcntl(descriptor, F_OFD_SETLK, &lock) != 0 &&
      (errno == EAGAIN || errno == EACCES || !without_locks))
    return false;
  struct stat open {
  }, named{};
  return ::fstat(descriptor, &open) == 0 && ::lstat(name.c_str(), &named) == 0 &&
         same_inode(open, named);
}

void remove_if_abandoned(const std::string& name) {
  const Descriptor file(::open(name.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return;
  struct stat info {};
  // A temporary of root may belong to the owner of the file to replace.
  const uid_t user = ::geteuid();
  if (::fstat(file.get(), &info) == 0 && S_ISREG(info.st_mode) &&
      (user == 0 || info.st_uid == user) && take_lock(file.get(), name, false))
    ::unlink(name.c_str());
}

// Waits until the file system has accepted all bytes, as on closing; returns 0 or an errno. The
// descriptor stays open for its lock; on network file systems, closing a duplicate waits.
int wait_until_accepted(int descriptor) {
  if (const int second = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0); second >= 0)
    return ::close(second) == 0 || errno == EINTR ? 0 : errno;
  return ::fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP ? 0 : errno;
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
  OutputFile file;
  file.path_ = path;
  // The system would end the name at the NUL.
  if (path.contains('\0')) return output_error(path, "open", EINVAL);
  if (const int number = named_descriptor(path); number >= 0) {
    file.descriptor_ = Descriptor(::fcntl(number, F_DUPFD_CLOEXEC, 0));
    if (file.descriptor_.get() < 0) return output_error(path, "open for writing", errno);
    return file;
  }
  const auto place = follow_links(path);
  if (!place) return output_error(path, "follow the symbolic link of another user", place.error());
  std::error_code no_folder;  // then the temporary cannot be created
  // Absolute: the process may change its folder before publication.
  file.place_ = std::filesystem::absolute(*place, no_folder).string();
  // The kernel follows the links too, and may refuse. Only ENOENT means that the file is new.
  const Descriptor found(::open(path.c_str(), O_PATH | O_CLOEXEC));
  const bool exists = found.get() >= 0;
  struct stat info {};
  if (exists ? ::fstat(found.get(), &info) != 0 : errno != ENOENT)
    return output_error(path, "open", errno);
  if (exists) {
    if (S_ISDIR(info.st_mode)) return output_error(path, "write", EISDIR);
    if (!S_ISREG(info.st_mode)) {  // /dev/null or a pipe: no name to protect
      file.place_.clear();
      file.descriptor_ = Descriptor(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
      if (file.descriptor_.get() < 0) return output_error(path, "open for writing", errno);
      return file;
    }
    file.old_ =
        Descriptor(::open(file.place_.c_str(), O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (file.old_.get() < 0) return output_error(path, "overwrite", errno);
    struct stat old {};
    if (::fstat(file.old_.get(), &old) != 0 || !same_inode(info, old))
      return output_error(path, "overwrite", ESTALE);
  }
  int error = file.begin_temporary();
  if (error == 0) {
    if (exists) take_permissions(file.descriptor_.get(), info);
    if (!exists || file.may_replace(info)) {
      // The program that made an empty file (mkstemp) may read the result through its descriptor.
      if (exists && info.st_size > 0) file.old_ = Descriptor();
      return file;
    }
    file.temporary_.reset();
    file.descriptor_ = Descriptor();
    error = EPERM;
  }
  if (exists && (error == EACCES || error == EPERM || error == EROFS)) {
    file.descriptor_ = Descriptor(open_unnamed_file());
    file.place_.clear();
    if (file.descriptor_.get() >= 0) return file;
    return output_error(path, "create a temporary file for", errno);
  }
  return output_error(path, "create", error);
}

// Creates an empty file next to `place_`; 0 or an errno.
int OutputFile::begin_temporary() {
  const auto begin = [this](const std::string& name) {
    const InterruptionHold hold;  // until the name is registered
    Descriptor made(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (made.get() < 0) return errno;
    // Otherwise another process took it for abandoned and removes it.
    if (!take_lock(made.get(), name, true)) return EEXIST;
    const int slot = register_temporary(name);  // before memory may run out
    descriptor_ = std::move(made);
    temporary_.reset(new Temporary{name, slot, ::getpid()});
    return 0;
  };
  std::string stem = place_ + ".hmmjit.tmp-";
  int error = begin(stem + "0");
  if (error == ENAMETOOLONG) {  // the name is too long to be extended
    stem = place_.substr(0, place_.rfind('/') + 1) + "hmmjit.tmp-";
    error = begin(stem + "0");
  }
  if (error != 0 && error != EEXIST) return error;
  for (int number = 0; number < kNumberedNames; ++number) {
    const std::string name = stem + std::to_string(number);
    if (temporary_ != nullptr && name == temporary_->name) continue;
    remove_if_abandoned(name);
    if (error == EEXIST) error = begin(name);
  }
  for (int attempt = 0; error == EEXIST && attempt < kOtherNames; ++attempt) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
    error = begin(stem + std::to_string(::getpid()) + "-" + std::to_string(now));
  }
  return error;
}

// In a shared folder only its owner may replace a file, even if others may write to it. A mount
// point (containers mount single files) cannot be replaced at all.
bool OutputFile::may_replace(const struct stat& old) const {
#ifdef STATX_ATTR_MOUNT_ROOT
  struct statx place {};
  if (::statx(AT_FDCWD, place_.c_str(), AT_SYMLINK_NOFOLLOW, 0, &place) == 0 &&
      (place.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0)
    return false;
#endif
  struct stat folder {};
  const std::string name = folder_of(place_);
  const uid_t user = ::geteuid();
  return user == 0 || user == old.st_uid || ::stat(name.c_str(), &folder) != 0 ||
         (folder.st_mode & S_ISVTX) == 0 || user == folder.st_uid;
}

OutputFile::Temporary::~Temporary() {
  const InterruptionHold hold;
  if (!name.empty() && process == ::getpid()) ::unlink(name.c_str());
  forget_temporary(slot);
}

void OutputFile::write(std::string_view bytes) {
  buffer_.append(bytes);
  if (buffer_.size() >= kBufferBytes) (void)flush();
}

Status OutputFile::flush() {
  if (write_error_ == 0) write_error_ = write_all(descriptor_.get(), buffer_);
  buffer_.clear();
  return status();
}

Status OutputFile::status() const {
  if (write_error_ != 0) return output_error(path_, "write", write_error_);
  return {};
}

Status OutputFile::require_start() const {
  if (::lseek(descriptor_.get(), 0, SEEK_CUR) == 0 &&
      (::fcntl(descriptor_.get(), F_GETFL) & O_APPEND) == 0)
    return {};
  return fail(ErrorCode::kOutput, "not an empty file that can be written at any place", path_,
              "give the name of a file");
}

Status OutputFile::write_at(std::uint64_t offset, std::string_view bytes) {
  HMMJIT_TRY(flush());
  write_error_ = write_all(descriptor_.get(), bytes, offset);
  return status();
}

// True if the old file is still the empty file that create() found, and no other process fills it.
// Otherwise releases it, and the temporary takes its name.
bool OutputFile::fills_old_file() {
  struct stat info {};
  if (old_.get() >= 0 && !durable_ && take_lock(old_.get(), place_, true) &&
      ::fstat(old_.get(), &info) == 0 && info.st_size == 0) {
    step_ = Step::kFilled;
    return true;
  }
  old_ = Descriptor();
  return false;
}

// Copies the temporary over the old file.
Status OutputFile::copy_into_place() {
  int error = 0;
  std::string bytes(kBufferBytes, '\0');
  std::uint64_t position = 0;
  if (::ftruncate(old_.get(), 0) != 0) error = errno;
  while (error == 0) {
    const ssize_t got = read_fully(descriptor_.get(), bytes, position);
    if (got < 0) error = errno;
    if (got <= 0) break;
    const auto size = static_cast<std::size_t>(got);
    error = write_all(old_.get(), {bytes.data(), size}, position);
    position += size;
  }
  if (error == 0) error = wait_until_accepted(old_.get());
  if (error != 0) return output_error(path_, "write", error);
  return {};
}

// Ensures that all bytes have left this process and the file system has accepted them.
Status OutputFile::finish() {
  HMMJIT_TRY(flush());
  if (durable_ && ::fdatasync(descriptor_.get()) != 0 && errno != EINVAL && errno != ENOTSUP)
    return output_error(path_, "synchronise", errno);
  if (const int error = wait_until_accepted(descriptor_.get()); error != 0)
    return output_error(path_, "close", error);
  return {};
}

// Exchanges the temporary with the existing file, which can be undone; returns 0 or an errno.
int OutputFile::rename_into_place() {
  struct stat info {};
  const bool exists = ::lstat(place_.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return EISDIR;
  if (exists && ::renameat2(AT_FDCWD, temporary_->name.c_str(), AT_FDCWD, place_.c_str(),
                            RENAME_EXCHANGE) == 0) {
    step_ = Step::kExchanged;
    return 0;
  }
  if (exists && errno != EINVAL && errno != ENOSYS && errno != ENOENT) return errno;
  if (::rename(temporary_->name.c_str(), place_.c_str()) != 0) return errno;
  step_ = exists ? Step::kReplaced : Step::kNew;
  return 0;
}

void OutputFile::undo() {
  if (step_ == Step::kFilled && ::ftruncate(old_.get(), 0) != 0)
    return;  // nothing else can be done
  if (step_ == Step::kExchanged)
    ::renameat2(AT_FDCWD, temporary_->name.c_str(), AT_FDCWD, place_.c_str(), RENAME_EXCHANGE);
  if (step_ == Step::kNew) ::rename(place_.c_str(), temporary_->name.c_str());
  if (step_ == Step::kReplaced) temporary_->name.clear();
  step_ = Step::kWritten;
}

Status OutputFile::publish(std::span<OutputFile* const> files, Afterwards afterwards) {
  for (OutputFile* file : files) HMMJIT_TRY(file->finish());
  InterruptionHold hold;
  Status published;
  for (OutputFile* file : files) {
    if (!published || file->temporary_ == nullptr || file->fills_old_file()) continue;
    if (const int error = file->rename_into_place(); error != 0)
      published = output_error(file->path_, "rename to", error);
  }
  // Copies come last because those over an unchanged file cannot be undone.
  for (OutputFile* file : files) {
    if (published && file->old_.get() >= 0) published = file->copy_into_place();
  }
  if (!published) {
    for (auto file = files.rbegin(); file != files.rend(); ++file) (*file)->undo();
    return published;
  }
  for (OutputFile* file : files) {
    // In the other steps, the temporary name belongs to the replaced file or to the copied bytes.
    if (file->step_ == Step::kNew || file->step_ == Step::kReplaced) file->temporary_->name.clear();
    file->temporary_.reset();
    file->descriptor_ = Descriptor();
    file->old_ = Descriptor();
  }
  if (!files.empty()) g_any_published = true;
  if (afterwards == Afterwards::kProcessEnds) hold.for_good();
  return {};
}

Status OutputFile::commit() {
  OutputFile* const file = this;
  return publish({&file, 1});
}

bool OutputFile::any_published() noexcept { return g_any_published; }

void OutputFile::discard_all_temporaries() noexcept {
  for (LiveTemporary& temporary : g_temporaries) {
    if (temporary.state == LiveTemporary::kLive) ::unlink(temporary.name);
  }
}

namespace {

// Identifies a regular file; nullopt for devices and pipes, which may be named several times.
struct Identity {
  std::string path;
  bool exists = false;
  dev_t device = 0;
  ino_t inode = 0;
  bool shared = false;
};

std::optional<Identity> identity_of(const std::string& path, bool input) {
  struct stat info {};
  const int number = input && path == "-" ? STDIN_FILENO : named_descriptor(path);
  if (number >= 0) {
    if (::fstat(number, &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
    // Several outputs may follow each other in one open file.
    return Identity{{}, true, info.st_dev, info.st_ino, !input};
  }
  Identity identity{.path = canonical_name(path)};
  if (::stat(path.c_str(), &info) == 0) {
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return std::nullopt;
    identity.exists = true;
    identity.device = info.st_dev;
    identity.inode = info.st_ino;
  }
  return identity;
}

// Finds the first name given to a file. Ordered by file, because there may be thousands of outputs.
class KnownFiles {
 public:
  void add(const Identity& file, const NamedFile& as) {
    if (!file.path.empty()) by_path_.emplace(file.path, &as);
    if (file.exists) by_inode_.emplace(std::tuple(file.shared, file.device, file.inode), &as);
  }
  // Null: no known file is the same, except open files that both may share.
  const NamedFile* find(const Identity& file) const {
    if (const auto found = by_path_.find(file.path); found != by_path_.end()) return found->second;
    if (!file.exists) return nullptr;
    auto found = by_inode_.find({false, file.device, file.inode});
    if (found == by_inode_.end() && !file.shared)
      found = by_inode_.find({true, file.device, file.inode});
    return found == by_inode_.end() ? nullptr : found->second;
  }

 private:
  std::map<std::string, const NamedFile*> by_path_;
  std::map<std::tuple<bool, dev_t, ino_t>, const NamedFile*> by_inode_;
};

}  // namespace

Status check_outputs(std::span<const NamedFile> outputs, std::span<const NamedFile> inputs) {
  KnownFiles read, written;
  for (const NamedFile& input : inputs) {
    if (const auto identity = identity_of(input.path, true)) read.add(*identity, input);
  }
  for (const NamedFile& output : outputs) {
    if (output.path.empty())
      return fail(ErrorCode::kUsage, "the name of the output file is empty", output.option,
                  "give a file name, or leave the option out");
    const auto identity = identity_of(output.path, false);
    if (!identity) continue;
    const std::string where = output.option + " " + output.path;
    if (const NamedFile* other = written.find(*identity))
      return fail(ErrorCode::kUsage, other->option + " writes the same file", where,
                  "give each output a file of its own");
    if (const NamedFile* input = read.find(*identity))
      return fail(ErrorCode::kUsage, "this is the " + input->option, where,
                  "give the output another name");
    if (identity->exists && !identity->path.empty()) {
      const Descriptor old(::open(output.path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
      if (old.get() < 0) return output_error(output.path, "overwrite", errno);
    }
    written.add(*identity, output);
  }
  return {};
}

}  // namespace hmmjit
