#include "nucleotide/window_parser.hpp"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "core/mutex.hpp"
#include "core/threads.hpp"
#include "gpu/chain_plans.hpp"
#include "gpu/domain_stage.hpp"
#include "gpu/ready_kernel.hpp"

namespace hmmjit::nucleotide {
namespace {

// Threads wait for a launch that has begun, no longer than about this.
constexpr double kLaunchSeconds = 0.2;
// A request of the domain stage has no more windows, so that several models find room in a launch.
constexpr std::size_t kWindowsOfRequest = 4096;

// Lanes: the threads that pack windows and read answers meanwhile have as much to do as the device.
constexpr std::size_t kParserLanes = 3;

struct Work {
  ParseRequest request;
  std::shared_ptr<std::vector<ParsedWindows>> found = {};
  bool begun = false, done = false;
};
using WorkPtr = std::shared_ptr<Work>;

}  // namespace

struct WindowParser::State {
  // Lengths of models for which the kernels of parser and ensembles are made.
  using Lengths = std::pair<int, int>;

  State(driver::DevicePtr on, std::shared_ptr<driver::Driver> of, gpu::KernelSource& made_by,
        gpu::Counters& counts, const gpu::Settings& given)
      : device(std::move(on)),
        loader(std::move(of)),
        source(made_by),
        counters(counts),
        settings(given) {
    for (std::size_t n = 0; n < kParserLanes; ++n)
      threads.push_back(
          thread_until_out_of_memory([this] { run(); },
                                     [this] {
                                       end({ErrorCode::kInternal, "out of memory", {}, {}});
                                     }));
  }
  // Of one thread.
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
    running = 0;
    changed.notify_all();
  }
  // The model that came last; null: the end.
  std::shared_ptr<const SearchModel> next_model();
  // The last of those that wait and have the same kernels, for one launch.
  std::vector<WorkPtr> take_batch(const Lengths& lengths);
  Lengths lengths_of(const SearchModel& model) const {
    const auto length = [&](gpu::Link link) {
      return gpu::link_lengths(link, model.hmm.M, model.bytes.Kp, device->traits())[0];
    };
    return {length(gpu::Link::kParser), length(gpu::Link::kEnsemble)};
  }
  Status parse_next(Lane& lane, const SearchModel& model);
  Status parse(Lane& lane, std::span<const WorkPtr> batch, const gpu::DomainKernels& chosen);
  Status open(Lane& lane) const;
  // Waits until it has been made. Empty: there is none.
  Result<gpu::ReadyKernel> kernel_of(gpu::Link link, int length, int alphabet_codes);
  Result<gpu::DomainKernels> kernels_of(const Lengths& lengths, int alphabet_codes);
  Status launch(gpu::DomainStage& stage, std::span<gpu::DomainRequest*> requests,
                const gpu::DomainKernels& kernels, const gpu::DomainLimits& limits);

  const driver::DevicePtr device;
  gpu::KernelLoader loader;
  gpu::KernelSource& source;
  gpu::Counters& counters;
  const gpu::Settings& settings;
  Mutex kernel_mutex;  // held while kernels are being made
  std::map<Lengths, gpu::DomainKernels> kernels HMMJIT_GUARDED_BY(kernel_mutex);

  Mutex mutex;
  std::condition_variable changed;
  std::map<std::size_t, WorkPtr> works HMMJIT_GUARDED_BY(mutex);  // by model
  std::deque<WorkPtr> queue HMMJIT_GUARDED_BY(mutex);
  std::size_t running HMMJIT_GUARDED_BY(mutex) = 0;  // lanes
  bool stop HMMJIT_GUARDED_BY(mutex) = false;
  Status status HMMJIT_GUARDED_BY(mutex);
  std::vector<std::thread> threads;
};

std::shared_ptr<const SearchModel> WindowParser::State::next_model() {
  MutexLock lock(mutex);
  while (!stop && queue.empty()) lock.wait(changed);
  return stop ? nullptr : queue.back()->request.model;
}

