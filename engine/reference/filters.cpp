#include "reference/filters.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace hmmjit::reference {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr int kWordMaximum = 32767;

int saturate_byte(int v) { return std::clamp(v, 0, 255); }
int add_words(int a, int b) { return std::clamp(a + b, ViterbiRow::kMinimum, kWordMaximum); }

// Converts a byte score to nats; 3 nats account for the N, C and J loops over the whole target.
float byte_nats(const ByteProfile& profile, int score) {
  return (static_cast<float>(score) - static_cast<float>(profile.base)) / profile.scale - 3.0f;
}

// Four float lanes: the order in which the reference sums over the nodes.
using Lanes = std::array<float, 4>;

Lanes operator+(const Lanes& a, const Lanes& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]};
}
Lanes operator*(const Lanes& a, const Lanes& b) {
  return {a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3]};
}
Lanes broadcast(float v) { return {v, v, v, v}; }
Lanes shift_up(const Lanes& a) { return {0.0f, a[0], a[1], a[2]}; }
Lanes shift_down(const Lanes& a) { return {a[1], a[2], a[3], 0.0f}; }
float sum(const Lanes& a) { return (a[0] + a[1]) + (a[2] + a[3]); }
bool any_greater(const Lanes& a, const Lanes& b) {
  return a[0] > b[0] || a[1] > b[1] || a[2] > b[2] || a[3] > b[3];
}

// Odds in stripes: vector q holds nodes q+1, Q+q+1, 2Q+q+1, 3Q+q+1; zero beyond M.
struct Stripes {
  explicit Stripes(const OddsProfile& profile)
      : M(profile.M),
        Q(std::max(2, (profile.M - 1) / 4 + 1)),
        entry(stripe(profile.entry.data())),
        mm(stripe(profile.mm_in.data())),
        im(stripe(profile.im_in.data())),
        dm(stripe(profile.dm_in.data())),
        md(stripe(profile.md_out.data())),
        mi(stripe(profile.mi_out.data())),
        ii(stripe(profile.ii_out.data())),
        dd(stripe(profile.dd_out.data())),
        match(static_cast<std::size_t>(profile.Kp)) {
    for (int x = 0; x < profile.Kp; ++x) {
      match[x] = stripe(profile.match.data() + static_cast<std::size_t>(x) * M);
    }
  }

  std::vector<Lanes> stripe(const float* natural) const {
    std::vector<Lanes> out(static_cast<std::size_t>(Q), broadcast(0.0f));
    for (int k = 0; k < M; ++k) out[k % Q][k / Q] = natural[k];
    return out;
  }

  int M, Q;
  std::vector<Lanes> entry, mm, im, dm;  // into the node
  std::vector<Lanes> md, mi, ii, dd;     // out of the node
  std::vector<std::vector<Lanes>> match;
};

