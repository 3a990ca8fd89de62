// All steps of the envelopes of long models that need their matrices, equal to envelope/four_lane.cu to the bit:
// one envelope per block (common/four_warp.cuh), so that a row takes hundreds of clocks per pass instead of per
// stripe.
//
// A row of products has kRun times 32 cells for each kind and place: the warps of a block read and write whole
// lines. A thread's choices of a row take four bits per cell: two for the predecessor of its match, one for the
// insert loop, one for the predecessor of the next node's deletion.
#include "common/envelope_parts.cuh"
#include "common/four_warp.cuh"

namespace hmmjit_device {
namespace {

enum : int { kChoiceWords = (kRun + 7) / 8 };
enum : u32 { kNextFromDelete = 8 };

struct LongEnvelope {
  SpecialRow* forward;
  SpecialRow* backward;  ///< later PosteriorRow
  float* product;        ///< [row][M, I][place][j][lane]
  u32* choices;          ///< [row][place][word][lane]
  u32 L;
  HMMJIT_DEVICE const PosteriorRow* posteriors() const {
    return reinterpret_cast<const PosteriorRow*>(backward);
  }
  HMMJIT_DEVICE float* product_row(u32 i) const { return product + static_cast<u64>(i) * (2 * kRowCells); }
  HMMJIT_DEVICE u32* choice_row(u32 i) const {
    return choices + static_cast<u64>(i) * (128 * kChoiceWords);
  }
};
HMMJIT_DEVICE LongEnvelope make_long_envelope(u8* first, u32 L) {
  LongEnvelope e;
  e.forward = reinterpret_cast<SpecialRow*>(first);
  e.backward = e.forward + (L + 1);
  e.product = reinterpret_cast<float*>(e.backward + (L + 1));
  e.choices = reinterpret_cast<u32*>(e.product_row(L + 1));
  e.L = L;
  return e;
}

/// A cell of each kind of a row, of this thread's stripes.
HMMJIT_DEVICE void read_products(const Place& t, const float* row, float (&m)[kRun], float (&i)[kRun]) {
  const float* const from = row + t.place * kPlaceCells + t.lane;
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    m[j] = from[32 * j];
    i[j] = from[kRowCells + 32 * j];
  }
}
HMMJIT_DEVICE void write_products(const Place& t, float* row, const float (&m)[kRun],
                                  const float (&i)[kRun]) {
  float* const to = row + t.place * kPlaceCells + t.lane;
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    to[32 * j] = m[j];
    to[kRowCells + 32 * j] = i[j];
  }
}

/// The largest value of a warp and its lane; ties go to the last lane, or to the first.
template <bool kLast>
HMMJIT_DEVICE void best_of_warp(float* best, u32* at) {
  float most = *best;
  for (u32 o = 1; o < 32; o *= 2) {
    const float other = bits_float(shuffle_xor(float_bits(most), o));
    most = most < other ? other : most;
  }
  const u32 equal = warp_ballot(*best == most);
  *best = most;
  *at = shuffle(*at, kLast ? highest_bit(equal) : lowest_bit(equal));
}

/// Cells of optimal accuracy, and sums of posteriors over the rows so far.
struct Accuracies {
  RunCells c;
  float sum_m[kRun], sum_i[kRun];
};

