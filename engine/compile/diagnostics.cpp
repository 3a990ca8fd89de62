#include "compile/diagnostics.hpp"

#include <fmt/format.h>

#include <optional>
#include <ranges>

#include "core/numbers.hpp"

namespace hmmjit::compile {
namespace {

/// "file(12): error: text", "file(12): warning #177-D: text" and "nvrtc: error: text".
std::optional<Diagnostic> head_of(std::string_view line) {
  using Severity = Diagnostic::Severity;
  struct Word {
    std::string_view text;
    Severity severity;
  };
  constexpr Word kWords[] = {{"catastrophic error", Severity::kError},
                             {"error", Severity::kError},
                             {"warning", Severity::kWarning},
                             {"remark", Severity::kNote},
                             {"note", Severity::kNote}};
  Diagnostic out;
  std::string_view rest;
  const std::size_t place = line.find("): ");
  const std::size_t open = place == std::string_view::npos ? place : line.rfind('(', place);
  if (open != std::string_view::npos) {
    const auto number = parse_int(line.substr(open + 1, place - open - 1));
    if (!number) return std::nullopt;
    // The renderer's markers are absolute; readers know a file by its path in the repository.
    out.file = line.substr(line.starts_with('/') ? 1 : 0, open - (line.starts_with('/') ? 1 : 0));
    out.line = static_cast<int>(*number);
    rest = line.substr(place + 3);
  } else if (line.starts_with("nvrtc: ")) {
    rest = line.substr(7);
  } else if (line.starts_with("ptxas ")) {
    // "ptxas info    : ..." is the resource report, not a diagnostic.
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const std::string_view head = line.substr(0, colon);
    if (head.find("error") != std::string_view::npos ||
        head.find("fatal") != std::string_view::npos) {
      out.severity = Severity::kError;
    } else if (head.find("warning") != std::string_view::npos) {
      out.severity = Severity::kWarning;
    } else {
      return std::nullopt;
    }
    out.message = line;
    return out;
  } else {
    return std::nullopt;
  }
  for (const Word& word : kWords) {
    if (!rest.starts_with(word.text)) continue;
    const std::size_t colon = rest.find(": ");
    if (colon == std::string_view::npos) return std::nullopt;
    out.severity = word.severity;
    out.message = rest.substr(colon + 2);
    return out;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Diagnostic> parse_diagnostics(std::string_view log) {
  std::vector<Diagnostic> out;
  bool continues = false;
  for (const auto part : std::views::split(log, '\n')) {
    const std::string_view line(part);
    if (auto head = head_of(line)) {
      out.push_back(std::move(*head));
      continues = true;
    } else if (continues && line.starts_with(' ')) {
      out.back().message += '\n';
      out.back().message += line;
    } else {
      continues = false;
    }
  }
  return out;
}

std::string first_error(std::string_view log) {
  for (const Diagnostic& d : parse_diagnostics(log)) {
    if (d.severity != Diagnostic::Severity::kError) continue;
    const std::string line = d.message.substr(0, d.message.find('\n'));
    return d.file.empty() ? line : fmt::format("{}:{}: error: {}", d.file, d.line, line);
  }
  return std::string(log.substr(0, log.find('\n')));
}

}  // namespace hmmjit::compile
