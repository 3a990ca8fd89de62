#include "report/scan_tables.hpp"

#include <utility>
#include <vector>

#include "report/tables.hpp"
#include "search/hit_coding.hpp"

namespace hmmjit {
namespace {

// A sequence, and what was found of the models in it.
struct Scanned {
  ModelInfo as_model;     // name, accession and length of the sequence, in the place of a model
  std::vector<Hit> hits;  // models, in the place of targets
};

}  // namespace

Status ScanTables::add(const ModelResult& result) {
  for (const Hit& hit : result.hits.hits) HMMJIT_TRY(add(result, hit));
  return {};
}

Status ScanTables::add(const ModelResult& result, const Hit& hit) {
  Z_ = result.hits.Z;
  std::string record;
  put_text(record, result.model.name);
  put_text(record, result.model.accession.value_or(""));
  put_text(record, result.model.description.value_or(""));
  put_count(record, result.index);
  put_count(record, static_cast<std::uint64_t>(result.model.M));
  encode_judged_hit(hit, false, record);
  return records_.add(hit.index, record);
}

Result<bool> ScanTables::write(const Out& out, bool begun, bool only_with_hits) {
  bool first = !begun;
  std::string text;
  const auto write = [&](Scanned query) -> Status {
    const HitList list = finish_scan(rules_, std::move(query.hits), Z_);
    if (out.targets) {
      text.clear();
      if (first) append_target_table_header(text, query.as_model, list);
      append_target_table(text, query.as_model, list);
      HMMJIT_TRY(out.targets(text));
    }
    if (out.domains) {
      text.clear();
      if (first) append_domain_table_header(text, query.as_model, list);
      append_domain_table(text, query.as_model, list);
      HMMJIT_TRY(out.domains(text));
    }
    first = false;
    return {};
  };
  std::uint64_t index = 0;
  std::vector<std::string> records;
  for (;;) {
    HMMJIT_ASSIGN(const bool more, records_.next(index, records));
    if (!more) break;
    Scanned query;
    for (const std::string& record : records) {
      Decoder decoder(record);
      Hit names;
      names.name = decoder.text();
      names.accession = decoder.text();
      names.description = decoder.text();
      names.index = decoder.count();
      names.length = decoder.integer();
      Hit& hit = query.hits.emplace_back();
      if (!decode_judged_hit(decoder, hit)) return damaged_spool_file();
      // The sequence is the query here, and the model takes its place.
      query.as_model.name = std::exchange(hit.name, std::move(names.name));
      const std::string accession = std::exchange(hit.accession, std::move(names.accession));
      if (!accession.empty()) query.as_model.accession = accession;
      hit.description = std::move(names.description);
      hit.index = names.index;
      query.as_model.M = std::exchange(hit.length, names.length);
    }
    HMMJIT_TRY(write(std::move(query)));
  }
  if (first && !only_with_hits) HMMJIT_TRY(write({}));
  return !first;
}

}  // namespace hmmjit
