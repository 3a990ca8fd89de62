// A device's results for a target after the filters: its regions, the clusters of regions with
// several domains, and the envelope scores. The CPU's domain stage (engine/domain) continues from
// them; they equal its own results bit for bit.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace hmmjit {

/// An envelope with all results of its matrices (Eddy 2011).
struct ScoredEnvelope {
  float forward_nats = 0;  ///< of the unihit model; NaN: none
  bool sound = false;      ///< false: decoding overflowed; the envelope is dropped
  float accuracy = 0;      ///< expected accuracy of the path
  /// Expected odds of the alphabet's residues; not set for an envelope from a cluster.
  std::array<float, 20> null2{};
  /// The optimal accuracy path from end to begin, as PathState | code << 2, see
  /// kernel_templates/common/domain_params.h; code: the posterior in tenths. Empty: no path.
  std::vector<std::uint8_t> path;
  int last_row = 0, last_node = 0;  ///< end of the path: residue of the envelope, node; 1-based
};

/// The clusters of domains sampled in a region's traces.
struct SampledRegion {
  struct Cluster {
    int first = 0, last = 0;  ///< 1-based, inclusive
    std::optional<ScoredEnvelope> envelope;
  };
  std::vector<Cluster> clusters;  ///< in order of their first residues
  /// For each residue of the region, the sum of its null2 odds over all traces.
  std::vector<float> null2_sums;
};

struct ParsedRegion {
  int first = 0, last = 0;                 ///< 1-based, inclusive
  bool multidomain = false;                ///< needs clustering
  std::optional<ScoredEnvelope> envelope;  ///< only if not `multidomain`
  std::optional<SampledRegion> sampled;    ///< only if `multidomain`
};

struct ParsedTarget {
  float forward_nats = 0;  ///< of the Forward filter; NaN: none
  bool decoded = false;    ///< false: decoding overflowed; no domains
  float expected_domains = 0;
  std::vector<ParsedRegion> regions;

  /// Residues in regions and envelopes without results.
  std::uint64_t residues_left() const {
    std::uint64_t left = 0;
    const auto add = [&](int first, int last, bool known) {
      if (!known) left += static_cast<std::uint64_t>(last - first + 1);
    };
    for (const ParsedRegion& region : regions) {
      if (!region.multidomain) {
        add(region.first, region.last, region.envelope.has_value());
      } else if (!region.sampled) {
        add(region.first, region.last, false);
      } else {
        for (const SampledRegion::Cluster& cluster : region.sampled->clusters)
          add(cluster.first, cluster.last, cluster.envelope.has_value());
      }
    }
    return left;
  }
};

}  // namespace hmmjit
