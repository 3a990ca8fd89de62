#include "gpu/cascade.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>
#include <utility>

#include "core/threads.hpp"
#include "gpu/chain_sample.hpp"
#include "layout/stages.hpp"
#include "model/score_statistics.hpp"

namespace hmmjit::gpu {
namespace {

namespace dev = hmmjit_device;

// Number of entries of each list in the first download, so that most chains need only one.
constexpr std::size_t kPrefetchPassed = 2048, kPrefetchOpen = 1024, kPrefetchUndecided = 512;
constexpr std::size_t kPrefetchSurvivors = 4096;

// Device counters of one chain. They precede the tables, whose upload zeroes them.
struct ChainCounters {
  dev::Counters bytes;
  dev::LateCounters bias, viterbi, forward;
  dev::GateCounters gate;
};
static_assert(sizeof(ChainCounters) <= 256);

// What the host reads of every chain; the next download overwrites it.
struct HostLists {
  ChainCounters counters;
  struct List {
    const std::byte* entries;
    std::size_t count;
  } listed, passed, undecided;  // `listed`: open targets; without gates, all survivors
};

// Entry `i` of a list that has been copied from the device.
template <typename T>
T entry(const std::byte* list, std::size_t i = 0) {
  T out{};
  std::memcpy(&out, list + i * sizeof out, sizeof out);
  return out;
}

dev::Gate device_gate(const ScoreBand& band) { return {band.rejects, band.passes}; }

ChainStages stages_of(const CascadeJob& job) {
  const FilterLimits& limits = job.limits;
  const auto kernel = [&](Link link) -> const ReadyKernel& { return of_link(job.kernels, link); };
  // Costs above zero need saturation that the device does not do; a speculating kernel needs the
  // exact one for the targets it leaves.
  const auto serves = [&](const ReadyKernel& ready) {
    return ready &&
           layout::WordStage::gap(job.model.words, ready.candidate().variant->speculates).empty();
  };
  ChainStages out;
  out.msv = static_cast<bool>(kernel(Link::kMsv));
  out.bias = limits.bias;
  out.gated = kernel(Link::kGate) && (!out.bias || kernel(Link::kBias));
  const bool wanted = out.gated && limits.F2 < 1.0;
  const ReadyKernel& fast = kernel(Link::kViterbi);
  const bool exact = serves(kernel(Link::kExactViterbi));
  const bool leaves = fast && fast.candidate().variant->speculates;
  out.fast_viterbi = wanted && serves(fast) && (!leaves || exact);
  out.viterbi = out.fast_viterbi || (wanted && exact);
  out.leaves = leaves && out.fast_viterbi;
  out.forward = out.gated && limits.F3 < 1.0 && kernel(Link::kForward);
  return out;
}

ListOffsets lay_out(const ChainStages& stages, std::size_t targets, bool sample) {
  ListOffsets out;
  const auto list = [&](std::size_t& offset, std::size_t entry) {
    offset = out.bytes;
    out.bytes += layout::aligned_size(targets * entry);
  };
  list(out.survivors, sizeof(dev::Survivor));
  list(out.undecided, sizeof(std::uint32_t));
  if (stages.gated) {
    list(out.sums, sizeof(float));
    list(out.passed, sizeof(std::uint32_t));
    list(out.open, sizeof(dev::Survivor));
  }
  if (stages.viterbi) {
    list(out.viterbi, sizeof(dev::Candidate));
    list(out.words, sizeof(dev::WordResult));
    list(out.flagged, sizeof(std::uint32_t));
  }
  if (stages.forward) {
    list(out.forward, sizeof(dev::Candidate));
    list(out.scores, sizeof(float));
  }
  if (sample) list(out.results, sizeof(dev::FilterResult));
  return out;
}

}  // namespace

// One chain while it is queued.
struct Cascade::Run {
  Cascade& lane;
  const CascadeJob& job;
  const PackedSegment& packed = job.targets.packed();
  const SearchModel& model = job.model;
  const std::size_t n = packed.targets.size();
  const dev::DatabaseView database = job.targets.view();
  CascadeResult result{};

