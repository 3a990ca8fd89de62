// Posterior decoding of the begins and ends of domains, from the special states of Forward and Backward, and the
// resulting regions (Eddy 2011, "Accelerated profile HMM searches", domain postprocessing).
#ifndef HMMJIT_KERNEL_REGION_DECODING_CUH_
#define HMMJIT_KERNEL_REGION_DECODING_CUH_

#include "common/four_lane.cuh"

namespace hmmjit_device {
namespace {  // as in common/four_lane.cuh

// A region needs this probability of being inside a domain at one position at least,
HMMJIT_DEVICE constexpr float trigger() { return 0.25f; }
// and is extended down to this.
HMMJIT_DEVICE constexpr float border() { return 0.10f; }
// Expected further domains above which clustering is requested.
HMMJIT_DEVICE constexpr float multidomain() { return 0.20f; }

/// Some position ends one domain and begins another within i..j with enough probability.
HMMJIT_DEVICE bool is_multidomain(const SpecialRow* rows, u32 i, u32 j) {
  const float ends = rows[i - 1].ends, begins = rows[j].begins;
  float most = 0.0f;
  for (u32 z = i; z <= j; ++z) {
    const float ended = add(rows[z].ends, -ends), begun = add(begins, -rows[z - 1].begins);
    const float both = begun < ended ? begun : ended;
    if (most < both) most = both;
  }
  return most >= multidomain();
}

/// Reuses a row of Backward that is already decoded: k-th region and k-th scale, if any.
struct Note {
  u32 first, last;
  float scale;
  u32 reserved[5];
};
static_assert(sizeof(Note) == sizeof(SpecialRow), "they share the workspace");

/// Decodes, finds regions, writes the answer. Called by one lane per target.
HMMJIT_DEVICE void decode(const DomainParams& p, u32 target, u32 L, float loop, bool own_scale,
                          SpecialRow* forward, SpecialRow* backward, ParsedTarget* out) {
  Note* const notes = reinterpret_cast<Note*>(backward);
  u32 regions = 0, scales = 0, start = 0;
  bool triggered = false;
  const float N0 = backward[0].N;
  float scale = static_cast<float>(1.0 / static_cast<double>(N0));
  SpecialRow f = forward[0], b = backward[0];  // of row i-1
  f.begins = f.ends = 0.0f;
  forward[0].begins = forward[0].ends = 0.0f;
  constexpr u32 kAtOnce = 4;  // rows prefetched
  for (u32 first = 1; first <= L; first += kAtOnce) {
    SpecialRow fs[kAtOnce], bs[kAtOnce];
    HMMJIT_UNROLL
    for (u32 r = 0; r < kAtOnce; ++r) {
      const u32 i = first + r <= L ? first + r : L;
      fs[r] = forward[i];
      bs[r] = backward[i];
    }
    HMMJIT_UNROLL
    for (u32 r = 0; r < kAtOnce; ++r) {
      const u32 i = first + r;
      if (i > L) break;
      SpecialRow g = fs[r];
      const SpecialRow c = bs[r];
      const float entered = multiply(multiply(multiply(f.B, b.B), f.scale), scale);
      g.begins = add(f.begins, entered);
      if (own_scale) scale = multiply(scale, divide(f.scale, b.scale));
      g.ends = add(f.ends, multiply(multiply(multiply(g.E, c.E), g.scale), scale));
      float outside = multiply(multiply(multiply(f.N, c.N), loop), scale);
      outside = add(outside, multiply(multiply(multiply(f.J, c.J), loop), scale));
      outside = add(outside, multiply(multiply(multiply(f.C, c.C), loop), scale));
      const float inside = static_cast<float>(1.0 - static_cast<double>(outside));
      forward[i].begins = g.begins;
      forward[i].ends = g.ends;
      // A note is written to a row that has been read: there are fewer notes than rows.
      if (g.scale > 1.0f) notes[scales++].scale = g.scale;
      if (!triggered) {
        if (add(inside, -add(g.begins, -f.begins)) < border() || start == 0) start = i;
        if (inside >= trigger()) triggered = true;
      } else if (add(inside, -add(g.ends, -f.ends)) < border()) {
        notes[regions].first = start;
        notes[regions].last = i | (is_multidomain(forward, start, i) ? kSeveralDomains : 0u);
        ++regions;
        start = 0;
        triggered = false;
      }
      f = g;
      b = c;
    }
  }
  const bool decoded = (float_bits(scale) & 0x7fffffffu) != 0x7f800000u;
  if (!decoded) regions = 0;
  u32 at = 0;
  if (!take_words(p, scales + 3 * regions, &at)) return;
  for (u32 k = 0; k < scales; ++k) p.words[at + k] = float_bits(notes[k].scale);
  u32* w = p.words + at + scales;
  for (u32 k = 0; k < regions; ++k, w += 3) {
    const u32 last = notes[k].last;
    RegionItem item;
    item.target = target;
    item.first = notes[k].first;
    item.last = last & ~static_cast<u32>(kSeveralDomains);
    item.clustered = 0;
    w[0] = item.first;
    w[1] = last;
    w[2] = last & kSeveralDomains ? ask_for_traces(p, item) : ask_for_envelope(p, item);
  }
  out->begins = f.begins;
  out->decoded = decoded ? 1 : 0;
  out->scales = scales;
  out->regions = regions;
  out->words = at;
  out->status = kDone;
  atomic_add(&p.counters->parsed, 1);
}

}  // namespace
}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_REGION_DECODING_CUH_
