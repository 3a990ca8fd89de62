#include "render/renderer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

namespace hmmjit::render {
namespace {

constexpr std::string_view kConstantsHeader = "plan_constants.h";
constexpr std::string_view kNamespace = "plan_constants";
constexpr int kIncludeDepthLimit = 16;
/// Names in markers are absolute: given relative ones, the compiler would store the working
/// directory in the image, and equal sources would give different bytes.
constexpr std::string_view kRoot = "/kernel_templates/";

bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) {
    text.remove_suffix(1);
  }
  return text;
}

/// A line's directive ("include", "if", ...) and its argument; both are empty for other lines.
struct Directive {
  std::string_view name;
  std::string_view rest;
};

Directive directive_of(std::string_view line) {
  std::string_view text = trimmed(line);
  if (!text.starts_with('#')) return {};
  text = trimmed(text.substr(1));
  std::size_t end = 0;
  while (end < text.size() && is_name(text[end])) ++end;
  return {text.substr(0, end), trimmed(text.substr(end))};
}

/// The conditionals that are open at a line of a template. Those that test __CUDACC_RTC__ are
/// decided here; the others stay in the text for the compiler.
class Conditionals {
 public:
  /// Whether a line with this directive is left out. An error has no place.
  Result<bool> drops(const Directive& directive) {
    const auto& [name, rest] = directive;
    bool decided = false;
    if (name == "if" || name == "ifdef" || name == "ifndef") {
      const bool device_only = (name == "ifdef" && rest == "__CUDACC_RTC__") ||
                               (name == "if" && rest == "defined(__CUDACC_RTC__)");
      const bool host_only = (name == "ifndef" && rest == "__CUDACC_RTC__") ||
                             (name == "if" && rest == "!defined(__CUDACC_RTC__)");
      decided = device_only || host_only;
      open_.push_back({decided, host_only});
    } else if (name == "else" || name == "elif") {
      if (open_.empty()) return fail(ErrorCode::kCompile, "#" + std::string(name) + " without #if");
      decided = open_.back().decided;
      if (decided && name == "elif")
        return fail(ErrorCode::kCompile, "#elif after a test of __CUDACC_RTC__", {}, "use #else");
      if (decided) open_.back().drop = !open_.back().drop;
    } else if (name == "endif") {
      if (open_.empty()) return fail(ErrorCode::kCompile, "#endif without #if");
      decided = open_.back().decided;
      open_.pop_back();
    }
    return decided || std::ranges::any_of(open_, &Conditional::drop);
  }
  bool any_open() const { return !open_.empty(); }

 private:
  struct Conditional {
    bool decided, drop;  // whether it tests __CUDACC_RTC__; whether its branch is left out
  };
  std::vector<Conditional> open_;
};

/// An identifier outside comments and literals.
struct Identifier {
  std::string_view name;
  std::string_view qualifier;  ///< identifier before "::", if any
  int line = 0;
};

std::vector<Identifier> identifiers(std::string_view text) {
  std::vector<Identifier> out;
  int line = 1;
  std::size_t last_end = std::string_view::npos;  // end of the previous identifier
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') {
      ++line;
      ++i;
    } else if (text.substr(i).starts_with("//")) {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (text.substr(i).starts_with("/*")) {
      const std::size_t end = std::min(text.find("*/", i + 2), text.size());
      line += static_cast<int>(std::count(text.begin() + i, text.begin() + end, '\n'));
      i = std::min(end + 2, text.size());
    } else if (c == '"' || (c == '\'' && (i == 0 || !is_name(text[i - 1])))) {
      std::size_t j = i + 1;
      while (j < text.size() && text[j] != c && text[j] != '\n') j += text[j] == '\\' ? 2 : 1;
      i = std::min(j + 1, text.size());
    } else if (is_name_start(c)) {
      std::size_t end = i;
      while (end < text.size() && is_name(text[end])) ++end;
      Identifier id{text.substr(i, end - i), {}, line};
      if (i >= 2 && text.substr(i - 2, 2) == "::" && last_end == i - 2 && !out.empty()) {
        id.qualifier = out.back().name;
      }
      out.push_back(id);
      last_end = end;
      i = end;
    } else if (c >= '0' && c <= '9') {
      while (i < text.size() && (is_name(text[i]) || text[i] == '\'')) ++i;
    } else {
      ++i;
    }
  }
  return out;
}

