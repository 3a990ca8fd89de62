// Everything about a domain envelope that needs its matrices: Forward and Backward of the unihit
// model, posterior decoding, null2 odds by expectation, optimal accuracy and the path through it
// (Eddy 2011; Holmes 1998), to the bit as the CPU's domain stage does it (common/four_lane.cuh).
// Envelopes are regions of one domain and clusters of sampled traces.
//
// kTargets envelopes a warp, four lanes each: eight, and fewer where rows of a long model take more
// room. Warps of a block have nothing to do with each other. Rows of cells lie in shared memory. Of the
// matrices the workspace holds what later passes need: the products of Forward and Backward, and for
// each cell which of its predecessors was best, so that the path needs no accuracies.
#include "common/four_lane.cuh"

namespace hmmjit_device {
namespace {

/// What is left of a row of Backward once the posteriors are known.
struct PosteriorRow {
  float factor;  ///< of the products
  float c;       ///< posterior of C
  float B;       ///< best accuracy before a domain begins
  u32 from_n;    ///< that is N's, not J's
  u32 reserved[4];
};
static_assert(sizeof(PosteriorRow) == sizeof(SpecialRow), "they share the workspace");

enum Choice : u32 {
  kFromMatch = 0, kFromInsert = 1, kFromDelete = 2, kFromBegin = 3,  // of a match, bits 0..1
  kInsertStays = 4,
};

/// -inf; what cannot be.
HMMJIT_DEVICE float none() { return bits_float(0xff800000u); }
HMMJIT_DEVICE float larger(float a, float b) { return a > b ? a : b; }
/// As the reference masks: what has no transition counts as zero in a cell, as nothing in a choice.
HMMJIT_DEVICE float allowed(float odds, float v) { return odds > 0.0f ? v : 0.0f; }
HMMJIT_DEVICE float chosen(float odds, float v) { return odds > 0.0f ? v : none(); }
HMMJIT_DEVICE float below_or_none(float v, u32 place) {
  const u32 lane = threadIdx.x % 32u;
  const float other = row_shuffle(v, place == 0 ? lane : lane - 1);
  return place == 0 ? none() : other;
}

struct Envelope {
  SpecialRow* forward;
  SpecialRow* backward;  ///< later PosteriorRow
  float* product;        ///< [row][stripe][M, I][lane]
  u8* choices;           ///< [row][stripe][match and insert, delete][lane]
  u32 L;
  u32 Q;
  HMMJIT_DEVICE PosteriorRow* posteriors() const {
    return reinterpret_cast<PosteriorRow*>(backward);
  }
  HMMJIT_DEVICE float* product_row(u32 i) const { return product + i * Q * 8u; }
  HMMJIT_DEVICE u8* choice_row(u32 i) const { return choices + i * Q * 8u; }
};

/// Has the products of a row brought to shared memory. Every lane of the warp calls it.
HMMJIT_DEVICE void bring(const Envelope& e, float* ahead, u32 place, bool active, u32 row) {
  if (active) {
    const float* const from = e.product_row(row);
    for (u32 chunk = place; chunk < 2u * e.Q; chunk += 4u) {
      copy_ahead(ahead + chunk * 4u, from + chunk * 4u);
    }
  }
}

/// Factors of the posteriors, and the special states of optimal accuracy that do not depend on E.
/// By one lane an envelope. `outside`: expected emissions from N, C and J. Returns whether the
/// decoding is sound.
HMMJIT_DEVICE bool set_posteriors(const Envelope& e, float loop, float move, bool own_scale,
                                  float* outside) {
  PosteriorRow* const rows = e.posteriors();
  const float N0 = e.backward[0].N;
  float scale = static_cast<float>(1.0 / static_cast<double>(N0));
  PosteriorRow row;
  row.factor = row.c = row.B = 0.0f;
  row.from_n = 1;
  row.reserved[0] = row.reserved[1] = row.reserved[2] = row.reserved[3] = 0;
  rows[0] = row;
  float best_n = 0.0f, best_j = none(), n = 0.0f, c = 0.0f, j = 0.0f;
  SpecialRow before = e.forward[0];
  constexpr u32 kAtOnce = 4;  // rows read ahead of what is written
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

/// What one stripe of optimal accuracy hands to the next.
struct AccuracyFlow {
  float mp, dp, ip, d;
};

template <int N>
HMMJIT_DEVICE void accuracy_stripes(const Stripes& s, float* sum_match, float* sum_insert,
                                    const float* ahead, u8* choices, bool active, float B,
                                    float factor, int q, AccuracyFlow* f) {
  Quad in[N], out[N];
  float m[N], d[N], i[N], pm[N], pi[N], sm[N], si[N];
  HMMJIT_UNROLL
  for (int k = 0; k < N; ++k) {
    in[k] = *reinterpret_cast<const Quad*>(s.odds + (q + k) * 32);
    out[k] = *reinterpret_cast<const Quad*>(s.odds + (q + k) * 32 + 4);
    m[k] = s.match[(q + k) * kRowLanes];
    d[k] = s.deletion[(q + k) * kRowLanes];
    i[k] = s.insert[(q + k) * kRowLanes];
    pm[k] = ahead[(q + k) * 8];
    pi[k] = ahead[(q + k) * 8 + 4];
    sm[k] = sum_match[(q + k) * kRowLanes];
    si[k] = sum_insert[(q + k) * kRowLanes];
  }
  HMMJIT_UNROLL
  for (int k = 0; k < N; ++k) {
    const float bm = pick(in[k], kWordEntry), mm = pick(in[k], kWordMmIn);
    const float im = pick(in[k], kWordImIn), dm = pick(in[k], kWordDmIn);
    const float mi = pick(out[k], kWordMiOut - 4), ii = pick(out[k], kWordIiOut - 4);
    const float from_m = chosen(mm, f->mp), from_i = chosen(im, f->ip);
    const float from_d = chosen(dm, f->dp);
    // The first of the largest.
    u32 choice = kFromMatch;
    float best = from_m;
    if (best < from_i) {
      best = from_i;
      choice = kFromInsert;
    }
    if (best < from_d) {
      best = from_d;
      choice = kFromDelete;
    }
    // What begins here is not negative, so that it does not matter that cells without a transition
    // count as zero in the sum: the larger one is as large.
    float v = larger(allowed(bm, B), best);
    if (best < chosen(bm, B)) choice = kFromBegin;
    const float match = multiply(pm[k], factor), insert = multiply(pi[k], factor);
    v = add(v, match);
    f->mp = m[k];
    f->dp = d[k];
    f->ip = i[k];
    if (!(chosen(mi, f->mp) >= chosen(ii, f->ip))) choice |= kInsertStays;
    s.match[(q + k) * kRowLanes] = v;
    s.deletion[(q + k) * kRowLanes] = f->d;
    s.insert[(q + k) * kRowLanes] = add(larger(allowed(mi, f->mp), allowed(ii, f->ip)), insert);
    f->d = allowed(pick(out[k], kWordMdOut - 4), v);
    sum_match[(q + k) * kRowLanes] = add(sm[k], match);
    sum_insert[(q + k) * kRowLanes] = add(si[k], insert);
    if (active) choices[(q + k) * 8] = static_cast<u8>(choice);
  }
}

/// Where a path ends: the best cell of a row. Of equal ones the last match, else the first
/// deletion, in the order of stripes and lanes.
struct End {
  float value;
  u32 node;
  u32 state;
};

/// The delete chain of optimal accuracy over N stripes.
template <int N>
HMMJIT_DEVICE void largest_stripes(const Stripes& s, const DeleteChunk<N>& chunk, int q, float* c,
                                   bool* larger_one) {
  HMMJIT_UNROLL
  for (int j = 0; j < N; ++j) {
    *larger_one = *c > chunk.d[j];
    const float value = larger(*c, chunk.d[j]);
    s.deletion[(q + j) * kRowLanes] = value;
    *c = allowed(chunk.dd[j], value);
  }
}

/// Completes a row of optimal accuracy: delete chain, choices of the deletions, best cell.
HMMJIT_DEVICE End finish_accuracy(const Stripes& s, float d, u8* choices, bool active) {
  const int Q = s.Q;
  float c = below_or_none(d, s.place);
  bool larger_one = false;  // at the last stripe that has been done, of this lane
  for (int pass = 0; pass < 4; ++pass) {
    if (pass > 0) c = below_or_none(c, s.place);
    // Deletions add nothing, so this is a running maximum: where the last of some stripes has not
    // changed, none after it will.
    bool flows = true;
    int q = ascend<DeleteChunk<kCheckEvery>, kCheckEvery>(
        s, [&](const DeleteChunk<kCheckEvery>& chunk, int first) {
          largest_stripes(s, chunk, first, &c, &larger_one);
          flows = pass == 0 || row_ballot(larger_one) != 0;
          return flows;
        });
    for (; flows && q < Q; ++q) {
      DeleteChunk<1> chunk;
      chunk.read(s, q);
      largest_stripes(s, chunk, q, &c, &larger_one);
    }
    if (pass > 0 && !(flows && row_ballot(larger_one) != 0)) break;
  }
  // What leads into a deletion, from the node before it.
  const float last_md = s.odds[(Q - 1) * 32 + kWordMdOut], last_dd = s.odds[(Q - 1) * 32 + kWordDdOut];
  float from_match = below_or_none(chosen(last_md, s.match[(Q - 1) * kRowLanes]), s.place);
  float from_delete = below_or_none(chosen(last_dd, s.deletion[(Q - 1) * kRowLanes]), s.place);
  float best_m = none(), best_d = none();
  u32 at_m = s.place, at_d = s.place;
  HMMJIT_UNROLL_BY(4)
  for (int q = 0; q < Q; ++q) {
    const float match = s.match[q * kRowLanes], deletion = s.deletion[q * kRowLanes];
    const float md = s.odds[q * 32 + kWordMdOut], dd = s.odds[q * 32 + kWordDdOut];
    const u32 code = static_cast<u32>(q) * 4u + s.place;
    if (match >= best_m) {
      best_m = match;
      at_m = code;
    }
    if (deletion > best_d) {
      best_d = deletion;
      at_d = code;
    }
    if (active) choices[q * 8 + 4] = from_match >= from_delete ? 0 : 1;
    from_match = chosen(md, match);
    from_delete = chosen(dd, deletion);
  }
  for (u32 o = 1; o < 4; o *= 2) {
    const float other_m = row_shuffle_xor(best_m, o), other_d = row_shuffle_xor(best_d, o);
    const u32 other_at_m = row_shuffle_xor(at_m, o), other_at_d = row_shuffle_xor(at_d, o);
    if (other_m > best_m || (other_m == best_m && other_at_m > at_m)) {
      best_m = other_m;
      at_m = other_at_m;
    }
    if (other_d > best_d || (other_d == best_d && other_at_d < at_d)) {
      best_d = other_d;
      at_d = other_at_d;
    }
  }
  const bool match = best_m >= best_d;
  const u32 at = match ? at_m : at_d;
  End end;
  end.value = match ? best_m : best_d;
  end.node = at % 4u * s.Q + at / 4u + 1u;
  end.state = match ? kPathMatch : kPathDelete;
  return end;
}

/// Tenths of a posterior probability, as the alignment shows them.
HMMJIT_DEVICE u32 posterior_code(float p) {
  const double rounded = static_cast<double>(p) + 0.05;
  return rounded >= 1.0 ? 10u : static_cast<u32>(rounded * 10.0);
}

enum : u32 { kNoPath = 0, kForHost = 0xffffffffu };

/// Follows the choices from the end of the path; by one lane an envelope. Returns the number of
/// steps, kNoPath, or kForHost where the path enters J before its domain.
HMMJIT_DEVICE u32 trace(const Envelope& e, u32 i, u32 k, u32 state, u8* path) {
  u32 steps = 0;
  for (;;) {
    const u32 stripe = (k - 1) % e.Q, lane = (k - 1) / e.Q;
    const u32 cell = stripe * 8u + lane;
    if (state == kPathDelete) {
      path[steps++] = static_cast<u8>(kPathDelete);
      state = e.choice_row(i)[cell + 4u] ? kPathDelete : kPathMatch;
      if (--k == 0) return kNoPath;
      continue;
    }
    const u32 choice = e.choice_row(i)[cell];
    const float product = e.product_row(i)[cell + (state == kPathInsert ? 4u : 0u)];
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

/// One of the envelopes that a warp works on side by side.
struct EnvelopeItem {
  RegionItem item;
  u32 entry;
  bool valid;  ///< false: there is none for this group of lanes
};

/// Scores the envelopes of a warp. By lanes that compute rows; `own`: shared memory of the warp, `rows`:
/// those of the longest.
HMMJIT_DEVICE void score(const DomainParams& p, const Stripes& s, float* own, const Residues& residues,
                         u32 rows, const EnvelopeItem& work, const Space& space) {
  const RegionItem item = work.item;
  const u32 entry = work.entry, length = residues.length, Q = p.stripes;
  const bool valid = work.valid;
  const u32 lane = threadIdx.x % 32u, group = lane / 4u;
  // Sums of match and insert posteriors, where the emission odds were.
  float* const sum_match = own + 3 * kRowLanes * Q + lane;
  float* const sum_insert = sum_match + kRowLanes * Q;
  // A row of products that waits, [stripe][M, I][lane].
  float* const ahead = own + envelope_warp_floats(Q, kTargets) - (kTargets - group) * product_floats(Q);
  Envelope e;
  e.forward =
      reinterpret_cast<SpecialRow*>(p.workspace + static_cast<u64>(space.first) * kWorkspaceUnit);
  e.backward = e.forward + (length + 1);
  e.product = reinterpret_cast<float*>(e.backward + (length + 1));
  e.choices = reinterpret_cast<u8*>(e.product + (length + 1) * Q * 8u);
  e.L = length;
  e.Q = Q;
  const FloatLength lengths = p.unihit[p.database.length_class[item.target]];

  // ---- Forward; Backward, and the products ----
  u32 scales = 0;
  const float last_c = forward_pass(
      p, s, residues, rows, lengths, unihit(), e.forward, [&](u32 i, float scale) {
        float* const out = e.product_row(i) + s.place;
        HMMJIT_UNROLL_BY(4)
        for (int q = 0; q < s.Q; ++q) {
          out[q * 8] = s.match[q * kRowLanes];
          out[q * 8 + 4] = s.insert[q * kRowLanes];
        }
        if (scale > 1.0f) ++scales;
      });
  const bool own_scale = backward_pass(
      p, s, residues, rows, lengths, unihit(), e.forward, e.backward,
      [&](u32 i) {
        sync_rows();  // `ahead` has been read
        bring(e, ahead, s.place, i > 0, i);
      },
      [&](u32 i) {
        copies_done();
        sync_rows();
        if (i == 0) return;
        float* const out = e.product_row(i) + s.place;
        HMMJIT_UNROLL_BY(4)
        for (int q = 0; q < s.Q; ++q) {
          out[q * 8] = multiply(ahead[q * 8 + s.place], s.match[q * kRowLanes]);
          out[q * 8 + 4] = multiply(ahead[q * 8 + 4 + s.place], s.insert[q * kRowLanes]);
        }
      });

  // ---- posteriors ----
  float outside = 0.0f;
  bool sound = false;
  if (valid && s.place == 0) {
    sound = set_posteriors(e, lengths.loop, lengths.move, own_scale, &outside);
  }
  outside = row_shuffle(outside, lane & 28u);
  sync_rows();

  // ---- optimal accuracy, sums of the posteriors ----
  for (int q = 0; q < s.Q; ++q) {
    s.match[q * kRowLanes] = s.deletion[q * kRowLanes] = s.insert[q * kRowLanes] = none();
    sum_match[q * kRowLanes] = sum_insert[q * kRowLanes] = 0.0f;
  }
  float best_c = none();
  u32 end_row = 0, end_node = 0, end_state = kPathMatch;
  bring(e, ahead, s.place, length >= 1, 1);
  PosteriorRow row, coming;
  row.factor = row.c = row.B = coming.factor = coming.c = coming.B = 0.0f;
  if (length >= 1) coming = e.posteriors()[1];
  for (u32 i = 1; i <= rows; ++i) {
    const bool active = i <= length;
    const float B = active ? row.B : 0.0f;
    row = coming;
    if (!active) row.factor = row.c = 0.0f;
    if (i < length) coming = e.posteriors()[i + 1];
    u8* const choices = active ? e.choice_row(i) + s.place : nullptr;
    AccuracyFlow f;
    f.mp = below_or_none(s.match[(s.Q - 1) * kRowLanes], s.place);
    f.dp = below_or_none(s.deletion[(s.Q - 1) * kRowLanes], s.place);
    f.ip = below_or_none(s.insert[(s.Q - 1) * kRowLanes], s.place);
    f.d = none();
    copies_done();
    sync_rows();
    int at = 0;
    for (; at + 4 <= s.Q; at += 4) {
      accuracy_stripes<4>(s, sum_match, sum_insert, ahead + s.place, choices, active, B,
                          row.factor, at, &f);
    }
    for (; at < s.Q; ++at) {
      accuracy_stripes<1>(s, sum_match, sum_insert, ahead + s.place, choices, active, B,
                          row.factor, at, &f);
    }
    sync_rows();
    bring(e, ahead, s.place, i + 1 <= length, i + 1);
    const End end = finish_accuracy(s, f.d, choices, active);
    if (active) {
      const float stay = add(best_c, row.c);
      if (!(chosen(lengths.loop, stay) > end.value)) {
        end_row = i;
        end_node = end.node;
        end_state = end.state;
      }
      const float c = lengths.loop == 0.0f ? 0.0f : stay;
      best_c = c < end.value ? end.value : c;
    }
  }
  copies_done();
  sync_rows();

  // ---- null2 odds ----
  const float norm =
      valid ? static_cast<float>(1.0 / static_cast<double>(static_cast<float>(length))) : 0.0f;
  for (int q = 0; q < s.Q; ++q) {
    sum_match[q * kRowLanes] = multiply(sum_match[q * kRowLanes], norm);
    sum_insert[q * kRowLanes] = multiply(sum_insert[q * kRowLanes], norm);
  }
  // Envelopes of clusters have theirs from sampled traces.
  const u32 codes = row_ballot(item.clustered == 0) ? p.residue_codes : 0u;
  for (u32 code = 0; code < codes; ++code) {
    const float* const emission = p.emissions + code * Q * 4u + s.place;
    float sum = 0.0f;
    HMMJIT_UNROLL_BY(4)
    for (int q = 0; q < s.Q; ++q) {
      sum = add(sum, multiply(sum_match[q * kRowLanes], emission[q * 4]));
      sum = add(sum, sum_insert[q * kRowLanes]);
    }
    sum = add(group_sum(sum), outside);
    if (valid && s.place == 0) p.scored[entry].null2[code] = sum;
  }

  // ---- the answer ----
  if (valid && s.place == 0) {
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
    if (room && sound && end_row > 0 && end_node <= p.model_length) {
      // The path has at most a step for each residue and each node: it fits into the special
      // rows of Forward, which nobody needs any more, or into row 0 of the products.
      u8* const path = length + p.model_length <= (length + 1) * static_cast<u32>(sizeof(SpecialRow))
                           ? reinterpret_cast<u8*>(e.forward)
                           : reinterpret_cast<u8*>(e.product);
      steps = trace(e, end_row, end_node, end_state, path);
      if (steps == kForHost) {
        room = false;
      } else {
        room = take_words(p, (steps + 3) / 4, &path_words);
        u8* const to = reinterpret_cast<u8*>(p.words + path_words);
        for (u32 k = 0; room && k < steps; ++k) to[k] = path[k];
      }
    }
    if (room) {
      out->last_c = last_c;
      out->scales = scales;
      out->steps = steps;
      out->words = words;
      out->sound = sound ? 1 : 0;
      out->last_row = end_row;
      out->last_node = end_node;
      out->last_state = end_state;
      out->accuracy = best_c;
      out->path = path_words;
      out->status = kDone;
      atomic_add(&p.counters->scored, 1);
    }
  }
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(32 * plan_constants::kWarps, 1)
    envelope_four_lane(const hmmjit_device::DomainBatch batch) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(shared);
  const BlockShare share = block_share(batch);
  const DomainParams p = *share.model;
  const u32 count = p.envelope_count;
  const u32 items = items_per_warp(p.most_envelopes);
  float* const odds = reinterpret_cast<float*>(shared);
  load_odds(p, odds);
  const u32 warp = share.warp();
  if (!share.works() || warp * items >= count || (warp + 1) * items > p.most_envelopes) return;
  const u32 Q = p.stripes;
  float* const own =
      odds + block_floats(Q) + threadIdx.x / 32u * envelope_warp_floats(Q, kTargets);
  const Stripes s = make_stripes(p, odds, own);
  const u32 lane = threadIdx.x % 32u, group = lane / 4u;
  const TimedItems timed(p, &p.arena->envelopes_begun);
  Space space;
  for (;;) {
    const u32 first = timed.take(&p.counters->next_envelope, items);
    if (first >= count) break;
    bool valid = group < items && first + group < count;
    const u32 entry = valid ? p.envelope_order[first + group] : 0u;
    RegionItem item;
    item.target = item.first = item.last = 0;
    item.clustered = 1;
    if (valid) item = p.envelopes[entry];
    const u32 L = valid ? item.last - item.first + 1 : 0u;
    valid = valid && fits(p, envelope_units(L, Q));
    const bool asked = warp_ballot(valid);
    valid = reserve(p, &p.arena->envelope_units, s.place, valid ? envelope_units(L, Q) : 0u,
                    &space) && valid;
    const u32 length = valid ? L : 0u;
    Residues residues;
    residues.first = p.database.residues +
                     static_cast<u64>(p.database.start[item.target]) * kStartUnit +
                     (valid ? item.first - 1 : 0u);
    residues.length = length;
    const u32 rows = longest(residues);
    if (rows == 0) {
      if (asked && !warp_ballot(space.units > 0)) break;  // others have the workspace
      continue;
    }
    if (lane < kRowLanes) score(p, s, own, residues, rows, {item, entry, valid}, space);
    sync_warp();
  }
}
