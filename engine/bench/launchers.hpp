// Launches each stage's kernels and reads their answers.
#pragma once

#include <functional>
#include <vector>

#include "bench/bench.hpp"
#include "common/late_params.h"
#include "gpu/ready_kernel.hpp"

namespace hmmjit::bench {

/// The inputs of a launch.
struct Surroundings {
  const driver::Stream& stream;
  driver::Event& begin;
  driver::Event& end;
  const SearchModel& model;
  const DeviceTargets& targets;
  const Settings& settings;
  /// The exact Viterbi kernel for targets that speculating kernels flag.
  std::function<Result<gpu::ReadyKernel>()> exact_viterbi;
};

/// Launches, times, compares with `expected` ([distinct]) and fills in the measurement.
Status run_byte_filter(const Surroundings& s, const gpu::ReadyKernel& kernel,
                       const std::vector<float>& expected, Measurement& out);
Status run_viterbi(const Surroundings& s, const gpu::ReadyKernel& kernel,
                   const std::vector<float>& expected, Measurement& out);
Status run_float_filter(const Surroundings& s, const gpu::ReadyKernel& kernel,
                        const std::vector<float>& expected, Measurement& out);

}  // namespace hmmjit::bench
