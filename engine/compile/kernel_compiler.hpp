// From a plan's candidate to a compiled image: rendered source, options and target make the cache
// key; one NVRTC run makes the image.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cache/cache_key.hpp"
#include "cache/entry_format.hpp"
#include "compile/kernel_image.hpp"
#include "compile/nvrtc_library.hpp"
#include "compile/target.hpp"
#include "core/error.hpp"
#include "plan/plan.hpp"
#include "render/renderer.hpp"

namespace hmmjit::compile {

/// Everything that determines an image, before it is made. Plain data.
struct CompileJob {
  std::string name;  ///< "ssv.warp_striped.sm_90.1f0c54e2a9b3d871": names dumps and overrides
  render::RenderedSource source;
  Target target;
  std::vector<std::string> options;
  cache::CacheKey key;
  std::string plan_json;       ///< of the candidate, kept beside the image
  std::string override_image;  ///< a cubin or PTX to use as it is (HMMJIT_OVERRIDE_DIR)
};

/// For who works on kernels; empty or false: off.
struct DeveloperOptions {
  std::string dump;           ///< receives <name>.cu, .json, .log and .cubin or .ptx of each kernel
  std::string override_from;  ///< <name>.cu or <name>.cubin there is used instead of our own
  /// Profilers and sanitizers then show template lines. Part of the cache's key: an image with
  /// them is four times as large and takes longer to load.
  bool line_info = false;
  /// HMMJIT_DUMP_DIR, HMMJIT_OVERRIDE_DIR and HMMJIT_LINE_INFO (1).
  static DeveloperOptions from_environment();
};

/// Version of the convention between host code and kernels beyond what the rendered source shows
/// (how parameters are passed and who zeroes counters).
inline constexpr std::string_view kLaunchAbi = "1";

/// `compiler` null: the key of a machine without compiler, whose "compiler" component is empty.
Result<CompileJob> make_job(const render::TemplateLibrary& templates,
                            const plan::Candidate& candidate, const plan::DeviceTraits& device,
                            const NvrtcLibrary* compiler, const DeveloperOptions& developer = {});

/// One compile. A source the compiler refuses fails with kCompile: the first diagnostic in template
/// coordinates, the options, the dump folder; the complete log goes to `log` in any case.
/// kInterrupted when `cancelled` said so.
Result<KernelImage> run_job(const CompileJob& job, const NvrtcLibrary& compiler,
                            const std::function<bool()>& cancelled, std::string* log,
                            const DeveloperOptions& developer = {});

/// PTX text of a job whatever its own target kind (for people; never cached).
Result<std::string> ptx_of_job(const CompileJob& job, const NvrtcLibrary& compiler);

cache::Entry to_entry(const CompileJob& job, const KernelImage& image);
/// Fails with kCompile when the entry is not an image of this job (then it is a bad entry).
Result<KernelImage> from_entry(const CompileJob& job, const cache::Entry& entry);

/// Writes the job's files into the dump folder; errors are returned, never fatal to a run.
Status dump_job(const CompileJob& job, const KernelImage* image, const std::string& log,
                const std::string& folder);

}  // namespace hmmjit::compile
