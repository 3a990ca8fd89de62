#include "compile/tuning_store.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "cache/entry_store.hpp"
#include "compile/kernel_compiler.hpp"
#include "core/digest.hpp"

namespace hmmjit::compile {
namespace {

namespace fs = std::filesystem;

Status may_write(const cache::Settings& settings) {
  if (!tuning_path(settings).empty() &&
      (settings.mode == cache::Mode::kReadWrite || settings.mode == cache::Mode::kRefresh)) {
    return {};
  }
  return fail(ErrorCode::kUsage, "measurements have no place to be kept", "kernel cache",
              "set HMMJIT_CACHE_DIR to a writable folder and HMMJIT_CACHE_MODE to rw");
}

constexpr const char* kFileName = "tuning.jsonl";
// A measurement takes about 200 bytes.
constexpr std::size_t kMostBytes = std::size_t{16} << 20;

// The folder of the kernel cache, checked by its rules.
Result<cache::EntryStore> open_store(const cache::Settings& settings) {
  cache::StoreOptions options;
  options.allow_group = settings.allow_group;
  return cache::EntryStore::open(settings.directory, options);
}

}  // namespace

std::string catalogue_version(const render::TemplateLibrary& templates) {
  DigestStream digest;
  digest.update(kLaunchAbi);
  for (const auto& [path, text] : templates.texts()) {
    for (const std::string_view part : {std::string_view(path), std::string_view(text)}) {
      digest.update(std::to_string(part.size()) + ":");
      digest.update(part);
    }
  }
  return digest.value().hex().substr(0, 16);
}

std::string tuning_path(const cache::Settings& settings) {
  if (settings.directory.empty() || settings.mode == cache::Mode::kOff) return {};
  return settings.directory + "/" + kFileName;
}

bool tuning_wanted() {
  const char* value = std::getenv("HMMJIT_TUNED");
  if (value == nullptr) return true;
  for (const char* no : {"0", "off", "no"}) {
    if (std::strcmp(value, no) == 0) return false;
  }
  return true;
}

LoadedTuning load_tuning(const cache::Settings& settings, const std::string& catalogue) {
  LoadedTuning out;
  const std::string path = tuning_path(settings);
  if (path.empty()) return out;
  // Another user's file must not choose kernels, hang the process or exhaust its memory.
  const auto store = open_store(settings);
  if (!store) return out;
  const auto text = store->read(path);
  if (!text || text->size() > kMostBytes) return out;
  out.table = plan::TuningTable::parse(*text, catalogue, &out.skipped);
  return out;
}

Status prepare_tuning(const cache::Settings& settings) {
  HMMJIT_TRY(may_write(settings));
  HMMJIT_ASSIGN(const cache::EntryStore store, open_store(settings));
  return store.prepare();
}

Status store_tuning(const cache::Settings& settings, const plan::TuningTable& table) {
  HMMJIT_TRY(prepare_tuning(settings));
  HMMJIT_ASSIGN(const cache::EntryStore store, open_store(settings));
  return store.replace_file(kFileName, table.text());
}

Result<bool> clear_tuning(const cache::Settings& settings) {
  HMMJIT_TRY(may_write(settings));
  std::error_code error;
  const bool removed = fs::remove(tuning_path(settings), error);
  if (error) return fail(ErrorCode::kOutput, error.message(), tuning_path(settings));
  return removed;
}

}  // namespace hmmjit::compile
