#include "nucleotide/device_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <future>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "core/memory.hpp"
#include "core/mutex.hpp"
#include "core/threads.hpp"
#include "core/trace.hpp"
#include "gpu/kernel_loader.hpp"
#include "gpu/ready_kernel.hpp"
#include "gpu/stream_wait.hpp"
#include "layout/stages.hpp"
#include "nucleotide/windows.hpp"
#include "reference/filters.hpp"

namespace hmmjit::nucleotide {
namespace {

namespace dev = hmmjit_device;

constexpr int kRows = dev::kBlockRows;
constexpr const char* kVariant = "multi_lane_blocks";
// Most blocks of rows in an item. A launch has only as many items as the device processes
// concurrently, because the rows before each item are computed twice, unless items would exceed
// this size.
constexpr std::uint32_t kMostBlocksOfItem = 256;
// Bound on the marks that wait for threads, in bytes; fewest and most models with waiting marks.
constexpr std::size_t kWaitingMarks = std::size_t{64} << 20;
constexpr std::size_t kFewestWaiting = 4, kMostWaiting = 64;

// The profile that reads residues as their complements.
ByteProfile complemented(const ByteProfile& profile) {
  ByteProfile out = profile;
  const auto M = static_cast<std::ptrdiff_t>(profile.M);
  for (int x = 0; x < profile.Kp; ++x)
    std::copy_n(profile.cost.begin() + complements()[static_cast<std::size_t>(x)] * M, M,
                out.cost.begin() + x * M);
  return out;
}

// The largest value of the plain recurrence in the rows from `first` on.
int largest_value(const ByteProfile& profile, std::span<const Residue> rows, std::size_t first) {
  const auto M = static_cast<std::size_t>(profile.M);
  std::vector<int> row(M + 1, 0);
  int best = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t x = rows[i];
    for (std::size_t k = M; k >= 1; --k) {
      row[k] = rows[i] >= profile.Kp
                   ? 0
                   : std::max(0, row[k - 1] - profile.signed_cost(profile.cost[x * M + k - 1]));
      if (i >= first) best = std::max(best, row[k]);
    }
  }
  return best;
}

// The highest match cell of the Viterbi filter.
int highest_cell(const WordProfile& profile, int move, std::span<const Residue> residues) {
  reference::ViterbiRow cells(profile.M);
  int best = reference::ViterbiRow::kMinimum, J = best;
  for (const Residue x : residues) {
    const int E = cells.advance(profile, x, std::max(J, profile.base) + move);
    best = std::max(best, E);
    J = std::max(J, E + profile.ej);
  }
  return best;
}

compile::ProviderSettings compile_settings() {
  compile::ProviderSettings out;
  out.threads = compile::compile_threads(0, std::max(1, available_cores() / 2), available_memory());
  return out;
}

}  // namespace

void ScanMarks::append(const StrandPart& part, std::size_t sequence,
                       std::vector<cpu::MarkedRows>& rows) const {
  const std::vector<std::uint8_t>& best = part.bottom ? bottom_ : top_;
  const std::int64_t begin = part.begin + (part.bottom ? padding_ : 0), length = part.length;
  const std::int64_t last_block = (begin + length - 1) / kRows;
  for (std::int64_t b = std::max<std::int64_t>(0, begin - reach_) / kRows; b <= last_block; ++b) {
    const int value = best[static_cast<std::size_t>(b)];
    if (value < height_) continue;
    const std::int64_t first = std::max<std::int64_t>(b * kRows - begin, 0);
    const std::int64_t last =
        std::min((b + 1) * kRows - begin + (value >= suspect_ ? reach_ : 0), length);
    if (first >= last) continue;
    cpu::mark({sequence, static_cast<std::size_t>(first), static_cast<std::size_t>(last)}, rows);
  }
}

struct DeviceScan::State {
  using Marks = std::shared_ptr<const ScanMarks>;

