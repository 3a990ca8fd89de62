// `hmmjit plan`: shows the kernels that would search with a model on a device, and the reasons.
// `hmmjit cache warm`: makes the kernels of such plans.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "compile/kernel_provider.hpp"
#include "compile/tuning_store.hpp"
#include "core/diagnostics.hpp"
#include "driver/driver.hpp"
#include "gpu/chain_plans.hpp"
#include "hmmjit/command.hpp"
#include "hmmjit/command_cache.hpp"
#include "hmmjit/fields.hpp"
#include "hmmjit/kernel_emit.hpp"
#include "hmmjit/output_names.hpp"
#include "hmmjit/run_text.hpp"
#include "hmmjit/search_inputs.hpp"
#include "hmmjit/search_options.hpp"
#include "io/hmm_file.hpp"
#include "io/text_output.hpp"
#include "parts/model_index.hpp"
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

/// Names of devices: those of the table, without blanks, and others.
std::vector<std::string> device_names() {
  std::vector<std::string> out{"gpu", "all"};
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

using compile::KernelProvider;
using plan::Stage;

/// The subject of a plan: a model from a file, or only a length.
struct Subject {
  std::string name;
  int length = 0;
  int alphabet_codes = 29;
};

Result<std::vector<Subject>> read_subjects(const std::vector<std::string>& model_files,
                                           const std::vector<int>& lengths) {
  std::vector<Subject> out;
  for (const std::string& file : model_files) {
    HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(file));
    for (;;) {
      HMMJIT_ASSIGN(std::optional<Hmm> hmm, reader.next());
      if (!hmm) break;
      out.push_back({hmm->name, hmm->M, hmm->alphabet->Kp});
    }
  }
  for (const int length : lengths) {
    out.push_back({fmt::format("length {}", length), length, amino_alphabet().Kp});
  }
  if (out.empty()) {
    return fail(ErrorCode::kUsage, "nothing to plan for", {}, "give --model FILE or --length M");
  }
  return out;
}

// Files given with and without --model.
std::vector<std::string> model_files(const ParsedOptions& options) {
  std::vector<std::string> files = options.list("--model");
  std::ranges::copy(options.arguments(), std::back_inserter(files));
  return files;
}

Result<std::vector<Stage>> find_stages(const std::vector<std::string>& names, const char* option) {
  std::vector<Stage> out;
  for (const std::string& name : names) {
    const auto stage = plan::find_stage(name);
    if (!stage)
      return fail(ErrorCode::kUsage, fmt::format("no stage \"{}\"", name), option,
                  "stages: " + stage_names());
    out.push_back(*stage);
  }
  for (int i = 0; names.empty() && i < plan::kStages; ++i) out.push_back(static_cast<Stage>(i));
  return out;
}

/// "gpu", "gpu:1", a table name or an architecture. No name: this machine's GPU, or the table's
/// H200 without one. "all": the table's devices that any compiler supports, or that `compiler`
/// supports, with a note for each of the others. `option`: the option with the names, for errors.
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
    } else if (name == "gpu" || name.starts_with("gpu:")) {
      HMMJIT_ASSIGN(const int ordinal, gpu_ordinal(name, option));
      HMMJIT_ASSIGN(auto traits, live(ordinal));
      out.push_back(std::move(traits));
    } else {
      auto traits = plan::find_device(name);
      if (!traits) {
        traits.error().where = option;
        if (!traits.error().remedy.empty()) traits.error().remedy += ", or \"gpu\"";
        return std::unexpected(traits.error());
      }
      // PTX of an older architecture may run on an unknown device, but the user named a known one.
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

/// The compiler of a search on this machine.
Result<std::shared_ptr<const compile::NvrtcLibrary>> locate_compiler() {
  compile::NvrtcSearch search = compile::NvrtcSearch::from_environment();
  search.driver_major = driver::open_cuda_library().report.version / 1000;
  return compile::NvrtcLibrary::locate(search);
}

std::string kernel_identity(const plan::Plan& p) {
  // Variants of different stages may have equal names and constants.
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
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);
    return flush_standard_output();
  }
  HMMJIT_ASSIGN(TextOutput file, TextOutput::create(path));
  file.write(bytes);
  return file.commit();
}

/// --emit: one kernel in the requested form.
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

/// The request on the command line.
struct PlanRequest {
  std::vector<Subject> subjects;
  std::vector<plan::DeviceTraits> devices;
  std::vector<Stage> stages;
  bool all_stages = false;
  plan::PlanOptions options;
  std::string emit;
  bool json = false, summary = false, explain = false;

