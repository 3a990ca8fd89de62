#include "api/handles.hpp"
#include "fake_driver/fake_driver.hpp"

// The header names hmmjit::Gpu; here, where that namespace holds internals, it must be told which.
namespace hmmjit {
using v0::Gpu;
}
#include "fake_gpu.hpp"

namespace mrf_tests {

struct FakeGpu::Impl {
  hmmjit::tests::FakeDriver driver{{hmmjit::v0::to_traits(hmmjit::v0::find_device("H200"))}};
  std::unique_ptr<hmmjit::v0::Gpu> gpu;
};

FakeGpu::FakeGpu(std::function<void(const Launch&)> on_launch) : impl_(std::make_unique<Impl>()) {
  impl_->driver.on_launch = [on_launch](const hmmjit::tests::FakeLaunch& launch) {
    on_launch({launch.kernel, launch.blocks, launch.block_threads, launch.parameters});
    return 0;
  };
  impl_->gpu = std::make_unique<hmmjit::v0::Gpu>(
      hmmjit::v0::open_gpu(hmmjit::driver::Driver::open(impl_->driver.api()), 0));
}
FakeGpu::~FakeGpu() = default;
const hmmjit::Gpu& FakeGpu::gpu() const { return *impl_->gpu; }

}  // namespace mrf_tests
