#include "cache/entry_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <optional>

#include "core/at_end.hpp"
#include "core/descriptor.hpp"
#include "core/folder.hpp"

namespace hmmjit::cache {
namespace {

constexpr std::string_view kEntrySuffix = ".entry";
constexpr std::string_view kTemporaryPrefix = "tmp-";
constexpr std::int64_t kStampInterval = 3600;
constexpr std::uint64_t kMaxEntryBytes = std::uint64_t{1} << 30;
constexpr const char* kCacheTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# Cached GPU kernels of hmmjit; safe to delete at any time (hmmjit cache clear).\n";

std::unexpected<Error> store_error(const std::string& path, const char* action, int error) {
  const char* remedy = "free space, or set HMMJIT_CACHE_DIR to a folder you can write";
  return fail(ErrorCode::kOutput, fmt::format("cannot {}: {}", action, std::strerror(error)), path,
              remedy);
}

FileIdentity identity_of(const struct stat& info) {
  return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino),
          static_cast<std::uint64_t>(info.st_size), info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
}

std::uint64_t allocated(const struct stat& info) {
  return static_cast<std::uint64_t>(info.st_blocks) * 512;
}

/// 64 random bits: process ids repeat among machines that share a file system.
std::string unique_suffix() {
  static std::atomic<std::uint64_t> counter{0};
  std::uint64_t random = 0;
  if (::getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    random = static_cast<std::uint64_t>(now.tv_nsec) * 0x9e3779b97f4a7c15u;
  }
  return fmt::format("{}-{}-{:016x}", ::getpid(), counter.fetch_add(1), random);
}

int sync_folder(const std::string& path) {
  const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0) return errno;
  if (::fsync(folder.get()) == 0) return 0;
  // Network file systems that cannot sync folders say so; their renames are already durable.
  return errno == EINVAL || errno == ENOTSUP ? 0 : errno;
}

std::optional<Digest> name_of(std::string_view folder, std::string_view file) {
  if (folder.size() != 2 || !file.ends_with(kEntrySuffix)) return std::nullopt;
  file.remove_suffix(kEntrySuffix.size());
  return Digest::from_hex(std::string(folder) + std::string(file));
}

}  // namespace

Result<EntryStore> EntryStore::open(std::string root, StoreOptions options) {
  EntryStore store(std::move(root), std::move(options));
  struct stat info {};
  if (::stat(store.root_.c_str(), &info) == 0) {
    HMMJIT_TRY(store.check_folder());
  } else if (errno != ENOENT) {
    return store_error(store.root_, "use the kernel cache folder", errno);
  }
  return store;
}

std::string EntryStore::entry_path(const Digest& digest) const {
  const std::string hex = digest.hex();
  return fmt::format("{}/{}/{}{}", root_, hex.substr(0, 2), hex.substr(2), kEntrySuffix);
}

Status EntryStore::check_folder() const {
  struct stat info {};
  if (::stat(root_.c_str(), &info) != 0) {
    return store_error(root_, "use the kernel cache folder", errno);
  }
  if (!S_ISDIR(info.st_mode)) {
    return fail(ErrorCode::kOutput, "the kernel cache folder is not a folder", root_,
                "remove that file or set HMMJIT_CACHE_DIR");
  }
  // Whoever can write here chooses code that runs on the GPU with the user's rights.
  const bool owner_trusted = info.st_uid == ::geteuid() ||
                             (options_.allow_root_owner && info.st_uid == 0) ||
                             options_.allow_group;
  if (!owner_trusted) {
    return fail(ErrorCode::kOutput,
                fmt::format("refused: the kernel cache folder belongs to user id {}", info.st_uid),
                root_, "use a folder of your own, or set HMMJIT_CACHE_ALLOW_GROUP=1 to share it");
  }
  if ((info.st_mode & S_IWOTH) != 0) {
    return fail(ErrorCode::kOutput, "refused: every user may write the kernel cache folder", root_,
                fmt::format("chmod o-w '{}'", root_));
  }
  if ((info.st_mode & S_IWGRP) != 0 && !options_.allow_group) {
    return fail(
        ErrorCode::kOutput, "refused: the group may write the kernel cache folder", root_,
        fmt::format("chmod g-w '{}', or set HMMJIT_CACHE_ALLOW_GROUP=1 to share it", root_));
  }
  return {};
}

