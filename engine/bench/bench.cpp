#include "bench/bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <numeric>
#include <utility>

#include "bench/launchers.hpp"
#include "core/threads.hpp"
#include "gpu/kernel_loader.hpp"

namespace hmmjit::bench {
namespace {

using plan::Stage;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// The plan reduced to one candidate.
plan::Plan only(const plan::Plan& plan, const plan::Candidate& candidate) {
  plan::Plan out = plan;
  out.chosen = candidate;
  out.fallbacks.clear();
  return out;
}

}  // namespace

struct Bench::State {
  std::shared_ptr<driver::Driver> driver;
  driver::DevicePtr device;
  driver::Stream stream;
  driver::Event begin, end;
  gpu::KernelSource* kernels = nullptr;
  Settings settings;
  Sequences distinct;
  std::unique_ptr<DeviceTargets> all;
  std::map<std::uint64_t, std::unique_ptr<DeviceTargets>> samples;  // by residues, rounded to
                                                                    // powers of two
  std::shared_ptr<const SearchModel> model;
  std::unique_ptr<Oracle> oracle;

  /// All targets, or a sample that a kernel with this rate processes in the allotted time.
  Result<const DeviceTargets*> targets_for(const plan::Candidate& candidate, bool& sample);
  Result<gpu::ReadyKernel> load(const plan::Plan& plan, Measurement* out);
  Result<gpu::ReadyKernel> exact_viterbi();
};

Result<const DeviceTargets*> Bench::State::targets_for(const plan::Candidate& candidate,
                                                       bool& sample) {
  const double granted =
      candidate.predicted_gcups * 1e9 * settings.seconds / model->hmm.M;  // residues
  sample = granted < static_cast<double>(all->residues());
  if (!sample) return all.get();
  std::uint64_t wanted = std::uint64_t{1} << 16;
  while (2.0 * static_cast<double>(wanted) <= granted) wanted *= 2;
  auto& slot = samples[wanted];
  if (slot == nullptr) {
    std::uint64_t once = 0;
    for (const auto& s : distinct) once += s.size();
    const std::uint64_t step = std::max<std::uint64_t>(1, once / wanted);
    // One long target would dominate such a launch.
    constexpr std::size_t kLongest = 5000;
    std::vector<std::uint32_t> indices;
    for (std::size_t i = 0; i < distinct.size(); i += step) {
      if (distinct[i].size() <= kLongest) indices.push_back(static_cast<std::uint32_t>(i));
    }
    if (indices.empty()) indices.push_back(0);
    HMMJIT_ASSIGN(slot, DeviceTargets::create(device, distinct, std::move(indices), 0));
  }
  if (slot->residues() >= all->residues()) {
    sample = false;
    return all.get();
  }
  return slot.get();
}

Result<gpu::ReadyKernel> Bench::State::load(const plan::Plan& plan, Measurement* out) {
  auto start = Clock::now();
  HMMJIT_ASSIGN(compile::KernelPtr kernel, kernels->get(plan));
  if (out != nullptr) {
    out->compiled = kernel->origin == cache::Layer::kNone;
    // prepare() may have obtained it earlier: then report that time.
    out->obtain_milliseconds = std::max(milliseconds_since(start), 1e3 * kernel->obtain_seconds);
  }
  start = Clock::now();
  HMMJIT_ASSIGN(gpu::ReadyKernel ready,
                gpu::KernelLoader(driver).load(plan, std::move(kernel), *device, *kernels));
  if (out != nullptr) {
    const driver::LoadedResources& resources = ready.accepted().resources;
    out->load_milliseconds = milliseconds_since(start);
    out->registers = resources.registers;
    out->local_bytes = resources.local_bytes;
    out->blocks_per_sm = resources.blocks_per_sm;
  }
  return ready;
}

Result<gpu::ReadyKernel> Bench::State::exact_viterbi() {
  plan::PlanOptions options;
  options.exact = true;
  HMMJIT_ASSIGN(const plan::Plan plan, plan::make_plan(Stage::kViterbi, model->hmm.M,
                                                       model->words.Kp, device->traits(), options));
  return load(plan, nullptr);
}

Bench::Bench(std::unique_ptr<State> state) : state_(std::move(state)) {}
Bench::~Bench() = default;

Result<std::unique_ptr<Bench>> Bench::create(std::shared_ptr<driver::Driver> driver, int ordinal,
                                             gpu::KernelSource& kernels, const Sequences& sequences,
                                             Settings settings) {
  HMMJIT_TRY(driver->require());
  auto state = std::make_unique<State>();
  state->driver = driver;
  state->kernels = &kernels;
  state->settings = std::move(settings);
  if (state->settings.threads <= 0) state->settings.threads = available_cores();
  HMMJIT_ASSIGN(state->device, driver->device(ordinal));
  HMMJIT_ASSIGN(state->stream, driver::Stream::create(state->device));
  HMMJIT_ASSIGN(state->begin, driver::Event::create(state->device, true));
  HMMJIT_ASSIGN(state->end, driver::Event::create(state->device, true));
  state->distinct = distinct_targets(sequences, state->settings.distinct);
  std::vector<std::uint32_t> indices(state->distinct.size());
  std::iota(indices.begin(), indices.end(), 0u);
  HMMJIT_ASSIGN(state->all, DeviceTargets::create(state->device, state->distinct,
                                                  std::move(indices), state->settings.residues));
  return std::unique_ptr<Bench>(new Bench(std::move(state)));
}

const plan::DeviceTraits& Bench::device() const { return state_->device->traits(); }
const DeviceTargets& Bench::targets() const { return *state_->all; }
std::size_t Bench::distinct() const { return state_->distinct.size(); }
Oracle& Bench::oracle() { return *state_->oracle; }

void Bench::use_model(std::shared_ptr<const SearchModel> model) {
  state_->model = std::move(model);
  state_->oracle =
      std::make_unique<Oracle>(state_->model, state_->distinct, state_->settings.threads);
}

void Bench::prepare(const plan::Plan& plan, const plan::Candidate& candidate) {
  state_->kernels->request(only(plan, candidate), 0, [](const auto&) {});
}

Result<Measurement> Bench::measure(const plan::Plan& plan, const plan::Candidate& candidate) {
  State& s = *state_;
  Measurement out;
  out.stage = plan.stage;
  out.model = s.model->hmm.name;
  out.model_length = s.model->hmm.M;
  out.candidate = candidate;
  // A kernel for several lengths computes as many cells for a shorter model.
  if (candidate.expected.padded)
    out.candidate.predicted_gcups *= static_cast<double>(s.model->hmm.M) / plan.model_length;
  const auto kernel = s.load(only(plan, candidate), &out);
  if (!kernel) {
    if (kernel.error().code != ErrorCode::kCompile) return std::unexpected(kernel.error());
    out.refused = kernel.error().to_string();
    return out;
  }
  HMMJIT_ASSIGN(const DeviceTargets* targets, s.targets_for(candidate, out.sample));
  const auto start = Clock::now();
  const std::vector<float>& expected = s.oracle->scores(plan.stage);
  if (const double took = milliseconds_since(start); took > 1000 && s.settings.on_progress) {
    s.settings.on_progress(fmt::format("{}: CPU {} of {} targets, {:.1f} s", out.model,
                                       plan::stage_name(plan.stage), expected.size(), took / 1e3));
  }
  const Surroundings surroundings{
      s.stream, s.begin, s.end, *s.model, *targets, s.settings, [&s] { return s.exact_viterbi(); }};
  switch (plan.stage) {
    case Stage::kSsv:
    case Stage::kMsv:
      HMMJIT_TRY(run_byte_filter(surroundings, *kernel, expected, out));
      break;
    case Stage::kViterbi:
      HMMJIT_TRY(run_viterbi(surroundings, *kernel, expected, out));
      break;
    case Stage::kBias:
    case Stage::kForward:
      HMMJIT_TRY(run_float_filter(surroundings, *kernel, expected, out));
      break;
    default:
      return fail(ErrorCode::kUsage, "this stage has no scores to measure",
                  std::string(plan::stage_name(plan.stage)));
  }
  return out;
}

std::vector<plan::Candidate> candidates_of(const plan::Plan& plan, std::size_t most) {
  std::vector<plan::Candidate> out;
  std::map<std::string_view, std::size_t> taken;
  const auto take = [&](const plan::Candidate& c) {
    if (taken[c.variant->name]++ < most || most == 0) out.push_back(c);
  };
  take(plan.chosen);
  for (const plan::Candidate& c : plan.fallbacks) take(c);
  return out;
}

std::string constants_text(const plan::Constants& constants) {
  std::string out;
  for (const auto& [name, value] : constants.list()) {
    if (name == "kThreads" || name == "kBlocks") continue;
    fmt::format_to(std::back_inserter(out), "{}{} {}", out.empty() ? "" : ", ",
                   std::string_view(name).substr(name.starts_with('k') ? 1 : 0), value);
  }
  return out;
}

}  // namespace hmmjit::bench