  // A launch for one model. Own buffers let two launches follow each other without a gap.
  struct Launch {
    driver::Stream stream;
    driver::Event begin, end;
    driver::DeviceBuffer tables, best;
    driver::GrowingPinnedBuffer staging, results;
    std::optional<std::size_t> model;  // in flight
    const gpu::ReadyKernel* kernel = nullptr;
    std::uint64_t cells = 0;
    double expected_seconds = 0;
  };
  // Buffers for the windows of one model.
  struct WindowLaunch {
    driver::Stream stream;
    driver::Event begin, end;
    driver::DeviceBuffer block, residues, scratch;
    driver::GrowingPinnedBuffer staging, results;
  };
  // The copy of a block's residues on the device.
  struct BlockCopy {
    std::optional<gpu::Uploader> uploader;
    driver::DeviceBuffer residues;
  };
  // Stage and size class.
  using KernelClass = std::pair<plan::Stage, int>;
  // State of the thread that serves the device.
  struct Device {
    std::shared_ptr<driver::Driver> driver;
    driver::DevicePtr device;
    driver::Event origin;
    std::unique_ptr<gpu::KernelSource> source;
    std::optional<gpu::KernelLoader> loader;
    std::array<Launch, 2> launches;
    std::size_t next = 0;  // index of the next one
    WindowLaunch windows;
    BlockCopy copy;
    std::span<const Residue> residues;
    std::size_t blocks = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<driver::DeviceBuffer, std::size_t>>
        items;  // by numbers of blocks: in an item, before it
    struct Requested {
      plan::Plan plan;
      std::shared_future<Result<compile::KernelPtr>> kernel;
    };
    std::map<KernelClass, Result<Requested>> requested;
    std::map<KernelClass, std::optional<gpu::ReadyKernel>> kernels;
    double busy_until = 0;  // milliseconds from the origin
  };
  // A model's windows and the highest match cell of each.
  struct Windows {
    layout::PackedTargets packed;
    std::shared_ptr<const std::vector<int>> best;
    bool wanted = false, done = false;
  };
  // A block of targets.
  struct Block {
    std::span<const Residue> residues;
    std::vector<Windows> windows;      // by model
    std::deque<std::size_t> requests;  // models with waiting windows
    std::vector<Marks> marks;       // by model
    std::vector<char> done;         // marks are final, even if null
    std::vector<std::size_t> uses;  // remaining calls of marks()
    std::size_t waiting = 0;        // marks with remaining uses
    bool ended = false;             // threads make no more requests
    bool idle = true;               // the device has finished
  };

  explicit State(gpu::Settings given) : settings(std::move(given)) {
    thread = thread_until_out_of_memory(
        "hmmjit scan", [this] { run(); }, [this] { fail_without_memory(); });
  }

  void run();
  Status open();
  void fail_with(const Error& error);
  void fail_without_memory() noexcept;
  void give_up(Error error) noexcept;
  Status scan_block();
  Status upload(std::span<const Residue> residues);
  // The next task of the device.
  struct Next {
    std::optional<std::size_t> windows = {};  // windows of this model
    std::optional<std::size_t> model = {};    // SSV with this model
    bool ended = false;
  };
  Next next_work(std::size_t from, bool waits);
  void request_kernels();
  Result<const gpu::ReadyKernel*> kernel_of(plan::Stage stage, const SearchModel& model);
  Status scan_model(std::size_t model);
  Status decide_windows(std::size_t model);
  Result<std::vector<int>> best_cells(const ScanModel& model, const layout::PackedTargets& windows,
                                      const gpu::ReadyKernel& kernel);
  Status launch(Launch& slot, std::size_t model, const gpu::ReadyKernel& kernel);
  void release(driver::DeviceBuffer& buffer) {
    (void)memory.resize_buffer(buffer.size(), 0);
    buffer = {};
  }
  // `more`: room for later requests, added if the buffer must be replaced.
  Status provide(driver::DeviceBuffer& buffer, std::size_t bytes, std::size_t more = 0) {
    if (buffer.size() >= bytes) return {};
    release(buffer);
    HMMJIT_ASSIGN(buffer, gpu::Cascade::counted_buffer(d.device, memory.resize(), bytes + more));
    return {};
  }
  Status collect(Launch& slot);
  void check_marks(const SearchModel& model, const gpu::ReadyKernel& kernel,
                   const ScanMarks& marks) const;
  void check_cells(const ScanModel& model, const gpu::ReadyKernel& kernel,
                   const layout::PackedTargets& windows, std::span<const int> best) const;
  Status collect_all() {
    for (Launch& slot : d.launches) {
      (void)slot;
      HMMJIT_TRY(collect(d.launches[d.next++ % d.launches.size()]));
    }
    return {};
  }
  Status count_launch(gpu::Timed stage, const driver::Event& begin, const driver::Event& end,
                      std::uint64_t cells, double expected_seconds);
  void finish(std::size_t model, Marks marks);
  void set_flowing(bool flows) {
    const MutexLock lock(mutex);
    flowing = flows;
    changed.notify_all();
  }
  // True if results of the device come without much delay.
  bool serves() const HMMJIT_REQUIRES(mutex) {
    return !failed && !block.idle && (flowing || settings.wait_for_device);
  }
  bool wanted(std::size_t model) const HMMJIT_REQUIRES(mutex) {
    return block.uses[model] > 0 && !block.done[model];
  }

  const gpu::Settings settings;
  const double begun = Trace::now();
  gpu::Counters counters;
  std::vector<ScanModel> models;
  bool top = true, bottom = true;
  search_run::Verifier* verifier = nullptr;

  ScanMemory memory{settings};
  Device d;
  std::optional<WindowParser> parser;  // set once `ready`
  bool warned_kernel = false;          // the device thread's own
  mutable Mutex mutex;
  std::condition_variable changed;
  Block block HMMJIT_GUARDED_BY(mutex);
  bool stop HMMJIT_GUARDED_BY(mutex) = false;
  bool ready HMMJIT_GUARDED_BY(mutex) = false;  // the device has been opened
  bool given_up HMMJIT_GUARDED_BY(mutex) = false;  // and a warning has been given
  bool failed HMMJIT_GUARDED_BY(mutex) = false;
  bool flowing HMMJIT_GUARDED_BY(mutex) = false;  // marks come without much delay
  Error failure HMMJIT_GUARDED_BY(mutex);
  std::thread thread;
};