std::vector<WorkPtr> WindowParser::State::take_batch(const Lengths& lengths) {
  std::vector<WorkPtr> batch;
  std::size_t windows = 0;
  const MutexLock lock(mutex);
  for (std::size_t n = queue.size(); n-- > 0;) {
    const ParseRequest& request = queue[n]->request;
    const std::size_t count = request.windows->size() * request.emissions.size();
    const bool fits = batch.empty() || (batch.size() < gpu::DomainStage::kMostRequests &&
                                        windows + count <= gpu::DomainStage::kMostLaunchTargets &&
                                        request.trace_seed == batch[0]->request.trace_seed);
    if (!fits || lengths_of(*request.model) != lengths) continue;
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
  while (const auto model = next_model()) {
    const Status parsed = parse_next(lane, *model);
    if (!parsed && parsed.error().code != ErrorCode::kResources) end(parsed.error());
  }
}

// A kernel that is being made does not keep threads waiting, since no launch has begun.
Status WindowParser::State::parse_next(Lane& lane, const SearchModel& model) {
  const Lengths lengths = lengths_of(model);
  HMMJIT_ASSIGN(const gpu::DomainKernels chosen, kernels_of(lengths, model.bytes.Kp));
  const std::vector<WorkPtr> batch = take_batch(lengths);
  if (batch.empty()) return {};
  const Status parsed = chosen.parser ? parse(lane, batch, chosen) : Status{};
  const MutexLock lock(mutex);
  for (const WorkPtr& work : batch) work->done = true;
  running -= std::min<std::size_t>(running, 1);
  changed.notify_all();
  return parsed;
}

Status WindowParser::State::open(Lane& lane) const {
  HMMJIT_ASSIGN(lane.uploader, gpu::Uploader::create(device));
  HMMJIT_ASSIGN(lane.origin, driver::Event::create(device, true));
  HMMJIT_ASSIGN(const driver::Stream stream, driver::Stream::create(device));
  HMMJIT_TRY(lane.origin.record(stream));
  HMMJIT_TRY(stream.synchronize());
  HMMJIT_ASSIGN(const driver::Device::Memory memory, device->memory());
  const std::size_t workspace =
      std::clamp<std::size_t>(memory.free / (4 * kParserLanes), gpu::DomainStage::kLeastWorkspace,
                              gpu::DomainStage::kMostWorkspace);
  HMMJIT_ASSIGN(lane.stage, gpu::DomainStage::create(
                                device, lane.origin,
                                [](std::size_t, std::size_t) -> Status { return {}; }, workspace));
  return {};
}

Result<gpu::ReadyKernel> WindowParser::State::kernel_of(gpu::Link link, int length,
                                                        int alphabet_codes) {
  const auto make = [&]() -> Result<gpu::ReadyKernel> {
    HMMJIT_ASSIGN(plan::Plan plan,
                  gpu::link_plan(link, length, alphabet_codes, device->traits(), source.tuning()));
    HMMJIT_ASSIGN(compile::KernelPtr kernel, source.get(plan));
    HMMJIT_ASSIGN(const gpu::AcceptedKernel accepted,
                  loader.load_accepted(plan, std::move(kernel), *device, source));
    return gpu::ReadyKernel(plan, accepted.kernel, accepted.loaded,
                            accepted.resources.blocks_per_sm);
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
  const MutexLock lock(kernel_mutex);
  if (const auto known = kernels.find(lengths); known != kernels.end()) return known->second;
  gpu::DomainKernels made;
  HMMJIT_ASSIGN(made.parser, kernel_of(gpu::Link::kParser, lengths.first, alphabet_codes));
  if (made.parser) {
    HMMJIT_ASSIGN(made.ensemble, kernel_of(gpu::Link::kEnsemble, lengths.second, alphabet_codes));
  }
  return kernels[lengths] = made;
}

Status WindowParser::State::parse(Lane& lane, std::span<const WorkPtr> batch,
                                  const gpu::DomainKernels& chosen) {
  if (lane.stage == nullptr) HMMJIT_TRY(open(lane));
  std::deque<gpu::DomainRequest> requests;
  for (const WorkPtr& work : batch) {
    const ParseRequest& of = work->request;
    auto packed = std::make_shared<gpu::PackedSegment>(
        gpu::pack_segment(std::array{gpu::BlockRef{0, of.windows}}));
    HMMJIT_ASSIGN(const std::shared_ptr<gpu::DeviceTargets> targets,
                  gpu::DeviceTargets::create(device, std::move(packed), *lane.uploader));
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
  std::vector<gpu::DomainRequest*> left;
  for (gpu::DomainRequest& request : requests) left.push_back(&request);
  while (!left.empty()) {
    HMMJIT_TRY(launch(
        *lane.stage, left, chosen,
        {.trace_seed = batch[0]->request.trace_seed,
         .launch_seconds = settings.wait_for_device ? settings.launch_timeout : kLaunchSeconds}));
    std::erase_if(left, [](const gpu::DomainRequest* request) { return !request->left_out; });
  }

  auto request = requests.begin();
  for (const WorkPtr& work : batch) {
    const ParseRequest& of = work->request;
    auto found = std::make_shared<std::vector<ParsedWindows>>();
    for (const auto& emissions : of.emissions) {
      auto& parsed = found->emplace_back(ParsedWindows{emissions, {}}).windows;
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

Status WindowParser::State::launch(gpu::DomainStage& stage, std::span<gpu::DomainRequest*> requests,
                                   const gpu::DomainKernels& chosen,
                                   const gpu::DomainLimits& limits) {
  HMMJIT_ASSIGN(const gpu::DomainResult result,
                stage.run(requests, chosen, limits, {.timeout = settings.launch_timeout}));
  counters.update([&](gpu::Statistics& s) {
    double before = static_cast<double>(result.begin);
    for (std::size_t i = 0; i < result.work.size(); ++i) {
      gpu::DomainStageTimes& of = s.domain_stages[i];
      const gpu::DomainWorkDone& work = result.work[i];
      const auto end = static_cast<double>(result.end[i]);
      of.seconds += (end - before) * 1e-3;
      of.busy_seconds += (end - before) * 1e-3;
      of.cells += work.cells;
      of.expected_seconds += work.expected_seconds;
      for (std::size_t why = 0; why < gpu::kHostReasons.size(); ++why)
        of.host_cells[why] += work.host_cells[why];
      before = end;
    }
    s.launches += result.launches;
    s.parsed += result.targets;
    s.sampled += result.regions;
  });
  return {};
}

WindowParser::WindowParser(driver::DevicePtr device, std::shared_ptr<driver::Driver> driver,
                           gpu::KernelSource& source, gpu::Counters& counters,
                           const gpu::Settings& settings)
    : state_(std::make_unique<State>(std::move(device), std::move(driver), source, counters,
                                     settings)) {}

WindowParser::~WindowParser() {
  {
    const MutexLock lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

void WindowParser::request(std::size_t model, ParseRequest request) {
  {
    const MutexLock lock(state_->mutex);
    if (state_->stop) return;
    auto work = std::make_shared<Work>(Work{std::move(request)});
    state_->works[model] = work;
    state_->queue.push_back(std::move(work));
  }
  state_->changed.notify_all();
}

std::shared_ptr<const std::vector<ParsedWindows>> WindowParser::parsed(std::size_t model) {
  State& s = *state_;
  MutexLock lock(s.mutex);
  const auto at = s.works.find(model);
  if (at == s.works.end()) return nullptr;
  const WorkPtr work = at->second;
  while (!work->done && !s.stop && (work->begun || s.settings.wait_for_device))
    lock.wait(s.changed);
  if (!work->begun) std::erase(s.queue, work);
  if (--work->request.uses == 0) s.works.erase(model);
  return work->found;
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
