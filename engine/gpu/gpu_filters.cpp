#include "gpu/gpu_filters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <future>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>
#include <utility>

#include "core/threads.hpp"
#include "driver/cuda_library.hpp"
#include "gpu/chain_kernels.hpp"

namespace hmmjit::gpu {
namespace {

// A model on the way to or on the devices.
struct Model {
  std::uint64_t id = 0;
  std::shared_ptr<const SearchModel> search;
  const KernelSlots* slots = nullptr;  // null: not planned yet
  enum class State { kWaiting, kReady, kDeclined } state = State::kWaiting;
};
using ModelPtr = std::shared_ptr<Model>;

struct Segment {
  std::vector<BlockRef> blocks;
  std::vector<std::uint64_t> block_ids;
  std::uint64_t residues = 0;
  int device = -1;  // position in the list of devices; -1: not assigned yet
  std::shared_ptr<PackedSegment> packed;
  std::shared_ptr<DeviceTargets> resident;
  std::set<std::uint64_t> pending;  // models with offered blocks
  int running = 0;                  // lanes at work on it or loading it
  bool loading = false;
  bool loaded = false;     // has been resident
  bool abandoned = false;  // the device has no room even for this alone
  std::uint64_t last_use = 0;
};
using SegmentPtr = std::shared_ptr<Segment>;

// A chain whose targets wait for the domain stage. The client and the segment are held meanwhile.
struct DomainWork {
  ModelPtr model;
  SegmentPtr segment;
  Client* client = nullptr;
  std::vector<bool> claimed;
  CascadeResult found;
  DomainRequest request;
};
using DomainWorkPtr = std::unique_ptr<DomainWork>;

struct DeviceState {
  int position = 0;
  driver::DevicePtr device;
  driver::Event origin;  // recorded at `origin_time`
  double origin_time = 0;
  // Of `budget` bytes: what lanes hold, and what segments being loaded will take.
  std::uint64_t budget = 0, lane_bytes = 0, loading_bytes = 0;
  int lanes = 0, domain_lanes = 0;
  std::uint64_t domain_workspace = 0;
  std::deque<DomainWorkPtr> domain_work;
  std::size_t domain_targets = 0;  // of them
  double first_chain = 0;          // when it began
  std::uint64_t chains = 0;        // that have ended
  bool lost = false;
  std::atomic<double> progress{0};  // see StreamWait
  std::vector<std::pair<double, double>> busy;
  double last_result = 0;
  std::mutex upload_mutex;
  std::unique_ptr<Uploader> uploader;
};

struct Lane {
  DeviceState* device = nullptr;
  int number = 0;
  std::unique_ptr<Cascade> cascade;
  bool reserved = false;  // what its first chain needs
};

// Compiles at a time: NVRTC gains little from more, and each takes 20 MB.
constexpr int kCompilers = 2;
// What the threads that start the driver and those of the lanes allocate at a time.
constexpr std::size_t kDriverHeap = std::size_t{6} << 20, kLaneHeap = std::size_t{2} << 20;

}  // namespace

struct GpuFilters::State {
  explicit State(Settings s)
      : settings(std::move(s)),
        kernels({settings.finer_kernel_seconds, settings.trace, [this] { wake.notify_all(); }}) {}

  Settings settings;
  const double created = Trace::now();

  mutable std::mutex mutex;
  std::condition_variable wake;   // lanes: something to do
  std::condition_variable quiet;  // detach: client_calls fell to 0
  Client* client = nullptr;
  int client_calls = 0;
  int holders = 0;  // threads with a segment in hand: its blocks belong to the client
  FilterLimits limits;
  std::uint64_t host_bytes = 0;  // for packed copies; 0: any
  bool stop = false;
  enum class Phase { kStarting, kReady, kFailed } phase = Phase::kStarting;
  Error failure;
  bool failure_told = false;
  bool warned_memory = false, warned_kernel = false;
  bool streaming = false;

  std::map<std::uint64_t, ModelPtr> models;
  std::vector<BlockRef> loose;  // blocks not in a segment yet
  std::uint64_t loose_residues = 0;
  std::map<std::uint64_t, SegmentPtr> segment_of;                  // by block
  std::set<std::pair<std::uint64_t, std::uint64_t>> loose_offers;  // block, model
  std::vector<SegmentPtr> segments;
  std::deque<SegmentPtr> to_pack;
  std::uint64_t use_clock = 0;

  std::shared_ptr<driver::Driver> driver;
  std::vector<std::unique_ptr<DeviceState>> devices;
  Statistics stats;

  std::thread starter, packer, relief;
  std::vector<std::thread> lanes;
  ChainKernels kernels;

  // ---- start ----------------------------------------------------------------------------------

  void start() {
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
            device->budget / 8, DomainStage::kLeastWorkspace, DomainStage::kMostWorkspace);
        const std::uint64_t room =
            device->budget / 2 / DomainStage::bytes(device->domain_workspace);
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

