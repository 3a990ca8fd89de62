#include "gpu/gpu_filters.hpp"

#include <future>
#include <optional>

#include "driver/cuda_library.hpp"
#include "gpu/gpu_filters_state.hpp"

namespace hmmjit::gpu {
namespace {

// Compiles at a time: NVRTC gains little from more, and each takes 20 MB.
constexpr int kCompilers = 2;
// What the threads that start the driver allocate.
constexpr std::size_t kDriverHeap = std::size_t{6} << 20;

}  // namespace

void GpuFilters::State::start() {
  const double begun = Trace::now();
  reach_ahead_in_heap(kDriverHeap);
  auto opened = settings.open_driver ? settings.open_driver() : driver::Driver::open();
  const double initialised = Trace::now();
  {
    const std::lock_guard lock(mutex);
    driver = opened;
    stats.driver_seconds = initialised - begun;
  }
  span("gpu start", 0, "driver", begun, initialised);
  if (const Status ready = opened->require(); !ready) return fail_all(ready.error());

  // Contexts take a sixth of a second each: all at once, while the kernel cache is opened and
  // kernels are asked for, which needs only the device's traits.
  std::optional<Error> first_error;
  std::vector<std::unique_ptr<DeviceState>> ready;
  std::vector<std::future<Result<std::unique_ptr<DeviceState>>>> opening;
  for (const int ordinal : settings.devices) {
    opening.push_back(std::async(
        std::launch::async, [this, &opened, ordinal] { return open_device(*opened, ordinal); }));
  }
  auto source = settings.open_kernels
                    ? settings.open_kernels()
                    : open_kernel_source(opened->report().version / 1000, compile_settings());
  if (!source) return fail_all(source.error());
  auto traits = opened->traits(settings.devices.empty() ? 0 : settings.devices.front());
  if (!traits) return fail_all(traits.error());
  kernels.open(*std::move(source), *traits);
  for (std::size_t i = 0; i < opening.size(); ++i) {
    const int ordinal = settings.devices[i];
    auto state = opening[i].get();
    if (!state) {
      if (!first_error) first_error = state.error();
      continue;
    }
    // One compile serves all: devices of another kind than the first would need their own.
    if (!ready.empty() &&
        (*state)->device->traits().capability() != ready.front()->device->traits().capability()) {
      warn(fmt::format("device {} is of another architecture than device {}: left out", ordinal,
                       settings.devices.front()));
      continue;
    }
    (*state)->position = static_cast<int>(ready.size());
    ready.push_back(*std::move(state));
  }
  const double contexts = Trace::now();
  span("gpu start", 0, "contexts", initialised, contexts);
  if (ready.empty()) return fail_all(first_error.value_or(Error{}));
  if (first_error) warn(first_error->to_string() + "; going on with the other devices");
  std::vector<driver::DevicePtr> usable;
  for (const auto& state : ready) usable.push_back(state->device);
  kernels.load_on(opened, std::move(usable));
  {
    const std::lock_guard lock(mutex);
    stats.context_seconds = contexts - initialised;
    stats.ready_seconds = contexts - created;
    devices = std::move(ready);
    for (const auto& device : devices) stats.devices.push_back(device->device->traits().name);
    phase = Phase::kReady;
    for (const SegmentPtr& segment : segments) assign(*segment);
    for (const auto& device : devices) {
      // Each lane holds lists as long as a segment has targets: Cascade::bytes_for().
      const int most = static_cast<int>(std::min<std::uint64_t>(device->budget >> 27, 64));
      const int count = std::clamp(most, std::min(2, settings.lanes), settings.lanes);
      device->lanes = count;
      // Targets come before what the domain stage could use, which the CPU does as well.
      device->domain_workspace = std::clamp<std::uint64_t>(
          device->budget / 24, DomainStage::kLeastWorkspace, DomainStage::kMostWorkspace);
      const std::uint64_t room = device->budget / 2 / DomainStage::bytes(device->domain_workspace);
      // A lone launch would be slower than the threads, which would wait for it.
      if (room >= 2) {
        device->domain_lanes =
            static_cast<int>(std::min(room, static_cast<std::uint64_t>(settings.domain_lanes)));
      }
      for (int i = 0; i < count; ++i)
        lanes.emplace_back([this, d = device.get(), i] { run_lane(*d, i); });
      for (int i = 0; i < device->domain_lanes; ++i)
        lanes.emplace_back([this, d = device.get(), i] { run_domain_lane(*d, i); });
    }
  }
  wake.notify_all();
}

compile::ProviderSettings GpuFilters::State::compile_settings() {
  compile::ProviderSettings out;
  // The other cores filter meanwhile, and each compile holds some hundred megabytes.
  out.threads = std::clamp(available_cores() / 4, 1, kCompilers);
  out.on_event = [this](const compile::ProviderEvent& event) {
    if (event.kind != compile::ProviderEvent::Kind::kCompiled) return;
    const double now = Trace::now();
    if (settings.trace != nullptr)
      settings.trace->add("compiler", event.kernel, now - event.seconds, now);
  };
  return out;
}

Result<std::unique_ptr<DeviceState>> GpuFilters::State::open_device(driver::Driver& opened,
                                                                    int ordinal) {
  reach_ahead_in_heap(kDriverHeap);
  auto out = std::make_unique<DeviceState>();
  HMMJIT_ASSIGN(out->device, opened.device(ordinal));
  HMMJIT_ASSIGN(const driver::Device::Memory memory, out->device->memory());
  out->budget = memory.free / 10 * 9;
  if (settings.vram > 0) out->budget = std::min(out->budget, settings.vram);
  HMMJIT_ASSIGN(const driver::Stream stream, driver::Stream::create(out->device));
  HMMJIT_ASSIGN(out->origin, driver::Event::create(out->device, true));
  HMMJIT_TRY(out->origin.record(stream));
  HMMJIT_TRY(stream.synchronize());
  out->origin_time = Trace::now();
  return out;
}

void GpuFilters::State::note_stages(DeviceState& d, int row, std::span<const char* const> stages,
                                    const std::string& what, float begin,
                                    std::span<const float> end, std::span<double> seconds) {
  const double ended = Trace::now();
  if (settings.trace != nullptr) {
    const std::string group = fmt::format("gpu {}", d.device->ordinal());
    float from = begin;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      settings.trace->add(group, row, fmt::format("{} {}", stages[i], what),
                          d.origin_time + from * 1e-3, d.origin_time + end[i] * 1e-3);
      from = end[i];
    }
  }
  const std::lock_guard lock(mutex);
  d.busy.emplace_back(begin * 1e-3, end.back() * 1e-3);
  d.last_result = ended;
  float from = begin;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    seconds[i] += (end[i] - from) * 1e-3;
    from = end[i];
  }
}

