// Computes some of a device's results again on the CPU and compares them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/mutex.hpp"
#include "gpu/cascade.hpp"
#include "search/model_job.hpp"
#include "search/search.hpp"

namespace hmmjit::search_run {

/// Decides how many of a device's results are computed again on the CPU, and counts the checks.
///
/// By default checks take at most one hundredth of the core-seconds that the search has used so
/// far. Within this budget, some targets of every fourth chain are checked. Beyond it, only the
/// first target of each stage of each kernel is, so that every kernel of a search is checked.
/// Thread-safe.
class CheckBudget {
 public:
  /// `per_model`: targets to check per model at any cost; none: the default.
  explicit CheckBudget(std::optional<int> per_model) : per_model_(per_model) {}
  bool off() const { return per_model_ == 0; }

  /// The targets that a chain over `blocks` of the `offered` blocks of a model must return.
  gpu::SampleRequest request(std::uint64_t model, const std::vector<gpu::UsedKernel>& kernels,
                             std::size_t blocks, std::size_t offered);
  /// Whether the budget allows a check of `cells` cells.
  bool wanted(gpu::Link link, std::uint64_t cells) const;
  /// Counts a check of a score from this link, which took `seconds` core-seconds.
  void made(gpu::Link link, const std::vector<gpu::UsedKernel>& kernels, std::uint64_t cells,
            double seconds);
  /// Counts the core-seconds spent on choosing targets.
  void took(double seconds) { nanoseconds_ += static_cast<std::uint64_t>(1e9 * seconds); }
  /// Whether a kernel of this link has never been checked.
  bool unchecked(gpu::Link link, const std::vector<gpu::UsedKernel>& kernels) const;
  /// Targets to check in a batch of scored ones; none: the budget decides.
  std::optional<int> per_model() const { return per_model_; }

  std::uint64_t checks() const { return checks_; }
  std::uint64_t chains() const { return chains_; }
  double seconds() const { return 1e-9 * static_cast<double>(nanoseconds_); }

 private:
  double budget_left() const;

  const std::optional<int> per_model_;
  const double begun_ = process_seconds();
  std::atomic<std::uint64_t> checks_{0}, chains_{0}, nanoseconds_{0};
  std::atomic<std::uint64_t> offered_{0};  // chains
  mutable Mutex mutex_;
  std::set<gpu::UsedKernel> checked_ HMMJIT_GUARDED_BY(mutex_);
  // Chains sampled for the first check of each kernel.
  std::map<gpu::UsedKernel, int> asked_ HMMJIT_GUARDED_BY(mutex_);
  struct Cost {
    double seconds, cells;
  };
  std::array<Cost, gpu::kLinks> costs_ HMMJIT_GUARDED_BY(mutex_){};

  static double process_seconds();
};

/// A result on which a device and the CPU differ. Values in nats, numbers of targets, or parts.
struct Difference {
  plan::Stage stage;        ///< whose kernels are wrong
  std::string target = {};  ///< empty: a list of targets
  std::string device, cpu;  ///< their results
};

/// The parts of a domain, as text.
std::vector<std::string> parts_of(const domain::Domain& domain);
/// Of two results in parts that differ: the first part, and the first one that differs.
Difference first_difference(plan::Stage stage, std::string target,
                            const std::vector<std::string>& device,
                            const std::vector<std::string>& cpu);

/// A difference is an error that names the kernel. Thread-safe.
class Verifier {
 public:
  /// `alone`: memory limits of a thread that computes a target while no other thread does.
  Verifier(const SearchOptions& options, SearchProgress& progress,
           const domain::DomainOptions& alone)
      : budget_(options.verify), options_(options), progress_(progress), alone_(alone) {}

  bool off() const { return budget_.off(); }
  /// The targets that a chain over `blocks` blocks with these kernels must return for checks.
  gpu::SampleRequest sample(ModelJob& job, const std::vector<gpu::UsedKernel>& kernels,
                            std::size_t blocks);
  /// Records the kernels that a block was computed with, and checks its sampled targets.
  Status check_block(ModelJob& job, const TargetBlock& targets, const gpu::BlockSample& sample,
                     ThreadState& local);
  /// Scores some targets again that a device has parsed. `local` holds a batch with its scores.
  /// With --seed 0, targets whose scores depend on sampled traces are skipped.
  Status check_scores(ModelJob& job, const ThreadState& local, const domain::PassesForward& passes,
                      const domain::WantedTarget& wanted);

  // For searches of long targets, whose threads go on until they see failed().

  /// How many pieces of each of a device's answers to choose for check_piece().
  int pieces() const { return budget_.per_model().value_or(1); }
  /// A number below `count`, another one each time.
  std::size_t choose(std::size_t count) {
    return static_cast<std::size_t>((++chosen_ * 0x9e3779b97f4a7c15u) >> 32) % count;
  }
  /// Calls `compare` for a piece with `cells` cells of the first kernel, if the budget allows it or
  /// the kernel has never been checked.
  void check_piece(const SearchModel& model, const std::vector<gpu::UsedKernel>& kernels,
                   std::uint64_t cells, const std::function<std::optional<Difference>()>& compare);
  /// Whether a piece has differed; status() is the error then.
  bool failed() const { return failed_; }
  Status status() const;

  void add_to(SearchStatistics& statistics) const;

 private:
  Status different(ModelJob& job, const Difference& difference);
  Status different(const Hmm& model, std::span<const gpu::UsedKernel> kernels,
                   const Difference& difference);
  std::optional<Difference> check_target(ModelJob& job, const TargetBlock& targets,
                                         const gpu::SampledTarget& target, ThreadState& local);

  CheckBudget budget_;
  const SearchOptions& options_;
  SearchProgress& progress_;
  const domain::DomainOptions& alone_;
  std::atomic<std::uint64_t> chosen_{0};
  std::atomic<bool> failed_{false};
  mutable Mutex mutex_;
  Status status_ HMMJIT_GUARDED_BY(mutex_);  // of the pieces
};

}  // namespace hmmjit::search_run