  // The upload: the counters, followed by each stage's tables.
  layout::TableBlock up{sizeof(ChainCounters)};
  std::uintptr_t base() const { return lane.tables_.address(); }
  ChainCounters* counters() const { return reinterpret_cast<ChainCounters*>(base()); }

  template <typename T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(lane.lists_.address() + offset);
  }

  const ReadyKernel& kernel(Link link) const { return of_link(job.kernels, link); }
  const ReadyKernel& ssv = kernel(kernel(Link::kFineSsv) ? Link::kFineSsv : Link::kSsv);

  // The error of a list; `link`: of the kernel that makes it.
  std::unexpected<Error> impossible(Link link, const std::string& what) const {
    const ReadyKernel& maker = link == Link::kSsv || !kernel(link) ? ssv : kernel(link);
    return fail(ErrorCode::kInternal, "a kernel returned " + what + " for model " + model.hmm.name,
                maker.name());
  }

  Status queue();
  // Queues the upload of the model's tables.
  Status begin();
  Status provide_scratch();
  // One launch, or one for each tile of the model.
  template <typename Params>
  Status launch(const ReadyKernel& ready, Params& p);
  Status record_end(Timed stage) {
    return lane.end_[static_cast<std::size_t>(stage)].record(lane.stream_);
  }
  Status queue_bytes();
  Status queue_bias();
  Status queue_viterbi();
  Status queue_forward();
  // Queues the decisions about a list, after the stage that computed its scores.
  Status queue_gate(const dev::TargetList& list, dev::u32 stage);
  Status collect();
  Result<HostLists> download_lists();
  // Adds the open targets and those that passed to the result of their block.
  Status to_input_order(const HostLists& all);
  // Copies pieces of the lists to the host, the last one to the highest place, and waits for them.
  Result<const std::byte*> download(std::span<const ListCopy> copies);
  // Determines which targets failed, from the lists of all stages.
  Status list_failed(const ChainCounters& c);
  void count_work(const dev::GateCounters& counters);
  // Takes the sample for comparison with the CPU.
  Status sample(const ChainCounters& c);

  ChainStages stages = stages_of(job);
  const ListOffsets lists = lay_out(stages, n, static_cast<bool>(job.sample));
  const DeviceTargets::WorkItems* work = nullptr;
  std::optional<layout::ByteStage> byte_stage{};
  std::optional<layout::WordStage> word_stage{};
  std::optional<layout::FloatStage> float_stage{};
  std::optional<layout::BiasStage> bias_stage{};
  layout::Placed<dev::SplitState> up_splits{};
  layout::Placed<std::uint8_t> up_claimed{};
  std::vector<std::uint8_t> claimed{};
  dev::GateParams gate{};
};

namespace {
// A quarter more than requested, so that segments of about the same size need no new buffer.
constexpr std::size_t with_slack(std::size_t bytes) {
  return layout::aligned_size(bytes + bytes / 4);
}
// Buffers whose size depends on the model grow by powers of two, from a minimum.
constexpr std::size_t kFirstBuffer = std::size_t{256} << 10;
constexpr std::size_t for_models(std::size_t bytes) {
  return std::bit_ceil(std::max(bytes, kFirstBuffer));
}
std::size_t most_list_bytes(std::size_t targets) {
  constexpr std::size_t kPerTarget = 2 * sizeof(dev::Survivor) + 2 * sizeof(dev::Candidate) +
                                     sizeof(dev::WordResult) + 6 * sizeof(std::uint32_t);
  constexpr std::size_t kLists = 11;
  return targets * kPerTarget + kLists * 256;
}
}  // namespace