ForwardResult run_forward(const Stripes& odds, std::span<const Residue> residues,
                          const LengthModel& length) {
  const int Q = odds.Q;
  const auto size = static_cast<std::size_t>(Q);
  std::vector<Lanes> m(size, broadcast(0)), i(m), d(m), m_next(m), i_next(m), d_next(m);
  float N = 1, B = length.move, J = 0, C = 0, total = 0;
  ForwardResult result;
  result.scale.reserve(residues.size() + 1);
  result.scale.push_back(1.0f);

  for (const Residue x : residues) {
    const std::vector<Lanes>& match = odds.match[x];
    Lanes total_lanes = broadcast(0);
    Lanes mp = shift_up(m[Q - 1]), ip = shift_up(i[Q - 1]), dp = shift_up(d[Q - 1]);
    Lanes pending = broadcast(0);  // M->D of the previous vector
    for (int q = 0; q < Q; ++q) {
      Lanes cell = broadcast(B) * odds.entry[q];
      cell = cell + mp * odds.mm[q];
      cell = cell + ip * odds.im[q];
      cell = cell + dp * odds.dm[q];
      cell = cell * match[q];
      total_lanes = total_lanes + cell;
      mp = m[q], ip = i[q], dp = d[q];
      m_next[q] = cell;
      d_next[q] = pending;
      pending = cell * odds.md[q];
      i_next[q] = mp * odds.mi[q] + ip * odds.ii[q];
    }
    // D->D within stripes, then up to three times around the lanes.
    Lanes carry = shift_up(pending);
    for (int q = 0; q < Q; ++q) {
      d_next[q] = carry + d_next[q];
      carry = d_next[q] * odds.dd[q];
    }
    for (int pass = 1; pass < 4; ++pass) {
      carry = shift_up(carry);
      bool grew = false;
      for (int q = 0; q < Q; ++q) {
        const Lanes sum_d = carry + d_next[q];
        grew = grew || any_greater(sum_d, d_next[q]);
        d_next[q] = sum_d;
        carry = carry * odds.dd[q];
      }
      if (odds.M >= 100 && !grew) break;
    }
    for (int q = 0; q < Q; ++q) total_lanes = d_next[q] + total_lanes;
    float E = sum(total_lanes);
    N = N * length.loop;
    C = C * length.loop + E * length.ec;
    J = J * length.loop + E * length.ej;
    B = J * length.move + N * length.move;
    float scale = 1.0f;
    if (E > 1.0e4f) {
      N = N / E, C = C / E, J = J / E, B = B / E;
      const Lanes reciprocal = broadcast(1.0f / E);
      for (int q = 0; q < Q; ++q) {
        m_next[q] = m_next[q] * reciprocal;
        d_next[q] = d_next[q] * reciprocal;
        i_next[q] = i_next[q] * reciprocal;
      }
      scale = E;
      total = static_cast<float>(static_cast<double>(total) + std::log(static_cast<double>(E)));
    }
    result.scale.push_back(scale);
    m.swap(m_next), i.swap(i_next), d.swap(d_next);
  }
  result.total = total;
  result.nats = static_cast<float>(static_cast<double>(total) +
                                   std::log(static_cast<double>(C * length.move)));
  return result;
}

}  // namespace

bool ssv_usable(const ByteProfile& profile, int L) {
  return profile.tjb(L) + profile.tbm + profile.tec + profile.bias < 127;
}

SsvResult ssv_decide(const ByteProfile& profile, int best_unsigned, int L) {
  const int overflow = 255 - profile.bias;
  const int tjb = profile.tjb(L);
  const int begin = profile.base - tjb - profile.tbm;
  const int u = std::min(best_unsigned, 255);
  if (u >= overflow) {
    if (begin < 128) return {SsvStatus::kNoResult, 0};
    return {SsvStatus::kOverflow, kInfinity};
  }
  const int v = u + begin - 128;
  if (v >= overflow) return {SsvStatus::kOverflow, kInfinity};
  const int w = v - profile.tec;
  // A second segment might raise the score, which only the recurrence with J can decide.
  if (w > profile.base) return {SsvStatus::kNoResult, 0};
  return {SsvStatus::kScore, byte_nats(profile, w - tjb)};
}

SsvResult ssv_filter(const ByteProfile& profile, std::span<const Residue> residues) {
  const int L = static_cast<int>(residues.size());
  if (!ssv_usable(profile, L)) return {SsvStatus::kNoResult, 0};
  const int M = profile.M;
  const int bias = profile.bias;
  // Cell k of the previous row is at index k; index 0 lies outside the model.
  std::vector<std::int16_t> row(static_cast<std::size_t>(M) + 1, -128), next(row);
  int best = -128;
  for (const Residue x : residues) {
    const std::uint8_t* cost = profile.cost.data() + static_cast<std::size_t>(x) * M;
    std::int16_t row_best = -128;
    for (int k = 1; k <= M; ++k) {
      const int score = row[k - 1] - std::min(127, cost[k - 1] - bias);
      next[k] = static_cast<std::int16_t>(std::max(-128, score));
      row_best = std::max(row_best, next[k]);
    }
    best = std::max<int>(best, row_best);
    // Above this limit, further rows do not change the result.
    if (best + 256 >= 255 - bias) break;
    row.swap(next);
  }
  return ssv_decide(profile, best + 256, L);
}

float msv_nats(const ByteProfile& profile, int J, int L) {
  return byte_nats(profile, J - profile.tjb(L));
}

