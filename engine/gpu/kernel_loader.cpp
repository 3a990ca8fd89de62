#include "gpu/kernel_loader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hmmjit::gpu {
namespace {

/// Makes the next candidate the plan's choice. Candidates of the same variant come last, because a
/// compiler that handles one of them badly is likely to do so with all.
Status pass_over(plan::Plan& plan, const compile::Kernel& kernel, const std::string& reason) {
  const plan::KernelVariant* variant = kernel.candidate.variant;
  plan.rejected.push_back({std::string(variant->name), reason});
  std::erase_if(plan.fallbacks, [&](const plan::Candidate& c) {
    return c.variant == variant && c.constants == kernel.candidate.constants;
  });
  std::ranges::stable_partition(plan.fallbacks,
                                [&](const plan::Candidate& c) { return c.variant != variant; });
  if (plan.fallbacks.empty()) {
    return fail(ErrorCode::kCompile, fmt::format("the driver's code for it {}", reason),
                kernel.name, "install an NVRTC that knows this device");
  }
  plan.chosen = std::move(plan.fallbacks.front());
  plan.fallbacks.erase(plan.fallbacks.begin());
  return {};
}

/// The same kernel, with the previously passed over candidates added.
compile::KernelPtr with_rejections(const compile::KernelPtr& kernel,
                                   const std::vector<plan::Rejection>& rejected) {
  if (rejected.empty()) return kernel;
  auto copy = std::make_shared<compile::Kernel>(*kernel);
  copy->rejected.insert(copy->rejected.begin(), rejected.begin(), rejected.end());
  return copy;
}

}  // namespace

std::shared_ptr<KernelLoader::Image> KernelLoader::image_of(const std::string& kernel_name) {
  const MutexLock lock(mutex_);
  std::shared_ptr<Image>& image = images_[kernel_name];
  if (image == nullptr) image = std::make_shared<Image>();
  return image;
}

// May replace `kernel` by another one; nothing has been loaded then.
Status KernelLoader::open(Image& image, compile::KernelPtr& kernel, const plan::Plan& plan,
                          KernelSource& source) {
  const auto load = [&] {
    return driver::LoadedKernel::load(driver_, kernel->image.bytes, kernel->image.entry_name);
  };
  const std::string name = kernel->name;
  // A later caller with the refused image gets the one that replaced it.
  if (image.remade != nullptr) kernel = image.remade;
  if (kernel->name != name) return {};
  auto loaded = load();
  if (!loaded && loaded.error().code == ErrorCode::kCompile && image.remade == nullptr) {
    HMMJIT_ASSIGN(kernel, source.refused(plan, kernel, loaded.error().to_string()));
    image.remade = kernel;
    if (kernel->name != name) return {};  // a fallback, as the new image broke its promises
    loaded = load();
  }
  if (!loaded) return std::unexpected(loaded.error());
  image.loaded = *std::move(loaded);
  ++loaded_;
  return {};
}

Result<ReadyKernel> KernelLoader::load(const plan::Plan& plan, compile::KernelPtr kernel,
                                       const driver::Device& device, KernelSource& source) {
  std::optional<plan::Plan> reduced;  // without the candidates that were passed over
  std::vector<plan::Rejection> rejected;
  for (;;) {
    const std::shared_ptr<Image> image = image_of(kernel->name);
    std::string reason;
    {
      const MutexLock lock(image->mutex);
      if (image->loaded == nullptr) {
        HMMJIT_TRY(open(*image, kernel, reduced ? *reduced : plan, source));
        if (image->loaded == nullptr) continue;
      }
      auto known = image->prepared.find(device.ordinal());
      if (known == image->prepared.end()) {
        const plan::LaunchShape& launch = kernel->candidate.expected.launch;
        HMMJIT_ASSIGN(
            const driver::LoadedResources found,
            image->loaded->prepare(device, launch.block_threads, launch.dynamic_shared_bytes));
        // Promises of PTX can be checked only after the driver has compiled it.
        std::optional<std::string> broken;
        if (kernel->image.kind == compile::ImageKind::kPtx) {
          broken = compile::gate({.registers = found.registers,
                                  .local_bytes = found.local_bytes,
                                  .static_shared_bytes = found.static_shared_bytes,
                                  .max_threads = found.max_threads},
                                 kernel->candidate, device.traits());
        }
        known = image->prepared.emplace(device.ordinal(), Prepared{found, broken}).first;
      }
      const auto& [resources, broken_promise] = known->second;
      if (!broken_promise)
        return ReadyKernel({with_rejections(kernel, rejected), image->loaded, resources},
                           plan.alphabet_codes);
      reason = *broken_promise;
    }
    if (!reduced) reduced = plan;
    HMMJIT_TRY(pass_over(*reduced, *kernel, reason));
    rejected.push_back(reduced->rejected.back());
    HMMJIT_ASSIGN(kernel, source.get(*reduced));
  }
}

}  // namespace hmmjit::gpu
