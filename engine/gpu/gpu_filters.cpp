#include "gpu/gpu_filters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

#include "driver/cuda_library.hpp"
#include "gpu/domain_lane.hpp"
#include "gpu/filter_lane.hpp"
#include "gpu/lane_work.hpp"
#include "gpu/search_parts.hpp"

namespace hmmjit::gpu {
namespace {

void pack(SearchParts& parts, const PackSegment& work) {
  const double begun = Trace::now();
  auto packed = std::make_shared<PackedSegment>(pack_segment(work.segment->blocks));
  const double done = Trace::now();
  parts.span("gpu start", 1, "pack", begun, done);
  parts.counters.update([&](Statistics& s) { s.pack_seconds += done - begun; });
  parts.targets.packed(work.segment, std::move(packed));
}

}  // namespace

struct GpuFilters::State {
  explicit State(Settings settings) : parts(std::move(settings)) {}
  // Also if not all of its threads could be started.
  ~State();
  void start();

  const double created = Trace::now();
  SearchParts parts;
  std::thread starter, packer;
  std::vector<std::thread> lanes;  // the starter's, and then the destructor's
};

void GpuFilters::State::start() {
  auto devices = start_devices(parts);
  if (!devices) return parts.fail_all(devices.error());
  parts.counters.update([&](Statistics& s) { s.ready_seconds = Trace::now() - created; });
  parts.set_devices(*std::move(devices));
  for (ActiveDevice* const device : parts.devices()) {
    // Before any thread starts: one that the vector had no memory for would end the process.
    lanes.reserve(lanes.size() + static_cast<std::size_t>(device->lanes + device->domain_lanes));
    for (int i = 0; i < device->lanes; ++i)
      lanes.push_back(parts.thread([this, device, i] { FilterLane(parts, *device, i).run(); }));
    for (int i = 0; i < device->domain_lanes; ++i)
      lanes.push_back(parts.thread([this, device, i] { DomainLane(parts, *device, i).run(); }));
  }
  parts.ready();
}

GpuFilters::State::~State() {
  parts.stop = true;
  parts.kernels.stop();
  parts.changed.raise();
  parts.handed_over.raise();
  for (std::thread* const thread : {&starter, &packer}) {
    if (thread->joinable()) thread->join();
  }
  for (std::thread& lane : lanes) lane.join();
  parts.targets.forget();
}

GpuFilters::GpuFilters(Settings settings) : state_(std::make_unique<State>(std::move(settings))) {
  SearchParts& parts = state_->parts;
  // Without a driver even the shortest search that demands a device must report an error.
  if (parts.settings.demanded && !parts.settings.open_driver) {
    const driver::DriverReport report = driver::open_cuda_library().report;
    if (report.state != driver::DriverState::kReady) parts.fail_all(driver::error_of(report));
  }
  state_->packer = parts.thread([&parts] {
    while (const auto work = next_to_pack(parts)) pack(parts, *work);
  });
  state_->starter = parts.thread([s = state_.get()] {
    try {
      s->start();
    } catch (const std::system_error& error) {
      s->parts.fail_all(refused_threads("the threads a GPU needs", error));
    }
  });
}

GpuFilters::~GpuFilters() { detach(); }

void GpuFilters::attach(Client& client, WorkBoard& board, const FilterLimits& limits,
                        std::uint64_t host_bytes) {
  SearchParts& parts = state_->parts;
  for (std::size_t n = 0; ActiveDevice* const device = parts.device(n); ++n)
    device->domain_queue.open();
  parts.targets.attach(board, host_bytes);
  parts.clients.attach(client, board, limits);
  parts.begin_client();
}

void GpuFilters::detach() {
  SearchParts& parts = state_->parts;
  for (std::size_t n = 0; ActiveDevice* const device = parts.device(n); ++n)
    device->domain_queue.close();
  parts.clients.detach();
  parts.models.clear();
  parts.targets.clear();
}

void GpuFilters::add_model(std::uint64_t id, std::shared_ptr<const SearchModel> model) {
  SearchParts& parts = state_->parts;
  if (parts.phase() == Phase::kFailed) return;
  auto entry = std::make_shared<ActiveModel>(id, std::move(model));
  entry->refresh(parts.kernels);  // its class is planned from now on
  parts.models.add(std::move(entry));
}

void GpuFilters::remove_model(std::uint64_t id) { state_->parts.models.remove(id); }

void GpuFilters::add_block(BlockRef block) {
  state_->parts.targets.add(std::move(block), state_->parts.models.size());
}

void GpuFilters::end_blocks() { state_->parts.targets.flush(); }

void GpuFilters::set_streaming() { state_->parts.targets.set_streaming(); }

void GpuFilters::look_at_board() {
  if (state_->parts.phase() == Phase::kReady) state_->parts.changed.raise();
}

void GpuFilters::pair_taken() {
  SearchParts& parts = state_->parts;
  if (parts.packer_waits) parts.changed.raise();
  for (std::size_t n = 0; const ActiveDevice* const device = parts.device(n); ++n) {
    if (device->domain_queue.chains() > 0) return parts.handed_over.raise();
  }
}

bool GpuFilters::backfill(const HostLoad& load) { return gpu::backfill(state_->parts, load); }

bool GpuFilters::serves(std::uint64_t model, std::uint64_t block) const {
  SearchParts& parts = state_->parts;
  if (parts.phase() != Phase::kReady) return false;
  const ActiveModelPtr entry = parts.models.find(model);
  if (entry == nullptr) return false;
  const bool wait = parts.settings.wait_for_device;
  if (!wait && !parts.targets.has_been_resident(block)) return false;
  const bool unplanned =
      entry->kernels() == nullptr;  // looked at first: it may be planned meanwhile
  const ActiveModel::State now = entry->refresh(parts.kernels);
  return now == ActiveModel::State::kReady ||
         (wait && unplanned && now == ActiveModel::State::kWaiting);
}

std::string GpuFilters::name() const {
  const std::vector<ActiveDevice*> devices = state_->parts.devices();
  if (state_->parts.phase() != Phase::kReady || devices.empty()) return {};
  std::string out = fmt::format("gpu/sm_{}", devices.front()->device->traits().capability());
  if (devices.size() > 1) out += fmt::format(" x{}", devices.size());
  return out;
}

GpuFilters::UnfinishedKernels GpuFilters::unfinished_kernels() const {
  const std::vector<ActiveDevice*> devices = state_->parts.devices();
  if (devices.empty()) return {};
  return {.device = devices.front()->device->ordinal(),
          .lengths = state_->parts.kernels.unfinished_lengths()};
}

Statistics GpuFilters::statistics() const {
  SearchParts& parts = state_->parts;
  Statistics out = parts.counters.get();
  const Phase phase = parts.phase();
  out.state = phase == Phase::kStarting ? "starting"
              : phase == Phase::kFailed ? "failed"
              : out.launches > 0        ? "ready"
                                        : "unused";
  out.reason = parts.reason();
  out.kernels = parts.kernels.statistics();
  out.distinct_kernels = parts.kernels.loaded_kernels();
  for (const ActiveDevice* device : parts.devices()) {
    out.busy_seconds += device->busy.seconds();
    out.filters_busy_seconds += device->filters_busy.seconds();
    for (std::size_t i = 0; i < out.stages.size(); ++i)
      out.stages[i].busy_seconds += device->filter_busy[i].seconds();
    for (std::size_t i = 0; i < out.domain_stages.size(); ++i)
      out.domain_stages[i].busy_seconds += device->domain_busy[i].seconds();
    if (device->busy.last_result() > 0)
      out.active_seconds += device->busy.last_result() - device->origin_time;
    out.peak_device_bytes = std::max(out.peak_device_bytes, device->memory.peak());
  }
  return out;
}

}  // namespace hmmjit::gpu
