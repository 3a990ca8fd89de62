#include "gpu/domain_stage.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

#include "common/domain_params.h"
#include "core/threads.hpp"
#include "layout/float_tables.hpp"
#include "layout/node_tables.hpp"
#include "model/random.hpp"

namespace hmmjit::gpu {
namespace {

namespace dev = hmmjit_device;

// Limits over all models of a launch.
constexpr std::size_t kSlots = 32768, kRegions = 65536, kEnvelopes = 49152;
constexpr std::size_t kMostWords = std::size_t{32} << 20;
constexpr std::size_t kUpBytes = std::size_t{4} << 20;  // tables and lists
static_assert(DomainStage::kMostLaunchTargets <= kSlots &&
              3 * DomainStage::kMostLaunchTargets + 16 * DomainStage::kMostRequests <= kEnvelopes);
// An item may only take a small part of the workspace, or it would keep many others waiting.
constexpr std::size_t kItemsAtOnce = 24, kEnvelopeCellBytes = 10, kRegionCellBytes = 17;
std::uint32_t with_room(std::uint32_t most_cells, std::size_t workspace, std::size_t cell_bytes) {
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(most_cells, workspace / (kItemsAtOnce * cell_bytes)));
}
// No kernel begins an item after this fraction of the seconds that a launch may take.
constexpr double kPartOfLaunch = 0.5;
// Regions with several domains are rarely closer to each other than this.
constexpr std::size_t kResiduesOfRegion = 128;
// Maximum concurrent warps of one model in the ensemble kernel; a device has no room for more.
constexpr std::size_t kMostEnsembles = 1024;
// Maximum emissions for a launch's envelopes, unless a single request has more.
constexpr std::size_t kMostOwnFloats = std::size_t{64} << 20;
// Minimum that is reserved for the results of a launch.
constexpr std::size_t kLeastDown = std::size_t{2} << 20;

// Offsets in the buffer.
constexpr std::size_t kAtParsed = kUpBytes;
constexpr std::size_t kAtScored = kAtParsed + kSlots * sizeof(dev::ParsedTarget);
constexpr std::size_t kAtSampled = kAtScored + kEnvelopes * sizeof(dev::ScoredEnvelope);
constexpr std::size_t kAtEnvelopes = kAtSampled + kRegions * sizeof(dev::SampledRegion);
constexpr std::size_t kAtRegions = kAtEnvelopes + kEnvelopes * sizeof(dev::RegionItem);
constexpr std::size_t kAtRegionOrder = kAtRegions + kRegions * sizeof(dev::RegionItem);
constexpr std::size_t kAtEnvelopeOrder = kAtRegionOrder + kRegions * sizeof(std::uint32_t);
constexpr std::size_t kBufferBytes = kAtEnvelopeOrder + kEnvelopes * sizeof(std::uint32_t);
static_assert(kAtScored % 256 == 0 && kAtSampled % 256 == 0 && kAtEnvelopes % 256 == 0 &&
              kAtRegions % 256 == 0 && kAtRegionOrder % 256 == 0 && kAtEnvelopeOrder % 256 == 0);

// Layout of the upload: the counters, the models, then tables and lists.
constexpr std::size_t kAtCounters = layout::aligned_size(sizeof(dev::DomainArena));
constexpr std::size_t kAtModels =
    kAtCounters + layout::aligned_size(DomainStage::kMostRequests * sizeof(dev::DomainCounters));
constexpr std::size_t kAtTables =
    kAtModels + layout::aligned_size(DomainStage::kMostRequests * sizeof(dev::DomainParams));
static_assert(kAtTables + std::max(kEnvelopes, kRegions) * sizeof(std::uint32_t) <= kUpBytes,
              "orders travel there");

// Units of workspace that the items of one model reserve, longest item first.
using ReservedUnits = std::vector<std::uint64_t>;

// The number of items in each list that may be in progress at once so that all find workspace: an
// equal fraction of each list. With the longest first, an item's room suffices for those after it.
std::vector<dev::u32> most_at_once(std::vector<ReservedUnits> lists, std::uint64_t workspace) {
  for (ReservedUnits& units : lists) {
    // Kernels skip items that are larger than the workspace.
    std::ranges::replace_if(
        units, [&](std::uint64_t u) { return u > workspace; }, 0u);
    std::partial_sum(units.begin(), units.end(), units.begin());
  }
  std::vector<dev::u32> out(lists.size());
  const auto fit = [&](double part) {
    std::uint64_t taken = 0;
    for (std::size_t i = 0; i < lists.size(); ++i) {
      const std::size_t n = lists[i].size();
      const auto count = std::max<std::size_t>(
          static_cast<std::size_t>(part * static_cast<double>(n)), std::min<std::size_t>(n, 1));
      out[i] = static_cast<dev::u32>(count);
      if (count > 0) taken += lists[i][count - 1];
    }
    return taken <= workspace;
  };
  if (fit(1)) return out;
  double fits = 0, too_much = 1;
  for (int step = 0; step < 16; ++step) {
    const double middle = (fits + too_much) / 2;
    (fit(middle) ? fits : too_much) = middle;
  }
  fit(fits);
  return out;
}

// A list that one kernel fills and a later one processes.
struct ItemList {
  dev::u32 dev::DomainCounters::*count;
  dev::u32 dev::DomainParams::*capacity;
  dev::RegionItem* dev::DomainParams::*items;
  const dev::u32* dev::DomainParams::*order;
  dev::u32 dev::DomainParams::*listed;
  dev::u32 dev::DomainParams::*most;
  std::size_t at_order;
  dev::u32 (*units)(dev::u32 length, dev::u32 stripes);
  dev::u32 (*block_units)(dev::u32 length, dev::u32 run);  // for kernels with one item per block
  dev::u32 (*warp_floats)(dev::u32 stripes, dev::u32 targets);
  std::size_t most_warps;  // per model
};
constexpr ItemList kRegionList{.count = &dev::DomainCounters::regions,
                               .capacity = &dev::DomainParams::region_capacity,
                               .items = &dev::DomainParams::regions,
                               .order = &dev::DomainParams::region_order,
                               .listed = &dev::DomainParams::region_count,
                               .most = &dev::DomainParams::most_regions,
                               .at_order = kAtRegionOrder,
                               .units = dev::region_units,
                               .block_units = nullptr,
                               .warp_floats = dev::ensemble_warp_floats,
                               .most_warps = kMostEnsembles};
constexpr ItemList kEnvelopeList{.count = &dev::DomainCounters::envelopes,
                                 .capacity = &dev::DomainParams::envelope_capacity,
                                 .items = &dev::DomainParams::envelopes,
                                 .order = &dev::DomainParams::envelope_order,
                                 .listed = &dev::DomainParams::envelope_count,
                                 .most = &dev::DomainParams::most_envelopes,
                                 .at_order = kAtEnvelopeOrder,
                                 .units = dev::envelope_units,
                                 .block_units = dev::long_envelope_units,
                                 .warp_floats = dev::envelope_warp_floats,
                                 .most_warps = kEnvelopes};

// How a kernel distributes its items over blocks: each warp has rows of some items in shared
// memory, or each block has one item.
struct KernelForm {
  dev::u32 targets;  // per warp
  dev::u32 run;      // stripes per thread for a kernel with one item per block; else 0
  // Maximum number of items that can be in progress at once.
  std::size_t most_at_once;
};
KernelForm form_of(const ReadyKernel& kernel, const driver::Device& device) {
  const plan::Constants& constants = kernel.candidate().constants;
  const auto run = static_cast<dev::u32>(constants.find("kRun").value_or(0));
  return {static_cast<dev::u32>(constants.at("kTargets")), run,
          run > 0 ? kernel.resident_blocks(device) : std::numeric_limits<std::size_t>::max()};
}

// The downloaded results and the offsets of their parts. Parsed targets come first.
struct Answers {
  const std::byte* down = nullptr;
  std::size_t at_scored = 0, at_sampled = 0, at_words = 0, words = 0;

