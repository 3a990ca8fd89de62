// Planning, rendering and compiling for host programs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "api/convert.hpp"
#include "api/handles.hpp"
#include "api/structs.hpp"
#include "driver/cuda_library.hpp"
#include "model/alphabet.hpp"
#include "render/renderer.hpp"

namespace hmmjit::v0 {
namespace {

/// Refuses numbers with which a plan would divide by zero or overflow.
void check_device(const Device& d) {
  const auto in = [](std::int64_t number, std::int64_t least, std::int64_t most) {
    return number >= least && number <= most;
  };
  require(in(d.major, 1, 999) && in(d.minor, 0, 9), "device", "a compute capability such as 9.0");
  require(in(d.sm_count, 1, 1 << 16) && in(d.clock_khz, 1, 1'000'000'000) &&
              in(d.max_threads_per_sm, 32, 1 << 16) && in(d.max_blocks_per_sm, 1, 1 << 16) &&
              in(d.registers_per_sm, 1, 1 << 24) && in(d.max_registers_per_thread, 1, 1 << 16),
          "device", "numbers of SMs, threads, blocks and registers that a device may have");
  constexpr std::int64_t kMostShared = 1 << 28;
  require(in(d.shared_per_sm, 0, kMostShared) && in(d.shared_per_block, 0, kMostShared) &&
              in(d.shared_reserved_per_block, 0, kMostShared) && d.memory_bytes >= 0 &&
              d.l2_bytes >= 0 && d.memory_bandwidth >= 0 && std::isfinite(d.memory_bandwidth),
          "device", "sizes and rates that a device may have");
}

plan::Constants to_constants(const Constants& given) {
  plan::Constants out;
  for (const Constant& c : given) {
    if (out.find(c.name)) throw Error(ErrorCode::kUsage, "constant " + c.name + " given twice");
    out.add(c.name, c.value);
  }
  return out;
}

/// The public view of a candidate. `shape`: the host's block shape, if multidimensional; may be
/// null.
Candidate to_candidate(const plan::Candidate& c, const LaunchShape* shape) {
  Candidate out;
  out.variant = c.variant->name;
  out.template_file = c.variant->template_file;
  out.entry_name = c.variant->entry_name;
  for (const auto& [name, number] : c.constants.list()) out.constants.push_back({name, number});
  if (shape != nullptr) {
    out.launch = *shape;
  } else {
    out.launch.threads_x = c.expected.launch.block_threads;
    out.launch.dynamic_shared_bytes = c.expected.launch.dynamic_shared_bytes;
  }
  out.expected.registers = c.expected.registers;
  out.expected.local_bytes = c.expected.local_bytes;
  out.expected.items_per_clock_per_sm = c.expected.cells_per_clock_per_sm;
  out.expected.binding_resource = c.expected.binding_resource;
  out.blocks_per_sm = c.occupancy.blocks_per_sm;
  out.warps_per_sm = c.occupancy.warps_per_sm;
  out.occupancy = c.occupancy.fraction;
  out.occupancy_limiter = c.occupancy.limiter;
  out.predicted_giga_items = c.predicted_gcups;
  return out;
}

const LaunchShape* shape_of(const Plan::Impl& plan, const plan::Candidate& candidate) {
  for (const auto& [c, shape] : plan.shapes) {
    if (c.variant == candidate.variant && c.constants == candidate.constants) return &shape;
  }
  return nullptr;
}

std::vector<Rejection> to_rejections(const std::vector<plan::Rejection>& given) {
  std::vector<Rejection> out;
  for (const plan::Rejection& r : given) out.push_back({r.variant, r.reason});
  return out;
}

void complete(Plan::Impl& out) {
  PlanInfo& info = out.info;
  if (info.family.empty()) info.family = plan::stage_name(out.plan.stage);
  info.chosen = to_candidate(out.plan.chosen, shape_of(out, out.plan.chosen));
  for (const plan::Candidate& c : out.plan.fallbacks)
    info.fallbacks.push_back(to_candidate(c, shape_of(out, c)));
  info.rejected = to_rejections(out.plan.rejected);
  info.text = plan::plan_text(out.plan);
  info.json = plan::plan_json(out.plan);
}

[[noreturn]] void refuse(const KernelVariant& entry, const std::string& why,
                         const std::string& remedy = {}) {
  throw Error(ErrorCode::kUsage, why, "catalogue entry \"" + entry.name + "\"", remedy);
}

std::unique_ptr<const Catalogue::Entry> make_entry(KernelVariant given) {
  auto entry = std::make_unique<Catalogue::Entry>();
  entry->host = std::move(given);
  const KernelVariant& host = entry->host;
  entry->options.assign(host.compile_options.begin(), host.compile_options.end());
  entry->references.assign(host.references.begin(), host.references.end());
  plan::KernelVariant& v = entry->variant;
  v.name = host.name;
  v.stage = plan::Stage::kHost;
  v.template_file = host.template_file;
  v.entry_name = host.entry_name;
  v.competes = host.competes;
  v.summary = host.summary;
  v.references = entry->references;
  v.compile_options = entry->options;
  return entry;
}

std::shared_ptr<const Catalogue> make_catalogue(std::vector<KernelVariant> variants) {
  auto catalogue = std::make_shared<Catalogue>();
  std::set<std::string> names;
  for (KernelVariant& v : variants) {
    // Developer dumps use names in file names.
    const auto ordinary = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '-';
    };
    if (v.name.empty() || !std::ranges::all_of(v.name, ordinary))
      refuse(v, "a name consists of letters, digits, '_' and '-'");
    if (!names.insert(v.name).second) refuse(v, "the name is given twice");
    if (v.family.empty()) refuse(v, "it names no family");
    if (plan::find_stage(v.family)) refuse(v, "its family is a stage of the profile search");
    if (v.template_file.empty()) refuse(v, "it names no template");
    if (v.entry_name.empty()) refuse(v, "it names no kernel");
    if (!v.configurations) refuse(v, "it has no configurations");
    catalogue->entries.push_back(make_entry(std::move(v)));
  }
  return catalogue;
}

render::TemplateLibrary make_templates(std::vector<TemplateText> own) {
  const auto ours = value(render::TemplateLibrary::from_environment());
  if (own.empty()) return ours;
  std::map<std::string, std::string, std::less<>> texts = ours.texts();
  for (TemplateText& t : own) {
    if (t.path.empty()) throw Error(ErrorCode::kUsage, "a template has no path");
    if (!texts.emplace(t.path, std::move(t.text)).second) {
      throw Error(ErrorCode::kUsage, "this template exists already", t.path,
                  "use a folder of your own");
    }
  }
  return render::TemplateLibrary::from_texts(std::move(texts));
}

}  // namespace

std::int64_t constant(const Constants& constants, std::string_view name) {
  return guarded([&] {
    for (const Constant& c : constants) {
      if (c.name == name) return c.value;
    }
    throw Error(ErrorCode::kUsage, "no constant " + std::string(name));
  });
}

const PlanInfo& Plan::info() const noexcept { return impl_->info; }

// ---- image ----------------------------------------------------------------------------------

const hmmjit_image_info& KernelImage::info() const { return impl_->info; }
const Candidate& KernelImage::candidate() const { return impl_->candidate; }
const std::vector<Rejection>& KernelImage::rejected() const { return impl_->rejected; }

KernelImage make_image(const Plan& plan, const compile::KernelPtr& kernel) {
  auto impl = std::make_shared<KernelImage::Impl>();
  impl->catalogue = plan.impl()->catalogue;
  impl->kernel = kernel;
  impl->candidate = to_candidate(kernel->candidate, shape_of(*plan.impl(), kernel->candidate));
  impl->rejected = to_rejections(kernel->rejected);
  const compile::KernelImage& image = kernel->image;
  hmmjit_image_info& info = impl->info;
  info.size = sizeof info;
  info.name = kernel->name.c_str();
  info.variant = impl->candidate.variant.c_str();
  info.architecture = image.architecture.c_str();
  info.origin =
      kernel->origin == cache::Layer::kNone ? "compiled" : cache::layer_name(kernel->origin);
  info.log = image.log.c_str();
  info.bytes = image.bytes.c_str();
  info.byte_count = image.bytes.size();
  info.is_ptx = image.kind == compile::ImageKind::kPtx;
  info.registers = image.resources.registers;
  info.local_bytes = image.resources.local_bytes;
  info.spill_bytes = image.resources.spill_bytes;
  info.static_shared_bytes = image.resources.static_shared_bytes;
  info.parameter_bytes = -1;
  if (image.kind == compile::ImageKind::kCubin)
    info.parameter_bytes =
        compile::read_parameter_bytes(image.bytes, image.entry_name).value_or(-1);
  info.seconds = kernel->render_seconds + kernel->obtain_seconds;
  return KernelImage(std::move(impl));
}

// ---- engine ---------------------------------------------------------------------------------

compile::KernelProvider& EngineImpl::kernels() {
  const std::lock_guard lock(opening);
  if (!provider_ready) {
    if (cancelled) throw Error(ErrorCode::kInterrupted, "the engine was cancelled");
    compile::NvrtcSearch search = compile::NvrtcSearch::from_environment();
    search.highest_major = highest_compiler_major;
    const auto driver = driver::open_cuda_library();
    if (driver.report.state == driver::DriverState::kReady) {
      search.driver_major = driver.report.version / 1000;
    }
    compile::ProviderSettings settings;
    settings.threads = compile_threads;
    provider =
        std::make_unique<compile::KernelProvider>(templates, compile::NvrtcLibrary::locate(search),
                                                  *cache.impl()->cache, std::move(settings));
    provider_ready = true;
  }
  return *provider;
}

std::string_view Catalogue::intern(const std::string& text) const {
  const std::lock_guard guard(mutex);
  return *texts.insert(text).first;
}

struct PendingKernelImpl {
  std::shared_ptr<Engine::Impl> engine;  // must outlive the compile
  Plan plan;
  compile::KernelProvider::Future future;
};

Engine::Engine() : Engine(EngineSettings{}) {}
Engine::Engine(EngineSettings settings)
    : SharedHandle(guarded([&] {
        auto impl = std::make_shared<Impl>();
        impl->catalogue = make_catalogue(std::move(settings.variants));
        impl->templates = make_templates(std::move(settings.templates));
        for (const auto& entry : impl->catalogue->entries) {
          if (!impl->templates.find(entry->host.template_file))
            refuse(entry->host, "no template " + entry->host.template_file,
                   "add it to the engine's templates");
        }
        impl->cache = settings.cache;
        impl->compile_threads = settings.compile_threads;
        impl->highest_compiler_major = settings.highest_compiler_major;
        return impl;
      })) {}

Plan Engine::plan(const Problem& problem, const Device& device,
                  const hmmjit_plan_options& options) const {
  HostCalls host;
  const auto ask = [&host](auto&& question) {
    if (!host.run(question)) throw HostFailed{};
  };
  return guarded(host, [&] {
    check_device(device);
    check_choice(options.policy, HMMJIT_POLICY_CUDAMPFPP, "policy");
    auto out = std::make_shared<Plan::Impl>();
    out->catalogue = impl_->catalogue;
    out->info.device = device;
    out->info.family = problem.family;
    plan::Plan& p = out->plan;
    p.stage = plan::Stage::kHost;
    p.model_length = p.class_length = 1;
    p.device = to_traits(device);
    p.policy = plan::policy_name(plan::Policy::kDefault);
    p.problem = problem.family;
    for (const Constant& c : problem.parameters) {
      fmt::format_to(std::back_inserter(p.problem), ", {} {}", c.name, c.value);
    }
    const std::string where = fmt::format("plan of {}, {}", p.problem, device.name);
    if (const auto gap = plan::compiler_gap(p.device))
      throw Error(ErrorCode::kCompile, *gap, where);

    std::vector<plan::Offer> offers;
    for (const auto& entry : impl_->catalogue->entries) {
      if (entry->host.family != problem.family) continue;
      plan::Offer& offer = offers.emplace_back();
      offer.variant = &entry->variant;
      if (entry->host.accepts) {
        Verdict verdict;
        ask([&] { verdict = entry->host.accepts(problem, device); });
        offer.verdict = {verdict.accepted, std::move(verdict.reason)};
      }
      if (!offer.verdict.accepted) continue;
      std::vector<Configuration> configurations;
      ask([&] { configurations = entry->host.configurations(problem, device); });
      for (const Configuration& c : configurations) {
        const auto& s = c.launch;
        const auto dimension = [](int threads) { return threads >= 1 && threads <= 1024; };
        if (!dimension(s.threads_x) || !dimension(s.threads_y) || !dimension(s.threads_z) ||
            s.block_threads() > 1024 || s.dynamic_shared_bytes < 0) {
          refuse(entry->host,
                 fmt::format("a block of {} x {} x {} threads cannot be launched", s.threads_x,
                             s.threads_y, s.threads_z),
                 "1 to 1024 threads");
        }
        require(c.expected.registers > 0 && c.expected.local_bytes >= 0, "a configuration",
                "a number of registers, and 0 or more local bytes");
        require(c.expected.items_per_clock_per_sm >= 0 &&
                    std::isfinite(c.expected.items_per_clock_per_sm),
                "a configuration", "a finite rate of items");
        plan::Candidate& candidate = offer.configurations.emplace_back();
        candidate.variant = &entry->variant;
        candidate.constants = to_constants(c.constants);
        if (shape_of(*out, candidate) != nullptr) {
          refuse(entry->host, "two configurations have equal constants",
                 "make the difference a constant");
        }
        candidate.expected.launch.block_threads = s.block_threads();
        candidate.expected.launch.dynamic_shared_bytes = s.dynamic_shared_bytes;
        candidate.expected.registers = c.expected.registers;
        candidate.expected.local_bytes = c.expected.local_bytes;
        candidate.expected.covered_length = 1;
        candidate.expected.cells_per_clock_per_sm = c.expected.items_per_clock_per_sm;
        candidate.expected.binding_resource = impl_->catalogue->intern(c.expected.binding_resource);
        out->shapes.emplace_back(candidate, s);
      }
    }
    if (offers.empty()) {
      throw Error(ErrorCode::kUsage, "no catalogue entry of family \"" + problem.family + "\"",
                  where, "give one in EngineSettings::variants");
    }
    check(plan::choose(p, std::move(offers), plan::Policy::kDefault, text_of(options.variant),
                       where));
    complete(*out);
    return Plan(std::move(out));
  });
}

static_assert(static_cast<int>(Stage::kEnvelope) == static_cast<int>(plan::Stage::kEnvelope) &&
              static_cast<int>(Stage::kEnvelope) + 1 == plan::kStages);

Stage find_stage(const std::string& name) {
  return guarded([&] {
    if (const auto found = plan::find_stage(name)) return static_cast<Stage>(*found);
    std::string known;
    for (int i = 0; i < plan::kStages; ++i) {
      known += i == 0 ? "" : ", ";
      known += plan::stage_name(static_cast<plan::Stage>(i));
    }
    throw Error(ErrorCode::kUsage, "no stage \"" + name + "\"", {}, "it is one of " + known);
  });
}

Plan Engine::plan_stage(Stage stage, int model_length, const Device& device,
                        const hmmjit_plan_options& options) const {
  return guarded([&] {
    check_choice(static_cast<std::int32_t>(stage), plan::kStages - 1, "stage");
    check_device(device);
    check_choice(options.policy, HMMJIT_POLICY_CUDAMPFPP, "policy");
    const int codes = options.alphabet_codes != 0 ? options.alphabet_codes : amino_alphabet().Kp;
    require(codes >= 1 && codes <= kMaxCodes, "alphabet_codes", "a number of residue codes");
    auto out = std::make_shared<Plan::Impl>();
    out->catalogue = impl_->catalogue;
    out->info.device = device;
    plan::PlanOptions plan_options;
    if (options.policy == HMMJIT_POLICY_CUDAMPFPP) plan_options.policy = plan::Policy::kCudampfpp;
    plan_options.variant = text_of(options.variant);
    plan_options.exact_length = options.exact_length != 0;
    out->plan = value(plan::make_plan(static_cast<plan::Stage>(stage), model_length, codes,
                                      to_traits(device), plan_options));
    complete(*out);
    return Plan(std::move(out));
  });
}

RenderedSource Engine::render(const Plan& plan) const {
  return guarded([&] {
    auto source = value(render::render(impl_->templates, plan.impl()->plan.chosen));
    return RenderedSource{std::move(source.text), std::move(source.file_name),
                          std::move(source.files)};
  });
}

KernelImage Engine::compile(const Plan& plan) {
  return guarded([&] { return make_image(plan, value(impl_->kernels().get(plan.impl()->plan))); });
}

PendingKernel Engine::request(const Plan& plan, int priority) {
  return guarded([&] {
    auto future = impl_->kernels().request(plan.impl()->plan, priority);
    return PendingKernel(
        std::make_shared<PendingKernel::Impl>(PendingKernel::Impl{impl_, plan, std::move(future)}));
  });
}

bool PendingKernel::ready() const {
  return impl_->future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}
KernelImage PendingKernel::get() const {
  return guarded([&] { return make_image(impl_->plan, value(impl_->future.get())); });
}

void Engine::cancel() {
  guarded([&] {
    {
      // Without a provider nothing runs, and no search for a compiler must begin now.
      const std::lock_guard lock(impl_->opening);
      impl_->cancelled = true;
      if (!impl_->provider_ready) return;
    }
    impl_->provider->cancel();
  });
}

EngineStatistics Engine::statistics() const {
  if (!impl_->provider_ready) return {};
  const compile::ProviderStatistics s = impl_->provider->statistics();
  return {s.requests, s.shared, s.compiled, s.memory_hits,    s.disk_hits,
          s.rejected, s.failed, s.refused,  s.compile_seconds};
}

}  // namespace hmmjit::v0
