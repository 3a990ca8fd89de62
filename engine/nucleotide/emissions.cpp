#include "nucleotide/emissions.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/numeric.hpp"

namespace hmmjit::nucleotide {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

}  // namespace

Background estimate_background(const Alphabet& alphabet, std::span<const Residue> envelope,
                               std::int64_t window) {
  Background counts{};
  for (const Residue x : envelope) {
    if (alphabet.is_residue(x)) {
      counts[x] += 1.0f;
    } else if (alphabet.is_degenerate(x)) {
      const std::uint32_t members = alphabet.degeneracy[x];
      const float share = 1.0f / static_cast<float>(std::popcount(members));
      for (int y = 0; y < alphabet.K; ++y)
        if (members >> y & 1u) counts[static_cast<std::size_t>(y)] += share;
    }
  }
  const auto K = static_cast<std::size_t>(alphabet.K);
  normalise({counts.data(), K});
  const auto weight =
      static_cast<float>(25.0 / static_cast<double>(std::clamp<std::int64_t>(window, 50, 100)));
  Background mixed{};
  for (std::size_t x = 0; x < K; ++x) {
    const float own = weight * alphabet.background[x];
    mixed[x] = static_cast<float>(static_cast<double>(own) + (1.0 - static_cast<double>(weight)) *
                                                                 static_cast<double>(counts[x]));
  }
  return mixed;
}

Emissions::Emissions(const domain::ForwardTables& tables)
    : t_(tables.tables()), cells_(static_cast<std::size_t>(t_.Q * domain::kLanes)) {
  const Hmm& hmm = tables.model().hmm;
  masked_.assign(cells_, 0);
  entry_to_delete_.ensure(cells_);
  std::fill_n(entry_to_delete_.data(), cells_, std::numeric_limits<float>::infinity());
  for (int k = 1; k <= t_.M; ++k) {
    const int q = t_.stripe_of(k), r = t_.lane_of(k);
    const auto cell = static_cast<std::size_t>(q * domain::kLanes + r);
    masked_[cell] = !hmm.mm.empty() && hmm.mm[static_cast<std::size_t>(k - 1)] == 'm';
    if (k < t_.M) entry_to_delete_[cell] = t_.forward[q].bm[r] * t_.forward[q].md[r];
  }
  domain::EmissionRows rows;
  rows.zero(domain::kCodeRows, t_.Q);
  std::copy_n(t_.emission.odds.data(), domain::kCodeRows * cells_, rows.odds.data());
  std::copy_n(t_.emission.deletion_bound.data(), domain::kCodeRows, rows.deletion_bound.data());
  states_.push_back(with_probabilities(std::move(rows)));
}

std::shared_ptr<const EmissionState> Emissions::with_probabilities(
    domain::EmissionRows&& rows) const {
  auto state = std::make_shared<EmissionState>();
  state->rows = std::move(rows);
  float* p = state->probabilities.ensure(static_cast<std::size_t>(t_.K) * cells_);
  for (int x = 0; x < t_.K; ++x) {
    const float* odds = state->rows.row(static_cast<std::size_t>(x), t_.Q);
    const float f = t_.alphabet->background[static_cast<std::size_t>(x)];
    for (std::size_t cell = 0; cell < cells_; ++cell) *p++ = odds[cell] * f;
  }
  return state;
}

std::shared_ptr<const EmissionState> Emissions::after(std::uint64_t turns) {
  const MutexLock lock(mutex_);
  while (!settled_ && states_.size() <= turns) {
    const EmissionState& last = *states_.back();
    domain::EmissionRows rows;
    rows.zero(domain::kCodeRows, t_.Q);
    Background background{};
    std::copy_n(t_.alphabet->background.begin(), t_.K, background.begin());
    estimate(last, background, 0, t_.Kp, rows);
    // Rows of unused codes are equal in all states.
    settled_ = std::memcmp(rows.odds.data(), last.rows.odds.data(),
                           domain::kCodeRows * cells_ * sizeof(float)) == 0;
    if (!settled_) states_.push_back(with_probabilities(std::move(rows)));
  }
  return states_[std::min<std::size_t>(turns, states_.size() - 1)];
}

std::shared_ptr<const EmissionState> Emissions::settled() {
  constexpr std::uint64_t kMostTurns = 16;
  for (std::uint64_t turns = 0; turns < kMostTurns; ++turns)
    if (auto state = after(turns); state == after(turns + 1)) return state;
  return nullptr;
}

int Emissions::rows_of(std::span<const Residue> envelope) const {
  const bool canonical =
      std::ranges::all_of(envelope, [&](Residue x) { return static_cast<int>(x) < t_.K; });
  return canonical ? t_.K : t_.Kp;
}

void Emissions::estimate(const EmissionState& state, const Background& background, int first_row,
                         int count, domain::EmissionRows& out) const {
  thread_local AlignedArray<float> scratch;
  const auto K = static_cast<std::size_t>(t_.K);
  float* const scores = scratch.ensure((K + 1) * cells_);
  float* const mean = scores + K * cells_;
  const auto put = [&](int code, const float* of_code) {
    const auto row = static_cast<std::size_t>(first_row + code);
    float* const odds = out.odds.data() + row * cells_;
    exponentiate({of_code, cells_}, odds);
    if (t_.emission.deletion_bound[static_cast<std::size_t>(code)] < 0) {
      out.deletion_bound[row] = -1.0f;
      return;
    }
    float smallest = std::numeric_limits<float>::infinity();
    for (std::size_t cell = 0; cell < cells_; ++cell) {
      const float product = entry_to_delete_[cell] < 1e30f ? entry_to_delete_[cell] * odds[cell]
                                                           : entry_to_delete_[cell];
      smallest = std::min(smallest, product);
    }
    out.deletion_bound[row] = deletion_bound(static_cast<double>(smallest));
  };
  for (std::size_t x = 0; x < K; ++x) {
    const float* const p = state.probabilities.data() + x * cells_;
    const auto f = static_cast<double>(background[x]);
    for (std::size_t cell = 0; cell < cells_; ++cell) {
      const double score = std::log(static_cast<double>(p[cell]) / f);
      scores[x * cells_ + cell] = masked_[cell] ? 0.0f : static_cast<float>(score);
    }
    put(static_cast<int>(x), scores + x * cells_);
  }
  for (int code = t_.K; code < count; ++code) {
    if (!t_.alphabet->is_degenerate(code)) {
      std::fill_n(mean, cells_, kNever);
    } else {
      std::fill_n(mean, cells_, 0.0f);
      float weight = 0;
      for (std::size_t y = 0; y < K; ++y) {
        if ((t_.alphabet->degeneracy[static_cast<std::size_t>(code)] >> y & 1u) == 0) continue;
        weight += background[y];
        for (std::size_t cell = 0; cell < cells_; ++cell)
          mean[cell] += scores[y * cells_ + cell] * background[y];
      }
      for (std::size_t cell = 0; cell < cells_; ++cell) mean[cell] /= weight;
    }
    put(code, mean);
  }
}

}  // namespace hmmjit::nucleotide
