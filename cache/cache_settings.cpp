#include "cache/cache_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "core/numbers.hpp"
#include "core/own_file.hpp"

namespace hmmjit::cache {
namespace {

constexpr std::array kModeNames{"off", "ro", "rw", "refresh", "strict"};  // by Mode

constexpr const char* kDefaultSystemDirectory = "/usr/share/hmmjit/kernels";

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "1" || text == "yes" || text == "true" || text == "on") return true;
  if (text == "0" || text == "no" || text == "false" || text == "off") return false;
  return std::nullopt;
}

std::unexpected<Error> unusable(std::string_view variable, std::string_view value,
                                std::string_view takes) {
  return fail(ErrorCode::kUsage, fmt::format("unusable value '{}'", value), std::string(variable),
              fmt::format("it takes {}", takes));
}

}  // namespace

const char* mode_name(Mode mode) { return kModeNames[static_cast<std::size_t>(mode)]; }

std::optional<Mode> parse_mode(std::string_view name) {
  const auto found = std::ranges::find(kModeNames, name);
  if (found == kModeNames.end()) return std::nullopt;
  return static_cast<Mode>(found - kModeNames.begin());
}

const std::vector<SettingDescription>& setting_descriptions() {
  static const std::vector<SettingDescription> descriptions = {
      {"HMMJIT_CACHE_DIR", "--cache-dir",
       "folder of the user's kernels (default $XDG_CACHE_HOME/hmmjit, else $HOME/.cache/hmmjit)"},
      {"HMMJIT_CACHE_SYSTEM_DIR", "--cache-system-dir",
       "read-only folder to search first (default /usr/share/hmmjit/kernels; empty: none)"},
      {"HMMJIT_CACHE_MODE", "--cache-mode", "off, ro, rw (default), refresh or strict"},
      {"HMMJIT_CACHE_MAX_SIZE", "--cache-max-size", "cap of the user's folder (default 1G)"},
      {"HMMJIT_CACHE_MEMORY_SIZE", "--cache-memory-size",
       "cap of the kernels kept in memory (default 256M)"},
      {"HMMJIT_CACHE_ALLOW_GROUP", "--cache-allow-group",
       "1: accept a folder its group may write and entries of other users (default 0)"},
      {"HMMJIT_CACHE_LOCK_WAIT_MS", "--cache-lock-wait-ms",
       "how long to wait for another process that makes the same kernel (default 30000)"},
  };
  return descriptions;
}

Status apply_setting(Settings& settings, std::string_view variable, std::string_view value) {
  if (variable == "HMMJIT_CACHE_DIR" || variable == "HMMJIT_CACHE_SYSTEM_DIR") {
    const bool user = variable == "HMMJIT_CACHE_DIR";
    if (value.empty() ? user : value.front() != '/') {
      return unusable(variable, value, "an absolute path");
    }
    while (value.size() > 1 && value.ends_with('/')) value.remove_suffix(1);
    (user ? settings.directory : settings.system_directory) = value;
  } else if (variable == "HMMJIT_CACHE_MODE") {
    const auto mode = parse_mode(value);
    if (!mode) return unusable(variable, value, "off, ro, rw, refresh or strict");
    settings.mode = *mode;
  } else if (variable == "HMMJIT_CACHE_MAX_SIZE" || variable == "HMMJIT_CACHE_MEMORY_SIZE") {
    const auto bytes = parse_bytes(value);
    if (!bytes) return unusable(variable, value, "a byte count such as 512M or 2G");
    (variable == "HMMJIT_CACHE_MAX_SIZE" ? settings.max_bytes : settings.max_memory_bytes) = *bytes;
  } else if (variable == "HMMJIT_CACHE_ALLOW_GROUP") {
    const auto allow = parse_bool(value);
    if (!allow) return unusable(variable, value, "0 or 1");
    settings.allow_group = *allow;
  } else if (variable == "HMMJIT_CACHE_LOCK_WAIT_MS") {
    const auto wait = parse_int(value);
    if (!wait || *wait < 0 || *wait > 86'400'000) {
      return unusable(variable, value, "milliseconds from 0 to 86400000");
    }
    settings.lock_wait = std::chrono::milliseconds(*wait);
  } else {
    return fail(ErrorCode::kInternal, "unknown cache setting", std::string(variable));
  }
  return {};
}

namespace {

// share/hmmjit/kernels below the installation prefix (found from the path of the program or
// library), or the default folder if there is none.
std::string installed_kernels() {
  namespace fs = std::filesystem;
  std::error_code failed;
  fs::path folder = own_file();
  // bin, lib, lib/x86_64-linux-gnu, lib/python3/dist-packages/hmmjit
  constexpr int kDeepest = 5;
  for (int i = 0; i < kDeepest && folder.has_relative_path(); ++i) {
    folder = folder.parent_path();
    const fs::path kernels = folder / "share/hmmjit/kernels";
    if (fs::is_directory(kernels, failed)) return kernels.string();
  }
  return kDefaultSystemDirectory;
}

}  // namespace

Result<Settings> settings_from_environment() {
  return settings_from_environment([](const char* name) { return std::getenv(name); });
}

Result<Settings> settings_from_environment(const GetEnvironment& get) {
  Settings settings;
  settings.system_directory = installed_kernels();
  const auto absolute = [&](const char* name) -> std::string {
    const char* value = get(name);
    return value != nullptr && *value == '/' ? value : "";
  };
  if (const std::string xdg = absolute("XDG_CACHE_HOME"); !xdg.empty()) {
    settings.directory = xdg + "/hmmjit";
  } else if (const std::string home = absolute("HOME"); !home.empty()) {
    settings.directory = home + "/.cache/hmmjit";
  }
  for (const SettingDescription& setting : setting_descriptions()) {
    if (const char* value = get(setting.variable)) {
      // Many job scripts set a variable to "" instead of unsetting it.
      if (*value == '\0' && std::string_view(setting.variable) != "HMMJIT_CACHE_SYSTEM_DIR")
        continue;
      HMMJIT_TRY(apply_setting(settings, setting.variable, value));
    }
  }
  return settings;
}

}  // namespace hmmjit::cache