  compile::ProviderSettings compile_settings() {
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

  Result<std::unique_ptr<DeviceState>> open_device(driver::Driver& opened, int ordinal) {
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

  void span(const char* group, int row, std::string_view name, double begin, double end) const {
    if (settings.trace != nullptr) settings.trace->add(group, row, name, begin, end);
  }
  void warn(const std::string& text) const {
    if (settings.on_warning) settings.on_warning(text);
  }

  // No device will ever work (again): everything not claimed is the owner's.
  void fail_all(const Error& error) {
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

  void tell_failure() {
    call_client([this](Client& c) {
      {
        const std::lock_guard lock(mutex);
        if (failure_told) return;
        failure_told = true;
      }
      c.stopped(failure, settings.demanded && stats.ready_seconds == 0);
    });
  }

  // What refers to blocks; to be destroyed without the lock.
  struct Dropped {
    std::vector<SegmentPtr> segments;
    std::map<std::uint64_t, SegmentPtr> segment_of;
    std::deque<SegmentPtr> to_pack;
    std::vector<BlockRef> loose;
  };
  // With mutex held.
  Dropped drop_segments() {
    Dropped out;
    for (const SegmentPtr& s : segments) s->pending.clear();
    out.segments.swap(segments);
    out.segment_of.swap(segment_of);
    out.to_pack.swap(to_pack);
    out.loose.swap(loose);
    loose_offers.clear();
    loose_residues = 0;
    for (const SegmentPtr& s : dropped) out.segments.push_back(s);
    dropped.clear();
    forgotten.clear();
    return out;
  }

  // Calls the client, if one is attached, without the lock; detach waits for it.
  template <typename Function>
  void call_client(Function function) {
    Client* c = nullptr;
    {
      const std::lock_guard lock(mutex);
      if (client == nullptr) return;
      c = client;
      ++client_calls;
    }
    struct Ended {
      State& state;
      ~Ended() {
        {
          const std::lock_guard lock(state.mutex);
          --state.client_calls;
        }
        state.quiet.notify_all();
      }
    };
    const Ended ended{*this};
    function(*c);
  }

  // With mutex held.
  std::string why() const { return stats.reason.empty() ? kernels.reason() : stats.reason; }

  // ---- models ---------------------------------------------------------------------------------

  // With mutex held: whether a chain of the model can begin. Declined models are returned once.
  bool refresh(Model& model, std::vector<std::uint64_t>& declined) {
    if (model.state == Model::State::kReady) return true;
    if (model.state == Model::State::kWaiting) {
      if (model.slots == nullptr) model.slots = kernels.of(*model.search);
      if (model.slots == nullptr) return false;
      switch (kernels.state(*model.slots)) {
        case ChainKernels::State::kThere:
          model.state = Model::State::kReady;
          return true;
        case ChainKernels::State::kComing:
          return false;
        case ChainKernels::State::kFailed:
          model.state = Model::State::kDeclined;
      }
    }
    declined.push_back(model.id);
    return false;
  }

  // ---- segments -------------------------------------------------------------------------------

  // With mutex held.
  void close_segment(std::size_t first, std::size_t last) {
    auto segment = std::make_shared<Segment>();
    for (std::size_t i = first; i < last; ++i) {
      BlockRef& block = loose[i];
      segment->residues += block.targets->residue_count();
      segment->block_ids.push_back(block.id);
      for (auto offer = loose_offers.lower_bound({block.id, 0});
           offer != loose_offers.end() && offer->first == block.id;
           offer = loose_offers.erase(offer)) {
        if (models.contains(offer->second)) segment->pending.insert(offer->second);
      }
      segment_of[block.id] = segment;
      segment->blocks.push_back(std::move(block));
    }
    ++stats.segments;
    segments.push_back(segment);
    to_pack.push_back(segment);
    if (phase == Phase::kReady) assign(*segment);
  }

  // With mutex held: to the device with the fewest residues.
  void assign(Segment& segment) {
    if (segment.device >= 0 || devices.empty()) return;
    std::vector<std::uint64_t> load(devices.size(), 0);
    for (const SegmentPtr& s : segments) {
      if (s->device >= 0) load[static_cast<std::size_t>(s->device)] += s->residues;
    }
    std::uint64_t best = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t d = 0; d < devices.size(); ++d) {
      if (!devices[d]->lost && load[d] < best) {
        best = load[d];
        segment.device = static_cast<int>(d);
      }
    }
  }

  // With mutex held. Loose blocks into segments of equal size, as many for each device: rounds of
  // full ones now, the rest when `all` is set.
  void close_segments(bool all) {
    if (phase == Phase::kFailed || loose.empty()) return;
    const auto shares =
        static_cast<std::uint64_t>(std::max<std::size_t>(settings.devices.size(), 1));
    std::uint64_t most = settings.segment_residues;
    // Half the device memory at most, so that two segments fit and one loads while one is used.
    if (settings.vram > 0) most = std::min(most, settings.vram / 4);
    // A packed copy waits for each device while the next one is made.
    if (host_bytes > 0) most = std::min(most, host_bytes / (shares + 1));
    most = std::max<std::uint64_t>(most, 1);
    const std::uint64_t round = most * shares;
    if (!all && loose_residues < round) return;
    // The block that completes a round makes its segments a little larger, not twice as many.
    const std::uint64_t rounds = (loose_residues + (all ? round - 1 : 0)) / round;
    const std::uint64_t pieces = std::max<std::uint64_t>(rounds, 1) * shares;
    const std::uint64_t total = loose_residues;
    std::uint64_t reached = 0, made = 0;
    std::size_t first = 0;
    for (std::size_t i = 0; i < loose.size(); ++i) {
      reached += loose[i].targets->residue_count();
      if (i + 1 < loose.size() && reached * pieces < total * (made + 1)) continue;
      close_segment(first, i + 1);
      first = i + 1;
      made = reached * pieces / std::max<std::uint64_t>(total, 1);
    }
    loose.clear();
    loose_residues = 0;
    wake.notify_all();
  }

  // With mutex held: the next segment to pack, null when enough are packed ahead of their upload.
  // A database is not copied, only indexed.
  SegmentPtr next_to_pack() const {
    if (to_pack.empty()) return nullptr;
    std::size_t ahead = 0;
    for (const SegmentPtr& s : segments) {
      ahead += s->packed != nullptr && s->resident == nullptr && !s->abandoned &&
               !s->pending.empty() && !s->packed->targets.residues.empty();
    }
    return ahead < settings.devices.size() ? to_pack.front() : nullptr;
  }

  void run_packer() {
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stop || next_to_pack() != nullptr; });
      if (stop) return;
      SegmentPtr segment = next_to_pack();
      to_pack.pop_front();
      ++holders;
      lock.unlock();
      const double begun = Trace::now();
      std::shared_ptr<PackedSegment> packed;
      try {
        packed = std::make_shared<PackedSegment>(pack_segment(segment->blocks));
      } catch (const std::bad_alloc&) {
        // Without a packed copy the owner's threads do these blocks.
      }
      const double done = Trace::now();
      span("gpu start", 1, "pack", begun, done);
      lock.lock();
      stats.pack_seconds += done - begun;
      if (packed != nullptr) {
        segment->packed = std::move(packed);
        wake.notify_all();
      } else {
        segment->abandoned = true;
        lock.unlock();
        release_abandoned(segment);
        lock.lock();
      }
      let_go(lock, segment);
    }
  }