void DeviceScan::State::fail_with(const Error& error) {
  bool lost = false;
  {
    const MutexLock lock(mutex);
    lost = ready && !std::exchange(given_up, true) && !stop;
  }
  counters.update([&](gpu::Statistics& s) {
    s.state = "failed";
    s.reason = error.to_string();
  });
  // Warn before the search can end.
  if (lost && settings.on_warning)
    settings.on_warning(fmt::format("device {} is given up: {}; its work goes on on the CPU",
                                    d.device->ordinal(), error.to_string()));
  give_up(error);
}

void DeviceScan::State::give_up(Error error) noexcept {
  const MutexLock lock(mutex);
  failed = true;
  flowing = false;
  failure = std::move(error);
  block.idle = true;
  changed.notify_all();
}

void DeviceScan::State::fail_without_memory() noexcept {
  try {
    return fail_with({ErrorCode::kResources, "out of memory", {}, {}});
  } catch (const std::bad_alloc&) {  // no memory for a message either
    give_up({ErrorCode::kResources, {}, {}, {}});
  }
}

Status DeviceScan::State::open() {
  d.driver = settings.open_driver ? settings.open_driver() : driver::Driver::open();
  const double initialised = Trace::now();
  HMMJIT_TRY(d.driver->require());
  HMMJIT_ASSIGN(d.device, d.driver->device(settings.devices.empty() ? 0 : settings.devices[0]));
  HMMJIT_ASSIGN(d.origin, driver::Event::now(d.device));
  for (Launch& slot : d.launches) {
    HMMJIT_ASSIGN(slot.stream, driver::Stream::create(d.device));
    HMMJIT_ASSIGN(slot.begin, driver::Event::create(d.device, true));
    HMMJIT_ASSIGN(slot.end, driver::Event::create(d.device, true));
  }
  HMMJIT_ASSIGN(d.windows.stream, driver::Stream::create(d.device));
  HMMJIT_ASSIGN(d.windows.begin, driver::Event::create(d.device, true));
  HMMJIT_ASSIGN(d.windows.end, driver::Event::create(d.device, true));
  HMMJIT_ASSIGN(d.copy.uploader, gpu::Uploader::create(d.device));
  const double opened = Trace::now();
  HMMJIT_ASSIGN(d.source, settings.open_kernels
                              ? settings.open_kernels()
                              : gpu::open_kernel_source(d.driver->report().version / 1000,
                                                        compile_settings()));
  d.loader.emplace(d.driver);
  counters.update([&](gpu::Statistics& s) {
    s.state = "ready";
    s.devices.push_back(d.device->traits().name);
    s.driver_seconds = initialised - begun;
    s.context_seconds = opened - initialised;
    s.ready_seconds = Trace::now() - begun;
  });
  parser.emplace(d.device, d.driver, *d.source, counters, settings, memory);
  const MutexLock lock(mutex);
  ready = true;
  return {};
}

void DeviceScan::State::run() {
  Status opened;
  try {
    opened = open();
  } catch (const std::system_error& error) {
    opened = std::unexpected(refused_threads("the threads a GPU needs", error));
  }
  if (!opened) return fail_with(opened.error());
  for (;;) {
    {
      MutexLock lock(mutex);
      while (!stop && block.idle) lock.wait(changed);
      if (stop) return;
    }
    Status scanned = scan_block();
    if (!scanned && scanned.error().code == ErrorCode::kResources) {
      // The threads scan for the remaining models.
      memory.warn(scanned.error());
      scanned = collect_all();
    }
    if (!scanned) return fail_with(scanned.error());
    const MutexLock lock(mutex);
    flowing = false;
    block.idle = true;
    changed.notify_all();
  }
}

Status DeviceScan::State::upload(std::span<const Residue> residues) {
  const double begin = Trace::now();
  d.residues = residues;
  d.blocks = (residues.size() + kRows - 1) / kRows;
  for (auto& [sizes, items] : d.items) release(items.first);
  d.items.clear();
  gpu::Uploader& uploader = *d.copy.uploader;
  const std::uint64_t uploaded = uploader.bytes();
  HMMJIT_TRY(provide(d.copy.residues, d.blocks * kRows));
  HMMJIT_TRY(uploader.upload_residues(d.copy.residues, residues, 0));
  const std::vector<Residue> padding(d.blocks * kRows - residues.size(), kPaddingCode);
  if (!padding.empty())
    HMMJIT_TRY(uploader.upload(d.copy.residues, padding.data(), padding.size(), residues.size()));
  HMMJIT_TRY(uploader.finish());
  counters.update([&](gpu::Statistics& s) {
    s.upload_bytes += uploader.bytes() - uploaded;
    s.pack_seconds += Trace::now() - begin;
    ++s.segments;
  });
  return {};
}

