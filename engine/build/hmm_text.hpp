// A model as an ASCII profile file.
#pragma once

#include <string>

#include "build/built_model.hpp"

namespace hmmjit::build {

/// Appends the model in format HMMER3/f, byte for byte as HMMER 3.4 saves it but for the program
/// its first line names (`program`, in brackets) and the date (`date`; empty: no line).
void append_hmm_text(std::string& out, const BuiltModel& built, const std::string& program,
                     const std::string& date);

}  // namespace hmmjit::build
