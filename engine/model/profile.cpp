#include "model/profile.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/threads.hpp"

namespace hmmjit {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr int kWordMinimum = -32768;
constexpr int kWordMaximum = 32767;

// As in HMMER (C): computed in double, rounded to float once.
float log_of(float p) { return static_cast<float>(std::log(static_cast<double>(p))); }

// scale * score, rounded half away from zero. No calls: compilers vectorise loops over rows.
// Callers saturate beyond the limit. Infinite and NaN scores come only from files with impossible
// probabilities; they behave as in HMMER's x86 conversions.
int rounded(float scale, float score) {
  constexpr float kLimit = 1048576.0f;
  float v = scale * score;
  v = v < kLimit ? v : kLimit;
  v = v > -kLimit ? v : -kLimit;
  const int whole = static_cast<int>(v);
  const float rest = v - static_cast<float>(whole);
  return whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0);
}

std::uint8_t byte_cost(float scale, float score) {
  const int cost = -rounded(scale, score);
  return static_cast<std::uint8_t>(cost > 255 ? 255 : cost);
}

std::uint8_t biased_byte_cost(float scale, int bias, float score) {
  const int cost = -rounded(scale, score);
  return static_cast<std::uint8_t>(cost > 255 - bias ? 255 : cost + bias);
}

std::int16_t word_score(float scale, float score) {
  const int word = rounded(scale, score);
  return static_cast<std::int16_t>(score == score ? std::clamp(word, kWordMinimum, kWordMaximum)
                                                  : 0);
}

// HMMER's single-precision exponential, not libm's. Inlined into loops over rows.
inline float polynomial_exp(float x) {
  // Cephes-type polynomial (Moshier): x = n ln 2 + y, with exp(y) by a degree-6 polynomial.
  constexpr float kLimit = 88.3762626647949f;
  const float inside = x > -kLimit && x <= kLimit ? x : 0.0f;
  const float g = inside * 1.44269504088896341f + 0.5f;
  const int truncated = static_cast<int>(g);
  const int exponent = truncated - (static_cast<float>(truncated) > g ? 1 : 0);  // floor
  const float n = static_cast<float>(exponent);
  float y = inside - n * 0.693359375f;
  y = y - n * -2.12194440e-4f;
  const float z = y * y;
  float p = 1.9875691500e-4f;
  p = p * y + 1.3981999507e-3f;
  p = p * y + 8.3334519073e-3f;
  p = p * y + 4.1665795894e-2f;
  p = p * y + 1.6666665459e-1f;
  p = p * y + 5.0000001201e-1f;
  p = p * z;
  p = p + y;
  p = p + 1.0f;
  // 2^n by the exponent field: n = -127 gives 0, n = 128 infinity.
  const float result = p * std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23);
  const float outside = x > kLimit ? std::numeric_limits<float>::infinity() : x * 0.0f;
  return x > -kLimit && x <= kLimit ? result : (x <= -kLimit ? 0.0f : outside);
}

// Sets emission scores by `emission(score)` and transition scores by `transition(score, limit)`;
// limits apply to words.
template <typename Score, typename Emission, typename OfTransition>
void fill_scores(const Profile& profile, Score impossible, const Emission& emission,
                 const OfTransition& transition, NodeScores<Score>& out) {
  const int M = profile.M;
  const auto nodes = static_cast<std::size_t>(M);
  out.M = M;
  out.Kp = profile.alphabet->Kp;
  out.match.resize(nodes * out.Kp);
  for (int x = 0; x < out.Kp; ++x) {
    Score* match = out.match.data() + nodes * x;
    const float* scores = profile.match.data() + (nodes + 1) * x + 1;
    for (int k = 0; k < M; ++k) match[k] = emission(scores[k]);
  }
  // Rounding must not make a transition a gain, nor an insert extension free.
  out.entry.resize(nodes);
  for (int k = 0; k < M; ++k) out.entry[k] = transition(profile.entry[k + 1], 0);
  // Stored with the node that they enter (index k) or leave (k - 1).
  const auto store = [&](std::vector<Score>& to, Transition a, int first, int limit) {
    to.assign(nodes, impossible);
    const float* scores = profile.transition[a].data() + 1;
    for (int k = 0; k < M - 1; ++k) to[k + first] = transition(scores[k], limit);
  };
  store(out.mm_in, kMM, 1, 0);
  store(out.im_in, kIM, 1, 0);
  store(out.dm_in, kDM, 1, 0);
  store(out.md_out, kMD, 0, 0);
  store(out.mi_out, kMI, 0, 0);
  store(out.ii_out, kII, 0, -1);
  store(out.dd_out, kDD, 0, kWordMaximum);
}

// Probability of leaving N, C or J for a target of length L.
float move_probability(int L, bool multihit) {
  const float nj = multihit ? 1.0f : 0.0f;
  return (2.0f + nj) / (static_cast<float>(L) + 2.0f + nj);
}