// Windows come first: threads wait for them. Then the next model that threads have yet to reach,
// once there is room for its marks. Empty if there is no task and the caller does not wait.
DeviceScan::State::Next DeviceScan::State::next_work(std::size_t from, bool waits) {
  const std::size_t bytes = std::max<std::size_t>(2 * d.blocks, 1);
  const std::size_t most = std::clamp(kWaitingMarks / bytes, kFewestWaiting, kMostWaiting);
  MutexLock lock(mutex);
  for (;;) {
    if (block.ended || stop) return {.windows = {}, .model = {}, .ended = true};
    if (!block.requests.empty()) {
      const std::size_t m = block.requests.front();
      block.requests.pop_front();
      return {.windows = m, .model = {}};
    }
    std::size_t m = from;
    while (m < models.size() && !wanted(m)) ++m;
    if (m < models.size() && block.waiting < most) return {.windows = {}, .model = m};
    if (!waits) return {};
    lock.wait(changed);
  }
}

// Requests the kernels for all models at once: several are compiled concurrently.
void DeviceScan::State::request_kernels() {
  const auto request = [&](plan::Stage stage, int M, int Kp,
                           const plan::PlanOptions& options) -> Result<Device::Requested> {
    HMMJIT_ASSIGN(plan::Plan plan, plan::make_plan(stage, M, Kp, d.device->traits(), options));
    const auto made = std::make_shared<std::promise<Result<compile::KernelPtr>>>();
    d.source->request(
        plan, -static_cast<int>(d.requested.size()),
        [made](const Result<compile::KernelPtr>& kernel) { made->set_value(kernel); });
    return Device::Requested{std::move(plan), made->get_future().share()};
  };
  for (const plan::Stage stage : {plan::Stage::kSsv, plan::Stage::kViterbi}) {
    const bool ssv = stage == plan::Stage::kSsv;
    for (const ScanModel& model : models) {
      const ByteProfile& profile = model.model->bytes;
      const KernelClass of{stage, plan::class_length(profile.M)};
      if ((ssv ? model.height : model.window_length) > 0 && !d.requested.contains(of))
        d.requested.emplace(
            of, request(stage, profile.M, profile.Kp, {.variant = ssv ? kVariant : ""}));
    }
  }
}

// Null: the threads compute this stage for the model.
Result<const gpu::ReadyKernel*> DeviceScan::State::kernel_of(plan::Stage stage,
                                                             const SearchModel& model) {
  const KernelClass of{stage, plan::class_length(model.bytes.M)};
  const auto known = d.kernels.find(of);
  if (known != d.kernels.end()) return known->second ? &*known->second : nullptr;
  if (const auto& requested = d.requested.at(of);
      requested &&
      requested->kernel.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    // Do not wait: threads that need windows already have marks.
    if (stage == plan::Stage::kViterbi && !settings.wait_for_device) return nullptr;
    set_flowing(false);
    requested->kernel.wait();
  }
  const auto make = [&]() -> Result<gpu::ReadyKernel> {
    HMMJIT_ASSIGN(const Device::Requested requested, d.requested.at(of));
    HMMJIT_ASSIGN(compile::KernelPtr kernel, requested.kernel.get());
    return d.loader->load(requested.plan, std::move(kernel), *d.device, *d.source);
  };
  Result<gpu::ReadyKernel> made = make();
  if (!made && made.error().code != ErrorCode::kCompile && made.error().code != ErrorCode::kUsage) {
    d.requested.clear();  // the next block may find memory
    return std::unexpected(made.error());
  }
  std::optional<gpu::ReadyKernel>& kernel = d.kernels[of];
  if (made) {
    kernel = *std::move(made);
    counters.update([](gpu::Statistics& s) { ++s.distinct_kernels; });
  } else {
    const std::string reason = made.error().to_string();
    counters.update([&](gpu::Statistics& s) {
      if (s.reason.empty()) s.reason = reason;
    });
    if (settings.demanded && settings.on_warning && !std::exchange(warned_kernel, true))
      settings.on_warning("no kernel for some models, their filters run on the CPU: " + reason);
  }
  return kernel ? &*kernel : nullptr;
}