// Gives a new file or folder of a shared cache to the cache's group, because the umask may have
// removed the group's permissions, and only a setgid folder passes its group on. Returns 0 or an
// errno.
int EntryStore::share(int descriptor, unsigned mode) const {
  if (!options_.allow_group) return 0;
  struct stat folder {};
  if (::stat(root_.c_str(), &folder) == 0) {
    // Only a member of the group can give to it.
    [[maybe_unused]] const int given = ::fchown(descriptor, static_cast<uid_t>(-1), folder.st_gid);
  }
  return ::fchmod(descriptor, static_cast<mode_t>(mode)) == 0 ? 0 : errno;
}

Status EntryStore::make_folder(const std::string& path, unsigned group_mode) const {
  const unsigned mode = options_.allow_group ? group_mode : 0700;
  if (::mkdir(path.c_str(), static_cast<mode_t>(mode)) == 0) {
    if (!options_.allow_group) return {};
    // Another member of the group may have put a link in its place.
    const Descriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (const int error = folder.get() < 0 ? errno : share(folder.get(), mode)) {
      return store_error(path, "set the rights of a cache folder", error);
    }
    return {};
  }
  if (errno == EEXIST) return {};
  return store_error(path, "make the kernel cache folder", errno);
}

bool EntryStore::exists() const {
  struct stat info {};
  return ::stat(root_.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Status EntryStore::prepare() const {
  if (options_.access == Access::kReadOnly) {
    return fail(ErrorCode::kOutput, "this cache folder is used read-only", root_);
  }
  struct stat info {};
  if (::stat(root_.c_str(), &info) != 0) {
    // XDG requires parents that only the owner can enter, but a group must reach its shared folder.
    for (std::size_t slash = root_.find('/', 1); slash != std::string::npos;
         slash = root_.find('/', slash + 1)) {
      const std::string parent = root_.substr(0, slash);
      const Status made = make_folder(parent, 02710);
      if (!made && ::stat(parent.c_str(), &info) != 0) return made;
    }
    HMMJIT_TRY(make_folder(root_));
  }
  HMMJIT_TRY(check_folder());
  if (::access((root_ + "/CACHEDIR.TAG").c_str(), F_OK) != 0) {
    HMMJIT_TRY(replace_file("CACHEDIR.TAG", kCacheTag));
  }
  return {};
}

Status EntryStore::replace_file(const std::string& name, std::string_view bytes) const {
  const std::string path = root_ + "/" + name;
  const std::string temporary = fmt::format("{}/{}{}", root_, kTemporaryPrefix, unique_suffix());
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                         static_cast<mode_t>(file_mode())));
  if (file.get() < 0) return store_error(temporary, "make a file", errno);
  int error = share(file.get(), file_mode());
  if (error == 0) error = write_all(file.get(), bytes);
  if (file.close() != 0 && error == 0) error = errno;
  if (error == 0 && ::rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return {};
  ::unlink(temporary.c_str());
  return store_error(path, "write", error);
}

Result<std::string> EntryStore::read(const std::string& path, FileIdentity* identity) const {
  // O_NONBLOCK: a FIFO in place of an entry must not block the search.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) {
    return fail(ErrorCode::kInput, std::strerror(errno), errno == ENOENT ? "absent" : path);
  }
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return fail(ErrorCode::kInput, std::strerror(errno), path);
  if (identity != nullptr) *identity = identity_of(info);
  if (!S_ISREG(info.st_mode)) return fail(ErrorCode::kInput, "not a regular file", "untrusted");
  const bool trusted = info.st_uid == ::geteuid() ||
                       (options_.allow_root_owner && info.st_uid == 0) || options_.allow_group;
  const mode_t forbidden = options_.allow_group ? S_IWOTH : S_IWOTH | S_IWGRP;
  if (!trusted || (info.st_mode & forbidden) != 0) {
    return fail(ErrorCode::kInput, "written or writable by another user", "untrusted");
  }
  const auto size = static_cast<std::uint64_t>(info.st_size);
  if (size > kMaxEntryBytes) return fail(ErrorCode::kInput, "larger than any entry", "untrusted");
  std::string bytes(size, '\0');
  const ssize_t got = read_fully(file.get(), bytes);
  if (got < 0) return fail(ErrorCode::kInput, std::strerror(errno), path);
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

void EntryStore::stamp(const std::string& path, FileIdentity& identity) const {
  // Our own time stamp: access times are off or coarse on most mounts. Updated at most once an
  // hour, so that hits rarely write, and if it lies over an hour in the future (the clock was set
  // back).
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || identity_of(info) != identity) return;
  const std::int64_t age = std::time(nullptr) - info.st_mtim.tv_sec;
  if (age < kStampInterval && age > -kStampInterval) return;
  if (::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0) return;
  if (::lstat(path.c_str(), &info) == 0 && info.st_ino == identity.inode) {
    identity = identity_of(info);
  }
}