class Expander {
 public:
  Expander(const TemplateLibrary& library, const plan::Constants& constants)
      : library_(library), constants_(constants) {}

  Status expand(const std::string& path, const std::string& included_from, int depth);

  std::string text;
  std::vector<std::string> files;
  int constant_blocks = 0;

 private:
  std::unexpected<Error> error_at(const std::string& path, int line, std::string message,
                                  std::string remedy = {}) const {
    return fail(ErrorCode::kCompile, std::move(message), fmt::format("{}:{}", path, line),
                std::move(remedy));
  }
  void mark(const std::string& path, int line) {
    fmt::format_to(std::back_inserter(text), "#line {} \"{}{}\"\n", line, kRoot, path);
  }
  Status constants_block(const std::string& path, int line);
  Status include(std::string_view name, const std::string& path, int line, int depth);
  Status check(const std::string& path, std::string_view source) const;
  std::string resolve(std::string_view name, const std::string& from) const;

  const TemplateLibrary& library_;
  const plan::Constants& constants_;
  std::set<std::string, std::less<>> once_;
};

/// Resolves a name relative to the including file first, then to the root of the templates.
std::string Expander::resolve(std::string_view name, const std::string& from) const {
  const std::size_t slash = from.rfind('/');
  if (slash != std::string::npos) {
    std::string beside = from.substr(0, slash + 1) + std::string(name);
    if (library_.find(beside)) return beside;
  }
  if (library_.find(name)) return std::string(name);
  return {};
}

Status Expander::constants_block(const std::string& path, int line) {
  ++constant_blocks;
  mark(std::string(kConstantsHeader), 1);
  text += "namespace plan_constants {\n";
  for (const auto& [name, value] : constants_.list()) {
    if (name.empty() || !is_name_start(name.front()) || !std::ranges::all_of(name, is_name)) {
      return error_at(path, line, fmt::format("\"{}\" cannot be the name of a constant", name));
    }
    const bool fits = value >= std::numeric_limits<std::int32_t>::min() &&
                      value <= std::numeric_limits<std::int32_t>::max();
    // Enumerators rather than variables: NVRTC makes each variable a global of the module, which
    // slows down loading.
    fmt::format_to(std::back_inserter(text), "enum : {} {{ {} = {} }};\n",
                   fits ? "int" : "long long", name, value);
  }
  text += "}  // namespace plan_constants\n";
  mark(path, line + 1);
  return {};
}

/// Checks the characters and the plan_constants:: names of one template file.
Status Expander::check(const std::string& path, std::string_view source) const {
  int line = 1;
  for (const char c : source) {
    if (c == '\n') ++line;
    if ((c < ' ' && c != '\n' && c != '\t' && c != '\r') || c > '~') {
      return error_at(
          path, line,
          fmt::format("character 0x{:02x} in a template", static_cast<unsigned char>(c)),
          "templates are plain ASCII");
    }
  }
  for (const Identifier& id : identifiers(source)) {
    if (id.qualifier == kNamespace && !constants_.find(id.name)) {
      return error_at(path, id.line, fmt::format("unknown constant plan_constants::{}", id.name),
                      "add it to the constants of the variant's catalogue entry");
    }
  }
  return {};
}

