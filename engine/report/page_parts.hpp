// The files of engine/report/page, in the program.
#pragma once

#include <string_view>

namespace hmmjit {

std::string_view page_html();  ///< with {{names}} where the parts go in
std::string_view page_css();
std::string_view page_js();

}  // namespace hmmjit
