// `hmmjit plan`: which kernels a model would be searched with on a device, and why; and
// `hmmjit cache warm`, which makes the kernels of such plans.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "compile/kernel_provider.hpp"
#include "compile/tuning_store.hpp"
#include "core/diagnostics.hpp"
#include "core/output_file.hpp"
#include "driver/driver.hpp"
#include "gpu/chain_plans.hpp"
#include "hmmjit/command.hpp"
#include "hmmjit/command_cache.hpp"
#include "hmmjit/command_line.hpp"
#include "hmmjit/kernel_emit.hpp"
#include "hmmjit/run_text.hpp"
#include "io/hmm_file.hpp"
#include "plan/catalogue_text.hpp"
#include "plan/plan.hpp"

namespace hmmjit::tools {
namespace {

std::vector<std::string> names_of_stages() {
  std::vector<std::string> out;
  for (int i = 0; i < plan::kStages; ++i)
    out.emplace_back(plan::stage_name(static_cast<plan::Stage>(i)));
  return out;
}

std::string stage_names() { return fmt::format("{}", fmt::join(names_of_stages(), ", ")); }

/// Of the table, without blanks, which do not matter; and what else names a device.
std::vector<std::string> device_names() {
  std::vector<std::string> out{"live", "all"};
  for (const plan::DeviceTraits& device : plan::device_table()) {
    out.push_back(device.name);
    std::erase(out.back(), ' ');
    if (const std::string architecture = plan::architecture_name(device);
        std::ranges::find(out, architecture) == out.end())
      out.push_back(architecture);
  }
  return out;
}

std::vector<std::string> variant_names() {
  std::vector<std::string> out;
  for (int i = 0; i < plan::kStages; ++i) {
    for (const plan::KernelVariant& v : plan::variants_of(static_cast<plan::Stage>(i))) {
      if (std::ranges::find(out, v.name) == out.end()) out.emplace_back(v.name);
    }
  }
  return out;
}

using Json = nlohmann::ordered_json;
using compile::KernelProvider;
using plan::Stage;

struct PlanArguments {
  std::vector<std::string> model_files;
  std::vector<int> lengths;
  std::vector<std::string> devices;
  std::vector<std::string> stages;
  std::string variant, policy = "default", emit, output;
  bool json = false, exact_length = false, summary = false, no_tuned = false, explain = false;
  bool catalogue = false;
};

/// What is planned for: a model of a file, or a bare length.
struct Subject {
  std::string name;
  int length = 0;
  int alphabet_codes = 29;
};

/// Whether some stage has a variant of this name.
Status known_variant(const std::string& name) {
  std::string names;
  for (int i = 0; i < plan::kStages; ++i) {
    const auto stage = static_cast<Stage>(i);
    for (const plan::KernelVariant& v : plan::variants_of(stage)) {
      if (v.name == name) return {};
      fmt::format_to(std::back_inserter(names), "{}{}/{}", names.empty() ? "" : ", ",
                     plan::stage_name(stage), v.name);
    }
  }
  return fail(ErrorCode::kUsage, fmt::format("no variant \"{}\"", name), "--variant",
              "variants: " + names);
}

int report(const Error& error) { return report_failure("plan", error); }

Result<std::vector<Subject>> read_subjects(const PlanArguments& arguments) {
  std::vector<Subject> out;
  for (const std::string& file : arguments.model_files) {
    HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(file));
    for (;;) {
      HMMJIT_ASSIGN(std::optional<Hmm> hmm, reader.next());
      if (!hmm) break;
      out.push_back({hmm->name, hmm->M, hmm->alphabet->Kp});
    }
  }
  for (const int length : arguments.lengths) {
    out.push_back({fmt::format("length {}", length), length, amino_alphabet().Kp});
  }
  if (out.empty()) {
    return fail(ErrorCode::kUsage, "nothing to plan for", {}, "give --model FILE or --length M");
  }
  return out;
}

/// "live", "live:1", a table name or an architecture; nothing given: the GPU of this machine, or
/// the table's H200 where there is none. "all": the table's devices that some compiler serves, or
/// those that `compiler` does, with a note for each of the others. `option` is the one that names
/// them.
Result<std::vector<plan::DeviceTraits>> find_devices(
    const std::vector<std::string>& names, const char* option,
    const compile::NvrtcLibrary* compiler = nullptr) {
  std::vector<plan::DeviceTraits> out;
  std::vector<int> architectures;
  if (compiler != nullptr) {
    HMMJIT_ASSIGN(architectures, compiler->architectures());
  }
  std::shared_ptr<driver::Driver> opened;
  const auto live = [&](int ordinal) -> Result<plan::DeviceTraits> {
    if (!opened) opened = driver::Driver::open();
    return opened->traits(ordinal);
  };
  for (const std::string& name : names) {
    if (name == "all") {
      for (const plan::DeviceTraits& device : plan::device_table()) {
        if (plan::compiler_gap(device)) continue;
        if (compiler != nullptr) {
          const auto target = compile::choose_target(
              device, architectures,
              fmt::format("NVRTC {}.{}", compiler->major(), compiler->minor()));
          if (!target) {
            diagnose("hmmjit: {} left out: {}\n", device.name, target.error().message);
            continue;
          }
        }
        out.push_back(device);
      }
    } else if (name == "live" || name.starts_with("live:")) {
      int ordinal = 0;
      if (name.size() > 5) {
        const auto value = name.substr(5);
        if (value.find_first_not_of("0123456789") != std::string::npos || value.size() > 3) {
          return fail(ErrorCode::kUsage, fmt::format("\"{}\" is no device", name), option,
                      "live, live:0, live:1, ...");
        }
        ordinal = std::stoi(value);
      }
      HMMJIT_ASSIGN(auto traits, live(ordinal));
      out.push_back(std::move(traits));
    } else {
      auto traits = plan::find_device(name);
      if (!traits) {
        traits.error().where = option;
        if (!traits.error().remedy.empty()) traits.error().remedy += ", or \"live\"";
        return std::unexpected(traits.error());
      }
      // PTX for an older architecture may run on what nobody has heard of; it is not what was
      // named.
      const auto known = [&](int capability) { return capability >= traits->capability(); };
      if (compiler != nullptr && std::ranges::none_of(architectures, known) &&
          std::ranges::none_of(plan::device_table(), known, &plan::DeviceTraits::capability)) {
        return fail(ErrorCode::kUsage, fmt::format("no architecture \"{}\" is known", name), option,
                    fmt::format("the newest that NVRTC {}.{} knows is sm_{}", compiler->major(),
                                compiler->minor(), std::ranges::max(architectures)));
      }
      out.push_back(std::move(*traits));
    }
  }
  if (out.empty()) {
    if (auto traits = live(0)) {
      out.push_back(std::move(*traits));
    } else {
      constexpr const char* kStandIn = "H200";
      diagnose("hmmjit: {}; planning for an {} (--device names another)\n",
               opened->report().message, kStandIn);
      HMMJIT_ASSIGN(auto table, plan::find_device(kStandIn));
      out.push_back(std::move(table));
    }
  }
  return out;
}

/// The compiler a search on this machine would use.
Result<std::shared_ptr<const compile::NvrtcLibrary>> locate_compiler() {
  compile::NvrtcSearch search = compile::NvrtcSearch::from_environment();
  search.driver_major = driver::open_cuda_library().report.version / 1000;
  return compile::NvrtcLibrary::locate(search);
}

std::string kernel_identity(const plan::Plan& p) {
  // Variants of several stages may have the same name and the same constants.
  std::string out = fmt::format("{}/{}/{}", plan::architecture_name(p.device),
                                plan::stage_name(p.stage), p.chosen.variant->name);
  for (const auto& [name, value] : p.chosen.constants.list()) {
    fmt::format_to(std::back_inserter(out), "/{}={}", name, value);
  }
  return out;
}

Status write_output(const std::string& path, std::string_view bytes, bool binary) {
  if (path.empty()) {
    if (binary && ::isatty(STDOUT_FILENO) == 1) {
      return fail(ErrorCode::kUsage, "a cubin is not written to a terminal", "--emit cubin",
                  "add -o FILE or redirect the output");
    }
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size() ||
        std::fflush(stdout) != 0) {
      if (standard_output_unread()) return {};  // `| head`: the program ends as others do there
      return fail(ErrorCode::kOutput, "cannot write", "standard output");
    }
    return {};
  }
  HMMJIT_ASSIGN(OutputFile file, OutputFile::create(path));
  file.write(bytes);
  return file.commit();
}

