// Forward and everything after it: Backward, posterior decoding, regions, stochastic ensemble,
// clustering, envelopes, optimal accuracy alignment, null2, scores. Bit-identical to hmmsearch:
// each sequence keeps HMMER's four-lane float order; wider vectors hold several sequences,
// envelopes or samples side by side. All calls must run inside a FlushToZeroScope.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/hidden.hpp"
#include "model/parsed_target.hpp"
#include "model/profile.hpp"
#include "model/targets.hpp"

namespace hmmjit::domain {

/// One alignment column per trace element, from first to last match. `rf`, `cs` are empty if the
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

/// Scores of a target that passed the Forward filter and has at least one domain.
struct TargetScore {
  float bits = 0;             ///< final per-sequence score
  float pre_bits = 0;         ///< before null2; the printed bias is pre_bits - bits
  float correction_nats = 0;  ///< null2 sum over all domains
  double log_p = 0;
  float expected_domains = 0;
  int regions = 0, clustered = 0, overlaps = 0, envelopes = 0;
  std::size_t best_domain = 0;
  std::vector<Domain> domains;  ///< by position
  bool operator==(const TargetScore&) const = default;
};

struct DomainOptions {
  bool null2 = true;
  std::uint32_t seed = 42;
  bool reseed = true;  ///< false for --seed 0: one generator per workspace, never reset
  /// Largest matrix that a call may allocate; 0: half of the machine's memory. If a region needs
  /// more, the call throws MatrixTooLarge.
  std::size_t max_matrix_bytes = 0;
  /// Targets longer than this are parsed in parts of `rows_of_part` rows (0: as many as suit the
  /// target, see LongTarget), with more work, identical bits, and less memory.
  int longest_in_one = 1 << 18, rows_of_part = 0;
  bool operator==(const DomainOptions&) const = default;
};

/// A region or envelope whose matrix (12 bytes * residues * M) exceeds the limit. The message names
/// target, model and size.
class MatrixTooLarge : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Decides whether target n of a batch passes the filter with this Forward score.
using PassesForward = std::function<bool(std::size_t n, float forward_nats)>;

/// Decides whether target n of a batch can appear in any output, from its bits, pre_bits and log_p.
using WantedTarget = std::function<bool(std::size_t n, const TargetScore& score)>;

/// Four-lane striped odds of one model. Immutable, shareable.
class ForwardTables {
 public:
  explicit ForwardTables(const SearchModel& model);
  struct Tables;
  const Tables& tables() const { return *tables_; }
  const SearchModel& model() const { return *model_; }

 private:
  const SearchModel* model_;
  Hidden<Tables> tables_;
};

/// Core-seconds (thread CPU time) of a pass, and its cells (nodes times residues); no cells if the
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
/// Accumulated by a workspace (for --stats). `forward` is the filter, over whole targets; Forward
/// over regions counts as `ensemble`. `envelope`: everything computed from an envelope's cells.
struct DomainTimes {
  DomainPass forward, backward, decoding, ensemble, clustering, envelope, alignment;
  DomainTimes& operator+=(const DomainTimes& other);
};

/// The matrices and buffers of one thread. They grow as needed and are reused.
class Workspace {
 public:
  Workspace();
  struct State;
  State& state() { return *state_; }
  const DomainTimes& times() const;
  /// Releases all memory, for example after an exception in this stage. Times and the state of the
  /// random number generator are kept.
  void release_memory();

 private:
  Hidden<State> state_;
};

/// Forward score in nats; std::nullopt if it underflows to zero or is not finite (the target is
/// then skipped; HMMER aborts).
std::optional<float> forward_filter(const ForwardTables& model, std::span<const Residue> residues,
                                    Workspace& workspace);
/// Scores several targets of similar length side by side in wide vectors; scores[i] is NaN where
/// forward_filter would return nothing. Bit-identical to forward_filter.
void forward_filter_batch(const ForwardTables& model,
                          std::span<const std::span<const Residue>> targets,
                          std::span<float> scores, Workspace& workspace);

/// The Forward filter and everything after it for several targets of one model, which share
/// vectors; results are bit-identical to single calls. results[n] belongs to targets[n] and is
/// empty if the target does not pass or has no domain. forward_nats[n] receives the Forward score,
/// or NaN where forward_filter would return nothing (`passes` is not called for such targets).
/// Targets that are not `wanted` (if given) yield nothing. Memory: 12 bytes * residues * M of the
/// largest region with several domains, 5 to 20 % of that for envelopes, and some 100 bytes per
/// residue of the batch. 128 targets per call fill the vectors; up to 512 save a few per cent.
/// `parsed`: a device's findings for each target, or null; empty: none.
void score_targets_batch(const ForwardTables& model, std::span<const TargetView> targets,
                         const PassesForward& passes, const DomainOptions& options,
                         Workspace& workspace, std::span<float> forward_nats,
                         std::span<std::optional<TargetScore>> results,
                         const WantedTarget& wanted = {},
                         std::span<const ParsedTarget* const> parsed = {});

struct EmissionRows;  // domain/tables.hpp

struct FoundEnvelope {
  int first, last;     ///< residues of the target, 1-based, inclusive
  std::size_t region;  ///< index of its region in the target
  bool operator==(const FoundEnvelope&) const = default;
};

/// The part of score_targets_batch up to the envelopes, with emissions other than the model's:
/// `parse` for Forward, Backward and their decoding, `sample` for sampled traces. envelopes[n] are
/// those of target n, in order; empty if it does not pass. `parsed` must have used these emissions.
void find_envelopes_batch(const ForwardTables& model, const EmissionRows& parse,
                          const EmissionRows& sample, std::span<const TargetView> targets,
                          const PassesForward& passes, const DomainOptions& options,
                          Workspace& workspace, std::span<float> forward_nats,
                          std::span<std::vector<FoundEnvelope>> envelopes,
                          std::span<const ParsedTarget* const> parsed = {});

}  // namespace hmmjit::domain
