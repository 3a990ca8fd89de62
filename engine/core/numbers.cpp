#include "core/numbers.hpp"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "core/ascii.hpp"

namespace hmmjit {
namespace {

template <typename T>
std::optional<T> parse_whole(std::string_view text) {
  if (!text.empty() && text.front() == '+') text.remove_prefix(1);
  if (text.empty() || text.front() == '+') return std::nullopt;
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::int64_t> parse_int(std::string_view text) {
  return parse_whole<std::int64_t>(text);
}

std::optional<double> parse_real(std::string_view text) { return parse_whole<double>(text); }

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  const auto drop = [&](std::string_view suffix) {
    if (text.size() <= suffix.size() ||
        !equal_ignoring_case(text.substr(text.size() - suffix.size()), suffix))
      return false;
    text.remove_suffix(suffix.size());
    return true;
  };
  if (!drop("iB")) drop("B");
  double unit = 1, factor = 1;
  for (const std::string_view suffix : {"K", "M", "G", "T"}) {
    unit *= 1024;
    if (drop(suffix)) {
      factor = unit;
      break;
    }
  }
  const auto value = parse_real(text);
  if (!value || !(*value >= 0) || *value * factor >= 0x1p63) return std::nullopt;
  return static_cast<std::uint64_t>(*value * factor);
}

}  // namespace hmmjit