Result<std::unique_ptr<Cascade>> Cascade::create(const driver::DevicePtr& device,
                                                 const driver::Event& origin, Resize resize,
                                                 std::size_t most_scratch) {
  std::unique_ptr<Cascade> out(new Cascade);
  out->most_scratch_ = most_scratch;
  out->device_ = device;
  out->resize_ = std::move(resize);
  HMMJIT_ASSIGN(out->stream_, driver::Stream::create(device));
  HMMJIT_ASSIGN(out->clock_, ChainClock::create(device, origin));
  for (driver::Event& event : out->end_) {
    HMMJIT_ASSIGN(event, driver::Event::create(device, true));
  }
  // Allocate now, while no chain has to wait: see for_models().
  HMMJIT_TRY(out->up_.reserve(device, kFirstBuffer, kFirstBuffer));
  (void)out->grow(out->tables_, kFirstBuffer, true);
  HMMJIT_TRY(out->down_.reserve(device, kFirstBuffer, kFirstBuffer));
  return out;
}

std::size_t Cascade::bytes_for(std::size_t targets) { return with_slack(most_list_bytes(targets)); }

Status Cascade::reserve(DeviceTargets& targets, int model_length) {
  HMMJIT_TRY(grow(lists_, most_list_bytes(targets.packed().targets.size())));
  HMMJIT_TRY(targets.work(model_length, false));
  return {};
}

Result<driver::DeviceBuffer> Cascade::counted_buffer(const driver::DevicePtr& device,
                                                     const Resize& resize, std::size_t bytes) {
  HMMJIT_TRY(resize(0, bytes));
  auto made = driver::DeviceBuffer::create(device, bytes);
  if (!made) HMMJIT_TRY(resize(bytes, 0));
  return made;
}

Status Cascade::grow(driver::DeviceBuffer& buffer, std::size_t bytes, bool by_model) {
  const std::size_t present = buffer.size();
  if (present >= bytes) return {};
  if (auto made =
          counted_buffer(device_, resize_, by_model ? for_models(bytes) : with_slack(bytes))) {
    if (present > 0) outgrown_.push_back(std::move(buffer));
    buffer = *std::move(made);
    return {};
  }
  // Memory is too scarce for both.
  buffer = driver::DeviceBuffer();
  HMMJIT_TRY(resize_(present, 0));
  HMMJIT_ASSIGN(buffer, counted_buffer(device_, resize_, with_slack(bytes)));
  return {};
}

Status Cascade::wait(const CascadeJob& job) const { return wait_for(stream_, *device_, job.wait); }

Result<CascadeResult> Cascade::run(const CascadeJob& job) {
  Run run{.lane = *this, .job = job};
  run.result.blocks.resize(job.claimed.size());
  if (run.n == 0) return std::move(run.result);
  for (const ReadyKernel& kernel : job.kernels) {
    if (kernel) HMMJIT_TRY(kernel.require(extent_of(job.model)));
  }
  if (Status queued = run.queue(); !queued) {
    // Queued launches read the buffers from which the next chain uploads.
    if (queued.error().code == ErrorCode::kResources) HMMJIT_TRY(wait(job));
    return std::unexpected(std::move(queued.error()));
  }
  HMMJIT_TRY(run.collect());
  return std::move(run.result);
}

Status Cascade::Run::queue() {
  HMMJIT_TRY(begin());
  HMMJIT_TRY(lane.grow(lane.lists_, lists.bytes));
  if (job.sample)
    HMMJIT_TRY(lane.lists_.fill(lane.stream_, 0xff, n * sizeof(dev::FilterResult), lists.results));
  HMMJIT_TRY(provide_scratch());
  HMMJIT_TRY(lane.clock_.begin(lane.stream_));
  HMMJIT_TRY(queue_bytes());
  if (stages.gated) HMMJIT_TRY(queue_bias());
  HMMJIT_TRY(record_end(Timed::kBias));
  if (stages.viterbi) HMMJIT_TRY(queue_viterbi());
  HMMJIT_TRY(record_end(Timed::kViterbi));
  if (stages.forward) HMMJIT_TRY(queue_forward());
  return record_end(Timed::kForward);
}