  // Drops a segment a thread had in hand, and those whose work is done: their blocks go, if at
  // all, without the lock.
  void let_go(std::unique_lock<std::mutex>& lock, SegmentPtr& segment) {
    std::vector<SegmentPtr> victims;
    victims.swap(dropped);
    lock.unlock();
    segment.reset();
    victims.clear();
    lock.lock();
    --holders;
    quiet.notify_all();
  }

  // The owner does every pair of this segment itself.
  void release_abandoned(const SegmentPtr& segment) {
    std::set<std::uint64_t> pending;
    {
      const std::lock_guard lock(mutex);
      pending.swap(segment->pending);
    }
    for (const std::uint64_t model : pending) give_up_pair(segment, model);
  }

  // Claims what is left of the pair and hands it straight back.
  void give_up_pair(const SegmentPtr& segment, std::uint64_t model) {
    call_client([&](Client& c) {
      const std::vector<bool> claimed = c.claim(model, segment->block_ids);
      give_back(c, segment, model, claimed);
    });
  }

  void give_back(Client& c, const SegmentPtr& segment, std::uint64_t model,
                 const std::vector<bool>& claimed) {
    std::vector<std::uint64_t> blocks;
    for (std::size_t i = 0; i < claimed.size(); ++i) {
      if (claimed[i]) blocks.push_back(segment->block_ids[i]);
    }
    if (blocks.empty()) return;
    {
      const std::lock_guard lock(mutex);
      stats.blocks_given_back += blocks.size();
    }
    c.give_back(model, blocks);
  }

  // ---- lanes ----------------------------------------------------------------------------------

  struct Task {
    SegmentPtr segment;
    ModelPtr model;           // null: load the segment
    bool reserve = false;     // only prepare for the model
    std::uint64_t bytes = 0;  // that loading it will take
  };

  // With mutex held: the next thing a lane can do.
  bool choose(const Lane& lane, Task& task, std::vector<std::uint64_t>& declined, bool& waiting) {
    DeviceState& d = *lane.device;
    Task load;
    for (const SegmentPtr& segment : segments) {
      if (segment->device != d.position || segment->abandoned || segment->pending.empty()) continue;
      if (segment->resident != nullptr) {
        if (!kernels.settled()) {
          const auto first = models.find(*segment->pending.begin());
          if (!lane.reserved && first != models.end()) {
            task = {.segment = segment, .model = first->second, .reserve = true};
            return true;
          }
          waiting = true;
          continue;
        }
        for (auto id = segment->pending.begin(); id != segment->pending.end();) {
          const auto found = models.find(*id);
          if (found == models.end()) {
            id = segment->pending.erase(id);
            continue;
          }
          if (refresh(*found->second, declined)) {
            // Lowest model first over all resident segments.
            if (task.model == nullptr || found->second->id < task.model->id)
              task = {.segment = segment, .model = found->second};
            break;
          }
          if (found->second->state == Model::State::kDeclined) {
            id = segment->pending.erase(id);
            continue;
          }
          waiting = true;
          ++id;
        }
      } else if (segment->packed != nullptr && !segment->loading && load.segment == nullptr) {
        load.segment = segment;
      }
    }
    if (load.segment != nullptr) load.bytes = DeviceTargets::bytes_for(*load.segment->packed);
    // One lane loads what there is room for while the others work.
    if (task.model != nullptr) {
      if (load.segment != nullptr && d.loading_bytes == 0 && has_room(d, load)) task = load;
      return true;
    }
    if (load.segment == nullptr) return false;
    if (make_room(d, load)) {
      task = load;
      return true;
    }
    waiting = true;
    return false;
  }