/// Cells of M and I of a row of optimal accuracy in place, and in D the inflow of its deletions from matches.
/// `words`: choices of the row.
HMMJIT_DEVICE void accuracy_cells(const Place& t, Accuracies& a, float B, float factor,
                                  const float (&pm)[kRun], const float (&pi)[kRun],
                                  u32 (&words)[kChoiceWords]) {
  Exchange& x = *t.exchange;
  RunCells& c = a.c;
  Quad own = t.in[32 * (kRun - 1)];
  float first_m = before<true>(chosen(pick(own, kMatch), c.m[kRun - 1]), t.lane);
  float first_i = before<true>(chosen(pick(own, kInsert), c.i[kRun - 1]), t.lane);
  float first_d = before<true>(chosen(pick(own, kDeletion), c.d[kRun - 1]), t.lane);
  if (t.lane == 0) {
    const u32 below = (t.place + 3) % 4u;
    const Quad odds = *t.below;
    first_m = chosen(pick(odds, kMatch), x.match[below]);
    first_i = chosen(pick(odds, kInsert), x.insert[below]);
    first_d = chosen(pick(odds, kDeletion), x.deletion[0][below]);
  }
  HMMJIT_UNROLL
  for (int w = 0; w < kChoiceWords; ++w) words[w] = 0;
  HMMJIT_UNROLL
  for (int j = kRun - 1; j >= 0; --j) {
    const Quad out = t.out[32 * j];
    const float entry = pick(own, kEntry);
    float best = first_m, from_i = first_i, from_d = first_d;
    if (j > 0) {
      own = t.in[32 * (j - 1)];
      best = chosen(pick(own, kMatch), c.m[j > 0 ? j - 1 : 0]);
      from_i = chosen(pick(own, kInsert), c.i[j > 0 ? j - 1 : 0]);
      from_d = chosen(pick(own, kDeletion), c.d[j > 0 ? j - 1 : 0]);
    }
    // The first of the largest; zero where nothing is allowed, as in envelope/four_lane.cu.
    u32 choice = kFromMatch;
    if (best < from_i) {
      best = from_i;
      choice = kFromInsert;
    }
    if (best < from_d) {
      best = from_d;
      choice = kFromDelete;
    }
    float v = larger(allowed(entry, B), best);
    if (best < chosen(entry, B)) choice = kFromBegin;
    const float match = multiply(pm[j], factor), insert = multiply(pi[j], factor);
    v = add(v, match);
    const float open = pick(out, kOpen), stay = pick(out, kStay);
    if (!(chosen(open, c.m[j]) >= chosen(stay, c.i[j]))) choice |= kInsertStays;
    c.i[j] = add(larger(allowed(open, c.m[j]), allowed(stay, c.i[j])), insert);
    c.m[j] = v;
    a.sum_m[j] = add(a.sum_m[j], match);
    a.sum_i[j] = add(a.sum_i[j], insert);
    words[j / 8] |= choice << 4 * (j % 8);
  }
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    const float opened = allowed(pick(t.out[32 * j], kSkip), c.m[j]);
    if (j == t.last) x.flow[t.place] = opened;
    if (j + 1 < kRun) {
      c.d[j + 1 < kRun ? j + 1 : 0] = opened;
    } else {
      c.d[0] = before<true>(opened, t.lane);
    }
  }
  if (t.lane == 0) c.d[0] = none();
}

/// The delete chain of the row: a running maximum, which a node without extension resets to zero.
HMMJIT_DEVICE void accuracy_chain(const Place& t, RunCells& c) {
  Exchange& x = *t.exchange;
  // Effect of a lane's stripes on its inflow: zero if it is reset, else the larger value.
  const auto chain = [&](float v, bool write, bool* passes) {
    HMMJIT_UNROLL
    for (int j = 0; j < kRun; ++j) {
      if (j < t.real) {
        const float extend = pick(t.out[32 * j], kExtend), value = larger(v, c.d[j]);
        if (write) c.d[j] = value;
        *passes = *passes && extend > 0.0f;
        v = allowed(extend, value);
      }
    }
    return v;
  };
  bool passes = true;
  float leaves = chain(none(), false, &passes);
  u32 through = passes ? 1u : 0u;
  for (u32 o = 1; o < 32; o *= 2) {
    const float other = before<true>(leaves, t.lane, o);
    const u32 other_through = shuffle_up(through, o);
    if (t.lane >= o && through != 0) {
      leaves = larger(other, leaves);
      through = other_through;
    }
  }
  if (t.lane == 31) {
    x.leaving[0][t.place] = leaves;
    x.changed[0][t.place] = through;
  }
  float enters = before<true>(leaves, t.lane);
  bool open = shuffle_up(through, 1) != 0;
  if (t.lane == 0) {
    enters = none();
    open = true;
  }
  sync_block();
  float of_place = none();
  for (u32 s = 0; s < t.place; ++s) {
    of_place = x.changed[0][s] != 0 ? larger(of_place, x.leaving[0][s]) : x.leaving[0][s];
    of_place = larger(of_place, x.flow[s]);
  }
  chain(open ? larger(of_place, enters) : enters, true, &passes);
}

