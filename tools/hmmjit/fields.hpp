// Facts that a command prints, as JSON or as lines of text made of the same fields.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace hmmjit::tools {

using Json = nlohmann::ordered_json;

/// Names and logs are bytes: what is not UTF-8 is replaced, never a reason to fail.
std::string json_text(const Json& json);

/// One field a line, "file_bytes" as "file bytes    1234"; the fields of an object or of the
/// objects of a list stand below its name, indented.
std::string field_text(const Json& fields);

/// Prints either.
void print_fields(const Json& fields, bool as_json);

}  // namespace hmmjit::tools
