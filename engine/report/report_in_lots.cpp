// Reports of a model whose hits are too many to hold: two passes over them, more for alignments of
// many columns.
#include <algorithm>
#include <cstring>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

#include "core/spool_file.hpp"
#include "report/a3m.hpp"
#include "report/report_writer.hpp"
#include "report/stockholm.hpp"

namespace hmmjit {
namespace {

// The domains of --pfamtblout, sorted in memory as far as that goes: runs on disk, then merged.
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

  Status write(const std::function<void(std::string_view)>& out) {
    if (runs_.empty()) {
      sort();
      for (const PfamDomain& row : rows_) out(row.line);
      return {};
    }
    HMMJIT_TRY(write_run());
    std::vector<Reader> readers;
    for (SpoolFile& run : runs_) readers.push_back({&run, 0, {}, {}, 0});
    const auto later = [&](std::size_t a, std::size_t b) {
      if (stands_before(readers[b].row, readers[a].row)) return true;
      if (stands_before(readers[a].row, readers[b].row)) return false;
      return a > b;  // of equal rows, those of the earlier hits
    };
    std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> next(later);
    for (std::size_t r = 0; r < readers.size(); ++r) {
      HMMJIT_ASSIGN(const bool more, read(readers[r]));
      if (more) next.push(r);
    }
    while (!next.empty()) {
      const std::size_t r = next.top();
      next.pop();
      out(readers[r].row.line);
      HMMJIT_ASSIGN(const bool more, read(readers[r]));
      if (more) next.push(r);
    }
    return {};
  }

 private:
  struct Reader {
    SpoolFile* run;
    std::uint64_t offset;
    PfamDomain row;
    std::string bytes;
    std::size_t at;
  };
  struct Header {
    double key;
    std::int32_t iali, forward;
    std::uint32_t name, line;
  };

  void sort() {
    std::ranges::stable_sort(
        rows_, [](const PfamDomain& a, const PfamDomain& b) { return stands_before(a, b); });
  }
  Status write_run() {
    if (rows_.empty()) return {};
    sort();
    HMMJIT_ASSIGN(SpoolFile run, SpoolFile::create());
    for (const PfamDomain& row : rows_) {
      const Header header{row.key, row.iali, row.forward,
                          static_cast<std::uint32_t>(row.name.size()),
                          static_cast<std::uint32_t>(row.line.size())};
      HMMJIT_TRY(run.append({reinterpret_cast<const char*>(&header), sizeof header}));
      HMMJIT_TRY(run.append(row.name));
      HMMJIT_TRY(run.append(row.line));
    }
    runs_.push_back(std::move(run));
    rows_ = {};
    bytes_ = 0;
    return {};
  }
  // `count` bytes of the run, from its buffer.
  static Result<std::string_view> take(Reader& reader, std::size_t count) {
    if (reader.bytes.size() - reader.at < count) {
      reader.offset += reader.at;
      reader.at = 0;
      HMMJIT_TRY(
          reader.run->read(reader.offset, std::max(count, std::size_t{1} << 14), reader.bytes));
    }
    const auto found = std::string_view(reader.bytes).substr(reader.at, count);
    reader.at += found.size();
    return found;
  }
  static Result<bool> read(Reader& reader) {
    Header header;
    HMMJIT_ASSIGN(const std::string_view head, take(reader, sizeof header));
    if (head.size() < sizeof header) return false;
    std::memcpy(&header, head.data(), sizeof header);
    reader.row.key = header.key;
    reader.row.iali = header.iali;
    reader.row.forward = header.forward != 0;
    HMMJIT_ASSIGN(reader.row.name, take(reader, header.name));
    HMMJIT_ASSIGN(reader.row.line, take(reader, header.line));
    return true;
  }

  std::uint64_t memory_, bytes_ = 0;
  std::vector<PfamDomain> rows_;
  std::vector<SpoolFile> runs_;
};

}  // namespace