float msv_recurrence(const ByteProfile& profile, std::span<const Residue> residues) {
  const int M = profile.M;
  const int L = static_cast<int>(residues.size());
  const int bias = profile.bias;
  const int move = static_cast<std::uint8_t>(profile.tjb(L) + profile.tbm);
  int J = 0;
  int B = saturate_byte(profile.base - move);
  std::vector<std::uint8_t> row(static_cast<std::size_t>(M) + 1, 0), next(row);
  for (const Residue x : residues) {
    const std::uint8_t* cost = profile.cost.data() + static_cast<std::size_t>(x) * M;
    int E = 0;
    for (int k = 1; k <= M; ++k) {
      const int best = std::max<int>(row[k - 1], B);
      const int score = std::max(std::min(best + bias, 255) - cost[k - 1], 0);
      next[k] = static_cast<std::uint8_t>(score);
      E = std::max(E, score);
    }
    if (E + bias >= 255) return kInfinity;
    J = std::max(J, saturate_byte(E - profile.tec));
    B = saturate_byte(std::max(profile.base, J) - move);
    row.swap(next);
  }
  return msv_nats(profile, J, L);
}

float msv_filter(const ByteProfile& profile, std::span<const Residue> residues) {
  const SsvResult ssv = ssv_filter(profile, residues);
  return ssv.status == SsvStatus::kNoResult ? msv_recurrence(profile, residues) : ssv.nats;
}

float viterbi_nats(const WordProfile& profile, int C, int L) {
  if (C <= ViterbiRow::kMinimum) return -kInfinity;
  const float score = static_cast<float>(C) + static_cast<float>(profile.move(L));
  return (score - static_cast<float>(profile.base)) / profile.scale - 3.0f;
}

int ViterbiRow::advance(const WordProfile& profile, Residue x, int B) {
  const std::int16_t* match = profile.match.data() + static_cast<std::size_t>(x) * profile.M;
  int E = kMinimum;
  // Downwards, so that the previous row's cells are read before they are overwritten.
  for (int k = profile.M; k >= 1; --k) {
    i[k] = std::max(add_words(m[k], profile.mi_out[k - 1]), add_words(i[k], profile.ii_out[k - 1]));
    int best = add_words(B, profile.entry[k - 1]);
    best = std::max(best, add_words(m[k - 1], profile.mm_in[k - 1]));
    best = std::max(best, add_words(i[k - 1], profile.im_in[k - 1]));
    best = std::max(best, add_words(d[k - 1], profile.dm_in[k - 1]));
    m[k] = add_words(best, match[k - 1]);
    E = std::max(E, m[k]);
  }
  for (int k = 2; k <= profile.M; ++k)
    d[k] = std::max(add_words(m[k - 1], profile.md_out[k - 2]),
                    add_words(d[k - 1], profile.dd_out[k - 2]));
  return E;
}

float viterbi_filter(const WordProfile& profile, std::span<const Residue> residues) {
  const int L = static_cast<int>(residues.size());
  const int move = profile.move(L);
  int B = profile.base + move, J = ViterbiRow::kMinimum, C = ViterbiRow::kMinimum;
  ViterbiRow row(profile.M);
  for (const Residue x : residues) {
    const int E = row.advance(profile, x, B);
    if (E >= kWordMaximum) return kInfinity;
    C = std::max(C, E + profile.ec);
    J = std::max(J, E + profile.ej);
    B = std::max(J, profile.base) + move;
  }
  return viterbi_nats(profile, C, L);
}

float bias_filter(const BiasModel& model, std::span<const Residue> residues) {
  const int L = static_cast<int>(residues.size());
  const float p1 = null_p1(L);
  const float t00 = p1, t01 = 1.0f - p1;
  // The start probabilities act as a step from a fictitious state.
  float a0 = 0, a1 = 0, score = 0;
  bool first = true;
  for (const Residue x : residues) {
    const float n0 = (first ? 0.999f : a0 * t00 + a1 * model.t10) * model.odds[0][x];
    const float n1 = (first ? 0.001f : a0 * t01 + a1 * model.t11) * model.odds[1][x];
    const float best = std::max({0.0f, n0, n1});
    a0 = n0 / best;
    a1 = n1 / best;
    const float log_best = static_cast<float>(std::log(static_cast<double>(best)));
    score = first ? log_best : score + log_best;
    first = false;
  }
  score += static_cast<float>(std::log(static_cast<double>(a0 + a1)));
  return (score + static_cast<float>(L) * std::log(p1)) + std::log(1.0f - p1);
}

ForwardResult forward(const OddsProfile& profile, std::span<const Residue> residues,
                      const LengthModel& length) {
  return run_forward(Stripes(profile), residues, length);
}

