// Derives the local multihit search profile and its quantised forms from a core model.
//
// Hmm -> Profile (log odds, floats) -> ByteProfile (SSV/MSV), WordProfile (Viterbi),
//                                      OddsProfile (Forward and everything after it).
// All have natural node order and one emission row per residue code; engine/layout derives vector
// and GPU layouts. Arithmetic: Eddy 2011 (accelerated profile HMM searches), with hmmsearch's
// rounding, bit for bit.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/alphabet.hpp"
#include "model/hmm.hpp"

namespace hmmjit {

/// Local profile in nats. Score arrays are indexed [code * (M + 1) + k], k = 1..M (index 0 = -inf).
struct Profile {
  int M = 0;
  const Alphabet* alphabet = nullptr;
  std::vector<float> match;  ///< [Kp x (M+1)] log odds; -inf for gap, '*', '~'
  /// [kTransitions][M+1]: log transition probabilities out of node k, k = 1..M-1; -inf elsewhere.
  std::array<std::vector<float>, kTransitions> transition;
  std::vector<float> entry;  ///< [M+1] log B->M_k

  float match_score(int code, int k) const {
    return match[static_cast<std::size_t>(code) * (M + 1) + k];
  }
};

/// Unsigned byte costs of the SSV and MSV filters: third-bit units, offset base, bias.
struct ByteProfile {
  int M = 0;
  int Kp = 0;
  float scale = 0;  ///< 3/ln 2, as float
  int base = 190;
  std::uint8_t bias = 0;
  std::uint8_t tbm = 0;            ///< cost of B->M_k, equal for all k
  std::uint8_t tec = 0;            ///< cost of E->C
  std::vector<std::uint8_t> cost;  ///< [Kp x M], biased cost of code x at node k: cost[x*M + k-1]

  /// Cost of the J/N/C->B move for a target of length L.
  std::uint8_t tjb(int L) const;
  /// The signed SSV byte for one biased cost: clamped to [-bias, 127] (SSV of HMMER 3.1).
  int signed_cost(std::uint8_t biased) const;
};

ByteProfile make_byte_profile(const Profile& profile);

/// Scores for the recurrence at node k (index k-1).
template <typename Score>
struct NodeScores {
  int M = 0;
  int Kp = 0;
  std::vector<Score> match;  ///< [Kp x M]: match[x*M + k-1]
  std::vector<Score> entry;  ///< [M] B->M_k
  /// Transitions: *_in come from node k-1 (impossible for k = 1), *_out leave node k (impossible
  /// for k = M).
  std::vector<Score> mm_in, im_in, dm_in;
  std::vector<Score> md_out, mi_out, ii_out, dd_out;
};

/// Signed 16-bit scores of the Viterbi filter (units of ln 2 / 500 nats); impossible: -32768.
struct WordProfile : NodeScores<std::int16_t> {
  float scale = 0;  ///< 500/ln 2, as float
  int base = 12000;
  std::int16_t ec = 0, ej = 0;  ///< E->C, E->J (multihit -500)

  /// The word for the N/C/J->B/T move at length L (multihit).
  std::int16_t move(int L) const;
};

WordProfile make_word_profile(const Profile& profile);

/// Odds ratios (floats, by HMMER's exponential polynomial); impossible: 0.
using OddsProfile = NodeScores<float>;

OddsProfile make_odds_profile(const Profile& profile);

/// Bounds below which the delete flow from one of the four lanes into the next changes no cell: an
/// addend below half a unit in the last place of a cell leaves the cell unchanged, and all later
/// addends of the chain are smaller. Negative: the model has no such bound.
struct DeletionBounds {
  std::array<float, 32> forward{};  ///< by residue code, times B(i-1)
  float backward = -1;              ///< times E(i)
};
DeletionBounds deletion_bounds(const OddsProfile& odds);
/// The bound for one code, from the smallest product of entry, match and match-delete odds over all
/// nodes but the last.
float deletion_bound(double smallest);
/// Converts scores to odds with HMMER's polynomial.
void exponentiate(std::span<const float> scores, float* odds);
/// Number of stripes Q of M nodes in the four lanes of the float stages (Farrar 2007).
int float_stripes(int M);

/// Length-dependent special transitions of the float stages for a target of length L (Eddy 2008).
struct LengthModel {
  float loop = 0, move = 0;  ///< N, C, J
  float ec = 0, ej = 0;      ///< E->C, E->J odds: 0.5, 0.5 multihit; 1, 0 unihit
};
LengthModel length_model(int L, bool multihit);

/// Forward's score in nats from the sum of the logarithms of its scale factors and C(L); NaN on
/// underflow or overflow, where HMMER's Forward fails.
float forward_nats(float log_scale, float last_c, float move);
/// Adds the logarithm of a scale factor, as Forward does row by row.
float add_log(float log_scale, float factor);

/// Null model score of a target of length L in nats (length part only).
float null_score(int L);
/// p1 = L / (L+1), float.
float null_p1(int L);

/// Parameters of one model's two-state composition bias filter (Eddy 2011).
struct BiasModel {
  std::array<std::array<float, kMaxCodes>, 2> odds{};  ///< emission odds of both states, by code
  float t10 = 0, t11 = 0;
};
BiasModel make_bias_model(const Hmm& hmm);

/// All forms of a model that a search uses. Immutable once complete; threads may share it.
struct SearchModel {
  Hmm hmm;
  Profile profile;
  ByteProfile bytes;
  WordProfile words;
  OddsProfile odds;
  BiasModel bias;
};
/// Builds all forms. Cost: about 60 us per 100 nodes.
std::shared_ptr<SearchModel> make_search_model(Hmm hmm);
/// Builds the forms for SSV, MSV and bias: `bytes`, `bias` and the match scores of `profile`. Takes
/// half the time.
std::shared_ptr<SearchModel> begin_search_model(Hmm hmm);
/// Builds the forms that are missing. Other threads may meanwhile read `hmm`, `bytes` and `bias`.
void complete(SearchModel& model);

}  // namespace hmmjit
