// The limits by which the domain stage finds regions and envelopes: those of the reference
// implementation (HMMER 3.4, Eddy 2011), for host and kernels alike.
#ifndef HMMJIT_KERNEL_DOMAIN_RULES_H_
#define HMMJIT_KERNEL_DOMAIN_RULES_H_

namespace hmmjit_device {

// ---- regions ----

/// A region must be this likely inside a domain somewhere,
constexpr float kRegionTrigger = 0.25f;
/// and is extended down to this.
constexpr float kRegionBorder = 0.10f;
/// Expected further domains that ask for clustering.
constexpr float kMultidomain = 0.20f;

// ---- clusters of sampled domains ----

/// Sampled traces of a region.
enum : unsigned { kTraces = 200 };
/// Two domains are linked when they overlap by this share of the shorter one, on the target and on the
/// model; a cluster is dominated by one that overlaps it by as much.
constexpr float kLinkOverlap = 0.8f;
constexpr double kDominatedOverlap = 0.8;
/// Positions by which the diagonals of linked domains may differ at one end.
enum : int { kMaxDiagonalShift = 4 };
/// Share of the traces in which a cluster must have a member,
constexpr float kMinProbability = 0.25f;
/// and in which an end point must occur to be credible.
constexpr float kMinEndFraction = 0.02f;

}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_DOMAIN_RULES_H_