  bool has_words(std::uint64_t first, std::uint64_t count) const { return first + count <= words; }
  std::uint32_t word(std::size_t index) const { return at<std::uint32_t>(at_words, index); }
  template <typename T>
  T at(std::size_t offset, std::size_t index) const {
    T value{};
    std::memcpy(&value, down + offset + index * sizeof value, sizeof value);
    return value;
  }
  // A score whose scale factors are stored as words.
  float nats(std::uint32_t first, std::uint32_t scales, float last_c, float move) const {
    float log_scale = 0.0f;
    for (std::uint32_t k = 0; k < scales; ++k)
      log_scale = add_log(log_scale, std::bit_cast<float>(word(first + k)));
    return forward_nats(log_scale, last_c, move);
  }
};

}  // namespace

struct DomainStage::Run {
  DomainStage& stage;
  const std::span<DomainRequest* const> requests;
  const DomainKernels& kernels;
  const DomainLimits& limits;
  DomainResult result{};

  // A participating request.
  struct Part {
    DomainRequest* request;
    std::size_t slots, first_slot, first_region, first_envelope;
    std::vector<std::uint32_t> order;  // by slot: position in the request
    // For envelopes with their own emissions: each one's entry in the list, or kNoEntry, and where
    // in `own_floats` the odds and the bounds begin.
    std::vector<dev::u32> entries = {};
    std::size_t own_odds = 0, own_bounds = 0;
    std::map<dev::u32, const float*> run_emissions = {};
    dev::DomainParams params = {};
    std::array<double, kDomainStages.size()> cell_seconds = {};  // expected
  };
  std::vector<Part> parts{};
  std::vector<float> own_floats{};  // for envelopes
  ModelExtent extent{};             // of the longest participating model
  std::size_t up_bytes = kAtTables, slots = 0, regions = 0, envelopes = 0;
  // Room for the words of all answers, at the beginning of the workspace that the parser used.
  std::size_t word_room = 0, word_room_units = 0, words_in = 0;

  template <typename T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(stage.buffer_.address() + offset);
  }
  // Null if there is no room left.
  template <typename T>
  const T* place(const T* values, std::size_t count) {
    const std::size_t bytes = count * sizeof(T), offset = up_bytes;
    if (bytes > kUpBytes - offset) return nullptr;
    std::ranges::copy(std::as_bytes(std::span(values, count)), stage.up_.bytes().data() + offset);
    up_bytes = std::min(kUpBytes, offset + layout::aligned_size(bytes));
    return at<const T>(offset);
  }
  template <typename T>
  const T* place(const std::vector<T>& values) {
    return place(values.data(), values.size());
  }

  // Runs the launches one after the other, and reads their findings.
  Status all(const StreamWait& wait);
  bool add(DomainRequest& request);
  // Puts a part's targets and its model's tables into the upload. False if there is no room.
  bool place_tables(Part& part);
  // Sets where the part's lists are, and how many items, of which size, a launch has room for.
  void set_lists(Part& part, std::size_t residues);
  // Lists the envelopes of a request that has its own emissions. False if there is no room.
  bool list_own(Part& part);
  Status upload_own();
  // Assigns the parts their blocks of a launch, and writes all parameters to where they are
  // uploaded from. `at_once`: concurrent items of each part; `most_warps`: per part; `warp_floats`:
  // of shared memory, by stripes. Returns the number of blocks.
  dev::u32 place_models(const ReadyKernel& ready, const std::vector<dev::u32>& at_once,
                        std::size_t most_warps,
                        dev::u32 (*warp_floats)(dev::u32 stripes, dev::u32 targets));
  Status launch(const ReadyKernel& ready, dev::u32 blocks);
  Status record_end(DomainStep step) {
    return stage.end_[static_cast<std::size_t>(step)].record(stage.stream_);
  }
  // Launches the parser, then the kernels for its findings. Streams may share a driver queue (CUDA
  // C++ Programming Guide, "Concurrent Kernel Execution"), so a launch is only queued when it can
  // begin; it then delays no other stream.
  Status queue_parser();
  // The number of items of each part that may be in progress at once, after growing the workspace
  // towards what all of them take. Nothing may be queued.
  Result<std::vector<dev::u32>> share_workspace(std::vector<ReservedUnits> lists);
  // `first`: where each model's part begins in the list for all models.
  Status queue_list(const ItemList& list, std::size_t Part::*first, const ReadyKernel& kernel,
                    const StreamWait& wait);
  Status collect(const StreamWait& wait);
  // Reads the counters after the last launch; uses `down`.
  Status read_counters(const StreamWait& wait);
  Status read(const Part& part);
  Status read_own(const Part& part);

  dev::DomainArena arena{};
  std::vector<dev::DomainCounters> counters{};
  bool counters_read = false;
  Answers answers{};
  // False if no kernel can have given this answer.
  bool read_region(const Part& part, int L, std::uint32_t entry, ParsedRegion& out);
  bool read_envelope(const Part& part, int L, int length, std::uint32_t entry,
                     std::optional<ScoredEnvelope>& out);
  // Counts an item of `length` residues. `status`: nullopt if it is in no list.
  void count(DomainStep step, const Part& part, int length, std::uint32_t most_cells,
             std::optional<dev::u32> status);
};

