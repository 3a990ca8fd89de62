// One lane's work on an envelope between and after the passes over its rows: posteriors from the special states,
// the path of optimal accuracy through the choices (Holmes 1998), the answer.
#ifndef HMMJIT_KERNEL_ENVELOPE_PARTS_CUH_
#define HMMJIT_KERNEL_ENVELOPE_PARTS_CUH_

#include "common/four_lane.cuh"

namespace hmmjit_device {
namespace {  // as in common/four_lane.cuh

/// The part of a Backward row that is needed once the posteriors are known.
struct PosteriorRow {
  float factor;  ///< of the products
  float c;       ///< posterior of C
  float B;       ///< best accuracy before a domain begins
  u32 from_n;    ///< it comes from N, not J
  u32 reserved[4];
};
static_assert(sizeof(PosteriorRow) == sizeof(SpecialRow), "they share the workspace");

enum Choice : u32 {
  kFromMatch = 0, kFromInsert = 1, kFromDelete = 2, kFromBegin = 3,  // of a match, bits 0..1
  kInsertStays = 4,
};

/// -inf: impossible.
HMMJIT_DEVICE float none() { return bits_float(0xff800000u); }
HMMJIT_DEVICE float larger(float a, float b) { return a > b ? a : b; }
/// Masks like HMMER: without a transition, a cell adds zero and is no candidate for a choice.
HMMJIT_DEVICE float allowed(float odds, float v) { return odds > 0.0f ? v : 0.0f; }
HMMJIT_DEVICE float chosen(float odds, float v) { return odds > 0.0f ? v : none(); }

/// Matrices of an envelope in the workspace. A row has chunks of four stripes: [chunk][kind][place][4], kinds
/// M and I of products, M and D of choices, so that a lane reads and writes four stripes at a time.
enum : u32 { kChunkCells = 32, kKindCells = 16 };
struct Envelope {
  SpecialRow* forward;
  SpecialRow* backward;  ///< later PosteriorRow
  float* product;        ///< [row][row_cells]: products of M, I
  u8* choices;           ///< [row][row_cells]: of match and insert, of delete
  u32 L;
  u32 Q;
  u32 row_cells;
  HMMJIT_DEVICE PosteriorRow* posteriors() const {
    return reinterpret_cast<PosteriorRow*>(backward);
  }
  HMMJIT_DEVICE float* product_row(u32 i) const { return product + i * row_cells; }
  HMMJIT_DEVICE u8* choice_row(u32 i) const { return choices + i * row_cells; }
};
/// An envelope of L residues in the workspace from `first` on, see envelope_units().
HMMJIT_DEVICE Envelope make_envelope(u8* first, u32 L, u32 Q) {
  Envelope e;
  e.forward = reinterpret_cast<SpecialRow*>(first);
  e.backward = e.forward + (L + 1);
  e.product = reinterpret_cast<float*>(e.backward + (L + 1));
  e.row_cells = envelope_row_cells(Q);
  e.choices = reinterpret_cast<u8*>(e.product + (L + 1) * e.row_cells);
  e.L = L;
  e.Q = Q;
  return e;
}

/// Factors of the posteriors, and the special states of optimal accuracy that do not depend on E. Called by one
/// lane per envelope. `outside`: expected emissions from N, C and J. Returns false if the decoding overflowed.
template <typename Matrices>
HMMJIT_DEVICE bool set_posteriors(const Matrices& e, float loop, float move, bool own_scale,
                                  float* outside) {
  PosteriorRow* const rows = reinterpret_cast<PosteriorRow*>(e.backward);
  const float N0 = e.backward[0].N;
  float scale = static_cast<float>(1.0 / static_cast<double>(N0));
  PosteriorRow row;
  row.factor = row.c = row.B = 0.0f;
  row.from_n = 1;
  row.reserved[0] = row.reserved[1] = row.reserved[2] = row.reserved[3] = 0;
  rows[0] = row;
  float best_n = 0.0f, best_j = none(), n = 0.0f, c = 0.0f, j = 0.0f;
  SpecialRow before = e.forward[0];
  constexpr u32 kAtOnce = 4;  // rows prefetched
  for (u32 first = 1; first <= e.L; first += kAtOnce) {
    SpecialRow fs[kAtOnce], bs[kAtOnce];
    HMMJIT_UNROLL
    for (u32 r = 0; r < kAtOnce; ++r) {
      const u32 i = first + r <= e.L ? first + r : e.L;
      fs[r] = e.forward[i];
      bs[r] = e.backward[i];
    }
    HMMJIT_UNROLL
    for (u32 r = 0; r < kAtOnce; ++r) {
      const u32 i = first + r;
      if (i > e.L) break;
      const SpecialRow f = fs[r], b = bs[r];
      row.factor = multiply(scale, f.scale);
      const float pn = multiply(multiply(multiply(before.N, b.N), loop), scale);
      const float pj = multiply(multiply(multiply(before.J, b.J), loop), scale);
      const float pc = multiply(multiply(multiply(before.C, b.C), loop), scale);
      best_n = loop == 0.0f ? 0.0f : add(best_n, pn);
      best_j = loop == 0.0f ? 0.0f : add(best_j, pj);
      if (best_j < 0.0f) best_j = 0.0f;
      row.B = move == 0.0f ? 0.0f : best_n < best_j ? best_j : best_n;
      row.c = pc;
      row.from_n = best_n > best_j ? 1 : 0;
      n = add(n, pn);
      c = add(c, pc);
      j = add(j, pj);
      if (own_scale) scale = multiply(scale, divide(f.scale, b.scale));
      rows[i] = row;
      before = f;
    }
  }
  const float norm = static_cast<float>(1.0 / static_cast<double>(static_cast<float>(e.L)));
  *outside = add(add(multiply(n, norm), multiply(c, norm)), multiply(j, norm));
  return (float_bits(scale) & 0x7fffffffu) != 0x7f800000u;
}

/// End of a path: the best cell of a row. Ties go to the last match, else to the first deletion, in the order of
/// stripes and lanes.
struct End {
  float value;
  u32 node;
  u32 state;
};

/// Tenths of a posterior probability, as the alignment shows them.
HMMJIT_DEVICE u32 posterior_code(float p) {
  const double rounded = static_cast<double>(p) + 0.05;
  return rounded >= 1.0 ? 10u : static_cast<u32>(rounded * 10.0);
}

enum : u32 { kNoPath = 0, kForHost = 0xffffffffu };

/// Follows the choices from the end of the path; called by one lane per envelope. Returns the number of steps,
/// kNoPath, or kForHost if the path enters J before its domain.
HMMJIT_DEVICE u32 trace(const Envelope& e, u32 i, u32 k, u32 state, u8* path) {
  u32 steps = 0;
  for (;;) {
    const u32 stripe = (k - 1) % e.Q, place = (k - 1) / e.Q;
    const u32 cell = stripe / 4 * kChunkCells + place * 4 + stripe % 4;
    if (state == kPathDelete) {
      path[steps++] = static_cast<u8>(kPathDelete);
      state = e.choice_row(i)[cell + kKindCells] ? kPathDelete : kPathMatch;
      if (--k == 0) return kNoPath;
      continue;
    }
    const u32 choice = e.choice_row(i)[cell];
    const float product = e.product_row(i)[cell + (state == kPathInsert ? static_cast<u32>(kKindCells) : 0u)];
    const u32 code = posterior_code(multiply(product, e.posteriors()[i].factor));
    path[steps++] = static_cast<u8>(state | code << 2);
    if (state == kPathInsert) {
      state = choice & kInsertStays ? kPathInsert : kPathMatch;
      if (--i == 0) return kNoPath;
      continue;
    }
    const u32 from = choice & 3u;
    --i;
    --k;
    if (from == kFromBegin) {
      return i == 0 || e.posteriors()[i].from_n ? steps : static_cast<u32>(kForHost);
    }
    if (i == 0 || k == 0) return kNoPath;
    state = from == kFromMatch ? kPathMatch : from == kFromInsert ? kPathInsert : kPathDelete;
  }
}

/// The last cell of a path, and further results for the envelope.
struct PathEnd {
  u32 row, node, state;
  float accuracy;
};

/// Writes the answer for one envelope; called by one lane. `scales`: rescaled rows of Forward.
HMMJIT_DEVICE void answer_envelope(const DomainParams& p, const Envelope& e, u32 entry, u32 scales,
                                   float last_c, bool sound, const PathEnd& end) {
  const u32 length = e.L;
  ScoredEnvelope* const out = p.scored + entry;
  u32 words = 0, path_words = 0, steps = 0;
  bool room = take_words(p, scales, &words);
  if (room) {
    u32 k = 0;
    for (u32 i = 1; i <= length && k < scales; ++i) {
      const float scale = e.forward[i].scale;
      if (scale > 1.0f) p.words[words + k++] = float_bits(scale);
    }
  }
  if (room && sound && end.row > 0 && end.node <= p.model_length) {
    // The path has at most one step per residue and node, so it fits into the special rows of Forward, which are no
    // longer needed, or into row 0 of the products.
    u8* const path = length + p.model_length <= (length + 1) * static_cast<u32>(sizeof(SpecialRow))
                         ? reinterpret_cast<u8*>(e.forward)
                         : reinterpret_cast<u8*>(e.product);
    steps = trace(e, end.row, end.node, end.state, path);
    if (steps == kForHost) {
      out->status = kNotForDevice;
      return;
    } else {
      room = take_words(p, (steps + 3) / 4, &path_words);
      u8* const to = reinterpret_cast<u8*>(p.words + path_words);
      for (u32 k = 0; room && k < steps; ++k) to[k] = path[k];
    }
  }
  out->status = kNoRoom;
  if (room) {
    out->last_c = last_c;
    out->scales = scales;
    out->steps = steps;
    out->words = words;
    out->sound = sound ? 1 : 0;
    out->last_row = end.row;
    out->last_node = end.node;
    out->accuracy = end.accuracy;
    out->path = path_words;
    out->status = kDone;
    atomic_add(&p.counters->scored, 1);
  }
}

}  // namespace
}  // namespace hmmjit_device

#endif  // HMMJIT_KERNEL_ENVELOPE_PARTS_CUH_
