#include "gpu/domain_stage.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "common/domain_params.h"
#include "core/threads.hpp"
#include "layout/float_tables.hpp"

namespace hmmjit::gpu {
namespace {

namespace dev = hmmjit_device;

constexpr std::size_t align256(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

// Of all models of a launch together.
constexpr std::size_t kSlots = 32768, kEnvelopes = 32768, kWords = std::size_t{2} << 20;
constexpr std::size_t kUpBytes = std::size_t{4} << 20;  // tables and lists
// One target takes some 100 clocks a stripe and residue, whatever else goes on: 15 ms for this many
// cells. The CPU's vectors are faster at a single large target.
constexpr std::uint32_t kMostCells = 1'000'000;
// An envelope of these takes 1.3 MB of the workspace: larger ones would keep many others waiting.
constexpr std::uint32_t kMostEnvelopeCells = 128'000;

// Where things lie in the buffer.
constexpr std::size_t kAtParsed = kUpBytes;
constexpr std::size_t kAtScored = kAtParsed + kSlots * sizeof(dev::ParsedTarget);
constexpr std::size_t kAtItems = kAtScored + kEnvelopes * sizeof(dev::ScoredEnvelope);
constexpr std::size_t kAtWords = kAtItems + kEnvelopes * sizeof(dev::EnvelopeItem);
constexpr std::size_t kAtWorkspace = kAtWords + kWords * sizeof(std::uint32_t);
static_assert(kAtScored % 256 == 0 && kAtItems % 256 == 0 && kAtWords % 256 == 0 &&
              kAtWorkspace % 256 == 0);

// What goes up: the counters, the models, then tables and lists.
constexpr std::size_t kAtCounters = align256(sizeof(dev::DomainArena));
constexpr std::size_t kAtModels =
    kAtCounters + align256(DomainStage::kMostRequests * sizeof(dev::DomainCounters));
constexpr std::size_t kAtTables =
    kAtModels + align256(DomainStage::kMostRequests * sizeof(dev::DomainParams));

}  // namespace

struct DomainStage::Run {
  DomainStage& stage;
  const std::span<DomainRequest* const> requests;
  const DomainKernels& kernels;
  DomainResult result{};

  // Of each request that takes part.
  struct Part {
    DomainRequest* request;
    std::size_t slots, first_slot, first_envelope;
    std::vector<std::uint32_t> order;  // position in the request of each slot
    dev::DomainParams params;
  };
  std::vector<Part> parts{};
  std::size_t up_bytes = kAtTables, slots = 0, envelopes = 0;

  template <typename T>
  T* at(std::size_t offset) const {
    return reinterpret_cast<T*>(stage.buffer_.address() + offset);
  }
  // Null when there is no room left.
  template <typename T>
  const T* place(const T* values, std::size_t count) {
    const std::size_t bytes = count * sizeof(T), offset = up_bytes;
    if (bytes > kUpBytes - offset) return nullptr;
    std::memcpy(stage.up_.bytes().data() + offset, values, bytes);
    up_bytes = std::min(kUpBytes, offset + align256(bytes));
    return at<const T>(offset);
  }
  template <typename T>
  const T* place(const std::vector<T>& values) {
    return place(values.data(), values.size());
  }