std::uint32_t DomainStage::most_cells(const ReadyKernel& kernel, const driver::Device& device,
                                      const ModelExtent& model, double launch_seconds) {
  const double cells = std::max(0.0, launch_seconds) / kernel.item_cell_seconds(device, model);
  return static_cast<std::uint32_t>(
      std::min<double>(cells, std::numeric_limits<std::uint32_t>::max()));
}

std::size_t DomainStage::bytes(std::size_t workspace) { return kBufferBytes + workspace; }

Status DomainStage::grow(std::size_t wanted) {
  std::size_t kept = 0;
  for (const driver::DeviceBuffer& buffer : workspaces_) kept += buffer.size();
  // Grow at least twofold, so that few buffers are outgrown; if there is little memory, take it all
  // at once, so that none is.
  constexpr std::size_t kLittle = std::size_t{512} << 20, kFirst = std::size_t{8} << 20;
  const std::size_t more = std::max({wanted + wanted / 4, 2 * workspace(), kFirst});
  std::size_t size = most_workspace_ <= kLittle
                         ? most_workspace_
                         : std::min(more, most_workspace_ - std::min(kept, most_workspace_));
  size = size / dev::kWorkspaceUnit * dev::kWorkspaceUnit;
  while (size > workspace()) {
    auto buffer = Cascade::counted_buffer(device_, resize_, size);
    if (buffer) {
      workspaces_.push_back(*std::move(buffer));
      return {};
    }
    size /= 2;
    // A smaller workspace is sufficient, too.
    if (buffer.error().code != ErrorCode::kResources || (size < kFirst && workspaces_.empty()))
      return std::unexpected(std::move(buffer.error()));
  }
  return {};
}

Result<std::unique_ptr<DomainStage>> DomainStage::create(const driver::DevicePtr& device,
                                                         const driver::Event& origin,
                                                         Cascade::Resize resize,
                                                         std::size_t workspace) {
  std::unique_ptr<DomainStage> out(new DomainStage);
  out->most_workspace_ = workspace;
  out->resize_ = std::move(resize);
  out->device_ = device;
  // Urgent, or its few warps would begin only after those of many filters.
  HMMJIT_ASSIGN(out->stream_, driver::Stream::create(device, true));
  HMMJIT_ASSIGN(out->clock_, ChainClock::create(device, origin));
  for (driver::Event& event : out->end_) {
    HMMJIT_ASSIGN(event, driver::Event::create(device, true));
  }
  // Device memory first, which is what may be lacking at every attempt; pinned memory costs more.
  HMMJIT_ASSIGN(out->buffer_, Cascade::counted_buffer(device, out->resize_, kBufferBytes));
  auto up = driver::PinnedBuffer::create(device, kUpBytes);
  if (!up) {
    HMMJIT_TRY(out->resize_(kBufferBytes, 0));
    return std::unexpected(std::move(up.error()));
  }
  out->up_ = *std::move(up);
  return out;
}

Result<DomainResult> DomainStage::run(std::span<DomainRequest* const> requests,
                                      const DomainKernels& kernels, const DomainLimits& limits,
                                      const StreamWait& wait) {
  Run run{.stage = *this, .requests = requests, .kernels = kernels, .limits = limits};
  for (DomainRequest* request : requests) {
    request->parsed.clear();
    request->scored.clear();
    request->left_out = false;
  }
  if (Status done = run.all(wait); !done) {
    // Queued copies read the buffers from which the next launch uploads.
    if (done.error().code == ErrorCode::kResources) HMMJIT_TRY(wait_for(stream_, *device_, wait));
    return std::unexpected(std::move(done.error()));
  }
  return run.result;
}

Status DomainStage::Run::all(const StreamWait& wait) {
  HMMJIT_TRY(queue_parser());
  if (parts.empty()) return {};
  HMMJIT_TRY(queue_list(kRegionList, &Part::first_region, kernels.ensemble, wait));
  HMMJIT_TRY(record_end(DomainStep::kEnsembles));
  HMMJIT_TRY(queue_list(kEnvelopeList, &Part::first_envelope, kernels.envelope, wait));
  HMMJIT_TRY(record_end(DomainStep::kEnvelopes));
  return collect(wait);
}