/// Choices of the deletions, the best cell of the row, and its last cells for the next places.
HMMJIT_DEVICE End finish_row(const Place& t, const RunCells& c, u32 (&words)[kChoiceWords]) {
  Exchange& x = *t.exchange;
  float best_m = none(), best_d = none();
  u32 at_m = 0, at_d = 0;
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    const Quad out = t.out[32 * j];
    if (!(chosen(pick(out, kSkip), c.m[j]) >= chosen(pick(out, kExtend), c.d[j])))
      words[j / 8] |= kNextFromDelete << 4 * (j % 8);
    const u32 stripe = t.lane * kRun + j;
    if (j < t.real && c.m[j] >= best_m) {
      best_m = c.m[j];
      at_m = stripe;
    }
    if (j < t.real && c.d[j] > best_d) {
      best_d = c.d[j];
      at_d = stripe;
    }
    if (j == t.last) {
      x.match[t.place] = c.m[j];
      x.insert[t.place] = c.i[j];
      x.deletion[0][t.place] = c.d[j];
    }
  }
  best_of_warp<true>(&best_m, &at_m);
  best_of_warp<false>(&best_d, &at_d);
  if (t.lane == 0) {
    x.best_match[t.place] = best_m;
    x.match_at[t.place] = at_m;
    x.best_deletion[t.place] = best_d;
    x.deletion_at[t.place] = at_d;
  }
  sync_block();
  u32 m = 0, d = 0;
  for (u32 r = 1; r < 4; ++r) {
    if (x.best_match[r] > x.best_match[m] ||
        (x.best_match[r] == x.best_match[m] && x.match_at[r] >= x.match_at[m]))
      m = r;
    if (x.best_deletion[r] > x.best_deletion[d] ||
        (x.best_deletion[r] == x.best_deletion[d] && x.deletion_at[r] < x.deletion_at[d]))
      d = r;
  }
  const bool match = x.best_match[m] >= x.best_deletion[d];
  End end;
  end.value = match ? x.best_match[m] : x.best_deletion[d];
  end.node = match ? x.match_at[m] : x.deletion_at[d];
  end.node += (match ? m : d) * t.stripes + 1;
  end.state = match ? kPathMatch : kPathDelete;
  return end;
}

/// Optimal accuracy of all rows, and the sums of posteriors. Returns the end of the path.
HMMJIT_DEVICE PathEnd accuracy_pass(const Place& t, const LongEnvelope& e, float loop, Accuracies& a) {
  a.c.fill(none());
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) a.sum_m[j] = a.sum_i[j] = 0.0f;
  Exchange& x = *t.exchange;
  if (t.lane == 0) x.match[t.place] = x.insert[t.place] = x.deletion[0][t.place] = none();
  sync_block();
  PathEnd path;
  path.row = path.node = 0;
  path.state = kPathMatch;
  path.accuracy = none();
  float pm[kRun], pi[kRun], B = 0.0f;
  PosteriorRow coming = e.posteriors()[1];
  read_products(t, e.product_row(1), pm, pi);
  for (u32 i = 1; i <= e.L; ++i) {
    const PosteriorRow row = coming;
    u32 words[kChoiceWords];
    accuracy_cells(t, a, B, row.factor, pm, pi, words);
    if (i < e.L) {
      coming = e.posteriors()[i + 1];
      read_products(t, e.product_row(i + 1), pm, pi);
    }
    accuracy_chain(t, a.c);
    const End end = finish_row(t, a.c, words);
    u32* const choices = e.choice_row(i) + t.place * (32 * kChoiceWords) + t.lane;
    HMMJIT_UNROLL
    for (int w = 0; w < kChoiceWords; ++w) choices[32 * w] = words[w];
    const float stay = add(path.accuracy, row.c);
    if (!(chosen(loop, stay) > end.value)) {
      path.row = i;
      path.node = end.node;
      path.state = end.state;
    }
    const float c = loop == 0.0f ? 0.0f : stay;
    path.accuracy = c < end.value ? end.value : c;
    B = row.B;
  }
  sync_block();
  return path;
}

/// Null2 odds by expectation; `sums`: room for a row of products.
HMMJIT_DEVICE void expect_null2(const DomainParams& p, const Place& t, const Accuracies& a, u32 length,
                                float outside, float* sums, float* null2) {
  const float norm = static_cast<float>(1.0 / static_cast<double>(static_cast<float>(length)));
  float m[kRun], i[kRun];
  HMMJIT_UNROLL
  for (int j = 0; j < kRun; ++j) {
    m[j] = multiply(a.sum_m[j], norm);
    i[j] = multiply(a.sum_i[j], norm);
  }
  write_products(t, sums, m, i);
  sync_block();
  // One thread per residue and place.
  for (u32 first = 0; first < p.residue_codes; first += 32) {
    const u32 code = first + threadIdx.x / 4u, place = threadIdx.x % 4u;
    float sum = 0.0f;
    if (code < p.residue_codes) {
      const float* const emission = p.emissions + code * p.stripes * 4u + place;
      const float* const cells = sums + place * kPlaceCells;
      HMMJIT_UNROLL_BY(4)
      for (u32 q = 0; q < p.stripes; ++q) {
        const u32 at = q % kRun * 32u + q / kRun;
        sum = add(sum, multiply(cells[at], emission[q * 4]));
        sum = add(sum, cells[kRowCells + at]);
      }
    }
    const float pairs = add(sum, bits_float(shuffle_xor(float_bits(sum), 1)));
    const float all = add(pairs, bits_float(shuffle_xor(float_bits(pairs), 2)));
    if (code < p.residue_codes && place == 0) null2[code] = add(all, outside);
  }
  sync_block();
}

