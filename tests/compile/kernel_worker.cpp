// A process that requests one kernel: kernel_worker <model length> <device>. Prints its events and
// the digest of the image.
#include <cstdio>
#include <cstdlib>

#include "compile/kernel_provider.hpp"
#include "core/digest.hpp"

int main(int argc, char** argv) {
  using namespace hmmjit;
  if (argc != 3) return 2;
  const auto settings = cache::settings_from_environment();
  const auto templates = render::TemplateLibrary::from_environment();
  const auto device = plan::find_device(argv[2]);
  if (!settings || !templates || !device) return 3;
  plan::PlanOptions options;
  options.variant = "warp_striped";
  const auto planned = plan::make_plan(plan::Stage::kSsv, std::atoi(argv[1]), 29, *device, options);
  if (!planned) return 4;
  const auto cache = cache::KernelCache::open(*settings);
  compile::KernelProvider provider(*templates, compile::NvrtcLibrary::locate(), *cache);
  const auto kernel = provider.get(*planned);
  if (!kernel) {
    std::fprintf(stderr, "%s\n", kernel.error().to_string().c_str());
    return static_cast<int>(kernel.error().code);
  }
  std::printf("compiled=%d digest=%s\n", static_cast<int>(provider.statistics().compiled),
              digest_of((*kernel)->image.bytes).hex().c_str());
  return 0;
}
