// Forward and everything after it: Backward, posterior decoding, regions, stochastic ensemble,
// clustering, envelopes, optimal accuracy alignment, null2, scores. Bit-equal to hmmsearch: each
// sequence keeps the reference's four-lane float order; wider vectors hold several sequences,
// envelopes or samples side by side. All calls must run inside a FlushToZeroScope.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/parsed_target.hpp"
#include "model/profile.hpp"
#include "model/targets.hpp"

namespace hmmjit::domain {

/// One alignment column per trace element from first to last match. `rf`, `cs` empty when the
/// model has no such annotation.
struct Alignment {
  std::string rf, cs, model, match, sequence, pp;
  bool operator==(const Alignment&) const = default;
};

/// One scored domain envelope. Coordinates are 1-based, inclusive.
struct Domain {
  int ienv = 0, jenv = 0;        ///< envelope on the target
  int iali = 0, jali = 0;        ///< alignment on the target
  int hmm_from = 0, hmm_to = 0;  ///< alignment on the model
  float envelope_nats = 0;       ///< Forward score of the envelope
  float correction_nats = 0;     ///< null2 sum over the envelope
  float bias_nats = 0;           ///< dombias
  float accuracy_sum = 0;        ///< expected accuracy (oasc)
  float bits = 0;
  double log_p = 0;
  Alignment alignment;
  bool operator==(const Domain&) const = default;
};

/// Scores of one target that passed the Forward filter and has at least one domain.
struct TargetScore {
  float bits = 0;             ///< final per-sequence score
  float pre_bits = 0;         ///< before null2; bias printed = pre_bits - bits
  float correction_nats = 0;  ///< null2 sum over all domains
  double log_p = 0;
  float expected_domains = 0;
  int regions = 0, clustered = 0, overlaps = 0, envelopes = 0;
  std::size_t best_domain = 0;
  std::vector<Domain> domains;  ///< in position order
  bool operator==(const TargetScore&) const = default;
};

struct DomainOptions {
  bool null2 = true;
  std::uint32_t seed = 42;
  bool reseed = true;  ///< false for --seed 0: one generator per workspace, never reset
  /// Largest matrix one call may allocate; 0: half of the machine's memory. A region that needs
  /// more makes the call throw MatrixTooLarge.
  std::size_t max_matrix_bytes = 0;
  /// Targets longer than this are parsed in parts of `rows_of_part` rows: more work, the same bits,
  /// and memory that does not grow with the length.
  int longest_in_one = 1 << 18, rows_of_part = 1 << 16;
  bool operator==(const DomainOptions&) const = default;
};

/// A region or envelope whose matrix (12 bytes * residues * M) exceeds the limit. The message names
/// target, model and size.
class MatrixTooLarge : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Whether target n of a batch passes the filter with this Forward score.
using PassesForward = std::function<bool(std::size_t n, float forward_nats)>;

/// Whether target n of a batch can appear in any output, by its bits, pre_bits and log_p.
using WantedTarget = std::function<bool(std::size_t n, const TargetScore& score)>;

/// Four-lane striped odds of one model. Immutable, shareable.
class ForwardTables {
 public:
  explicit ForwardTables(const SearchModel& model);
  ~ForwardTables();
  ForwardTables(ForwardTables&&) noexcept;
  struct Tables;
  const Tables& tables() const { return *tables_; }
  const SearchModel& model() const { return *model_; }

 private:
  const SearchModel* model_;
  std::unique_ptr<const Tables> tables_;
};

/// Core-seconds (thread CPU time) of a pass and its cells, nodes times residues; no cells where the
/// time does not depend on them.
struct DomainPass {
  double seconds = 0;
  std::uint64_t cells = 0;
  DomainPass& operator+=(const DomainPass& other) {
    seconds += other.seconds;
    cells += other.cells;
    return *this;
  }
};
/// Accumulated by a workspace (for --stats). `forward`: the filter, over whole targets; that of the
/// regions counts as `ensemble`. `envelope`: everything that is computed of its cells.
struct DomainTimes {
  DomainPass forward, backward, decoding, ensemble, clustering, envelope, alignment;
  DomainTimes& operator+=(const DomainTimes& other);
};

/// The matrices and buffers of one thread. They grow as needed and are reused.
class Workspace {
 public:
  Workspace();
  ~Workspace();
  Workspace(Workspace&&) noexcept;
  struct State;
  State& state() { return *state_; }
  const DomainTimes& times() const;
  /// Releases all memory, as after an exception of this stage. Times and the state of the random
  /// number generator stay.
  void release_memory();

 private:
  std::unique_ptr<State> state_;
};

/// Forward score in nats; std::nullopt when it underflows to zero or is not finite (the target is
/// then skipped; the reference aborts).
std::optional<float> forward_filter(const ForwardTables& model, std::span<const Residue> residues,
                                    Workspace& workspace);
/// Several targets of similar length side by side in wide vectors; scores[i] is NaN where
/// forward_filter would return nothing. Bits equal to forward_filter's.
void forward_filter_batch(const ForwardTables& model,
                          std::span<const std::span<const Residue>> targets,
                          std::span<float> scores, Workspace& workspace);

/// Forward filter and everything after it, for several targets of one model: equal work of
/// different targets shares vectors, with the bits of single calls. results[n] belongs to
/// targets[n]: nothing where the target does not pass or has no domain. forward_nats[n] receives
/// the Forward score, NaN where forward_filter would return nothing (such targets are not offered
/// to `passes`). Targets that are not `wanted` (if given) yield nothing. Memory: 12 bytes *
/// residues * M of the largest region of several domains, a twentieth to a fifth of that for
/// envelopes, and some 100 bytes a residue of the batch. 128 targets a call fill the vectors; up to
/// 512 save a few per cent. `parsed`: a device's findings for each target, or null; empty: none.
void score_targets_batch(const ForwardTables& model, std::span<const TargetView> targets,
                         const PassesForward& passes, const DomainOptions& options,
                         Workspace& workspace, std::span<float> forward_nats,
                         std::span<std::optional<TargetScore>> results,
                         const WantedTarget& wanted = {},
                         std::span<const ParsedTarget* const> parsed = {});

struct EmissionRows;  // domain/tables.hpp

struct FoundEnvelope {
  int first, last;     ///< residues of the target, 1-based, inclusive
  std::size_t region;  ///< number of its region in the target
};

/// The part of score_targets_batch up to the envelopes, with other emissions than the model's:
/// `parse` in Forward, Backward and their decoding, `sample` for sampled traces. envelopes[n]: of
/// target n, in order; empty where it does not pass. `parsed`: with these emissions.
void find_envelopes_batch(const ForwardTables& model, const EmissionRows& parse,
                          const EmissionRows& sample, std::span<const TargetView> targets,
                          const PassesForward& passes, const DomainOptions& options,
                          Workspace& workspace, std::span<float> forward_nats,
                          std::span<std::vector<FoundEnvelope>> envelopes,
                          std::span<const ParsedTarget* const> parsed = {});

}  // namespace hmmjit::domain
