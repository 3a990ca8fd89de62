// A model as an ASCII profile file.
#pragma once

#include <string>

#include "build/built_model.hpp"

namespace hmmjit::build {

/// Appends the model in format HMMER3/f, byte for byte as HMMER 3.4 saves it, except for `program`,
/// which the first line names in brackets, and `date` (empty: no DATE line).
void append_hmm_text(std::string& out, const BuiltModel& built, const std::string& program,
                     const std::string& date);

}  // namespace hmmjit::build
