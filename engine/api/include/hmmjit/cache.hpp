// The kernel cache: compiled kernels on disk, shared between processes.
//
//   const hmmjit::Cache cache({.directory = "/scratch/kernels"});
//   hmmjit::SearchOptions options;
//   options.cache = cache.c_handle();
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "hmmjit/error.hpp"
#include "hmmjit/hmmjit.h"

HMMJIT_BEGIN_NAMESPACE

enum class CacheMode {
  kOff,        ///< no file is read or written; kernels stay in memory only
  kReadOnly,   ///< files are read, none is written
  kReadWrite,  ///< the default
  kRefresh,    ///< stored files are not read; every kernel is compiled anew and replaces its file
  kStrict,     ///< as read-only, and nothing may be compiled: a miss is an error
};

/// Format of the files: docs/cache-format.md.
struct CacheSettings {
  /// Folder of the user's kernels; empty: the cache is memory-only.
  std::string directory = {};
  /// Read-only folder, searched before the user's if it exists. Empty: none.
  std::string system_directory = {};
  CacheMode mode = CacheMode::kReadWrite;
  std::uint64_t max_bytes = std::uint64_t{1} << 30;           ///< on disk, of the user's folder
  std::uint64_t max_memory_bytes = std::uint64_t{256} << 20;  ///< kept by this process
  bool allow_group = false;                    ///< accept a folder that its group may write
  std::chrono::milliseconds lock_wait{30000};  ///< for another process that makes the same kernel
  /// Called from any thread, once per kind of store failure; null: failures are silent (the cache
  /// continues in memory). Runs with the floating-point mode of the thread that opened the
  /// cache. Must not throw.
  std::function<void(const Error&)> on_warning = {};

  /// Defaults, overridden by the environment variables HMMJIT_CACHE_*; the folder is
  /// HMMJIT_CACHE_DIR, else $XDG_CACHE_HOME/hmmjit, else $HOME/.cache/hmmjit. Throws Error kUsage
  /// for an unusable value. No other thread may change the environment meanwhile.
  HMMJIT_EXPORT static CacheSettings from_environment();
};

/// Counters of one cache object since it was opened, described in hmmjit.h.
using CacheStatistics = hmmjit_cache_statistics;

/// Handle: copies share one cache. Thread-safe. Several processes may use one folder.
class HMMJIT_EXPORT Cache : public SharedHandle<struct CacheImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Opens with the environment's settings. Throws Error kUsage if these are unusable.
  Cache();
  /// An unusable folder is no error: it causes a warning, and the cache is memory-only.
  explicit Cache(CacheSettings settings);
  Cache(const Cache&) = default;
  Cache& operator=(const Cache&) = default;

  CacheStatistics statistics() const;    ///< scans the user's folder
  const std::string& directory() const;  ///< the user's folder; empty: none

  /// Removes the least recently used entries until the folder is below `max_bytes` (0: below the
  /// settings' cap); returns their number. Throws Error kOutput without a usable, writable folder.
  std::uint64_t trim(std::uint64_t max_bytes = 0);
  /// Removes all entries of the user's folder, and temporaries older than an hour; returns the
  /// number of entries. Throws as trim does, and kOutput if an entry cannot be removed.
  std::uint64_t clear();
  /// Writes every intact entry to one file with checksum; returns their number. Throws Error
  /// kOutput, or kInput without any entry.
  std::uint64_t export_bundle(const std::string& path) const;
  /// Adds the entries of such a file, then trims to the settings' cap; returns the number of new
  /// entries. All or nothing: throws Error kInput on any damage. Import only trusted files: their
  /// kernels run.
  std::uint64_t import_bundle(const std::string& path);

  /// For SearchOptions::cache; valid while this object lives.
  const hmmjit_cache* c_handle() const noexcept;
};

HMMJIT_END_NAMESPACE
