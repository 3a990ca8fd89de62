// Reports of a model whose hits are too many to hold: two passes over them, more for alignments of
// many columns.
#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "core/spool_file.hpp"
#include "report/a3m.hpp"
#include "report/report_writer.hpp"
#include "report/stockholm.hpp"
#include "search/spool_run.hpp"

namespace hmmjit {
namespace {

// The domains of --pfamtblout, sorted in memory as far as that goes: sorted runs in a temporary
// file, then merged.
class SortedDomains {
 public:
  explicit SortedDomains(std::uint64_t memory) : memory_(memory) {}

  Status add(const HitList& hits) {
    for (const Hit& hit : hits.hits) {
      const std::size_t before = rows_.size();
      append_pfam_domains(rows_, hit, hits);
      for (std::size_t i = before; i < rows_.size(); ++i)
        bytes_ += sizeof(PfamDomain) + rows_[i].name.size() + rows_[i].line.size();
    }
    return bytes_ > memory_ ? write_run() : Status{};
  }

  Status write(const std::function<Status(std::string_view)>& out) {
    if (runs_.empty()) {
      sort();
      for (const PfamDomain& row : rows_) HMMJIT_TRY(out(row.line));
      return {};
    }
    HMMJIT_TRY(write_run());
    return merge([&](const PfamDomain& row) { return out(row.line); });
  }

 private:
  struct Header {
    double key;
    std::int32_t iali, forward;
    std::uint32_t name, line;
  };

  void sort() {
    std::ranges::stable_sort(
        rows_, [](const PfamDomain& a, const PfamDomain& b) { return stands_before(a, b); });
  }
  static Status append(SpoolFile& file, const PfamDomain& row) {
    const Header header{row.key, row.iali, row.forward, static_cast<std::uint32_t>(row.name.size()),
                        static_cast<std::uint32_t>(row.line.size())};
    HMMJIT_TRY(file.append({reinterpret_cast<const char*>(&header), sizeof header}));
    HMMJIT_TRY(file.append(row.name));
    return file.append(row.line);
  }
  Status write_run() {
    if (rows_.empty()) return {};
    sort();
    if (!file_) {
      HMMJIT_ASSIGN(file_, SpoolFile::create(kSpoolWriteBuffer));
    }
    const std::uint64_t begin = file_->size();
    for (const PfamDomain& row : rows_) HMMJIT_TRY(append(*file_, row));
    runs_.push_back({begin, file_->size()});
    rows_ = {};
    bytes_ = 0;
    return runs_.size() < kMostSpoolRuns ? Status{} : merge_runs();
  }
  // Several runs become one, so that no more are read at a time than buffers have room for.
  Status merge_runs() {
    HMMJIT_ASSIGN(SpoolFile merged, SpoolFile::create(kSpoolWriteBuffer));
    HMMJIT_TRY(merge([&](const PfamDomain& row) { return append(merged, row); }));
    file_ = std::move(merged);
    runs_ = {{0, file_->size()}};
    return {};
  }
  // Calls `use` with the rows of all runs in order.
  Status merge(const std::function<Status(const PfamDomain&)>& use) {
    MergedRuns<PfamDomain> rows(
        *file_, runs_, memory_, read,
        [](const PfamDomain& a, const PfamDomain& b) { return stands_before(a, b); });
    HMMJIT_TRY(rows.open());
    while (!rows.empty()) {
      HMMJIT_TRY(use(rows.front()));
      HMMJIT_TRY(rows.advance());
    }
    return {};
  }
  static Status read(SpoolRun& run, PfamDomain& row) {
    Header header;
    HMMJIT_ASSIGN(const std::string_view head, run.take(sizeof header));
    std::memcpy(&header, head.data(), sizeof header);
    row.key = header.key;
    row.iali = header.iali;
    row.forward = header.forward != 0;
    HMMJIT_ASSIGN(row.name, run.take(header.name));
    HMMJIT_ASSIGN(row.line, run.take(header.line));
    return {};
  }

  std::uint64_t memory_, bytes_ = 0;
  std::vector<PfamDomain> rows_;
  std::optional<SpoolFile> file_;
  std::vector<SpoolRange> runs_;
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

  SortedDomains domains(memory);
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
      HMMJIT_TRY(domains.add(lot.hits));
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
    HMMJIT_TRY(domains.write([&](std::string_view line) { return put(kPfam, line); }));
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
  append_report_tail(text, totals, filters_, {totals.cpu_seconds, 0, totals.seconds});
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