// False if the launch has no room for this request.
bool DomainStage::Run::add(DomainRequest& request) {
  const std::size_t count =
      std::min({request.passed.size(), kMostTargets, kSlots - slots, kEnvelopes - envelopes});
  if (count == 0) return false;
  Part part{.request = &request,
            .slots = count,
            .first_slot = slots,
            .first_region = regions,
            .first_envelope = envelopes,
            .order = std::vector<std::uint32_t>(request.passed.size())};
  // Longest first, which is the order of the database; the targets of a warp are then of about
  // equal length.
  std::iota(part.order.begin(), part.order.end(), 0u);
  std::ranges::sort(part.order, {}, [&](std::uint32_t i) { return request.passed[i]; });
  part.order.resize(count);
  std::size_t residues = 0;
  for (const std::uint32_t i : part.order)
    residues += request.targets->packed().targets.length[request.passed[i]];
  if (!place_tables(part)) return false;
  set_lists(part, residues);
  if (!request.own.empty() && !list_own(part)) return false;
  const ModelExtent own = extent_of(*request.model);
  for (const auto& [step, kernel] : {std::pair{DomainStep::kParser, &kernels.parser},
                                     {DomainStep::kEnsembles, &kernels.ensemble},
                                     {DomainStep::kEnvelopes, &kernels.envelope}})
    if (*kernel)
      part.cell_seconds[static_cast<std::size_t>(step)] = kernel->cell_seconds(*stage.device_, own);
  // Scales and regions of a target, the path of an envelope or two, and sums for a region with
  // several domains.
  word_room += 2 * residues + count * (part.params.model_length / 2 + 64);
  slots += part.params.target_count;
  regions += part.params.region_capacity;
  envelopes += part.params.envelope_capacity;
  extent = {std::max(extent.positions, own.positions), own.alphabet_codes};
  parts.push_back(std::move(part));
  return true;
}

bool DomainStage::Run::place_tables(Part& part) {
  const DomainRequest& request = *part.request;
  const SearchModel& model = *request.model;
  dev::DomainParams& d = part.params;
  const layout::NodeTables<float> tables = layout::make_node_transitions(model.odds, 0.0f);
  const DeletionBounds bounds = deletion_bounds(model.odds);
  std::vector<std::uint32_t> targets;
  for (const std::uint32_t i : part.order) targets.push_back(request.passed[i]);
  d.targets = place(targets);
  const auto stripes = static_cast<std::size_t>(float_stripes(model.odds.M));
  std::vector<float> of_model;
  std::span<const float> emissions = request.emissions;
  if (emissions.empty() && request.own.empty())
    emissions = of_model = layout::make_striped_emissions(model.odds);
  const std::span<const float> forward_bounds =
      request.bounds.empty() ? std::span<const float>(bounds.forward) : request.bounds;
  d.emissions = place(emissions.data(), emissions.size());
  d.transitions = place(tables.transitions);
  d.bounds = place(forward_bounds.data(), forward_bounds.size());
  const Alphabet& alphabet = *model.hmm.alphabet;
  std::array<dev::u32, 32> members{};
  static_assert(kMaxCodes <= members.size());
  for (int x = 0; x < alphabet.Kp; ++x) {
    const auto code = static_cast<std::size_t>(x);
    if (alphabet.is_degenerate(x)) members[code] = alphabet.degeneracy[code];
  }
  d.members = place(members.data(), members.size());
  for (const ReadyKernel* kernel : {&kernels.parser, &kernels.envelope}) {
    const dev::u32 run = *kernel ? form_of(*kernel, *stage.device_).run : 0;
    if (run > 0 && !part.run_emissions.contains(run))
      part.run_emissions[run] = place(layout::make_run_emissions(emissions, stripes, run));
  }
  d.stride = tables.stride;
  d.model_length = static_cast<dev::u32>(model.odds.M);
  d.stripes = static_cast<dev::u32>(stripes);
  d.residue_codes = static_cast<dev::u32>(alphabet.K);
  d.backward_bound = bounds.backward;
  return d.targets != nullptr && d.emissions != nullptr && d.transitions != nullptr &&
         d.bounds != nullptr && d.members != nullptr &&
         std::ranges::all_of(part.run_emissions,
                             [](const auto& of) { return of.second != nullptr; });
}

void DomainStage::Run::set_lists(Part& part, std::size_t residues) {
  const DomainRequest& request = *part.request;
  const std::size_t count = part.slots;
  dev::DomainParams& d = part.params;
  d.database = request.targets->view();
  d.multihit = request.targets->float_lengths();
  d.unihit = request.targets->unihit_lengths();
  d.arena = at<dev::DomainArena>(0);
  d.counters = at<dev::DomainCounters>(kAtCounters) + parts.size();
  d.parsed = at<dev::ParsedTarget>(kAtParsed) + slots;
  d.scored = at<dev::ScoredEnvelope>(kAtScored) + envelopes;
  d.envelopes = at<dev::RegionItem>(kAtEnvelopes) + envelopes;
  d.sampled = at<dev::SampledRegion>(kAtSampled) + regions;
  d.regions = at<dev::RegionItem>(kAtRegions) + regions;
  const ModelExtent own = extent_of(*request.model);
  const bool scores = kernels.envelope && kernels.envelope.covers(own) &&
                      request.model->hmm.alphabet->K <= static_cast<int>(dev::kNull2Residues);
  // Most targets have one or two domains, and two regions with several domains are rare except in
  // long windows of repeats.
  d.envelope_capacity =
      scores ? static_cast<dev::u32>(std::min(3 * count + 16, kEnvelopes - envelopes)) : 0;
  if (request.own.empty()) d.target_count = static_cast<dev::u32>(count);
  if (d.target_count > 0 && request.samples && kernels.ensemble && kernels.ensemble.covers(own) &&
      limits.trace_seed) {
    d.region_capacity = static_cast<dev::u32>(
        std::min(count + 8 + residues / kResiduesOfRegion, kRegions - regions));
    d.random = LinearCongruential(*limits.trace_seed).state();
  }
  const double seconds = std::clamp(limits.launch_seconds, 0.0, 1000.0);
  const auto in_time = [&](const ReadyKernel& kernel) {
    return kernel ? DomainStage::most_cells(kernel, *stage.device_, own, seconds) : 0;
  };
  d.most_cells = in_time(kernels.parser);
  d.most_envelope_cells =
      with_room(in_time(kernels.envelope), stage.most_workspace_, kEnvelopeCellBytes);
  d.most_region_cells =
      with_room(in_time(kernels.ensemble), stage.most_workspace_, kRegionCellBytes);
  d.time_limit = static_cast<dev::u32>(kPartOfLaunch * seconds * (1e9 / 1024));
}

