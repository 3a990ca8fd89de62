// Hits of one model that there is no room for in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/spool_file.hpp"
#include "search/hits.hpp"
#include "search/spool_run.hpp"

namespace hmmjit {

/// Sorted runs of hits in a temporary file without a name, merged as they are read: the order and
/// every value are those of finish_hits. One thread at a time.
class StoredHits {
 public:
  /// `model`: its name, for errors. `alignments`: hits have the text of their alignments. `memory`:
  /// bytes that reading may hold, of buffers and hits, at least some 100 kB.
  StoredHits(std::string model, const ModelThresholds& thresholds, bool alignments,
             std::uint64_t memory)
      : model_(std::move(model)),
        thresholds_(thresholds),
        alignments_(alignments),
        memory_(memory) {}

  /// Takes candidates in any order, as one run, and leaves `hits` empty and without memory. Fails
  /// with kOutput.
  Status add(std::vector<Hit>& hits);
  /// After the last add: the sums of all candidates, as finish_hits gives them, without the hits.
  Result<HitList> finish(const FilterCounters& counters,
                         std::optional<std::uint64_t> whole_targets);

  // Then, as often as wanted:

  enum class Which { kReported, kCandidates };
  /// Goes to the first hit. `which`: those that follow.
  Status begin(Which which = Which::kReported);
  /// The next hit, judged; false after the last. Fails with kOutput, and with kInternal where a
  /// target is there twice, whether it is one of those that follow or not.
  Result<bool> next(Hit& hit);
  /// Calls `use` with all hits in order, as many at a time as fit; the vector is its own to change.
  Status in_lots(const std::function<Status(std::vector<Hit>&)>& use,
                 Which which = Which::kReported);
  /// Reported domains of the hits read since begin().
  std::uint64_t domains_reported() const { return domains_reported_; }
  std::uint64_t memory() const { return memory_; }

 private:
  struct Record {
    std::string_view bytes;  // of `hit`
    Hit hit;
  };
  // What decides whether a target is reported and included.
  struct Sum {
    double log_p = 0;
    float bits = 0;
  };
  // Calls `use` with the bytes of all sums, in pieces.
  Status for_each_sum(const std::function<Status(std::string_view)>& use);

  Status append(const Hit& hit);
  // Several runs become one, so that no more are read at a time than buffers have room for.
  Status merge_runs();
  // Begins to read all of them.
  Status open_runs();

  std::string model_;
  ModelThresholds thresholds_;
  bool alignments_;
  std::uint64_t memory_;
  std::optional<SpoolFile> file_;
  std::vector<SpoolRange> runs_;              // of records
  std::vector<std::uint64_t> sums_ends_;      // of each: a Sum of each of its records follows it
  std::uint64_t candidates_ = 0, bytes_ = 0;  // of the records
  std::size_t longest_name_ = 0, longest_accession_ = 0, longest_shown_ = 0;
  double Z_ = 0, domZ_ = 0;
  std::optional<MergedRuns<Record>> merged_;  // while they are read
  std::optional<std::uint64_t> last_target_;  // that was read
  std::uint64_t domains_reported_ = 0;
  bool all_ = false;  // candidates that are not reported, too
  std::string scratch_;
};

}  // namespace hmmjit
