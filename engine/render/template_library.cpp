#include "render/template_library.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

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
  std::error_code error;
  fs::recursive_directory_iterator walk(folder, error);
  const auto unreadable = [&](const std::string& what) {
    return fail(ErrorCode::kInput, what, folder,
                "HMMJIT_TEMPLATE_DIR must name a folder of kernel templates");
  };
  if (error) return unreadable("cannot read the template folder: " + error.message());
  for (; walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    if (error) return unreadable("cannot read the template folder: " + error.message());
    const fs::path& path = walk->path();
    const std::string extension = path.extension().string();
    if (!walk->is_regular_file(error) ||
        (extension != ".cu" && extension != ".cuh" && extension != ".h")) {
      continue;
    }
    std::ifstream file(path, std::ios::binary);
    std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file) return unreadable("cannot read " + path.string());
    library.texts_.emplace(path.lexically_relative(folder).generic_string(), std::move(text));
  }
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
