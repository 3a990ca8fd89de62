// Vectorised SSV, MSV, bias and Viterbi filters with run-time dispatch (SSE4, AVX2, AVX-512),
// bit-identical to engine/reference for every input.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "core/hidden.hpp"
#include "model/profile.hpp"
#include "reference/filters.hpp"
#include "reference/scans.hpp"

namespace hmmjit::cpu {

/// Supported instruction sets that this CPU can execute, best first; named as in --stats ("AVX3",
/// "AVX2", "SSE4", "NEON", "SCALAR").
std::vector<std::string_view> available_targets();

/// How a processor executes 512-bit vectors. Affects the choice of kernels, but not the results.
enum class VectorPorts {
  kOneForMaxima,  ///< one port for maxima and saturating additions, two at half the width (Intel)
  kAlikeForAll,   ///< as many ports as for narrower vectors, or as many bytes per clock (AMD)
};
VectorPorts vector_ports_here();

/// A diagonal in one of several targets.
struct FoundDiagonal {
  std::size_t target;
  reference::Diagonal diagonal;
};

/// Rows of one of several targets, as residue indices `first` to `last` - 1.
struct MarkedRows {
  std::size_t target, first, last;
};
/// Appends rows of the last target or a later one, or merges them with the last ones.
void mark(const MarkedRows& rows, std::vector<MarkedRows>& marked);

/// Scratch rows of one thread; grows to the longest model, then never allocates.
class FilterScratch {
 public:
  FilterScratch();
  struct State;
  State& state() { return *state_; }

 private:
  Hidden<State> state_;
};

/// Striped tables of one model for the widest vectors of this CPU (or, in tests, of a named
/// target). Immutable after construction, except by add_words(); threads may share it.
class FilterTables {
 public:
  /// `target`: one of available_targets(); empty: the best one. Omits Viterbi if the model has no
  /// words yet.
  explicit FilterTables(const SearchModel& model, std::string_view target = {},
                        VectorPorts ports = vector_ports_here());
  /// Adds the tables of Viterbi if missing. Meanwhile, other threads may run the other filters.
  void add_words(const WordProfile& words);

  reference::SsvResult ssv(std::span<const Residue> residues, FilterScratch& scratch) const;
  /// results[i] = ssv(targets[i]), with targets interleaved if the model is short. `results` is as
  /// long as `targets`.
  void ssv_batch(std::span<const std::span<const Residue>> targets,
                 std::span<reference::SsvResult> results, FilterScratch& scratch) const;
  /// True if `ssv` may read bytes that are not residue codes; such a score is meaningless.
  bool ssv_takes_any_byte() const;
  float msv_recurrence(std::span<const Residue> residues, FilterScratch& scratch) const;
  /// SSV, then the recurrence if SSV has no result. In nats; +inf on overflow.
  float msv_filter(std::span<const Residue> residues, FilterScratch& scratch) const;
  /// In nats; +inf on overflow, -inf without a path.
  float viterbi_filter(std::span<const Residue> residues, FilterScratch& scratch) const;
  /// The results of reference::ssv_scan for all targets in order, each with the index of its
  /// target. `profile` must belong to the same model. `marked`: all rows in which a cell may reach
  /// the threshold, in order, as found by a device; null: finds them.
  void ssv_scan(const ByteProfile& profile, const reference::SsvScan& scan,
                std::span<const std::span<const Residue>> targets, FilterScratch& scratch,
                std::vector<FoundDiagonal>& found,
                const std::vector<MarkedRows>* marked = nullptr) const;
  /// Same as reference::viterbi_scan; `words` must belong to the same model.
  void viterbi_scan(const WordProfile& words, int move, int threshold,
                    std::span<const Residue> residues, FilterScratch& scratch,
                    std::vector<reference::Diagonal>& records) const;
  float bias_filter(std::span<const Residue> residues) const;
  /// scores[i] = bias_filter(targets[i]). Interleaves targets, which is many times faster, best
  /// with two dozen or more. `scores` is as long as `targets`.
  void bias_filter_batch(std::span<const std::span<const Residue>> targets,
                         std::span<float> scores) const;

  struct Tables;

 private:
  Hidden<Tables> tables_;
};

}  // namespace hmmjit::cpu
