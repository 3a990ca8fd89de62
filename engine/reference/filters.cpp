#include "reference/filters.hpp"

#include <algorithm>
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

}  // namespace hmmjit::reference
