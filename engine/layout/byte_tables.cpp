#include "layout/byte_tables.hpp"

#include <algorithm>

#include "model/score_statistics.hpp"
#include "reference/filters.hpp"

namespace hmmjit::layout {
namespace {

using hmmjit_device::kSymbolRows;
using hmmjit_device::LengthClass;

// Least value in first..last that satisfies the monotone `good`, or last + 1 if none does. Searches
// from `guess`, because neighbouring lengths have nearly the same answer.
template <typename Predicate>
int first_good(int first, int last, int guess, Predicate good) {
  guess = std::clamp(guess, first, last);
  if (good(guess)) {
    while (guess > first && good(guess - 1)) --guess;
    return guess;
  }
  do {
    ++guess;
  } while (guess <= last && !good(guess));
  return guess;
}

}  // namespace

ByteTables make_byte_tables(const ByteProfile& profile) {
  ByteTables out;
  const auto M = static_cast<std::size_t>(profile.M);
  out.stride = static_cast<std::uint32_t>((M + 15) / 16 * 16);
  out.emissions.assign(static_cast<std::size_t>(kSymbolRows) * out.stride, -127);
  out.costs.assign(static_cast<std::size_t>(kSymbolRows) * out.stride, 255);
  for (int x = 0; x < profile.Kp; ++x) {
    const std::uint8_t* cost = profile.cost.data() + static_cast<std::size_t>(x) * M;
    const std::size_t row = static_cast<std::size_t>(x) * out.stride;
    for (std::size_t k = 0; k < M; ++k) {
      out.emissions[row + k] = static_cast<std::int8_t>(-profile.signed_cost(cost[k]));
      out.costs[row + k] = cost[k];
    }
  }
  return out;
}

std::vector<LengthClass> make_length_classes(const ByteProfile& profile,
                                             const Calibration& calibration, double F1,
                                             std::span<const std::uint32_t> lengths) {
  std::vector<LengthClass> out;
  out.reserve(lengths.size());
  const bool infinite_passes = !(0.0 > F1);
  const PValueGate gate(calibration.msv_mu, calibration.msv_lambda, F1);
  int ssv_guess = 192, msv_guess = 192;
  for (const std::uint32_t length : lengths) {
    const auto L = static_cast<int>(length);
    const float null_nats = null_score(L);
    const auto passes = [&](float nats) { return !gate.rejects(nats_to_bits(nats - null_nats)); };
    LengthClass c{};
    c.tjb = profile.tjb(L);
    c.ssv_usable = reference::ssv_usable(profile, L) ? 1 : 0;
    c.overflow_passes = infinite_passes ? 1 : 0;
    // Values outside the score range (overflow, no result) never reach the comparison.
    ssv_guess = first_good(128, 255, ssv_guess, [&](int u) {
      const reference::SsvResult r = reference::ssv_decide(profile, u, L);
      return r.status != reference::SsvStatus::kScore || passes(r.nats);
    });
    msv_guess = first_good(0, 255, msv_guess,
                           [&](int j) { return passes(reference::msv_nats(profile, j, L)); });
    c.ssv_gate = static_cast<std::uint16_t>(ssv_guess);
    c.msv_gate = static_cast<std::uint16_t>(msv_guess);
    out.push_back(c);
  }
  return out;
}

}  // namespace hmmjit::layout
