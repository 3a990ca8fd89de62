#include "gpu/kernel_source.hpp"

#include <future>
#include <utility>

#include "compile/nvrtc_library.hpp"
#include "compile/tuning_store.hpp"
#include "render/template_library.hpp"

namespace hmmjit::gpu {
namespace {

class ProviderSource final : public KernelSource {
 public:
  ProviderSource(std::shared_ptr<cache::KernelCache> cache, render::TemplateLibrary templates,
                 Result<std::shared_ptr<const compile::NvrtcLibrary>> compiler,
                 compile::ProviderSettings settings)
      : cache_(std::move(cache)),
        tuning_(
            compile::tuning_wanted()
                ? compile::load_tuning(cache_->settings(), compile::catalogue_version(templates))
                : compile::LoadedTuning{}),
        provider_(std::move(templates), std::move(compiler), *cache_, std::move(settings)) {}

  compile::KernelProvider::Future request(const plan::Plan& plan, int priority) override {
    return provider_.request(plan, priority);
  }
  std::optional<compile::KernelProvider::Future> find(const plan::Plan& plan) override {
    return provider_.find(plan);
  }
  Result<compile::KernelPtr> refused(const plan::Plan& plan, const compile::KernelPtr& kernel,
                                     const std::string& reason) override {
    return provider_.refused(plan, kernel, reason);
  }
  compile::ProviderStatistics statistics() const override { return provider_.statistics(); }
  const plan::TuningTable* tuning() const override { return &tuning_.table; }
  void cancel() override { provider_.cancel(); }

 private:
  std::shared_ptr<cache::KernelCache> cache_;
  const compile::LoadedTuning tuning_;
  compile::KernelProvider provider_;
};

}  // namespace

compile::KernelProvider::Future InstantKernelSource::request(const plan::Plan& plan, int) {
  std::promise<Result<compile::KernelPtr>> promise;
  promise.set_value(make(plan));
  return promise.get_future().share();
}

Result<compile::KernelPtr> InstantKernelSource::refused(const plan::Plan&,
                                                        const compile::KernelPtr&,
                                                        const std::string& reason) {
  return fail(ErrorCode::kCompile, reason);
}

Result<std::unique_ptr<KernelSource>> open_kernel_source(
    int driver_major, compile::ProviderSettings settings,
    std::shared_ptr<cache::KernelCache> cache) {
  if (cache == nullptr) {
    HMMJIT_ASSIGN(cache::Settings cache_settings, cache::settings_from_environment());
    cache = cache::KernelCache::open(std::move(cache_settings));
  }
  HMMJIT_ASSIGN(render::TemplateLibrary templates, render::TemplateLibrary::from_environment());
  compile::NvrtcSearch search = compile::NvrtcSearch::from_environment();
  search.driver_major = driver_major;
  auto compiler = compile::NvrtcLibrary::locate(search);
  return std::make_unique<ProviderSource>(std::move(cache), std::move(templates),
                                          std::move(compiler), std::move(settings));
}

}  // namespace hmmjit::gpu