bool DomainStage::Run::list_own(Part& part) {
  const DomainRequest& request = *part.request;
  dev::DomainParams& d = part.params;
  const std::size_t stripes = d.stripes;
  std::vector<dev::RegionItem> items;
  std::vector<dev::u32> first_rows;
  std::map<const float*, dev::u32> rows_of;  // for emissions that envelopes share
  std::vector<float> odds(dev::kSymbolRows * stripes * 4, 0.0f), bounds(dev::kSymbolRows, 0.0f);
  for (const std::uint32_t at : part.order) {
    const std::uint32_t target = request.passed[at];
    const dev::u32 length = request.targets->packed().targets.length[target];
    const bool mine = d.envelope_capacity > 0 && length <= d.most_envelope_cells / (4 * d.stripes);
    part.entries.push_back(mine ? static_cast<dev::u32>(items.size()) : dev::kNoEntry);
    if (!mine) continue;
    const OwnEmissions& own_rows = request.own[at];
    items.push_back({.target = target, .first = 1, .last = length, .clustered = 1});
    const auto [known, is_new] =
        rows_of.try_emplace(own_rows.odds.data(), static_cast<dev::u32>(bounds.size()));
    first_rows.push_back(known->second);
    if (!is_new) continue;
    odds.insert(odds.end(), own_rows.odds.begin(), own_rows.odds.end());
    bounds.insert(bounds.end(), own_rows.bounds.begin(), own_rows.bounds.end());
  }
  const dev::u32 run = kernels.envelope ? form_of(kernels.envelope, *stage.device_).run : 0;
  if (run > 0) odds = layout::make_run_emissions(odds, stripes, run);
  bounds.resize((bounds.size() + 3) / 4 * 4, 0.0f);  // following odds are read four at a time
  if (!own_floats.empty() && own_floats.size() + odds.size() + bounds.size() > kMostOwnFloats)
    return false;
  d.envelopes = const_cast<dev::RegionItem*>(place(items));
  d.first_rows = place(first_rows);
  if (d.envelopes == nullptr || d.first_rows == nullptr) return false;
  d.envelope_capacity = static_cast<dev::u32>(items.size());
  part.own_odds = own_floats.size();
  own_floats.insert(own_floats.end(), odds.begin(), odds.end());
  part.own_bounds = own_floats.size();
  own_floats.insert(own_floats.end(), bounds.begin(), bounds.end());
  return true;
}

Status DomainStage::Run::upload_own() {
  if (own_floats.empty()) return {};
  driver::DeviceBuffer& rows = stage.own_rows_;
  const std::size_t bytes = own_floats.size() * sizeof own_floats[0];
  if (rows.size() < bytes) {
    const std::size_t before = rows.size();
    rows = {};
    HMMJIT_TRY(stage.resize_(before, 0));
    HMMJIT_ASSIGN(rows, Cascade::counted_buffer(stage.device_, stage.resize_, bytes + bytes / 4));
  }
  HMMJIT_TRY(rows.upload(stage.stream_, own_floats.data(), bytes));
  const auto* const base = reinterpret_cast<const float*>(rows.address());
  for (Part& part : parts) {
    if (part.request->own.empty()) continue;
    dev::DomainParams& d = part.params;
    d.emissions = base + part.own_odds;
    d.bounds = base + part.own_bounds;
    for (auto& [run, emissions] : part.run_emissions) emissions = d.emissions;
    HMMJIT_TRY(stage.buffer_.fill(stage.stream_, 0,
                                  d.envelope_capacity * sizeof(dev::ScoredEnvelope),
                                  kAtScored + part.first_envelope * sizeof(dev::ScoredEnvelope)));
  }
  return {};
}

dev::u32 DomainStage::Run::place_models(
    const ReadyKernel& ready, const std::vector<dev::u32>& at_once, std::size_t most_warps,
    dev::u32 (*warp_floats)(dev::u32 stripes, dev::u32 targets)) {
  constexpr int kWarp = 32;
  const plan::LaunchShape& shape = ready.candidate().expected.launch;
  const KernelForm form = form_of(ready, *stage.device_);
  const auto floats = static_cast<dev::u32>(shape.dynamic_shared_bytes / sizeof(float));
  const auto most = static_cast<dev::u32>(shape.block_threads / kWarp);
  std::byte* const up = stage.up_.bytes().data() + kAtModels;
  dev::u32 blocks = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    dev::DomainParams& d = parts[i].params;
    d.first_block = blocks;
    if (form.run > 0) {
      d.run_emissions = parts[i].run_emissions.at(form.run);
      d.block_warps = 1;
      d.blocks = at_once[i];
    } else {
      const std::size_t warps =
          std::min<std::size_t>((at_once[i] + form.targets - 1) / form.targets, most_warps);
      d.block_warps =
          dev::working_warps(floats, d.stripes, warp_floats(d.stripes, form.targets), most);
      // A model whose rows do not fit has no work for this kernel.
      d.blocks = d.block_warps == 0
                     ? 0
                     : (static_cast<dev::u32>(warps) + d.block_warps - 1) / d.block_warps;
    }
    blocks += d.blocks;
    std::memcpy(up + i * sizeof d, &d, sizeof d);
  }
  return blocks;
}

Status DomainStage::Run::launch(const ReadyKernel& ready, dev::u32 blocks) {
  if (blocks == 0) return {};
  const dev::DomainBatch batch{
      .models = at<const dev::DomainParams>(kAtModels),
      .count = static_cast<dev::u32>(parts.size()),
      .shared_floats = static_cast<dev::u32>(
          ready.candidate().expected.launch.dynamic_shared_bytes / sizeof(float))};
  ++result.launches;
  counters_read = false;
  return ready.launch(stage.stream_, *stage.device_, extent, &batch, blocks);
}