Status Expander::expand(const std::string& path, const std::string& included_from, int depth) {
  if (depth > kIncludeDepthLimit) {
    return fail(ErrorCode::kCompile, fmt::format("{} includes itself", path), included_from,
                "put \"#pragma once\" on its first line");
  }
  const auto found = library_.find(path);
  if (!found) {
    return fail(ErrorCode::kCompile, fmt::format("no template \"{}\"", path), included_from,
                fmt::format("templates are {}", library_.origin()));
  }
  const std::string_view source = *found;
  HMMJIT_TRY(check(path, source));
  if (std::ranges::find(files, path) == files.end()) files.push_back(path);
  mark(path, 1);

  Conditionals conditionals;
  int line = 0;
  for (std::size_t at = 0; at < source.size();) {
    std::size_t end = source.find('\n', at);
    if (end == std::string_view::npos) end = source.size();
    std::string_view content = source.substr(at, end - at);
    if (content.ends_with('\r')) content.remove_suffix(1);
    at = end + 1;
    ++line;

    const Directive directive = directive_of(content);
    const auto drops = conditionals.drops(directive);
    if (!drops) return error_at(path, line, drops.error().message, drops.error().remedy);
    if (*drops) {
      text += '\n';  // keeps the line numbers
    } else if (directive.name == "pragma" && directive.rest == "once") {
      once_.insert(path);
      text += '\n';
    } else if (directive.name == "include") {
      HMMJIT_TRY(include(directive.rest, path, line, depth));
    } else {
      text += content;
      text += '\n';
    }
  }
  if (conditionals.any_open()) return error_at(path, line, "#if without #endif");
  return {};
}

Status Expander::include(std::string_view name, const std::string& path, int line, int depth) {
  const std::size_t close = name.size() > 1 ? name.find('"', 1) : std::string_view::npos;
  if (!name.starts_with('"') || close == std::string_view::npos) {
    return error_at(path, line, fmt::format("#include {} in a template", name),
                    "templates include only files below kernel_templates/, in quotes");
  }
  name = name.substr(1, close - 1);
  if (name == kConstantsHeader) {
    // Later includes of the block are empty, as with an include guard.
    if (constant_blocks == 0) return constants_block(path, line);
    text += '\n';
    return {};
  }
  const std::string target = resolve(name, path);
  if (target.empty()) {
    return error_at(path, line, fmt::format("no template \"{}\"", name),
                    fmt::format("templates are {}", library_.origin()));
  }
  if (once_.contains(target)) {
    text += '\n';
    return {};
  }
  HMMJIT_TRY(expand(target, fmt::format("{}:{}", path, line), depth + 1));
  mark(path, line + 1);
  return {};
}

}  // namespace

Result<RenderedSource> render(const TemplateLibrary& library, std::string_view template_file,
                              std::string_view entry_name, const plan::Constants& constants) {
  const std::string path(template_file);
  Expander expander(library, constants);
  expander.text = fmt::format("// {}, rendered by hmmjit\n", path);
  HMMJIT_TRY(expander.expand(path, "kernel catalogue", 0));
  if (expander.constant_blocks == 0) {
    return fail(ErrorCode::kCompile, "the template has no constants block", path,
                "add #include \"plan_constants.h\"");
  }

  std::set<std::string_view> used;
  for (const Identifier& id : identifiers(expander.text)) used.insert(id.name);
  // The block itself defines every name, so usage is counted in the templates.
  std::set<std::string_view> used_in_templates;
  for (const std::string& file : expander.files) {
    for (const Identifier& id : identifiers(*library.find(file))) used_in_templates.insert(id.name);
  }
  for (const auto& [name, value] : constants.list()) {
    if (!used_in_templates.contains(name)) {
      return fail(ErrorCode::kCompile, fmt::format("no line uses the constant {}", name), path,
                  "remove it from the catalogue entry or use it in the template");
    }
  }
  if (!used.contains(entry_name)) {
    return fail(ErrorCode::kCompile, fmt::format("the template defines no {}", entry_name), path,
                "entry_name in the catalogue must be its extern \"C\" kernel");
  }
  return RenderedSource{.text = std::move(expander.text),
                        .file_name = std::string(kRoot) + path,
                        .entry_name = std::string(entry_name),
                        .files = std::move(expander.files)};
}

}  // namespace hmmjit::render
