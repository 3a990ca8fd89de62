#include "tests/support/reference_forward.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace hmmjit::reference {
namespace {

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

}  // namespace

float forward_score(const OddsProfile& profile, std::span<const Residue> residues) {
  const LengthModel length = length_model(static_cast<int>(residues.size()), true);
  const Stripes odds(profile);
  const int Q = odds.Q;
  const auto size = static_cast<std::size_t>(Q);
  std::vector<Lanes> m(size, broadcast(0)), i(m), d(m), m_next(m), i_next(m), d_next(m);
  float N = 1, B = length.move, J = 0, C = 0, total = 0;
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
    if (E > 1.0e4f) {
      N = N / E, C = C / E, J = J / E, B = B / E;
      const Lanes reciprocal = broadcast(1.0f / E);
      for (int q = 0; q < Q; ++q) {
        m_next[q] = m_next[q] * reciprocal;
        d_next[q] = d_next[q] * reciprocal;
        i_next[q] = i_next[q] * reciprocal;
      }
      total = static_cast<float>(static_cast<double>(total) + std::log(static_cast<double>(E)));
    }
    m.swap(m_next), i.swap(i_next), d.swap(d_next);
  }
  return static_cast<float>(static_cast<double>(total) +
                            std::log(static_cast<double>(C * length.move)));
}

}  // namespace hmmjit::reference
