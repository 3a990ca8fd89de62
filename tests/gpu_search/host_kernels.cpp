#define HMMJIT_LOCKSTEP
#include "host_kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/threads.hpp"
#include "lockstep/catalogue.hpp"
#include "lockstep/lockstep.hpp"
#include "lockstep/registry.hpp"
//
#include "common/byte_filter.cuh"
#include "common/domain_params.h"
#include "common/gate.cuh"
#include "common/word_filter.cuh"

namespace hmmjit::tests {

using namespace hmmjit_device;

namespace {

struct Residues {
  const u8* data;
  u32 size;
};
Residues residues_of(const DatabaseView& database, u32 target) {
  return {database.residues + static_cast<std::size_t>(database.start[target]) * kStartUnit,
          database.length[target]};
}

/// The positions that a launch computes of a model: a kernel knows no others than those it was made
/// for, however long the model of the launch is.
u32 covered(const FakeLaunch& launch, u32 model_length, u32 tiles = 1) {
  const std::size_t positions = image_positions(launch.image);
  return static_cast<u32>(std::min<std::size_t>(model_length, positions * tiles));
}

/// `error` is added to every emission, thirds of a bit.
int run_ssv(const FakeLaunch& launch, int error) {
  const auto& p = *static_cast<const ByteFilterParams*>(launch.parameters);
  const bool last = p.tile + 1 == p.tile_count;
  std::vector<s16> row(p.model_length + 1), old(row);
  for (u32 index = 0; (index = p.counters->next++) < p.item_count;) {
    const WorkItem& item = p.items[index];
    // The last tile does them all, if the others have been there.
    u32 tiles = 1;
    if (p.tile_count > 1) {
      if (p.boundary == nullptr || p.tile_best == nullptr) return driver::code::kIllegalAddress;
      tiles = p.tile_best[index] = p.tile == 0 ? 1 : p.tile_best[index] + 1;
      if (!last) continue;
    }
    const u32 M = covered(launch, p.model_length, tiles);
    const u8* residues = p.database.residues + static_cast<std::size_t>(item.start) * kStartUnit;
    std::fill(row.begin(), row.end(), s16{0});
    std::fill(old.begin(), old.end(), s16{0});
    s16 best = 0;  // cells above the floor, which is where a path starts
    for (u32 i = 0; i < item.rows; ++i) {
      std::swap(row, old);
      const s8* __restrict emissions =
          p.emissions + static_cast<std::size_t>(residues[i]) * p.emission_stride;
      s16* __restrict to = row.data() + 1;
      const s16* __restrict from = old.data();
      for (u32 k = 0; k < M; ++k) {
        const s16 v = static_cast<s16>(from[k] + emissions[k] + error);
        const s16 low = v < 0 ? s16{0} : v;
        to[k] = low > 127 ? s16{127} : low;
        best = to[k] > best ? to[k] : best;
      }
    }
    finish_ssv(p, item, static_cast<u32>(best));
  }
  return 0;
}

int run_msv(const FakeLaunch& launch, int error) {
  const auto& p = *static_cast<const ByteFilterParams*>(launch.parameters);
  const u32 M = covered(launch, p.model_length);
  std::vector<s16> row(M + 1), old(row);
  for (u32 index = 0; (index = (*msv_work_counter(p))++) < msv_item_count(p);) {
    const WorkItem item = msv_item(p, index);
    const LengthClass& length = p.classes[p.database.length_class[item.target]];
    const u8* residues = p.database.residues + static_cast<std::size_t>(item.start) * kStartUnit;
    MsvSpecials specials = msv_start(p, length);
    std::fill(row.begin(), row.end(), s16{0});
    std::fill(old.begin(), old.end(), s16{0});
    int best = 0;
    for (u32 i = 0; i < item.rows && best + p.bias < 255; ++i) {
      std::swap(row, old);
      const u8* __restrict costs =
          p.costs + static_cast<std::size_t>(residues[i]) * p.emission_stride;
      const s16 begin = static_cast<s16>(specials.begin), gain = static_cast<s16>(p.bias + error);
      s16* __restrict to = row.data() + 1;
      const s16* __restrict from = old.data();
      s16 most = static_cast<s16>(best);
      for (u32 k = 0; k < M; ++k) {
        const s16 v = static_cast<s16>((from[k] > begin ? from[k] : begin) + gain - costs[k]);
        to[k] = v < 0 ? s16{0} : v;
        most = to[k] > most ? to[k] : most;
      }
      best = most;
      msv_raise(p, best, &specials);
    }
    publish(p, item.target, decide_msv(p, length, static_cast<u32>(std::min(best, 255))));
  }
  return 0;
}

int run_bias(const void* parameters, int error) {
  const auto& p = *static_cast<const BiasParams*>(parameters);
  for (u32 slot = 0; (slot = p.counters->next++) < list_count(p.list);) {
    const u32 target = list_target(p.list, slot);
    const Residues residues = residues_of(p.database, target);
    const double t00 = p.p1[p.database.length_class[target]], t01 = 1 - t00;
    double a0 = 0.999, a1 = 0.001, sum = 0;
    for (u32 i = 0; i < residues.size; ++i) {
      const u32 x = residues.data[i];
      const double from0 = i == 0 ? a0 : a0 * t00 + a1 * static_cast<double>(p.t10);
      const double from1 = i == 0 ? a1 : a0 * t01 + a1 * static_cast<double>(p.t11);
      a0 = from0 * static_cast<double>(p.odds[x]);
      a1 = from1 * static_cast<double>(p.odds[kSymbolRows + x]);
      const double total = a0 + a1;
      sum += std::log(total);
      a0 /= total;
      a1 /= total;
    }
    p.results[slot] = static_cast<float>(sum) + 3.0f * static_cast<float>(error);
  }
  return 0;
}

/// The best end score of the saturating recurrence, J and all; or what a kernel that takes B as
/// constant makes of it.
int run_viterbi(const FakeLaunch& launch, bool speculating, int error) {
  const auto& p = *static_cast<const WordFilterParams*>(launch.parameters);
  // The last tile does them all, if the others have been there with their counter at 0.
  u32 tiles = 1;
  if (p.tile_count > 1) {
    if (p.boundary == nullptr) return driver::code::kIllegalAddress;
    u32& launched = p.boundary->deletion;
    tiles = launched = p.tile == 0 ? 1 : launched + (p.counters->next == 0);
    p.counters->next = 1;
    if (p.tile + 1 < p.tile_count) return 0;
    p.counters->next = 0;
  }
  const auto saturated = [](int v) { return std::clamp(v, -32768, 32767); };
  const u32 M = covered(launch, p.model_length, tiles);
  // Rows of more positions than these are not in shared memory: all that the launch may use of
  // them.
  constexpr std::size_t kMostInShared = 2432;
  const std::size_t positions = image_positions(launch.image);
  if (launch.kernel == "viterbi_row_scan" && positions > kMostInShared) {
    if (p.rows == nullptr) return driver::code::kIllegalAddress;
    std::fill_n(p.rows, std::size_t{launch.blocks} * launch.block_threads / 32 * 3 * positions,
                s16{4711});
  }
  const u32 count = speculating ? list_count(p.list) : exact_count(p);
  u32& next = speculating ? p.counters->next : *exact_counter(p);
  for (u32 entry = 0; (entry = next++) < count;) {
    const u32 slot = speculating ? entry : exact_slot(p, entry);
    const u32 target = list_target(p.list, slot);
    const Residues residues = residues_of(p.database, target);
    const int move = p.move[p.database.length_class[target]];
    const auto cost = [&](WordTransition which, u32 k) {
      return static_cast<int>(p.transitions[which * p.stride + k - 1]);
    };
    int J = -32768, C = -32768, B = p.base + move, most = -32768;
    bool overflow = false;
    std::vector<int> m(M + 1, -32768), in(m), d(m), old_m(m), old_i(m), old_d(m);
    for (u32 i = 0; i < residues.size && !overflow; ++i) {
      std::swap(m, old_m);
      std::swap(in, old_i);
      std::swap(d, old_d);
      int best = -32768;
      for (u32 k = 1; k <= M; ++k) {
        int v = saturated(B + cost(kWordEntry, k));
        v = std::max(v, saturated(old_m[k - 1] + cost(kWordMmIn, k)));
        v = std::max(v, saturated(old_i[k - 1] + cost(kWordImIn, k)));
        v = std::max(v, saturated(old_d[k - 1] + cost(kWordDmIn, k)));
        m[k] = saturated(v + p.emissions[residues.data[i] * p.stride + k - 1] + error);
        in[k] = std::max(saturated(old_m[k] + cost(kWordMiOut, k)),
                         saturated(old_i[k] + cost(kWordIiOut, k)));
        d[k] = k == 1 ? -32768
                      : std::max(saturated(m[k - 1] + cost(kWordMdOut, k - 1)),
                                 saturated(d[k - 1] + cost(kWordDdOut, k - 1)));
        best = std::max(best, m[k]);
      }
      most = std::max(most, best);
      if (speculating) continue;
      overflow = best >= 32767;
      C = std::max(C, saturated(best + p.ec));
      J = std::max(J, saturated(best + p.ej));
      B = std::max<int>(J, p.base) + move;
    }
    if (speculating) {
      publish_speculated(p, slot, target, most - B);
    } else {
      p.results[slot] =
          overflow ? kStatusOverflow << 16 : (static_cast<u32>(C) & 0xffffu) | (kStatusScore << 16);
    }
  }
  return 0;
}

int run_forward(const FakeLaunch& launch, int error) {
  const auto& p = *static_cast<const FloatFilterParams*>(launch.parameters);
  const u32 M = covered(launch, p.model_length);
  for (u32 slot = 0; (slot = p.counters->next++) < list_count(p.list);) {
    const u32 target = list_target(p.list, slot);
    const Residues residues = residues_of(p.database, target);
    const double loop = p.lengths[p.database.length_class[target]].loop,
                 move = p.lengths[p.database.length_class[target]].move;
    const auto odds = [&](WordTransition which, u32 k) {
      return static_cast<double>(p.transitions[which * p.stride + k - 1]);
    };
    double N = 1, J = 0, C = 0, B = move, total = 0;
    std::vector<double> m(M + 1, 0.0), in(m), d(m), old_m(m), old_i(m), old_d(m);
    for (u32 i = 0; i < residues.size; ++i) {
      std::swap(m, old_m);
      std::swap(in, old_i);
      std::swap(d, old_d);
      double E = 0;
      for (u32 k = 1; k <= M; ++k) {
        m[k] = (B * odds(kWordEntry, k) + old_m[k - 1] * odds(kWordMmIn, k) +
                old_i[k - 1] * odds(kWordImIn, k) + old_d[k - 1] * odds(kWordDmIn, k)) *
               static_cast<double>(p.emissions[residues.data[i] * p.stride + k - 1]);
        in[k] = old_m[k] * odds(kWordMiOut, k) + old_i[k] * odds(kWordIiOut, k);
        d[k] =
            k == 1 ? 0.0 : m[k - 1] * odds(kWordMdOut, k - 1) + d[k - 1] * odds(kWordDdOut, k - 1);
        E += m[k] + d[k];
      }
      N *= loop;
      C = C * loop + E * static_cast<double>(p.ec);
      J = J * loop + E * static_cast<double>(p.ej);
      B = (J + N) * move;
      if (E > 1e4) {
        total += std::log(E);
        for (double* v : {&N, &C, &J, &B}) *v /= E;
        for (u32 k = 1; k <= M; ++k) {
          m[k] /= E;
          in[k] /= E;
          d[k] /= E;
        }
      }
    }
    p.results[slot] =
        static_cast<float>(total + std::log(C * move)) - 9.0f * static_cast<float>(error);
  }
  return 0;
}

int run_gate(const void* parameters) {
  const auto& p = *static_cast<const GateParams*>(parameters);
  for (u32 slot = 0; slot < list_count(p.list); ++slot)
    p.counters->residues[p.stage] += gate_slot(p, slot);
  return 0;
}

/// The kernel itself, in lockstep, with the blocks and the shared memory of the launch, but only
/// the first warps of each block: as many as the instance was compiled for. A model that the
/// launched kernel was not made for has no blocks. `error`: makes its answers wrong.
int run_domain_kernel(const FakeLaunch& launch, int error) {
  const FlushToZeroScope flush;
  const DomainBatch& batch = *static_cast<const DomainBatch*>(launch.parameters);
  for (u32 m = 0; m < batch.count; ++m) {
    const u32 end = m + 1 < batch.count ? batch.models[m + 1].first_block : launch.blocks;
    const bool there = batch.models[m].first_block < end;
    if (there && batch.models[m].stripes > (image_positions(launch.image) + 3) / 4)
      return driver::code::kIllegalAddress;
  }
  const bool ensemble = launch.kernel.starts_with("ensemble");
  const DomainShape shape = image_shape(launch.image);
  for (const auto& instance : hmmjit_lockstep::kernel_instances()) {
    if (instance.kernel != launch.kernel ||
        instance.at("kTargets") != (ensemble ? 1 : shape.targets) ||
        (instance.constants.contains("kRun") && instance.at("kRun") != shape.run))
      continue;
    hmmjit_lockstep::launch(launch.blocks, hmmjit_lockstep::threads_by_entry(instance),
                            launch.shared_bytes, [&] { instance.run(&batch); });
    for (u32 m = 0; error != 0 && m < batch.count; ++m) {
      const DomainParams& p = batch.models[m];
      for (u32 i = 0; i < p.counters->envelopes; ++i) p.scored[i].accuracy += 1.0f;
    }
    return 0;
  }
  return driver::code::kNotFound;
}

/// Whether a kernel that reads these targets can run: those of a segment without residues cannot be
/// read, and no list has more entries than there are targets.
bool sound(const FakeLaunch& launch) {
  return with_parameters(launch, [](const auto& p) {
    const u32 most = p.database.targets;
    if (most > 0 && p.database.residues == nullptr) return false;
    if constexpr (requires { p.list; }) {
      if (list_count(p.list) > most) return false;
    }
    const auto& counters = *p.counters;
    if constexpr (requires { counters.flagged; }) return counters.flagged <= most;
    if constexpr (requires { counters.undecided; })
      return counters.survivors <= most && counters.undecided <= most;
    if constexpr (requires { counters.passed; })
      return counters.viterbi <= most && counters.forward <= most && counters.passed <= most &&
             counters.open <= most;
    return true;
  });
}

int run(const FakeLaunch& launch, int error) {
  for (const char* stage : {"parser", "ensemble", "envelope"}) {
    if (launch.kernel.starts_with(stage)) return run_domain_kernel(launch, error);
  }
  if (!sound(launch)) return driver::code::kIllegalAddress;
  if (launch.kernel.starts_with("ssv")) return run_ssv(launch, error);
  if (launch.kernel.starts_with("msv")) return run_msv(launch, error);
  if (launch.kernel.starts_with("bias")) return run_bias(launch.parameters, error);
  if (launch.kernel == "viterbi_wavefront") {
    return run_viterbi(launch, true, -3000 * error);
  }
  if (launch.kernel.starts_with("viterbi")) {
    return run_viterbi(launch, false, -3000 * error);
  }
  if (launch.kernel.starts_with("forward")) return run_forward(launch, error);
  if (launch.kernel.starts_with("gate")) return run_gate(launch.parameters);
  return driver::code::kNotFound;
}
}  // namespace

const plan::Candidate& tested(const plan::Plan& plan) {
  static const std::map<plan::Stage, std::set<std::string_view>> kVariants{
      {plan::Stage::kSsv, {"multi_lane_byte", "multi_lane_half", "multi_lane_tiled"}},
      {plan::Stage::kMsv, {"multi_lane_half"}},
      {plan::Stage::kBias, {"segments"}},
      {plan::Stage::kViterbi, {"wavefront", "wavefront_tiled", "lane_scan", "row_scan"}},
      {plan::Stage::kForward, {"row_scan"}},
      {plan::Stage::kGate, {"cascade"}},
      {plan::Stage::kParser, {"four_lane"}},
      {plan::Stage::kEnsemble, {"four_lane"}},
      {plan::Stage::kEnvelope, {"four_lane"}}};
  const std::set<std::string_view>& known = kVariants.at(plan.stage);
  if (known.contains(plan.chosen.variant->name)) return plan.chosen;
  for (const plan::Candidate& candidate : plan.fallbacks) {
    if (known.contains(candidate.variant->name)) return candidate;
  }
  return plan.chosen;
}

std::string image_for(const plan::Candidate& candidate) {
  const plan::Expected& expected = candidate.expected;
  if (expected.any_length) return "image";
  // The host launches a tiled kernel once for each tile of the model.
  return fmt::format("image of {} positions, {} targets a warp, runs of {}",
                     expected.tile_length > 0 ? expected.tile_length : expected.covered_length,
                     candidate.constants.find("kTargets").value_or(0),
                     candidate.constants.find("kRun").value_or(0));
}

std::size_t image_positions(const std::string& image) {
  unsigned positions = std::numeric_limits<unsigned>::max();
  std::sscanf(image.c_str(), "image of %u positions", &positions);
  return positions;
}

DomainShape image_shape(const std::string& image) {
  unsigned positions = 0, targets = kMostTargetsPerWarp, run = 0;
  std::sscanf(image.c_str(), "image of %u positions, %u targets a warp, runs of %u", &positions,
              &targets, &run);
  return {targets, run};
}

int run_on_host(const FakeLaunch& launch) { return run(launch, 0); }
int run_on_host_wrongly(const FakeLaunch& launch) { return run(launch, 1); }

}  // namespace hmmjit::tests