void GpuFilters::State::fail_all(const Error& error) {
  Dropped victims;
  {
    const std::lock_guard lock(mutex);
    if (phase == Phase::kFailed) return;
    phase = Phase::kFailed;
    failure = error;
    stats.reason = error.to_string();
    ++holders;
    victims = drop_segments();
  }
  wake.notify_all();
  victims = {};
  {
    const std::lock_guard lock(mutex);
    --holders;
  }
  quiet.notify_all();
  tell_failure();
}

void GpuFilters::State::tell_failure() {
  call_client([this](Client& c, WorkBoard& b) {
    {
      const std::lock_guard lock(mutex);
      if (failure_told) return;
      failure_told = true;
    }
    c.stopped(failure, settings.demanded && stats.ready_seconds == 0);
    b.refuse_all();
  });
}

GpuFilters::State::Dropped GpuFilters::State::drop_segments() {
  Dropped out;
  out.segments.swap(segments);
  out.segment_of.swap(segment_of);
  out.to_pack.swap(to_pack);
  out.loose.swap(loose);
  loose_residues = 0;
  for (const SegmentPtr& s : dropped) out.segments.push_back(s);
  dropped.clear();
  return out;
}

void GpuFilters::State::lose_device(DeviceState& d, const Error& error) {
  bool all = true, first = false;
  {
    const std::lock_guard lock(mutex);
    first = !std::exchange(d.lost, true);
    for (const auto& device : devices) all = all && device->lost;
  }
  if (first)
    warn(fmt::format("device {} is given up: {}; its work goes on {}", d.device->ordinal(),
                     error.to_string(), all ? "on the CPU" : "on the CPU and other devices"));
  if (all) {
    fail_all(error);
  } else {
    release_after_loss(d);
  }
  wake.notify_all();
}

