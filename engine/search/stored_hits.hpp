// Hits of one model that exceed the memory of a search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/sorted.hpp"
#include "search/hit_coding.hpp"
#include "search/hits.hpp"

namespace hmmjit {

/// Hits of one model that are not all in memory. One thread at a time.
class HitSource {
 public:
  virtual ~HitSource() = default;
  /// Calls `use` with all hits in order, in lots that fit in memory and may be moved from; any
  /// number of times. Fails as next() does.
  Status for_each_lot(const std::function<Status(std::span<Hit>)>& use);
  /// Reported domains of the hits in the last pass.
  std::uint64_t domains_reported() const { return domains_reported_; }
  /// Bound on the memory of each output, in addition to a lot.
  virtual std::uint64_t output_memory() const = 0;

 protected:
  /// Goes to the first hit.
  virtual Status begin() = 0;
  /// The next hit, judged; false after the last.
  virtual Result<bool> next(Hit& hit) = 0;
  /// Frees the buffers for reading hits.
  virtual void end() {}
  virtual std::size_t hits_of_lot() const = 0;

 private:
  std::uint64_t domains_reported_ = 0;
};

/// Hits in a temporary file. Their order and all values are those of finish_hits. One thread at a
/// time.
class StoredHits final : public HitSource {
 public:
  /// `model`: its name, for errors. `alignments`: hits have the text of their alignments. `memory`:
  /// bound on buffers and hits while they are read; at least some 100 kB. `candidates`: hits that are
  /// not reported are passed on as well.
  StoredHits(std::string model, const ModelThresholds& thresholds, bool alignments,
             std::uint64_t memory, bool candidates = false)
      : model_(std::move(model)),
        thresholds_(thresholds),
        memory_(memory),
        all_(candidates),
        hits_(memory, HitOrder{alignments}) {}

  /// Stores candidates, in any order, as one sorted run. Frees `hits`. Fails with kOutput.
  Status add(std::vector<Hit>& hits);
  /// Call it after the last add. Returns the totals of all candidates, as finish_hits computes them,
  /// without the hits.
  Result<HitList> finish(const FilterCounters& counters,
                         std::optional<std::uint64_t> whole_targets);
  std::uint64_t output_memory() const override { return memory_ / 4; }

 private:
  Status begin() override;
  /// Fails with kOutput, and with kInternal if a target occurs twice, reported or not.
  Result<bool> next(Hit& hit) override;
  void end() override { hits_.end(); }
  std::size_t hits_of_lot() const override;

  // The scores that decide whether a target is reported and included.
  struct Scores {
    double log_p = 0;
    float bits = 0;
  };

  std::string model_;
  ModelThresholds thresholds_;
  std::uint64_t memory_;
  bool all_;
  Sorted<Hit, HitOrder> hits_;
  std::optional<SpoolFile> scores_;           // of all candidates
  HitCounts counts_;                          // of the candidates
  std::uint64_t bytes_ = 0;                   // of them in memory
  double Z_ = 0, domZ_ = 0;
  std::optional<std::uint64_t> last_target_;  // that was read
};

}  // namespace hmmjit
