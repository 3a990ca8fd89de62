// The same sweeps on a GPU: kernels of this project, planned, compiled and launched by hmmjit.
#pragma once

#include <hmmjit/engine.hpp>
#include <memory>

#include "segmentation.hpp"

namespace mrf {

/// This project's templates and catalogue entries, for an hmmjit::Engine.
hmmjit::EngineSettings engine_settings(hmmjit::Cache cache);

hmmjit::Problem update_problem(Size size, int classes, int neighbours);
hmmjit::Problem statistics_problem(Size size, int classes);

class GpuSweeper final : public Sweeper {
 public:
  /// Compiles both kernels, or takes them from the engine's cache, and copies the volume. Throws
  /// hmmjit::Error.
  GpuSweeper(hmmjit::Engine& engine, const hmmjit::Gpu& gpu, const Volume& volume,
             const Labels& labels, int classes, int neighbours);
  Sweep sweep(std::span<const ClassTerm> terms, int beta) override;
  Labels labels() override;
  const hmmjit::Kernel& update_kernel() const { return update_; }
  const hmmjit::Kernel& statistics_kernel() const { return statistics_; }

 private:
  Size size_;
  int classes_, neighbours_;
  hmmjit::Kernel update_, statistics_;
  hmmjit::Stream stream_;
  hmmjit::Event begun_, ended_;
  hmmjit::Buffer labels_, intensities_, counters_;
};

}  // namespace mrf