Status DeviceScan::State::launch(Launch& slot, std::size_t model, const gpu::ReadyKernel& kernel) {
  const SearchModel& m = *models[model].model;
  const auto blocks = static_cast<std::uint32_t>(d.blocks);
  const auto before = static_cast<std::uint32_t>((m.bytes.M + kRows - 1) / kRows);
  const std::uint64_t in_flight =
      std::uint64_t{kernel.resident_blocks(*d.device)} *
      static_cast<std::uint64_t>(kernel.candidate().expected.launch.block_threads) / 32 *
      static_cast<std::uint64_t>(kernel.candidate().expected.sequences_per_warp);
  const std::uint64_t waves = blocks / (in_flight * kMostBlocksOfItem) + 1;
  const auto of_item =
      std::max(static_cast<std::uint32_t>((blocks + in_flight * waves - 1) / (in_flight * waves)),
               2 * before);
  auto& [items, count] = d.items[{of_item, before}];
  if (count == 0) {
    const std::vector<dev::WorkItem> list = layout::scan_items(blocks, of_item, before);
    count = list.size();
    HMMJIT_TRY(provide(items, count * sizeof list[0]));
    HMMJIT_TRY(items.upload(slot.stream, list.data(), items.size()));
    HMMJIT_TRY(slot.stream.synchronize());
  }
  HMMJIT_TRY(provide(slot.best, 2 * d.blocks));
  HMMJIT_TRY(slot.results.reserve(d.device, 2 * d.blocks, 4096));

  const ByteProfile other = complemented(m.bytes);
  layout::ByteStage stages[] = {{m.bytes, m.hmm.calibration, 1.0, {}},
                                {other, m.hmm.calibration, 1.0, {}}};
  layout::TableBlock tables(2 * sizeof(dev::Counters));
  for (layout::ByteStage& stage : stages) stage.place(tables, false);
  HMMJIT_TRY(provide(slot.tables, tables.bytes(), tables.bytes()));
  HMMJIT_TRY(slot.staging.reserve(d.device, tables.bytes(), 1 << 16));
  std::fill_n(slot.staging.bytes().data(), 2 * sizeof(dev::Counters), std::byte{0});
  tables.copy_to(slot.staging.bytes().data());
  HMMJIT_TRY(slot.tables.upload(slot.stream, slot.staging.bytes().data(), tables.bytes()));
  HMMJIT_TRY(slot.begin.record(slot.stream));
  for (const bool reverse : {false, true}) {
    if (!(reverse ? bottom : top)) continue;
    dev::ByteFilterParams p = stages[reverse].parameters(slot.tables.address());
    p.counters = reinterpret_cast<dev::Counters*>(slot.tables.address()) + reverse;
    p.database.residues = reinterpret_cast<const dev::u8*>(d.copy.residues.address()) +
                          (reverse ? d.blocks * kRows : 0);
    p.items = reinterpret_cast<const dev::WorkItem*>(items.address());
    p.item_count = static_cast<dev::u32>(count);
    p.block_best = reinterpret_cast<dev::u8*>(slot.best.address()) + (reverse ? d.blocks : 0);
    p.reverse = reverse;
    HMMJIT_TRY(kernel.launch(slot.stream, *d.device, gpu::extent_of(m), &p));
    slot.cells += d.residues.size() * static_cast<std::uint64_t>(m.bytes.M);
    slot.expected_seconds += kernel.expected_seconds(*d.device, d.residues.size());
    counters.update([](gpu::Statistics& s) { ++s.launches; });
  }
  HMMJIT_TRY(slot.end.record(slot.stream));
  slot.model = model;
  slot.kernel = &kernel;
  return {};
}

Status DeviceScan::State::count_launch(gpu::Timed timed, const driver::Event& from,
                                       const driver::Event& to, std::uint64_t cells,
                                       double expected_seconds) {
  HMMJIT_ASSIGN(const float begin, driver::Event::milliseconds(d.origin, from));
  HMMJIT_ASSIGN(const float end, driver::Event::milliseconds(d.origin, to));
  // Far from the origin, both lose digits; the errors cancel in the sum of busy times.
  HMMJIT_ASSIGN(const float taken, driver::Event::milliseconds(from, to));
  const double busy =
      std::max(0.0, static_cast<double>(end) - std::max(static_cast<double>(begin), d.busy_until));
  d.busy_until = std::max(d.busy_until, static_cast<double>(end));
  counters.update([&](gpu::Statistics& s) {
    s.cells += cells;
    s.busy_seconds += busy * 1e-3;
    s.active_seconds = Trace::now() - begun - s.ready_seconds;
    gpu::StageTimes& stage = s.stages[static_cast<std::size_t>(timed)];
    stage.seconds += static_cast<double>(taken) * 1e-3;
    stage.busy_seconds += busy * 1e-3;
    stage.cells += cells;
    stage.expected_seconds += expected_seconds;
  });
  return {};
}

Status DeviceScan::State::collect(Launch& slot) {
  if (!slot.model) return {};
  const std::size_t m = *std::exchange(slot.model, std::nullopt);
  HMMJIT_TRY(gpu::download(slot.best, slot.stream, *d.device, {.timeout = settings.launch_timeout},
                           slot.results.bytes().data(), 2 * d.blocks));
  HMMJIT_TRY(count_launch(gpu::Timed::kSsv, slot.begin, slot.end, std::exchange(slot.cells, 0),
                          std::exchange(slot.expected_seconds, 0)));

  const ByteProfile& profile = models[m].model->bytes;
  auto marks = std::make_shared<ScanMarks>();
  marks->height_ = models[m].height;
  marks->suspect_ = 127 - profile.bias;
  marks->reach_ = 2 * (std::int64_t{profile.M} + 1);
  marks->padding_ = static_cast<std::int64_t>(d.blocks * kRows - d.residues.size());
  const auto* const values = reinterpret_cast<const std::uint8_t*>(slot.results.bytes().data());
  if (top) marks->top_.assign(values, values + d.blocks);
  if (bottom) marks->bottom_.assign(values + d.blocks, values + 2 * d.blocks);
  if (verifier != nullptr) check_marks(*models[m].model, *slot.kernel, *marks);
  finish(m, std::move(marks));
  return {};
}