Status Cascade::Run::begin() {
  const FilterLimits& limits = job.limits;
  const bool whole = ssv.candidate().expected.tile_length > 0;
  HMMJIT_ASSIGN(work, job.targets.work(model.bytes.M, whole));

  // Everything that the launches need of the model is copied at once.
  const auto& lengths = packed.targets.class_lengths;
  byte_stage.emplace(model.bytes, model.hmm.calibration, limits.F1, lengths).place(up, stages.msv);
  up_splits = up.add(work->splits);
  if (stages.gated && std::ranges::find(job.claimed, false) != job.claimed.end()) {
    claimed.assign(job.claimed.begin(), job.claimed.end());
    up_claimed = up.add(claimed);
  }
  if (stages.gated && stages.bias) bias_stage.emplace(model.bias).place(up);
  if (stages.viterbi) word_stage.emplace(model.words, lengths).place(up);
  if (stages.forward) float_stage.emplace(model.odds).place(up);
  HMMJIT_TRY(lane.up_.reserve(lane.device_, up.bytes(), kFirstBuffer));
  HMMJIT_TRY(lane.grow(lane.tables_, up.bytes(), true));
  std::byte* const pinned = lane.up_.bytes().data();
  std::memset(pinned, 0, layout::aligned_size(sizeof(ChainCounters)));
  up.copy_to(pinned);
  return lane.tables_.upload(lane.stream_, pinned, up.bytes());
}

// The stages of a chain run one after the other, so all can use the same memory.
Status Cascade::Run::provide_scratch() {
  const auto needs = [&](bool with_fast) {
    std::size_t bytes = 0;
    for (const ReadyKernel* ready :
         {&ssv, stages.msv ? &kernel(Link::kMsv) : nullptr,
          with_fast ? &kernel(Link::kViterbi) : nullptr,
          stages.viterbi && (stages.leaves || !with_fast) ? &kernel(Link::kExactViterbi) : nullptr,
          stages.forward ? &kernel(Link::kForward) : nullptr}) {
      if (ready != nullptr)
        bytes = std::max(bytes, ready->scratch(*lane.device_, job.targets.residue_bytes()).bytes());
    }
    return bytes;
  };
  // A faster kernel is not worth memory that targets could use.
  const bool exact = static_cast<bool>(kernel(Link::kExactViterbi));
  if (stages.fast_viterbi && exact && needs(true) > std::max(lane.most_scratch_, needs(false)))
    stages.fast_viterbi = stages.leaves = false;
  HMMJIT_TRY(lane.grow(lane.scratch_, needs(stages.fast_viterbi)));
  if (ssv.candidate().expected.tile_length > 0)
    HMMJIT_TRY(lane.grow(lane.tile_best_, work->count * sizeof(std::uint32_t)));
  return {};
}

template <typename Params>
Status Cascade::Run::launch(const ReadyKernel& ready, Params& p) {
  const ModelExtent extent = extent_of(model);
  ready.scratch(*lane.device_, job.targets.residue_bytes()).place(p, lane.scratch_.address());
  if constexpr (requires { p.tile; }) {
    HMMJIT_TRY(ready.launch_tiles(lane.stream_, *lane.device_, extent, p, lane.tables_));
    result.launches += p.tile_count;
    return {};
  } else {
    ++result.launches;
    return ready.launch(lane.stream_, *lane.device_, extent, &p);
  }
}

