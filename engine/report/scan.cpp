#include "report/scan.hpp"

#include <utility>
#include <vector>

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

void ByTarget::encode(const ScannedHit& hit, std::string& out) const {
  put_count(out, hit.index);
  put_text(out, hit.name);
  put_text(out, hit.accession);
  put_count(out, static_cast<std::uint64_t>(hit.length));
  coding.encode(hit.hit, out);
}

bool ByTarget::decode(Decoder& decoder, ScannedHit& hit) {
  hit.index = decoder.count();
  hit.name = decoder.text();
  hit.accession = decoder.text();
  hit.length = decoder.integer();
  return HitOrder::decode(decoder, hit.hit);
}

Status ScanTables::add(const HitLot& lot) {
  Z_ = lot.totals().Z;
  for (const Hit& hit : lot.hits) {
    ScannedHit added(lot.result, hit);
    for (domain::Domain& domain : added.hit.score.domains) domain.alignment = {};
    HMMJIT_TRY(hits_.add(std::move(added)));
  }
  return {};
}

Result<bool> ScanTables::write(const Out& out, bool begun, bool only_with_hits) {
  bool first = !begun;
  std::string text;
  const auto write = [&](const ModelInfo& query, std::vector<Hit> hits) -> Status {
    ModelResult result;
    result.model = query;
    result.hits = finish_scan(rules_, std::move(hits), Z_);
    if (out.targets) {
      text.clear();
      if (first) append_target_table_header(text, query, result.hits);
      append_target_table(text, result);
      HMMJIT_TRY(out.targets(text));
    }
    if (out.domains) {
      text.clear();
      if (first) append_domain_table_header(text, query, result.hits);
      append_domain_table(text, result);
      HMMJIT_TRY(out.domains(text));
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
    for (ScannedHit& found : group) models.push_back(std::move(found.hit));
    HMMJIT_TRY(write(query, std::move(models)));
  }
  if (first && !only_with_hits) HMMJIT_TRY(write({}, {}));
  return !first;
}

}  // namespace hmmjit
