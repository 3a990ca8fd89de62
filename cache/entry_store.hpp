// A folder of entries: <root>/<2 hex>/<30 hex>.entry, published by rename.
#pragma once

#include <sys/stat.h>

#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/cache_key.hpp"
#include "cache/entry_format.hpp"
#include "core/error.hpp"

namespace hmmjit::cache {

/// Identifies a file that was read: a deletion must not remove its replacement.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t change_seconds = 0, change_nanoseconds = 0;
  auto operator<=>(const FileIdentity&) const = default;
};

/// Steps of a publication, in order (see StoreOptions::before_step).
enum class PublishStep {
  kMakeFolder,
  kOpenTemporary,
  kWriteFirstHalf,
  kWriteSecondHalf,
  kSync,
  kClose,
  kRename,
  kSyncFolder,
  kDone,
};

enum class Access { kReadOnly, kReadWrite };

/// Offsets in the lock file, above those of keys (below 2^62).
inline constexpr std::uint64_t kStatisticsLockOffset = (std::uint64_t{1} << 62) + 1;
inline constexpr std::uint64_t kTrimLockOffset = (std::uint64_t{1} << 62) + 2;
inline constexpr std::uint64_t kIdleWarmLockOffset = (std::uint64_t{1} << 62) + 3;

struct StoreOptions {
  Access access = Access::kReadWrite;
  bool allow_group = false;
  bool allow_root_owner = false;  ///< the system layer may belong to root
  /// Fault injection for tests: called before each step; a non-zero result makes the step fail with
  /// that errno.
  std::function<int(PublishStep)> before_step;

  static StoreOptions of_system_folder() {
    StoreOptions options;
    options.access = Access::kReadOnly;
    options.allow_root_owner = true;
    return options;
  }
};

struct FindResult {
  enum class State { kHit, kMiss, kBad };
  State state = State::kMiss;
  Entry entry;            ///< valid if kHit
  FileIdentity identity;  ///< of the file read, if kHit or kBad
  std::string reason;     ///< of kMiss or kBad
};

struct StoredFile {
  Digest name;  ///< taken from the file name
  std::string path;
  std::uint64_t allocated = 0;  ///< bytes on disk (blocks), as du counts them
  std::uint64_t size = 0;
  std::int64_t last_used = 0;  ///< our own time stamp (mtime), nanoseconds since the epoch
  FileIdentity identity;
};

struct StoreScan {
  std::vector<StoredFile> entries;
  std::vector<StoredFile> temporaries;  ///< unfinished publications (name is zero)
  std::uint64_t allocated_total = 0;    ///< the whole tree including folders, as `du -s` reports
};

/// Thread-safe; keeps no descriptor between calls, so the folder may be removed at any time.
class EntryStore {
 public:
  /// Checks the folder if it exists: it must be a folder that belongs to the user (or, if allowed,
  /// to root) and that others cannot write to (nor the group, unless allowed). Creates nothing:
  /// `prepare` does, before the first lock or publication. Fails with kOutput and a remedy.
  static Result<EntryStore> open(std::string root, StoreOptions options);

  const std::string& root() const { return root_; }
  std::string entry_path(const Digest& digest) const;
  std::string lock_path() const { return root_ + "/lock"; }
  /// Offset of a key's byte in the lock file.
  static std::uint64_t lock_offset(const Digest& digest) { return digest.low >> 2; }
  Access access() const { return options_.access; }
  unsigned file_mode() const { return options_.allow_group ? 0660 : 0600; }

  /// Takes no lock. A missing file, or one replaced or removed meanwhile (ENOENT, ESTALE), is a
  /// miss; a damaged or foreign file, or one with another key, is kBad. In a writable store, a hit
  /// updates the time stamp at most once an hour.
  FindResult find(const CacheKey& key, Attachments attachments = Attachments::kSkip) const;

  /// Writes a temporary in the entry's folder, syncs, closes and renames it, and syncs the folder.
  /// Returns the bytes newly allocated on disk. Fails with kOutput.
  Result<std::uint64_t> publish(const CacheKey& key, const Entry& entry) const;
  /// publish() for bytes that are already encoded and checked. `identity` receives the published
  /// file's, or zeros if another process replaced the file at once.
  Result<std::uint64_t> publish_bytes(const Digest& digest, std::string_view bytes,
                                      FileIdentity* identity = nullptr) const;

  /// Deletes the file only if it is still the one that was read; returns true if it was deleted.
  bool remove(const Digest& digest, const FileIdentity& identity) const {
    return remove_path(entry_path(digest), identity);
  }
  bool remove_path(const std::string& path, const FileIdentity& identity) const;

  bool exists() const;

  /// Creates and checks the root folder (with a CACHEDIR.TAG, so that backups skip it).
  Status prepare() const;

  /// Replaces a small file in the root folder by rename, without fsync: a crash cannot tear it, but
  /// a power failure may lose it.
  Status replace_file(const std::string& name, std::string_view bytes) const;

  /// Reads a whole file; fails with kInput if it is absent or untrusted.
  Result<std::string> read(const std::string& path, FileIdentity* identity = nullptr) const;

  /// Never fails: files that disappear during the walk are omitted.
  StoreScan scan() const;

  /// Calls `use` with the key of each intact entry. Reads every entry: not for hot paths.
  void for_each_key(const std::function<void(CacheKey)>& use) const;

 private:
  EntryStore(std::string root, StoreOptions options)
      : root_(std::move(root)), options_(std::move(options)) {}
  Status check_folder() const;
  Status make_folder(const std::string& path, unsigned group_mode = 02770) const;
  int share(int descriptor, unsigned mode) const;
  void stamp(const std::string& path, FileIdentity& identity) const;
  void scan_folder(const std::string& folder, int depth, StoreScan& result) const;
  Status step(PublishStep step, const std::string& path) const;
  Result<std::uint64_t> publish_once(const Digest& digest, std::string_view bytes,
                                     FileIdentity* identity, bool& retry) const;

  std::string root_;
  StoreOptions options_;
};

}  // namespace hmmjit::cache