  /// True if the output shows the kernels of a whole search, not only plans.
  bool shows_search() const {
    return !demands_kernels() && emit.empty() && !summary && !options.exact_length &&
           options.policy == plan::Policy::kDefault;
  }
  /// True if the user demanded stages or a variant, not what a search needs.
  bool demands_kernels() const { return !all_stages || !options.variant.empty(); }
  bool leaves_out(Stage stage) const {
    const auto variants = plan::variants_of(stage);
    if (!all_stages) return false;
    if (options.variant.empty()) return variants.empty();
    return std::ranges::find(variants, options.variant, &plan::KernelVariant::name) ==
           variants.end();
  }
};

Result<PlanRequest> make_plan_request(const ParsedOptions& options) {
  PlanRequest request;
  request.emit = options.text("--emit");
  request.json = options.is_set("--json");
  request.summary = options.is_set("--summary");
  request.explain = options.is_set("--explain");
  HMMJIT_ASSIGN(request.subjects, read_subjects(model_files(options), lengths_of(options)));
  HMMJIT_ASSIGN(request.devices, find_devices(options.list("--device"), "--device"));
  request.options.variant = options.text("--variant");
  request.options.exact_length = options.is_set("--exact-length");
  request.options.policy = *plan::find_policy(options.text("--policy"));
  HMMJIT_ASSIGN(request.stages, find_stages(options.list("--stage"), "--stage"));
  request.all_stages = !options.is_set("--stage");
  if (!request.options.variant.empty())
    HMMJIT_TRY(plan::check_variant(request.options.variant, "--variant"));
  return request;
}

/// The output of `hmmjit plan`, plan by plan.
class PlanOutput {
 public:
  PlanOutput(const PlanRequest& request, KernelProvider& provider)
      : request_(request), provider_(provider) {}

  void add_failure(const Subject& subject, Stage stage, const plan::DeviceTraits& device,
                   const Error& error) {
    ++failures_;
    // A device without SSV searches nothing; of other stages, the CPU does those without a kernel.
    const bool demanded = request_.demands_kernels() || stage == Stage::kSsv;
    failed_ = failed_ || demanded;
    plan_list_.push_back({{"model", subject.name},
                          {"stage", plan::stage_name(stage)},
                          {"device", device.name},
                          {"error", error.to_string()}});
    if (!demanded && request_.shows_search()) {
      on_cpu_ += fmt::format("  {:8} on the CPU: {}\n", plan::stage_name(stage), error.message);
    } else {
      diagnose("hmmjit plan: {}: {}\n", subject.name, error.to_string());
    }
  }

  Status add(const Subject& subject, const plan::Plan& plan) {
    ++plans_;
    const std::string identity = kernel_identity(plan);
    const bool is_new = kernels_.insert(identity).second;
    real_ += plan.model_length;
    computed_ += plan.model_length * (1 + plan.padding());
    if (!request_.emit.empty()) return is_new ? emit(plan) : Status{};
    if (request_.summary) return {};
    const CacheText& state = cache_state(plan);
    if (request_.json) {
      Json item{{"model", subject.name}};
      item.update(Json::parse(plan::plan_json(plan)));
      item["cache"] = state.json;
      plan_list_.push_back(std::move(item));
    } else if (request_.explain || !request_.shows_search()) {
      text_ += fmt::format("{}: {}  cache      {}, {}\n", subject.name, plan::plan_text(plan),
                           state.json.value("kernel", "no key"), state.text);
    }
    return {};
  }

  /// Adds the kernels of a search, with coarser length classes after SSV.
  void add_search(const Subject& subject, const plan::DeviceTraits& device) {
    const std::string on_cpu = std::exchange(on_cpu_, {});
    const std::vector<plan::Plan> plans =
        gpu::search_plans(subject.length, subject.alphabet_codes, device, request_.options.tuned);
    if (plans.empty()) return;
    Json kernels = Json::array();
    text_ += fmt::format("{}: a search on {} uses, once its kernels are made\n", subject.name,
                         device.name);
    std::map<Stage, std::string_view> first_of_stage;
    for (const plan::Plan& p : plans) {
      search_kernels_.insert(kernel_identity(p));
      const CacheText& state = cache_state(p);
      const bool any_length = p.chosen.expected.any_length;
      const auto [first, only] = first_of_stage.emplace(p.stage, p.chosen.variant->name);
      text_ += fmt::format(
          "  {:8} {} for {}{}, {}\n", plan::stage_name(p.stage), p.chosen.variant->name,
          any_length ? "any model" : fmt::format("{} positions", p.class_length),
          only ? "" : fmt::format(", of targets that {} leaves undecided", first->second),
          state.text);
      kernels.push_back({{"stage", plan::stage_name(p.stage)},
                         {"variant", p.chosen.variant->name},
                         {"class_length", any_length ? Json() : Json(p.class_length)},
                         {"undecided_by", only ? Json() : Json(first->second)},
                         {"cache", state.json}});
    }
    text_ += on_cpu;
    searches_.push_back(
        {{"model", subject.name}, {"device", device.name}, {"kernels", std::move(kernels)}});
  }

