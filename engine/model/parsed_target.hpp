// What a device may find out about a target beyond the filters: its regions, and the scores of
// envelopes that are regions of one domain. Bits are those of the CPU's domain stage
// (engine/domain), which goes on from here.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace hmmjit {

/// An envelope with everything its matrices are needed for (Eddy 2011).
struct ScoredEnvelope {
  float forward_nats = 0;         ///< of the unihit model; NaN: none
  bool sound = false;             ///< false: the decoding has overflown, the envelope is dropped
  float accuracy = 0;             ///< expected accuracy of the path
  std::array<float, 20> null2{};  ///< odds by expectation of the alphabet's residues
  /// The optimal accuracy path from its end to its begin, as PathState | code << 2 of
  /// kernel_templates/common/domain_params.h; code: tenths of the posterior. Empty: no path.
  std::vector<std::uint8_t> path;
  int last_row = 0, last_node = 0;  ///< of the path's end: residue of the envelope, node; 1-based
};

struct ParsedRegion {
  int first = 0, last = 0;                 ///< 1-based, inclusive
  bool several = false;                    ///< asks for clustering
  std::optional<ScoredEnvelope> envelope;  ///< only where not `several`
};

struct ParsedTarget {
  float forward_nats = 0;  ///< of the Forward filter; NaN: none
  bool decoded = false;    ///< false: the decoding has overflown, there are no domains
  float expected_domains = 0;
  std::vector<ParsedRegion> regions;
};

}  // namespace hmmjit