/// trace() of common/envelope_parts.cuh by a warp: 32 steps of a diagonal run at a time.
HMMJIT_DEVICE u32 trace_path(const LongEnvelope& e, u32 Q, const PathEnd& end, u8* path) {
  const u32 lane = threadIdx.x % 32u;
  u32 i = end.row, k = end.node, state = end.state, steps = 0;
  const auto choice_of = [&](u32 row, u32 node) {
    const u32 place = (node - 1) / Q, q = (node - 1) % Q, j = q % kRun;
    const u32 word = e.choice_row(row)[(place * kChoiceWords + j / 8) * 32u + q / kRun];
    return word >> 4 * (j % 8) & 15u;
  };
  const auto code_of = [&](u32 row, u32 node, u32 kind) {
    const u32 place = (node - 1) / Q, q = (node - 1) % Q;
    const float product =
        e.product_row(row)[kind * kRowCells + place * kPlaceCells + q % kRun * 32u + q / kRun];
    return posterior_code(multiply(product, e.posteriors()[row].factor)) << 2;
  };
  for (;;) {
    if (state == kPathMatch) {
      const bool there = lane < i && lane < k;
      const u32 from = there ? choice_of(i - lane, k - lane) & 3u : 0u;
      const u32 stops = warp_ballot(!there || from != kFromMatch);
      const u32 last = stops == 0 ? 31u : lowest_bit(stops);
      if (there && lane <= last)
        path[steps + lane] = static_cast<u8>(kPathMatch | code_of(i - lane, k - lane, 0));
      if (stops == 0) {
        steps += 32;
        i -= 32;
        k -= 32;
        if (i == 0 || k == 0) return kNoPath;
        continue;
      }
      i -= last;
      k -= last;
      if (i == 0 || k == 0) return kNoPath;
      const u32 taken = shuffle(from, last);
      steps += last + 1;
      --i;
      --k;
      if (taken == kFromBegin)
        return i == 0 || e.posteriors()[i].from_n ? steps : static_cast<u32>(kForHost);
      if (i == 0 || k == 0) return kNoPath;
      state = taken == kFromInsert ? kPathInsert : kPathDelete;
    } else if (state == kPathDelete) {
      if (lane == 0) path[steps] = static_cast<u8>(kPathDelete);
      ++steps;
      if (--k == 0) return kNoPath;
      state = choice_of(i, k) & kNextFromDelete ? kPathDelete : kPathMatch;
    } else {
      if (lane == 0) path[steps] = static_cast<u8>(kPathInsert | code_of(i, k, 1));
      ++steps;
      state = choice_of(i, k) & kInsertStays ? kPathInsert : kPathMatch;
      if (--i == 0) return kNoPath;
    }
  }
}

