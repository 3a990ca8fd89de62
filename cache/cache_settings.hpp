// Settings of the cache: its folders, its mode and its limits.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cache/entry_store.hpp"
#include "core/error.hpp"

namespace hmmjit::cache {

enum class Mode {
  kOff,        ///< no file is read or written; kernels stay in memory only
  kReadOnly,   ///< "ro": files are read, but none is written (no time stamps, no counters)
  kReadWrite,  ///< "rw", the default
  kRefresh,    ///< stored files are not read; every kernel is compiled anew and replaces its file
  kStrict,     ///< as ro, and nothing may be compiled: a miss is an error
};

const char* mode_name(Mode mode);
std::optional<Mode> parse_mode(std::string_view name);

struct Settings {
  /// User layer. Empty: unknown (HOME unset), and the cache is memory-only.
  std::string directory;
  /// Read-only layer, searched first if the folder exists. Empty: none.
  std::string system_directory;
  Mode mode = Mode::kReadWrite;
  std::uint64_t max_bytes = std::uint64_t{1} << 30;  ///< allocated blocks of the user layer
  std::uint64_t max_memory_bytes = std::uint64_t{256} << 20;  ///< payloads kept by the process
  /// Accept a user folder that is group-writable. World-writable folders are always refused.
  bool allow_group = false;
  /// How long `lock` waits for another process that makes the same kernel.
  std::chrono::milliseconds lock_wait{30'000};
  /// Called (on any thread) once per kind of store failure; the cache itself prints nothing.
  std::function<void(const Error&)> on_warning;
  /// Fault injection for tests (StoreOptions::before_step).
  std::function<int(PublishStep)> before_publish_step;
};

struct SettingDescription {
  const char* variable;  ///< environment variable, e.g. HMMJIT_CACHE_DIR
  const char* flag;      ///< its command-line flag, e.g. --cache-dir
  const char* help;
};

/// All settings that users can change, in documentation order.
const std::vector<SettingDescription>& setting_descriptions();

/// Sets one setting by its variable name. The kUsage error names the variable and its valid values.
Status apply_setting(Settings& settings, std::string_view variable, std::string_view value);

using GetEnvironment = std::function<const char*(const char*)>;

/// The defaults, overridden by HMMJIT_CACHE_*. The user folder is HMMJIT_CACHE_DIR, else
/// $XDG_CACHE_HOME/hmmjit, else $HOME/.cache/hmmjit (relative values are ignored, as the XDG
/// specification requires), else none.
Result<Settings> settings_from_environment();
Result<Settings> settings_from_environment(const GetEnvironment& get);

}  // namespace hmmjit::cache