  // With mutex held: bytes of the segments on a device.
  std::uint64_t resident_bytes(const DeviceState& d) const {
    std::uint64_t bytes = 0;
    for (const SegmentPtr& s : segments) {
      if (s->device == d.position && s->resident != nullptr) bytes += s->resident->bytes();
    }
    return bytes;
  }

  // With mutex held: whether a segment fits beside what there is, lists of all lanes included.
  bool has_room(const DeviceState& d, const Task& load) const {
    const std::uint64_t lanes_need =
        static_cast<std::uint64_t>(d.lanes) *
            Cascade::bytes_for(load.segment->packed->targets.size()) +
        static_cast<std::uint64_t>(d.domain_lanes) * DomainStage::bytes(d.domain_workspace);
    return resident_bytes(d) + d.loading_bytes + std::max(d.lane_bytes, lanes_need) + load.bytes <=
           d.budget;
  }

  // With mutex held: evicts segments nobody uses, least recently used first; false when lanes
  // must finish first. A segment too large for the budget is tried alone.
  bool make_room(DeviceState& d, const Task& load) {
    for (;;) {
      if (has_room(d, load) || resident_bytes(d) + d.loading_bytes == 0) return true;
      SegmentPtr victim;
      for (const SegmentPtr& s : segments) {
        if (s->device != d.position || s->resident == nullptr || s->running > 0) continue;
        if (victim == nullptr || s->last_use < victim->last_use) victim = s;
      }
      if (victim == nullptr) return false;
      victim->resident.reset();
      victim->packed.reset();
      to_pack.push_back(victim);
      wake.notify_all();
      ++stats.evictions;
    }
  }

  void run_lane(DeviceState& d, int number) {
    reach_ahead_in_heap(kLaneHeap);
    Lane lane;
    lane.device = &d;
    lane.number = number;
    if (const Status made = open_lane(lane); !made) {
      lose_device(d, made.error());
      return;
    }
    std::unique_lock lock(mutex);
    for (;;) {
      if (stop || d.lost || phase == Phase::kFailed) break;
      Task task;
      std::vector<std::uint64_t> declined;
      bool waiting = false;
      const bool found = choose(lane, task, declined, waiting);
      if (!declined.empty()) {
        stats.models_declined += declined.size();
        const bool tell = settings.demanded && !std::exchange(warned_kernel, true);
        const std::string reason = why();
        // Chosen again afterwards: the client may leave while the lock is open.
        task = {};
        lock.unlock();
        if (tell) warn("no kernel for some models, their filters run on the CPU: " + reason);
        call_client([&](Client& c) {
          for (const std::uint64_t id : declined) c.decline(id);
        });
        lock.lock();
        continue;
      }
      if (!found) {
        forget_finished();
        if (!dropped.empty()) {
          ++holders;
          SegmentPtr none;
          let_go(lock, none);
          continue;
        }
        // A finished compile has no signal of its own.
        if (waiting) {
          wake.wait_for(lock, std::chrono::milliseconds(1));
        } else {
          wake.wait(lock);
        }
        continue;
      }
      SegmentPtr segment = std::move(task.segment);
      segment->last_use = ++use_clock;
      ++segment->running;
      ++holders;
      if (task.model == nullptr) {
        segment->loading = true;
        d.loading_bytes += task.bytes;
        lock.unlock();
        surviving(d, [&] { load(d, segment); });
        lock.lock();
        d.loading_bytes -= task.bytes;
        segment->loading = false;
      } else {
        if (!task.reserve) segment->pending.erase(task.model->id);
        std::shared_ptr<DeviceTargets> targets = segment->resident;
        lock.unlock();
        surviving(d, [&] {
          if (task.reserve) {
            lane.cascade->reserve(*targets, task.model->search->bytes.M);
          } else {
            run_pair(lane, segment, targets, task.model);
          }
        });
        lane.reserved = true;
        targets.reset();
        task.model.reset();
        lock.lock();
      }
      --segment->running;
      forget_if_done(segment);
      wake.notify_all();
      let_go(lock, segment);
    }
    lock.unlock();
    release_after_loss(d);
  }