// SSV, and MSV's full recurrence for the targets that SSV leaves undecided.
Status Cascade::Run::queue_bytes() {
  dev::ByteFilterParams p = byte_stage->parameters(base());
  p.database = database;
  p.items = reinterpret_cast<const dev::WorkItem*>(work->items.address());
  p.item_count = work->count;
  p.splits = up_splits.in(base());
  p.counters = &counters()->bytes;
  p.results = job.sample ? at<dev::FilterResult>(lists.results) : nullptr;
  p.survivors = at<dev::Survivor>(lists.survivors);
  p.undecided = at<dev::u32>(lists.undecided);
  p.tile_best = reinterpret_cast<dev::u32*>(lane.tile_best_.address());
  HMMJIT_TRY(launch(ssv, p));
  HMMJIT_TRY(record_end(Timed::kSsv));
  if (stages.msv) {
    p.items = nullptr;
    p.item_count = 0;
    HMMJIT_TRY(launch(kernel(Link::kMsv), p));
  }
  return record_end(Timed::kMsv);
}

Status Cascade::Run::queue_bias() {
  const Calibration& calibration = model.hmm.calibration;
  const FilterLimits& limits = job.limits;
  const dev::TargetList survivors{at<dev::u32>(lists.survivors), &counters()->bytes.survivors,
                                  sizeof(dev::Survivor) / sizeof(dev::u32), 0};
  if (stages.bias) {
    dev::BiasParams b = bias_stage->parameters(base());
    b.database = database;
    b.list = survivors;
    b.p1 = job.targets.bias_lengths();
    b.counters = &counters()->bias;
    b.results = at<float>(lists.sums);
    HMMJIT_TRY(launch(kernel(Link::kBias), b));
  }
  dev::GateParams& g = gate;
  g.database = database;
  g.block = job.targets.block();
  g.claimed = up_claimed.in(base());
  g.null_nats = job.targets.null_nats();
  g.classes = byte_stage->classes(base());
  g.move = stages.viterbi ? word_stage->moves(base()) : nullptr;
  g.bias = stages.bias ? at<const float>(lists.sums) : nullptr;
  g.words = at<const dev::WordResult>(lists.words);
  g.forward = at<const float>(lists.scores);
  g.to_viterbi = stages.viterbi ? at<dev::Candidate>(lists.viterbi) : nullptr;
  g.to_forward = stages.forward ? at<dev::Candidate>(lists.forward) : nullptr;
  g.passed = at<dev::u32>(lists.passed);
  g.open = at<dev::Survivor>(lists.open);
  g.counters = &counters()->gate;
  g.bias_gate = device_gate(gumbel_band(calibration.msv_mu, calibration.msv_lambda, limits.F1));
  g.skip_gate = device_gate(gumbel_band(calibration.msv_mu, calibration.msv_lambda, limits.F2));
  g.viterbi_gate =
      device_gate(gumbel_band(calibration.viterbi_mu, calibration.viterbi_lambda, limits.F2));
  g.forward_gate =
      device_gate(exponential_band(calibration.forward_tau, calibration.forward_lambda, limits.F3));
  g.byte_scale = model.bytes.scale;
  g.word_scale = model.words.scale;
  g.forward_guard = layout::kForwardGuard;
  g.forward_guard_per_residue = layout::kForwardGuardPerResidue;
  g.word_base = static_cast<dev::s16>(model.words.base);
  g.base = static_cast<dev::u8>(model.bytes.base);
  g.tec = model.bytes.tec;
  g.tbm = model.bytes.tbm;
  return queue_gate(survivors, dev::kAfterBias);
}

Status Cascade::Run::queue_gate(const dev::TargetList& list, dev::u32 stage) {
  gate.list = list;
  gate.stage = stage;
  return launch(kernel(Link::kGate), gate);
}

Status Cascade::Run::queue_viterbi() {
  const dev::TargetList candidates{at<dev::u32>(lists.viterbi), &counters()->gate.viterbi,
                                   dev::kCandidateStride, 0};
  dev::WordFilterParams w = word_stage->parameters(base());
  w.database = database;
  w.list = candidates;
  w.counters = &counters()->viterbi;
  w.results = at<dev::WordResult>(lists.words);
  w.flagged = at<dev::u32>(lists.flagged);
  if (stages.fast_viterbi) HMMJIT_TRY(launch(kernel(Link::kViterbi), w));
  if (!stages.fast_viterbi || stages.leaves) {
    w.only_flagged = stages.leaves ? 1 : 0;
    HMMJIT_TRY(launch(kernel(Link::kExactViterbi), w));
  }
  return queue_gate(candidates, dev::kAfterViterbi);
}

