#include "render/template_library.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <functional>

#include "core/folder.hpp"
#include "core/read_only_file.hpp"

namespace hmmjit::render {

TemplateLibrary TemplateLibrary::embedded() {
  TemplateLibrary library;
  library.origin_ = "embedded";
  for (const Template& t : embedded_templates()) library.texts_.emplace(t.path, t.text);
  return library;
}

Result<TemplateLibrary> TemplateLibrary::from_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  TemplateLibrary library;
  library.origin_ = folder;
  library.edited_ = true;
  const auto unreadable = [&](const std::string& what) {
    return fail(ErrorCode::kInput, what, folder,
                "HMMJIT_TEMPLATE_DIR must name a folder of kernel templates");
  };
  const std::function<Status(const fs::path&)> walk = [&](const fs::path& within) -> Status {
    const auto names = names_in_folder((fs::path(folder) / within).string());
    if (!names) return unreadable("in the template folder: " + names.error().to_string());
    for (const std::string& name : *names) {
      const fs::path path = within / name, file = fs::path(folder) / path;
      struct stat info {};
      if (::lstat(file.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
        HMMJIT_TRY(walk(path));
        continue;
      }
      const std::string extension = path.extension().string();
      if (::stat(file.c_str(), &info) != 0 || !S_ISREG(info.st_mode) ||
          (extension != ".cu" && extension != ".cuh" && extension != ".h"))
        continue;
      auto text = read_whole_file(file.string());
      if (!text) return unreadable(text.error().to_string());
      library.texts_.emplace(path.generic_string(), *std::move(text));
    }
    return {};
  };
  HMMJIT_TRY(walk({}));
  if (library.texts_.empty()) return unreadable("no .cu, .cuh or .h file in the template folder");
  return library;
}

Result<TemplateLibrary> TemplateLibrary::from_environment() {
  const char* folder = std::getenv("HMMJIT_TEMPLATE_DIR");
  if (folder == nullptr || *folder == '\0') return embedded();
  return from_folder(folder);
}

TemplateLibrary TemplateLibrary::from_texts(std::map<std::string, std::string, std::less<>> texts) {
  TemplateLibrary library;
  library.origin_ = "given texts";
  library.texts_ = std::move(texts);
  return library;
}

std::optional<std::string_view> TemplateLibrary::find(std::string_view path) const {
  const auto found = texts_.find(path);
  if (found == texts_.end()) return std::nullopt;
  return found->second;
}

}  // namespace hmmjit::render
