// Sums whose rounding affects results.
#pragma once

#include <span>

namespace hmmjit {

/// Compensated (Kahan 1965) float sum, in order.
class CompensatedSum {
 public:
  void add(float v) {
    const float y = v - correction_;
    const float t = sum_ + y;
    correction_ = (t - sum_) - y;
    sum_ = t;
  }
  float value() const { return sum_; }

 private:
  float sum_ = 0, correction_ = 0;
};

float compensated_sum(std::span<const float> values);

/// Divides by the compensated sum; if it is zero, all values become equal.
void normalise(std::span<float> values);

/// log(exp(a) + exp(b)) in nats, from HMMER's table with steps of 1/1000 nat: its error (up to
/// 0.0005) is visible in printed biases. Accepts -inf.
float table_log_sum(float a, float b);

}  // namespace hmmjit
