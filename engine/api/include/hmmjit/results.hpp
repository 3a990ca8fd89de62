// Results of a search: hits, domains, alignments.
//
//   for (const hmmjit::Hit& hit : results.models[0].hits())
//     if (hit.reported) std::cout << hit.name << ' ' << hit.score << ' ' << hit.e_value << '\n';
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "hmmjit/error.hpp"
#include "hmmjit/hmmjit.h"

HMMJIT_BEGIN_NAMESPACE

// For members see hmmjit.h. Texts are never null. Coordinates are 1-based and inclusive, indices
// count from 0.
// Source: Eddy 2011 (PLoS Comput Biol 7:e1002195) and the HMMER user's guide, "Tabular output".
using Hit = hmmjit_hit;
using Domain = hmmjit_domain;
using FilterCounts = hmmjit_filter_counts;
using ResultInfo = hmmjit_result_info;

/// The result of one model. Immutable; copies share; threads may share it. Spans, texts and
/// references stay valid while any copy lives. Only bytes and from_bytes throw.
class HMMJIT_EXPORT ModelResult : public SharedHandle<const struct ModelResultImpl> {
 public:
  using SharedHandle::SharedHandle;
  /// The model, the search space, and the targets that passed each filter.
  const ResultInfo& info() const;
  /// The candidates of hmmsearch: first the reported targets, in hmmsearch's order (best first),
  /// then candidates that missed the thresholds.
  std::span<const Hit> hits() const;
  /// Domains of all hits, in the order of hits.
  std::span<const Domain> domains() const;
  /// Domains of one hit, reported or not, by position.
  std::span<const Domain> domains(const Hit& hit) const {
    return domains().subspan(hit.first_domain, hit.domains);
  }

  /// Serialised, for another process with the same version of the library.
  std::string bytes() const;
  /// The inverse of bytes(). Throws Error kInput for other bytes.
  static ModelResult from_bytes(std::string_view bytes);
};

HMMJIT_END_NAMESPACE
