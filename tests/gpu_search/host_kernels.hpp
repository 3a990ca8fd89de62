// What the filter kernels compute, on the host: the kernels' own decision and compaction code
// (common/byte_filter.cuh) behind a plain recurrence.
#pragma once

#include "fake_driver/fake_driver.hpp"

namespace hmmjit::tests {

/// For FakeDriver::on_launch: a driver result code.
int run_on_host(const FakeLaunch& launch);
/// The same with wrong scores: by a third of a bit in every emission, or by several bits.
int run_on_host_wrongly(const FakeLaunch& launch);

/// Makes a gate's counters say what cannot be.
void spoil_count(const FakeLaunch& launch);

}  // namespace hmmjit::tests
