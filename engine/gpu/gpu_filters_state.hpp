// What the threads of GpuFilters share: one lock, the models, the segments on their way to and on
// the devices, the lanes. One file for each of the ways things go:
//   gpu_filters.cpp   start, interface, and what happens when a device fails
//   segments.cpp      blocks into segments, packed, uploaded, evicted, dropped
//   lanes.cpp         a model over a segment: the filters
//   domain_lanes.cpp  behind the filters: the domain stage and what is delivered
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/threads.hpp"
#include "gpu/chain_kernels.hpp"
#include "gpu/gpu_filters.hpp"

namespace hmmjit::gpu {

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
  ShardId shard = 0;  // on the board, of these blocks
  std::uint64_t residues = 0;
  int device = -1;  // position in the list of devices; -1: not assigned yet
  std::shared_ptr<PackedSegment> packed;
  std::shared_ptr<DeviceTargets> resident;
  int running = 0;  // lanes at work on it or loading it
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
  std::vector<Claim> claims;  // one for each block of the segment
  CascadeResult found;
  DomainRequest request;
  std::vector<UsedKernel> kernels = {};  // it was computed with
  double queued = 0;                     // Trace::now
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

// What a lane's thread allocates at a time.
constexpr std::size_t kLaneHeap = std::size_t{2} << 20;

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
  WorkBoard* board = nullptr;  // the client's
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
  std::uint64_t next_segment_residues = settings.segment_residues;
  std::map<std::uint64_t, SegmentPtr> segment_of;  // by block
  std::vector<SegmentPtr> segments;
  std::deque<SegmentPtr> to_pack;
  std::vector<SegmentPtr> dropped;  // done; see let_go
  std::uint64_t use_clock = 0;

  std::shared_ptr<driver::Driver> driver;
  std::vector<std::unique_ptr<DeviceState>> devices;
  Statistics stats;

  std::thread starter, packer, relief;
  std::vector<std::thread> lanes;
  ChainKernels kernels;

