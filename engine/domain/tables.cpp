#include "domain/tables.hpp"

#include <algorithm>
#include <tuple>

namespace hmmjit::domain {
namespace {

// Value of a 1-based node array (stored from k-1), zero outside the model.
float at_node(const std::vector<float>& values, int k, int M) {
  return k >= 1 && k <= M ? values[k - 1] : 0.0f;
}

}  // namespace

ForwardTables::ForwardTables(const SearchModel& model)
    : model_(&model), tables_(make_hidden<Tables>()) {
  const OddsProfile& odds = model.odds;
  Tables* const t = tables_.get();
  const int M = odds.M;
  const int Q = float_stripes(M);
  t->M = M;
  t->Q = Q;
  t->Kp = odds.Kp;
  t->alphabet = model.hmm.alphabet;
  t->K = t->alphabet->K;
  const auto stripes = static_cast<std::size_t>(Q);
  t->forward.zero(stripes);
  t->backward.zero(stripes);
  t->mask.zero(stripes);
  t->emission.zero(kCodeRows, Q);

  for (int q = 0; q < Q; ++q) {
    ForwardStripe& f = t->forward[q];
    BackwardStripe& b = t->backward[q];
    MaskStripe& m = t->mask[q];
    for (int r = 0; r < kLanes; ++r) {
      const int k = r * Q + q + 1;
      f.bm[r] = b.bm[r] = at_node(odds.entry, k, M);
      f.mm_in[r] = at_node(odds.mm_in, k, M);
      f.im_in[r] = at_node(odds.im_in, k, M);
      f.dm_in[r] = at_node(odds.dm_in, k, M);
      b.mm[r] = at_node(odds.mm_in, k + 1, M);
      b.im[r] = at_node(odds.im_in, k + 1, M);
      b.dm[r] = at_node(odds.dm_in, k + 1, M);
      f.mi[r] = b.mi[r] = at_node(odds.mi_out, k, M);
      f.ii[r] = b.ii[r] = at_node(odds.ii_out, k, M);
      f.md[r] = b.md[r] = at_node(odds.md_out, k, M);
      f.dd[r] = b.dd[r] = at_node(odds.dd_out, k, M);
      const auto exists = [](float value) { return value > 0 ? ~0u : 0u; };
      m.bm[r] = exists(f.bm[r]);
      m.mm_in[r] = exists(f.mm_in[r]);
      m.im_in[r] = exists(f.im_in[r]);
      m.dm_in[r] = exists(f.dm_in[r]);
      m.mi[r] = exists(f.mi[r]);
      m.ii[r] = exists(f.ii[r]);
      m.md[r] = exists(f.md[r]);
      m.dd[r] = exists(f.dd[r]);
      m.node[r] = k <= M ? ~0u : 0u;
      if (k <= M) {
        const bool in = k == 1 || (m.mm_in[r] & m.im_in[r] & m.dm_in[r]) != 0;
        const bool out = k == M || (m.mi[r] & m.ii[r] & m.md[r] & m.dd[r]) != 0;
        t->plain = t->plain && m.bm[r] != 0 && in && out;
        for (int x = 0; x < odds.Kp; ++x) {
          t->emission.odds[(static_cast<std::size_t>(x) * stripes + q) * kLanes + r] =
              odds.match[static_cast<std::size_t>(x) * static_cast<std::size_t>(M) + k - 1];
        }
      }
    }
  }

  t->nodes.zero(static_cast<std::size_t>(M) + 1);
  t->node_match.zero((static_cast<std::size_t>(M) + 1) * std::size_t{kMaxBases});
  for (int k = 1; k <= M; ++k) {
    t->nodes[k] = {at_node(odds.entry, k, M),      at_node(odds.mm_in, k, M),
                   at_node(odds.im_in, k, M),      at_node(odds.dm_in, k, M),
                   at_node(odds.md_out, k - 1, M), at_node(odds.dd_out, k - 1, M),
                   at_node(odds.mi_out, k, M),     at_node(odds.ii_out, k, M)};
    for (int x = 0; x < t->K; ++x) {
      t->node_match[static_cast<std::size_t>(k * kMaxBases + x)] =
          odds.match[static_cast<std::size_t>(x) * static_cast<std::size_t>(M) + k - 1];
    }
  }
  const DeletionBounds bounds = deletion_bounds(odds);
  static_assert(std::tuple_size_v<decltype(bounds.forward)> == kCodeRows);
  std::ranges::copy(bounds.forward, t->emission.deletion_bound.data());
  t->backward_bound = bounds.backward;
}

}  // namespace hmmjit::domain
