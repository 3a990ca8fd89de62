#include "hmmjit/fields.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace hmmjit::tools {
namespace {

std::string value_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_float()) return fmt::format("{:.3f}", value.get<double>());
  return value.dump();
}

bool is_row(const Json& value) { return value.is_object() || value.is_array(); }

// All fields of an object on one line.
std::string row_text(const Json& row) {
  if (!row.is_object()) return value_text(row);
  std::string out;
  for (const auto& [name, value] : row.items()) {
    if (is_row(value)) continue;
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, value_text(value));
  }
  return out;
}

void append(std::string& out, const Json& fields, std::size_t indent) {
  std::size_t width = 0;
  for (const auto& [name, value] : fields.items()) {
    if (!is_row(value)) width = std::max(width, name.size());
  }
  for (const auto& [name, value] : fields.items()) {
    std::string label = name;
    std::ranges::replace(label, '_', ' ');
    if (value.is_object()) {
      out += fmt::format("{:{}}{}\n", "", indent, label);
      append(out, value, indent + 2);
    } else if (value.is_array()) {
      for (const Json& row : value)
        out += fmt::format("{:{}}{:{}}  {}\n", "", indent, label, width, row_text(row));
    } else {
      out += fmt::format("{:{}}{:{}}  {}\n", "", indent, label, width, value_text(value));
    }
  }
}

}  // namespace

std::string json_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void print_fields(const Json& fields, bool as_json) {
  std::string text;
  if (!as_json) append(text, fields, 0);
  fmt::print("{}", as_json ? json_text(fields) : text);
}

}  // namespace hmmjit::tools
