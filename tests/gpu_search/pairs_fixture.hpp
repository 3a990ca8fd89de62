// Pairs of model and target through a device's filters, one chain at a time and without the threads
// of GpuFilters, held against the CPU pair by pair: status, scores and counts of every stage.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "domain/domain.hpp"
#include "fake_driver/fake_driver.hpp"
#include "gpu/cascade.hpp"
#include "gpu/kernel_store.hpp"
#include "kernel_script.hpp"
#include "search/host_filters.hpp"

namespace hmmjit::tests {

/// The result of the CPU's filters for one pair.
struct CpuPair {
  /// The first stage at which it fails; kPassed: none.
  enum Stage { kFailsMsv, kFailsBias, kFailsViterbi, kFailsForward, kPassed } stage = kFailsMsv;
  float msv = 0, bias = 0, viterbi = 0, forward = 0;  ///< nats; of all stages, reached or not
};

/// Targets that reach every stage of a model: fragments of all its parts, its last positions among
/// them, more and less alike; background, odd and tandem ones.
std::vector<std::vector<Residue>> targets_for(const Hmm& hmm, std::uint64_t seed);
/// Part of the consensus: positions `from` to `to`, 1-based, that share of them unchanged.
std::vector<Residue> fragment_of(const Hmm& hmm, std::uint64_t seed, int from, int to,
                                 double identity);
std::shared_ptr<TargetBlock> block_of(const std::vector<std::vector<Residue>>& targets,
                                      std::uint64_t first_index = 0);
std::vector<CpuPair> cpu_pairs(const SearchModel& model, const TargetBlock& block,
                               const gpu::FilterLimits& limits = {});

/// What a device says of the blocks of a model against the CPU: every target's decision, the score
/// of what is left open, and the counts. Blocks that were not claimed have no say. `each` is called
/// for every target that is not empty.
struct DecisionCounts {
  std::uint64_t survivors = 0, open = 0, passed = 0, failed_forward = 0;
};
DecisionCounts expect_cpu_decisions(
    const SearchModel& model, const std::vector<std::shared_ptr<TargetBlock>>& blocks,
    const std::vector<bool>& claimed, const std::vector<gpu::FilteredBlock>& results,
    const gpu::FilterLimits& limits = {},
    const std::function<void(std::uint32_t block, std::uint32_t index, const CpuPair&)>& each = {});

/// A usual model of that length, always the same.
SearchModel model_of(int M, const Alphabet& alphabet = amino_alphabet());
/// The kernels of a model's class once they have been planned.
const gpu::KernelClass& planned(gpu::KernelStore& kernels, const SearchModel& model);

/// One device, its chain kernels and one lane.
class Chains {
 public:
  explicit Chains(std::unique_ptr<gpu::KernelSource> source,
                  std::size_t most_scratch = std::size_t{1} << 30);
  const gpu::KernelClass& planned(const SearchModel& model) {
    return tests::planned(kernels, model);
  }
  Result<std::array<gpu::ReadyKernel, gpu::kLinks>> ready(const SearchModel& model);
  std::shared_ptr<gpu::DeviceTargets> upload(
      const std::vector<std::shared_ptr<TargetBlock>>& blocks);
  /// All filters of the model over the blocks; with the kernels there are now.
  Result<gpu::CascadeResult> run(const SearchModel& model, gpu::DeviceTargets& targets,
                                 const std::vector<bool>& claimed,
                                 const gpu::FilterLimits& limits = {});
  Result<gpu::CascadeResult> run(const SearchModel& model, gpu::DeviceTargets& targets,
                                 const std::array<gpu::ReadyKernel, gpu::kLinks>& given,
                                 const std::vector<bool>& claimed,
                                 const gpu::FilterLimits& limits = {});
  /// run(), and everything it says compared with the CPU. Returns how many targets went through all
  /// stages on the device.
  std::size_t compare(const SearchModel& model,
                      const std::vector<std::shared_ptr<TargetBlock>>& blocks,
                      std::vector<bool> claimed = {}, const gpu::FilterLimits& limits = {});

  FakeDriver fake;
  gpu::KernelStore kernels{{}};
  std::uint64_t opened = 0, survivors = 0;  ///< of all chains compared
  std::map<std::string, int> launches;      ///< of each kernel

 private:
  // Answers of the kernels of one chain, by target in sorted order.
  struct Answers {
    std::map<std::uint32_t, std::uint32_t> viterbi;
    std::map<std::uint32_t, float> bias, forward;
  };
  void note(const FakeLaunch& launch);

  std::shared_ptr<driver::Driver> driver_;
  driver::DevicePtr device_;
  driver::Event origin_;
  std::unique_ptr<gpu::Cascade> cascade_;
  Answers answers_;
};

}  // namespace hmmjit::tests