FindResult EntryStore::find(const CacheKey& key, Attachments attachments) const {
  FindResult result;
  if (!key.valid()) {
    result.reason = "the key has a repeated or empty component name";
    return result;
  }
  const std::string path = entry_path(key.digest());
  const auto bytes = read(path, &result.identity);
  if (!bytes) {
    const Error& error = bytes.error();
    if (error.where == "untrusted") {
      result.state = FindResult::State::kBad;
      result.reason = error.message;
    } else {
      // Removed, replaced, or stale on a network file system: a miss in each case.
      result.reason = error.where == "absent" ? "no entry" : "unreadable: " + error.message;
    }
    return result;
  }
  auto entry = decode_entry_for(*bytes, key, attachments);
  if (entry) {
    result.state = FindResult::State::kHit;
    result.entry = std::move(*entry);
    if (options_.access == Access::kReadWrite) stamp(path, result.identity);
  } else {
    result.state =
        entry.error().where == kKeyCollides ? FindResult::State::kMiss : FindResult::State::kBad;
    result.reason = entry.error().message;
  }
  return result;
}

Status EntryStore::step(PublishStep step, const std::string& path) const {
  if (!options_.before_step) return {};
  if (const int error = options_.before_step(step)) return store_error(path, "publish", error);
  return {};
}

Result<std::uint64_t> EntryStore::publish(const CacheKey& key, const Entry& entry) const {
  HMMJIT_ASSIGN(const std::string bytes, encode_entry(key, entry));
  return publish_bytes(key.digest(), bytes);
}

Result<std::uint64_t> EntryStore::publish_bytes(const Digest& digest, std::string_view bytes,
                                                FileIdentity* identity) const {
  // A concurrent `clear` or trim may remove the folder between two steps; retry once.
  bool retry = false;
  auto result = publish_once(digest, bytes, identity, retry);
  if (!result && retry) result = publish_once(digest, bytes, identity, retry);
  return result;
}