  bool add(DomainRequest& request);
  Status launch(const ReadyKernel& ready, bool envelopes_too);
  Status queue();
  Status collect(const StreamWait& wait);
  Status read(const Part& part, const std::byte* down, std::size_t words_at, std::size_t words);
};

std::size_t DomainStage::bytes(std::size_t workspace) { return kAtWorkspace + workspace; }

Result<std::unique_ptr<DomainStage>> DomainStage::create(const driver::DevicePtr& device,
                                                         const driver::Event& origin,
                                                         Cascade::Resize resize,
                                                         std::size_t workspace) {
  std::unique_ptr<DomainStage> out(new DomainStage);
  out->workspace_ = workspace;
  out->device_ = device;
  out->origin_ = &origin;
  HMMJIT_ASSIGN(out->stream_, driver::Stream::create(device));
  for (driver::Event* event : {&out->begin_, &out->parsed_, &out->end_}) {
    HMMJIT_ASSIGN(*event, driver::Event::create(device, true));
  }
  HMMJIT_ASSIGN(out->up_, driver::PinnedBuffer::create(device, kUpBytes));
  HMMJIT_TRY(resize(0, bytes(workspace)));
  auto buffer = driver::DeviceBuffer::create(device, bytes(workspace));
  if (!buffer) {
    HMMJIT_TRY(resize(bytes(workspace), 0));
    return std::unexpected(buffer.error());
  }
  out->buffer_ = *std::move(buffer);
  return out;
}

Result<DomainResult> DomainStage::run(std::span<DomainRequest* const> requests,
                                      const DomainKernels& kernels, const StreamWait& wait) {
  Run run{.stage = *this, .requests = requests, .kernels = kernels};
  for (DomainRequest* request : requests) request->parsed.clear();
  HMMJIT_TRY(run.queue());
  if (run.parts.empty()) return run.result;
  HMMJIT_TRY(wait_for(stream_, *device_, wait));
  HMMJIT_TRY(run.collect(wait));
  return run.result;
}

// False when the launch has no room for this one.
bool DomainStage::Run::add(DomainRequest& request) {
  const SearchModel& model = *request.model;
  const std::size_t count =
      std::min({request.passed.size(), kMostTargets, kSlots - slots, kEnvelopes - envelopes});
  if (count == 0) return false;
  const layout::FloatTables tables = layout::make_float_transitions(model.odds);
  const DeletionBounds bounds = deletion_bounds(model.odds);
  dev::DomainParams d{};
  // Longest first, which is the order of the database: the targets of a warp are of about equal
  // length then.
  std::vector<std::uint32_t> order(request.passed.size()), targets;
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::sort(order, {}, [&](std::uint32_t i) { return request.passed[i]; });
  order.resize(count);
  for (const std::uint32_t i : order) targets.push_back(request.passed[i]);
  d.targets = place(targets);
  d.emissions = place(layout::make_striped_emissions(model.odds));
  d.transitions = place(tables.transitions);
  d.bounds = place(bounds.forward.data(), bounds.forward.size());
  if (d.targets == nullptr || d.emissions == nullptr || d.transitions == nullptr ||
      d.bounds == nullptr)
    return false;
  d.database = request.targets->view();
  d.multihit = request.targets->float_lengths();
  d.unihit = request.targets->unihit_lengths();
  d.arena = at<dev::DomainArena>(0);
  d.counters = at<dev::DomainCounters>(kAtCounters) + parts.size();
  d.parsed = at<dev::ParsedTarget>(kAtParsed) + slots;
  d.scored = at<dev::ScoredEnvelope>(kAtScored) + envelopes;
  d.items = at<dev::EnvelopeItem>(kAtItems) + envelopes;
  d.words = at<dev::u32>(kAtWords);
  d.workspace = at<dev::u8>(kAtWorkspace);
  d.target_count = static_cast<dev::u32>(count);
  const bool scores =
      kernels.envelope && model.hmm.alphabet->K <= static_cast<int>(dev::kNull2Residues);
  // A target has one or two domains, as a rule.
  d.envelope_capacity =
      scores ? static_cast<dev::u32>(std::min(2 * count + 8, kEnvelopes - envelopes)) : 0;
  d.word_capacity = static_cast<dev::u32>(kWords);
  d.workspace_units = static_cast<dev::u32>(stage.workspace_ / dev::kWorkspaceUnit);
  d.most_cells = kMostCells;
  d.most_envelope_cells = kMostEnvelopeCells;
  d.stride = tables.stride;
  d.model_length = static_cast<dev::u32>(model.odds.M);
  d.stripes = static_cast<dev::u32>(float_stripes(model.odds.M));
  d.residue_codes = static_cast<dev::u32>(model.hmm.alphabet->K);
  d.backward_bound = bounds.backward;
  parts.push_back({&request, count, slots, envelopes, std::move(order), d});
  slots += count;
  envelopes += d.envelope_capacity;
  return true;
}

Status DomainStage::Run::launch(const ReadyKernel& ready, bool envelopes_too) {
  // As many as items_per_warp() of common/four_lane.cuh asks for; the others end at once.
  constexpr std::size_t kTargetsPerWarp = 8;
  const plan::Candidate& candidate = ready.kernel->candidate;
  const std::size_t in_block =
      kTargetsPerWarp * static_cast<std::size_t>(candidate.constants.at("kWarps"));
  std::size_t most = 1;
  for (const Part& part : parts)
    most = std::max(most, envelopes_too ? part.params.envelope_capacity : part.slots);
  const driver::LaunchGrid grid{
      .blocks = static_cast<unsigned>((most + in_block - 1) / in_block),
      .block_threads = static_cast<unsigned>(candidate.launch.block_threads),
      .dynamic_shared_bytes = static_cast<unsigned>(candidate.launch.dynamic_shared_bytes),
      .blocks_y = static_cast<unsigned>(parts.size())};
  const dev::DomainBatch batch{at<const dev::DomainParams>(kAtModels)};
  ++result.launches;
  return ready.loaded->launch(stage.stream_, grid, &batch);
}

Status DomainStage::Run::queue() {
  for (DomainRequest* request : requests) {
    if (parts.size() == kMostRequests || !add(*request)) break;
  }
  if (parts.empty()) return {};
  std::byte* const up = stage.up_.bytes().data();
  std::memset(up, 0, kAtModels);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    dev::DomainParams& d = parts[i].params;
    // An equal share of the workspace: 64 bytes a residue; twice the mean length, since long
    // targets have more chances to pass.
    const layout::PackedTargets& targets = parts[i].request->targets->packed().targets;
    const std::uint64_t mean = targets.residue_count / std::max<std::size_t>(targets.size(), 1) + 1;
    d.most_parsers = static_cast<dev::u32>(
        std::clamp<std::uint64_t>(stage.workspace_ / parts.size() / (2 * 64 * mean), 1, 1u << 20));
    std::memcpy(up + kAtModels + i * sizeof d, &d, sizeof d);
  }
  HMMJIT_TRY(stage.buffer_.upload(stage.stream_, up, up_bytes));
  // What no warp comes to must not look done because an earlier launch has done it.
  HMMJIT_TRY(stage.buffer_.fill(stage.stream_, 0, slots * sizeof(dev::ParsedTarget), kAtParsed));
  HMMJIT_TRY(stage.begin_.record(stage.stream_));
  HMMJIT_TRY(launch(kernels.parser, false));
  HMMJIT_TRY(stage.parsed_.record(stage.stream_));
  if (envelopes > 0) HMMJIT_TRY(launch(kernels.envelope, true));
  return stage.end_.record(stage.stream_);
}

Status DomainStage::Run::collect(const StreamWait& wait) {
  // First the counters, which say how much of the rest there is.
  const auto reserve = [&](std::size_t bytes) -> Status {
    if (stage.down_.bytes().size() >= bytes) return {};
    // To give one back the driver waits for the whole device: large steps.
    constexpr std::size_t kFirst = std::size_t{2} << 20;
    stage.down_ = driver::PinnedBuffer();
    HMMJIT_ASSIGN(stage.down_, driver::PinnedBuffer::create(
                                   stage.device_, std::bit_ceil(std::max(bytes, kFirst))));
    return {};
  };
  HMMJIT_TRY(reserve(kAtModels));
  HMMJIT_TRY(stage.buffer_.download(stage.stream_, stage.down_.bytes().data(), kAtModels));
  HMMJIT_TRY(wait_for(stage.stream_, *stage.device_, wait));
  dev::DomainArena arena{};
  std::memcpy(&arena, stage.down_.bytes().data(), sizeof arena);
  std::vector<dev::DomainCounters> counters(parts.size());
  std::memcpy(counters.data(), stage.down_.bytes().data() + kAtCounters,
              counters.size() * sizeof counters[0]);

  const std::size_t words = std::min<std::size_t>(arena.words, kWords);
  const std::size_t at_scored = align256(slots * sizeof(dev::ParsedTarget));
  const std::size_t at_words = at_scored + align256(envelopes * sizeof(dev::ScoredEnvelope));
  HMMJIT_TRY(reserve(at_words + words * sizeof(std::uint32_t)));
  std::byte* const down = stage.down_.bytes().data();
  const driver::DeviceBuffer& from = stage.buffer_;
  HMMJIT_TRY(from.download(stage.stream_, down, slots * sizeof(dev::ParsedTarget), kAtParsed));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t offset = parts[i].first_envelope * sizeof(dev::ScoredEnvelope);
    const std::size_t made =
        std::min<std::size_t>(counters[i].envelopes, parts[i].params.envelope_capacity);
    HMMJIT_TRY(from.download(stage.stream_, down + at_scored + offset,
                             made * sizeof(dev::ScoredEnvelope), kAtScored + offset));
    parts[i].params.envelope_capacity = static_cast<dev::u32>(made);
    result.targets += counters[i].parsed;
    result.envelopes += counters[i].scored;
  }
  HMMJIT_TRY(
      from.download(stage.stream_, down + at_words, words * sizeof(std::uint32_t), kAtWords));
  HMMJIT_TRY(wait_for(stage.stream_, *stage.device_, wait));
  HMMJIT_ASSIGN(result.begin, driver::Event::milliseconds(*stage.origin_, stage.begin_));
  HMMJIT_ASSIGN(result.parsed, driver::Event::milliseconds(*stage.origin_, stage.parsed_));
  HMMJIT_ASSIGN(result.end, driver::Event::milliseconds(*stage.origin_, stage.end_));

