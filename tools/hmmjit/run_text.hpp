// What outputs say about the run that made them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hmmjit::tools {

/// Date and time in the form of ctime, without its line feed, whatever the locale.
std::string date_text();
std::string current_folder();
/// "1 model", "2 models". `several`: of a noun whose plural is no added s.
std::string counted(std::uint64_t number, std::string_view noun, std::string_view several = {});

}  // namespace hmmjit::tools
