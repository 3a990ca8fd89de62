#include "gpu/kernel_source.hpp"

#include <future>
#include <utility>

#include "compile/nvrtc_library.hpp"
#include "compile/tuning_store.hpp"
#include "render/template_library.hpp"

namespace hmmjit::gpu {

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
  // A provider and what it needs.
  struct Own {
    std::shared_ptr<cache::KernelCache> cache;
    compile::LoadedTuning tuning;
    compile::KernelProvider provider;
  };
  compile::LoadedTuning tuning;
  if (compile::tuning_wanted())
    tuning = compile::load_tuning(cache->settings(), compile::catalogue_version(templates));
  const std::shared_ptr<Own> own(
      new Own{cache, std::move(tuning),
              compile::KernelProvider(std::move(templates), compile::NvrtcLibrary::locate(search),
                                      *cache, std::move(settings))});
  return std::make_unique<ProviderKernels>(
      std::shared_ptr<compile::KernelProvider>(own, &own->provider), &own->tuning.table);
}

}  // namespace hmmjit::gpu
