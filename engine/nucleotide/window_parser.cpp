#include "nucleotide/window_parser.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "core/at_end.hpp"
#include "core/mutex.hpp"
#include "core/threads.hpp"
#include "gpu/chain_plans.hpp"
#include "gpu/domain_stage.hpp"
#include "gpu/ready_kernel.hpp"

namespace hmmjit::nucleotide {
namespace {

// Longest wait of a thread for a launch that has begun, approximately.
constexpr double kLaunchSeconds = 0.2;
// Limits on windows or envelopes, and on emissions, of a domain stage request: several models must
// fit into a launch.
constexpr std::size_t kWindowsOfRequest = 4096;
constexpr std::size_t kEmissionBytesOfRequest = std::size_t{64} << 20;

// Three: packing windows and reading answers takes the threads as long as the device.
constexpr std::size_t kParserLanes = 3;

struct Work {
  std::variant<ParseRequest, EnvelopeRequest> request;
  std::size_t uses;
  std::shared_ptr<std::vector<ParsedWindows>> found = {};
  std::shared_ptr<ScoredRuns> scored = {};
  bool begun = false, done = false;
  gpu::HostReason not_scored = gpu::HostReason::kTime;  // request taken back

  const std::shared_ptr<const SearchModel>& model() const {
    return std::visit(
        [](const auto& of) -> const auto& { return of.model; }, request);
  }
  std::size_t items() const {
    if (const auto* of = std::get_if<ParseRequest>(&request))
      return of->windows->size() * of->emissions.size();
    std::size_t count = 0;
    for (const auto& run : std::get<EnvelopeRequest>(request).runs) count += run->residues.size();
    return count;
  }
  // Cells of envelopes without a result.
  std::uint64_t host_cells() const {
    const auto* of = std::get_if<EnvelopeRequest>(&request);
    std::uint64_t residues = 0;
    if (of == nullptr || scored != nullptr) return 0;
    for (const auto& run : of->runs) residues += run->residues.residue_count();
    return residues * static_cast<std::uint64_t>(of->model->hmm.M);
  }
  std::optional<std::uint32_t> trace_seed() const {
    const auto* of = std::get_if<ParseRequest>(&request);
    return of == nullptr ? std::nullopt : of->trace_seed;
  }
};
using WorkPtr = std::shared_ptr<Work>;
// Model and round: first the windows, then rounds of envelopes.
using WorkKey = std::pair<std::size_t, std::size_t>;

}  // namespace

struct WindowParser::State {
  // Model lengths for which a launch's kernels are compiled: of parser and ensemble, or of
  // envelope. 0: not used.
  using Lengths = std::array<int, 3>;

