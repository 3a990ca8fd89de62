// The files of engine/report/page, embedded in the program.
#pragma once

#include <string_view>

namespace hmmjit {

std::string_view page_html();  ///< {{names}} mark the places of the parts
std::string_view page_css();
std::string_view page_js();

}  // namespace hmmjit
