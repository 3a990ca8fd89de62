// Numbers and strings in machine-readable outputs: nothing is rounded, everything is escaped.
#pragma once

#include <string>
#include <string_view>

namespace hmmjit::text {

/// The shortest decimal text that reads back as the same value ("inf" and "nan" included).
void exact(std::string& out, double value);
void exact(std::string& out, float value);

/// A JSON number; null for infinities and NaN.
void json_number(std::string& out, double value);
void json_number(std::string& out, float value);
/// A quoted JSON string. Bytes that are not UTF-8 become U+FFFD, so the text is always valid JSON.
void json_string(std::string& out, std::string_view value);

/// A field of a tab-separated table that common readers parse with their defaults (RFC 4180 with
/// tabs): quoted, with quotes doubled, if it contains quotes or begins with '#'. Control characters
/// (including tabs and line ends) become blanks, and bytes that are not UTF-8 become U+FFFD.
void tsv_field(std::string& out, std::string_view value);

/// Text of an HTML element or of a quoted attribute. Control characters and bytes that are not
/// UTF-8 become U+FFFD.
void html_text(std::string& out, std::string_view value);

}  // namespace hmmjit::text
