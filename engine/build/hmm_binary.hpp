// A model as a record of a binary profile file.
#pragma once

#include <string>

#include "build/built_model.hpp"

namespace hmmjit::build {

/// Appends the model as a record of HMMER3/f binary (.h3m). Keeps every parameter bit for bit,
/// unlike text, which rounds to five digits. The creation time is left empty.
void append_hmm_binary(std::string& out, const BuiltModel& built);

}  // namespace hmmjit::build
