#include "report/outputs.hpp"

#include <optional>
#include <utility>

#include "core/sorted.hpp"
#include "report/kept_rows.hpp"
#include "report/nucleotide_report.hpp"
#include "report/records.hpp"
#include "report/scan.hpp"
#include "report/stockholm.hpp"
#include "report/tables.hpp"
#include "search/stored_hits.hpp"

namespace hmmjit {
namespace {

std::uint64_t memory_of(const ModelResult& result) {
  return result.stored == nullptr ? std::numeric_limits<std::uint64_t>::max()
                                  : result.stored->output_memory();
}

// Outputs in which each line depends on one hit only.
class Rows final : public Output {
 public:
  using Append = std::function<void(std::string&, const HitLot&)>;
  Rows(OutputKind kind, std::string head, Append append)
      : Output(kind), head_(std::move(head)), append_(std::move(append)) {}
  bool independent(int) const override { return true; }
  void begin(std::string& out) const override { out += head_; }
  Status format(int, const HitLot& lot, std::string& out) override {
    append_(out, lot);
    return {};
  }

 private:
  std::string head_;
  Append append_;
};

struct PfamOrder {
  static bool before(const PfamDomain& a, const PfamDomain& b) { return stands_before(a, b); }
  static void encode(const PfamDomain& row, std::string& out) {
    FieldWriter writer(out);
    code(writer, row);
  }
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

class PfamTable final : public Output {
 public:
  PfamTable(const ModelResult& result, const RecordOptions& records)
      : Output(OutputKind::kPfam),
        totals_(result.hits),
        marked_(records.kept),
        domains_(memory_of(result)) {}
  void begin(std::string& out) const override { append_pfam_target_titles(out, totals_); }
  Status format(int, const HitLot& lot, std::string& out) override {
    append_pfam_targets(out, lot, marked_);
    std::vector<PfamDomain> rows = pfam_domains(lot);
    for (PfamDomain& row : rows) {
      if (marked_) {
        std::string mark;
        append_kept_place(mark, reported_++);
        row.line.insert(0, mark);
      }
      HMMJIT_TRY(domains_.add(std::move(row)));
    }
    return {};
  }
  Status end(int, const Write& write) override {
    std::string titles;
    append_pfam_domain_titles(titles, totals_);
    HMMJIT_TRY(write(titles));
    HMMJIT_TRY(domains_.begin());
    for (;;) {
      HMMJIT_ASSIGN(const PfamDomain* const row, domains_.next());
      if (row == nullptr) return {};
      HMMJIT_TRY(write(row->line));
    }
  }

 private:
  const HitList& totals_;
  bool marked_;               // for KeptRows
  std::size_t reported_ = 0;  // domains so far
  Sorted<PfamDomain, PfamOrder> domains_;
};

class A3m final : public Output {
 public:
  explicit A3m(std::size_t targets) : Output(OutputKind::kA3m), targets_left_(targets) {}
  Status format(int, const HitLot& lot, std::string& out) override {
    rows_ += append_a3m(out, lot, rows_ > 0, &targets_left_);
    return {};
  }

 private:
  std::size_t targets_left_, rows_ = 0;
};

class Stockholm final : public Output {
 public:
  Stockholm(const ModelResult& result, const OutputSettings& settings)
      : Output(OutputKind::kAlignment),
        result_(result),
        settings_(settings),
        columns_(result.model,
                 {.targets = settings.report.aligned_targets, .all_nodes = !result.nucleotides},
                 memory_of(result)) {}
  int passes() const override { return 2; }
  Status format(int pass, const HitLot& lot, std::string&) override {
    if (pass == 0) return columns_.measure(lot.hits);
    return record_ ? record_->add(lot.hits) : Status{};
  }
  Status end(int pass, const Write& write) override {
    if (pass == 1) return record_ ? record_->write(write) : Status{};
    HMMJIT_TRY(columns_.finish());
    if (columns_.rows() == 0) return {};  // there may be no columns
    record_.emplace(columns_, result_.model.name,
                    settings_.report.text_width == 0 ? 0 : kAlignmentColumns, settings_.author,
                    memory_of(result_));
    return {};
  }
  std::size_t rows() const override { return columns_.rows(); }

 private:
  const ModelResult& result_;
  const OutputSettings& settings_;
  AlignmentColumns columns_;
  std::optional<StockholmRecord> record_;
};

// Writes the scores in a first pass and the domain annotation in a second.
class MainReport final : public Output {
 public:
  MainReport(const ModelResult& result, const OutputSettings& settings)
      : Output(OutputKind::kMain), result_(result), settings_(settings) {}
  int passes() const override { return 2; }
  bool independent(int pass) const override { return pass == 1; }
  void begin(std::string& out) const override {
    append_query(out, result_.model);
    append_score_titles(out, result_.hits, settings_.report);
  }
  Status format(int pass, const HitLot& lot, std::string& out) override {
    if (pass == 0)
      append_score_rows(out, lot, settings_.report, above_threshold_);
    else
      append_annotation_rows(out, lot, settings_.report);
    return {};
  }
  Status end(int pass, const Write& write) override {
    std::string text;
    if (pass == 0) {
      append_annotation_title(text, result_.hits, settings_.report);
    } else {
      append_statistics(text, result_, settings_.filters, settings_.report.records.by_sequence);
      text += "//\n";
    }
    return write(text);
  }

