// `hmmjit doctor`: checks that this machine can plan, compile, cache, load and launch; shows
// remedies.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "bench/self_check.hpp"
#include "compile/kernel_provider.hpp"
#include "core/threads.hpp"
#include "core/trace.hpp"
#include "driver/driver.hpp"
#include "hmmjit/command.hpp"
#include "hmmjit/command_cache.hpp"
#include "hmmjit/fields.hpp"
#include "hmmjit/kernel_emit.hpp"
#include "plan/plan.hpp"

namespace hmmjit::tools {
namespace {

enum class Outcome { kOk, kNote, kProblem };

struct Check {
  std::string name;
  Outcome outcome = Outcome::kOk;
  std::string finding = {};
  std::string remedy = {};
  Json details = {};

  void problem(std::string what, std::string what_to_do = {}) {
    outcome = Outcome::kProblem;
    finding = std::move(what);
    remedy = std::move(what_to_do);
  }
};

const char* outcome_name(Outcome outcome) {
  constexpr std::array kNames{"ok", "note", "problem"};
  return kNames[static_cast<std::size_t>(outcome)];
}

Check check_driver(const driver::Driver& driver) {
  const driver::DriverReport& report = driver.report();
  // A machine without a GPU is ordinary: a search on the CPU needs none. A stub, an old or a broken
  // driver is worth a warning.
  const bool ordinary = report.state == driver::DriverState::kNoDriver ||
                        report.state == driver::DriverState::kNoDevice ||
                        report.state == driver::DriverState::kNotBuilt;
  return {"driver",
          driver.ready() ? Outcome::kOk
          : ordinary     ? Outcome::kNote
                         : Outcome::kProblem,
          report.message,
          report.remedy,
          {{"state", driver::driver_state_name(report.state)},
           {"version", report.version},
           {"library", report.path}}};
}

Check check_device(const driver::Driver& driver, int ordinal, const std::vector<int>& architectures,
                   const std::string& compiler) {
  Check out{fmt::format("device {}", ordinal)};
  const auto traits = driver.traits(ordinal);
  if (!traits) {
    out.problem(traits.error().to_string());
    return out;
  }
  out.finding = fmt::format("{}, compute capability {}.{}, {} SMs, {:.1f} GiB", traits->name,
                            traits->major, traits->minor, traits->sm_count,
                            static_cast<double>(traits->memory_bytes) / (1 << 30));
  out.details = {{"name", traits->name},
                 {"capability", fmt::format("{}.{}", traits->major, traits->minor)},
                 {"sm_count", traits->sm_count},
                 {"clock_khz", traits->clock_khz},
                 {"memory_bytes", traits->memory_bytes},
                 {"shared_per_block", traits->shared_per_block_limit}};
  if (architectures.empty()) return out;
  if (const auto target = compile::choose_target(*traits, architectures, compiler)) {
    out.finding += fmt::format("; kernels as {} for {}", compile::image_kind_name(target->kind),
                               target->architecture);
    out.details["target"] = target->architecture;
    if (!target->explanation.empty()) {
      out.outcome = Outcome::kNote;
      out.finding += fmt::format(" ({})", target->explanation);
    }
  } else {
    out.problem(out.finding + "; " + target.error().message, target.error().remedy);
  }
  return out;
}

Check check_compiler(const Result<std::shared_ptr<const compile::NvrtcLibrary>>& compiler,
                     std::vector<int>& architectures) {
  Check out{"compiler"};
  const auto failed = [&](const Error& error) {
    out.outcome = Outcome::kNote;
    out.finding = error.message + (error.where.empty() ? "" : " (" + error.where + ")");
    out.remedy = error.remedy;
    return out;
  };
  if (!compiler) return failed(compiler.error());
  const compile::NvrtcLibrary& nvrtc = **compiler;
  const auto known = nvrtc.queried_architectures();
  if (!known) {
    failed(known.error());
    out.outcome = Outcome::kProblem;
    return out;
  }
  architectures = *known;
  std::string list;
  for (const int a : architectures) list += (list.empty() ? "" : " ") + std::to_string(a);
  out.finding = fmt::format("NVRTC {}.{} in {}, architectures {}", nvrtc.major(), nvrtc.minor(),
                            nvrtc.path(), list);
  out.details = {{"path", nvrtc.path()},
                 {"version", fmt::format("{}.{}", nvrtc.major(), nvrtc.minor())},
                 {"identity", nvrtc.identity()},
                 {"architectures", architectures}};
  return out;
}

Check check_templates(const Result<render::TemplateLibrary>& templates) {
  Check out{"kernels"};
  if (!templates) {
    out.problem(templates.error().to_string());
    return out;
  }
  std::string counts;
  Json variants = Json::object();
  for (int i = 0; i < plan::kStages; ++i) {
    const auto stage = static_cast<plan::Stage>(i);
    Json names = Json::array();
    for (const plan::KernelVariant& v : plan::variants_of(stage)) names.push_back(v.name);
    counts +=
        fmt::format("{}{} {}", counts.empty() ? "" : ", ", names.size(), plan::stage_name(stage));
    variants[std::string(plan::stage_name(stage))] = std::move(names);
  }
  out.finding = fmt::format("{} templates ({}); variants: {}", templates->texts().size(),
                            templates->origin(), counts);
  out.details = {{"origin", templates->origin()}, {"variants", std::move(variants)}};
  return out;
}

Check check_cache(const cache::KernelCache& cache) {
  Check out{"cache"};
  const cache::Settings& settings = cache.settings();
  out.details = {{"directory", settings.directory}, {"mode", cache::mode_name(settings.mode)}};
  if (cache.user_store() != nullptr) {
    out.finding =
        fmt::format("{}, mode {}", cache.user_store()->root(), cache::mode_name(settings.mode));
    // As a search does before it stores its first kernel; a search only warns.
    const bool stores =
        settings.mode == cache::Mode::kReadWrite || settings.mode == cache::Mode::kRefresh;
    if (const Status usable = stores ? cache.user_store()->prepare() : Status{}; !usable) {
      out.problem(usable.error().to_string() + "; kernels are compiled anew in every run",
                  usable.error().remedy);
    } else if (stores && ::access(cache.user_store()->root().c_str(), W_OK | X_OK) != 0) {
      out.problem(fmt::format("{} cannot be written; kernels are compiled anew in every run",
                              cache.user_store()->root()),
                  "name a folder of your own in HMMJIT_CACHE_DIR, or use mode ro");
    }
  } else if (const auto& error = cache.user_store_error()) {
    out.problem(error->message + "; kernels live in memory only", error->remedy);
  } else {
    out.outcome = Outcome::kNote;
    out.finding = fmt::format("memory only (mode {})", cache::mode_name(settings.mode));
  }
  return out;
}

/// The system's cache folder, searched before the user's.
Check check_system_folder(const cache::KernelCache& cache) {
  Check out{"system folder"};
  const std::string& directory = cache.settings().system_directory;
  out.details = {{"directory", directory}};
  if (directory.empty()) {
    out.finding = "none is wanted";
    return out;
  }
  const auto store = cache::EntryStore::open(directory, cache::StoreOptions::of_system_folder());
  if (!store) {
    out.outcome = Outcome::kNote;
    out.finding = store.error().to_string();
  } else if (!store->exists()) {
    out.finding = directory + " does not exist";
  } else {
    const std::size_t kernels = store->scan().entries.size();
    out.finding = fmt::format("{}, {} kernel{}", directory, kernels, kernels == 1 ? "" : "s");
    out.details["kernels"] = kernels;
  }
  return out;
}

/// Shows, on a machine without GPU, the needs of a job on a machine with one.
Check gpu_needs() {
  return {
      "GPU jobs",
      Outcome::kNote,
      "need a GPU of compute capability 7.5 or later, the NVIDIA driver for CUDA 12 or 13, and "
      "NVRTC 12 or 13, no newer than the driver",
      "run hmmjit doctor --require-gpu on a machine of that kind, as a batch job where it takes "
      "one; hmmjit plan --device NAME shows what it would run",
      {}};
}

/// Serves one image, which already exists.
class OneKernel final : public gpu::InstantKernelSource {
 public:
  OneKernel(const plan::Candidate& candidate, const compile::CompileJob& job,
            compile::KernelImage image) {
    auto kernel = std::make_shared<compile::Kernel>();
    kernel->name = job.name;
    kernel->candidate = candidate;
    kernel->target = job.target;
    kernel->image = std::move(image);
    kernel_ = std::move(kernel);
  }

