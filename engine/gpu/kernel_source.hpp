// The source of a search's kernels: the planner's choice for a size class, made by the kernel
// provider. An interface, so that tests can run without a compiler.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "cache/kernel_cache.hpp"
#include "compile/kernel_provider.hpp"
#include "plan/plan.hpp"

namespace hmmjit::gpu {

/// Thread-safe.
class KernelSource {
 public:
  virtual ~KernelSource() = default;
  using Made = compile::KernelProvider::Made;
  /// Requests a kernel; kernels of higher priority are made first. Never blocks. `made` is called
  /// once, on any thread, including this one.
  virtual void request(const plan::Plan& plan, int priority, Made made) = 0;
  /// The plan's kernel if it needs no compile, otherwise null; may read files.
  virtual compile::KernelPtr find(const plan::Plan& plan) = 0;
  /// Requests the kernel and waits for it.
  Result<compile::KernelPtr> get(const plan::Plan& plan);
  /// See compile::KernelProvider::refused.
  virtual Result<compile::KernelPtr> refused(const plan::Plan& plan,
                                             const compile::KernelPtr& kernel,
                                             const std::string& reason) = 0;
  virtual compile::ProviderStatistics statistics() const = 0;
  /// The user's measured choices (hmmjit tune); null if there are none. Valid as long as this
  /// object.
  virtual const plan::TuningTable* tuning() const { return nullptr; }
  /// Cancels queued and running compiles.
  virtual void cancel() = 0;
};

/// The kernels of a provider.
class ProviderKernels final : public KernelSource {
 public:
  /// `tuning` may be null; otherwise it must live as long as the provider.
  explicit ProviderKernels(std::shared_ptr<compile::KernelProvider> provider,
                           const plan::TuningTable* tuning = nullptr)
      : provider_(std::move(provider)), tuning_(tuning) {}
  void request(const plan::Plan& plan, int priority, Made made) override {
    provider_->request(plan, priority, std::move(made));
  }
  compile::KernelPtr find(const plan::Plan& plan) override {
    const auto found = provider_->find(plan);
    return found ? found->get().value_or(nullptr) : nullptr;
  }
  Result<compile::KernelPtr> refused(const plan::Plan& plan, const compile::KernelPtr& kernel,
                                     const std::string& reason) override {
    return provider_->refused(plan, kernel, reason);
  }
  compile::ProviderStatistics statistics() const override { return provider_->statistics(); }
  const plan::TuningTable* tuning() const override { return tuning_; }
  void cancel() override { provider_->cancel(); }

 private:
  const std::shared_ptr<compile::KernelProvider> provider_;
  const plan::TuningTable* const tuning_;
};

/// A source without cache or queue: make() makes each kernel at once.
class InstantKernelSource : public KernelSource {
 public:
  void request(const plan::Plan& plan, int, Made made) override { made(make(plan)); }
  compile::KernelPtr find(const plan::Plan& plan) override { return make(plan).value_or(nullptr); }
  Result<compile::KernelPtr> refused(const plan::Plan& plan, const compile::KernelPtr& kernel,
                                     const std::string& reason) override;
  compile::ProviderStatistics statistics() const override { return {}; }
  void cancel() override {}

 protected:
  virtual Result<compile::KernelPtr> make(const plan::Plan& plan) = 0;
};

/// Kernels from a cache (null: the one named by the environment) and this machine's NVRTC,
/// preferably one that is not newer than the driver (0: unknown). Fails only on unusable settings:
/// without a compiler, the cache alone is used.
Result<std::unique_ptr<KernelSource>> open_kernel_source(
    int driver_major, compile::ProviderSettings settings,
    std::shared_ptr<cache::KernelCache> cache = nullptr);

}  // namespace hmmjit::gpu