  std::string text() {
    if (!request_.emit.empty()) return emitted_;
    // Padding is meaningless if some stages have kernels for any length.
    const bool one_stage = request_.stages.size() == 1 && real_ > 0;
    const double padding = one_stage ? computed_ / real_ - 1 : 0;
    if (request_.json) {
      Json summary{{"models", request_.subjects.size()},
                   {"devices", request_.devices.size()},
                   {"plans", plans_},
                   {"failed", failures_},
                   {"kernels", kernels_.size()}};
      if (one_stage) summary["padding"] = padding;
      return json_text({{"plans", std::move(plan_list_)},
                        {"searches", std::move(searches_)},
                        {"summary", std::move(summary)}});
    }
    if (plans_ == 0) return text_;
    const std::string subjects = fmt::format("{}, {}", counted(request_.subjects.size(), "model"),
                                             counted(request_.devices.size(), "device"));
    if (request_.shows_search() && !request_.explain)
      return text_ +
             fmt::format(
                 "Stages after SSV see few targets: models of similar length share their kernels. "
                 "--explain or --stage says more.\n{}, {}\n",
                 subjects, counted(search_kernels_.size(), "kernel"));
    return text_ +
           fmt::format("{}, {}, {}{}\n", subjects, counted(plans_, "plan"),
                       counted(kernels_.size(), "kernel"),
                       one_stage ? fmt::format(", {:.1f} % padded cells", 100 * padding) : "");
  }
  std::size_t plans() const { return plans_; }
  bool failed() const { return failed_; }

 private:
  // Asked once for each kernel: the question brings an image from disk into memory.
  const CacheText& cache_state(const plan::Plan& plan) {
    const auto [state, is_new] = cache_states_.try_emplace(kernel_identity(plan));
    if (is_new) state->second = describe_cache(provider_.cache_state(plan));
    return state->second;
  }
  Status emit(const plan::Plan& plan) {
    if (request_.emit == "cubin" && kernels_.size() > 1)
      return fail(ErrorCode::kUsage, "several kernels, one cubin", "--emit cubin",
                  "name one stage, model and device; HMMJIT_DUMP_DIR keeps all");
    HMMJIT_ASSIGN(const std::string bytes, emitted(request_.emit, plan, provider_));
    emitted_ += bytes;
    return {};
  }

  const PlanRequest& request_;
  KernelProvider& provider_;
  std::size_t plans_ = 0;
  int failures_ = 0;
  bool failed_ = false;  // not only of stages that the CPU then does
  std::set<std::string> kernels_, search_kernels_;
  double real_ = 0, computed_ = 0;
  std::map<std::string, CacheText> cache_states_;
  Json plan_list_ = Json::array(), searches_ = Json::array();
  std::string text_, emitted_, on_cpu_;
};