void GpuFilters::State::release_after_loss(DeviceState& d) {
  std::vector<SegmentPtr> orphans;
  std::vector<std::shared_ptr<DeviceTargets>> freed;
  {
    const std::lock_guard lock(mutex);
    if (!d.lost || phase == Phase::kFailed) return;
    ++holders;
    for (const SegmentPtr& s : segments) {
      if (s->device != d.position || s->running > 0) continue;
      s->device = -1;
      assign(*s);
      if (s->device < 0) {
        s->abandoned = true;
        orphans.push_back(s);
      } else if (s->resident != nullptr) {
        freed.push_back(std::move(s->resident));
        s->resident.reset();
        s->packed.reset();
        to_pack.push_back(s);
      }
    }
  }
  wake.notify_all();
  freed.clear();
  for (const SegmentPtr& segment : orphans) release_abandoned(segment);
  orphans.clear();
  {
    const std::lock_guard lock(mutex);
    --holders;
  }
  quiet.notify_all();
}

// ---- interface ----------------------------------------------------------------------------------

GpuFilters::GpuFilters(Settings settings) : state_(std::make_unique<State>(std::move(settings))) {
  // Where there is no driver at all, even the shortest search that demands one is told.
  if (state_->settings.demanded && !state_->settings.open_driver) {
    const driver::DriverReport report = driver::open_cuda_library().report;
    if (report.state != driver::DriverState::kReady)
      state_->fail_all({ErrorCode::kNoDevice, report.message, {}, report.remedy});
  }
  state_->packer = std::thread([s = state_.get()] { s->run_packer(); });
  state_->relief = std::thread([s = state_.get()] { s->run_relief(); });
  state_->starter = std::thread([s = state_.get()] { s->start(); });
}

GpuFilters::~GpuFilters() {
  State& s = *state_;
  detach();
  {
    const std::lock_guard lock(s.mutex);
    s.stop = true;
  }
  s.kernels.stop();
  s.wake.notify_all();
  s.starter.join();
  s.packer.join();
  s.relief.join();
  // The starter made the lanes, perhaps after `stop` was set.
  s.wake.notify_all();
  for (std::thread& lane : s.lanes) lane.join();
}

void GpuFilters::attach(Client& client, WorkBoard& board, const FilterLimits& limits,
                        std::uint64_t host_bytes) {
  bool failed = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->client = &client;
    state_->board = &board;
    state_->limits = limits;
    state_->host_bytes = host_bytes;
    state_->failure_told = false;
    state_->streaming = false;
    state_->next_segment_residues = state_->settings.segment_residues;
    failed = state_->phase == State::Phase::kFailed;
  }
  if (failed) state_->tell_failure();
}

void GpuFilters::detach() {
  State& s = *state_;
  std::map<std::uint64_t, ModelPtr> models;
  State::Dropped victims;
  std::unique_lock lock(s.mutex);
  s.client = nullptr;
  s.board = nullptr;
  s.to_pack.clear();
  s.quiet.wait(lock, [&] { return s.client_calls == 0 && s.holders == 0; });
  models.swap(s.models);
  victims = s.drop_segments();
  lock.unlock();
}

void GpuFilters::add_model(std::uint64_t id, std::shared_ptr<const SearchModel> model) {
  const std::lock_guard lock(state_->mutex);
  if (state_->phase == State::Phase::kFailed) return;
  auto entry = std::make_shared<Model>();
  entry->id = id;
  entry->search = std::move(model);
  entry->slots = state_->kernels.of(*entry->search);
  state_->models.emplace(id, std::move(entry));
}

