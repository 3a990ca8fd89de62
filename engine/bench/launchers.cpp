#include "bench/launchers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "layout/stages.hpp"

namespace hmmjit::bench {
namespace {

using driver::DeviceBuffer;
using hmmjit_device::LateCounters;
using plan::Stage;

/// Value of results before a launch; no kernel writes it, so omitted targets are detected.
constexpr unsigned char kUnwritten = 0xee;

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// Counts a wrong answer and describes the first one.
void differs(Measurement& out, std::size_t target, std::uint32_t length, float got, float want) {
  if (out.wrong++ == 0) {
    out.first_wrong =
        fmt::format("target {} of {} residues: {} instead of {}", target, length, got, want);
  }
}

/// Runs `launch` for the time in which an idle device raises its clocks, then `repeats` times, and
/// keeps the median of the latter. A launch that exceeds the kernel's time limit is not repeated.
/// `restart` is queued before each launch.
Status time_launches(const Surroundings& s, Measurement& out,
                     const std::function<Status()>& restart,
                     const std::function<Status()>& launch) {
  constexpr std::chrono::milliseconds kWarmUp{50};
  const auto timed = [&]() -> Result<double> {
    HMMJIT_TRY(restart());
    HMMJIT_TRY(s.begin.record(s.stream));
    HMMJIT_TRY(launch());
    HMMJIT_TRY(s.end.record(s.stream));
    HMMJIT_TRY(s.end.synchronize());
    HMMJIT_ASSIGN(const float ms, driver::Event::milliseconds(s.begin, s.end));
    return static_cast<double>(ms);
  };
  double first = 0;
  const auto begun = std::chrono::steady_clock::now();
  do {
    HMMJIT_ASSIGN(first, timed());
  } while (std::chrono::steady_clock::now() - begun < kWarmUp);
  const bool slow = first > 1e3 * s.settings.seconds;
  std::vector<double> times;
  if (slow) times.push_back(first);
  while (!slow && std::ssize(times) < s.settings.repeats) {
    HMMJIT_ASSIGN(times.emplace_back(), timed());
  }
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

template <typename Params>
Status queue(const Surroundings& s, const gpu::ReadyKernel& kernel, const Params& p) {
  return kernel.launch(s.stream, *s.stream.device(), gpu::extent_of(s.model), &p);
}

template <typename Params>
Status time_tiles(const Surroundings& s, Measurement& out, const gpu::ReadyKernel& kernel,
                  const DeviceBuffer& counters, Params& p) {
  return time_launches(
      s, out, [&] { return counters.fill(s.stream, 0, counters.size()); },
      [&] {
        return kernel.launch_tiles(s.stream, *s.stream.device(), gpu::extent_of(s.model), p,
                                   counters);
      });
}

/// Copies a model's tables to the device.
Result<DeviceBuffer> upload(const Surroundings& s, const layout::TableBlock& tables) {
  std::vector<std::byte> bytes(tables.bytes());
  tables.copy_to(bytes.data());
  return to_device(s.stream, bytes);
}

/// The scratch memory that the catalogue entry requests, placed in the parameters.
template <typename Params>
Result<DeviceBuffer> scratch_for(const Surroundings& s, const gpu::ReadyKernel& kernel, Params& p) {
  const gpu::ReadyKernel::Scratch scratch =
      kernel.scratch(*s.stream.device(), s.targets.on_device().residue_bytes());
  HMMJIT_ASSIGN(DeviceBuffer buffer, DeviceBuffer::create(s.stream.device(), scratch.bytes()));
  scratch.place(p, buffer.address());
  return buffer;
}

hmmjit_device::TargetList everything(const DeviceTargets& targets) {
  return {nullptr, nullptr, 1, static_cast<std::uint32_t>(targets.size())};
}

}  // namespace

Status run_byte_filter(const Surroundings& s, const gpu::ReadyKernel& kernel,
                       const std::vector<float>& expected, Measurement& out) {
  using namespace hmmjit_device;
  const bool msv = out.stage == Stage::kMsv;
  const ByteProfile& profile = s.model.bytes;
  const auto& packed = s.targets.packed();
  const plan::Candidate& candidate = kernel.candidate();
  const bool whole = msv || candidate.expected.tile_length > 0;
  HMMJIT_ASSIGN(const auto* const work, s.targets.on_device().work(profile.M, whole));
  layout::ByteStage stage(profile, s.model.hmm.calibration, s.settings.F1, packed.class_lengths);
  layout::TableBlock tables;
  stage.place(tables, true);
  HMMJIT_ASSIGN(const auto d_tables, upload(s, tables));
  HMMJIT_ASSIGN(const auto d_splits, to_device(s.stream, work->splits));
  const driver::DevicePtr& device = s.stream.device();
  const std::size_t n = s.targets.size();
  HMMJIT_ASSIGN(const auto counters, DeviceBuffer::create(device, sizeof(Counters)));
  HMMJIT_ASSIGN(const auto results, DeviceBuffer::create(device, n * 4));
  HMMJIT_ASSIGN(const auto survivors, DeviceBuffer::create(device, n * sizeof(Survivor)));
  HMMJIT_ASSIGN(const auto undecided, DeviceBuffer::create(device, n * 4));
  HMMJIT_ASSIGN(const auto tile_best, DeviceBuffer::create(device, std::size_t{work->count} * 4));
  ByteFilterParams p = stage.parameters(d_tables.address());
  HMMJIT_ASSIGN(const auto scratch, scratch_for(s, kernel, p));
  p.database = s.targets.on_device().view();
  p.items = device_pointer<const WorkItem>(work->items);
  p.splits = device_pointer<SplitState>(d_splits);
  p.counters = device_pointer<Counters>(counters);
  p.results = device_pointer<u32>(results);
  p.survivors = device_pointer<Survivor>(survivors);
  p.undecided = device_pointer<u32>(undecided);
  p.tile_best = device_pointer<u32>(tile_best);
  p.item_count = work->count;
  HMMJIT_TRY(results.fill(s.stream, kUnwritten, n * 4));
  HMMJIT_TRY(time_tiles(s, out, kernel, counters, p));

  HMMJIT_ASSIGN(const auto got, to_host<u32>(s.stream, results, n));
  HMMJIT_ASSIGN(const auto counted, to_host<Counters>(s.stream, counters, 1));
  std::uint64_t passed = 0, open = 0;
  for (std::size_t t = 0; t < n; ++t) {
    const auto length = static_cast<int>(packed.length[t]);
    const LengthClass& c = stage.classes()[packed.length_class[t]];
    const layout::ByteAnswer answer = layout::byte_answer(profile, got[t], length);
    bool passes = false;
    if (answer.status == kStatusOverflow) {
      passes = c.overflow_passes != 0;
    } else if (answer.status == kStatusScore) {
      passes = answer.value >= (msv ? c.msv_gate : c.ssv_gate);
    } else {
      ++open;
    }
    passed += passes;
    const float want = expected[s.targets.distinct_of(t)];
    const bool msv_told = answer.status == kStatusNoResult || answer.recurrence == msv;
    if (!same(answer.nats, want) || got[t] >> 20 != 0 || !msv_told || answer.passed != passes) {
      differs(out, t, packed.length[t], answer.nats, want);
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

Status run_viterbi(const Surroundings& s, const gpu::ReadyKernel& kernel,
                   const std::vector<float>& expected, Measurement& out) {
  using namespace hmmjit_device;
  const WordProfile& words = s.model.words;
  const bool speculates = out.candidate.variant->speculates;
  if (const std::string gap = layout::WordStage::gap(words, speculates); !gap.empty()) {
    out.refused = gap;
    return {};
  }
  const auto& packed = s.targets.packed();
  layout::WordStage stage(words, packed.class_lengths);
  layout::TableBlock tables;
  stage.place(tables);
  HMMJIT_ASSIGN(const auto d_tables, upload(s, tables));
  const driver::DevicePtr& device = s.stream.device();
  const std::size_t n = s.targets.size();
  HMMJIT_ASSIGN(const auto counters, DeviceBuffer::create(device, sizeof(LateCounters)));
  HMMJIT_ASSIGN(const auto results, DeviceBuffer::create(device, n * 4));
  HMMJIT_ASSIGN(const auto flagged, DeviceBuffer::create(device, n * 4));
  WordFilterParams p = stage.parameters(d_tables.address());
  HMMJIT_ASSIGN(const auto scratch, scratch_for(s, kernel, p));
  p.database = s.targets.on_device().view();
  p.list = everything(s.targets);
  p.counters = device_pointer<LateCounters>(counters);
  p.results = device_pointer<u32>(results);
  p.flagged = device_pointer<u32>(flagged);
  HMMJIT_TRY(results.fill(s.stream, kUnwritten, n * 4));
  HMMJIT_TRY(time_tiles(s, out, kernel, counters, p));
  HMMJIT_ASSIGN(const auto counted, to_host<LateCounters>(s.stream, counters, 1));
  out.flagged = speculates ? counted[0].flagged : 0;
  if (out.flagged > 0) {
    HMMJIT_ASSIGN(const gpu::ReadyKernel exact, s.exact_viterbi());
    WordFilterParams q = p;
    HMMJIT_ASSIGN(const auto exact_scratch, scratch_for(s, exact, q));
    q.only_flagged = 1;
    q.tile = 0;
    q.tile_count = 1;
    HMMJIT_TRY(s.begin.record(s.stream));
    HMMJIT_TRY(queue(s, exact, q));
    HMMJIT_TRY(s.end.record(s.stream));
    HMMJIT_TRY(s.end.synchronize());
    HMMJIT_ASSIGN(const float ms, driver::Event::milliseconds(s.begin, s.end));
    out.exact_milliseconds = static_cast<double>(ms);
  }
  HMMJIT_ASSIGN(const auto got, to_host<u32>(s.stream, results, n));
  for (std::size_t t = 0; t < n; ++t) {
    const float score = layout::word_answer(words, got[t], static_cast<int>(packed.length[t])).nats;
    const float want = expected[s.targets.distinct_of(t)];
    if (score != want) differs(out, t, packed.length[t], score, want);
  }
  return {};
}

Status run_float_filter(const Surroundings& s, const gpu::ReadyKernel& kernel,
                        const std::vector<float>& expected, Measurement& out) {
  using namespace hmmjit_device;
  const bool bias = out.stage == Stage::kBias;
  const auto& packed = s.targets.packed();
  const driver::DevicePtr& device = s.stream.device();
  const std::size_t n = s.targets.size();
  HMMJIT_ASSIGN(const auto counters, DeviceBuffer::create(device, sizeof(LateCounters)));
  HMMJIT_ASSIGN(const auto results, DeviceBuffer::create(device, n * 4));
  const auto launch = [&](auto stage, auto&& complete) -> Status {
    layout::TableBlock tables;
    stage.place(tables);
    HMMJIT_ASSIGN(const auto d_tables, upload(s, tables));
    auto p = stage.parameters(d_tables.address());
    HMMJIT_ASSIGN(const auto scratch, scratch_for(s, kernel, p));
    p.database = s.targets.on_device().view();
    p.list = everything(s.targets);
    p.counters = device_pointer<LateCounters>(counters);
    p.results = device_pointer<float>(results);
    complete(p);
    return time_launches(
        s, out, [&] { return counters.fill(s.stream, 0, sizeof(LateCounters)); },
        [&] { return queue(s, kernel, p); });
  };
  HMMJIT_TRY(results.fill(s.stream, 0xff, n * 4));  // NaN
  const gpu::DeviceTargets& targets = s.targets.on_device();
  HMMJIT_TRY(bias ? launch(layout::BiasStage(s.model.bias),
                           [&](BiasParams& p) { p.p1 = targets.bias_lengths(); })
                  : launch(layout::FloatStage(s.model.odds),
                           [&](FloatFilterParams& p) { p.lengths = targets.float_lengths(); }));
  HMMJIT_ASSIGN(const auto got, to_host<float>(s.stream, results, n));
  for (std::size_t t = 0; t < n; ++t) {
    const auto length = static_cast<int>(packed.length[t]);
    const float want = expected[s.targets.distinct_of(t)];
    const float score = bias ? layout::bias_nats(got[t], length) : got[t];
    if (!bias && !std::isfinite(want)) {  // no path: a logarithm of 0 or of noise
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