/// --emit: one kernel in the wanted form.
Result<std::string> emitted(const std::string& form, const plan::Plan& p,
                            KernelProvider& provider) {
  if (form == "source") {
    HMMJIT_ASSIGN(const render::RenderedSource source,
                  render::render(provider.templates(), p.chosen));
    return source.text;
  }
  if (form == "ptx") {
    if (!provider.compiler()) return std::unexpected(provider.compiler().error());
    const compile::NvrtcLibrary& compiler = **provider.compiler();
    HMMJIT_ASSIGN(const compile::CompileJob job,
                  compile::make_job(provider.templates(), p.chosen, p.device, &compiler));
    return compile::ptx_of_job(job, compiler);
  }
  HMMJIT_ASSIGN(const compile::KernelPtr kernel, provider.get(p));
  std::vector<std::string> listed;
  for (const plan::Rejection& r : kernel->rejected) {
    if (std::ranges::find(listed, r.reason) != listed.end()) continue;
    listed.push_back(r.reason);
    const auto same = std::ranges::count(kernel->rejected, r.reason, &plan::Rejection::reason);
    diagnose("hmmjit plan: passed over {}{}: {}\n", r.variant,
             same > 1 ? fmt::format(" and {} more", same - 1) : "", r.reason);
  }
  if (form == "log") return kernel->image.log + "\n";
  if (kernel->image.kind != compile::ImageKind::kCubin) {
    return fail(ErrorCode::kUsage, kernel->target.explanation, "--emit " + form,
                "--emit ptx shows what this device gets");
  }
  if (form == "cubin") return kernel->image.bytes;
  return disassemble(kernel->image.bytes);
}