void GpuFilters::remove_model(std::uint64_t id) {
  ModelPtr victim;
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->models.find(id);
  if (found == state_->models.end()) return;
  victim = std::move(found->second);
  state_->models.erase(found);
}

void GpuFilters::add_block(BlockRef block) {
  const std::lock_guard lock(state_->mutex);
  if (state_->phase == State::Phase::kFailed) return;
  state_->loose_residues += block.targets->residue_count();
  state_->loose.push_back(std::move(block));
  state_->close_segments(false);
}

void GpuFilters::end_blocks() {
  const std::lock_guard lock(state_->mutex);
  state_->close_segments(true);
}

void GpuFilters::set_streaming() {
  std::vector<SegmentPtr> victims;
  const std::lock_guard lock(state_->mutex);
  state_->streaming = true;
  // Lanes drop what they finish from now on; what they have finished already goes here, or its
  // blocks would hold the memory that reading waits for.
  state_->forget_finished();
  victims.swap(state_->dropped);
}

void GpuFilters::look_at_board() {
  const std::lock_guard lock(state_->mutex);
  if (state_->phase == State::Phase::kReady) state_->wake.notify_all();
}

void GpuFilters::exclude(const std::vector<UsedKernel>& kernels) {
  for (const UsedKernel& kernel : kernels) state_->kernels.exclude(kernel.name);
  state_->wake.notify_all();
}

bool GpuFilters::serves(std::uint64_t model, std::uint64_t block) const {
  const std::lock_guard lock(state_->mutex);
  if (state_->phase != State::Phase::kReady) return false;
  const auto found = state_->models.find(model);
  if (found == state_->models.end()) return false;
  const auto segment = state_->segment_of.find(block);
  const bool on_device =
      segment != state_->segment_of.end() && segment->second->loaded && !segment->second->abandoned;
  if (!on_device && !state_->settings.patient) return false;
  const Model& entry = *found->second;
  if (entry.state == Model::State::kReady) return true;
  if (entry.state != Model::State::kWaiting) return false;
  const KernelSlots* const slots =
      entry.slots != nullptr ? entry.slots : state_->kernels.of(*entry.search);
  if (slots == nullptr) return state_->settings.patient;
  return state_->kernels.state(*slots) == ChainKernels::State::kThere;
}

std::string GpuFilters::name() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->phase != State::Phase::kReady || state_->devices.empty()) return {};
  const plan::DeviceTraits& traits = state_->devices.front()->device->traits();
  std::string out = fmt::format("gpu/sm_{}", traits.capability());
  if (state_->devices.size() > 1) out += fmt::format(" x{}", state_->devices.size());
  return out;
}

GpuFilters::UnfinishedKernels GpuFilters::unfinished_kernels() const {
  UnfinishedKernels out;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->devices.empty()) return out;
    out.device = state_->devices.front()->device->ordinal();
  }
  out.lengths = state_->kernels.unfinished_lengths();
  return out;
}

Statistics GpuFilters::statistics() const {
  State& s = *state_;
  const std::lock_guard lock(s.mutex);
  Statistics out = s.stats;
  out.state = s.phase == State::Phase::kReady      ? (out.launches > 0 ? "ready" : "unused")
              : s.phase == State::Phase::kStarting ? "starting"
                                                   : "failed";
  out.reason = s.why();
  out.kernels = s.kernels.statistics();
  out.distinct_kernels = s.kernels.loaded_kernels();
  for (const auto& device : s.devices) {
    auto busy = device->busy;
    std::ranges::sort(busy);
    double reached = -1;
    for (const auto& [begin, end] : busy) {
      out.busy_seconds += std::max(0.0, end - std::max(begin, reached));
      reached = std::max(reached, end);
    }
    if (device->last_result > 0) out.active_seconds += device->last_result - device->origin_time;
  }
  return out;
}

}  // namespace hmmjit::gpu
