// Makes a compiled kernel ready for launches, in the same way for a search, a host program and
// `hmmjit bench`. The driver loads the image; an image that it refuses is compiled once more. Code
// that the driver has compiled from PTX must keep the catalogue entry's promises, as the compiler's
// code does; otherwise the plan's next candidate is used.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "core/mutex.hpp"
#include "driver/driver.hpp"
#include "gpu/kernel_source.hpp"
#include "gpu/ready_kernel.hpp"

namespace hmmjit::gpu {

/// Loads each kernel once for all devices. Thread-safe.
class KernelLoader {
 public:
  explicit KernelLoader(std::shared_ptr<driver::Driver> driver) : driver_(std::move(driver)) {}

  /// Loads `kernel`, made for `plan`, or another of the plan's kernels, on a device. Waits for
  /// compiles. Fails with kCompile if no candidate is left or fits on a multiprocessor of the
  /// device.
  Result<ReadyKernel> load(const plan::Plan& plan, compile::KernelPtr kernel,
                           const driver::Device& device, KernelSource& source);

  /// Number of images that the driver has loaded so far.
  std::uint64_t loaded() const { return loaded_; }

 private:
  // A kernel on a device: its resources as counted by the driver, and the promise that it breaks.
  struct Prepared {
    driver::LoadedResources resources;
    std::optional<std::string> broken_promise;
  };
  struct Image {
    Mutex mutex;
    std::shared_ptr<driver::LoadedKernel> loaded HMMJIT_GUARDED_BY(mutex);
    // Set if compiled again after the driver had refused the first image.
    compile::KernelPtr remade HMMJIT_GUARDED_BY(mutex);
    std::map<int, Prepared> prepared HMMJIT_GUARDED_BY(mutex);  // by device ordinal
  };
  std::shared_ptr<Image> image_of(const std::string& kernel_name);
  Status open(Image& image, compile::KernelPtr& kernel, const plan::Plan& plan,
              KernelSource& source) HMMJIT_REQUIRES(image.mutex);

  const std::shared_ptr<driver::Driver> driver_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Image>> images_ HMMJIT_GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> loaded_{0};
};

}  // namespace hmmjit::gpu
