#include "gpu/kernel_source.hpp"

#include <future>
#include <utility>

#include "compile/nvrtc_library.hpp"
#include "compile/tuning_store.hpp"
#include "render/template_library.hpp"

namespace hmmjit::gpu {
namespace {

// A provider and the objects that it needs.
struct OwnProvider {
  OwnProvider(std::shared_ptr<cache::KernelCache> kernels, render::TemplateLibrary templates,
              Result<std::shared_ptr<const compile::NvrtcLibrary>> compiler,
              compile::ProviderSettings settings)
      : cache(std::move(kernels)),
        tuning(compile::tuning_wanted()
                   ? compile::load_tuning(cache->settings(), compile::catalogue_version(templates))
                   : compile::LoadedTuning{}),
        provider(std::move(templates), std::move(compiler), *cache, std::move(settings)) {}
  std::shared_ptr<cache::KernelCache> cache;
  const compile::LoadedTuning tuning;
  compile::KernelProvider provider;
};

class OwnKernels final : private OwnProvider, public ProviderKernels {
 public:
  template <typename... Arguments>
  explicit OwnKernels(Arguments&&... arguments)
      : OwnProvider(std::forward<Arguments>(arguments)...), ProviderKernels(provider) {}
  const plan::TuningTable* tuning() const override { return &OwnProvider::tuning.table; }
};

}  // namespace

Result<compile::KernelPtr> KernelSource::get(const plan::Plan& plan) {
  std::promise<Result<compile::KernelPtr>> promise;
  request(plan, 0, [&](const Result<compile::KernelPtr>& made) { promise.set_value(made); });
  return promise.get_future().get();
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
  return std::make_unique<OwnKernels>(std::move(cache), std::move(templates), std::move(compiler),
                                      std::move(settings));
}

}  // namespace hmmjit::gpu
