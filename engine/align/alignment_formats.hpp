// Writes alignments in the formats of HMMER's programs.
#pragma once

#include <string>
#include <string_view>

#include "build/aligned_rows.hpp"
#include "core/error.hpp"
#include "io/sequence_format.hpp"

namespace hmmjit::align {

/// Appends the rows in an alignment format. A2M and PSI-BLAST mark insertions by case; PHYLIP
/// truncates names to ten bytes.
void append_alignment(std::string& out, const build::AlignedRows& rows, SequenceFormat format);

}  // namespace hmmjit::align