 private:
  Result<compile::KernelPtr> make(const plan::Plan&) override { return kernel_; }
  compile::KernelPtr kernel_;
};

/// Loads and launches an image, and compares its answers with the CPU's.
Check check_launch(const std::shared_ptr<driver::Driver>& driver, int ordinal,
                   const plan::Plan& plan, const compile::CompileJob& job,
                   compile::KernelImage image) {
  Check out{fmt::format("launch {}", ordinal)};
  OneKernel kernels(plan.chosen, job, std::move(image));
  const auto measured = bench::self_check(driver, ordinal, kernels, plan);
  if (!measured || !measured->refused.empty()) {
    out.problem(measured ? measured->refused : measured.error().to_string(),
                measured || measured.error().remedy.empty()
                    ? "searches run on the CPU meanwhile; check nvidia-smi, or update the driver"
                    : measured.error().remedy);
    return out;
  }
  const int planned = plan.chosen.occupancy.blocks_per_sm;
  out.details = {{"load_ms", measured->load_milliseconds},
                 {"answers", measured->targets},
                 {"wrong", measured->wrong},
                 {"blocks_per_sm", measured->blocks_per_sm},
                 {"planned_blocks_per_sm", planned}};
  if (measured->wrong > 0) {
    out.problem(fmt::format("{} of {} answers differ from the CPU's: {}", measured->wrong,
                            measured->targets, measured->first_wrong),
                "do not use this GPU; search with --device cpu, and report this");
    return out;
  }
  out.finding = fmt::format(
      "loaded in {:.2f} ms; {} answers, all equal to the CPU's; {} blocks an "
      "SM, {} planned",
      measured->load_milliseconds, measured->targets, measured->blocks_per_sm, planned);
  if (measured->blocks_per_sm < planned) out.outcome = Outcome::kNote;
  return out;
}

/// Makes one small kernel without the cache for each architecture that is here (without a device:
/// for a stand-in), and launches it on every device.
std::vector<Check> check_test_kernels(const render::TemplateLibrary& templates,
                                      const compile::NvrtcLibrary& compiler,
                                      const std::shared_ptr<driver::Driver>& driver) {
  std::vector<Check> out;
  std::map<std::string, compile::KernelImage> made;
  for (int i = 0; i < std::max(1, driver->device_count()); ++i) {
    plan::DeviceTraits device = *plan::find_device("H200");
    bool live = false;
    if (driver->ready()) {
      if (auto traits = driver->traits(i)) {
        device = std::move(*traits);
        live = true;
      }
    }
    const auto planned = plan::make_plan(plan::Stage::kSsv, bench::kSelfCheckLength, 29, device);
    const auto job = planned ? compile::make_job(templates, planned->chosen, device, &compiler)
                             : Result<compile::CompileJob>(std::unexpected(planned.error()));
    if (!job) {
      out.emplace_back(Check{"test kernel"}).problem(job.error().to_string());
      continue;
    }
    if (!made.contains(job->name)) {
      Check& check = out.emplace_back(Check{"test kernel"});
      const double start = Trace::now();
      auto image = compile::run_job(*job, compiler, {}, nullptr);
      if (!image) {
        check.problem(image.error().to_string());
        continue;
      }
      check.finding = fmt::format("{} compiled for {} in {:.0f} ms: {} registers, {} bytes spilled",
                                  planned->chosen.variant->name, image->architecture,
                                  1000 * (Trace::now() - start), image->resources.registers,
                                  std::max(image->resources.spill_bytes, 0));
      check.details = {{"kernel", job->name},
                       {"registers", image->resources.registers},
                       {"spill_bytes", image->resources.spill_bytes}};
      made.emplace(job->name, std::move(*image));
    }
    if (live) out.push_back(check_launch(driver, i, *planned, *job, made.at(job->name)));
  }
  return out;
}

// All checks, in display order.
std::vector<Check> all_checks(const std::shared_ptr<driver::Driver>& driver,
                              const Result<std::shared_ptr<const compile::NvrtcLibrary>>& compiler,
                              const cache::Settings& settings) {
  std::vector<Check> checks;
  checks.push_back({"cpu",
                    Outcome::kOk,
                    fmt::format("{} cores available", available_cores()),
                    {},
                    {{"cores", available_cores()}}});
  checks.push_back(check_driver(*driver));
  std::vector<int> architectures;
  checks.push_back(check_compiler(compiler, architectures));
  const int driver_major = driver->ready() ? driver->report().version / 1000 : 0;
  if (compiler && driver_major > 0 && (*compiler)->major() > driver_major) {
    // A launch below shows whether the driver accepts its images.
    checks.back().finding += fmt::format("; newer than the driver, which is for CUDA {}.{}",
                                         driver_major, driver->report().version % 1000 / 10);
  }
  const std::string compiler_name =
      compiler ? fmt::format("NVRTC {}.{}", (*compiler)->major(), (*compiler)->minor()) : "";
  for (int i = 0; i < driver->device_count(); ++i) {
    checks.push_back(check_device(*driver, i, architectures, compiler_name));
  }
  const auto templates = render::TemplateLibrary::from_environment();
  checks.push_back(check_templates(templates));
  const auto cache = cache::KernelCache::open(settings);
  checks.push_back(check_cache(*cache));
  checks.push_back(check_system_folder(*cache));
  if (compiler && !architectures.empty() && templates) {
    for (Check& check : check_test_kernels(*templates, **compiler, driver)) {
      checks.push_back(std::move(check));
    }
  }
  if (driver->device_count() == 0) checks.push_back(gpu_needs());
  const std::string disassembler = find_disassembler();
  checks.push_back({"disassembler",
                    disassembler.empty() ? Outcome::kNote : Outcome::kOk,
                    disassembler.empty() ? "none; only --emit sass needs one" : disassembler,
                    disassembler.empty() ? "CUDA toolkit: nvdisasm or cuobjdump" : "",
                    {}});

  return checks;
}

Json checks_json(const std::vector<Check>& checks, bool gpu) {
  Json list = Json::array();
  for (const Check& c : checks) {
    Json item{{"check", c.name}, {"outcome", outcome_name(c.outcome)}, {"finding", c.finding}};
    if (!c.remedy.empty()) item["remedy"] = c.remedy;
    if (!c.details.is_null()) item["details"] = c.details;
    list.push_back(std::move(item));
  }
  return {{"checks", std::move(list)}, {"gpu", gpu}};
}

std::string checks_text(const std::vector<Check>& checks, bool gpu) {
  std::string out;
  for (const Check& c : checks) {
    out += fmt::format("{:<8} {:<13} {}\n", outcome_name(c.outcome), c.name, c.finding);
    if (!c.remedy.empty()) out += fmt::format("{:<22} -> {}\n", "", c.remedy);
  }
  return out +
         (gpu ? "\nThis machine can search on its GPU.\n" : "\nSearches run on the CPU here.\n");
}

Result<int> run_doctor(const ParsedOptions& options) {
  HMMJIT_ASSIGN(const cache::Settings settings, cache_settings(options));
  const auto driver = driver::Driver::open();
  compile::NvrtcSearch search = compile::NvrtcSearch::from_environment();
  if (driver->ready()) search.driver_major = driver->report().version / 1000;
  const auto compiler = compile::NvrtcLibrary::locate(search);
  const std::vector<Check> checks = all_checks(driver, compiler, settings);
  const bool problem =
      std::ranges::find(checks, Outcome::kProblem, &Check::outcome) != checks.end();
  const bool gpu = driver->ready() && compiler && !problem;
  fmt::print("{}", options.is_set("--json") ? json_text(checks_json(checks, gpu))
                                            : checks_text(checks, gpu));
  if (options.is_set("--require-gpu") && !gpu) return static_cast<int>(ErrorCode::kNoDevice);
  return problem ? static_cast<int>(ErrorCode::kResources) : 0;
}

}  // namespace

CommandSpec doctor_command() {
  return {"doctor",
          "check driver, compiler and cache, with a remedy for each problem (exit status 5)",
          {},
          with_cache_options(
              {help_option(),
               kPrintJson,
               {kPlain, "--require-gpu", "", "exit with status 4 unless a GPU can be used"}}),
          run_doctor};
}

}  // namespace hmmjit::tools