  // What runs out of host memory outside a chain ends the device's part, not the process.
  template <typename Work>
  void surviving(DeviceState& d, Work work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      lose_device(d, {ErrorCode::kResources, "out of host memory", {}, {}});
    }
  }

  // With mutex held: streamed segments are dropped once their work is done.
  void forget_if_done(const SegmentPtr& segment) {
    if (!streaming || !segment->pending.empty() || segment->running > 0) return;
    for (const std::uint64_t id : segment->block_ids) {
      segment_of.erase(id);
      forgotten.insert(id);
    }
    dropped.push_back(segment);
    std::erase(segments, segment);
  }
  // With mutex held: all such segments, also those whose models were all declined.
  void forget_finished() {
    if (!streaming) return;
    const std::vector<SegmentPtr> all = segments;
    for (const SegmentPtr& segment : all) {
      if ((segment->packed != nullptr || segment->abandoned) && !segment->loading)
        forget_if_done(segment);
    }
  }
  std::vector<SegmentPtr> dropped;  // done; see let_go
  // The numbers of their blocks: an offer that comes late is the CPU's.
  std::set<std::uint64_t> forgotten;

  Cascade::Resize resize_on(DeviceState& d) {
    return [this, &d](std::size_t from, std::size_t to) -> Status {
      const std::lock_guard lock(mutex);
      d.lane_bytes -= from;
      if (to > from && resident_bytes(d) + d.loading_bytes + d.lane_bytes + to > d.budget) {
        return fail(
            ErrorCode::kResources,
            fmt::format("buffers of {} bytes for a model exceed the device memory to be used", to));
      }
      d.lane_bytes += to;
      note_peak(d);
      return {};
    };
  }
  Status open_lane(Lane& lane) {
    DeviceState& d = *lane.device;
    HMMJIT_ASSIGN(lane.cascade, Cascade::create(d.device, d.origin, resize_on(d)));
    return {};
  }

  // With mutex held.
  void note_peak(const DeviceState& d) {
    stats.peak_device_bytes = std::max(stats.peak_device_bytes, resident_bytes(d) + d.lane_bytes);
  }

  // With upload_mutex held. Its pinned memory takes some milliseconds to make: while kernels are
  // being loaded, not before.
  static Result<std::unique_ptr<DeviceTargets>> upload(
      DeviceState& d, const std::shared_ptr<PackedSegment>& packed) {
    if (d.uploader == nullptr) {
      HMMJIT_ASSIGN(Uploader uploader, Uploader::create(d.device));
      d.uploader = std::make_unique<Uploader>(std::move(uploader));
    }
    return DeviceTargets::create(d.device, packed, *d.uploader);
  }

  void load(DeviceState& d, const SegmentPtr& segment) {
    const double begun = Trace::now();
    std::shared_ptr<PackedSegment> packed = segment->packed;
    Result<std::unique_ptr<DeviceTargets>> made = fail(ErrorCode::kInternal, "not loaded");
    {
      const std::lock_guard uploading(d.upload_mutex);
      made = upload(d, packed);
    }
    span("gpu upload", d.position, "segment", begun, Trace::now());
    if (made) {
      const std::lock_guard lock(mutex);
      segment->resident = *std::move(made);
      segment->loaded = true;
      // The device has them; should they be evicted, they are packed again.
      std::vector<std::uint8_t>().swap(packed->targets.residues);
      stats.upload_bytes += segment->resident->bytes();
      note_peak(d);
      return;
    }
    if (made.error().code != ErrorCode::kResources) return lose_device(d, made.error());
    no_memory(d, segment, made.error());
  }

  // Smaller chunks, then the owner's threads.
  void no_memory(DeviceState& d, const SegmentPtr& segment, const Error& error) {
    bool abandon = false, tell = false;
    {
      const std::lock_guard lock(mutex);
      // What the device really has is less than was thought.
      d.budget = std::min(d.budget, (resident_bytes(d) + d.lane_bytes) * 9 / 10 + 1);
      if (segment->blocks.size() > 1 && segment->running <= 1 && segment->resident == nullptr) {
        split(segment);
      } else {
        segment->abandoned = abandon = true;
      }
      tell = !std::exchange(warned_memory, true);
    }
    if (tell)
      warn(fmt::format("{}; going on with {}", error.to_string(),
                       abandon ? "the CPU for a part of the targets" : "smaller pieces"));
    if (abandon) release_abandoned(segment);
    wake.notify_all();
  }

  // With mutex held: two halves take the place of a segment that did not fit.
  void split(const SegmentPtr& segment) {
    const std::size_t half = segment->blocks.size() / 2;
    for (const bool second : {false, true}) {
      auto part = std::make_shared<Segment>();
      const auto from = segment->blocks.begin() + (second ? static_cast<std::ptrdiff_t>(half) : 0);
      const auto to = second ? segment->blocks.end()
                             : segment->blocks.begin() + static_cast<std::ptrdiff_t>(half);
      part->blocks.assign(from, to);
      for (const BlockRef& block : part->blocks) {
        part->block_ids.push_back(block.id);
        part->residues += block.targets->residue_count();
        segment_of[block.id] = part;
      }
      part->pending = segment->pending;
      part->device = segment->device;
      segments.push_back(part);
      to_pack.push_back(part);
    }
    segment->pending.clear();
    std::erase(segments, segment);
  }

  // A launch failed, timed out, or the driver answers no more: this device is given up.
  void lose_device(DeviceState& d, const Error& error) {
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

  // What is still pending on a lost device goes to the others, and to the owner where its segment
  // has been in use: a lane that is still at it comes by here again when it ends.
  void release_after_loss(DeviceState& d) {
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

  // ---- one model over one segment ---------------------------------------------------------------

  void run_pair(Lane& lane, const SegmentPtr& segment,
                const std::shared_ptr<DeviceTargets>& targets, const ModelPtr& model) {
    call_client([&](Client& c) {
      const std::vector<bool> claimed = c.claim(model->id, segment->block_ids);
      if (std::ranges::find(claimed, true) == claimed.end()) return;
      Status done;
      try {
        auto work = std::make_unique<DomainWork>();
        done = filter(lane, *targets, *model, claimed, *work);
        if (done) {
          work->model = model;
          work->segment = segment;
          work->client = &c;
          work->claimed = claimed;
          work->request.targets = targets;
          if (!hand_over(*lane.device, work)) deliver(*work);
          return;
        }
      } catch (const std::bad_alloc&) {
        done = fail(ErrorCode::kResources, "out of host memory");
      }
      // Give the device up first, so that the owner does not leave the pair to it again.
      if (done.error().code == ErrorCode::kResources) {
        bool tell = false;
        {
          const std::lock_guard lock(mutex);
          tell = !std::exchange(warned_memory, true);
        }
        if (tell) warn(done.error().to_string() + "; going on with the CPU for some targets");
      } else if (done.error().code == ErrorCode::kCompile) {
        {
          const std::lock_guard lock(mutex);
          model->state = Model::State::kDeclined;
          ++stats.models_declined;
          if (stats.reason.empty()) stats.reason = done.error().to_string();
        }
        c.decline(model->id);
      } else {
        lose_device(*lane.device, done.error());
      }
      give_back(c, segment, model->id, claimed);
    });
  }

  // ---- behind the filters -----------------------------------------------------------------------

  // Chains and targets that wait even for threads that have nothing else to do.
  static constexpr std::size_t kMostDomainWork = 64, kMostDomainTargets = 16384;

  // Leaves a chain's targets to the domain stage, which delivers them; false when it will not.
  bool hand_over(DeviceState& d, DomainWorkPtr& work) {
    if (d.domain_lanes == 0 || work->found.passed_targets.empty()) return false;
    const bool hungry = work->client->hungry();
    {
      const std::lock_guard lock(mutex);
      const bool many =
          d.domain_work.size() >= kMostDomainWork || d.domain_targets >= kMostDomainTargets;
      if ((many && hungry) || !kernels.soon(*work->model->slots, Link::kParser)) return false;
    }
    work->request.model = work->model->search;
    deliver_early(*work, kMostPatience);
    if (work->found.passed_targets.empty()) return false;
    {
      const std::lock_guard lock(mutex);
      if (d.lost) return false;
      ++client_calls;
      ++holders;
      ++work->segment->running;
      d.domain_targets += work->found.passed_targets.size();
      d.domain_work.push_back(std::move(work));
    }
    wake.notify_all();
    return true;
  }

  // Delivers what is the client's whatever a launch of so many seconds finds out: threads that wait
  // for that would come to it last.
  void deliver_early(DomainWork& work, double patience) {
    CascadeResult& found = work.found;
    const layout::PackedTargets& targets = work.request.targets->packed().targets;
    const int M = work.model->search->hmm.M;
    const auto mine = [&](const PassedTarget& p) {
      return DomainStage::takes(targets.length[p.target], M, patience);
    };
    std::vector<FilteredBlock> early(found.blocks.size()), late(found.blocks.size());
    for (std::size_t b = 0; b < found.blocks.size(); ++b) early[b].open = found.blocks[b].open;
    for (const PassedTarget& p : found.passed_targets)
      (mine(p) ? late : early)[p.block].passed.push_back(p.index);
    std::vector<std::uint64_t> blocks;
    std::vector<FilteredBlock> delivered;
    for (std::size_t b = 0; b < early.size(); ++b) {
      if (!work.claimed[b] || (early[b].open.empty() && early[b].passed.empty())) continue;
      blocks.push_back(work.segment->block_ids[b]);
      delivered.push_back(std::move(early[b]));
    }
    if (blocks.empty() || !work.client->deliver_early(work.model->id, blocks, std::move(delivered)))
      return;
    for (std::size_t b = 0; b < found.blocks.size(); ++b) {
      found.blocks[b].open.clear();
      found.blocks[b].passed = std::move(late[b].passed);
    }
    std::erase_if(found.passed_targets, [&](const PassedTarget& p) { return !mine(p); });
  }

  void deliver(DomainWork& work) {
    std::vector<FilteredBlock>& results = work.found.blocks;
    auto& parsed = work.request.parsed;
    for (std::size_t i = 0; i < parsed.size(); ++i)
      results[work.found.passed_targets[i].block].parsed.push_back(std::move(parsed[i]));
    std::vector<std::uint64_t> blocks;
    std::vector<FilteredBlock> delivered;
    for (std::size_t i = 0; i < work.claimed.size(); ++i) {
      if (!work.claimed[i]) continue;
      blocks.push_back(work.segment->block_ids[i]);
      delivered.push_back(i < results.size() ? std::move(results[i]) : FilteredBlock{});
    }
    const std::size_t count = blocks.size();
    work.client->deliver(work.model->id, blocks, std::move(delivered));
    const std::lock_guard lock(mutex);
    stats.blocks_done += count;
  }

  // With mutex held: seconds until a device is through with the filters of what there is, about.
  double filter_seconds_left(const DeviceState& d) const {
    std::size_t pairs = 0;
    for (const SegmentPtr& s : segments) {
      if (s->device == d.position) pairs += s->pending.size();
    }
    return static_cast<double>(pairs) * (Trace::now() - d.first_chain) /
           static_cast<double>(std::max<std::uint64_t>(d.chains, 1));
  }

  static const KernelSlotPtr& parser_of(const DomainWork& work) {
    return of_link(*work.model->slots, Link::kParser);
  }

  void run_domain_lane(DeviceState& d, int number) {
    reach_ahead_in_heap(kLaneHeap);
    // Made when there is work: its buffers can wait, the first launches cannot, and the driver does
    // one thing at a time.
    std::optional<Result<std::unique_ptr<DomainStage>>> stage;
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stop || !d.domain_work.empty(); });
      if (d.domain_work.empty()) return;
      if (!stop && !d.lost && kernels.coming()) {
        wake.wait_for(lock, std::chrono::milliseconds(1));
        continue;
      }
      // All that have the kernels of the first.
      std::vector<DomainWorkPtr> batch;
      const KernelSlotPtr& parser = parser_of(*d.domain_work.front());
      for (auto at = d.domain_work.begin();
           at != d.domain_work.end() && batch.size() < DomainStage::kMostRequests;) {
        if (parser_of(**at) == parser) {
          d.domain_targets -= (*at)->found.passed_targets.size();
          batch.push_back(std::move(*at));
          at = d.domain_work.erase(at);
        } else {
          ++at;
        }
      }
      const bool lost = d.lost;
      const double filtering = filter_seconds_left(d);
      lock.unlock();
      if (!stage && !lost) {
        stage = DomainStage::create(d.device, d.origin, resize_on(d), d.domain_workspace);
        if (!*stage && stage->error().code != ErrorCode::kResources) lose_device(d, stage->error());
      }
      // Without one what comes is passed on.
      if (stage && *stage && !lost)
        surviving(d, [&] { run_domains(d, number, ***stage, batch, filtering); });
      for (DomainWorkPtr& work : batch) finish(std::move(work));
      release_after_loss(d);
      lock.lock();
    }
  }

  // Delivers and lets go of what hand_over() has held.
  void finish(DomainWorkPtr work) {
    deliver(*work);
    SegmentPtr segment = std::move(work->segment);
    work.reset();
    std::unique_lock lock(mutex);
    --client_calls;
    --segment->running;
    forget_if_done(segment);
    wake.notify_all();
    let_go(lock, segment);
  }

  // Delivers chains that wait for the domain stage as they are while the client's threads have
  // nothing to do: the last ones, whose turn is furthest off.
  void run_relief() {
    std::unique_lock lock(mutex);
    for (;;) {
      const auto busiest = std::ranges::max_element(
          devices, {}, [](const auto& device) { return device->domain_work.size(); });
      const bool any = busiest != devices.end() && !(*busiest)->domain_work.empty();
      if (stop) return;
      if (!any) {
        wake.wait(lock);
        continue;
      }
      lock.unlock();
      bool hungry = false;
      call_client([&](Client& c) { hungry = c.hungry(); });
      lock.lock();
      auto& work = (*busiest)->domain_work;
      if (!hungry || settings.patient || work.empty()) {
        wake.wait_for(lock, std::chrono::milliseconds(2));
        continue;
      }
      DomainWorkPtr last = std::move(work.back());
      work.pop_back();
      (*busiest)->domain_targets -= last->found.passed_targets.size();
      lock.unlock();
      finish(std::move(last));
      lock.lock();
    }
  }

  // Threads should not have to wait for the device, nor get more from it than they are through with
  // when it is: a launch may take so many times as long as they have to do, which what it leaves
  // them and what other launches find adds to, or a part of what the filters (`filtering`: seconds
  // of them) still take. Two to three and a half times is best on an H200 with 16 cores, by 2 to 4
  // % of a search of one second; five times and once are worse.
  static constexpr double kPatienceOfThreads = 3, kPatienceOfFilters = 0.25;
  static constexpr double kLeastPatience = 0.03, kMostPatience = 2;
  void run_domains(DeviceState& d, int number, DomainStage& stage,
                   const std::vector<DomainWorkPtr>& batch, double filtering) {
    const Model& front = *batch.front()->model;
    const auto ready = kernels.ready(*d.device, *front.slots, front.search->hmm.name);
    if (!ready) return;
    const DomainKernels chosen{of_link(*ready, Link::kParser), of_link(*ready, Link::kEnsemble),
                               of_link(*ready, Link::kEnvelope)};
    if (!chosen.parser) return;
    const double patience =
        settings.patient
            ? settings.launch_timeout
            : std::clamp(std::max(kPatienceOfFilters * filtering,
                                  kPatienceOfThreads * batch.front()->client->seconds_left()),
                         kLeastPatience, kMostPatience);
    std::vector<DomainRequest*> requests;
    for (const DomainWorkPtr& work : batch) {
      deliver_early(*work, patience);
      for (const PassedTarget& passed : work->found.passed_targets)
        work->request.passed.push_back(passed.target);
      if (!work->request.passed.empty()) requests.push_back(&work->request);
    }
    const auto result =
        stage.run(requests, chosen, {.trace_seed = limits.trace_seed, .patience = patience},
                  {.timeout = settings.launch_timeout, .progress = &d.progress});
    if (!result) {
      for (DomainRequest* request : requests) request->parsed.clear();
      if (result.error().code != ErrorCode::kResources) lose_device(d, result.error());
      return;
    }
    if (result->launches == 0) return;
    if (settings.trace != nullptr) {
      const std::string group = fmt::format("gpu {}", d.device->ordinal());
      float from = result->begin;
      for (std::size_t i = 0; i < kDomainStages.size(); ++i) {
        settings.trace->add(group, d.lanes + number,
                            fmt::format("{} of {} models", kDomainStages[i], batch.size()),
                            d.origin_time + from * 1e-3, d.origin_time + result->end[i] * 1e-3);
        from = result->end[i];
      }
    }
    const std::lock_guard lock(mutex);
    d.busy.emplace_back(result->begin * 1e-3, result->end.back() * 1e-3);
    d.last_result = Trace::now();
    float from = result->begin;
    for (std::size_t i = 0; i < kDomainStages.size(); ++i) {
      stats.domain_seconds[i] += (result->end[i] - from) * 1e-3;
      from = result->end[i];
    }
    stats.launches += result->launches;
    stats.parsed += result->targets;
    stats.sampled += result->regions;
    stats.envelopes += result->envelopes;
  }

  Status filter(Lane& lane, DeviceTargets& targets, Model& model, const std::vector<bool>& claimed,
                DomainWork& work) {
    const double begun = Trace::now();
    DeviceState& d = *lane.device;
    HMMJIT_ASSIGN(const auto ready, kernels.ready(*d.device, *model.slots, model.search->hmm.name));
    HMMJIT_ASSIGN(CascadeResult result,
                  lane.cascade->run({.model = *model.search,
                                     .kernels = ready,
                                     .limits = limits,
                                     .targets = targets,
                                     .claimed = claimed,
                                     .wait = {settings.launch_timeout, &d.progress}}));
    const double ended = Trace::now();
    if (result.launches == 0) {
      work.found = std::move(result);
      return {};
    }
    if (settings.trace != nullptr) {
      const std::string& name = model.search->hmm.name;
      settings.trace->add("gpu lanes", d.position * 100 + lane.number, name, begun, ended);
      float from = result.begin;
      for (std::size_t i = 0; i < kTimedStages.size(); ++i) {
        settings.trace->add(fmt::format("gpu {}", d.device->ordinal()), lane.number,
                            fmt::format("{} {}", kTimedStages[i], name),
                            d.origin_time + from * 1e-3, d.origin_time + result.end[i] * 1e-3);
        from = result.end[i];
      }
    }
    kernels.ssv_took(*model.slots, (result.end.front() - result.begin) * 1e-3);
    const std::lock_guard lock(mutex);
    if (d.chains++ == 0) d.first_chain = begun;
    d.busy.emplace_back(result.begin * 1e-3, result.end.back() * 1e-3);
    d.last_result = ended;
    float from = result.begin;
    for (std::size_t i = 0; i < kTimedStages.size(); ++i) {
      stats.stage_seconds[i] += (result.end[i] - from) * 1e-3;
      from = result.end[i];
    }
    ++stats.chains;
    stats.launches += result.launches;
    stats.cells +=
        targets.packed().targets.residue_count * static_cast<std::uint64_t>(model.search->bytes.M);
    stats.targets += targets.packed().targets.size();
    stats.survivors += result.survivors;
    stats.undecided += result.undecided;
    stats.viterbi += result.viterbi_targets;
    stats.viterbi_flagged += result.viterbi_flagged;
    stats.forward += result.forward_targets;
    stats.open += result.open;
    stats.passed += result.passed;
    work.found = std::move(result);
    return {};
  }
};

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

