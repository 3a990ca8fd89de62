#include "compile/tuning_store.hpp"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "cache/digest.hpp"
#include "compile/kernel_compiler.hpp"
#include "core/output_file.hpp"

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

}  // namespace

std::string catalogue_version(const render::TemplateLibrary& templates) {
  cache::DigestStream digest;
  digest.update(kLaunchAbi);
  for (const auto& [path, text] : templates.texts()) {
    for (const std::string_view part : {std::string_view(path), std::string_view(text)}) {
      digest.update(std::to_string(part.size()) + ":");
      digest.update(part);
    }
  }
  return digest.digest().hex().substr(0, 16);
}

std::string tuning_path(const cache::Settings& settings) {
  if (settings.directory.empty() || settings.mode == cache::Mode::kOff) return {};
  return settings.directory + "/tuning.jsonl";
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
  std::ifstream file(path, std::ios::binary);
  if (path.empty() || !file) return out;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  out.table = plan::TuningTable::parse(text, catalogue, &out.skipped);
  return out;
}

Status store_tuning(const cache::Settings& settings, const plan::TuningTable& table) {
  HMMJIT_TRY(may_write(settings));
  std::error_code error;
  if (!fs::exists(settings.directory, error)) {
    fs::create_directories(settings.directory, error);
    fs::permissions(settings.directory, fs::perms::owner_all, error);
  }
  HMMJIT_ASSIGN(OutputFile file, OutputFile::create(tuning_path(settings)));
  file.write(table.text());
  return file.commit();
}

Result<bool> clear_tuning(const cache::Settings& settings) {
  HMMJIT_TRY(may_write(settings));
  std::error_code error;
  const bool removed = fs::remove(tuning_path(settings), error);
  if (error) return fail(ErrorCode::kOutput, error.message(), tuning_path(settings));
  return removed;
}

}  // namespace hmmjit::compile