Profile make_match_scores(const Hmm& hmm) {
  const FlushToZeroScope flush;  // as HMMER builds profiles
  const Alphabet& alphabet = *hmm.alphabet;
  const int M = hmm.M;
  const std::size_t row = static_cast<std::size_t>(M) + 1;

  Profile profile;
  profile.M = M;
  profile.alphabet = &alphabet;
  profile.match.assign(row * alphabet.Kp, kMinusInfinity);
  for (int x = 0; x < alphabet.K; ++x) {
    float* scores = profile.match.data() + row * x;
    const double f = static_cast<double>(alphabet.background[x]);
    for (int k = 1; k <= M; ++k) {
      scores[k] = static_cast<float>(std::log(static_cast<double>(hmm.match_p(k, x)) / f));
    }
  }
  // Degenerate codes score the background-weighted mean of their members. A single member is also
  // multiplied and divided, which may change its last bit.
  for (int x = alphabet.K + 1; x < alphabet.nonresidue(); ++x) {
    float* scores = profile.match.data() + row * x;
    std::fill(scores + 1, scores + row, 0.0f);
    float weight = 0;
    for (int y = 0; y < alphabet.K; ++y) {
      if ((alphabet.degeneracy[x] >> y & 1) == 0) continue;
      const float* member = profile.match.data() + row * y;
      const float f = alphabet.background[y];
      weight += f;
      for (int k = 1; k <= M; ++k) scores[k] += member[k] * f;
    }
    for (int k = 1; k <= M; ++k) scores[k] /= weight;
  }
  return profile;
}

void add_transition_scores(const Hmm& hmm, Profile& profile) {
  const FlushToZeroScope flush;
  const int M = hmm.M;
  const std::size_t row = static_cast<std::size_t>(M) + 1;
  profile.entry.assign(row, kMinusInfinity);
  for (auto& scores : profile.transition) scores.assign(row, kMinusInfinity);

  const std::vector<float> occupancy = match_occupancy(hmm);
  float z = 0;
  for (int k = 1; k <= M; ++k) z += occupancy[k] * static_cast<float>(M - k + 1);
  for (int k = 1; k <= M; ++k) profile.entry[k] = log_of(occupancy[k] / z);

  for (int a = 0; a < kTransitions; ++a) {
    for (int k = 1; k < M; ++k) {
      profile.transition[a][k] = log_of(hmm.t(k, static_cast<Transition>(a)));
    }
  }
}

}  // namespace

ByteProfile make_byte_profile(const Profile& profile) {
  const int M = profile.M;
  ByteProfile bytes;
  bytes.M = M;
  bytes.Kp = profile.alphabet->Kp;
  bytes.scale = static_cast<float>(3.0 / 0.69314718055994529);

  float best = 0;  // the maximum includes insert scores, which are 0
  for (int x = 0; x < profile.alphabet->K; ++x) {
    for (int k = 1; k <= M; ++k) best = std::max(best, profile.match_score(x, k));
  }
  bytes.bias = byte_cost(bytes.scale, -best);
  const float both = static_cast<float>(M) * static_cast<float>(M + 1);
  bytes.tbm = byte_cost(bytes.scale, std::log(2.0f / both));
  bytes.tec = byte_cost(bytes.scale, std::log(0.5f));

  bytes.cost.resize(static_cast<std::size_t>(bytes.Kp) * M);
  for (int x = 0; x < bytes.Kp; ++x) {
    std::uint8_t* cost = bytes.cost.data() + static_cast<std::size_t>(x) * M;
    const float* scores = profile.match.data() + (static_cast<std::size_t>(M) + 1) * x + 1;
    const float scale = bytes.scale;  // copies: a byte store may alias the members
    const int bias = bytes.bias;
    for (int k = 0; k < M; ++k) cost[k] = biased_byte_cost(scale, bias, scores[k]);
  }
  return bytes;
}

std::uint8_t ByteProfile::tjb(int L) const {
  return byte_cost(scale, std::log(3.0f / static_cast<float>(L + 3)));
}

int ByteProfile::signed_cost(std::uint8_t biased) const {
  return std::min(127, static_cast<int>(biased) - static_cast<int>(bias));
}

WordProfile make_word_profile(const Profile& profile) {
  WordProfile words;
  words.scale = static_cast<float>(500.0 / 0.69314718055994529);
  const auto word = [scale = words.scale](float score) { return word_score(scale, score); };
  fill_scores(
      profile, static_cast<std::int16_t>(kWordMinimum), word,
      [&](float score, int limit) {
        return static_cast<std::int16_t>(std::min<int>(word(score), limit));
      },
      words);
  words.ec = words.ej = word(static_cast<float>(-0.69314718055994529));
  return words;
}

std::int16_t WordProfile::move(int L) const {
  return word_score(scale, std::log(move_probability(L, true)));
}

OddsProfile make_odds_profile(const Profile& profile) {
  const FlushToZeroScope flush;
  OddsProfile odds;
  const auto exp_of = [](float score) { return polynomial_exp(score); };
  fill_scores(
      profile, 0.0f, exp_of, [&](float score, int) { return exp_of(score); }, odds);
  return odds;
}