Status Cascade::Run::queue_forward() {
  const dev::TargetList candidates{at<dev::u32>(lists.forward), &counters()->gate.forward,
                                   dev::kCandidateStride, 0};
  dev::FloatFilterParams f = float_stage->parameters(base());
  f.database = database;
  f.list = candidates;
  f.lengths = job.targets.float_lengths();
  f.counters = &counters()->forward;
  f.results = at<float>(lists.scores);
  HMMJIT_TRY(launch(kernel(Link::kForward), f));
  return queue_gate(candidates, dev::kAfterForward);
}

Status Cascade::Run::collect() {
  HMMJIT_ASSIGN(const HostLists all, download_lists());
  HMMJIT_ASSIGN(result.begin, lane.clock_.read(lane.end_, result.end));
  HMMJIT_TRY(to_input_order(all));
  const ChainCounters& c = all.counters;
  const auto first = std::ranges::find(job.claimed, true);
  if (first != job.claimed.end()) {
    FilteredBlock& block = result.blocks[static_cast<std::size_t>(first - job.claimed.begin())];
    block.failed_bias = c.gate.failed_bias;
    block.failed_viterbi = c.gate.failed_viterbi;
    block.failed_forward = c.gate.failed_forward;
  }
  result.survivors = c.bytes.survivors;
  result.undecided = c.bytes.undecided;
  result.open = all.listed.count + all.undecided.count;
  result.passed = all.passed.count;
  result.viterbi_targets = c.gate.viterbi;
  result.viterbi_flagged = c.viterbi.flagged;
  result.forward_targets = c.gate.forward;
  count_work(c.gate);
  if (stages.gated && job.limits.list_failed) HMMJIT_TRY(list_failed(c));
  return sample(c);
}

Result<HostLists> Cascade::Run::download_lists() {
  // Download the counters, and as much of the lists as most chains need.
  const std::size_t at_listed = stages.gated ? lists.open : lists.survivors;
  std::size_t first_listed =
      std::min(n, stages.gated ? kPrefetchOpen : std::max(kPrefetchSurvivors, n / 24));
  std::size_t first_passed = stages.gated ? std::min(n, kPrefetchPassed) : 0;
  std::size_t first_undecided = stages.msv ? 0 : std::min(n, kPrefetchUndecided);
  std::array<ListCopy, 3> pieces{};
  const auto download_all = [&]() -> Result<const std::byte*> {
    pieces = {{{at_listed, first_listed * sizeof(dev::Survivor), 0},
               {lists.passed, first_passed * sizeof(std::uint32_t), 0},
               {lists.undecided, first_undecided * sizeof(std::uint32_t), 0}}};
    std::size_t end = layout::aligned_size(sizeof(ChainCounters));
    for (ListCopy& piece : pieces) {
      piece.to = end;
      end += layout::aligned_size(piece.bytes);
    }
    HMMJIT_TRY(lane.down_.reserve(lane.device_, end, kFirstBuffer));
    HMMJIT_TRY(
        lane.tables_.download(lane.stream_, lane.down_.bytes().data(), sizeof(ChainCounters)));
    return download(pieces);
  };
  // The copy engine takes copies in order of request, so a copy that waits for its kernels would
  // delay those of all other streams.
  HMMJIT_TRY(lane.wait(job));
  HMMJIT_ASSIGN(const std::byte* down, download_all());
  const auto c = entry<ChainCounters>(down);
  const std::size_t listed = stages.gated ? c.gate.open : c.bytes.survivors;
  const std::size_t passed = stages.gated ? c.gate.passed : 0;
  const std::size_t undecided = stages.msv ? 0 : c.bytes.undecided;
  const struct {
    Link link;
    const char* list;
    std::size_t count;
  } counts[] = {{Link::kSsv, "survivors", c.bytes.survivors},
                {Link::kSsv, "undecided", c.bytes.undecided},
                {Link::kGate, "open", c.gate.open},
                {Link::kGate, "passed", c.gate.passed},
                {Link::kGate, "viterbi", c.gate.viterbi},
                {Link::kGate, "forward", c.gate.forward},
                {Link::kViterbi, "flagged", c.viterbi.flagged}};
  for (const auto& [link, list, count] : counts) {
    if (count > n)
      return impossible(link,
                        fmt::format("impossible counts ({} of {} targets in {})", count, n, list));
  }
  if (listed > first_listed || passed > first_passed || undecided > first_undecided) {
    first_listed = listed;
    first_passed = passed;
    first_undecided = undecided;
    HMMJIT_ASSIGN(down, download_all());
  }
  return HostLists{c,
                   {down + pieces[0].to, listed},
                   {down + pieces[1].to, passed},
                   {down + pieces[2].to, undecided}};
}

