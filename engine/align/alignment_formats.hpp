// Writes alignments in the formats of HMMER's programs.
#pragma once

#include <functional>
#include <string_view>

#include "build/aligned_rows.hpp"
#include "io/sequence_format.hpp"

namespace hmmjit::align {

/// Writes the rows in an alignment format, line by line: all text takes as much memory as the rows.
/// A2M and PSI-BLAST mark insertions by case; PHYLIP truncates names to ten bytes.
void write_alignment(const std::function<void(std::string_view)>& out, build::AlignedRows rows,
                     SequenceFormat format);

}  // namespace hmmjit::align
