// The kernel cache on disk: compiled kernels under complete keys, shared between processes.
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
  kOff,        ///< no file is read or written; kernels live in memory only
  kReadOnly,   ///< files are read, none is written
  kReadWrite,  ///< the default
  kRefresh,    ///< stored files are not read; everything is made again and replaces them
  kStrict,     ///< as read-only, and nothing may be compiled: a miss is an error
};

/// Format of the files: docs/cache-format.md.
struct CacheSettings {
  /// Folder of the user's kernels; empty: the cache is memory only.
  std::string directory = {};
  /// Read-only folder that is searched before the user's, if it exists. Empty: none.
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
  /// for an unusable value. Reads the environment: not while another thread changes it.
  HMMJIT_EXPORT static CacheSettings from_environment();
};

/// Counters of one cache object since it was opened, described in hmmjit.h.
using CacheStatistics = hmmjit_cache_statistics;

/// A handle: copies share one cache. Thread-safe; several processes may use one folder.
class HMMJIT_EXPORT Cache : public SharedHandle<struct CacheImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// Opens with the environment's settings. Throws Error kUsage for unusable ones.
  Cache();
  /// Never fails on an unusable folder: that is a warning, and the cache is memory only.
  explicit Cache(CacheSettings settings);
  Cache(const Cache&) = default;
  Cache& operator=(const Cache&) = default;

  CacheStatistics statistics() const;    ///< looks through the user's folder
  const std::string& directory() const;  ///< the user's folder; empty: none

  /// Removes the least recently used entries until the folder is below `max_bytes` (0: below the
  /// settings' cap); returns how many. Throws Error kOutput without a usable, writable folder.
  std::uint64_t trim(std::uint64_t max_bytes = 0);
  /// Removes all entries of the user's folder and temporary files older than an hour; returns how
  /// many entries. Throws as trim does, and kOutput when an entry could not be removed.
  std::uint64_t clear();
  /// Writes every intact entry into one checked file; returns how many. Throws Error kOutput, or
  /// kInput when there is nothing to write.
  std::uint64_t export_bundle(const std::string& path) const;
  /// Adds the entries of such a file, then trims to the settings' cap; returns how many were new.
  /// All or nothing: throws Error kInput on any damage. Kernels run: import what you trust only.
  std::uint64_t import_bundle(const std::string& path);

  /// As options of a search refer to it; valid while this object lives.
  const hmmjit_cache* c_handle() const noexcept;
};

HMMJIT_END_NAMESPACE
