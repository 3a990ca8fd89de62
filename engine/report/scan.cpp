#include "report/scan.hpp"

#include <map>
#include <utility>
#include <vector>

#include "report/kept_rows.hpp"
#include "report/tables.hpp"

namespace hmmjit {

ScannedHit::ScannedHit(const ModelResult& result, Hit found)
    : index(found.index),
      name(std::exchange(found.name, result.model.name)),
      accession(std::exchange(found.accession, result.model.accession.value_or(""))),
      length(std::exchange(found.length, result.model.M)),
      hit(std::move(found)) {
  hit.description = result.model.description.value_or("");
  hit.index = result.index;
}

Status for_each_model(const HitLot& sequence,
                      const std::function<Status(const ModelResult&)>& use) {
  ModelResult model;
  static_cast<HitTotals&>(model.hits) = sequence.totals();
  if (sequence.result.nucleotides) model.nucleotides.emplace();
  for (const Hit& found : sequence.hits) {
    model.index = found.index;
    model.model.name = found.name;
    model.model.accession = found.accession;
    model.model.M = found.length;
    Hit& hit = model.hits.hits.emplace_back(found);
    hit.index = sequence.result.index;
    hit.name = sequence.model().name;
    hit.accession = sequence.model().accession.value_or("");
    hit.description = sequence.model().description.value_or("");
    hit.length = sequence.model().M;
    HMMJIT_TRY(use(model));
    model.hits.hits.clear();
  }
  return {};
}

void ByTarget::encode(const ScannedHit& hit, std::string& out) const {
  put_count(out, hit.index);
  put_text(out, hit.name);
  put_text(out, hit.accession);
  put_count(out, static_cast<std::uint64_t>(hit.length));
  put_count(out, hit.first_domain);
  coding.encode(hit.hit, out);
}

bool ByTarget::decode(Decoder& decoder, ScannedHit& hit) {
  hit.index = decoder.count();
  hit.name = decoder.text();
  hit.accession = decoder.text();
  hit.length = decoder.integer();
  hit.first_domain = decoder.count();
  return HitOrder::decode(decoder, hit.hit);
}

Status ScanTables::add(const HitLot& lot) {
  Z_ = lot.totals().Z;
  for (const Hit& hit : lot.hits) {
    ScannedHit added(lot.result, hit);
    added.first_domain = reported_;
    if (hit.flags.reported) reported_ += static_cast<std::uint64_t>(hit.reported_domains);
    for (domain::Domain& domain : added.hit.score.domains) domain.alignment = {};
    HMMJIT_TRY(hits_.add(std::move(added)));
  }
  return {};
}

Result<bool> ScanTables::write(const Out& out, bool begun, bool only_with_hits,
                               const std::vector<bool>& kept) {
  bool first = !begun;
  std::string text;
  std::map<std::uint64_t, std::vector<bool>> kept_of_models;  // domains of one target
  const auto keep = [&](const ScannedHit& found) {
    std::vector<bool>& domains = kept_of_models[found.hit.index];
    std::uint64_t next = found.first_domain;
    for (const Hit::Flags& flags : found.hit.domain_flags)
      domains.push_back(found.hit.flags.reported && flags.reported && kept[next++]);
  };
  const auto put = [&](OutputKind kind, const HitList& hits,
                       const std::function<Status(std::string_view)>& to) -> Status {
    if (kept.empty()) return to(text);
    std::vector<bool> rows;  // for each domain of `hits`
    for (const Hit& hit : hits.hits) {
      for (std::size_t d = 0; d < hit.domain_flags.size(); ++d) {
        if (hit.flags.reported && hit.domain_flags[d].reported)
          rows.push_back(kept_of_models[hit.index][d]);
      }
    }
    std::string remaining;
    KeptRows(kind, rows).append(remaining, text);
    return to(remaining);
  };
  const auto write = [&](const ModelInfo& query, std::vector<Hit> hits) -> Status {
    ModelResult result;
    result.model = query;
    result.hits = finish_scan(rules_, std::move(hits), Z_);
    if (out.targets) {
      text.clear();
      if (first) append_target_table_header(text, query, result.hits);
      append_target_table(text, result, !kept.empty());
      HMMJIT_TRY(put(OutputKind::kTargets, result.hits, out.targets));
    }
    if (out.domains) {
      text.clear();
      if (first) append_domain_table_header(text, query, result.hits);
      append_domain_table(text, result, !kept.empty());
      HMMJIT_TRY(put(OutputKind::kDomains, result.hits, out.domains));
    }
    first = false;
    return {};
  };
  std::vector<ScannedHit> group;
  HMMJIT_TRY(hits_.begin());
  for (;;) {
    HMMJIT_ASSIGN(const bool more, hits_.next_group(group));
    if (!more) break;
    ModelInfo query;
    query.name = group.front().name;
    query.M = group.front().length;
    if (!group.front().accession.empty()) query.accession = group.front().accession;
    std::vector<Hit> models;
    kept_of_models.clear();
    for (ScannedHit& found : group) {
      if (!kept.empty()) keep(found);
      models.push_back(std::move(found.hit));
    }
    HMMJIT_TRY(write(query, std::move(models)));
  }
  if (first && !only_with_hits) HMMJIT_TRY(write({}, {}));
  return !first;
}

}  // namespace hmmjit