float forward_score(const OddsProfile& profile, std::span<const Residue> residues) {
  return forward(profile, residues, length_model(static_cast<int>(residues.size()), true)).nats;
}

BackwardResult backward(const OddsProfile& profile, std::span<const Residue> residues,
                        const LengthModel& length, std::span<const float> forward_scale) {
  const Stripes odds(profile);
  const int Q = odds.Q;
  const int L = static_cast<int>(residues.size());
  const auto size = static_cast<std::size_t>(Q);
  std::vector<Lanes> m(size), d(size), i(size, broadcast(0));
  BackwardResult result;
  result.scale.assign(residues.size() + 1, 1.0f);

  float J = 0, B = 0, N = 0, C = length.move, E = C * length.ec, total = 0;
  const auto rescale = [&](float scale) {
    if (!(scale > 1.0f)) return;
    E /= scale, N /= scale, C /= scale, J /= scale, B /= scale;
    const Lanes reciprocal = broadcast(1.0f / scale);
    for (int q = 0; q < Q; ++q) {
      m[q] = m[q] * reciprocal;
      d[q] = d[q] * reciprocal;
      i[q] = i[q] * reciprocal;
    }
    total = static_cast<float>(static_cast<double>(total) + std::log(static_cast<double>(scale)));
  };
  // D->D once down the stripes and then always three more times around; then M->D.
  const auto extend_deletes = [&](bool add_end) {
    const Lanes end = broadcast(E);
    Lanes v = add_end ? shift_down(d[0] + end) : shift_down(d[0]);
    Lanes carry = broadcast(0);
    for (int q = Q - 1; q >= 0; --q) {
      carry = v * odds.dd[q];
      d[q] = add_end ? d[q] + (carry + end) : d[q] + carry;
      v = d[q];
      if (add_end) m[q] = m[q] + end;
    }
    for (int pass = 0; pass < 3; ++pass) {
      carry = shift_down(carry);
      for (int q = Q - 1; q >= 0; --q) {
        carry = carry * odds.dd[q];
        d[q] = d[q] + carry;
      }
    }
    carry = shift_down(d[0]);
    for (int q = Q - 1; q >= 0; --q) {
      m[q] = m[q] + carry * odds.md[q];
      carry = d[q];
    }
  };

  for (int q = 0; q < Q; ++q) m[q] = d[q] = broadcast(E);
  extend_deletes(false);
  result.scale[L] = forward_scale[L];
  rescale(forward_scale[L]);

  for (int row = L - 1; row >= 1; --row) {
    const std::vector<Lanes>& match = odds.match[residues[row]];  // x_{row+1}
    Lanes mp = shift_down(m[0] * match[0]);
    Lanes tmm = shift_down(odds.mm[0]), tim = shift_down(odds.im[0]), tdm = shift_down(odds.dm[0]);
    Lanes begin = broadcast(0);
    for (int q = Q - 1; q >= 0; --q) {
      const Lanes ip = i[q];
      i[q] = ip * odds.ii[q] + mp * tim;
      d[q] = mp * tdm;
      const Lanes cell = ip * odds.mi[q] + mp * tmm;
      mp = m[q] * match[q];
      m[q] = cell;
      tdm = odds.dm[q], tim = odds.im[q], tmm = odds.mm[q];
      begin = begin + mp * odds.entry[q];
    }
    B = sum(begin);
    C = C * length.loop;
    J = B * length.move + J * length.loop;
    N = B * length.move + N * length.loop;
    E = C * length.ec + J * length.ej;
    extend_deletes(true);
    // So far above Forward's range, its factors would let the row overflow.
    if (B > 1.0e16f) result.own_scale = true;
    result.scale[row] = result.own_scale ? (B > 1.0e4f ? B : 1.0f) : forward_scale[row];
    rescale(result.scale[row]);
  }

  if (L > 0) {
    const std::vector<Lanes>& match = odds.match[residues[0]];
    Lanes begin = broadcast(0);
    for (int q = 0; q < Q; ++q) begin = begin + (m[q] * match[q]) * odds.entry[q];
    B = sum(begin);
  }
  N = B * length.move + N * length.loop;
  result.total = total;
  result.nats = static_cast<float>(static_cast<double>(total) + std::log(static_cast<double>(N)));
  return result;
}

}  // namespace hmmjit::reference
