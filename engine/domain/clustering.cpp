#include "domain/clustering.hpp"

#include <algorithm>
#include <cmath>

#include "domain/kernels.hpp"

namespace hmmjit::domain {
namespace {

constexpr float kMinProbability = 0.25f;
constexpr float kMinEndFraction = 0.02f;  // fraction of the traces that makes an end point credible

}  // namespace

// Components are numbered in the order in which this exact procedure finds them, because the order
// of clusters with equal starts depends on it.
void Clustering::link(const std::vector<Segment>& segments) {
  const std::size_t n = segments.size();
  component_.assign(n, -1);
  waiting_.resize(n);
  linked_.resize(n);
  for (auto* coordinate : {&i_, &j_, &k_, &m_}) coordinate->resize(n);
  for (std::size_t v = 0; v < n; ++v) {
    const std::size_t p = n - 1 - v;
    const Segment& s = segments[v];
    waiting_[p] = static_cast<int>(v);
    i_[p] = s.i;
    j_[p] = s.j;
    k_[p] = s.k;
    m_[p] = s.m;
  }
  const SegmentArrays arrays{i_.data(), j_.data(), k_.data(), m_.data()};
  const auto link_segments = kernels(kMaxGroups).link_segments;
  components_ = 0;
  std::size_t left = n;
  while (left > 0) {
    stack_.assign(1, waiting_[--left]);
    while (!stack_.empty()) {
      const auto v = static_cast<std::size_t>(stack_.back());
      stack_.pop_back();
      component_[v] = components_;
      const Segment& s = segments[v];
      if (!link_segments(arrays, left, s.i, s.j, s.k, s.m, linked_.data())) continue;
      for (std::size_t p = left; p-- > 0;) {
        if (!linked_[p]) continue;
        stack_.push_back(waiting_[p]);
        --left;
        waiting_[p] = waiting_[left];
        i_[p] = i_[left];
        j_[p] = j_[left];
        k_[p] = k_[left];
        m_[p] = m_[left];
      }
    }
    ++components_;
  }
}

// The smallest (or largest) value that occurs at least `threshold` times; otherwise the most
// frequent one, and among equally frequent ones the smallest.
int Clustering::end_point(std::span<const int> values, int threshold, bool largest) {
  const auto [least, most] = std::ranges::minmax(values);
  counts_.assign(static_cast<std::size_t>(most - least) + 1, 0);
  for (const int value : values) ++counts_[static_cast<std::size_t>(value - least)];
  const auto credible = [&](int count) { return count >= threshold; };
  auto found = std::ranges::find_if(counts_, credible);
  if (found == counts_.end()) {
    found = std::ranges::max_element(counts_);
  } else if (largest) {
    found = std::find_if(counts_.rbegin(), counts_.rend(), credible).base() - 1;
  }
  return least + static_cast<int>(found - counts_.begin());
}

void Clustering::summarise(const std::vector<Segment>& segments, int trace_count) {
  // Members by component, in segment order.
  offsets_.assign(static_cast<std::size_t>(components_) + 1, 0);
  for (const int c : component_) ++offsets_[static_cast<std::size_t>(c) + 1];
  for (std::size_t c = 1; c < offsets_.size(); ++c) offsets_[c] += offsets_[c - 1];
  members_.resize(segments.size());
  for (std::size_t v = 0; v < segments.size(); ++v) {
    members_[static_cast<std::size_t>(offsets_[static_cast<std::size_t>(component_[v])]++)] =
        static_cast<int>(v);
  }
  int begin = 0;
  for (int c = 0; c < components_; ++c) {
    const int end = offsets_[static_cast<std::size_t>(c)];
    const auto member = [&](int a) -> const Segment& {
      return segments[static_cast<std::size_t>(members_[static_cast<std::size_t>(a)])];
    };
    int traces = 0;
    for (int a = begin, last = -1; a < end; ++a) {
      if (member(a).trace != last) ++traces;
      last = member(a).trace;
    }
    const float probability = static_cast<float>(traces) / static_cast<float>(trace_count);
    if (probability >= kMinProbability) {
      const int threshold =
          static_cast<int>(std::ceil(static_cast<float>(traces) * kMinEndFraction));
      const auto point = [&](int Segment::*coordinate, bool largest) {
        values_.clear();
        for (int a = begin; a < end; ++a) values_.push_back(member(a).*coordinate);
        return end_point(values_, threshold, largest);
      };
      const int i = point(&Segment::i, false);
      const int j = point(&Segment::j, true);
      const int k = point(&Segment::k, false);
      const int m = point(&Segment::m, true);
      const auto place = std::ranges::upper_bound(clusters_, i, {}, &Cluster::i);
      if (i <= j && k <= m) clusters_.insert(place, {i, j, probability});
    }
    begin = end;
  }
}

const std::vector<Cluster>& Clustering::run(const std::vector<Segment>& segments, int trace_count) {
  clusters_.clear();
  link(segments);
  summarise(segments, trace_count);

  dominated_.assign(clusters_.size(), 0);
  for (std::size_t d = 0; d < clusters_.size(); ++d) {
    const Cluster& a = clusters_[d];
    for (std::size_t e = d + 1; e < clusters_.size(); ++e) {
      const Cluster& b = clusters_[e];
      const int overlap = std::min(a.j, b.j) - std::max(a.i, b.i) + 1;
      if (overlap == 0) break;  // HMMER stops at an exactly adjacent cluster
      const int shorter = std::min(a.j - a.i, b.j - b.i) + 1;
      if (static_cast<double>(static_cast<float>(overlap) / static_cast<float>(shorter)) >= 0.8) {
        dominated_[a.probability > b.probability ? e : d] = 1;
      }
    }
  }
  std::size_t kept = 0;
  for (std::size_t d = 0; d < clusters_.size(); ++d) {
    if (!dominated_[d]) clusters_[kept++] = clusters_[d];
  }
  clusters_.resize(kept);
  return clusters_;
}

}  // namespace hmmjit::domain
