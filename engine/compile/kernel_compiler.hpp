// Compiles a plan's candidate with one NVRTC run. Rendered source, options and target form the
// cache key.
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

/// Everything that determines an image. Plain data.
struct CompileJob {
  std::string name;  ///< "ssv.warp_striped.sm_90.1f0c54e2a9b3d871": its name in dumps and overrides
  render::RenderedSource source;
  Target target;
  std::vector<std::string> options;
  cache::CacheKey key;
  std::string plan_json;       ///< describes the candidate; stored with the image
  std::string override_image;  ///< a cubin or PTX to use unmodified (HMMJIT_OVERRIDE_DIR)
};

/// For kernel developers; empty or false: off.
struct DeveloperOptions {
  std::string dump;           ///< receives <name>.cu, .json, .log and .cubin or .ptx of each kernel
  std::string override_from;  ///< <name>.cu or <name>.cubin in this folder replaces ours
  /// Lets profilers and sanitizers show template lines. Part of the cache key: such images are four
  /// times as large and load more slowly.
  bool line_info = false;
  /// HMMJIT_DUMP_DIR, HMMJIT_OVERRIDE_DIR and HMMJIT_LINE_INFO (1).
  static DeveloperOptions from_environment();
};

/// Version of the launch conventions that the rendered source does not show: passing of parameters,
/// zeroing of counters.
inline constexpr std::string_view kLaunchAbi = "1";

/// `compiler` may be null, on a machine without one: the key's component "compiler" is then empty.
Result<CompileJob> make_job(const render::TemplateLibrary& templates,
                            const plan::Candidate& candidate, const plan::DeviceTraits& device,
                            const NvrtcLibrary* compiler, const DeveloperOptions& developer = {});

/// Runs the compiler once. If it rejects the source, fails with kCompile and names the first
/// diagnostic in template coordinates, the options and the dump folder; `log` always receives the
/// complete log. Fails with kInterrupted once `cancelled` returns true.
Result<KernelImage> run_job(const CompileJob& job, const NvrtcLibrary& compiler,
                            const std::function<bool()>& cancelled, std::string* log,
                            const DeveloperOptions& developer = {});

/// PTX text of a job with any target kind, for display; never cached.
Result<std::string> ptx_of_job(const CompileJob& job, const NvrtcLibrary& compiler);

cache::Entry to_entry(const CompileJob& job, const KernelImage& image);
/// Fails with kCompile if the entry is invalid, because it holds no image of this job.
Result<KernelImage> from_entry(const CompileJob& job, const cache::Entry& entry);

/// Writes the job's files to the dump folder. Callers report errors, but continue.
Status dump_job(const CompileJob& job, const KernelImage* image, const std::string& log,
                const std::string& folder);

}  // namespace hmmjit::compile
