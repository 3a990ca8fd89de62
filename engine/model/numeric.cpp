#include "model/numeric.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace hmmjit {
namespace {

using LogSumTable = std::array<float, 16000>;

const LogSumTable& log_sum_table() {
  static const LogSumTable table = [] {
    LogSumTable t;
    for (std::size_t n = 0; n < t.size(); ++n) {
      t[n] = static_cast<float>(std::log(1.0 + std::exp(-static_cast<double>(n) / 1000.0)));
    }
    return t;
  }();
  return table;
}

}  // namespace

float compensated_sum(std::span<const float> values) {
  CompensatedSum sum;
  for (const float v : values) sum.add(v);
  return sum.value();
}

void normalise(std::span<float> values) {
  const float sum = compensated_sum(values);
  for (float& v : values) v = sum == 0.0f ? 1.0f / static_cast<float>(values.size()) : v / sum;
}

float table_log_sum(float a, float b) {
  const float high = std::max(a, b), low = std::min(a, b);
  if (low == -std::numeric_limits<float>::infinity() || high - low >= 15.7f) return high;
  return high + log_sum_table()[static_cast<std::size_t>((high - low) * 1000.0f)];
}

}  // namespace hmmjit
