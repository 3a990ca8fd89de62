#include "nucleotide/hits.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <compare>
#include <limits>

#include "model/score_statistics.hpp"

namespace hmmjit::nucleotide {
namespace {

// The hit's first (low) or last (high) residue on the top strand.
int low(const Hit& hit) { return std::min(hit.domain.iali, hit.domain.jali); }
int high(const Hit& hit) { return std::max(hit.domain.iali, hit.domain.jali); }

bool same_subject(const Hit& a, const Hit& b, bool by_name) {
  return by_name ? a.subject->name == b.subject->name : a.subject->index == b.subject->index;
}

// True if both are one occurrence, found in two windows or pieces.
bool duplicates(const Hit& a, const Hit& b, bool by_name) {
  constexpr int kSameEnd = 3;
  constexpr double kSameShare = 0.95;
  if (!same_subject(a, b, by_name) || a.bottom != b.bottom) return false;
  if (std::min(a.domain.hmm_to, b.domain.hmm_to) < std::max(a.domain.hmm_from, b.domain.hmm_from))
    return false;
  const int overlap = std::min(high(a), high(b)) - std::max(low(a), low(b)) + 1;
  const auto covered = [&](const Hit& hit) {
    return static_cast<double>(overlap) >= kSameShare * (high(hit) - low(hit) + 1);
  };
  return std::abs(low(a) - low(b)) <= kSameEnd || std::abs(high(a) - high(b)) <= kSameEnd ||
         covered(a) || covered(b);
}

// Sorts hits by subject and removes duplicates: of two neighbours, keeps the lower P-value.
void remove_duplicates(std::vector<StoredHit>& hits, bool by_name) {
  std::ranges::stable_sort(hits, [&](const StoredHit& x, const StoredHit& y) {
    const Hit &a = x.hit, &b = y.hit;
    if (!same_subject(a, b, by_name))
      return by_name ? a.subject->name < b.subject->name : a.subject->index < b.subject->index;
    if (a.bottom != b.bottom) return b.bottom;
    if (low(a) != low(b)) return low(a) < low(b);
    return high(a) > high(b);
  });
  std::vector<bool> removed(hits.size(), false);
  std::size_t kept = 0;
  for (std::size_t n = 1; n < hits.size(); ++n) {
    if (!duplicates(hits[n].hit, hits[kept].hit, by_name)) {
      kept = n;
    } else if (hits[n].hit.domain.log_p < hits[kept].hit.domain.log_p) {
      removed[kept] = true;
      kept = n;
    } else {
      removed[n] = true;
    }
  }
  std::size_t at = 0;
  std::erase_if(hits, [&](const StoredHit&) { return removed[at++]; });
}

bool passes(const Rule& rule, const domain::Domain& domain) {
  return rule.score ? static_cast<double>(domain.bits) >= *rule.score
                    : e_value(domain.log_p) <= rule.e_value;
}

// HMMER's single-precision logarithm.
float polynomial_log(float x) {
  constexpr float kSqrtHalf = 0.707106781186547524f;
  constexpr float kCoefficients[] = {7.0376836292e-2f,  -1.1514610310e-1f, 1.1676998740e-1f,
                                     -1.2420140846e-1f, 1.4249322787e-1f,  -1.6668057665e-1f,
                                     2.0000714765e-1f,  -2.4999993993e-1f, 3.3333331174e-1f};
  if (x < std::numeric_limits<float>::min()) return -std::numeric_limits<float>::infinity();
  int exponent;
  float f = std::frexp(x, &exponent);
  auto e = static_cast<float>(exponent);
  if (f < kSqrtHalf) {
    e -= 1.0f;
    f = (f - 1.0f) + f;
  } else {
    f = f - 1.0f;
  }
  const float z = f * f;
  float y = kCoefficients[0];
  for (int i = 1; i < 9; ++i) y = y * f + kCoefficients[i];
  y = y * f;
  y = y * z;
  y = y + e * -2.12194440e-4f;
  y = y - z * 0.5f;
  return (f + y) + e * 0.693359375f;
}

std::vector<float> column_scores_of(const SearchModel& model, const domain::Domain& domain) {
  const OddsProfile& odds = model.odds;
  const domain::Alignment& a = domain.alignment;
  const auto ln = [](float x) { return std::log(static_cast<double>(x)); };
  const auto at = [](const std::vector<float>& of_node, int k) {
    return of_node[static_cast<std::size_t>(k - 1)];
  };
  std::vector<float> scores(a.model.size(), -std::numeric_limits<float>::infinity());
  float gap = 0;
  const auto add = [&](double nats) { gap = static_cast<float>(static_cast<double>(gap) + nats); };
  int k = domain.hmm_from - 1;  // last node so far
  for (std::size_t column = 0; column < scores.size(); ++column) {
    const auto is = [&](const std::string& line, char symbol, std::size_t c) {
      return c < line.size() && line[c] == symbol;
    };
    const bool insert = is(a.model, '.', column), deletion = is(a.sequence, '-', column);
    if (insert) {
      const bool first = column == 0 || a.model[column - 1] != '.';
      if (first) gap = 0;
      add(ln(at(first ? odds.mi_out : odds.ii_out, k)));
      if (is(a.model, '.', column + 1)) continue;
      add(ln(at(odds.im_in, k + 1)) - ln(at(odds.mm_in, k + 1)));
      scores[column] = gap;
      continue;
    }
    ++k;
    if (deletion) {
      const bool first = column == 0 || a.sequence[column - 1] != '-';
      if (first) gap = 0;
      add(ln(at(first ? odds.md_out : odds.dd_out, k - 1)));
      if (is(a.sequence, '-', column + 1)) continue;
      add(ln(at(odds.dm_in, k + 1)) - ln(at(odds.mm_in, k + 1)));
      scores[column] = gap;
      continue;
    }
    const auto x = model.hmm.alphabet->digit[static_cast<unsigned char>(a.sequence[column])];
    const float match = odds.match[static_cast<std::size_t>(x) * static_cast<std::size_t>(odds.M) +
                                   static_cast<std::size_t>(k - 1)];
    scores[column] = static_cast<float>(static_cast<double>(polynomial_log(match)) +
                                        (k == 1 ? 0.0 : ln(at(odds.mm_in, k))));
  }
  return scores;
}

void widen(Extents& e, const Hit& hit) {
  const Subject& s = *hit.subject;
  e.name = std::max(e.name, s.name.size());
  e.accession = std::max(e.accession, s.accession.size());
  e.shown = std::max(e.shown, s.accession.empty() ? s.name.size() : s.accession.size());
  e.position = std::max<std::int64_t>(e.position, high(hit));
}

}  // namespace

double log_search_space(double residues, int window_length) {
  return std::log(
      static_cast<double>(static_cast<float>(residues) / static_cast<float>(window_length)));
}

HitList finish_hits(std::vector<StoredHit> hits, bool by_name, const FilterCounters& counters,
                    const SearchModel* scores) {
  HitList list;
  list.counters = counters;
  for (const StoredHit& stored : hits) widen(list.extents, stored.hit);
  remove_duplicates(hits, by_name);
  std::erase_if(hits, [](const StoredHit& s) { return !passes(s.report, s.hit.domain); });
  std::ranges::stable_sort(hits, [](const StoredHit& x, const StoredHit& y) {
    const Hit &a = x.hit, &b = y.hit;
    if (const auto order = std::weak_order(a.domain.log_p, b.domain.log_p); order != 0)
      return order < 0;
    if (const int order = a.subject->name.compare(b.subject->name); order != 0) return order < 0;
    if (a.bottom != b.bottom) return b.bottom;
    return a.domain.iali < b.domain.iali;
  });
  for (StoredHit& stored : hits) {
    Hit& hit = stored.hit;
    hit.reported = true;
    hit.included = passes(stored.include, hit.domain);
    list.included += hit.included;
    if (scores != nullptr) hit.column_scores = column_scores_of(*scores, hit.domain);
    list.hits.push_back(std::move(hit));
  }
  list.reported = list.hits.size();
  return list;
}

}  // namespace hmmjit::nucleotide