  State(driver::DevicePtr on, std::shared_ptr<driver::Driver> of, gpu::KernelSource& made_by,
        gpu::Counters& counts, const gpu::Settings& given, ScanMemory& counted)
      : device(std::move(on)),
        loader(std::move(of)),
        source(made_by),
        counters(counts),
        settings(given),
        memory(counted) {}
  ~State() {
    {
      const MutexLock lock(mutex);
      stop = true;
    }
    changed.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
  void start() {
    threads.reserve(kParserLanes);
    while (threads.size() < kParserLanes)
      threads.push_back(thread_until_out_of_memory(
          "hmmjit windows", [this] { run(); },
          [this] {
            end({ErrorCode::kInternal, "out of memory", {}, {}});
          }));
  }
  // State of one thread.
  struct Lane {
    std::optional<gpu::Uploader> uploader;
    driver::Event origin;
    std::unique_ptr<gpu::DomainStage> stage;
  };

  void run();
  void end(const Error& error) {
    const MutexLock lock(mutex);
    status = std::unexpected(error);
    stop = true;
    changed.notify_all();
  }
  // The newest request; null at the end.
  WorkPtr next_work();
  // The newest waiting requests that use the same kernels, for one launch.
  std::vector<WorkPtr> take_batch(const Lengths& lengths);
  Lengths lengths_of(const Work& work) const {
    const auto length = [&](gpu::Link link) {
      const SearchModel& model = *work.model();
      return gpu::link_lengths(link, model.hmm.M, model.bytes.Kp, device->traits())[0];
    };
    if (std::holds_alternative<EnvelopeRequest>(work.request))
      return {0, 0, length(gpu::Link::kEnvelope)};
    return {length(gpu::Link::kParser), length(gpu::Link::kEnsemble), 0};
  }
  Status serve(Lane& lane, const Work& next);
  Status parse(Lane& lane, std::span<const WorkPtr> batch, const gpu::DomainKernels& chosen);
  Status score(Lane& lane, std::span<const WorkPtr> batch, const gpu::DomainKernels& chosen);
  void ask(const WorkKey& key, Work work);
  // The work, once done or taken back; null: none.
  WorkPtr take(const WorkKey& key, MutexLock& lock) HMMJIT_REQUIRES(mutex);
  Status launch_all(Lane& lane, std::deque<gpu::DomainRequest>& requests,
                    const gpu::DomainKernels& chosen, std::optional<std::uint32_t> trace_seed);
  Status open(Lane& lane) const;
  // Waits until the kernel is compiled. Empty: no kernel.
  Result<gpu::ReadyKernel> kernel_of(gpu::Link link, int length, int alphabet_codes);
  Result<gpu::DomainKernels> kernels_of(const Lengths& lengths, int alphabet_codes);

  const driver::DevicePtr device;
  gpu::KernelLoader loader;
  gpu::KernelSource& source;
  gpu::Counters& counters;
  const gpu::Settings& settings;
  ScanMemory& memory;
  // The mutex is held during compiles. Envelopes have a second set: windows must not wait for its
  // later compiles.
  struct KernelSet {
    Mutex mutex;
    std::map<Lengths, gpu::DomainKernels> kernels HMMJIT_GUARDED_BY(mutex);
  };
  KernelSet of_windows, of_envelopes;

  Mutex mutex;
  std::condition_variable changed;
  std::map<WorkKey, WorkPtr> works HMMJIT_GUARDED_BY(mutex);
  std::deque<WorkPtr> queue HMMJIT_GUARDED_BY(mutex);
  std::size_t running HMMJIT_GUARDED_BY(mutex) = 0;  // lanes
  bool stop HMMJIT_GUARDED_BY(mutex) = false;
  Status status HMMJIT_GUARDED_BY(mutex);
  std::vector<std::thread> threads;
};

WorkPtr WindowParser::State::next_work() {
  MutexLock lock(mutex);
  while (!stop && queue.empty()) lock.wait(changed);
  return stop ? nullptr : queue.back();
}

std::vector<WorkPtr> WindowParser::State::take_batch(const Lengths& lengths) {
  std::vector<WorkPtr> batch;
  std::size_t windows = 0;
  const MutexLock lock(mutex);
  for (std::size_t n = queue.size(); n-- > 0;) {
    const Work& work = *queue[n];
    const std::size_t count = work.items();
    const bool fits = batch.empty() || (batch.size() < gpu::DomainStage::kMostRequests &&
                                        windows + count <= gpu::DomainStage::kMostLaunchTargets &&
                                        work.trace_seed() == batch[0]->trace_seed());
    if (!fits || lengths_of(work) != lengths) continue;
    windows += count;
    queue[n]->begun = true;
    batch.push_back(std::move(queue[n]));
    queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(n));
  }
  running += !batch.empty();
  return batch;
}

void WindowParser::State::run() {
  Lane lane;
  while (const auto work = next_work()) {
    const Status served = serve(lane, *work);
    if (served) continue;
    if (served.error().code == ErrorCode::kResources) {
      memory.warn(served.error());
    } else {
      end(served.error());
    }
  }
}

// Threads do not wait for a compile: no launch has begun.
Status WindowParser::State::serve(Lane& lane, const Work& next) {
  const Lengths lengths = lengths_of(next);
  const Result<gpu::DomainKernels> chosen = kernels_of(lengths, next.model()->bytes.Kp);
  const std::vector<WorkPtr> batch = take_batch(lengths);
  if (batch.empty()) return {};
  const AtEnd ends{[this] {
    const MutexLock lock(mutex);
    --running;
    changed.notify_all();
  }};
  Status done;
  if (!chosen) done = std::unexpected(chosen.error());
  if (done && lane.stage == nullptr) done = open(lane);
  if (done && chosen->parser) done = parse(lane, batch, *chosen);
  if (done && chosen->envelope) done = score(lane, batch, *chosen);
  const bool no_kernel = chosen && !chosen->envelope;
  const MutexLock lock(mutex);
  for (const WorkPtr& work : batch) {
    work->not_scored = no_kernel ? gpu::HostReason::kKind : gpu::HostReason::kRoom;
    work->done = true;
  }
  return done;
}

Status WindowParser::State::open(Lane& lane) const {
  HMMJIT_ASSIGN(lane.uploader, gpu::Uploader::create(device));
  HMMJIT_ASSIGN(lane.origin, driver::Event::now(device));
  HMMJIT_ASSIGN(const driver::Device::Memory present, device->memory());
  const std::size_t workspace = std::clamp<std::size_t>(
      std::min<std::uint64_t>(present.free, memory.budget()) / (4 * kParserLanes),
      gpu::DomainStage::kLeastWorkspace, gpu::DomainStage::kMostWorkspace);
  HMMJIT_ASSIGN(lane.stage,
                gpu::DomainStage::create(device, lane.origin, memory.resize(), workspace));
  return {};
}

Result<gpu::ReadyKernel> WindowParser::State::kernel_of(gpu::Link link, int length,
                                                        int alphabet_codes) {
  const auto make = [&]() -> Result<gpu::ReadyKernel> {
    HMMJIT_ASSIGN(const plan::Plan plan,
                  gpu::link_plan(link, length, alphabet_codes, device->traits(), source.tuning()));
    HMMJIT_ASSIGN(compile::KernelPtr kernel, source.get(plan));
    return loader.load(plan, std::move(kernel), *device, source);
  };
  Result<gpu::ReadyKernel> made = make();
  if (made) {
    counters.update([](gpu::Statistics& s) { ++s.distinct_kernels; });
  } else if (made.error().code == ErrorCode::kCompile || made.error().code == ErrorCode::kUsage) {
    return gpu::ReadyKernel();
  }
  return made;
}

Result<gpu::DomainKernels> WindowParser::State::kernels_of(const Lengths& lengths,
                                                           int alphabet_codes) {
  KernelSet& set = lengths[2] == 0 ? of_windows : of_envelopes;
  const MutexLock lock(set.mutex);
  if (const auto known = set.kernels.find(lengths); known != set.kernels.end())
    return known->second;
  gpu::DomainKernels made;
  const std::array to_make{&made.parser, &made.ensemble, &made.envelope};
  for (std::size_t n = 0; n < lengths.size(); ++n) {
    if (lengths[n] == 0 || (n == 1 && !made.parser)) continue;
    HMMJIT_ASSIGN(*to_make[n], kernel_of(gpu::kDomainLinks[n], lengths[n], alphabet_codes));
  }
  return set.kernels[lengths] = made;
}

Status WindowParser::State::parse(Lane& lane, std::span<const WorkPtr> batch,
                                  const gpu::DomainKernels& chosen) {
  std::deque<gpu::DomainRequest> requests;
  for (const WorkPtr& work : batch) {
    const auto& of = std::get<ParseRequest>(work->request);
    auto packed = std::make_shared<gpu::PackedSegment>(
        gpu::pack_segment(std::array{gpu::BlockRef{0, of.windows}}));
    HMMJIT_ASSIGN(auto made, gpu::DeviceTargets::create(device, std::move(packed), *lane.uploader));
    const std::shared_ptr<gpu::DeviceTargets> targets = memory.keep(std::move(made));
    for (const auto& emissions : of.emissions) {
      const auto row = static_cast<std::size_t>(float_stripes(of.model->hmm.M) * domain::kLanes);
      for (std::size_t at = 0; at < of.windows->size();) {
        gpu::DomainRequest& request = requests.emplace_back(
            gpu::DomainRequest{.model = of.model, .targets = targets, .passed = {}, .parsed = {}});
        request.emissions = {emissions->rows.odds.data(), domain::kCodeRows * row};
        request.bounds = {emissions->rows.deletion_bound.data(), domain::kCodeRows};
        request.samples = emissions == of.emissions.back();
        for (const std::size_t end = std::min(of.windows->size(), at + kWindowsOfRequest); at < end;
             ++at)
          request.passed.push_back(static_cast<std::uint32_t>(at));
      }
    }
  }
  HMMJIT_TRY(launch_all(lane, requests, chosen, batch[0]->trace_seed()));

  const auto kernels = std::make_shared<std::vector<gpu::UsedKernel>>();
  kernels->push_back({gpu::Link::kParser, chosen.parser.name()});
  if (chosen.ensemble) kernels->push_back({gpu::Link::kEnsemble, chosen.ensemble.name()});
  auto request = requests.begin();
  for (const WorkPtr& work : batch) {
    const auto& of = std::get<ParseRequest>(work->request);
    auto found = std::make_shared<std::vector<ParsedWindows>>();
    for (const auto& emissions : of.emissions) {
      auto& parsed = found->emplace_back(ParsedWindows{emissions, {}, kernels}).windows;
      parsed.resize(of.windows->size());
      for (std::size_t taken = 0; taken < parsed.size(); taken += request++->passed.size()) {
        const gpu::PackedSegment& packed = request->targets->packed();
        for (std::size_t n = 0; n < request->parsed.size(); ++n) {
          const std::uint32_t original = packed.targets.original[request->passed[n]];
          parsed[packed.origins[original].index] = std::move(request->parsed[n]);
        }
      }
    }
    const MutexLock lock(mutex);
    work->found = std::move(found);
  }
  return {};
}

Status WindowParser::State::score(Lane& lane, std::span<const WorkPtr> batch,
                                  const gpu::DomainKernels& chosen) {
  std::deque<gpu::DomainRequest> requests;
  for (const WorkPtr& work : batch) {
    const auto& of = std::get<EnvelopeRequest>(work->request);
    std::vector<gpu::BlockRef> blocks;
    for (const auto& run : of.runs)
      blocks.push_back({blocks.size(), std::shared_ptr<const TargetBlock>(run, &run->residues)});
    auto packed = std::make_shared<gpu::PackedSegment>(gpu::pack_segment(blocks));
    const std::size_t count = packed->targets.size();
    HMMJIT_ASSIGN(auto made, gpu::DeviceTargets::create(device, std::move(packed), *lane.uploader));
    const std::shared_ptr<gpu::DeviceTargets> targets = memory.keep(std::move(made));
    const auto row = static_cast<std::size_t>(float_stripes(of.model->hmm.M) * domain::kLanes);
    for (std::size_t at = 0; at < count;) {
      gpu::DomainRequest& request = requests.emplace_back(
          gpu::DomainRequest{.model = of.model, .targets = targets, .passed = {}, .parsed = {}});
      for (std::size_t bytes = 0; at < count && request.passed.size() < kWindowsOfRequest &&
                                  bytes < kEmissionBytesOfRequest;
           ++at) {
        const gpu::TargetOrigin origin =
            targets->packed().origins[targets->packed().targets.original[at]];
        const EstimatedEnvelopes& run = *of.runs[origin.block];
        request.passed.push_back(static_cast<std::uint32_t>(at));
        const std::size_t estimated = run.first_rows.size() - 1;
        if (origin.index >= estimated) {
          const domain::EmissionRows& rows = *run.normal_rows[origin.index - estimated];
          request.own.push_back({{rows.odds.data(), domain::kCodeRows * row},
                                 {rows.deletion_bound.data(), domain::kCodeRows}});
          continue;
        }
        const auto first = static_cast<std::size_t>(run.first_rows[origin.index]),
                   rows = static_cast<std::size_t>(run.first_rows[origin.index + 1]) - first;
        request.own.push_back({{run.rows.odds.data() + first * row, rows * row},
                               {run.rows.deletion_bound.data() + first, rows}});
        bytes += rows * row * sizeof(float);
      }
    }
  }
  HMMJIT_TRY(launch_all(lane, requests, chosen, {}));

  const auto kernels = std::make_shared<const std::vector<gpu::UsedKernel>>(
      std::vector{gpu::UsedKernel{gpu::Link::kEnvelope, chosen.envelope.name()}});
  auto request = requests.begin();
  for (const WorkPtr& work : batch) {
    const auto& of = std::get<EnvelopeRequest>(work->request);
    auto scored = std::make_shared<ScoredRuns>(ScoredRuns{kernels});
    for (const auto& run : of.runs) scored->runs.emplace_back(run->residues.size());
    const gpu::PackedSegment& packed = request->targets->packed();
    for (std::size_t taken = 0; taken < packed.targets.size(); taken += request++->passed.size()) {
      for (std::size_t n = 0; n < request->scored.size(); ++n) {
        const gpu::TargetOrigin origin =
            packed.origins[packed.targets.original[request->passed[n]]];
        scored->runs[origin.block][origin.index] = std::move(request->scored[n]);
      }
    }
    const MutexLock lock(mutex);
    work->scored = std::move(scored);
  }
  return {};
}

Status WindowParser::State::launch_all(Lane& lane, std::deque<gpu::DomainRequest>& requests,
                                       const gpu::DomainKernels& chosen,
                                       std::optional<std::uint32_t> trace_seed) {
  std::vector<gpu::DomainRequest*> left;
  for (gpu::DomainRequest& request : requests) left.push_back(&request);
  while (!left.empty()) {
    const gpu::DomainLimits limits{
        .trace_seed = trace_seed,
        .launch_seconds = settings.wait_for_device ? settings.launch_timeout : kLaunchSeconds};
    HMMJIT_ASSIGN(const gpu::DomainResult result,
                  lane.stage->run(left, chosen, limits, {.timeout = settings.launch_timeout}));
    counters.update([&](gpu::Statistics& s) { add(s, result); });
    std::erase_if(left, [](const gpu::DomainRequest* request) { return !request->left_out; });
  }
  return {};
}

WindowParser::WindowParser(driver::DevicePtr device, std::shared_ptr<driver::Driver> driver,
                           gpu::KernelSource& source, gpu::Counters& counters,
                           const gpu::Settings& settings, ScanMemory& memory)
    : state_(make_hidden<State>(std::move(device), std::move(driver), source, counters, settings,
                                memory)) {
  state_->start();
}

void WindowParser::State::ask(const WorkKey& key, Work work) {
  {
    const MutexLock lock(mutex);
    if (stop) return;
    auto shared = std::make_shared<Work>(std::move(work));
    works[key] = shared;
    queue.push_back(std::move(shared));
  }
  changed.notify_all();
}

WorkPtr WindowParser::State::take(const WorkKey& key, MutexLock& lock) {
  const auto at = works.find(key);
  if (at == works.end()) return nullptr;
  WorkPtr work = at->second;
  while (!work->done && !stop && (work->begun || settings.wait_for_device)) lock.wait(changed);
  if (!work->begun) std::erase(queue, work);
  if (--work->uses > 0) return work;
  works.erase(key);
  if (const std::uint64_t cells = work->host_cells(); cells > 0) {
    counters.update([&](gpu::Statistics& s) {
      s.domain_stages.back().host_cells[static_cast<std::size_t>(work->not_scored)] += cells;
    });
  }
  return work;
}

void WindowParser::request(std::size_t model, ParseRequest request) {
  const std::size_t uses = request.uses;
  state_->ask({model, 0}, {std::move(request), uses});
}

void WindowParser::request(std::size_t model, std::size_t round, EnvelopeRequest request) {
  const std::size_t uses = request.runs.size();
  state_->ask({model, 1 + round}, {std::move(request), uses});
}

std::shared_ptr<const std::vector<ParsedWindows>> WindowParser::parsed(std::size_t model) {
  MutexLock lock(state_->mutex);
  const WorkPtr work = state_->take({model, 0}, lock);
  return work == nullptr ? nullptr : work->found;
}

std::shared_ptr<const ScoredRuns> WindowParser::scored(std::size_t model, std::size_t round) {
  MutexLock lock(state_->mutex);
  const WorkPtr work = state_->take({model, 1 + round}, lock);
  return work == nullptr ? nullptr : work->scored;
}

Status WindowParser::finish() {
  State& s = *state_;
  MutexLock lock(s.mutex);
  s.queue.clear();
  s.works.clear();
  while (s.running > 0) lock.wait(s.changed);
  return s.status;
}

}  // namespace hmmjit::nucleotide