Result<std::vector<dev::u32>> DomainStage::Run::share_workspace(std::vector<ReservedUnits> lists) {
  std::uint64_t units = 0;
  for (const ReservedUnits& list : lists) units = std::accumulate(list.begin(), list.end(), units);
  const bool first = word_room_units == 0;
  if (first) {
    // At most a quarter of the largest workspace.
    const std::size_t most = std::min(kMostWords, stage.most_workspace_ / 4 / sizeof(dev::u32));
    word_room_units = (std::min(word_room, most) * sizeof(dev::u32) + dev::kWorkspaceUnit - 1) /
                      dev::kWorkspaceUnit;
  }
  const auto held_back = [&] {
    return first || words_in + 1 == stage.workspaces_.size() ? word_room_units : 0;
  };
  if ((units + held_back()) * dev::kWorkspaceUnit > stage.workspace() || stage.workspace() == 0)
    HMMJIT_TRY(stage.grow((units + held_back()) * dev::kWorkspaceUnit));
  const std::size_t all = stage.workspace() / dev::kWorkspaceUnit;
  if (first) {
    words_in = stage.workspaces_.size() - 1;
    word_room_units = std::min(word_room_units, all / 4);
  }
  const std::size_t before = held_back(), room = all - before;
  for (Part& part : parts) {
    part.params.workspace = reinterpret_cast<dev::u8*>(stage.workspaces_.back().address()) +
                            before * dev::kWorkspaceUnit;
    part.params.workspace_units = static_cast<dev::u32>(room);
    part.params.words = reinterpret_cast<dev::u32*>(stage.workspaces_[words_in].address());
    part.params.word_capacity =
        static_cast<dev::u32>(word_room_units * dev::kWorkspaceUnit / sizeof(dev::u32));
  }
  return most_at_once(std::move(lists), room);
}

Status DomainStage::Run::queue_parser() {
  for (DomainRequest* request : requests) {
    const ReadyKernel& first = request->own.empty() ? kernels.parser : kernels.envelope;
    if (!first || !first.covers(extent_of(*request->model))) continue;  // falls back to the CPU
    // A request that does not fit into an empty launch falls back to the CPU.
    const std::size_t placed = up_bytes;
    if (parts.size() < kMostRequests && add(*request)) continue;
    request->left_out = !parts.empty();
    up_bytes = placed;
  }
  if (parts.empty()) return {};
  std::vector<ReservedUnits> reserved;
  const std::size_t most_at_once =
      slots > 0 ? form_of(kernels.parser, *stage.device_).most_at_once : 0;
  for (const Part& part : parts) {
    const std::vector<std::uint32_t>& length = part.request->targets->packed().targets.length;
    ReservedUnits& units = reserved.emplace_back();
    for (const std::uint32_t at : part.order) {
      if (units.size() == most_at_once || part.params.target_count == 0) break;
      const std::uint32_t L = length[part.request->passed[at]];
      const bool mine = L <= part.params.most_cells / (4 * part.params.stripes);
      units.push_back(mine ? dev::reserved_units(dev::parser_units(L)) : 0);
    }
  }
  HMMJIT_ASSIGN(const std::vector<dev::u32> most, share_workspace(std::move(reserved)));
  HMMJIT_TRY(upload_own());
  std::byte* const up = stage.up_.bytes().data();
  std::memset(up, 0, kAtModels);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    parts[i].params.most_parsers = most[i];
    if (parts[i].request->own.empty()) continue;
    dev::DomainCounters listed{};
    listed.envelopes = parts[i].params.envelope_capacity;
    std::memcpy(up + kAtCounters + i * sizeof listed, &listed, sizeof listed);
  }
  const dev::u32 blocks =
      slots > 0 ? place_models(kernels.parser, most, kSlots, dev::parser_warp_floats) : 0;
  HMMJIT_TRY(stage.buffer_.upload(stage.stream_, up, up_bytes));
  // A slot that no warp reaches must not show the result of an earlier launch.
  HMMJIT_TRY(stage.buffer_.fill(stage.stream_, 0, slots * sizeof(dev::ParsedTarget), kAtParsed));
  HMMJIT_TRY(stage.clock_.begin(stage.stream_));
  HMMJIT_TRY(launch(kernels.parser, blocks));
  return record_end(DomainStep::kParser);
}

Status DomainStage::Run::read_counters(const StreamWait& wait) {
  if (std::exchange(counters_read, true)) return {};
  HMMJIT_TRY(stage.down_.reserve(stage.device_, kAtModels, kLeastDown));
  HMMJIT_TRY(download(stage.buffer_, stage.stream_, *stage.device_, wait,
                      stage.down_.bytes().data(), kAtModels));
  std::memcpy(&arena, stage.down_.bytes().data(), sizeof arena);
  counters.resize(parts.size());
  std::memcpy(counters.data(), stage.down_.bytes().data() + kAtCounters,
              counters.size() * sizeof counters[0]);
  return {};
}