Status ReportWriter::receive_in_lots(const ModelResult& totals, const HitLots& lots,
                                     std::uint64_t memory) {
  totals_.add(totals);
  write_headers(totals);
  const bool tables = !scan_;
  std::string text;
  const auto write = [&text](std::optional<TextOutput>& file) -> Status {
    file->write(text);
    text.clear();
    return {};
  };
  if (json_) {
    append_json_model(text, totals);
    HMMJIT_TRY(write(json_));
  }
  if (pfam_) {
    append_pfam_target_titles(text, totals.hits);
    HMMJIT_TRY(write(pfam_));
  }
  std::optional<StreamedStockholm> aligned;
  if (alignment_) {
    HMMJIT_ASSIGN(aligned, StreamedStockholm::create(
                               totals.model, options_.text_width == 0 ? 0 : kAlignmentColumns,
                               author_, options_.aligned_targets));
  }
  append_query(text, totals.model);
  append_score_titles(text, totals.hits, options_);
  HMMJIT_TRY(write_main(text));
  text.clear();

  SortedDomains domains(memory);
  std::size_t rows = 0, targets_left = options_.aligned_targets;
  bool above = true;
  const Status first_pass = lots([&](const ModelResult& lot) -> Status {
    totals_.add_domains(lot.hits);
    if (scan_ && !options_.scan_by_range) scan_->add(lot);
    append_score_rows(text, lot.hits, options_, above);
    HMMJIT_TRY(write_main(text));
    text.clear();
    if (targets_ && tables) {
      append_target_table(text, lot.model, lot.hits);
      HMMJIT_TRY(write(targets_));
    }
    if (domains_ && tables) {
      append_domain_table(text, lot.model, lot.hits);
      HMMJIT_TRY(write(domains_));
    }
    if (pfam_) {
      append_pfam_targets(text, lot.hits);
      HMMJIT_TRY(write(pfam_));
      HMMJIT_TRY(domains.add(lot.hits));
    }
    if (tsv_) {
      append_tsv(text, lot);
      HMMJIT_TRY(write(tsv_));
    }
    if (json_) {
      append_json_targets(text, lot, options_.alignments);
      HMMJIT_TRY(write(json_));
    }
    if (a3m_) {
      rows += append_a3m(text, lot.model, lot.hits, rows > 0, &targets_left);
      HMMJIT_TRY(write(a3m_));
    }
    if (aligned) {
      for (const Hit& hit : lot.hits.hits) HMMJIT_TRY(aligned->measure(hit));
    }
    return {};
  });
  HMMJIT_TRY(first_pass);
  if (pfam_) {
    append_pfam_domain_titles(text, totals.hits);
    HMMJIT_TRY(write(pfam_));
    HMMJIT_TRY(domains.write([&](std::string_view line) { pfam_->write(line); }));
  }

  text += "\n\n";
  append_annotation_title(text, options_);
  HMMJIT_TRY(write_main(text));
  text.clear();
  const Status second_pass = lots([&](const ModelResult& lot) -> Status {
    append_annotation_rows(text, lot.model, lot.hits, options_, 0, lot.hits.hits.size());
    HMMJIT_TRY(write_main(text));
    text.clear();
    return {};
  });
  HMMJIT_TRY(second_pass);
  append_report_tail(text, totals, filters_, {totals.cpu_seconds, 0, totals.seconds});
  HMMJIT_TRY(write_main(text));
  if (!aligned) return {};
  HMMJIT_ASSIGN(const std::size_t count, aligned->end_measuring());
  const Status written = aligned->write(
      [&](const std::function<Status(const Hit&)>& use) {
        return lots([&](const ModelResult& lot) -> Status {
          for (const Hit& hit : lot.hits.hits) HMMJIT_TRY(use(hit));
          return {};
        });
      },
      [&](std::string_view piece) -> Status {
        alignment_->write(piece);
        return alignment_->status();
      });
  HMMJIT_TRY(written);
  return write_saved_alignment(count);
}

}  // namespace hmmjit