struct CacheText {
  std::string text;
  Json json;
};

CacheText describe_cache(const Result<KernelProvider::CacheState>& state) {
  CacheText out;
  if (!state) {
    out.text = state.error().to_string();
    out.json = {{"state", "unknown"}, {"reason", state.error().to_string()}};
    return out;
  }
  const bool hit = state->layer != cache::Layer::kNone;
  out.json = {{"state", hit ? "hit" : "miss"}, {"kernel", state->name}};
  if (!hit) {
    out.text = fmt::format("not cached ({})", state->reason);
    out.json["reason"] = state->reason;
    return out;
  }
  out.text = fmt::format("cached ({})", cache::layer_name(state->layer));
  out.json["layer"] = cache::layer_name(state->layer);
  if (const auto& r = state->resources; r && r->registers > 0) {
    out.text += fmt::format(", {} registers, {} bytes spilled, {} bytes of static shared memory",
                            r->registers, std::max(r->spill_bytes, 0), r->static_shared_bytes);
    out.json["registers"] = r->registers;
    out.json["spill_bytes"] = std::max(r->spill_bytes, 0);
    out.json["local_bytes"] = r->local_bytes;
    out.json["static_shared_bytes"] = r->static_shared_bytes;
  }
  return out;
}

/// Totals over all plans of a run.
struct Summary {
  std::size_t plans = 0;
  std::set<std::string> kernels;
  double real = 0, computed = 0;
};

