// What the filter kernels compute, on the host: the kernels' own decision and compaction code
// (common/byte_filter.cuh) behind a plain recurrence.
#pragma once

#include <cstddef>
#include <string>

#include "common/gate_params.h"
#include "common/late_params.h"
#include "common/launch_params.h"
#include "fake_driver/fake_driver.hpp"
#include "plan/plan.hpp"

namespace hmmjit::tests {

/// The candidate of a plan that these tests run: that of the variant they were written for, so
/// that
/// they say the same whichever variants have joined the catalogue; else what the planner chose.
const plan::Candidate& tested(const plan::Plan& plan);

/// The image of a planned kernel: what the functions below need to know of its constants, which is
/// how many positions of a model it computes (of a tiled kernel: one tile does).
std::string image_for(const plan::Candidate& candidate);
/// How many an image was made for; very many where it does not say.
std::size_t image_positions(const std::string& image);
/// Constants of a kernel of the domain stage, which tell its instances: kTargets, without a word of it
/// the most, and kRun.
struct DomainShape {
  std::int64_t targets, run;
};
DomainShape image_shape(const std::string& image);

/// For FakeDriver::on_launch: a driver result code.
int run_on_host(const FakeLaunch& launch);
/// The same with wrong scores: by a third of a bit in every emission, or by several bits.
int run_on_host_wrongly(const FakeLaunch& launch);

/// Calls `use` with the parameters of a launch of a filter or a gate.
template <typename Use>
auto with_parameters(const FakeLaunch& launch, const Use& use) {
  namespace dev = hmmjit_device;
  const void* const p = launch.parameters;
  if (launch.kernel.starts_with("gate")) return use(*static_cast<const dev::GateParams*>(p));
  if (launch.kernel.starts_with("bias")) return use(*static_cast<const dev::BiasParams*>(p));
  if (launch.kernel.starts_with("viterbi"))
    return use(*static_cast<const dev::WordFilterParams*>(p));
  if (launch.kernel.starts_with("forward"))
    return use(*static_cast<const dev::FloatFilterParams*>(p));
  return use(*static_cast<const dev::ByteFilterParams*>(p));
}

}  // namespace hmmjit::tests
