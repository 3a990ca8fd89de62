#include "domain/regions.hpp"

#include <algorithm>
#include <cmath>

namespace hmmjit::domain {
namespace {

constexpr float kTrigger = 0.25f;      // a region must be this likely inside a domain somewhere
constexpr float kBorder = 0.10f;       // and is extended down to this
constexpr float kMultidomain = 0.20f;  // expected further domain that asks for clustering

// Some position ends one domain and begins another within i..j with enough probability.
bool is_multidomain(const Occupancy* o, int i, int j) {
  float most = 0;
  for (int z = i; z <= j; ++z) {
    most = std::max(most, std::min(o[z].ends - o[i - 1].ends, o[j].begins - o[z - 1].begins));
  }
  return most >= kMultidomain;
}

}  // namespace

bool decode_occupancy(const Job& job, Occupancy* o) {
  const SpecialRow* f = job.forward;
  const SpecialRow* b = job.backward;
  const float loop = job.loop;
  float scale = static_cast<float>(1.0 / static_cast<double>(b[0].N));
  o[0] = {0, 0, 0};
  for (int i = 1; i <= job.L; ++i) {
    o[i].begins = o[i - 1].begins + f[i - 1].B * b[i - 1].B * f[i - 1].scale * scale;
    if (job.own_scale) scale *= f[i - 1].scale / b[i - 1].scale;
    o[i].ends = o[i - 1].ends + f[i].E * b[i].E * f[i].scale * scale;
    float outside = f[i - 1].N * b[i].N * loop * scale;
    outside += f[i - 1].J * b[i].J * loop * scale;
    outside += f[i - 1].C * b[i].C * loop * scale;
    o[i].inside = static_cast<float>(1.0 - static_cast<double>(outside));
  }
  return !std::isinf(scale);
}

void find_regions(const Occupancy* o, int L, std::vector<Region>& regions) {
  int start = 0;
  bool triggered = false;
  for (int j = 1; j <= L; ++j) {
    if (!triggered) {
      if (o[j].inside - (o[j].begins - o[j - 1].begins) < kBorder || start == 0) start = j;
      if (o[j].inside >= kTrigger) triggered = true;
    } else if (o[j].inside - (o[j].ends - o[j - 1].ends) < kBorder) {
      regions.push_back({start, j, is_multidomain(o, start, j)});
      start = 0;
      triggered = false;
    }
  }
}

}  // namespace hmmjit::domain
