// A GPU for tests: the engine's own path from plan to launch over host memory, with launches handed
// to a function. hmmjit's internals stay behind this header: their names are those of its
// interface.
#pragma once

#include <functional>
#include <hmmjit/engine.hpp>
#include <memory>
#include <string>

namespace mrf_tests {

struct Launch {
  std::string kernel;
  unsigned blocks = 0, threads = 0;
  const void* parameters = nullptr;  ///< valid during the call
};

/// One device, with the traits of an H200. One at a time.
class FakeGpu {
 public:
  explicit FakeGpu(std::function<void(const Launch&)> on_launch);
  ~FakeGpu();
  const hmmjit::Gpu& gpu() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mrf_tests
