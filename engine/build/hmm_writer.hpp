// Writes profile files, as text and binary.
#pragma once

#include <string>

#include "build/built_model.hpp"
#include "core/error.hpp"

namespace hmmjit::build {

/// Fails with kInput if readers would refuse the text of the model: a # begins a comment, blanks
/// separate columns, and the effective number of sequences must not be 0.000000.
Status check_writable(const BuiltModel& built);

/// Appends the model in format HMMER3/f, byte for byte as HMMER 3.4 writes it, except for `program`
/// in the brackets of the first line and for `date` (empty: no DATE line).
void append_hmm_text(std::string& out, const BuiltModel& built, const std::string& program,
                     const std::string& date);

/// Appends the model as a HMMER3/f binary record (.h3m) without a creation time. Preserves all
/// parameters bit for bit; the text format rounds to five digits.
void append_hmm_binary(std::string& out, const BuiltModel& built);

}  // namespace hmmjit::build