  const FlushToZeroScope flush;
  for (const Part& part : parts) {
    part.request->parsed.assign(part.request->passed.size(), nullptr);
    HMMJIT_TRY(read(part, down, at_words, words));
  }
  return {};
}

Status DomainStage::Run::read(const Part& part, const std::byte* down, std::size_t words_at,
                              std::size_t words) {
  const DomainRequest& request = *part.request;
  const std::size_t at_scored = align256(slots * sizeof(dev::ParsedTarget)) +
                                part.first_envelope * sizeof(dev::ScoredEnvelope);
  const auto impossible = [&] {
    return fail(ErrorCode::kInternal, "a kernel returned impossible regions",
                kernels.parser.kernel->name);
  };
  const auto has_words = [&](std::uint64_t first, std::uint64_t count) {
    return first + count <= words;
  };
  const auto word = [&](std::size_t at) {
    std::uint32_t value = 0;
    std::memcpy(&value, down + words_at + at * sizeof value, sizeof value);
    return value;
  };
  const auto nats = [&](std::uint32_t first, std::uint32_t scales, float last_c, float move) {
    float log_scale = 0.0f;
    for (std::uint32_t k = 0; k < scales; ++k)
      log_scale = add_log(log_scale, std::bit_cast<float>(word(first + k)));
    return forward_nats(log_scale, last_c, move);
  };
  for (std::size_t slot = 0; slot < part.slots; ++slot) {
    dev::ParsedTarget t{};
    std::memcpy(&t, down + (part.first_slot + slot) * sizeof t, sizeof t);
    if (t.status != dev::kDone) continue;
    if (!has_words(t.words, std::uint64_t{t.scales} + 3 * std::uint64_t{t.regions}))
      return impossible();
    const auto L = static_cast<int>(
        request.targets->packed().targets.length[request.passed[part.order[slot]]]);
    auto parsed = std::make_shared<ParsedTarget>();
    parsed->forward_nats = nats(t.words, t.scales, t.last_c, length_model(L, true).move);
    parsed->decoded = t.decoded != 0;
    parsed->expected_domains = t.begins;
    parsed->regions.resize(t.regions);
    for (std::uint32_t k = 0; k < t.regions; ++k) {
      const std::size_t at = t.words + t.scales + 3 * std::size_t{k};
      ParsedRegion& region = parsed->regions[k];
      const std::uint32_t last = word(at + 1) & ~dev::kSeveralDomains, entry = word(at + 2);
      region.several = (word(at + 1) & dev::kSeveralDomains) != 0;
      region.first = static_cast<int>(word(at));
      region.last = static_cast<int>(last);
      if (region.first < 1 || region.last < region.first || region.last > L) return impossible();
      if (entry == dev::kNoEnvelope) continue;
      if (entry >= part.params.envelope_capacity) return impossible();
      dev::ScoredEnvelope e{};
      std::memcpy(&e, down + at_scored + entry * sizeof e, sizeof e);
      if (e.status != dev::kDone) continue;
      if (!has_words(e.words, e.scales) || !has_words(e.path, (std::uint64_t{e.steps} + 3) / 4))
        return impossible();
      ScoredEnvelope& envelope = region.envelope.emplace();
      envelope.forward_nats = nats(e.words, e.scales, e.last_c, length_model(L, false).move);
      envelope.sound = e.sound != 0;
      envelope.accuracy = e.accuracy;
      std::ranges::copy(e.null2, envelope.null2.begin());
      envelope.path.resize(e.steps);
      std::memcpy(envelope.path.data(), down + words_at + e.path * sizeof(std::uint32_t), e.steps);
      envelope.last_row = static_cast<int>(e.last_row);
      envelope.last_node = static_cast<int>(e.last_node);
    }
    part.request->parsed[part.order[slot]] = std::move(parsed);
  }
  return {};
}

}  // namespace hmmjit::gpu
