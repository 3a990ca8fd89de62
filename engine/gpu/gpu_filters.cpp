#include "gpu/gpu_filters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "driver/cuda_library.hpp"
#include "gpu/domain_lane.hpp"
#include "gpu/engine_state.hpp"
#include "gpu/filter_lane.hpp"
#include "gpu/lane_work.hpp"

namespace hmmjit::gpu {
namespace {

void pack(EngineState& engine, const PackSegment& work) {
  const double begun = Trace::now();
  auto packed = std::make_shared<PackedSegment>(pack_segment(work.segment->blocks));
  const double done = Trace::now();
  engine.span("gpu start", 1, "pack", begun, done);
  engine.counters.update([&](Statistics& s) { s.pack_seconds += done - begun; });
  engine.targets.packed(work.segment, std::move(packed));
}

// Memory that a device lacked in an earlier search may be free again. Segments that were made for
// less memory are not kept.
void restore_memory(EngineState& engine) {
  for (std::size_t n = 0; ActiveDevice* const one = engine.device(n); ++n) {
    if (one->lost || !one->memory.reduced()) continue;
    const auto memory = one->device->memory();
    if (!memory || !one->memory.restore(memory->free)) continue;
    while (engine.targets.make_room(*one)) {
    }
  }
}

}  // namespace

struct GpuFilters::State {
  explicit State(Settings settings) : engine(std::move(settings)) {}
  // Must also work if some of its threads could not be started.
  ~State();
  void start();

