#include "pairs_fixture.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>

#include "common/gate_params.h"
#include "core/threads.hpp"
#include "cpu/filters.hpp"
#include "host_kernels.hpp"
#include "layout/float_tables.hpp"
#include "model/score_statistics.hpp"
#include "plan/device_traits.hpp"
#include "support/random_profiles.hpp"

namespace hmmjit::tests {

namespace dev = hmmjit_device;

// ---- models, targets, and what the CPU makes of them -------------------------------------------

std::vector<Residue> fragment_of(const Hmm& hmm, std::uint64_t seed, int from, int to,
                                 double identity) {
  test_support::Random random(seed * 7919 + static_cast<std::uint64_t>(from));
  std::vector<Residue> out;
  for (int k = from; k <= to; ++k) {
    out.push_back(random.chance(identity)
                      ? hmm.alphabet->digit[static_cast<unsigned char>(
                            hmm.consensus[static_cast<std::size_t>(k - 1)])]
                      : static_cast<Residue>(random.integer(0, hmm.alphabet->K - 1)));
  }
  return out;
}

std::vector<std::vector<Residue>> targets_for(const Hmm& hmm, std::uint64_t seed) {
  using namespace test_support;
  Random random(seed * 31 + static_cast<std::uint64_t>(hmm.M));
  std::vector<std::vector<Residue>> out;
  // Windows over the whole model; the last ends at its last position.
  constexpr int kWindow = 110, kWindows = 6;
  for (int w = 0; w < kWindows; ++w) {
    const int last = std::max(hmm.M * (w + 1) / kWindows, std::min(hmm.M, kWindow));
    for (const double identity : {0.3, 0.45, 0.6, 0.9}) {
      std::vector<Residue> target = random_target(random, {0, 40}, TargetKind::kBackground, hmm);
      const std::vector<Residue> fragment =
          fragment_of(hmm, random.next(), std::max(1, last - kWindow + 1), last, identity);
      target.insert(target.end(), fragment.begin(), fragment.end());
      out.push_back(std::move(target));
    }
  }
  for (int i = 0; i < 12; ++i)
    out.push_back(random_target(random, {1, 260}, TargetKind::kBackground, hmm));
  for (const TargetKind kind :
       {TargetKind::kUniformCodes, TargetKind::kLowComplexity, TargetKind::kNonresidue})
    out.push_back(random_target(random, {20, 200}, kind, hmm));
  out.push_back(random_target(random.next(), 600, TargetKind::kTandem, hmm));
  out.emplace_back();
  if (hmm.M < 300) out.push_back(random_target(random.next(), 5000, TargetKind::kHomologous, hmm));
  return out;
}

std::shared_ptr<TargetBlock> block_of(const std::vector<std::vector<Residue>>& targets,
                                      std::uint64_t first_index) {
  auto block = std::make_shared<TargetBlock>();
  block->set_first_index(first_index);
  for (const auto& residues : targets) {
    block->begin_target(fmt::format("target{}", first_index + block->size()), "", "");
    block->append(residues);
    block->end_target();
  }
  return block;
}

std::vector<CpuPair> cpu_pairs(const SearchModel& model, const TargetBlock& block,
                               const gpu::FilterLimits& limits) {
  const FlushToZeroScope flush;
  const PreparedModel prepared(std::make_shared<SearchModel>(model));
  const HostFilters filters(prepared, {limits.F1, limits.F2, limits.F3, limits.bias});
  const cpu::FilterTables tables(model);
  cpu::FilterScratch scratch;
  const domain::ForwardTables forward(model);
  domain::Workspace workspace;
  std::vector<CpuPair> out(block.size());
  for (std::size_t i = 0; i < block.size(); ++i) {
    CpuPair& pair = out[i];
    FilterOutput output;
    EXPECT_TRUE(filters.run(block, i, i + 1, scratch, output));
    pair.stage = static_cast<CpuPair::Stage>(output.counters.msv + output.counters.bias +
                                             output.counters.viterbi);
    const auto residues = block[i].residues;
    if (residues.empty()) continue;
    pair.msv = tables.msv_filter(residues, scratch);
    pair.bias = tables.bias_filter(residues);
    pair.viterbi = tables.viterbi_filter(residues, scratch);
    pair.forward = domain::forward_filter(forward, residues, workspace)
                       .value_or(-std::numeric_limits<float>::infinity());
    if (output.survivors.empty()) continue;
    const float bits = nats_to_bits(pair.forward - output.survivors.front().filter_nats);
    const Calibration& c = model.hmm.calibration;
    if (!(exponential_survival(bits, c.forward_tau, c.forward_lambda) > limits.F3))
      pair.stage = CpuPair::kPassed;
  }
  return out;
}

SearchModel model_of(int M, const Alphabet& alphabet) {
  return *make_search_model(test_support::random_hmm(static_cast<std::uint64_t>(M), M,
                                                     test_support::ModelKind::kTypical, alphabet));
}

const gpu::KernelClass& planned(gpu::KernelStore& kernels, const SearchModel& model) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  const gpu::KernelClass* slots = nullptr;
  while ((slots = kernels.of(model)) == nullptr) {
    if (std::chrono::steady_clock::now() > deadline)
      throw std::runtime_error("a class has not been planned within a minute");
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return *slots;
}

// ---- chains -------------------------------------------------------------------------------------

Chains::Chains(std::unique_ptr<gpu::KernelSource> source, std::size_t most_scratch)
    : fake({*plan::find_device("H200")}) {
  fake.on_launch = [this](const FakeLaunch& launch) {
    const int code = run_on_host(launch);
    ++launches[launch.kernel];
    if (code == 0) note(launch);
    return code;
  };
  driver_ = driver::Driver::open(fake.api());
  device_ = *driver_->device(0);
  origin_ = *driver::Event::create(device_, true);
  cascade_ = *gpu::Cascade::create(
      device_, origin_, [](std::size_t, std::size_t) -> Status { return {}; }, most_scratch);
  kernels.open(std::move(source), device_->traits());
  kernels.load_on(driver_, {device_});
}

void Chains::note(const FakeLaunch& launch) {
  const auto each = [](const dev::TargetList& list, auto take) {
    for (std::uint32_t slot = 0; slot < *list.count; ++slot)
      take(slot, list.targets[slot * list.stride]);
  };
  if (launch.kernel.starts_with("bias")) {
    const auto& p = *static_cast<const dev::BiasParams*>(launch.parameters);
    each(p.list, [&](auto slot, auto target) { answers_.bias[target] = p.results[slot]; });
  } else if (launch.kernel.starts_with("viterbi")) {
    const auto& p = *static_cast<const dev::WordFilterParams*>(launch.parameters);
    each(p.list, [&](auto slot, auto target) { answers_.viterbi[target] = p.results[slot]; });
  } else if (launch.kernel.starts_with("forward")) {
    const auto& p = *static_cast<const dev::FloatFilterParams*>(launch.parameters);
    each(p.list, [&](auto slot, auto target) { answers_.forward[target] = p.results[slot]; });
  }
}

Result<std::array<gpu::ReadyKernel, gpu::kLinks>> Chains::ready(const SearchModel& model) {
  return kernels.ready(*device_, planned(model), model);
}

std::shared_ptr<gpu::DeviceTargets> Chains::upload(
    const std::vector<std::shared_ptr<TargetBlock>>& blocks) {
  std::vector<gpu::BlockRef> refs;
  for (std::size_t b = 0; b < blocks.size(); ++b) refs.push_back({b + 1, blocks[b]});
  auto uploader = *gpu::Uploader::create(device_);
  return *gpu::DeviceTargets::create(
      device_, std::make_shared<gpu::PackedSegment>(gpu::pack_segment(refs)), uploader);
}

Result<gpu::CascadeResult> Chains::run(const SearchModel& model, gpu::DeviceTargets& targets,
                                       const std::vector<bool>& claimed,
                                       const gpu::FilterLimits& limits) {
  HMMJIT_ASSIGN(const auto ready, this->ready(model));
  return run(model, targets, ready, claimed, limits);
}

Result<gpu::CascadeResult> Chains::run(const SearchModel& model, gpu::DeviceTargets& targets,
                                       const std::array<gpu::ReadyKernel, gpu::kLinks>& given,
                                       const std::vector<bool>& claimed,
                                       const gpu::FilterLimits& limits) {
  answers_ = {};
  return cascade_->run({.model = model,
                        .kernels = given,
                        .limits = limits,
                        .targets = targets,
                        .claimed = claimed,
                        .wait = {}});
}

DecisionCounts expect_cpu_decisions(
    const SearchModel& model, const std::vector<std::shared_ptr<TargetBlock>>& blocks,
    const std::vector<bool>& claimed, const std::vector<gpu::FilteredBlock>& results,
    const gpu::FilterLimits& limits,
    const std::function<void(std::uint32_t block, std::uint32_t index, const CpuPair&)>& each) {
  const std::string& name = model.hmm.name;
  DecisionCounts counts;
  EXPECT_EQ(results.size(), blocks.size());
  if (results.size() != blocks.size()) return counts;
  std::uint64_t wanted[5] = {}, told[5] = {};
  for (std::uint32_t b = 0; b < blocks.size(); ++b) {
    const gpu::FilteredBlock& block = results[b];
    told[CpuPair::kFailsBias] += block.failed_bias;
    told[CpuPair::kFailsViterbi] += block.failed_viterbi;
    told[CpuPair::kFailsForward] += block.failed_forward;
    if (!claimed[b]) {
      EXPECT_TRUE(block.open.empty() && block.passed.empty()) << name << ": a block nobody claimed";
      continue;
    }
    const std::vector<CpuPair> cpu = cpu_pairs(model, *blocks[b], limits);
    EXPECT_TRUE(std::ranges::is_sorted(block.open, std::less<>(), &gpu::MsvSurvivor::index));
    EXPECT_TRUE(std::ranges::is_sorted(block.passed));
    EXPECT_TRUE(block.parsed.empty() || block.parsed.size() == block.passed.size());
    for (std::uint32_t i = 0; i < cpu.size(); ++i) {
      const CpuPair& pair = cpu[i];
      const auto where = [&] {
        return fmt::format("{} (M {}) x {} (L {}) of block {}, {} on the CPU", name, model.hmm.M, i,
                           blocks[b]->length(i), b, static_cast<int>(pair.stage));
      };
      const auto open = std::ranges::lower_bound(block.open, i, {}, &gpu::MsvSurvivor::index);
      const bool is_open = open != block.open.end() && open->index == i;
      const bool passed = std::ranges::binary_search(block.passed, i);
      EXPECT_FALSE(is_open && passed) << where();
      if (blocks[b]->length(i) == 0) {
        EXPECT_FALSE(is_open || passed) << where();
        continue;
      }
      counts.survivors += pair.stage >= CpuPair::kFailsBias;
      if (is_open) {
        ++counts.open;
        if (!std::isnan(open->nats)) {
          EXPECT_GE(pair.stage, CpuPair::kFailsBias) << where();
          EXPECT_EQ(open->nats, pair.msv) << where();
        }
      } else if (passed) {
        ++counts.passed;
        // The CPU scores these again: within the guard of F3 they may be told as passed.
        EXPECT_GE(pair.stage, CpuPair::kFailsForward) << where();
      } else {
        EXPECT_NE(pair.stage, CpuPair::kPassed) << where() << ": lost";
        ++wanted[pair.stage];
      }
      if (each) each(b, i, pair);
    }
  }
  for (const auto stage : {CpuPair::kFailsBias, CpuPair::kFailsViterbi, CpuPair::kFailsForward})
    EXPECT_EQ(told[stage], wanted[stage]) << name << " (M " << model.hmm.M << "), stage " << stage;
  counts.failed_forward = told[CpuPair::kFailsForward];
  return counts;
}

std::size_t Chains::compare(const SearchModel& model,
                            const std::vector<std::shared_ptr<TargetBlock>>& blocks,
                            std::vector<bool> claimed, const gpu::FilterLimits& limits) {
  const std::string& name = model.hmm.name;
  claimed.resize(blocks.size(), claimed.empty());
  const auto targets = upload(blocks);
  const auto made = run(model, *targets, claimed, limits);
  EXPECT_TRUE(made) << name << ": " << (made ? "" : made.error().to_string());
  if (!made) return 0;
  const gpu::CascadeResult& result = *made;
  const auto& packed = targets->packed();
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> sorted;  // by block and index
  for (std::uint32_t t = 0; t < packed.targets.size(); ++t) {
    const auto& origin = packed.origins[packed.targets.original[t]];
    sorted[{origin.block, origin.index}] = t;
  }
  // Scores of every stage that has seen a target.
  const auto scores = [&](std::uint32_t b, std::uint32_t i, const CpuPair& pair) {
    const std::uint32_t t = sorted.at({b, i});
    const int L = blocks[b]->length(i);
    const auto where = [&] {
      return fmt::format("{} (M {}) x {} (L {}) of block {}", name, model.hmm.M, i, L, b);
    };
    if (const auto v = answers_.viterbi.find(t); v != answers_.viterbi.end()) {
      const std::uint32_t status = v->second >> 16;
      EXPECT_NE(status, dev::kStatusNoResult) << where();
      const float nats = status == dev::kStatusOverflow
                             ? std::numeric_limits<float>::infinity()
                             : reference::viterbi_nats(
                                   model.words, static_cast<std::int16_t>(v->second & 0xffffu), L);
      EXPECT_EQ(nats, pair.viterbi) << where();
      EXPECT_GE(pair.stage, CpuPair::kFailsViterbi) << where();
    }
    if (const auto s = answers_.bias.find(t); s != answers_.bias.end()) {
      EXPECT_NEAR(s->second + null_score(L), pair.bias, layout::bias_guard(s->second, L))
          << where();
      EXPECT_GE(pair.stage, CpuPair::kFailsBias) << where();
    }
    if (const auto f = answers_.forward.find(t); f != answers_.forward.end()) {
      EXPECT_TRUE(f->second == pair.forward ||
                  std::abs(f->second - pair.forward) <=
                      layout::kForwardGuard +
                          layout::kForwardGuardPerResidue * static_cast<float>(L))
          << where() << ": " << f->second << ", CPU " << pair.forward;
      EXPECT_GE(pair.stage, CpuPair::kFailsForward) << where();
    }
  };
  const DecisionCounts counts =
      expect_cpu_decisions(model, blocks, claimed, result.blocks, limits, scores);
  // Without the gate or the MSV kernel only the host knows which blocks are this device's to do.
  EXPECT_GE(result.open, counts.open) << name;
  if (std::ranges::find(claimed, false) == claimed.end()) {
    EXPECT_EQ(result.open, counts.open) << name;
  }
  EXPECT_EQ(result.passed, counts.passed) << name;
  EXPECT_EQ(result.passed_targets.size(), counts.passed) << name;
  if (result.forward_targets > 0) {
    EXPECT_EQ(result.forward_targets, counts.passed + counts.failed_forward) << name;
    EXPECT_EQ(result.forward_targets, answers_.forward.size()) << name;
  }
  EXPECT_EQ(result.viterbi_targets, answers_.viterbi.size()) << name;
  opened += counts.open;
  survivors += result.survivors;
  return counts.passed;
}

}  // namespace hmmjit::tests
