#include "report/scan_tables.hpp"

#include <utility>

#include "report/tables.hpp"

namespace hmmjit {

void ScanTables::add(const ModelResult& result) {
  Z_ = result.hits.Z;
  for (const Hit& hit : result.hits.hits) {
    Query& query = queries_[hit.index];
    if (query.hits.empty()) {
      query.as_model.name = hit.name;
      if (!hit.accession.empty()) query.as_model.accession = hit.accession;
      query.as_model.M = hit.length;
    }
    Hit& model = query.hits.emplace_back(hit);
    for (domain::Domain& domain : model.score.domains) domain.alignment = {};
    model.name = result.model.name;
    model.accession = result.model.accession.value_or("");
    model.description = result.model.description.value_or("");
    model.index = result.index;
    model.length = result.model.M;
  }
}

bool ScanTables::append(std::string* target_table, std::string* domain_table, bool begun,
                        bool only_with_hits) const {
  bool first = !begun;
  const auto write = [&](const Query& query) {
    const HitList list = finish_scan(rules_, query.hits, Z_);
    if (target_table != nullptr) {
      if (first) append_target_table_header(*target_table, query.as_model, list);
      append_target_table(*target_table, query.as_model, list);
    }
    if (domain_table != nullptr) {
      if (first) append_domain_table_header(*domain_table, query.as_model, list);
      append_domain_table(*domain_table, query.as_model, list);
    }
    first = false;
  };
  for (const auto& [index, query] : queries_) write(query);
  if (first && !only_with_hits) write({});
  return !first;
}

}  // namespace hmmjit
