// Kernels for run_on_host() that come as a test says: at once, late, never, or refused by the
// driver.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "gpu/kernel_source.hpp"
#include "host_kernels.hpp"

namespace hmmjit::tests {

/// How kernels come. Must live as long as they are asked for.
struct KernelScript {
  enum Fate { kCached, kCompiled, kLate, kFails };
  using PlanFilter = std::function<bool(const plan::Plan&)>;
  /// The fate of a plan; empty: kCached.
  std::function<Fate(const plan::Plan&)> fate = {};
  /// Of each compile; empty: none.
  std::function<double(const plan::Plan&)> milliseconds = {};
  compile::ImageKind kind = compile::ImageKind::kCubin;
  /// A refused kernel is made again under another name; else once more, as it was.
  bool refused_is_another = false;

  std::mutex mutex;
  std::vector<plan::Plan> asked;  ///< of request() and find(), in order
  int refused = 0;
  struct Late {
    plan::Plan plan;
    int priority;
    gpu::KernelSource::Made made;
  };
  std::vector<Late> late;
  /// Ends the compiles that are late, all or some of them, well or not; returns their number.
  std::size_t finish(bool well = true, const PlanFilter& which = {});
};
std::unique_ptr<gpu::KernelSource> scripted_kernels(std::shared_ptr<KernelScript> script);
std::unique_ptr<gpu::KernelSource> scripted_kernels(KernelScript& script);
/// The same fate for all plans.
std::function<KernelScript::Fate(const plan::Plan&)> always(KernelScript::Fate fate);
/// One for which kernels with these entries cannot be had.
std::shared_ptr<KernelScript> without_kernels(std::set<std::string> entries);
compile::KernelPtr fake_kernel(const plan::Plan& plan, const std::string& suffix = {});

}  // namespace hmmjit::tests
