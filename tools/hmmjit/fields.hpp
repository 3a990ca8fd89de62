// Prints the fields of a command's result as JSON or as lines of text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hmmjit::tools {

using Json = nlohmann::ordered_json;

/// Formats JSON. Replaces bytes that are not UTF-8 (names and logs may contain some).
std::string json_text(const Json& json);

/// Prints JSON, or one line per field, "file_bytes" as "file bytes    1234". The fields of an
/// object, or of the objects of a list, are indented below its name.
void print_fields(const Json& fields, bool as_json);

}  // namespace hmmjit::tools