int run(const PlanArguments& arguments, const cache::Settings& cache_settings) {
  const auto subjects = read_subjects(arguments);
  if (!subjects) return report(subjects.error());
  const auto devices = find_devices(arguments.devices, "--device");
  if (!devices) return report(devices.error());
  plan::PlanOptions options;
  options.variant = arguments.variant;
  options.exact_length = arguments.exact_length;
  const auto policy = plan::find_policy(arguments.policy);
  if (!policy) {
    return report(Error{ErrorCode::kUsage, fmt::format("no policy \"{}\"", arguments.policy),
                        "--policy", "policies: default, cudampfpp"});
  }
  options.policy = *policy;
  std::vector<Stage> stages;
  for (const std::string& name : arguments.stages) {
    const auto stage = plan::find_stage(name);
    if (!stage) {
      return report(Error{ErrorCode::kUsage, fmt::format("no stage \"{}\"", name), "--stage",
                          "stages: " + stage_names()});
    }
    stages.push_back(*stage);
  }
  const bool all_stages = stages.empty();
  if (!options.variant.empty()) {
    if (const Status known = known_variant(options.variant); !known) return report(known.error());
  }
  for (int i = 0; all_stages && i < plan::kStages; ++i) stages.push_back(static_cast<Stage>(i));

  auto templates = render::TemplateLibrary::from_environment();
  if (!templates) return report(templates.error());
  compile::LoadedTuning tuning;
  if (!arguments.no_tuned && compile::tuning_wanted()) {
    tuning = compile::load_tuning(cache_settings, compile::catalogue_version(*templates));
    options.tuned = &tuning.table;
  }
  const auto cache = cache::KernelCache::open(cache_settings);
  KernelProvider provider(std::move(*templates), locate_compiler(), *cache);

  Summary summary;
  Json list = Json::array();
  std::string text;
  std::string emitted_bytes;
  std::set<std::string> emitted_kernels;
  std::map<std::string, CacheText> cache_states;
  int failures = 0;
  const bool show_search = all_stages && options.variant.empty() && arguments.emit.empty() &&
                           !arguments.summary && !arguments.exact_length &&
                           options.policy == plan::Policy::kDefault;
  for (const plan::DeviceTraits& device : *devices) {
    for (const Subject& subject : *subjects) {
      for (const Stage stage : stages) {
        if (all_stages && plan::variants_of(stage).empty() && options.variant.empty()) continue;
        if (all_stages && !options.variant.empty() &&
            std::ranges::none_of(plan::variants_of(stage), [&](const plan::KernelVariant& v) {
              return v.name == options.variant;
            })) {
          continue;
        }
        const auto p =
            plan::make_plan(stage, subject.length, subject.alphabet_codes, device, options);
        if (!p) {
          ++failures;
          if (arguments.json) {
            list.push_back({{"model", subject.name},
                            {"stage", plan::stage_name(stage)},
                            {"device", device.name},
                            {"error", p.error().to_string()}});
          }
          diagnose("hmmjit plan: {}: {}\n", subject.name, p.error().to_string());
          continue;
        }
        ++summary.plans;
        const std::string identity = kernel_identity(*p);
        summary.kernels.insert(identity);
        summary.real += p->model_length;
        summary.computed += p->chosen.expected.covered_length;
        if (!arguments.emit.empty()) {
          if (!emitted_kernels.insert(identity).second) continue;
          if (arguments.emit == "cubin" && emitted_kernels.size() > 1) {
            return report(Error{ErrorCode::kUsage, "several kernels, one cubin", "--emit cubin",
                                "name one stage, model and device; HMMJIT_DUMP_DIR keeps all"});
          }
          auto bytes = emitted(arguments.emit, *p, provider);
          if (!bytes) return report(bytes.error());
          emitted_bytes += *bytes;
          continue;
        }
        if (arguments.summary) continue;
        auto state = cache_states.find(identity);
        if (state == cache_states.end()) {
          state = cache_states.emplace(identity, describe_cache(provider.cache_state(*p))).first;
        }
        if (arguments.json) {
          Json item = Json::parse(plan::plan_json(*p));
          Json with_name{{"model", subject.name}};
          with_name.update(item);
          with_name["cache"] = state->second.json;
          list.push_back(std::move(with_name));
        } else if (arguments.explain || !show_search) {
          fmt::format_to(std::back_inserter(text), "{}: {}  cache      {}\n", subject.name,
                         plan::plan_text(*p), state->second.text);
        }
      }
    }
  }
  // What the search itself asks for: coarser lengths after SSV.
  Json searches = Json::array();
  for (const plan::DeviceTraits& device : *devices) {
    for (const Subject& subject : *subjects) {
      if (!show_search) break;
      Json kernels = Json::array();
      fmt::format_to(std::back_inserter(text), "{}: a search on {} uses\n", subject.name,
                     device.name);
      std::map<plan::Stage, std::string_view> first_of_stage;
      for (const plan::Plan& p :
           gpu::search_plans(subject.length, subject.alphabet_codes, device, options.tuned)) {
        const CacheText state = describe_cache(provider.cache_state(p));
        const std::string positions = p.class_length < subject.length
                                          ? "any model"
                                          : fmt::format("{} positions", p.class_length);
        const auto [first, only] = first_of_stage.emplace(p.stage, p.chosen.variant->name);
        const std::string targets =
            only ? "" : fmt::format(", of targets that {} leaves undecided", first->second);
        fmt::format_to(std::back_inserter(text), "  {:8} {} for {}{}, {}\n",
                       plan::stage_name(p.stage), p.chosen.variant->name, positions, targets,
                       state.text);
        kernels.push_back({{"stage", plan::stage_name(p.stage)},
                           {"variant", p.chosen.variant->name},
                           {"class_length", p.class_length},
                           {"cache", state.json}});
      }
      searches.push_back(
          {{"model", subject.name}, {"device", device.name}, {"kernels", std::move(kernels)}});
    }
  }
  if (show_search && !arguments.explain && summary.plans > 0)
    text +=
        "Stages after SSV see few targets: models of similar length share their kernels. --explain "
        "or "
        "--stage says more.\n";
  const double padding = summary.real > 0 ? summary.computed / summary.real - 1 : 0;
  if (arguments.json) {
    const Json all{{"plans", std::move(list)},
                   {"searches", std::move(searches)},
                   {"summary",
                    {{"models", subjects->size()},
                     {"devices", devices->size()},
                     {"plans", summary.plans},
                     {"failed", failures},
                     {"kernels", summary.kernels.size()},
                     {"padding", padding}}}};
    text = all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  } else if (arguments.emit.empty() && summary.plans > 0) {
    fmt::format_to(std::back_inserter(text), "{}, {}, {}, {}, {:.1f} % padded cells\n",
                   counted(subjects->size(), "model"), counted(devices->size(), "device"),
                   counted(summary.plans, "plan"), counted(summary.kernels.size(), "kernel"),
                   100 * padding);
  }
  const bool emits = !arguments.emit.empty();
  // A kernel that was not made leaves the file of the last one alone; so does a run without a plan.
  if (failures > 0 && (emits || summary.plans == 0) && !arguments.output.empty()) {
    return static_cast<int>(ErrorCode::kCompile);
  }
  if (const Status written =
          write_output(arguments.output, emits ? emitted_bytes : text, arguments.emit == "cubin");
      !written) {
    return report(written.error());
  }
  return failures > 0 ? static_cast<int>(ErrorCode::kCompile) : 0;
}

}  // namespace

