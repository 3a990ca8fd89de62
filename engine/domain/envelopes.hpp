// Scores envelopes in sets that fill the vectors.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "domain/alignment.hpp"
#include "domain/kernels.hpp"

namespace hmmjit::domain {

/// Buffers of one thread.
class EnvelopeScorer {
 public:
  /// Sets the envelopes to score and align. `sums`: with null2 by expectation. `max_bytes`: limit
  /// on the choices of a set, unless it has only one envelope.
  void start(const ForwardTables& model, const EmissionRows& emission, std::vector<Job>&& jobs,
             bool sums, std::size_t max_bytes);
  /// Scores the next set and returns its jobs; empty if there are no more.
  std::span<const Job> next();
  /// Keeps the posteriors of all cells, 8 bytes each, and not only those that are displayed.
  void keep_all_posteriors() { space_.hot.above = -1.0f; }
  /// Results of the current set.
  float forward_nats(const Job& job) const { return forward_score(lanes_, job); }
  AccuracyChoices choices(const Job& job) const {
    return {*tables_, *kernel_, lanes_, space_, job};
  }
  /// Minimum memory for the choices of an envelope, in bytes.
  static std::size_t choice_bytes(const ForwardTables& model, int L);

 private:
  std::size_t set_size() const;

  const ForwardTables::Tables* tables_ = nullptr;
  const EmissionRows* emission_ = nullptr;
  const Kernels* kernel_ = nullptr;
  std::vector<Job> jobs_;
  std::size_t at_ = 0;
  bool sums_ = false;
  std::size_t max_bytes_ = 0;
  Lanes lanes_;
  EnvelopeSpace space_;
};

}  // namespace hmmjit::domain
