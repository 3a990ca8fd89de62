#include "compile/diagnostics.hpp"

#include <fmt/format.h>

#include <optional>
#include <ranges>

#include "core/numbers.hpp"

namespace hmmjit::compile {
namespace {

/// "file(12): error: text", "nvrtc: error: text" and "ptxas fatal   : text".
std::optional<std::string> error_in(std::string_view line) {
  if (line.starts_with("ptxas ")) {
    // "ptxas info    : ..." is the resource report.
    const std::string_view head = line.substr(0, line.find(':'));
    if (!head.contains("error") && !head.contains("fatal")) return std::nullopt;
    return std::string(line);
  }
  std::string place;
  if (const std::size_t end = line.find("): "); end != line.npos) {
    const std::size_t open = line.substr(0, end).rfind('(');
    if (open == line.npos) return std::nullopt;
    const auto number = parse_int(line.substr(open + 1, end - open - 1));
    if (!number) return std::nullopt;
    // The renderer's markers are absolute paths; readers know paths in the repository.
    const std::size_t root = line.starts_with('/') ? 1 : 0;
    place = fmt::format("{}:{}: error: ", line.substr(root, open - root), *number);
    line.remove_prefix(end + 3);
  } else if (line.starts_with("nvrtc: ")) {
    line.remove_prefix(7);
  } else {
    return std::nullopt;
  }
  const std::size_t colon = line.find(": ");
  if (colon == line.npos || !(line.starts_with("error") || line.starts_with("catastrophic error")))
    return std::nullopt;
  return place.append(line.substr(colon + 2));
}

}  // namespace

std::vector<std::string> errors_in(std::string_view log) {
  std::vector<std::string> out;
  for (const auto part : std::views::split(log, '\n')) {
    if (auto error = error_in(std::string_view(part))) out.push_back(*std::move(error));
  }
  return out;
}

std::string first_error(std::string_view log) {
  const std::vector<std::string> errors = errors_in(log);
  return errors.empty() ? std::string(log.substr(0, log.find('\n'))) : errors.front();
}

}  // namespace hmmjit::compile