// The longest items come first: those done last then take the least time, and the eight of a warp
// are of about equal length.
Status DomainStage::Run::queue_list(const ItemList& list, std::size_t Part::*first_of,
                                    const ReadyKernel& kernel, const StreamWait& wait) {
  HMMJIT_TRY(read_counters(wait));
  struct Listed {
    std::size_t first, count;  // entries in the list for all models
  };
  std::vector<Listed> listed;
  std::size_t total = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const dev::DomainParams& d = parts[i].params;
    const std::size_t first = parts[i].*first_of;
    const std::size_t count = std::min(counters[i].*list.count, d.*list.capacity);
    listed.push_back({first, count});
    total += count;
  }
  if (total == 0) return {};
  constexpr std::size_t kItem = sizeof(dev::RegionItem), kEntry = sizeof(dev::u32);
  static_assert(std::max(kEnvelopes, kRegions) * kItem <= kLeastDown, "reserved with the counters");
  std::byte* const items = stage.down_.bytes().data();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Listed& l = listed[i];
    const auto from = reinterpret_cast<std::uintptr_t>(parts[i].params.*list.items);
    HMMJIT_TRY(stage.buffer_.download(stage.stream_, items + l.first * kItem, l.count * kItem,
                                      from - stage.buffer_.address()));
  }
  HMMJIT_TRY(wait_for(stage.stream_, *stage.device_, wait));

  std::vector<ReservedUnits> reserved;
  const KernelForm form = form_of(kernel, *stage.device_);
  std::byte* const up = stage.up_.bytes().data();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    dev::DomainParams& d = parts[i].params;
    const auto [first, count] = listed[i];
    std::vector<std::pair<dev::u32, dev::u32>> order;  // length, entry
    for (std::size_t n = 0; n < count; ++n) {
      dev::RegionItem item;
      std::memcpy(&item, items + (first + n) * kItem, kItem);
      order.emplace_back(item.last - item.first + 1, static_cast<dev::u32>(n));
    }
    std::ranges::sort(order, std::greater<>());
    ReservedUnits& units = reserved.emplace_back();
    for (std::size_t n = 0; n < count; ++n) {
      std::memcpy(up + kAtTables + (first + n) * kEntry, &order[n].second, kEntry);
      if (units.size() < form.most_at_once)
        units.push_back(dev::reserved_units(form.run > 0
                                                ? list.block_units(order[n].first, form.run)
                                                : list.units(order[n].first, d.stripes)));
    }
    d.*list.order = at<const dev::u32>(list.at_order) + first;
    d.*list.listed = static_cast<dev::u32>(count);
  }
  HMMJIT_ASSIGN(const std::vector<dev::u32> most, share_workspace(std::move(reserved)));
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].params.*list.most = most[i];
  const dev::u32 blocks = place_models(kernel, most, list.most_warps, list.warp_floats);
  HMMJIT_TRY(stage.buffer_.upload(stage.stream_, up + kAtModels,
                                  parts.size() * sizeof(dev::DomainParams), kAtModels));
  for (const Listed& l : listed) {
    HMMJIT_TRY(stage.buffer_.upload(stage.stream_, up + kAtTables + l.first * kEntry,
                                    l.count * kEntry, list.at_order + l.first * kEntry));
  }
  return launch(kernel, blocks);
}

Status DomainStage::Run::collect(const StreamWait& wait) {
  // The counters come first; they say how much of the rest there is.
  HMMJIT_TRY(read_counters(wait));

  answers.words = std::min<std::size_t>(arena.words, parts.front().params.word_capacity);
  answers.at_scored = layout::aligned_size(slots * sizeof(dev::ParsedTarget));
  answers.at_sampled =
      answers.at_scored + layout::aligned_size(envelopes * sizeof(dev::ScoredEnvelope));
  answers.at_words =
      answers.at_sampled + layout::aligned_size(regions * sizeof(dev::SampledRegion));
  HMMJIT_TRY(stage.down_.reserve(
      stage.device_, answers.at_words + answers.words * sizeof(std::uint32_t), kLeastDown));
  std::byte* const to = stage.down_.bytes().data();
  answers.down = to;
  const auto bring = [&](std::size_t from, std::size_t offset, std::size_t bytes) {
    return stage.buffer_.download(stage.stream_, to + offset, bytes, from);
  };
  HMMJIT_TRY(bring(kAtParsed, 0, slots * sizeof(dev::ParsedTarget)));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part& part = parts[i];
    const dev::u32 scored = std::min(counters[i].envelopes, part.params.envelope_capacity);
    const dev::u32 sampled = std::min(counters[i].regions, part.params.region_capacity);
    const std::size_t first_scored = part.first_envelope * sizeof(dev::ScoredEnvelope),
                      first_sampled = part.first_region * sizeof(dev::SampledRegion);
    HMMJIT_TRY(bring(kAtScored + first_scored, answers.at_scored + first_scored,
                     scored * sizeof(dev::ScoredEnvelope)));
    HMMJIT_TRY(bring(kAtSampled + first_sampled, answers.at_sampled + first_sampled,
                     sampled * sizeof(dev::SampledRegion)));
    part.params.envelope_capacity = scored;
    part.params.region_capacity = sampled;
    result.targets += counters[i].parsed;
    result.regions += counters[i].sampled;
    result.envelopes += counters[i].scored;
  }
  HMMJIT_TRY(stage.workspaces_[words_in].download(stage.stream_, to + answers.at_words,
                                                  answers.words * sizeof(std::uint32_t), 0));
  HMMJIT_TRY(wait_for(stage.stream_, *stage.device_, wait));
  HMMJIT_ASSIGN(result.begin, stage.clock_.read(stage.end_, result.end));

  const FlushToZeroScope flush;
  for (const Part& part : parts) {
    DomainRequest& request = *part.request;
    (request.own.empty() ? request.parsed.resize(part.request->passed.size())
                         : request.scored.resize(part.request->passed.size()));
    HMMJIT_TRY(request.own.empty() ? read(part) : read_own(part));
  }
  return {};
}

void DomainStage::Run::count(DomainStep step, const Part& part, int length,
                             std::uint32_t most_cells, std::optional<dev::u32> status) {
  const auto at_step = static_cast<std::size_t>(step);
  DomainWorkDone& work = result.work[at_step];
  const std::uint64_t cells =
      std::uint64_t{part.params.model_length} * static_cast<unsigned>(length);
  if (status == dev::kDone) {
    work.cells += cells;
    work.expected_seconds += static_cast<double>(cells) * part.cell_seconds[at_step];
    return;
  }
  const bool large = static_cast<unsigned>(length) > most_cells / (4 * part.params.stripes);
  const HostReason why = large                               ? HostReason::kSize
                         : !status || status == dev::kNoRoom ? HostReason::kRoom
                         : status == dev::kNotForDevice      ? HostReason::kKind
                         : step == DomainStep::kParser       ? HostReason::kRoom
                                                             : HostReason::kTime;
  work.host_cells[static_cast<std::size_t>(why)] += cells;
}

