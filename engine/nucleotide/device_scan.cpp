#include "nucleotide/device_scan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <optional>
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

namespace hmmjit::nucleotide {
namespace {

namespace dev = hmmjit_device;

constexpr int kRows = dev::kBlockRows;
constexpr const char* kVariant = "multi_lane_blocks";
// Items of a launch are about as many as the device works on at a time, since the rows before an
// item are computed twice; more where they would be longer than this.
constexpr std::uint32_t kMostBlocksOfItem = 256;
// Bytes of marks that wait for the threads, and the models that they are of at least and at most.
constexpr std::size_t kWaitingMarks = std::size_t{64} << 20;
constexpr std::size_t kFewestWaiting = 4, kMostWaiting = 64;

// A model's profile for residues that are read instead of their complements.
ByteProfile complemented(const ByteProfile& profile) {
  ByteProfile out = profile;
  const auto M = static_cast<std::ptrdiff_t>(profile.M);
  for (int x = 0; x < profile.Kp; ++x)
    std::copy_n(profile.cost.begin() + complements()[static_cast<std::size_t>(x)] * M, M,
                out.cost.begin() + x * M);
  return out;
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

  // A launch for one model, with buffers of its own so that two follow each other without a gap.
  struct Launch {
    driver::Stream stream;
    driver::Event begin, end;
    driver::DeviceBuffer tables, best;
    driver::GrowingPinnedBuffer staging, results;
    std::optional<std::size_t> model;  // in flight
    std::uint64_t cells = 0;
    double expected_seconds = 0;
  };
  // Of the thread that serves the device.
  struct Device {
    std::shared_ptr<driver::Driver> driver;
    driver::DevicePtr device;
    driver::Event origin;
    std::unique_ptr<gpu::KernelSource> source;
    std::optional<gpu::KernelLoader> loader;
    std::array<Launch, 2> launches;
    std::size_t next = 0;  // of them
    driver::DeviceBuffer residues;
    std::size_t rows = 0, blocks = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<driver::DeviceBuffer, std::size_t>>
        items;  // by the blocks of an item, and those before it
    struct Requested {
      plan::Plan plan;
      std::shared_future<Result<compile::KernelPtr>> kernel;
    };
    // By size class.
    std::map<int, Result<Requested>> requested;
    std::map<int, std::optional<gpu::ReadyKernel>> kernels;
    double busy_until = 0;  // milliseconds from the origin
  };
  // A block of targets.
  struct Block {
    std::span<const Residue> residues;
    std::vector<Marks> marks;       // by model
    std::vector<char> done;         // null marks are final
    std::vector<std::size_t> uses;  // calls of marks() to come
    std::size_t waiting = 0;        // marks that have uses
    bool ended = false;             // no thread will ask
    bool idle = true;               // the device has finished
  };

  explicit State(gpu::Settings given) : settings(std::move(given)) {
    thread =
        thread_until_out_of_memory([this] { run(); },
                                   [this] {
                                     fail_with({ErrorCode::kResources, "out of memory", {}, {}});
                                   });
  }

  void run();
  Status open();
  void fail_with(const Error& error);
  Status scan_block();
  Status upload(std::span<const Residue> residues);
  std::optional<std::size_t> next_model(std::size_t from);
  void request_kernels();
  Result<const gpu::ReadyKernel*> kernel_of(const SearchModel& model);
  Status launch(Launch& slot, std::size_t model, const gpu::ReadyKernel& kernel);
  Status collect(Launch& slot);
  Status collect_all() {
    for (Launch& slot : d.launches) {
      (void)slot;
      HMMJIT_TRY(collect(d.launches[d.next++ % d.launches.size()]));
    }
    return {};
  }
  void finish(std::size_t model, Marks marks);
  void set_flowing(bool flows) {
    const MutexLock lock(mutex);
    flowing = flows;
    changed.notify_all();
  }
  bool wanted(std::size_t model) const HMMJIT_REQUIRES(mutex) {
    return block.uses[model] > 0 && !block.done[model];
  }

  const gpu::Settings settings;
  const double begun = Trace::now();
  gpu::Counters counters;
  std::vector<ScanModel> models;
  bool top = true, bottom = true;

  Device d;
  bool warned_kernel = false, warned_memory = false;  // of its thread
  mutable Mutex mutex;
  std::condition_variable changed;
  Block block HMMJIT_GUARDED_BY(mutex);
  bool stop HMMJIT_GUARDED_BY(mutex) = false;
  bool ready HMMJIT_GUARDED_BY(mutex) = false;  // the device has been opened
  bool failed HMMJIT_GUARDED_BY(mutex) = false;
  bool flowing HMMJIT_GUARDED_BY(mutex) = false;  // marks will come without much delay
  Error failure HMMJIT_GUARDED_BY(mutex);
  std::thread thread;
};

void DeviceScan::State::fail_with(const Error& error) {
  bool lost = false;
  {
    const MutexLock lock(mutex);
    lost = ready && !failed && !stop;
    failed = true;
    flowing = false;
    failure = error;
    block.idle = true;
  }
  changed.notify_all();
  counters.update([&](gpu::Statistics& s) {
    s.state = "failed";
    s.reason = error.to_string();
  });
  if (lost && settings.on_warning)
    settings.on_warning(fmt::format("device {} is given up: {}; its work goes on on the CPU",
                                    d.device->ordinal(), error.to_string()));
}

Status DeviceScan::State::open() {
  d.driver = settings.open_driver ? settings.open_driver() : driver::Driver::open();
  const double initialised = Trace::now();
  HMMJIT_TRY(d.driver->require());
  HMMJIT_ASSIGN(d.device, d.driver->device(settings.devices.empty() ? 0 : settings.devices[0]));
  HMMJIT_ASSIGN(const driver::Stream stream, driver::Stream::create(d.device));
  HMMJIT_ASSIGN(d.origin, driver::Event::create(d.device, true));
  HMMJIT_TRY(d.origin.record(stream));
  HMMJIT_TRY(stream.synchronize());
  for (Launch& slot : d.launches) {
    HMMJIT_ASSIGN(slot.stream, driver::Stream::create(d.device));
    HMMJIT_ASSIGN(slot.begin, driver::Event::create(d.device, true));
    HMMJIT_ASSIGN(slot.end, driver::Event::create(d.device, true));
  }
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
  const MutexLock lock(mutex);
  ready = true;
  return {};
}

void DeviceScan::State::run() {
  if (const Status opened = open(); !opened) return fail_with(opened.error());
  for (;;) {
    {
      MutexLock lock(mutex);
      while (!stop && block.idle) lock.wait(changed);
      if (stop) return;
    }
    Status scanned = scan_block();
    if (!scanned && scanned.error().code == ErrorCode::kResources) {
      // Threads find the rows of the models that are left.
      if (settings.on_warning && !std::exchange(warned_memory, true))
        settings.on_warning(scanned.error().to_string() +
                            "; going on with the CPU for some targets");
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
  d.rows = residues.size();
  d.blocks = (d.rows + kRows - 1) / kRows;
  d.items.clear();
  HMMJIT_ASSIGN(gpu::Uploader uploader, gpu::Uploader::create(d.device));
  if (d.residues.size() < d.blocks * kRows) {
    d.residues = {};
    HMMJIT_ASSIGN(d.residues, driver::DeviceBuffer::create(d.device, d.blocks * kRows));
  }
  HMMJIT_TRY(uploader.upload_residues(d.residues, residues, 0));
  const std::vector<Residue> padding(d.blocks * kRows - residues.size(), kPaddingCode);
  if (!padding.empty())
    HMMJIT_TRY(uploader.upload(d.residues, padding.data(), padding.size(), residues.size()));
  HMMJIT_TRY(uploader.finish());
  counters.update([&](gpu::Statistics& s) {
    s.upload_bytes += uploader.bytes();
    s.pack_seconds += Trace::now() - begin;
    s.peak_device_bytes = std::max<std::uint64_t>(s.peak_device_bytes, d.residues.size());
    ++s.segments;
  });
  return {};
}

// The next model that threads still have to come to, once there is room for its marks.
std::optional<std::size_t> DeviceScan::State::next_model(std::size_t from) {
  const std::size_t bytes = std::max<std::size_t>(2 * d.blocks, 1);
  const std::size_t most = std::clamp(kWaitingMarks / bytes, kFewestWaiting, kMostWaiting);
  MutexLock lock(mutex);
  for (;;) {
    std::size_t m = from;
    while (m < models.size() && !wanted(m)) ++m;
    if (m >= models.size() || block.ended || stop) return std::nullopt;
    if (block.waiting < most) return m;
    lock.wait(changed);
  }
}

// Those of all models, so that several are made at a time.
void DeviceScan::State::request_kernels() {
  const auto request = [&](const ByteProfile& profile) -> Result<Device::Requested> {
    HMMJIT_ASSIGN(plan::Plan plan, plan::make_plan(plan::Stage::kSsv, profile.M, profile.Kp,
                                                   d.device->traits(), {.variant = kVariant}));
    const auto made = std::make_shared<std::promise<Result<compile::KernelPtr>>>();
    d.source->request(
        plan, -static_cast<int>(d.requested.size()),
        [made](const Result<compile::KernelPtr>& kernel) { made->set_value(kernel); });
    return Device::Requested{std::move(plan), made->get_future().share()};
  };
  for (const ScanModel& model : models) {
    const ByteProfile& profile = model.model->bytes;
    const int size_class = plan::class_length(profile.M);
    if (model.height > 0 && !d.requested.contains(size_class))
      d.requested.emplace(size_class, request(profile));
  }
}

// Null: the threads find the rows of the model.
Result<const gpu::ReadyKernel*> DeviceScan::State::kernel_of(const SearchModel& model) {
  const int size_class = plan::class_length(model.bytes.M);
  const auto known = d.kernels.find(size_class);
  if (known != d.kernels.end()) return known->second ? &*known->second : nullptr;
  const auto make = [&]() -> Result<gpu::ReadyKernel> {
    HMMJIT_ASSIGN(auto requested, d.requested.at(size_class));
    auto& [plan, future] = requested;
    if (future.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      set_flowing(false);
      future.wait();
    }
    HMMJIT_ASSIGN(compile::KernelPtr kernel, future.get());
    HMMJIT_ASSIGN(const gpu::AcceptedKernel accepted,
                  d.loader->load_accepted(plan, std::move(kernel), *d.device, *d.source));
    return gpu::ReadyKernel(plan, accepted.kernel, accepted.loaded,
                            accepted.resources.blocks_per_sm);
  };
  Result<gpu::ReadyKernel> made = make();
  std::optional<gpu::ReadyKernel>& kernel = d.kernels[size_class];
  if (made) {
    kernel = *std::move(made);
    counters.update([](gpu::Statistics& s) { ++s.distinct_kernels; });
  } else if (made.error().code != ErrorCode::kCompile && made.error().code != ErrorCode::kUsage) {
    return std::unexpected(made.error());
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
      static_cast<std::uint64_t>(kernel.candidate().launch.block_threads) / 32 *
      static_cast<std::uint64_t>(kernel.candidate().expected.sequences_per_warp);
  const std::uint64_t waves = blocks / (in_flight * kMostBlocksOfItem) + 1;
  const auto of_item =
      std::max(static_cast<std::uint32_t>((blocks + in_flight * waves - 1) / (in_flight * waves)),
               2 * before);
  auto& [items, count] = d.items[{of_item, before}];
  if (count == 0) {
    const std::vector<dev::WorkItem> list = layout::scan_items(blocks, of_item, before);
    count = list.size();
    HMMJIT_ASSIGN(items, driver::DeviceBuffer::create(d.device, count * sizeof list[0]));
    HMMJIT_TRY(items.upload(slot.stream, list.data(), items.size()));
    HMMJIT_TRY(slot.stream.synchronize());
  }
  if (slot.best.size() < 2 * d.blocks) {
    slot.best = {};
    HMMJIT_ASSIGN(slot.best, driver::DeviceBuffer::create(d.device, 2 * d.blocks));
  }
  HMMJIT_TRY(slot.results.reserve(d.device, 2 * d.blocks, 4096));

  const ByteProfile other = complemented(m.bytes);
  layout::ByteStage stages[] = {{m.bytes, m.hmm.calibration, 1.0, {}},
                                {other, m.hmm.calibration, 1.0, {}}};
  layout::TableBlock tables(2 * sizeof(dev::Counters));
  for (layout::ByteStage& stage : stages) stage.place(tables, false);
  if (slot.tables.size() < tables.bytes()) {
    slot.tables = {};
    HMMJIT_ASSIGN(slot.tables, driver::DeviceBuffer::create(d.device, 2 * tables.bytes()));
  }
  HMMJIT_TRY(slot.staging.reserve(d.device, tables.bytes(), 1 << 16));
  std::fill_n(slot.staging.bytes().data(), 2 * sizeof(dev::Counters), std::byte{0});
  tables.copy_to(slot.staging.bytes().data());
  HMMJIT_TRY(slot.tables.upload(slot.stream, slot.staging.bytes().data(), tables.bytes()));
  HMMJIT_TRY(slot.begin.record(slot.stream));
  for (const bool reverse : {false, true}) {
    if (!(reverse ? bottom : top)) continue;
    dev::ByteFilterParams p = stages[reverse].parameters(slot.tables.address());
    p.counters = reinterpret_cast<dev::Counters*>(slot.tables.address()) + reverse;
    p.database.residues =
        reinterpret_cast<const dev::u8*>(d.residues.address()) + (reverse ? d.blocks * kRows : 0);
    p.items = reinterpret_cast<const dev::WorkItem*>(items.address());
    p.item_count = static_cast<dev::u32>(count);
    p.block_best = reinterpret_cast<dev::u8*>(slot.best.address()) + (reverse ? d.blocks : 0);
    p.reverse = reverse;
    HMMJIT_TRY(kernel.launch(slot.stream, *d.device, gpu::extent_of(m), &p));
    slot.cells += d.rows * static_cast<std::uint64_t>(m.bytes.M);
    slot.expected_seconds += kernel.expected_seconds(*d.device, d.rows);
    counters.update([](gpu::Statistics& s) { ++s.launches; });
  }
  HMMJIT_TRY(slot.end.record(slot.stream));
  HMMJIT_TRY(slot.best.download(slot.stream, slot.results.bytes().data(), 2 * d.blocks));
  slot.model = model;
  return {};
}

Status DeviceScan::State::collect(Launch& slot) {
  if (!slot.model) return {};
  const std::size_t m = *std::exchange(slot.model, std::nullopt);
  HMMJIT_TRY(gpu::wait_for(slot.stream, *d.device, {.timeout = settings.launch_timeout}));
  HMMJIT_ASSIGN(const float begin, driver::Event::milliseconds(d.origin, slot.begin));
  HMMJIT_ASSIGN(const float end, driver::Event::milliseconds(d.origin, slot.end));
  const double busy =
      std::max(0.0, static_cast<double>(end) - std::max(static_cast<double>(begin), d.busy_until));
  d.busy_until = std::max(d.busy_until, static_cast<double>(end));
  counters.update([&](gpu::Statistics& s) {
    s.cells += slot.cells;
    s.busy_seconds += busy * 1e-3;
    s.active_seconds = Trace::now() - begun - s.ready_seconds;
    gpu::StageTimes& stage = s.stages[static_cast<std::size_t>(gpu::Timed::kSsv)];
    stage.seconds += static_cast<double>(end - begin) * 1e-3;
    stage.busy_seconds += busy * 1e-3;
    stage.cells += slot.cells;
    stage.expected_seconds += slot.expected_seconds;
  });
  slot.cells = 0;
  slot.expected_seconds = 0;

  const ByteProfile& profile = models[m].model->bytes;
  auto marks = std::make_shared<ScanMarks>();
  marks->height_ = models[m].height;
  marks->suspect_ = 127 - profile.bias;
  marks->reach_ = 2 * (std::int64_t{profile.M} + 1);
  marks->padding_ = static_cast<std::int64_t>(d.blocks * kRows - d.rows);
  const auto* const values = reinterpret_cast<const std::uint8_t*>(slot.results.bytes().data());
  if (top) marks->top_.assign(values, values + d.blocks);
  if (bottom) marks->bottom_.assign(values + d.blocks, values + 2 * d.blocks);
  finish(m, std::move(marks));
  return {};
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
  for (std::size_t from = 0;; ++from) {
    std::optional<std::size_t> model = next_model(from);
    if (!model) break;
    from = *model;
    const gpu::ReadyKernel* kernel = nullptr;
    if (models[from].height > 0) {
      HMMJIT_ASSIGN(kernel, kernel_of(*models[from].model));
    }
    if (kernel == nullptr) {
      counters.update([](gpu::Statistics& s) { ++s.models_declined; });
      finish(from, nullptr);
      continue;
    }
    set_flowing(true);
    // The launch before the one that is running gives its buffers.
    Launch& slot = d.launches[d.next++ % d.launches.size()];
    HMMJIT_TRY(collect(slot));
    HMMJIT_TRY(launch(slot, from, *kernel));
  }
  HMMJIT_TRY(collect_all());
  counters.update([](gpu::Statistics& s) { ++s.blocks_done; });
  return {};
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

void DeviceScan::use_models(std::vector<ScanModel> models, bool top, bool bottom) {
  state_->models = std::move(models);
  state_->top = top;
  state_->bottom = bottom;
}

void DeviceScan::begin_block(std::span<const Residue> top, std::size_t uses) {
  State& s = *state_;
  {
    const MutexLock lock(s.mutex);
    if (s.failed) return;
    const std::size_t models = s.models.size();
    s.block = {.residues = top,
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
    while (!s.failed && !block.idle && !block.done[model] &&
           (s.flowing || s.settings.wait_for_device))
      lock.wait(s.changed);
    if (s.failed) return nullptr;
    out = block.marks[model];
    if (--block.uses[model] > 0 || out == nullptr) return out;
    block.marks[model].reset();
    --block.waiting;
  }
  s.changed.notify_all();
  return out;
}

bool DeviceScan::missing() const {
  const MutexLock lock(state_->mutex);
  return state_->failed && !state_->ready && state_->settings.demanded;
}

Status DeviceScan::end_block() {
  State& s = *state_;
  MutexLock lock(s.mutex);
  s.block.ended = true;
  s.changed.notify_all();
  // Without a device even the shortest search that demands one reports an error. Others do not wait
  // for the driver.
  while (!s.failed && (s.ready ? !s.block.idle : s.settings.demanded)) lock.wait(s.changed);
  if (!s.ready) s.block.idle = true;
  if (s.failed && !s.ready && s.settings.demanded) return std::unexpected(s.failure);
  return {};
}

gpu::Statistics DeviceScan::statistics() const {
  gpu::Statistics out = state_->counters.get();
  if (out.state.empty()) out.state = "starting";
  const MutexLock lock(state_->mutex);
  if (state_->ready) out.kernels = state_->d.source->statistics();
  return out;
}

}  // namespace hmmjit::nucleotide
