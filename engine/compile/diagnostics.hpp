// The errors in the compiler's log, with file and line of the template: the rendered source has
// `#line` markers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace hmmjit::compile {

/// Each error in one line: "ssv/multi_lane.cu:41: error: identifier "x" is undefined".
std::vector<std::string> errors_in(std::string_view log);

/// The first error, or the log's first line if it has no error.
std::string first_error(std::string_view log);

}  // namespace hmmjit::compile