// Skips blocks that an overflow may have changed: an overflow affects the next M rows and may cause
// another one. The item before reports an item's first rows, perhaps too low after earlier
// overflows: hence three times M.
void DeviceScan::State::check_marks(const SearchModel& model, const gpu::ReadyKernel& kernel,
                                    const ScanMarks& marks) const {
  const auto M = static_cast<std::size_t>(model.bytes.M);
  for (const bool reverse : {false, true}) {
    const std::vector<std::uint8_t>& best = reverse ? marks.bottom_ : marks.top_;
    for (int n = 0; n < verifier->pieces() && !best.empty(); ++n) {
      const std::size_t at = verifier->choose(best.size()), row = at * kRows;
      const std::size_t first = row - std::min(row, M);
      const auto before = std::span(best).first(at).last(std::min(at, 3 * (M + 1) / kRows + 3));
      if (std::ranges::any_of(before, [&](int value) { return value >= marks.suspect_; })) continue;
      verifier->check_piece(
          model, {{gpu::Link::kSsv, kernel.name()}}, (row + kRows - first) * M,
          [&]() -> std::optional<search_run::Difference> {
            std::vector<Residue> rows;
            for (std::size_t r = first; r < row + kRows; ++r) {
              const std::size_t from = reverse ? d.blocks * kRows - 1 - r : r;
              const Residue x = from < d.residues.size() ? d.residues[from] : kPaddingCode;
              rows.push_back(reverse ? complements()[x] : x);
            }
            const int cpu = largest_value(model.bytes, rows, row - first);
            if (std::min(cpu, marks.suspect_) == std::min<int>(best[at], marks.suspect_)) return {};
            return search_run::Difference{
                plan::Stage::kSsv, {}, std::to_string(best[at]), std::to_string(cpu)};
          });
    }
  }
}

void DeviceScan::State::finish(std::size_t model, Marks marks) {
  {
    const MutexLock lock(mutex);
    block.done[model] = true;
    if (marks != nullptr && block.uses[model] > 0) {
      block.marks[model] = std::move(marks);
      ++block.waiting;
    }
  }
  changed.notify_all();
}

Status DeviceScan::State::scan_block() {
  std::span<const Residue> residues;
  {
    const MutexLock lock(mutex);
    residues = block.residues;
    flowing = true;
  }
  request_kernels();
  HMMJIT_TRY(upload(residues));
  for (std::size_t from = 0;;) {
    Next next = next_work(from, false);
    if (!next.windows && !next.model && !next.ended) {
      HMMJIT_TRY(collect_all());
      next = next_work(from, true);
    }
    if (next.ended) break;
    if (next.windows) {
      HMMJIT_TRY(decide_windows(*next.windows));
    } else {
      HMMJIT_TRY(scan_model(*next.model));
      from = *next.model + 1;
    }
  }
  HMMJIT_TRY(collect_all());
  counters.update([](gpu::Statistics& s) { ++s.blocks_done; });
  return {};
}

Status DeviceScan::State::scan_model(std::size_t model) {
  const gpu::ReadyKernel* kernel = nullptr;
  if (models[model].height > 0) {
    HMMJIT_ASSIGN(kernel, kernel_of(plan::Stage::kSsv, *models[model].model));
  }
  if (kernel == nullptr) {
    counters.update([](gpu::Statistics& s) { ++s.models_declined; });
    finish(model, nullptr);
    return {};
  }
  set_flowing(true);
  // Reuses the buffers of the launch before the running one.
  Launch& slot = d.launches[d.next++ % d.launches.size()];
  HMMJIT_TRY(collect(slot));
  return launch(slot, model, *kernel);
}

Status DeviceScan::State::decide_windows(std::size_t model) {
  layout::PackedTargets packed;
  {
    const MutexLock lock(mutex);
    packed = std::move(block.windows[model].packed);
  }
  HMMJIT_ASSIGN(const gpu::ReadyKernel* const kernel,
                kernel_of(plan::Stage::kViterbi, *models[model].model));
  std::shared_ptr<const std::vector<int>> best;
  if (kernel != nullptr &&
      layout::WordStage::gap(models[model].model->words, kernel->candidate().variant->speculates)
          .empty()) {
    auto found = best_cells(models[model], packed, *kernel);
    if (found) {
      if (verifier != nullptr) check_cells(models[model], *kernel, packed, *found);
      best = std::make_shared<const std::vector<int>>(*std::move(found));
    } else if (found.error().code == ErrorCode::kResources) {
      memory.warn(found.error());
    } else {
      return std::unexpected(found.error());
    }
  }
  {
    const MutexLock lock(mutex);
    block.windows[model].best = std::move(best);
    block.windows[model].done = true;
    flowing = true;
  }
  changed.notify_all();
  return {};
}