Result<int> run_plan(const ParsedOptions& options) {
  const std::string output_path(options.text("--output"));
  std::vector<NamedFile> inputs;
  for (const std::string& file : model_files(options))
    parts::add_profile_files(inputs, "profile file", file);
  HMMJIT_TRY(check_inputs(inputs));
  std::vector<NamedFile> outputs;
  if (options.is_set("--output")) outputs.push_back({"-o", output_path});
  HMMJIT_TRY(check_outputs(with_standard_output(outputs, options), inputs));
  if (options.is_set("--catalogue")) {
    HMMJIT_TRY(write_output(output_path, plan::catalogue_text(), false));
    return 0;
  }
  HMMJIT_ASSIGN(const cache::Settings settings, cache_settings(options, "plan"));
  HMMJIT_ASSIGN(PlanRequest request, make_plan_request(options));
  HMMJIT_ASSIGN(auto templates, render::TemplateLibrary::from_environment());
  compile::LoadedTuning tuning;
  if (!options.is_set("--no-tuned") && compile::tuning_wanted()) {
    tuning = compile::load_tuning(settings, compile::catalogue_version(templates));
    request.options.tuned = &tuning.table;
  }
  const auto cache = cache::KernelCache::open(settings);
  KernelProvider provider(std::move(templates), locate_compiler(), *cache);

  PlanOutput out(request, provider);
  for (const plan::DeviceTraits& device : request.devices) {
    for (const Subject& subject : request.subjects) {
      for (const Stage stage : request.stages) {
        if (request.leaves_out(stage)) continue;
        const auto p =
            plan::make_plan(stage, subject.length, subject.alphabet_codes, device, request.options);
        if (p)
          HMMJIT_TRY(out.add(subject, *p));
        else
          out.add_failure(subject, stage, device, p.error());
      }
      if (request.shows_search()) out.add_search(subject, device);
    }
  }
  const int code = out.failed() ? static_cast<int>(ErrorCode::kCompile) : 0;
  // Without a kernel or plan, keeps an existing file.
  if (code != 0 && (!request.emit.empty() || out.plans() == 0) && !output_path.empty()) return code;
  HMMJIT_TRY(write_output(output_path, out.text(), request.emit == "cubin"));
  return code;
}

std::string_view comma_list(const std::vector<std::string>& names) {
  static std::list<std::string> kept;  // option tables hold views
  return kept.emplace_back(fmt::format("{}", fmt::join(names, ",")));
}

}  // namespace

CommandSpec plan_command() {
  constexpr OptionTraits kForms{
      .excludes = "--json", .offers = "source,ptx,cubin,sass,log", .closed = true};
  static const std::string stages = stage_names() + "; default: all";
  CommandSpec out{
      "plan",
      "show which kernel would score each model on a device, and why",
      {{"files", "profile HMM file(s); - for stdin", false, true}},
      {help_option(),
       {kPlain, "--model,-m", "@f", "profile HMM file; may be repeated", kSeveral},
       {kPlain, "--length", "n n>0", "model length(s), in place of or besides files", kListed},
       {kPlain, "--device", "s",
        "device name (H200, RTX 4090, ...), architecture (sm_90), gpu, gpu:N, or all",
        list_of(comma_list(device_names()))},
       {kPlain, "--stage", "s", stages, list_of(comma_list(names_of_stages()))},
       {kPlain, "--variant", "s", "use this kernel variant", offering(comma_list(variant_names()))},
       {kPlain, "--policy", "s=default", "default or cudampfpp", one_of("default,cudampfpp")},
       {kPlain, "--exact-length", "",
        "specialise for the model's own length instead of its size class"},
       {kPlain, "--no-tuned", "", "predictions only, whatever hmmjit tune has measured"},
       {kPlain, "--emit", "s", "print the kernel instead: source, ptx, cubin, sass, log", kForms},
       {kPlain, "--output,-o", "f", "write to this file instead of standard output"},
       {kPlain, "--summary", "", "totals only", excluding("--explain")},
       {kPlain, "--catalogue", "", "print the catalogue of all kernels, as in docs/kernels.md",
        excluding("--json")},
       {kPlain, "--explain", "",
        "also the plan of every stage for the model's own size class, and why no other "
        "variant"},
       kPrintJson},
      run_plan};
  out.options = with_cache_options(std::move(out.options));
  return out;
}

namespace {

// Compiles the kernels that searches with the models would request into the cache, without a GPU.
// Defaults: the architecture of this machine's GPU, every stage, and only the models' lengths.
Result<WarmReport> warm_kernels(cache::KernelCache& cache, const ParsedOptions& options) {
  HMMJIT_ASSIGN(auto templates, render::TemplateLibrary::from_environment());
  HMMJIT_ASSIGN(auto compiler, locate_compiler());
  HMMJIT_ASSIGN(const auto devices,
                find_devices(options.list("--target"), "--target", compiler.get()));
  std::vector<int> lengths = lengths_of(options);
  const int up_to = options.is_set("--up-to") ? options.integer("--up-to") : 0;
  for (int length = 1; length <= up_to; length = plan::class_length(length) + 1)
    lengths.push_back(length);
  HMMJIT_ASSIGN(const auto subjects, read_subjects(model_files(options), lengths));
  HMMJIT_ASSIGN(const std::vector<Stage> stages, find_stages(options.list("--stage"), "--stage"));
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

CommandSpec cache_command() {
  return cache_command(warm_kernels, {comma_list(device_names()), comma_list(names_of_stages())});
}

}  // namespace hmmjit::tools