Status Cascade::Run::to_input_order(const HostLists& all) {
  const auto origin_of = [&](std::uint32_t sorted) -> const TargetOrigin* {
    return sorted < n ? &packed.origins[packed.targets.original[sorted]] : nullptr;
  };
  constexpr const char* kTarget = "an impossible target";
  for (std::size_t i = 0; i < all.listed.count; ++i) {
    const auto survivor = entry<dev::Survivor>(all.listed.entries, i);
    const TargetOrigin* const origin = origin_of(survivor.target);
    if (origin == nullptr) return impossible(stages.gated ? Link::kGate : Link::kSsv, kTarget);
    if (!job.claimed[origin->block]) continue;
    const int length = static_cast<int>(packed.targets.length[survivor.target]);
    const float nats = layout::byte_answer(model.bytes, survivor.result, length).nats;
    result.blocks[origin->block].open.push_back({origin->index, nats});
  }
  for (std::size_t i = 0; i < all.undecided.count; ++i) {
    const TargetOrigin* const origin = origin_of(entry<std::uint32_t>(all.undecided.entries, i));
    if (origin == nullptr) return impossible(Link::kSsv, kTarget);
    if (job.claimed[origin->block]) result.blocks[origin->block].open.push_back({origin->index});
  }
  result.passed_targets.reserve(all.passed.count);
  for (std::size_t i = 0; i < all.passed.count; ++i) {
    const auto target = entry<std::uint32_t>(all.passed.entries, i);
    const TargetOrigin* const origin = origin_of(target);
    if (origin == nullptr || !job.claimed[origin->block]) return impossible(Link::kGate, kTarget);
    result.passed_targets.push_back({origin->block, origin->index, target});
  }
  std::ranges::sort(result.passed_targets, {},
                    [](const PassedTarget& p) { return std::pair(p.block, p.index); });
  for (const PassedTarget& p : result.passed_targets)
    result.blocks[p.block].passed.push_back(p.index);
  for (FilteredBlock& block : result.blocks) {
    std::ranges::sort(block.open, {}, &MsvSurvivor::index);
  }
  return {};
}

Result<const std::byte*> Cascade::Run::download(std::span<const ListCopy> copies) {
  const std::size_t bytes = copies.back().to + copies.back().bytes;
  HMMJIT_TRY(lane.down_.reserve(lane.device_, bytes, kFirstBuffer));
  std::byte* const down = lane.down_.bytes().data();
  for (const ListCopy& copy : copies)
    HMMJIT_TRY(lane.lists_.download(lane.stream_, down + copy.to, copy.bytes, copy.from));
  HMMJIT_TRY(lane.wait(job));
  return down;
}