Result<std::vector<int>> DeviceScan::State::best_cells(const ScanModel& model,
                                                       const layout::PackedTargets& windows,
                                                       const gpu::ReadyKernel& kernel) {
  WindowLaunch& w = d.windows;
  const SearchModel& m = *model.model;
  const std::size_t count = windows.size(), result_bytes = count * sizeof(dev::WordResult);
  std::vector<std::uint32_t> lengths = windows.class_lengths;
  for (std::uint32_t& length : lengths)
    length = static_cast<std::uint32_t>(viterbi_length(length, model.window_length));

  // Counters, tables, the list of windows, then the results.
  layout::WordStage stage(m.words, lengths);
  layout::TableBlock up(sizeof(dev::LateCounters));
  stage.place(up);
  const auto start = up.add(windows.start), length = up.add(windows.length),
             length_class = up.add(windows.length_class);
  const gpu::ReadyKernel::Scratch scratch = kernel.scratch(*d.device, windows.residues.size());
  const auto grow = [&](driver::DeviceBuffer& buffer, std::size_t bytes) {
    return provide(buffer, bytes, bytes / 4);
  };
  HMMJIT_TRY(grow(w.block, up.bytes() + result_bytes));
  HMMJIT_TRY(grow(w.residues, windows.residues.size()));
  HMMJIT_TRY(grow(w.scratch, scratch.bytes()));
  HMMJIT_TRY(w.staging.reserve(d.device, up.bytes(), 1 << 16));
  HMMJIT_TRY(w.results.reserve(d.device, result_bytes, 1 << 16));
  HMMJIT_TRY(d.copy.uploader->upload(w.residues, windows.residues.data(), windows.residues.size()));
  HMMJIT_TRY(d.copy.uploader->finish());
  std::fill_n(w.staging.bytes().data(), sizeof(dev::LateCounters), std::byte{0});
  up.copy_to(w.staging.bytes().data());
  HMMJIT_TRY(w.block.upload(w.stream, w.staging.bytes().data(), up.bytes()));

  const std::uintptr_t base = w.block.address();
  dev::WordFilterParams p = stage.parameters(base);
  p.database.residues = reinterpret_cast<const dev::u8*>(w.residues.address());
  p.database.start = start.in(base);
  p.database.length = length.in(base);
  p.database.length_class = length_class.in(base);
  p.database.targets = static_cast<dev::u32>(count);
  p.list = {nullptr, nullptr, 1, static_cast<dev::u32>(count)};
  p.counters = reinterpret_cast<dev::LateCounters*>(base);
  p.results = reinterpret_cast<dev::WordResult*>(base + up.bytes());
  scratch.place(p, w.scratch.address());
  HMMJIT_TRY(w.begin.record(w.stream));
  HMMJIT_TRY(kernel.launch_tiles(w.stream, *d.device, gpu::extent_of(m), p, w.block));
  HMMJIT_TRY(w.end.record(w.stream));
  HMMJIT_TRY(gpu::download(w.block, w.stream, *d.device, {.timeout = settings.launch_timeout},
                           w.results.bytes().data(), result_bytes, up.bytes()));
  counters.update([&](gpu::Statistics& s) {
    s.launches += p.tile_count;
    s.upload_bytes += windows.residues.size() + up.bytes();
  });
  HMMJIT_TRY(count_launch(gpu::Timed::kViterbi, w.begin, w.end,
                          windows.residue_count * static_cast<std::uint64_t>(m.words.M),
                          kernel.expected_seconds(*d.device, windows.residue_count)));

  std::vector<int> best(count, kUnknownCell);
  for (std::size_t n = 0; n < count; ++n) {
    dev::WordResult result = 0;
    std::memcpy(&result, w.results.bytes().data() + n * sizeof result, sizeof result);
    const layout::WordAnswer answer = layout::word_answer(m.words, result, 1);
    if (answer.status == dev::kStatusScore) best[windows.original[n]] = answer.end - m.words.ec;
  }
  return best;
}