Result<std::uint64_t> EntryStore::publish_once(const Digest& digest, std::string_view bytes,
                                               FileIdentity* identity, bool& retry) const {
  const std::string path = entry_path(digest);
  const std::string folder = path.substr(0, path.rfind('/'));
  const std::string temporary = fmt::format("{}/{}{}", folder, kTemporaryPrefix, unique_suffix());
  const auto failed = [&](const char* action, int error) {
    retry = error == ENOENT || error == ESTALE;
    return store_error(path, action, error);
  };

  HMMJIT_TRY(step(PublishStep::kMakeFolder, path));
  HMMJIT_TRY(prepare());
  struct stat info {};
  const bool new_folder = ::stat(folder.c_str(), &info) != 0;
  HMMJIT_TRY(make_folder(folder));

  HMMJIT_TRY(step(PublishStep::kOpenTemporary, path));
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                         static_cast<mode_t>(file_mode())));
  if (file.get() < 0) return failed("make a temporary cache file", errno);
  bool renamed = false;
  const AtEnd unlink_temporary{[&] {
    if (!renamed) ::unlink(temporary.c_str());
  }};
  if (const int error = share(file.get(), file_mode())) {
    return failed("set the rights of a cache file", error);
  }

  const std::size_t half = bytes.size() / 2;
  HMMJIT_TRY(step(PublishStep::kWriteFirstHalf, path));
  if (const int error = write_all(file.get(), bytes.substr(0, half))) return failed("write", error);
  HMMJIT_TRY(step(PublishStep::kWriteSecondHalf, path));
  if (const int error = write_all(file.get(), bytes.substr(half))) return failed("write", error);
  HMMJIT_TRY(step(PublishStep::kSync, path));
  if (::fsync(file.get()) != 0) return failed("sync", errno);
  if (::fstat(file.get(), &info) != 0) return failed("examine", errno);
  std::uint64_t added = allocated(info);
  const auto written = info.st_ino;
  HMMJIT_TRY(step(PublishStep::kClose, path));
  if (file.close() != 0) return failed("close", errno);

  HMMJIT_TRY(step(PublishStep::kRename, path));
  if (::rename(temporary.c_str(), path.c_str()) != 0) return failed("rename", errno);
  renamed = true;
  // Renaming updates the change time, a part of the identity.
  if (identity != nullptr) {
    const bool ours = ::lstat(path.c_str(), &info) == 0 && info.st_ino == written;
    *identity = ours ? identity_of(info) : FileIdentity{};
  }
  HMMJIT_TRY(step(PublishStep::kSyncFolder, path));
  if (const int error = sync_folder(folder)) return failed("sync the folder of", error);
  if (new_folder) {
    if (const int error = sync_folder(root_)) return failed("sync the folder of", error);
    if (::stat(folder.c_str(), &info) == 0) added += allocated(info);
  }
  HMMJIT_TRY(step(PublishStep::kDone, path));
  return added;
}

bool EntryStore::remove_path(const std::string& path, const FileIdentity& identity) const {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0 || identity_of(info) != identity) return false;
  return ::unlink(path.c_str()) == 0;
}

StoreScan EntryStore::scan() const {
  StoreScan result;
  struct stat info {};
  if (::stat(root_.c_str(), &info) != 0) return result;
  result.allocated_total = allocated(info);
  scan_folder(root_, 0, result);
  return result;
}

void EntryStore::for_each_key(const std::function<void(CacheKey)>& use) const {
  for (const StoredFile& file : scan().entries) {
    const auto bytes = read(file.path);
    if (!bytes) continue;
    if (auto decoded = decode_entry(*bytes, Attachments::kSkip)) use(std::move(decoded->key));
  }
}

void EntryStore::scan_folder(const std::string& folder, int depth, StoreScan& result) const {
  const auto names = names_in_folder(folder);
  if (!names) return;  // removed meanwhile; skip this folder
  for (const std::string& name : *names) {
    const std::string path = folder + '/' + name;
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0) continue;
    result.allocated_total += allocated(info);
    if (S_ISDIR(info.st_mode)) scan_folder(path, depth + 1, result);
    if (!S_ISREG(info.st_mode) || depth > 1) continue;
    StoredFile file;
    file.path = path;
    file.allocated = allocated(info);
    file.size = static_cast<std::uint64_t>(info.st_size);
    file.last_used = info.st_mtim.tv_sec * std::int64_t{1'000'000'000} + info.st_mtim.tv_nsec;
    file.identity = identity_of(info);
    if (name.starts_with(kTemporaryPrefix)) {
      result.temporaries.push_back(std::move(file));
    } else if (const auto digest =
                   name_of(std::filesystem::path(folder).filename().string(), name)) {
      file.name = *digest;
      result.entries.push_back(std::move(file));
    }
  }
}

}  // namespace hmmjit::cache
