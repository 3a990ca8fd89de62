// Writes JSON member by member.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "core/exact_text.hpp"

namespace hmmjit {

/// One JSON object, appended to a text. A nested object must be closed before the next member
/// begins.
class JsonObject {
 public:
  enum class Layout { kOneLine, kIndented };
  explicit JsonObject(std::string& out, Layout layout = Layout::kOneLine, int depth = 0)
      : out_(out), layout_(layout), depth_(depth) {
    out_ += '{';
  }
  JsonObject(const JsonObject&) = delete;
  JsonObject& operator=(const JsonObject&) = delete;
  void close() {
    if (!first_) new_line(depth_);
    out_ += '}';
  }
  /// Begins a member whose value the caller appends.
  std::string& member(std::string_view name) {
    if (!first_) out_ += ',';
    first_ = false;
    new_line(depth_ + 1);
    text::json_string(out_, name);
    return out_ += layout_ == Layout::kIndented ? ": " : ":";
  }
  JsonObject object(std::string_view name) { return JsonObject(member(name), layout_, depth_ + 1); }
  void text(std::string_view name, std::string_view value) {
    text::json_string(member(name), value);
  }
  void optional_text(std::string_view name, std::string_view value) {
    if (value.empty()) {
      member(name) += "null";
    } else {
      text(name, value);
    }
  }
  template <typename Number>
  void number(std::string_view name, Number value) {
    if constexpr (std::is_integral_v<Number>) {
      member(name) += std::to_string(value);
    } else {
      text::json_number(member(name), value);
    }
  }
  void flag(std::string_view name, bool value) { member(name) += value ? "true" : "false"; }
  /// An array on one line; `append(text, element)` writes one element to the end of `text`.
  template <typename Range, typename Append>
  void array(std::string_view name, const Range& elements, Append&& append) {
    std::string& out = member(name);
    out += '[';
    bool first = true;
    for (const auto& element : elements) {
      if (!first) out += layout_ == Layout::kIndented ? ", " : ",";
      first = false;
      append(out, element);
    }
    out += ']';
  }

 private:
  void new_line(int depth) {
    if (layout_ == Layout::kOneLine) return;
    (out_ += '\n').append(static_cast<std::size_t>(2 * depth), ' ');
  }

  std::string& out_;
  const Layout layout_;
  const int depth_;
  bool first_ = true;
};

}  // namespace hmmjit
