// Hits of one model that exceed the memory of a search.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/sorted.hpp"
#include "search/hit_coding.hpp"
#include "search/hits.hpp"

namespace hmmjit {

/// Hits in a temporary file. Their order and all values are those of finish_hits. One thread at a
/// time.
class StoredHits {
 public:
  /// `model`: its name, for errors. `alignments`: hits have the text of their alignments. `memory`:
  /// bound on buffers and hits while they are read; at least some 100 kB.
  StoredHits(std::string model, const ModelThresholds& thresholds, bool alignments,
             std::uint64_t memory)
      : model_(std::move(model)),
        thresholds_(thresholds),
        memory_(memory),
        hits_(memory, HitOrder{alignments}) {}

  /// Stores candidates, in any order, as one sorted run. Frees `hits`. Fails with kOutput.
  Status add(std::vector<Hit>& hits);
  /// Call it after the last add. Returns the totals of all candidates, as finish_hits computes them,
  /// without the hits.
  Result<HitList> finish(const FilterCounters& counters,
                         std::optional<std::uint64_t> whole_targets);

  // Then, any number of times:

  enum class Which { kReported, kCandidates };
  /// Goes to the first hit. `which`: the hits that next() returns.
  Status begin(Which which = Which::kReported);
  /// The next hit, judged; false after the last. Fails with kOutput, and with kInternal if a target
  /// occurs twice, reported or not.
  Result<bool> next(Hit& hit);
  /// Calls `use` with all hits in order, in lots that fit in memory. `use` may change the vector.
  Status in_lots(const std::function<Status(std::vector<Hit>&)>& use,
                 Which which = Which::kReported);
  /// Reported domains of the hits read since begin().
  std::uint64_t domains_reported() const { return domains_reported_; }
  std::uint64_t memory() const { return memory_; }

 private:
  // The scores that decide whether a target is reported and included.
  struct Scores {
    double log_p = 0;
    float bits = 0;
  };

  std::string model_;
  ModelThresholds thresholds_;
  std::uint64_t memory_;
  Sorted<Hit, HitOrder> hits_;
  std::optional<SpoolFile> scores_;           // of all candidates
  std::uint64_t candidates_ = 0, bytes_ = 0;  // of the candidates in memory
  std::size_t longest_name_ = 0, longest_accession_ = 0, longest_shown_ = 0;
  double Z_ = 0, domZ_ = 0;
  std::optional<std::uint64_t> last_target_;  // that was read
  std::uint64_t domains_reported_ = 0;
  Which which_ = Which::kReported;
};

}  // namespace hmmjit
