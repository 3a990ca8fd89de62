// All steps of a domain envelope that need its matrices: Forward and Backward of the unihit model, posterior
// decoding, null2 odds by expectation, optimal accuracy and its path (Eddy 2011; Holmes 1998), equal to the CPU's
// domain stage to the bit (common/four_lane.cuh). Envelopes are regions of one domain and clusters of sampled
// traces.
//
// kTargets envelopes per warp, four lanes each: eight, or fewer if the rows of a long model take more room. The
// warps of a block are independent. Rows of cells are in shared memory. The workspace holds what later passes need
// of the matrices: the products of Forward and Backward, and the best predecessor of each cell, so that the path
// needs no accuracies.
#include "common/envelope_parts.cuh"

namespace hmmjit_device {
namespace {

HMMJIT_DEVICE float below_or_none(float v, u32 place) {
  const u32 lane = threadIdx.x % 32u;
  const float other = row_shuffle(v, place == 0 ? lane : lane - kTargets);
  return place == 0 ? none() : other;
}

/// Starts copying the products of a row to shared memory. Every lane of the warp calls it.
HMMJIT_DEVICE void bring(const Envelope& e, float* ahead, u32 place, bool active, u32 row) {
  if (active) {
    const float* const from = e.product_row(row);
    for (u32 cell = place * 4u; cell < e.row_cells; cell += 16u) copy_ahead(ahead + cell, from + cell);
  }
}

/// Cells of M or I of this lane in a chunk with `count` stripes of the model, zero beyond.
HMMJIT_DEVICE Quad four_cells(const float* cells, int count) {
  Quad v;
  v.x = float_bits(cells[0]);
  v.y = count > 1 ? float_bits(cells[kRowLanes]) : 0u;
  v.z = count > 2 ? float_bits(cells[2 * kRowLanes]) : 0u;
  v.w = count > 3 ? float_bits(cells[3 * kRowLanes]) : 0u;
  return v;
}
HMMJIT_DEVICE Quad four_products(const float* a, const Quad& b) {
  const Quad v = *reinterpret_cast<const Quad*>(a);
  Quad out;
  out.x = float_bits(multiply(bits_float(v.x), bits_float(b.x)));
  out.y = float_bits(multiply(bits_float(v.y), bits_float(b.y)));
  out.z = float_bits(multiply(bits_float(v.z), bits_float(b.z)));
  out.w = float_bits(multiply(bits_float(v.w), bits_float(b.w)));
  return out;
}
/// Calls work(q, stripes of the chunk) for all chunks of a row.
template <typename Work>
HMMJIT_DEVICE void for_chunks(int Q, const Work& work) {
  int q = 0;
  HMMJIT_UNROLL_BY(2)
  for (; q + 4 <= Q; q += 4) work(q, 4);
  if (q < Q) work(q, Q - q);
}

/// Values that one stripe of optimal accuracy passes to the next.
struct AccuracyFlow {
  float mp, dp, ip, d;
};

/// Operands of N stripes of optimal accuracy; products of one chunk.
template <int N>
struct AccuracyChunk {
  Quad in[N], out[N];
  float m[N], d[N], i[N], match[N], insert[N];
  HMMJIT_DEVICE void read(const Stripes& s, int q, const float* ahead) {
    const float* const products = ahead + q / 4 * kChunkCells + s.place * 4u + q % 4;
    HMMJIT_UNROLL
    for (int k = 0; k < N; ++k) {
      in[k] = *reinterpret_cast<const Quad*>(s.odds + (q + k) * 32);
      out[k] = *reinterpret_cast<const Quad*>(s.odds + (q + k) * 32 + 4);
      m[k] = s.match[(q + k) * kRowLanes];
      d[k] = s.deletion[(q + k) * kRowLanes];
      i[k] = s.insert[(q + k) * kRowLanes];
    }
    if (N == 4) {
      const Quad pm = *reinterpret_cast<const Quad*>(products);
      const Quad pi = *reinterpret_cast<const Quad*>(products + kKindCells);
      HMMJIT_UNROLL
      for (int k = 0; k < N; ++k) {
        match[k] = pick(pm, k);
        insert[k] = pick(pi, k);
      }
    } else {
      match[0] = products[0];
      insert[0] = products[kKindCells];
    }
  }
};

/// Returns the choices of the N match and insert cells, one byte each.
template <int N>
HMMJIT_DEVICE u32 accuracy_stripes(const Stripes& s, const AccuracyChunk<N>& c, float B, float factor,
                                   int q, AccuracyFlow* f) {
  u32 choices = 0;
  HMMJIT_UNROLL
  for (int k = 0; k < N; ++k) {
    const float bm = pick(c.in[k], kWordEntry), mm = pick(c.in[k], kWordMmIn);
    const float im = pick(c.in[k], kWordImIn), dm = pick(c.in[k], kWordDmIn);
    const float mi = pick(c.out[k], kWordMiOut - 4), ii = pick(c.out[k], kWordIiOut - 4);
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
    // The begin value is not negative, so counting cells without a transition as zero in the sum does not change
    // the larger one.
    float v = larger(allowed(bm, B), best);
    if (best < chosen(bm, B)) choice = kFromBegin;
    v = add(v, multiply(c.match[k], factor));
    f->mp = c.m[k];
    f->dp = c.d[k];
    f->ip = c.i[k];
    if (!(chosen(mi, f->mp) >= chosen(ii, f->ip))) choice |= kInsertStays;
    s.match[(q + k) * kRowLanes] = v;
    s.deletion[(q + k) * kRowLanes] = f->d;
    s.insert[(q + k) * kRowLanes] = add(larger(allowed(mi, f->mp), allowed(ii, f->ip)),
                                        multiply(c.insert[k], factor));
    f->d = allowed(pick(c.out[k], kWordMdOut - 4), v);
    choices |= choice << 8 * k;
  }
  return choices;
}

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

/// Completes a row of optimal accuracy: delete chain, choices of the deletions (of this lane's chunks, or null),
/// best cell.
HMMJIT_DEVICE End finish_accuracy(const Stripes& s, float d, u32* choices) {
  const int Q = s.Q;
  float c = below_or_none(d, s.place);
  bool larger_one = false;  // at this lane's last stripe done so far
  for (int pass = 0; pass < 4; ++pass) {
    if (pass > 0) c = below_or_none(c, s.place);
    // Deletions add nothing, so this is a running maximum: once the last of some stripes does not change, none
    // after it does.
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
  // Inflow of a deletion from the previous node.
  const float last_md = s.odds[(Q - 1) * 32 + kWordMdOut], last_dd = s.odds[(Q - 1) * 32 + kWordDdOut];
  float from_match = below_or_none(chosen(last_md, s.match[(Q - 1) * kRowLanes]), s.place);
  float from_delete = below_or_none(chosen(last_dd, s.deletion[(Q - 1) * kRowLanes]), s.place);
  float best_m = none(), best_d = none();
  u32 at_m = s.place, at_d = s.place;
  for_chunks(Q, [&](int first, int count) {
    u32 word = 0;
    HMMJIT_UNROLL
    for (int k = 0; k < 4; ++k) {
      if (k >= count) break;
      const int q = first + k;
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
      word |= (from_match >= from_delete ? 0u : 1u) << 8 * k;
      from_match = chosen(md, match);
      from_delete = chosen(dd, deletion);
    }
    if (choices != nullptr) choices[first / 4 * (kChunkCells / 4)] = word;
  });
  for (u32 o = 1; o < 4; o *= 2) {
    const float other_m = place_shuffle_xor(best_m, o), other_d = place_shuffle_xor(best_d, o);
    const u32 other_at_m = place_shuffle_xor(at_m, o), other_at_d = place_shuffle_xor(at_d, o);
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

/// Sums of the posteriors of M and I cells over the rows of an envelope, stored in place of these cells.
HMMJIT_DEVICE void sum_posteriors(const Stripes& s, const Envelope& e, float* ahead, u32 rows) {
  clear_cells(s);
  bring(e, ahead, s.place, e.L >= 1, 1);
  float coming = e.L >= 1 ? e.posteriors()[1].factor : 0.0f;
  for (u32 i = 1; i <= rows; ++i) {
    const float factor = i <= e.L ? coming : 0.0f;
    if (i < e.L) coming = e.posteriors()[i + 1].factor;
    copies_done();
    sync_rows();
    HMMJIT_UNROLL_BY(4)
    for (int q = 0; q < s.Q; ++q) {
      const float* const products = ahead + q / 4 * kChunkCells + s.place * 4u + q % 4;
      const float match = products[0], insert = products[kKindCells];
      s.match[q * kRowLanes] = add(s.match[q * kRowLanes], multiply(match, factor));
      s.insert[q * kRowLanes] = add(s.insert[q * kRowLanes], multiply(insert, factor));
    }
    sync_rows();
    bring(e, ahead, s.place, i + 1 <= e.L, i + 1);
  }
}

/// One of the interleaved envelopes of a warp.
struct EnvelopeItem {
  RegionItem item;
  u32 entry;
  bool valid;  ///< false: there is none for this group of lanes
};

/// Scores the envelopes of a warp. Called by lanes that compute rows; `own`: shared memory of the warp, `rows`:
/// those of the longest.
HMMJIT_DEVICE void score(const DomainParams& p, const Stripes& s, float* own, const Residues& residues,
                         u32 rows, const EnvelopeItem& work, const Space& space) {
  const RegionItem item = work.item;
  const u32 entry = work.entry, length = residues.length, Q = p.stripes;
  const bool valid = work.valid;
  // A prefetched row of products.
  float* const ahead =
      own + envelope_warp_floats(Q, kTargets) - (kTargets - lane_target()) * product_floats(Q);
  const Envelope e = make_envelope(p.workspace + static_cast<u64>(space.first) * kWorkspaceUnit, length, Q);
  const FloatLength lengths = p.unihit[p.database.length_class[item.target]];

  // ---- Forward; Backward, and the products ----
  u32 scales = 0;
  const float last_c = forward_pass(
      p, s, residues, rows, lengths, unihit(), e.forward, [&](u32 i, float scale) {
        float* const out = e.product_row(i) + s.place * 4u;
        for_chunks(s.Q, [&](int q, int count) {
          float* const to = out + q / 4 * kChunkCells;
          *reinterpret_cast<Quad*>(to) = four_cells(s.match + q * kRowLanes, count);
          *reinterpret_cast<Quad*>(to + kKindCells) = four_cells(s.insert + q * kRowLanes, count);
        });
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
        float* const out = e.product_row(i) + s.place * 4u;
        for_chunks(s.Q, [&](int q, int count) {
          float* const to = out + q / 4 * kChunkCells;
          const float* const from = ahead + s.place * 4u + q / 4 * kChunkCells;
          *reinterpret_cast<Quad*>(to) = four_products(from, four_cells(s.match + q * kRowLanes, count));
          *reinterpret_cast<Quad*>(to + kKindCells) =
              four_products(from + kKindCells, four_cells(s.insert + q * kRowLanes, count));
        });
      });

  // ---- posteriors ----
  float outside = 0.0f;
  bool sound = false;
  if (valid && s.place == 0) {
    sound = set_posteriors(e, lengths.loop, lengths.move, own_scale, &outside);
  }
  outside = row_shuffle(outside, lane_target());
  sync_rows();

  // ---- optimal accuracy ----
  for (int q = 0; q < s.Q; ++q) {
    s.match[q * kRowLanes] = s.deletion[q * kRowLanes] = s.insert[q * kRowLanes] = none();
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
    // For this lane's chunks.
    u32* const choices =
        active ? reinterpret_cast<u32*>(e.choice_row(i)) + s.place : nullptr;
    AccuracyFlow f;
    f.mp = below_or_none(s.match[(s.Q - 1) * kRowLanes], s.place);
    f.dp = below_or_none(s.deletion[(s.Q - 1) * kRowLanes], s.place);
    f.ip = below_or_none(s.insert[(s.Q - 1) * kRowLanes], s.place);
    f.d = none();
    copies_done();
    sync_rows();
    const int at = ascend<AccuracyChunk<4>, 4>(
        s,
        [&](const AccuracyChunk<4>& chunk, int q) {
          const u32 word = accuracy_stripes<4>(s, chunk, B, row.factor, q, &f);
          if (active) choices[q / 4 * (kChunkCells / 4)] = word;
          return true;
        },
        ahead);
    u32 word = 0;
    for (int k = 0; at + k < s.Q; ++k) {
      AccuracyChunk<1> chunk;
      chunk.read(s, at + k, ahead);
      word |= accuracy_stripes<1>(s, chunk, B, row.factor, at + k, &f) << 8 * k;
    }
    if (active && at < s.Q) choices[at / 4 * (kChunkCells / 4)] = word;
    sync_rows();
    bring(e, ahead, s.place, i + 1 <= length, i + 1);
    const End end = finish_accuracy(s, f.d, choices == nullptr ? nullptr : choices + kKindCells / 4);
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

  // ---- null2 odds; envelopes of clusters have theirs from sampled traces ----
  if (row_ballot(item.clustered == 0)) {
    sum_posteriors(s, e, ahead, rows);
    const float norm =
        valid ? static_cast<float>(1.0 / static_cast<double>(static_cast<float>(length))) : 0.0f;
    for (int q = 0; q < s.Q; ++q) {
      s.match[q * kRowLanes] = multiply(s.match[q * kRowLanes], norm);
      s.insert[q * kRowLanes] = multiply(s.insert[q * kRowLanes], norm);
    }
    for (u32 code = 0; code < p.residue_codes; ++code) {
      const float* const emission = p.emissions + code * Q * 4u + s.place;
      float sum = 0.0f;
      HMMJIT_UNROLL_BY(4)
      for (int q = 0; q < s.Q; ++q) {
        sum = add(sum, multiply(s.match[q * kRowLanes], emission[q * 4]));
        sum = add(sum, s.insert[q * kRowLanes]);
      }
      sum = add(group_sum(sum), outside);
      if (valid && s.place == 0) p.scored[entry].null2[code] = sum;
    }
  }

  // ---- the answer ----
  if (valid && s.place == 0)
    answer_envelope(p, e, entry, scales, last_c, sound, {end_row, end_node, end_state, best_c});
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
  float* const odds = reinterpret_cast<float*>(shared);
  load_odds(p, odds);
  ItemShare mine(share, count, p.most_envelopes);
  if (!share.works() || !mine.begins()) return;
  const u32 Q = p.stripes;
  float* const own =
      odds + block_floats(Q) + threadIdx.x / 32u * envelope_warp_floats(Q, kTargets);
  Stripes s = make_stripes(p, odds, own);
  if (p.first_rows != nullptr) s.bounds = p.bounds;  // of more rows than the block keeps
  const u32 lane = threadIdx.x % 32u, group = lane_target();
  const TimeLimit time(p, &p.arena->envelopes_begun);
  Space space;
  for (;;) {
    if (time.over()) break;
    const u32 first = mine.take(&p.counters->next_envelope);
    if (first >= count) break;
    bool valid = group < mine.items() && first + group < count;
    const u32 entry = valid ? p.envelope_order[first + group] : 0u;
    RegionItem item;
    item.target = item.first = item.last = 0;
    item.clustered = 1;
    if (valid) item = p.envelopes[entry];
    const u32 L = valid ? item.last - item.first + 1 : 0u;
    valid = valid && fits(p, envelope_units(L, Q));
    const bool asked = warp_ballot(valid);
    valid = reserve(p, &p.arena->envelope_units, valid ? envelope_units(L, Q) : 0u, &space) && valid;
    const u32 length = valid ? L : 0u;
    Residues residues;
    residues.first = p.database.residues +
                     static_cast<u64>(p.database.start[item.target]) * kStartUnit +
                     (valid ? item.first - 1 : 0u);
    residues.length = length;
    if (p.first_rows != nullptr) residues.first_row = p.first_rows[entry];
    const u32 rows = longest(residues);
    if (rows == 0) {
      if (asked && !warp_ballot(space.units > 0)) break;  // other warps have the workspace
      continue;
    }
    if (lane < kRowLanes) score(p, s, own, residues, rows, {item, entry, valid}, space);
    sync_warp();
  }
}
