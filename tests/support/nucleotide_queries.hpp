// Queries of nucleotides for tests, which report nearly everything.
#pragma once

#include "nucleotide/search.hpp"
#include "random_profiles.hpp"

namespace hmmjit::nucleotide {

inline Query query_of(Hmm hmm) {
  Query query;
  query.model = make_search_model(std::move(hmm));
  query.window_length = max_length(query.model->hmm, 1e-7);
  query.report.e_value = 1e6;
  return query;
}

/// With masked nodes, which have no score after the first envelope.
inline Query query_of(std::uint64_t seed, int M) {
  Hmm hmm = test_support::random_hmm(seed, M, test_support::ModelKind::kTypical, dna_alphabet());
  hmm.mm = std::string(static_cast<std::size_t>(M), '.');
  for (std::size_t k = 4; k < hmm.mm.size(); k += 5) hmm.mm[k] = 'm';
  return query_of(std::move(hmm));
}

}  // namespace hmmjit::nucleotide