  void span(const char* group, int row, std::string_view name, double begin, double end) const {
    if (settings.trace != nullptr) settings.trace->add(group, row, name, begin, end);
  }
  void warn(const std::string& text) const {
    if (settings.on_warning) settings.on_warning(text);
  }
  // Calls `function` with the client and its board, if one is attached, without the lock; detach
  // waits for it.
  template <typename Function>
  void call_client(Function function) {
    Client* c = nullptr;
    WorkBoard* b = nullptr;
    {
      const std::lock_guard lock(mutex);
      if (client == nullptr) return;
      c = client;
      b = board;
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
    function(*c, *b);
  }
  // What one launch after the other took of a device, for the timeline (`row`, and the name of each
  // stage before `what`), `seconds` and the device's share. Milliseconds since the device's origin.
  void note_stages(DeviceState& d, int row, std::span<const char* const> stages,
                   const std::string& what, float begin, std::span<const float> end,
                   std::span<double> seconds);
  // What runs out of host memory outside a chain ends the device's part, not the process.
  template <typename Work>
  void surviving(DeviceState& d, Work work) {
    try {
      work();
    } catch (const std::bad_alloc&) {
      lose_device(d, {ErrorCode::kResources, "out of host memory", {}, {}});
    }
  }
  // With mutex held.
  std::string why() const { return stats.reason.empty() ? kernels.reason() : stats.reason; }

  // ---- gpu_filters.cpp ------------------------------------------------------------------------

  void start();
  compile::ProviderSettings compile_settings();
  Result<std::unique_ptr<DeviceState>> open_device(driver::Driver& opened, int ordinal);
  // No device will ever work (again): everything not claimed is the owner's.
  void fail_all(const Error& error);
  void tell_failure();
  // A launch failed, timed out, or the driver answers no more: this device is given up.
  void lose_device(DeviceState& d, const Error& error);
  // What is still open on a lost device goes to the others, and to the owner where its segment has
  // been in use: a lane that is still at it comes by here again when it ends.
  void release_after_loss(DeviceState& d);
  // What refers to blocks; to be destroyed without the lock.
  struct Dropped {
    std::vector<SegmentPtr> segments;
    std::map<std::uint64_t, SegmentPtr> segment_of;
    std::deque<SegmentPtr> to_pack;
    std::vector<BlockRef> loose;
  };
  // With mutex held.
  Dropped drop_segments();

  // ---- segments.cpp ---------------------------------------------------------------------------

  // What a lane does next.
  struct Task {
    SegmentPtr segment;
    ModelPtr model;           // null: load the segment
    bool reserve = false;     // only prepare for the model
    std::uint64_t bytes = 0;  // that loading it will take
  };

  // With mutex held.
  void close_segment(std::size_t first, std::size_t last);
  // With mutex held: to the device with the fewest residues.
  void assign(Segment& segment);
  // With mutex held. Loose blocks into segments of equal size, as many for each device: rounds of
  // full ones now, the rest when `all` is set.
  void close_segments(bool all);
  // With mutex held.
  bool has_open(const Segment& segment) const {
    return board != nullptr && board->has_open(segment.shard);
  }
  // With mutex held: the next segment to pack, null when enough are packed ahead of their upload.
  // A database is not copied, only indexed.
  SegmentPtr next_to_pack() const;
  void run_packer();
  // With upload_mutex held. Its pinned memory takes some milliseconds to make: while kernels are
  // being loaded, not before.
  static Result<std::unique_ptr<DeviceTargets>> upload(
      DeviceState& d, const std::shared_ptr<PackedSegment>& packed);
  void load(DeviceState& d, const SegmentPtr& segment);
  // Smaller chunks, then the owner's threads.
  void no_memory(DeviceState& d, const SegmentPtr& segment, const Error& error);
  // With mutex held: two halves take the place of a segment that did not fit.
  void split(const SegmentPtr& segment);
  // With mutex held: bytes of the segments on a device.
  std::uint64_t resident_bytes(const DeviceState& d) const;
  // With mutex held.
  void note_peak(const DeviceState& d);
  // With mutex held: whether a segment fits beside what there is, lists of all lanes included.
  bool has_room(const DeviceState& d, const Task& load) const;
  // With mutex held: evicts segments nobody uses, least recently used first; false when lanes
  // must finish first. A segment too large for the budget is tried alone.
  bool make_room(DeviceState& d, const Task& load);
  Cascade::Resize resize_on(DeviceState& d);
  // With mutex held: streamed segments are dropped once their work is done.
  void forget_if_done(const SegmentPtr& segment);
  // With mutex held: all such segments, also those whose models were all declined.
  void forget_finished();
  // Drops a segment a thread had in hand, and those whose work is done: their blocks go, if at
  // all, without the lock.
  void let_go(std::unique_lock<std::mutex>& lock, SegmentPtr& segment);
  // The owner does every pair of this segment itself.
  void release_abandoned(const SegmentPtr& segment);
  // What a chain could not do is the owner's. Without a lock.
  void give_back(std::vector<Claim> claims);

  // ---- lanes.cpp ------------------------------------------------------------------------------

  // With mutex held: whether a chain of the model can begin. A model that turns out to have no
  // kernel is added to `declined`, once.
  bool refresh(Model& model, std::vector<ModelId>& declined);
  // With mutex held: the next thing a lane can do.
  bool choose(const Lane& lane, Task& task, std::vector<ModelId>& declined, bool& waiting);
  // With mutex held: finds the first model with open pairs on the segment that can begin, unless
  // that of `task` comes before it.
  void choose_model(const SegmentPtr& segment, const Lane& lane, Task& task,
                    std::vector<ModelId>& declined, bool& waiting);
  void run_lane(DeviceState& d, int number);
  Status open_lane(Lane& lane);
  void run_pair(Lane& lane, const SegmentPtr& segment,
                const std::shared_ptr<DeviceTargets>& targets, const ModelPtr& model);
  Status filter(Client& c, Lane& lane, DeviceTargets& targets, Model& model,
                const std::vector<Claim>& claims, DomainWork& work);

  // ---- domain_lanes.cpp -----------------------------------------------------------------------

  // Leaves a chain's targets to the domain stage, which delivers them; false when it will not.
  bool hand_over(DeviceState& d, DomainWorkPtr& work);
  // Delivers what is the client's whatever a launch of so many seconds finds out: threads that wait
  // for that would come to it last.
  void deliver_early(DomainWork& work, double patience);
  void deliver(DomainWork& work);
  // The next three with mutex held. Of the chains that wait, those that one launch could take and
  // that have the most targets.
  struct LargestLaunch {
    const DomainWork* first = nullptr;
    std::size_t chains = 0, targets = 0;
  };
  static LargestLaunch largest_launch(const DeviceState& d);
  // All that have the kernels of this one.
  static std::vector<DomainWorkPtr> take_launch(DeviceState& d, const DomainWork& first);
  DeviceLoad load_of(const DeviceState& d) const;
  void run_domain_lane(DeviceState& d, int number);
  // Delivers and lets go of what hand_over() has held.
  void finish(DomainWorkPtr work);
  // Delivers chains that wait for the domain stage as they are while the client's threads have
  // nothing to do: the last ones, whose turn is furthest off.
  void run_relief();
  void run_domains(DeviceState& d, int number, DomainStage& stage,
                   const std::vector<DomainWorkPtr>& batch, const DeviceLoad& load);
};

}  // namespace hmmjit::gpu
