// Hits as bytes: records of part files (docs/part-format.md), of temporary files, and of results
// for other processes.
#pragma once

#include <string>

#include "core/coding.hpp"
#include "search/hits.hpp"

namespace hmmjit {

/// A target with all its domains. With `alignments`, the alignments of reported or included domains
/// are kept.
void encode_hit(const Hit& hit, bool alignments, std::string& out);
/// Flags and sort key are not stored. False if the bytes contradict the format.
bool decode_hit(Decoder& decoder, Hit& hit);

/// The same with flags, counts and the sort key. With `alignments`, those of all domains are kept,
/// so that the domains may be judged again.
void encode_judged_hit(const Hit& hit, bool alignments, std::string& out);
bool decode_judged_hit(Decoder& decoder, Hit& hit);

/// Order and coding of hits in a Sorted.
struct HitOrder {
  bool alignments = true;
  static bool before(const Hit& a, const Hit& b) { return stands_before(a, b); }
  void encode(const Hit& hit, std::string& out) const { encode_judged_hit(hit, alignments, out); }
  static bool decode(Decoder& decoder, Hit& hit) { return decode_judged_hit(decoder, hit); }
  static std::uint64_t bytes(const Hit& hit) { return hit_bytes(hit); }
};

}  // namespace hmmjit
