// Reports of a model whose hits are too many to hold: two passes over them, more for alignments of
// many columns.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/sorted.hpp"
#include "report/a3m.hpp"
#include "report/report_writer.hpp"
#include "report/stockholm.hpp"

namespace hmmjit {
namespace {

struct PfamOrder {
  static bool before(const PfamDomain& a, const PfamDomain& b) { return stands_before(a, b); }
  static void encode(const PfamDomain& row, std::string& out) { FieldWriter w(out); code(w, row); }
  static bool decode(Decoder& decoder, PfamDomain& row) {
    FieldReader reader(decoder);
    code(reader, row);
    return decoder.ok();
  }
  static std::uint64_t bytes(const PfamDomain& row) {
    return sizeof row + row.name.size() + row.line.size();
  }
  template <typename Coder, typename Row>
  static void code(Coder& coder, Row& row) {
    coder.bytes(row.key);
    coder.count(row.iali);
    coder.count(row.forward);
    coder.text(row.name);
    coder.text(row.line);
  }
};

}  // namespace

Status ReportWriter::receive_in_lots(const ModelResult& totals, const HitLots& lots,
                                     std::uint64_t memory) {
  totals_.add(totals);
  query_totals_.add(totals);
  HMMJIT_TRY(write_headers(totals));
  const bool tables = !scan_;
  std::string text;
  const auto write = [&](Kind kind) -> Status {
    HMMJIT_TRY(put(kind, text));
    text.clear();
    return {};
  };
  if (wanted(kJson)) {
    append_json_model(text, totals, options_.records);
    HMMJIT_TRY(write(kJson));
  }
  if (wanted(kPfam)) {
    append_pfam_target_titles(text, totals.hits);
    HMMJIT_TRY(write(kPfam));
  }
  std::optional<StreamedStockholm> aligned;
  if (wanted(kAlignment)) {
    HMMJIT_ASSIGN(aligned, StreamedStockholm::create(
                               totals.model, options_.text_width == 0 ? 0 : kAlignmentColumns,
                               author_, options_.aligned_targets));
  }
  append_query(text, totals.model);
  append_score_titles(text, totals.hits, options_);
  HMMJIT_TRY(write(kMain));

  Sorted<PfamDomain, PfamOrder> domains(memory);
  std::size_t rows = 0, targets_left = options_.aligned_targets;
  bool above = true;
  const Status first_pass = lots([&](const ModelResult& lot) -> Status {
    totals_.add_domains(lot.hits);
    query_totals_.add_domains(lot.hits);
    if (scan_ && !options_.scan_by_range) HMMJIT_TRY(scan_->add(lot));
    append_score_rows(text, lot.hits, options_, above);
    HMMJIT_TRY(write(kMain));
    if (wanted(kTargets) && tables) {
      append_target_table(text, lot.model, lot.hits);
      HMMJIT_TRY(write(kTargets));
    }
    if (wanted(kDomains) && tables) {
      append_domain_table(text, lot.model, lot.hits);
      HMMJIT_TRY(write(kDomains));
    }
    if (wanted(kPfam)) {
      append_pfam_targets(text, lot.hits);
      HMMJIT_TRY(write(kPfam));
      std::vector<PfamDomain> rows_of_lot;
      for (const Hit& hit : lot.hits.hits) append_pfam_domains(rows_of_lot, hit, lot.hits);
      for (PfamDomain& row : rows_of_lot) HMMJIT_TRY(domains.add(std::move(row)));
    }
    if (wanted(kTsv)) {
      append_tsv(text, lot, options_.records);
      HMMJIT_TRY(write(kTsv));
    }
    if (wanted(kTargetTsv)) {
      append_target_tsv(text, lot, options_.records);
      HMMJIT_TRY(write(kTargetTsv));
    }
    if (wanted(kJson)) {
      append_json_targets(text, lot, options_.alignments, options_.records);
      HMMJIT_TRY(write(kJson));
    }
    if (wanted(kA3m)) {
      rows += append_a3m(text, lot.model, lot.hits, rows > 0, &targets_left);
      HMMJIT_TRY(write(kA3m));
    }
    if (aligned) {
      for (const Hit& hit : lot.hits.hits) HMMJIT_TRY(aligned->measure(hit));
    }
    return {};
  });
  HMMJIT_TRY(first_pass);
  if (wanted(kPfam)) {
    append_pfam_domain_titles(text, totals.hits);
    HMMJIT_TRY(write(kPfam));
    HMMJIT_TRY(domains.begin());
    for (;;) {
      HMMJIT_ASSIGN(const PfamDomain* const row, domains.next());
      if (row == nullptr) break;
      HMMJIT_TRY(put(kPfam, row->line));
    }
  }

  text += "\n\n";
  append_annotation_title(text, options_);
  HMMJIT_TRY(write(kMain));
  const Status second_pass = lots([&](const ModelResult& lot) -> Status {
    append_annotation_rows(text, lot.model, lot.hits, options_, 0, lot.hits.hits.size());
    HMMJIT_TRY(write(kMain));
    return {};
  });
  HMMJIT_TRY(second_pass);
  append_report_tail(text, totals, options_, filters_, {totals.cpu_seconds, 0, totals.seconds});
  HMMJIT_TRY(write(kMain));
  if (!aligned) return {};
  HMMJIT_ASSIGN(const std::size_t count, aligned->end_measuring());
  const Status written = aligned->write(
      [&](const std::function<Status(const Hit&)>& use) {
        return lots([&](const ModelResult& lot) -> Status {
          for (const Hit& hit : lot.hits.hits) HMMJIT_TRY(use(hit));
          return {};
        });
      },
      [&](std::string_view piece) { return put(kAlignment, piece); });
  HMMJIT_TRY(written);
  return write_saved_alignment(count);
}

}  // namespace hmmjit