int command_plan(const std::vector<std::string>& arguments) {
  PlanArguments given;
  CLI::App app{"Shows which kernels score a model on a device, and why. Needs no GPU.",
               "hmmjit plan"};
  app.add_option("-m,--model,files", given.model_files, "profile HMM file(s); - for stdin");
  app.add_option("--length", given.lengths, "model length(s), where no file is at hand")
      ->check(CLI::PositiveNumber);
  const auto* device =
      app.add_option(
             "--device", given.devices,
             "device name (H200, RTX 4090, ...), architecture (sm_90), live, live:N, or all")
          ->delimiter(',');
  const auto* stage =
      app.add_option("--stage", given.stages, stage_names() + " [all]")->delimiter(',');
  const auto* variant = app.add_option("--variant", given.variant, "use this kernel variant");
  const auto* policy = app.add_option("--policy", given.policy, "default or cudampfpp [default]");
  offer(device, device_names());
  offer(stage, names_of_stages());
  offer(variant, variant_names());
  offer(policy, {"default", "cudampfpp"});
  app.add_flag("--exact-length", given.exact_length,
               "specialise for the model's own length instead of its size class");
  app.add_flag("--no-tuned", given.no_tuned, "predictions only, whatever hmmjit tune has measured");
  app.add_option("--emit", given.emit, "print the kernel instead: source, ptx, cubin, sass, log")
      ->check(CLI::IsMember({"source", "ptx", "cubin", "sass", "log"}));
  app.add_option("-o,--output", given.output, "write to this file instead of standard output");
  app.add_flag("--summary", given.summary, "totals only");
  app.add_flag("--catalogue", given.catalogue,
               "print what docs/kernels.md holds: every kernel of every stage");
  app.add_flag(
      "--explain", given.explain,
      "also the plan of every stage for the model's own size class, with what was rejected");
  app.add_flag("--json", given.json, "machine-readable output");
  CacheOptions cache_options;
  cache_options.add_to(app);
  if (const auto status = parse_command_line(app, arguments)) return *status;
  if (given.json && !given.emit.empty()) {
    return report(Error{ErrorCode::kUsage, "--emit prints the kernel itself, not JSON", "--json",
                        "leave out --json, or --emit"});
  }
  if (given.catalogue) {
    const Status written = write_output(given.output, plan::catalogue_text(), false);
    return written ? 0 : report(written.error());
  }
  const auto settings = cache_options.settings();
  if (!settings) return report(settings.error());
  cache::Settings with_warnings = *settings;
  with_warnings.on_warning = [](const Error& warning) {
    diagnose("hmmjit plan: warning: {}\n", warning.to_string());
  };
  return run(given, with_warnings);
}