  const double created = Trace::now();
  EngineState engine;
  std::thread starter, packer;
  std::vector<std::thread> lanes;  // first the starter's, then the destructor's
};

void GpuFilters::State::start() {
  auto devices = start_devices(engine);
  if (!devices) return engine.fail_all(devices.error());
  engine.counters.update([&](Statistics& s) { s.ready_seconds = Trace::now() - created; });
  engine.set_devices(*std::move(devices));
  for (ActiveDevice* const device : engine.devices()) {
    // Reserve before any thread starts: a thread without room in the vector would end the process.
    lanes.reserve(lanes.size() + static_cast<std::size_t>(device->lanes + device->domain_lanes));
    for (int i = 0; i < device->lanes; ++i)
      lanes.push_back(engine.thread("hmmjit filters",
                                    [this, device, i] { FilterLane(engine, *device, i).run(); }));
    for (int i = 0; i < device->domain_lanes; ++i)
      lanes.push_back(engine.thread("hmmjit domains",
                                    [this, device, i] { DomainLane(engine, *device, i).run(); }));
  }
  engine.ready();
}

GpuFilters::State::~State() {
  engine.stop = true;
  engine.kernels.stop();
  engine.changed.raise();
  engine.handed_over.raise();
  for (std::thread* const thread : {&starter, &packer}) {
    if (thread->joinable()) thread->join();
  }
  for (std::thread& lane : lanes) lane.join();
  engine.targets.forget();
}

GpuFilters::GpuFilters(Settings settings) : state_(std::make_unique<State>(std::move(settings))) {
  EngineState& engine = state_->engine;
  // If there is no driver, even the shortest search that demands a device must report an error.
  if (engine.settings.demanded && !engine.settings.open_driver) {
    const driver::DriverReport report = driver::open_cuda_library().report;
    if (report.state != driver::DriverState::kReady) engine.fail_all(driver::error_of(report));
  }
  state_->packer = engine.thread("hmmjit packer", [&engine] {
    while (const auto work = next_to_pack(engine)) pack(engine, *work);
  });
  state_->starter = engine.thread("hmmjit starter", [s = state_.get()] {
    try {
      s->start();
    } catch (const std::system_error& error) {
      s->engine.fail_all(refused_threads("the threads a GPU needs", error));
    }
  });
}

GpuFilters::~GpuFilters() { detach(); }

void GpuFilters::give_up(const Error& error) {
  state_->engine.fail_all(error);
  state_->engine.targets.forget();
}

void GpuFilters::attach(Client& client, WorkBoard& board, const FilterLimits& limits,
                        std::uint64_t host_bytes) {
  EngineState& engine = state_->engine;
  engine.open_queues(true);
  restore_memory(engine);
  engine.targets.attach(board, host_bytes);
  engine.clients.attach(client, board, limits);
  engine.begin_client();
}

void GpuFilters::detach() {
  EngineState& engine = state_->engine;
  engine.open_queues(false);
  engine.clients.detach();
  engine.models.clear();
  engine.targets.clear();
}

void GpuFilters::release_unknown_targets() { state_->engine.targets.release_unknown(); }

void GpuFilters::add_model(std::uint64_t id, std::shared_ptr<const SearchModel> model) {
  EngineState& engine = state_->engine;
  if (engine.phase() == Phase::kFailed) return;
  auto entry = std::make_shared<ActiveModel>(id, std::move(model));
  entry->refresh(engine.kernels);  // from now on its class is planned
  engine.models.add(std::move(entry));
}

void GpuFilters::remove_model(std::uint64_t id) { state_->engine.models.remove(id); }

void GpuFilters::add_block(BlockRef block) { state_->engine.targets.add(std::move(block)); }

void GpuFilters::end_blocks() { state_->engine.targets.flush(); }

void GpuFilters::set_streaming() { state_->engine.targets.set_streaming(); }

void GpuFilters::look_at_board() {
  if (state_->engine.phase() == Phase::kReady) state_->engine.changed.raise();
}

void GpuFilters::pair_taken() {
  EngineState& engine = state_->engine;
  if (engine.packer_waits) engine.changed.raise();
  for (std::size_t n = 0; const ActiveDevice* const device = engine.device(n); ++n) {
    if (device->domain_queue.chains() > 0) return engine.handed_over.raise();
  }
}

bool GpuFilters::backfill(const HostLoad& load) { return gpu::backfill(state_->engine, load); }

bool GpuFilters::serves(std::uint64_t model, std::uint64_t block) const {
  EngineState& engine = state_->engine;
  if (engine.phase() != Phase::kReady) return false;
  const ActiveModelPtr entry = engine.models.find(model);
  if (entry == nullptr) return false;
  const bool wait = engine.settings.wait_for_device;
  if (!wait && !engine.targets.has_been_resident(block)) return false;
  const bool unplanned =
      entry->kernels() == nullptr;  // check first, as it may be planned meanwhile
  const ActiveModel::State now = entry->refresh(engine.kernels);
  return now == ActiveModel::State::kReady ||
         (wait && unplanned && now == ActiveModel::State::kWaiting);
}

std::string GpuFilters::name() const {
  const std::vector<ActiveDevice*> devices = state_->engine.devices();
  if (state_->engine.phase() != Phase::kReady || devices.empty()) return {};
  std::string out = fmt::format("gpu/sm_{}", devices.front()->device->traits().capability());
  if (devices.size() > 1) out += fmt::format(" x{}", devices.size());
  return out;
}

GpuFilters::UnfinishedKernels GpuFilters::unfinished_kernels() const {
  const std::vector<ActiveDevice*> devices = state_->engine.devices();
  if (devices.empty()) return {};
  return {.device = devices.front()->device->ordinal(),
          .lengths = state_->engine.kernels.unfinished_lengths()};
}

void add(Statistics& sum, const DomainResult& launch) {
  double before = launch.begin;
  for (std::size_t i = 0; i < launch.work.size(); ++i) {
    DomainStageTimes& stage = sum.domain_stages[i];
    const DomainWorkDone& work = launch.work[i];
    stage.seconds += (launch.end[i] - before) * 1e-3;
    stage.cells += work.cells;
    stage.expected_seconds += work.expected_seconds;
    for (std::size_t why = 0; why < kHostReasons.size(); ++why)
      stage.host_cells[why] += work.host_cells[why];
    before = launch.end[i];
  }
  sum.launches += launch.launches;
  sum.parsed += launch.targets;
  sum.sampled += launch.regions;
  sum.envelopes += launch.envelopes;
}

namespace {

template <typename T, typename... Members>
void subtract(T& from, const T& other, Members... members) {
  ((from.*members -= other.*members), ...);
}

void subtract(StageTimes& from, const StageTimes& other) {
  using S = StageTimes;
  subtract(from, other, &S::seconds, &S::busy_seconds, &S::cells, &S::expected_seconds);
}

void subtract(LaneTimes& from, const LaneTimes& other) {
  subtract(from, other, &LaneTimes::working, &LaneTimes::waiting, &LaneTimes::idle);
}

// All but active_seconds.
void subtract(Statistics& from, const Statistics& other) {
  using S = Statistics;
  subtract(from, other, &S::pack_seconds, &S::busy_seconds, &S::upload_bytes, &S::segments,
           &S::evictions, &S::launches, &S::chains, &S::cells, &S::targets, &S::survivors,
           &S::undecided, &S::viterbi, &S::viterbi_flagged, &S::forward, &S::open, &S::passed,
           &S::parsed, &S::sampled, &S::envelopes, &S::filters_busy_seconds, &S::blocks_done,
           &S::blocks_given_back, &S::models_declined);
  for (std::size_t i = 0; i < from.stages.size(); ++i) subtract(from.stages[i], other.stages[i]);
  for (std::size_t i = 0; i < from.domain_stages.size(); ++i) {
    DomainStageTimes& stage = from.domain_stages[i];
    subtract(static_cast<StageTimes&>(stage), other.domain_stages[i]);
    for (std::size_t why = 0; why < kHostReasons.size(); ++why)
      stage.host_cells[why] -= other.domain_stages[i].host_cells[why];
  }
  subtract(from.filter_lanes, other.filter_lanes);
  subtract(from.domain_lanes, other.domain_lanes);
  using K = compile::ProviderStatistics;
  subtract(from.kernels, other.kernels, &K::requests, &K::shared, &K::compiled, &K::memory_hits,
           &K::disk_hits, &K::rejected, &K::failed, &K::refused, &K::compile_seconds);
}

}  // namespace

Statistics GpuFilters::statistics(const Statistics& earlier) const {
  EngineState& engine = state_->engine;
  Statistics out = engine.counters.get();
  out.taken = Trace::now();
  out.reason = engine.reason();
  out.kernels = engine.kernels.statistics();
  out.distinct_kernels = engine.kernels.loaded_kernels();
  for (const ActiveDevice* device : engine.devices()) {
    out.busy_seconds += device->busy.seconds();
    out.filters_busy_seconds += device->filters_busy.seconds();
    for (std::size_t i = 0; i < out.stages.size(); ++i)
      out.stages[i].busy_seconds += device->filter_busy[i].seconds();
    for (std::size_t i = 0; i < out.domain_stages.size(); ++i)
      out.domain_stages[i].busy_seconds += device->domain_busy[i].seconds();
    out.active_seconds +=
        std::max(0.0, device->busy.last_result() - std::max(device->origin_time, earlier.taken));
    out.peak_device_bytes = std::max(out.peak_device_bytes, device->memory.peak());
  }
  subtract(out, earlier);
  const Phase phase = engine.phase();
  out.state = phase == Phase::kStarting ? "starting"
              : phase == Phase::kFailed ? "failed"
              : out.launches > 0        ? "ready"
                                        : "unused";
  return out;
}

}  // namespace hmmjit::gpu
