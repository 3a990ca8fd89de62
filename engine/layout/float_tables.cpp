#include "layout/float_tables.hpp"

#include <algorithm>
#include <cmath>

namespace hmmjit::layout {
namespace {

using hmmjit_device::kSymbolRows;
constexpr float kRounding = 0x1p-24f;

}  // namespace

std::vector<float> make_striped_emissions(const OddsProfile& profile) {
  constexpr std::size_t kLanes = 4;
  const auto M = static_cast<std::size_t>(profile.M);
  const auto Q = static_cast<std::size_t>(float_stripes(profile.M));
  std::vector<float> out(kSymbolRows * Q * kLanes, 0.0f);
  for (std::size_t x = 0; x < static_cast<std::size_t>(profile.Kp); ++x) {
    for (std::size_t k = 0; k < M; ++k) {
      out[(x * Q + k % Q) * kLanes + k / Q] = profile.match[x * M + k];
    }
  }
  return out;
}

std::vector<float> make_run_emissions(std::span<const float> striped, std::size_t Q,
                                      std::uint32_t run) {
  constexpr std::size_t kLanes = 4, kThreads = 32;
  std::vector<float> out(striped.size() / Q * kThreads * run, 0.0f);
  for (std::size_t n = 0; n < striped.size(); ++n) {
    const std::size_t lane = n % kLanes, q = n / kLanes % Q, x = n / kLanes / Q;
    out[((x * kLanes + lane) * run + q % run) * kThreads + q / run] = striped[n];
  }
  return out;
}

std::vector<hmmjit_device::FloatLength> make_float_lengths(std::span<const std::uint32_t> lengths,
                                                           bool multihit) {
  std::vector<hmmjit_device::FloatLength> out;
  out.reserve(lengths.size());
  for (const std::uint32_t L : lengths) {
    const LengthModel model = length_model(static_cast<int>(L), multihit);
    out.push_back({model.loop, model.move});
  }
  return out;
}

float forward_guard(int L) {
  return kForwardGuard + kForwardGuardPerResidue * static_cast<float>(L);
}

std::vector<float> make_bias_odds(const BiasModel& model) {
  std::vector<float> out(2 * kSymbolRows, 1.0f);
  for (std::size_t state = 0; state < 2; ++state) {
    std::copy_n(model.odds[state].begin(),
                std::min<std::size_t>(model.odds[state].size(), kSymbolRows),
                out.begin() + static_cast<std::ptrdiff_t>(state * kSymbolRows));
  }
  return out;
}

std::vector<float> make_bias_lengths(std::span<const std::uint32_t> lengths) {
  std::vector<float> out;
  out.reserve(lengths.size());
  for (const std::uint32_t L : lengths) out.push_back(null_p1(static_cast<int>(L)));
  return out;
}

float bias_nats(float sum, int L) {
  const float p1 = null_p1(L);
  return (sum + static_cast<float>(L) * std::log(p1)) + std::log(1.0f - p1);
}

float bias_guard(float sum, int L) {
  // Partial sums are at most slightly below the last: leaving the biased state costs log(1 - p1).
  const float largest = std::fabs(sum) + 24.0f;
  return 1e-4f + kRounding * (static_cast<float>(L) + 16.0f) * (largest + 16.0f);
}

}  // namespace hmmjit::layout