 private:
  const ModelResult& result_;
  const OutputSettings& settings_;
  bool above_threshold_ = true;  // still above the inclusion threshold
};

}  // namespace

std::unique_ptr<Output> make_output(OutputKind kind, const ModelResult& result,
                                    const OutputSettings& settings) {
  const ReportOptions& report = settings.report;
  const RecordOptions& records = report.records;
  const auto of_models = [&](auto append, std::string head = "") {
    return std::make_unique<Rows>(
        kind, std::move(head), [&report, append](std::string& out, const HitLot& lot) {
          if (!report.records.by_sequence) return append(out, lot);
          (void)for_each_model(lot, [&](const ModelResult& model) -> Status {
            append(out, model);
            return {};
          });
        });
  };
  const auto table = [&](void (*append)(std::string&, const HitLot&, bool)) {
    return std::make_unique<Rows>(kind, "",
                                  [&records, append](std::string& out, const HitLot& lot) {
                                    append(out, lot, records.kept);
                                  });
  };
  switch (kind) {
    case OutputKind::kTargets:
      return table(result.nucleotides ? append_nucleotide_table : append_target_table);
    case OutputKind::kDomains:
      return table(append_domain_table);
    case OutputKind::kPfam:
      return std::make_unique<PfamTable>(result, records);
    case OutputKind::kTsv:
      return of_models(
          [&records](std::string& out, const HitLot& lot) { append_tsv(out, lot, records); });
    case OutputKind::kTargetTsv:
      return of_models([&records](std::string& out, const HitLot& lot) {
        append_target_tsv(out, lot, records);
      });
    case OutputKind::kJson: {
      std::string head;
      append_json_query(head, result, records);
      return of_models(
          [&report](std::string& out, const HitLot& lot) {
            append_json_targets(out, lot, report.alignments, report.records);
          },
          std::move(head));
    }
    case OutputKind::kA3m:
      return std::make_unique<A3m>(report.aligned_targets);
    case OutputKind::kAlignment:
      return std::make_unique<Stockholm>(result, settings);
    case OutputKind::kDfam:
      return table(append_dfam_table);
    case OutputKind::kColumnScores:
      return std::make_unique<Rows>(kind, "", append_column_scores);
    case OutputKind::kMain:
      break;
  }
  if (!result.nucleotides) return std::make_unique<MainReport>(result, settings);
  return std::make_unique<Rows>(kind, "", [&report](std::string& out, const HitLot& all) {
    append_nucleotide_report(out, all.result, report);
  });
}

Status write_model(const ModelResult& result, std::span<const std::unique_ptr<Output>> outputs,
                   const std::function<Status(OutputKind, std::string_view)>& write) {
  std::string text;
  const auto flush = [&](OutputKind kind) -> Status {
    if (!text.empty()) HMMJIT_TRY(write(kind, text));
    text.clear();
    return {};
  };
  int passes = 0;
  for (const auto& output : outputs) {
    passes = std::max(passes, output->passes());
    output->begin(text);
    HMMJIT_TRY(flush(output->kind()));
  }
  for (int pass = 0; pass < passes; ++pass) {
    const Status passed = for_each_lot(result, [&](const HitLot& lot) -> Status {
      for (const auto& output : outputs) {
        if (pass >= output->passes()) continue;
        HMMJIT_TRY(output->format(pass, lot, text));
        HMMJIT_TRY(flush(output->kind()));
      }
      return {};
    });
    HMMJIT_TRY(passed);
    for (const auto& output : outputs) {
      if (pass < output->passes())
        HMMJIT_TRY(output->end(
            pass, [&](std::string_view piece) { return write(output->kind(), piece); }));
    }
  }
  return {};
}

void append_output_header(std::string& out, OutputKind kind, const ModelResult& first,
                          const RecordOptions& records) {
  if (kind == OutputKind::kTargets && first.nucleotides) append_nucleotide_table_header(out, first);
  if (kind == OutputKind::kTargets && !first.nucleotides)
    append_target_table_header(out, first.model, first.hits);
  if (kind == OutputKind::kDomains) append_domain_table_header(out, first.model, first.hits);
  if (kind == OutputKind::kTsv) append_tsv_header(out, records);
  if (kind == OutputKind::kTargetTsv) append_target_tsv_header(out, records);
}

void append_output_trailer(std::string& out, OutputKind kind, const RunDescription& run,
                           const RunTotals& totals) {
  switch (kind) {
    case OutputKind::kJson:
      return append_json_run(out, run, totals);
    case OutputKind::kTargets:
    case OutputKind::kDomains:
    case OutputKind::kPfam:
      return append_table_trailer(out, run);
    case OutputKind::kMain:
      out += "[ok]\n";
      return;
    default:
      return;
  }
}

}  // namespace hmmjit