namespace {

// Compiles what searches of the models will ask for into the cache; needs a compiler, no GPU. Empty
// lists mean the architecture of the GPU of this machine, every stage, and no lengths beyond the
// models'.
Result<WarmReport> warm_kernels(cache::KernelCache& cache, const WarmRequest& request) {
  HMMJIT_ASSIGN(auto templates, render::TemplateLibrary::from_environment());
  HMMJIT_ASSIGN(auto compiler, locate_compiler());
  HMMJIT_ASSIGN(const auto devices, find_devices(request.targets, "--target", compiler.get()));
  PlanArguments arguments;
  arguments.model_files = request.models;
  arguments.lengths = request.lengths;
  for (int length = 1; length <= request.up_to; length = plan::class_length(length) + 1)
    arguments.lengths.push_back(length);
  HMMJIT_ASSIGN(const auto subjects, read_subjects(arguments));
  std::vector<Stage> stages;
  for (const std::string& name : request.stages) {
    const auto stage = plan::find_stage(name);
    if (!stage) {
      return fail(ErrorCode::kUsage, fmt::format("no stage \"{}\"", name), "cache warm",
                  "stages: " + stage_names());
    }
    stages.push_back(*stage);
  }
  for (int i = 0; request.stages.empty() && i < plan::kStages; ++i) {
    stages.push_back(static_cast<Stage>(i));
  }

  compile::LoadedTuning tuning;
  if (compile::tuning_wanted()) {
    tuning = compile::load_tuning(cache.settings(), compile::catalogue_version(templates));
  }
  KernelProvider provider(std::move(templates), std::move(compiler), cache);
  WarmReport out;
  std::map<std::string, KernelProvider::Future> kernels;
  for (const plan::DeviceTraits& device : devices) {
    for (const Subject& subject : subjects) {
      const auto plans =
          gpu::search_plans(subject.length, subject.alphabet_codes, device, &tuning.table);
      if (plans.empty()) {
        out.failures.push_back(
            {ErrorCode::kCompile, "no kernel for " + device.name, subject.name, {}});
      }
      for (const plan::Plan& p : plans) {
        if (std::ranges::find(stages, p.stage) == stages.end()) continue;
        const std::string identity = kernel_identity(p);
        if (!kernels.contains(identity)) kernels.emplace(identity, provider.request(p));
      }
    }
  }
  for (auto& [identity, future] : kernels) {
    const auto& kernel = future.get();
    if (!kernel) {
      out.failures.push_back(kernel.error());
    } else {
      ++((*kernel)->origin == cache::Layer::kNone ? out.made : out.present);
    }
  }
  return out;
}

}  // namespace

int command_cache(const std::vector<std::string>& arguments) {
  std::string name = "cache";
  std::vector<std::string> copies = arguments;
  std::vector<char*> argv{name.data()};
  for (std::string& argument : copies) argv.push_back(argument.data());
  argv.push_back(nullptr);
  return command_cache(static_cast<int>(argv.size()) - 1, argv.data(), warm_kernels,
                       {device_names(), names_of_stages()});
}

}  // namespace hmmjit::tools
