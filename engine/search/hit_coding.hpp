// A hit as bytes: a record of part files (docs/part-format.md), and of hits that wait on disk.
#pragma once

#include <string>

#include "core/coding.hpp"
#include "search/hits.hpp"

namespace hmmjit {

/// A target with all its domains. Of domains that are neither reported nor included by the flags of
/// the hit, the alignment's text is left out; of all of them without `alignments`.
void encode_hit(const Hit& hit, bool alignments, std::string& out);
/// Flags and sort key are not among the bytes. False where the bytes contradict the format.
bool decode_hit(Decoder& decoder, Hit& hit);

/// The same with what its judgement says: flags, those of all domains, counts, and the sort key.
/// Domains may be judged again: with `alignments` the texts of all are kept.
void encode_judged_hit(const Hit& hit, bool alignments, std::string& out);
bool decode_judged_hit(Decoder& decoder, Hit& hit);

}  // namespace hmmjit
