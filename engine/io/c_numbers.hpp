// The C library's atof and atoi, independent of the locale.
#pragma once

#include <string_view>

namespace hmmjit {

/// The double nearest to the longest numeric prefix of `text` (correctly rounded, like glibc); 0.0
/// if there is none. Accepts what strtod accepts in the "C" locale: sign, decimal or hexadecimal
/// digits, exponent, "inf", "nan". This conversion defines the values in HMM files.
double c_atof(std::string_view text);

/// The integer prefix of `text`, saturated at the limits of int; 0 if there is none.
int c_atoi(std::string_view text);

}  // namespace hmmjit
