#include "bench/launchers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "layout/byte_tables.hpp"
#include "layout/float_tables.hpp"
#include "layout/word_tables.hpp"
#include "reference/filters.hpp"

namespace hmmjit::bench {
namespace {

using driver::DeviceBuffer;
using hmmjit_device::LateCounters;
using plan::Stage;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();
/// Results before a launch: no kernel writes it, so that a target left out is seen.
constexpr unsigned char kUnwritten = 0xee;

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Counts a target whose answer differs and keeps the first.
void differs(Measurement& out, std::size_t target, std::uint32_t length, float got, float want) {
  if (out.wrong++ == 0) {
    out.first_wrong =
        fmt::format("target {} of {} residues: {} instead of {}", target, length, got, want);
  }
}

/// Runs `launch` once, then `repeats` times more, and keeps the median of the latter. A launch that
/// takes longer than a kernel is granted is not repeated. `restart` is queued before each.
Status time_launches(const Surroundings& s, Measurement& out,
                     const std::function<Status()>& restart,
                     const std::function<Status()>& launch) {
  std::vector<double> times;
  double first = 0;
  for (int r = 0; r <= s.settings.repeats; ++r) {
    HMMJIT_TRY(restart());
    HMMJIT_TRY(s.begin.record(s.stream));
    HMMJIT_TRY(launch());
    HMMJIT_TRY(s.end.record(s.stream));
    HMMJIT_TRY(s.end.synchronize());
    HMMJIT_ASSIGN(const float ms, driver::Event::milliseconds(s.begin, s.end));
    if (r > 0) {
      times.push_back(static_cast<double>(ms));
    } else {
      first = static_cast<double>(ms);
      if (first > 1e3 * s.settings.seconds) break;
    }
  }
  if (times.empty()) times.push_back(first);
  std::ranges::sort(times);
  out.launches = static_cast<int>(times.size());
  out.milliseconds = times[times.size() / 2];
  out.fastest = times.front();
  out.slowest = times.back();
  out.targets = s.targets.size();
  out.residues = s.targets.residues();
  if (out.milliseconds > 0) {
    out.gcups = static_cast<double>(out.residues) * s.model.hmm.M / out.milliseconds * 1e-6;
  }
  return {};
}

/// One launch for each tile of the model; only the work counter restarts between them.
template <typename Params>
Status time_tiles(const Surroundings& s, Measurement& out, const Loaded& kernel,
                  const DeviceBuffer& counters, Params& p) {
  const auto launch = [&]() -> Status {
    for (p.tile = 0; p.tile < p.tile_count; ++p.tile) {
      if (p.tile > 0) HMMJIT_TRY(counters.fill(s.stream, 0, sizeof(p.counters->next)));
      HMMJIT_TRY(kernel.loaded->launch(s.stream, kernel.grid, &p));
    }
    return {};
  };
  return time_launches(
      s, out, [&] { return counters.fill(s.stream, 0, counters.size()); }, launch);
}

bool is_tiled(const plan::Candidate& candidate) { return candidate.expected.tile_length > 0; }

std::int64_t constant(const Loaded& kernel, std::string_view name) {
  return kernel.kernel->candidate.constants.find(name).value_or(0);
}

hmmjit_device::TargetList everything(const DeviceTargets& targets) {
  return {nullptr, nullptr, 1, static_cast<std::uint32_t>(targets.size())};
}

}  // namespace

Status run_byte_filter(const Surroundings& s, const Loaded& kernel,
                       const std::vector<float>& expected, Measurement& out) {
  using namespace hmmjit_device;
  const bool msv = out.stage == Stage::kMsv;
  const ByteProfile& profile = s.model.bytes;
  const auto& packed = s.targets.packed();
  const int M = profile.M;
  // A tiled kernel writes its boundary even when one tile holds the model.
  const bool tiled = is_tiled(kernel.kernel->candidate);
  const layout::ByteTables tables = layout::make_byte_tables(profile);
  const auto classes = layout::make_length_classes(profile, s.model.hmm.calibration, s.settings.F1,
                                                   packed.class_lengths);
  const layout::WorkList work = msv || tiled ? layout::whole_targets(packed)
                                             : layout::ssv_pieces(packed, layout::piece_overlap(M));
  HMMJIT_ASSIGN(const auto d_classes, to_device(s.stream, classes));
  HMMJIT_ASSIGN(const auto d_emissions, to_device(s.stream, tables.emissions));
  HMMJIT_ASSIGN(const auto d_costs, to_device(s.stream, tables.costs));
  HMMJIT_ASSIGN(const auto d_items, to_device(s.stream, work.items));
  HMMJIT_ASSIGN(const auto d_splits, to_device(s.stream, work.splits));
  const driver::DevicePtr& device = s.stream.device();
  const std::size_t n = s.targets.size();
  HMMJIT_ASSIGN(const auto counters, DeviceBuffer::create(device, sizeof(Counters)));
  HMMJIT_ASSIGN(const auto results, DeviceBuffer::create(device, n * 4));
  HMMJIT_ASSIGN(const auto survivors, DeviceBuffer::create(device, n * sizeof(Survivor)));
  HMMJIT_ASSIGN(const auto undecided, DeviceBuffer::create(device, n * 4));
  HMMJIT_ASSIGN(const auto tile_best,
                DeviceBuffer::create(device, tiled ? work.items.size() * 4 : 0));
  HMMJIT_ASSIGN(const auto boundary,
                DeviceBuffer::create(device, tiled ? s.targets.residue_bytes() : 0));
  ByteFilterParams p{};
  p.database = s.targets.view();
  p.items = device_pointer<const WorkItem>(d_items);
  p.splits = device_pointer<SplitState>(d_splits);
  p.classes = device_pointer<const LengthClass>(d_classes);
  p.emissions = device_pointer<const s8>(d_emissions);
  p.costs = device_pointer<const u8>(d_costs);
  p.counters = device_pointer<Counters>(counters);
  p.results = device_pointer<u32>(results);
  p.survivors = device_pointer<Survivor>(survivors);
  p.undecided = device_pointer<u32>(undecided);
  p.boundary = device_pointer<u8>(boundary);
  p.tile_best = device_pointer<u32>(tile_best);
  p.item_count = static_cast<u32>(work.items.size());
  p.emission_stride = tables.stride;
  p.model_length = static_cast<u32>(M);
  p.tile_count = static_cast<u32>(plan::tiles_of(kernel.kernel->candidate, M));
  p.base = static_cast<u8>(profile.base);
  p.bias = profile.bias;
  p.tbm = profile.tbm;
  p.tec = profile.tec;
  HMMJIT_TRY(results.fill(s.stream, kUnwritten, n * 4));
  HMMJIT_TRY(time_tiles(s, out, kernel, counters, p));

  HMMJIT_ASSIGN(const auto got, to_host<u32>(s.stream, results, n));
  HMMJIT_ASSIGN(const auto counted, to_host<Counters>(s.stream, counters, 1));
  std::uint64_t passed = 0, open = 0;
  for (std::size_t t = 0; t < n; ++t) {
    const auto length = static_cast<int>(packed.length[t]);
    const LengthClass& c = classes[packed.length_class[t]];
    const u32 value = got[t] & 0xffffu, status = (got[t] >> 16) & 3u;
    float score = kNan;
    bool passes = false;
    if (status == kStatusOverflow) {
      score = kInfinity;
      passes = c.overflow_passes != 0;
    } else if (status == kStatusScore) {
      passes = value >= (msv ? c.msv_gate : c.ssv_gate);
      score = msv ? reference::msv_nats(profile, static_cast<int>(value), length)
                  : reference::ssv_decide(profile, static_cast<int>(value), length).nats;
    } else {
      ++open;
    }
    passed += passes;
    const float want = expected[s.targets.distinct_of(t)];
    if (!same(score, want) || got[t] >> 20 != 0 || ((got[t] & kResultPassed) != 0) != passes) {
      differs(out, t, packed.length[t], score, want);
    }
  }
  if (counted[0].survivors != passed || counted[0].undecided != open) {
    if (out.wrong++ == 0) {
      out.first_wrong = fmt::format("{} survivors and {} undecided listed, not {} and {}",
                                    counted[0].survivors, counted[0].undecided, passed, open);
    }
  }
  return {};
}

Status run_viterbi(const Surroundings& s, const Loaded& kernel, const std::vector<float>& expected,
                   Measurement& out) {
  using namespace hmmjit_device;
  const WordProfile& words = s.model.words;
  const bool speculates = out.candidate.variant->entry_name == "viterbi_wavefront";
  const std::string gap =
      speculates ? layout::viterbi_wavefront_gap(words) : layout::viterbi_row_scan_gap(words);
  if (!gap.empty()) {
    out.refused = gap;
    return {};
  }
  const auto& packed = s.targets.packed();
  const layout::WordTables tables = layout::make_word_tables(words);
  const driver::DevicePtr& device = s.stream.device();
  const std::size_t n = s.targets.size();
  HMMJIT_ASSIGN(const auto moves,
                to_device(s.stream, layout::make_word_moves(words, packed.class_lengths)));
  HMMJIT_ASSIGN(const auto emissions, to_device(s.stream, tables.emissions));
  HMMJIT_ASSIGN(const auto transitions, to_device(s.stream, tables.transitions));
  HMMJIT_ASSIGN(const auto counters, DeviceBuffer::create(device, sizeof(LateCounters)));
  HMMJIT_ASSIGN(const auto results, DeviceBuffer::create(device, n * 4));
  HMMJIT_ASSIGN(const auto flagged, DeviceBuffer::create(device, n * 4));
  HMMJIT_ASSIGN(const auto boundary,
                DeviceBuffer::create(device, is_tiled(kernel.kernel->candidate)
                                                 ? s.targets.residue_bytes() * sizeof(WordBoundary)
                                                 : 0));
  WordFilterParams p{};
  p.database = s.targets.view();
  p.list = everything(s.targets);
  p.move = device_pointer<const s16>(moves);
  p.emissions = device_pointer<const s16>(emissions);
  p.transitions = device_pointer<const s16>(transitions);
  p.counters = device_pointer<LateCounters>(counters);
  p.results = device_pointer<u32>(results);
  p.flagged = device_pointer<u32>(flagged);
  p.boundary = device_pointer<WordBoundary>(boundary);
  p.stride = tables.stride;
  p.model_length = static_cast<u32>(words.M);
  p.tile_count = static_cast<u32>(plan::tiles_of(kernel.kernel->candidate, words.M));
  p.base = static_cast<s16>(words.base);
  p.ec = words.ec;
  p.ej = words.ej;
  // Rows of kernels that keep them in device memory, three per warp.
  const auto rows_for = [&](const Loaded& k) {
    const std::int64_t nodes = constant(k, "kShared") ? 0 : constant(k, "kNodes");
    return DeviceBuffer::create(device, static_cast<std::size_t>(nodes) * 3 * sizeof(s16) *
                                            k.grid.blocks * (k.grid.block_threads / 32));
  };
  HMMJIT_ASSIGN(const auto rows, rows_for(kernel));
  p.rows = device_pointer<s16>(rows);
  HMMJIT_TRY(results.fill(s.stream, kUnwritten, n * 4));
  HMMJIT_TRY(time_tiles(s, out, kernel, counters, p));
  HMMJIT_ASSIGN(const auto counted, to_host<LateCounters>(s.stream, counters, 1));
  out.flagged = speculates ? counted[0].flagged : 0;
  if (out.flagged > 0) {
    HMMJIT_ASSIGN(const Loaded exact, s.exact_viterbi());
    HMMJIT_ASSIGN(const auto exact_rows, rows_for(exact));
    WordFilterParams q = p;
    q.rows = device_pointer<s16>(exact_rows);
    q.only_flagged = 1;
    q.tile = 0;
    q.tile_count = 1;
    HMMJIT_TRY(s.begin.record(s.stream));
    HMMJIT_TRY(exact.loaded->launch(s.stream, exact.grid, &q));
    HMMJIT_TRY(s.end.record(s.stream));
    HMMJIT_TRY(s.end.synchronize());
    HMMJIT_ASSIGN(const float ms, driver::Event::milliseconds(s.begin, s.end));
    out.exact_milliseconds = static_cast<double>(ms);
  }
  HMMJIT_ASSIGN(const auto got, to_host<u32>(s.stream, results, n));
  for (std::size_t t = 0; t < n; ++t) {
    const u32 status = got[t] >> 16;
    float score = kNan;
    if (status == kStatusOverflow) score = kInfinity;
    if (status == kStatusScore) {
      score = reference::viterbi_nats(words, static_cast<std::int16_t>(got[t] & 0xffffu),
                                      static_cast<int>(packed.length[t]));
    }
    const float want = expected[s.targets.distinct_of(t)];
    if (score != want) differs(out, t, packed.length[t], score, want);
  }
  return {};
}

Status run_float_filter(const Surroundings& s, const Loaded& kernel,
                        const std::vector<float>& expected, Measurement& out) {
  using namespace hmmjit_device;
  const bool bias = out.stage == Stage::kBias;
  const auto& packed = s.targets.packed();
  const driver::DevicePtr& device = s.stream.device();
  const std::size_t n = s.targets.size();
  HMMJIT_ASSIGN(const auto counters, DeviceBuffer::create(device, sizeof(LateCounters)));
  HMMJIT_ASSIGN(const auto results, DeviceBuffer::create(device, n * 4));
  BiasParams b{};
  FloatFilterParams f{};
  DeviceBuffer lengths, emissions, transitions;
  if (bias) {
    HMMJIT_ASSIGN(lengths, to_device(s.stream, layout::make_bias_lengths(packed.class_lengths)));
    HMMJIT_ASSIGN(emissions, to_device(s.stream, layout::make_bias_odds(s.model.bias)));
    b.database = s.targets.view();
    b.list = everything(s.targets);
    b.odds = device_pointer<const float>(emissions);
    b.p1 = device_pointer<const float>(lengths);
    b.counters = device_pointer<LateCounters>(counters);
    b.results = device_pointer<float>(results);
    b.t10 = s.model.bias.t10;
    b.t11 = s.model.bias.t11;
  } else {
    const layout::FloatTables tables = layout::make_float_tables(s.model.odds);
    HMMJIT_ASSIGN(lengths, to_device(s.stream, layout::make_float_lengths(packed.class_lengths)));
    HMMJIT_ASSIGN(emissions, to_device(s.stream, tables.emissions));
    HMMJIT_ASSIGN(transitions, to_device(s.stream, tables.transitions));
    f.database = s.targets.view();
    f.list = everything(s.targets);
    f.lengths = device_pointer<const FloatLength>(lengths);
    f.emissions = device_pointer<const float>(emissions);
    f.transitions = device_pointer<const float>(transitions);
    f.counters = device_pointer<LateCounters>(counters);
    f.results = device_pointer<float>(results);
    f.stride = tables.stride;
    f.model_length = static_cast<u32>(s.model.odds.M);
    const LengthModel specials = length_model(100, true);  // E->C and E->J depend on no length
    f.ec = specials.ec;
    f.ej = specials.ej;
  }
  const void* parameters = bias ? static_cast<const void*>(&b) : &f;
  HMMJIT_TRY(results.fill(s.stream, 0xff, n * 4));  // NaN
  HMMJIT_TRY(time_launches(
      s, out, [&] { return counters.fill(s.stream, 0, sizeof(LateCounters)); },
      [&] { return kernel.loaded->launch(s.stream, kernel.grid, parameters); }));
  HMMJIT_ASSIGN(const auto got, to_host<float>(s.stream, results, n));
  for (std::size_t t = 0; t < n; ++t) {
    const auto length = static_cast<int>(packed.length[t]);
    const float want = expected[s.targets.distinct_of(t)];
    const float score = bias ? layout::bias_nats(got[t], length) : got[t];
    if (!bias && !std::isfinite(want)) {  // no path: the kernel's logarithm of 0, or of noise
      if (std::isfinite(score)) differs(out, t, packed.length[t], score, want);
      continue;
    }
    const float guard = bias ? layout::bias_guard(got[t], length) : layout::forward_guard(length);
    const double share = std::fabs(static_cast<double>(score) - static_cast<double>(want)) /
                         static_cast<double>(guard);
    if (share < 1) {
      out.of_guard = std::max(out.of_guard, share);
    } else {
      differs(out, t, packed.length[t], score, want);
    }
  }
  return {};
}

}  // namespace hmmjit::bench