/// Writes the answer; called by one warp.
HMMJIT_DEVICE void answer(const DomainParams& p, const LongEnvelope& e, u32 entry, bool sound,
                          const PathEnd& end) {
  const u32 lane = threadIdx.x % 32u;
  ScoredEnvelope* const out = p.scored + entry;
  const auto room_for = [&](u32 count, u32* at) {
    u32 first = 0;
    bool room = true;
    if (lane == 0) room = take_words(p, count, &first);
    *at = shuffle(first, 0);
    return shuffle(room ? 1u : 0u, 0) != 0;
  };
  u32 words = 0, path_words = 0, steps = 0, scales = 0;
  // Read here: values kept through all passes take registers.
  const float last_c = e.forward[e.L].C;
  const auto scale_of = [&](u32 i) { return i <= e.L ? e.forward[i].scale : 1.0f; };
  for (u32 i = 1; i <= e.L; i += 32) scales += count_bits(warp_ballot(scale_of(i + lane) > 1.0f));
  if (lane == 0) out->status = kNoRoom;
  if (!room_for(scales, &words)) return;
  for (u32 i = 1, written = 0; i <= e.L; i += 32) {
    const float scale = scale_of(i + lane);
    const u32 scaled = warp_ballot(scale > 1.0f);
    if (scale > 1.0f) p.words[words + written + count_bits(scaled & ((1u << lane) - 1u))] = float_bits(scale);
    written += count_bits(scaled);
  }
  sync_warp();
  if (sound && end.row > 0 && end.node <= p.model_length) {
    // At most one step per residue and node, so the path fits into row 0 of the products.
    u8* const path = e.L + p.model_length <= (e.L + 1) * static_cast<u32>(sizeof(SpecialRow))
                         ? reinterpret_cast<u8*>(e.forward)
                         : reinterpret_cast<u8*>(e.product);
    steps = trace_path(e, p.stripes, end, path);
    if (steps == kForHost) {
      if (lane == 0) out->status = kNotForDevice;
      return;
    }
    if (!room_for((steps + 3) / 4, &path_words)) return;
    sync_warp();
    u8* const to = reinterpret_cast<u8*>(p.words + path_words);
    for (u32 k = lane; k < steps; k += 32) to[k] = path[k];
  }
  if (lane != 0) return;
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

/// Scores an envelope.
HMMJIT_DEVICE void score(const DomainParams& p, const Place& t, const Residues& residues,
                         const RegionItem& item, u32 entry, const Space& space) {
  const LongEnvelope e =
      make_long_envelope(p.workspace + static_cast<u64>(space.first) * kWorkspaceUnit, residues.length);
  const FloatLength lengths = p.unihit[p.database.length_class[item.target]];
  forward_pass(t, residues, lengths, unihit(), e.forward, [&](u32 i, const RunCells& c, float) {
    write_products(t, e.product_row(i), c.m, c.i);
  });
  bool own_scale;
  {
    float pm[kRun], pi[kRun];
    own_scale = backward_pass(
        t, residues, lengths, unihit(), e.forward, e.backward,
        [&](u32 i) { read_products(t, e.product_row(i), pm, pi); },
        [&](u32 i, const RunCells& c) {
          HMMJIT_UNROLL
          for (int j = 0; j < kRun; ++j) {
            pm[j] = multiply(pm[j], c.m[j]);
            pi[j] = multiply(pi[j], c.i[j]);
          }
          write_products(t, e.product_row(i), pm, pi);
        });
  }
  if (threadIdx.x == 0) {
    float outside = 0.0f;
    t.exchange->changed[1][0] = set_posteriors(e, lengths.loop, lengths.move, own_scale, &outside) ? 1 : 0;
    t.exchange->sum[0] = outside;
  }
  sync_block();
  const bool sound = t.exchange->changed[1][0] != 0;
  const float outside = t.exchange->sum[0];
  PathEnd end;
  {
    Accuracies a;
    end = accuracy_pass(t, e, lengths.loop, a);
    if (item.clustered == 0)
      expect_null2(p, t, a, residues.length, outside, e.product, p.scored[entry].null2);
  }
  if (t.place == 0) answer(p, e, entry, sound, end);
}

}  // namespace
}  // namespace hmmjit_device

extern "C" __global__ void __launch_bounds__(128, plan_constants::kBlocks)
    envelope_four_warp(const hmmjit_device::DomainBatch batch) {
  using namespace hmmjit_device;
  HMMJIT_DYNAMIC_SHARED(shared);
  const BlockShare share = block_share(batch);
  const DomainParams& p = *share.model;
  if (share.block >= p.most_envelopes) return;  // no workspace is left for it
  Place t = make_place(p, shared);
  if (p.first_rows != nullptr) t.bounds = p.bounds;  // of more rows than the block keeps
  const TimeLimit time(p, &p.arena->envelopes_begun);
  BlockItems items(t, p.envelope_count, &p.counters->next_envelope, &p.arena->envelope_units);
  Space space;
  for (;;) {
    const u32 next = items.take(time.over());
    if (next >= p.envelope_count) break;
    const u32 entry = p.envelope_order[next];
    const RegionItem item = p.envelopes[entry];
    Residues residues;
    residues.length = item.last - item.first + 1;
    residues.first = p.database.residues +
                     static_cast<u64>(p.database.start[item.target]) * kStartUnit + (item.first - 1);
    if (p.first_rows != nullptr) residues.first_row = p.first_rows[entry];
    const u32 units = long_envelope_units(residues.length, kRun);
    if (!fits(p, units)) continue;
    if (!items.reserve(p, units, &space)) {
      if (space.units == 0) break;  // other warps have the workspace
      continue;
    }
    score(p, t, residues, item, entry, space);
  }
}