bool DomainStage::Run::read_envelope(const Part& part, int L, int length, std::uint32_t entry,
                                     std::optional<ScoredEnvelope>& out) {
  if (!kernels.envelope) return true;
  const dev::u32 most = part.params.most_envelope_cells;
  if (entry == dev::kNoEntry) {
    count(DomainStep::kEnvelopes, part, length, most, std::nullopt);
    return true;
  }
  if (entry >= part.params.envelope_capacity) return false;
  const auto e = answers.at<dev::ScoredEnvelope>(answers.at_scored, part.first_envelope + entry);
  count(DomainStep::kEnvelopes, part, length, most, e.status);
  if (e.status != dev::kDone) return true;
  if (!answers.has_words(e.words, e.scales) ||
      !answers.has_words(e.path, (std::uint64_t{e.steps} + 3) / 4))
    return false;
  ScoredEnvelope& envelope = out.emplace();
  envelope.forward_nats = answers.nats(e.words, e.scales, e.last_c, length_model(L, false).move);
  envelope.sound = e.sound != 0;
  envelope.accuracy = e.accuracy;
  std::ranges::copy(e.null2, envelope.null2.begin());
  envelope.path.resize(e.steps);
  if (e.steps > 0)
    std::memcpy(envelope.path.data(),
                answers.down + answers.at_words + e.path * sizeof(std::uint32_t), e.steps);
  envelope.last_row = static_cast<int>(e.last_row);
  envelope.last_node = static_cast<int>(e.last_node);
  return true;
}

bool DomainStage::Run::read_region(const Part& part, int L, std::uint32_t entry,
                                   ParsedRegion& out) {
  const int residues = out.last - out.first + 1;
  if (!out.multidomain) return read_envelope(part, L, residues, entry, out.envelope);
  const dev::u32 most = part.params.most_region_cells;
  if (entry == dev::kNoEntry) {
    if (part.request->samples) count(DomainStep::kEnsembles, part, residues, most, std::nullopt);
    return true;
  }
  if (entry >= part.params.region_capacity) return false;
  const auto s = answers.at<dev::SampledRegion>(answers.at_sampled, part.first_region + entry);
  count(DomainStep::kEnsembles, part, residues, most, s.status);
  if (s.status != dev::kDone) return true;
  const auto length = static_cast<std::uint32_t>(residues);
  if (!answers.has_words(s.words, length + 3 * std::uint64_t{s.clusters})) return false;
  SampledRegion& sampled = out.sampled.emplace();
  sampled.null2_sums.resize(length);
  std::memcpy(sampled.null2_sums.data(),
              answers.down + answers.at_words + s.words * sizeof(std::uint32_t),
              length * sizeof(float));
  sampled.clusters.resize(s.clusters);
  for (std::uint32_t c = 0; c < s.clusters; ++c) {
    const std::size_t at = s.words + length + 3 * std::size_t{c};
    SampledRegion::Cluster& cluster = sampled.clusters[c];
    cluster.first = static_cast<int>(answers.word(at));
    cluster.last = static_cast<int>(answers.word(at + 1));
    if (cluster.first < out.first || cluster.last < cluster.first || cluster.last > out.last ||
        !read_envelope(part, L, cluster.last - cluster.first + 1, answers.word(at + 2),
                       cluster.envelope))
      return false;
  }
  return true;
}

Status DomainStage::Run::read_own(const Part& part) {
  DomainRequest& request = *part.request;
  for (std::size_t n = 0; n < part.entries.size(); ++n) {
    const std::uint32_t at = part.order[n];
    const auto L = static_cast<int>(request.targets->packed().targets.length[request.passed[at]]);
    if (!read_envelope(part, L, L, part.entries[n], request.scored[at]))
      return fail(ErrorCode::kInternal,
                  "a kernel returned impossible envelopes for model " + request.model->hmm.name,
                  kernels.envelope.name());
  }
  return {};
}

Status DomainStage::Run::read(const Part& part) {
  const DomainRequest& request = *part.request;
  const auto impossible = [&] {
    return fail(ErrorCode::kInternal,
                "a kernel returned impossible regions for model " + request.model->hmm.name,
                kernels.parser.name());
  };
  for (std::size_t slot = 0; slot < part.slots; ++slot) {
    const auto t = answers.at<dev::ParsedTarget>(0, part.first_slot + slot);
    const auto L = static_cast<int>(
        request.targets->packed().targets.length[request.passed[part.order[slot]]]);
    count(DomainStep::kParser, part, L, part.params.most_cells, t.status);
    if (t.status != dev::kDone) continue;
    if (!answers.has_words(t.words, std::uint64_t{t.scales} + 3 * std::uint64_t{t.regions}))
      return impossible();
    auto parsed = std::make_shared<ParsedTarget>();
    parsed->forward_nats = answers.nats(t.words, t.scales, t.last_c, length_model(L, true).move);
    parsed->decoded = t.decoded != 0;
    parsed->expected_domains = t.begins;
    parsed->regions.resize(t.regions);
    for (std::uint32_t k = 0; k < t.regions; ++k) {
      const std::size_t at = t.words + t.scales + 3 * std::size_t{k};
      ParsedRegion& region = parsed->regions[k];
      const std::uint32_t last = answers.word(at + 1) & ~dev::kSeveralDomains;
      region.multidomain = (answers.word(at + 1) & dev::kSeveralDomains) != 0;
      region.first = static_cast<int>(answers.word(at));
      region.last = static_cast<int>(last);
      if (region.first < 1 || region.last < region.first || region.last > L ||
          !read_region(part, L, answers.word(at + 2), region))
        return impossible();
    }
    part.request->parsed[part.order[slot]] = std::move(parsed);
  }
  return {};
}

}  // namespace hmmjit::gpu