void GpuFilters::attach(Client& client, const FilterLimits& limits, std::uint64_t host_bytes) {
  bool failed = false;
  {
    const std::lock_guard lock(state_->mutex);
    state_->client = &client;
    state_->limits = limits;
    state_->host_bytes = host_bytes;
    state_->failure_told = false;
    state_->streaming = false;
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
  for (const SegmentPtr& segment : s.segments) segment->pending.clear();
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

void GpuFilters::offer(std::uint64_t model, std::uint64_t block) {
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->phase == State::Phase::kFailed) return;
    const auto found = state_->segment_of.find(block);
    if (found == state_->segment_of.end()) {
      if (!state_->forgotten.contains(block)) state_->loose_offers.emplace(block, model);
      return;
    }
    if (!found->second->abandoned) {
      if (!found->second->pending.insert(model).second) return;
      if (state_->phase == State::Phase::kReady) state_->wake.notify_all();
      return;
    }
  }
  // A part of the targets that no device can hold.
  const std::uint64_t blocks[] = {block};
  state_->call_client([&](Client& c) {
    if (c.claim(model, blocks).front()) c.give_back(model, blocks);
  });
}

bool GpuFilters::serves(std::uint64_t model, std::uint64_t block) const {
  const std::lock_guard lock(state_->mutex);
  if (state_->phase != State::Phase::kReady || state_->forgotten.contains(block)) return false;
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
