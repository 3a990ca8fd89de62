#include "search/hits.hpp"

#include <algorithm>
#include <compare>
#include <numeric>

#include "model/score_statistics.hpp"

namespace hmmjit {
namespace {

bool passes(const Threshold& rule, float bits, double log_p, double search_space) {
  if (rule.score) return bits >= *rule.score;
  return e_value(log_p, search_space) <= rule.e_value;
}

void count_domains(Hit& hit) {
  hit.reported_domains = hit.included_domains = 0;
  for (const Hit::Flags& flags : hit.domain_flags) {
    hit.reported_domains += flags.reported;
    hit.included_domains += flags.included;
  }
}

// Overlapping envelopes of one clustered region can end in the same alignment; the weaker copy
// is not shown. Pairs with a removed domain count too, as in HMMER.
void drop_duplicate_domains(Hit& hit) {
  const auto& domains = hit.score.domains;
  const auto alignment = [&](std::size_t d) { return std::pair(domains[d].iali, domains[d].jali); };
  std::vector<std::size_t> order(domains.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, alignment);
  for (auto a = order.begin(); a != order.end(); ++a) {
    for (auto b = a + 1; b != order.end() && alignment(*a) == alignment(*b); ++b)
      hit.domain_flags[domains[*a].bits >= domains[*b].bits ? *b : *a] = {};
  }
}

// The list of judged targets, whose domains are still to be judged.
HitList list_of(const Thresholds& rules, std::vector<Hit> hits, double Z) {
  HitList list;
  list.hits = std::move(hits);
  list.Z = Z;
  list.Z_is_set = rules.Z.has_value();
  list.domZ_is_set = rules.domZ.has_value();
  for (const Hit& hit : list.hits) {
    list.widen(hit);
    list.count(hit.flags);
  }
  list.domZ = rules.domZ.value_or(static_cast<double>(list.reported));
  return list;
}

}  // namespace

bool stands_before(const Hit& a, const Hit& b) {
  // NaN, from damaged score statistics, has a place too.
  if (const auto order = std::weak_order(b.sort_key, a.sort_key); order != 0) return order < 0;
  if (const int order = a.name.compare(b.name); order != 0) return order < 0;
  const domain::Domain& first_a = a.score.domains.front();
  const domain::Domain& first_b = b.score.domains.front();
  const bool forward_a = first_a.iali < first_a.jali, forward_b = first_b.iali < first_b.jali;
  if (forward_a != forward_b) return forward_a;
  if (first_a.iali != first_b.iali) return first_a.iali < first_b.iali;
  return a.index < b.index;
}

std::uint64_t hit_bytes(const Hit& hit) {
  constexpr std::uint64_t kOverheadOfAllocation = 16;
  std::uint64_t bytes = sizeof(Hit) + hit.name.size() + hit.description.size();
  for (const domain::Domain& domain : hit.score.domains)
    bytes += sizeof(domain::Domain) +
             6 * (domain.alignment.model.capacity() + kOverheadOfAllocation);
  return bytes;
}

std::unexpected<Error> found_twice(const Hit& hit, const std::string& model) {
  return fail(ErrorCode::kInternal, "a target was reported twice: " + hit.name, "model " + model,
              "search with --device cpu, and report this");
}

Status check_each_once(const std::vector<Hit>& hits, const std::string& model) {
  const auto twice = std::ranges::adjacent_find(hits, {}, &Hit::index);
  if (twice != hits.end()) return found_twice(*twice, model);
  return {};
}

void judge_target(const ModelThresholds& thresholds, double Z, Hit& hit) {
  const Thresholds& rules = thresholds.rules;
  hit.sort_key =
      thresholds.include_by_e_value() ? -hit.score.log_p : static_cast<double>(hit.score.bits);
  hit.flags.reported = passes(rules.target, hit.score.bits, hit.score.log_p, Z);
  hit.flags.included =
      hit.flags.reported && passes(rules.include_target, hit.score.bits, hit.score.log_p, Z);
}

void judge_domains(const ModelThresholds& thresholds, double domZ, Hit& hit) {
  const Thresholds& rules = thresholds.rules;
  hit.domain_flags.assign(hit.score.domains.size(), {});
  if (!hit.flags.reported) return;
  for (std::size_t d = 0; d < hit.score.domains.size(); ++d) {
    const domain::Domain& domain = hit.score.domains[d];
    if (rules.min_coverage > 0 && thresholds.length > 0 &&
        model_coverage(domain, thresholds.length) < rules.min_coverage)
      continue;
    hit.domain_flags[d].reported = passes(rules.domain, domain.bits, domain.log_p, domZ);
    hit.domain_flags[d].included =
        hit.flags.included && passes(rules.include_domain, domain.bits, domain.log_p, domZ);
  }
  if (hit.score.overlaps > 0) drop_duplicate_domains(hit);
  count_domains(hit);
}

HitCounts& HitCounts::operator+=(const HitCounts& other) {
  candidates += other.candidates;
  reported += other.reported;
  included += other.included;
  longest_name = std::max(longest_name, other.longest_name);
  longest_accession = std::max(longest_accession, other.longest_accession);
  longest_shown = std::max(longest_shown, other.longest_shown);
  counters += other.counters;
  return *this;
}

void HitCounts::widen(const Hit& hit) {
  longest_name = std::max(longest_name, hit.name.size());
  longest_accession = std::max(longest_accession, hit.accession.size());
  longest_shown = std::max(longest_shown, hit.shown_name(true).size());
}

std::string_view cutoff_name(ModelCutoffs cutoffs) {
  switch (cutoffs) {
    case ModelCutoffs::kGathering:
      return "GA";
    case ModelCutoffs::kNoise:
      return "NC";
    case ModelCutoffs::kTrusted:
      return "TC";
    case ModelCutoffs::kTable:
      return "table";
    case ModelCutoffs::kNone:
      break;
  }
  return "";
}

std::optional<Cutoff> find_cutoff(const CutoffTable& table, std::string_view name,
                                  std::string_view accession) {
  for (const std::string_view key : {name, accession, accession.substr(0, accession.find('.'))}) {
    if (const auto found = table.find(key); !key.empty() && found != table.end())
      return found->second;
  }
  return std::nullopt;
}

std::optional<Cutoff> cutoff_of(const Hmm& hmm, const Thresholds& rules) {
  if (rules.cutoffs == ModelCutoffs::kTable)
    return find_cutoff(*rules.table, hmm.name, hmm.accession.value_or(""));
  if (rules.cutoffs == ModelCutoffs::kGathering) return hmm.ga;
  return rules.cutoffs == ModelCutoffs::kNoise ? hmm.nc : hmm.tc;
}

std::unexpected<Error> lacks_cutoffs(const Thresholds& rules, const std::string& model) {
  if (rules.cutoffs == ModelCutoffs::kTable)
    return fail(ErrorCode::kInput, "the table of cutoffs does not have model " + model, {},
                "add the model to the table, or leave it out of the search");
  return fail(ErrorCode::kInput,
              std::string(cutoff_name(rules.cutoffs)) + " bit thresholds unavailable on model " +
                  model,
              {}, "search without --cut_* or use models that carry these cutoffs");
}

Result<ModelThresholds> thresholds_for(const Thresholds& rules, const Hmm& hmm,
                                       std::optional<Cutoff> cutoff) {
  ModelThresholds thresholds{rules, false, hmm.M};
  if (rules.cutoffs == ModelCutoffs::kNone) return thresholds;
  if (!cutoff) cutoff = cutoff_of(hmm, rules);
  if (!cutoff) {
    if (rules.missing == MissingCutoffs::kDefault) {
      thresholds.rules.cutoffs = ModelCutoffs::kNone;
      return thresholds;
    }
    return lacks_cutoffs(rules, hmm.name);
  }
  thresholds.cutoffs = true;
  thresholds.rules.target.score = thresholds.rules.include_target.score = cutoff->sequence;
  thresholds.rules.domain.score = thresholds.rules.include_domain.score = cutoff->domain;
  return thresholds;
}

bool is_candidate(const ModelThresholds& thresholds, const domain::TargetScore& score,
                  std::uint64_t index) {
  const double seen = thresholds.rules.Z.value_or(static_cast<double>(index + 1));
  return passes(thresholds.rules.target, score.bits, score.log_p, seen);
}

HitList finish_hits(const ModelThresholds& thresholds, std::vector<Hit> hits,
                    const FilterCounters& counters, std::optional<std::uint64_t> whole_targets) {
  const Thresholds& rules = thresholds.rules;
  const double Z = rules.Z.value_or(static_cast<double>(whole_targets.value_or(counters.targets)));
  for (Hit& hit : hits) judge_target(thresholds, Z, hit);
  HitList list = list_of(rules, std::move(hits), Z);
  list.candidates = list.hits.size();
  list.counters = counters;
  list.sorted_by_score = !thresholds.include_by_e_value();
  for (Hit& hit : list.hits) judge_domains(thresholds, list.domZ, hit);
  // Tasks deliver in any order.
  std::ranges::sort(list.hits, stands_before);
  return list;
}

HitList finish_scan(const Thresholds& rules, std::vector<Hit> hits, double Z) {
  HitList list = list_of(rules, std::move(hits), Z);
  list.sorted_by_score =
      rules.cutoffs != ModelCutoffs::kNone || rules.include_target.score.has_value();
  // A model's own cutoffs have judged its domains already.
  if (rules.cutoffs == ModelCutoffs::kNone) {
    for (Hit& hit : list.hits) judge_domains({rules, false, hit.length}, list.domZ, hit);
  }
  std::ranges::sort(list.hits, stands_before);
  return list;
}

}  // namespace hmmjit
