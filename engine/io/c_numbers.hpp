// The C library's atof and atoi, independent of the locale.
#pragma once

#include <string_view>

namespace hmmjit {

/// The double nearest to the longest numeric prefix of `text` (correctly rounded, as glibc does);
/// 0.0 when there is none. Accepts what strtod accepts in the "C" locale: sign, decimal or
/// hexadecimal digits, exponent, "inf", "nan". HMM files are defined by that conversion.
double c_atof(std::string_view text);

/// The integer prefix of `text`, 0 when there is none, saturated at the limits of int.
int c_atoi(std::string_view text);

}  // namespace hmmjit