Status Cascade::Run::list_failed(const ChainCounters& c) {
  // Each stage's list overrides those of earlier stages; every entry begins with the target.
  struct List {
    std::size_t from, count, entry;
    Fate fate;
  };
  const List all[] = {
      {lists.survivors, c.bytes.survivors, sizeof(dev::Survivor), Fate::kBias},
      {lists.viterbi, c.gate.viterbi, sizeof(dev::Candidate), Fate::kViterbi},
      {lists.forward, c.gate.forward, sizeof(dev::Candidate), Fate::kForward},
      {lists.open, c.gate.open, sizeof(dev::Survivor), Fate::kOpen},
      {lists.passed, c.gate.passed, sizeof(std::uint32_t), Fate::kPassed},
  };
  std::vector<ListCopy> copies;
  std::size_t end = 0;
  for (const List& list : all) {
    copies.push_back({list.from, list.count * list.entry, end});
    end += copies.back().bytes;
  }
  HMMJIT_ASSIGN(const std::byte* at, download(copies));
  std::vector<Fate> fates(n, Fate::kMsv);
  for (const List& list : all) {
    for (std::size_t i = 0; i < list.count; ++i, at += list.entry) {
      const auto target = entry<std::uint32_t>(at);
      if (target >= n)
        return impossible(list.fate == Fate::kBias ? Link::kSsv : Link::kGate,
                          "an impossible target");
      fates[target] = list.fate;
    }
  }
  for (std::size_t target = 0; target < n; ++target) {
    const TargetOrigin& origin = packed.origins[packed.targets.original[target]];
    const Fate fate = fates[target];
    if (job.claimed[origin.block] && fate >= Fate::kBias && fate <= Fate::kForward)
      result.blocks[origin.block].failed.push_back({origin.index, fate});
  }
  return {};
}

void Cascade::Run::count_work(const dev::GateCounters& counters) {
  const auto count = [&](Timed stage, const ReadyKernel& ready, std::uint64_t residues) {
    if (!ready) return;
    result.work[static_cast<std::size_t>(stage)] = {
        .cells = residues * static_cast<std::uint64_t>(model.bytes.M),
        .expected_seconds = ready.expected_seconds(*lane.device_, residues)};
  };
  count(Timed::kSsv, ssv, packed.targets.residue_count);
  if (stages.bias) count(Timed::kBias, kernel(Link::kBias), counters.residues[dev::kAfterBias]);
  if (stages.viterbi) {
    count(Timed::kViterbi, kernel(stages.fast_viterbi ? Link::kViterbi : Link::kExactViterbi),
          counters.residues[dev::kAfterViterbi]);
  }
  if (stages.forward)
    count(Timed::kForward, kernel(Link::kForward), counters.residues[dev::kAfterForward]);
}

Status Cascade::Run::sample(const ChainCounters& c) {
  const auto first = std::ranges::find(job.claimed, true);
  if (first == job.claimed.end()) return {};
  const bool whole = std::ranges::find(job.claimed, false) == job.claimed.end();
  BlockSample& first_sample =
      result.blocks[static_cast<std::size_t>(first - job.claimed.begin())].sample;
  if (stages.gated && whole) first_sample.lost = lost_at_gates(c.gate, c.bytes.survivors);
  if (!job.sample) return {};
  const double begun = thread_seconds();
  HMMJIT_TRY(sample_chain({.model = model,
                           .limits = job.limits,
                           .packed = packed,
                           .claimed = job.claimed,
                           .classes = byte_stage->classes(),
                           .stages = stages,
                           .at = lists,
                           .survivors = c.bytes.survivors,
                           .undecided = c.bytes.undecided,
                           .flagged = stages.leaves ? c.viterbi.flagged : 0,
                           .gate = c.gate,
                           .download = [this](auto copies) { return download(copies); }},
                          job.sample, result.blocks));
  first_sample.seconds = thread_seconds() - begun;
  return {};
}

}  // namespace hmmjit::gpu
