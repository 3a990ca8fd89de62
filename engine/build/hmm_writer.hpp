// Models as profile files, in text and binary.
#pragma once

#include <string>

#include "build/built_model.hpp"

namespace hmmjit::build {

/// Appends the model in format HMMER3/f, byte for byte as HMMER 3.4 saves it, except for `program`,
/// which the first line names in brackets, and `date` (empty: no DATE line).
void append_hmm_text(std::string& out, const BuiltModel& built, const std::string& program,
                     const std::string& date);

/// Appends the model as a record of HMMER3/f binary (.h3m). Keeps every parameter bit for bit,
/// unlike text, which rounds to five digits. The creation time is left empty.
void append_hmm_binary(std::string& out, const BuiltModel& built);

}  // namespace hmmjit::build