void DeviceScan::State::check_cells(const ScanModel& model, const gpu::ReadyKernel& kernel,
                                    const layout::PackedTargets& windows,
                                    std::span<const int> best) const {
  const WordProfile& words = model.model->words;
  for (int n = 0; n < verifier->pieces(); ++n) {
    const std::size_t at = verifier->choose(windows.size());
    const int cell = best[windows.original[at]];
    if (cell == kUnknownCell) continue;
    const auto residues = std::span(windows.residues)
                              .subspan(std::size_t{windows.start[at]} * 16, windows.length[at]);
    verifier->check_piece(
        *model.model, {{gpu::Link::kViterbi, kernel.name()}},
        residues.size() * static_cast<std::uint64_t>(words.M),
        [&]() -> std::optional<search_run::Difference> {
          const int length =
              viterbi_length(static_cast<std::int64_t>(residues.size()), model.window_length);
          const int cpu = highest_cell(words, words.move(length), residues);
          // The kernel adds E->C and saturates at the lowest word.
          if (cell == std::max(cpu, reference::ViterbiRow::kMinimum - words.ec)) return {};
          return search_run::Difference{
              plan::Stage::kViterbi, {}, std::to_string(cell), std::to_string(cpu)};
        });
  }
}

DeviceScan::DeviceScan(gpu::Settings settings)
    : state_(std::make_unique<State>(std::move(settings))) {}

DeviceScan::~DeviceScan() {
  {
    const MutexLock lock(state_->mutex);
    state_->stop = true;
    if (state_->ready) state_->d.source->cancel();
  }
  state_->changed.notify_all();
  state_->thread.join();
}

void DeviceScan::use_models(std::vector<ScanModel> models, bool top, bool bottom,
                            search_run::Verifier* verifier) {
  state_->models = std::move(models);
  state_->top = top;
  state_->bottom = bottom;
  state_->verifier = verifier;
}

void DeviceScan::begin_block(std::span<const Residue> top, std::size_t uses) {
  State& s = *state_;
  {
    const MutexLock lock(s.mutex);
    if (s.failed) return;
    const std::size_t models = s.models.size();
    s.block = {.residues = top,
               .windows = std::vector<State::Windows>(models),
               .requests = {},
               .marks = std::vector<State::Marks>(models),
               .done = std::vector<char>(models, 0),
               .uses = std::vector<std::size_t>(models, uses),
               .idle = false};
  }
  s.changed.notify_all();
}

std::shared_ptr<const ScanMarks> DeviceScan::marks(std::size_t model) {
  State& s = *state_;
  std::shared_ptr<const ScanMarks> out;
  {
    MutexLock lock(s.mutex);
    State::Block& block = s.block;
    while (s.serves() && !block.done[model]) lock.wait(s.changed);
    if (s.failed) return nullptr;
    out = block.marks[model];
    if (--block.uses[model] > 0 || out == nullptr) return out;
    block.marks[model].reset();
    --block.waiting;
  }
  s.changed.notify_all();
  return out;
}

bool DeviceScan::takes_windows(std::size_t model) const {
  const MutexLock lock(state_->mutex);
  return state_->models[model].window_length > 0 && state_->serves();
}

void DeviceScan::request_cells(std::size_t model, layout::PackedTargets windows) {
  State& s = *state_;
  {
    const MutexLock lock(s.mutex);
    if (!s.serves()) return;
    State::Windows& of = s.block.windows[model];
    of.packed = std::move(windows);
    of.wanted = true;
    s.block.requests.push_back(model);
  }
  s.changed.notify_all();
}

std::shared_ptr<const std::vector<int>> DeviceScan::best_cells(std::size_t model) {
  State& s = *state_;
  MutexLock lock(s.mutex);
  if (s.failed || s.block.windows.empty()) return nullptr;
  const State::Windows& of = s.block.windows[model];
  while (of.wanted && !of.done && s.serves()) lock.wait(s.changed);
  return s.failed ? nullptr : of.best;
}

WindowParser* DeviceScan::parser() const {
  const MutexLock lock(state_->mutex);
  return state_->ready && !state_->failed ? &*state_->parser : nullptr;
}

bool DeviceScan::missing() const {
  const MutexLock lock(state_->mutex);
  return state_->failed && !state_->ready && state_->settings.demanded;
}

Status DeviceScan::end_block() {
  State& s = *state_;
  bool opened = false;
  {
    MutexLock lock(s.mutex);
    s.block.ended = true;
    s.changed.notify_all();
    // If the user demands a device, even the shortest search waits to report that there is none.
    // Other searches do not wait for the driver.
    while (!s.failed && (s.ready ? !s.block.idle : s.settings.demanded)) lock.wait(s.changed);
    if (!s.ready) s.block.idle = true;
    if (s.failed && !s.ready && s.settings.demanded) return std::unexpected(s.failure);
    opened = s.ready;
  }
  if (opened)
    if (const Status finished = s.parser->finish(); !finished) s.fail_with(finished.error());
  return {};
}

gpu::Statistics DeviceScan::statistics() const {
  gpu::Statistics out = state_->counters.get();
  if (out.state.empty()) out.state = "starting";
  for (gpu::DomainStageTimes& stage : out.domain_stages) stage.busy_seconds = stage.seconds;
  const MutexLock lock(state_->mutex);
  if (state_->ready) out.kernels = state_->d.source->statistics();
  out.peak_device_bytes = state_->memory.peak();
  return out;
}

}  // namespace hmmjit::nucleotide
