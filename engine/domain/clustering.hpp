// Derives envelopes from sampled domain segments by single-linkage clusters, consensus end points
// and removal of dominated clusters, as in HMMER3 (Eddy 2011).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned.hpp"

namespace hmmjit::domain {

/// One sampled domain: first and last match residue (i, j, target coordinates) and their nodes
/// (k, m), and the trace it came from.
struct Segment {
  int i, j, k, m;
  int trace;
};

struct Cluster {
  int i, j;
  float probability;
};

/// Buffers of one thread.
class Clustering {
 public:
  /// Envelopes of `segments`, which are ordered by trace and, within a trace, from left to right.
  const std::vector<Cluster>& run(const std::vector<Segment>& segments, int trace_count);

 private:
  void link(const std::vector<Segment>& segments);
  void summarise(const std::vector<Segment>& segments, int trace_count);
  int end_point(std::span<const int> values, int threshold, bool largest);

  std::vector<int> component_;  // component number by segment
  // Segments without a component so far: their numbers and, in parallel arrays, their coordinates.
  std::vector<int> waiting_;
  std::vector<std::int32_t> i_, j_, k_, m_;
  std::vector<std::uint8_t> linked_;
  std::vector<int> stack_;
  std::vector<int> members_, offsets_;
  std::vector<int> values_, counts_;  // end points; their counts by value
  std::vector<Cluster> clusters_;
  std::vector<char> dominated_;
  int components_ = 0;
};

}  // namespace hmmjit::domain
