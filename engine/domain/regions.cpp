#include "domain/regions.hpp"

#include <algorithm>
#include <cmath>

namespace hmmjit::domain {
namespace {

constexpr float kTrigger = 0.25f;      // minimum peak probability of being inside a domain
constexpr float kBorder = 0.10f;       // a region extends down to this probability
constexpr float kMultidomain = 0.20f;  // expected further domains that require clustering

// True if, with enough probability, a position within the region ends one domain and another begins
// later. `o`: of its first position; `last`: number of further ones.
bool is_multidomain(const Occupancy* o, int last) {
  float most = 0;
  for (int z = 0; z <= last; ++z) {
    most = std::max(most, std::min(o[z].ends - o[-1].ends, o[last].begins - o[z - 1].begins));
  }
  return most >= kMultidomain;
}

}  // namespace

float decode_rows(const Job& job, const SpecialRows& forward, const SpecialRows& backward,
                  int count, float scale, Occupancy* o) {
  const float loop = job.loop;
  for (int i = 1; i <= count; ++i) {
    const SpecialRow f0 = forward[i - 1], f1 = forward[i], b0 = backward[i - 1], b1 = backward[i];
    o[i].begins = o[i - 1].begins + f0.B * b0.B * f0.scale * scale;
    if (job.own_scale) scale *= f0.scale / b0.scale;
    o[i].ends = o[i - 1].ends + f1.E * b1.E * f1.scale * scale;
    float outside = f0.N * b1.N * loop * scale;
    outside += f0.J * b1.J * loop * scale;
    outside += f0.C * b1.C * loop * scale;
    o[i].inside = static_cast<float>(1.0 - static_cast<double>(outside));
  }
  return scale;
}

void find_regions(const Occupancy* occupancy, int base, int first, int last, RegionSearch& search,
                  std::vector<Region>& regions) {
  const auto o = [&](int row) -> const Occupancy& { return occupancy[row - base]; };
  auto& [start, triggered] = search;
  for (int j = first + 1; j <= last; ++j) {
    if (!triggered) {
      if (o(j).inside - (o(j).begins - o(j - 1).begins) < kBorder || start == 0) start = j;
      if (o(j).inside >= kTrigger) triggered = true;
    } else if (o(j).inside - (o(j).ends - o(j - 1).ends) < kBorder) {
      regions.push_back({start, j, is_multidomain(&o(start), j - start)});
      start = 0;
      triggered = false;
    }
  }
}

}  // namespace hmmjit::domain