int float_stripes(int M) { return std::max(2, (M + 3) / 4); }

// Lower bound of the cell: D(k) >= B * tBM(k-1) * e(k-1) * tMD(k-1) in Forward, D(k) >= E in
// Backward. 2^-25 is half a unit of the smallest significand; the other factor covers the rounding
// of the bound.
float deletion_bound(double smallest) {
  constexpr double kHalfUnit = 0x1p-25;
  constexpr double kRoundingMargin = 1.0 - 1e-5;
  return static_cast<float>(std::min(smallest, 1e30) * kHalfUnit * kRoundingMargin);
}

void exponentiate(std::span<const float> scores, float* odds) {
  for (std::size_t i = 0; i < scores.size(); ++i) odds[i] = polynomial_exp(scores[i]);
}

DeletionBounds deletion_bounds(const OddsProfile& odds) {
  DeletionBounds out;
  bool decaying = true;
  for (const float dd : odds.dd_out) decaying = decaying && dd <= 1.0f;
  const auto M = static_cast<std::size_t>(odds.M);
  for (std::size_t x = 0; x < out.forward.size(); ++x) {
    const bool known = x < static_cast<std::size_t>(odds.Kp);
    double smallest = known && M > 1 ? 1e300 : 0.0;
    for (std::size_t k = 0; known && k + 1 < M; ++k) {
      smallest = std::min(smallest, static_cast<double>(odds.entry[k]) *
                                        static_cast<double>(odds.match[x * M + k]) *
                                        static_cast<double>(odds.md_out[k]));
    }
    out.forward[x] = decaying ? deletion_bound(smallest) : -1.0f;
  }
  out.backward = decaying ? deletion_bound(1.0) : -1.0f;
  return out;
}

LengthModel length_model(int L, bool multihit) {
  LengthModel model;
  model.move = move_probability(L, multihit);
  model.loop = 1.0f - model.move;
  model.ec = multihit ? 0.5f : 1.0f;
  model.ej = multihit ? 0.5f : 0.0f;
  return model;
}

float add_log(float log_scale, float factor) {
  return static_cast<float>(static_cast<double>(log_scale) + std::log(static_cast<double>(factor)));
}

float forward_nats(float log_scale, float last_c, float move) {
  const float end = last_c * move;
  if (!(last_c > 0) || !std::isfinite(last_c) || !(end > 0)) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  return static_cast<float>(static_cast<double>(log_scale) + std::log(static_cast<double>(end)));
}

float null_p1(int L) {
  // From 2^24 residues on, the quotient may round to 1, and log(1 - p1) would be infinite.
  constexpr float kMost = 0x1.fffffep-1f;
  return std::min(static_cast<float>(L) / static_cast<float>(std::int64_t{L} + 1), kMost);
}

float null_score(int L) {
  const double p1 = static_cast<double>(null_p1(L));
  return static_cast<float>(static_cast<double>(static_cast<float>(L)) * std::log(p1) +
                            std::log(1.0 - p1));
}

BiasModel make_bias_model(const Hmm& hmm) {
  const FlushToZeroScope flush;
  const Alphabet& alphabet = *hmm.alphabet;
  BiasModel model;
  const float length = static_cast<float>(hmm.M / 8.0);  // mean length of a run in the biased state
  model.t10 = 1.0f / (length + 1.0f);
  model.t11 = length / (length + 1.0f);

  const std::array<const std::array<float, kMaxBases>*, 2> emission{&alphabet.background,
                                                                    &hmm.compo};
  for (int s = 0; s < 2; ++s) {
    model.odds[s].fill(1.0f);  // stays 1 for gap, nonresidue and missing data
    for (int x = 0; x < alphabet.nonresidue(); ++x) {
      if (x == alphabet.gap()) continue;
      // A ratio of sums over the members; match scores use the mean.
      float numerator = 0, denominator = 0;
      for (int y = 0; y < alphabet.K; ++y) {
        if ((alphabet.degeneracy[x] >> y & 1) == 0) continue;
        numerator += (*emission[s])[y];
        denominator += alphabet.background[y];
      }
      model.odds[s][x] = numerator / denominator;
    }
  }
  return model;
}

std::shared_ptr<SearchModel> begin_search_model(Hmm hmm) {
  auto model = std::make_shared<SearchModel>();
  model->hmm = std::move(hmm);
  model->profile = make_match_scores(model->hmm);
  model->bytes = make_byte_profile(model->profile);
  model->bias = make_bias_model(model->hmm);
  return model;
}

void complete(SearchModel& model) {
  if (model.words.M > 0) return;
  add_transition_scores(model.hmm, model.profile);
  model.odds = make_odds_profile(model.profile);
  model.words = make_word_profile(model.profile);  // last: says that the model is complete
}

std::shared_ptr<SearchModel> make_search_model(Hmm hmm) {
  std::shared_ptr<SearchModel> model = begin_search_model(std::move(hmm));
  complete(*model);
  return model;
}

}  // namespace hmmjit
