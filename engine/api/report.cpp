// hmmsearch's outputs from results a host holds.
#include "hmmjit/report.hpp"

#include <optional>

#include "api/results.hpp"
#include "core/output_file.hpp"
#include "report/a3m.hpp"
#include "report/main_report.hpp"
#include "report/records.hpp"
#include "report/scan_tables.hpp"
#include "report/stockholm.hpp"
#include "report/tables.hpp"

namespace hmmjit::v0 {

struct Report::Impl {
  ReportKind kind;
  ReportOptions options;
  std::optional<OutputFile> file;
  std::string text;  // not yet written or taken
  bool begun = false, completed = false;
  RunTotals totals = {};
  std::optional<ScanTables> scan = {};

  void flush() {
    if (!file) return;
    file->write(text);
    text.clear();
  }
};

namespace {
// hmmsearch's alignments are cut into blocks of this width unless the text width is unlimited.
constexpr std::size_t kAlignmentColumns = 200;
}  // namespace

ReportOptions::ReportOptions(const SearchOptions& search)
    : alignments(search.keep_alignments),
      F1(search.max_sensitivity ? 1.0 : std::min(1.0, search.F1)),
      F2(search.max_sensitivity ? 1.0 : std::min(1.0, search.F2)),
      F3(search.max_sensitivity ? 1.0 : std::min(1.0, search.F3)),
      bias_filter(search.bias_filter && !search.max_sensitivity),
      report(search.report),
      report_domain(search.report_domain),
      include(search.include),
      include_domain(search.include_domain),
      cutoffs(search.cutoffs) {}

Report::Report(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Report::Report(ReportKind kind, const ReportOptions& options)
    : impl_(std::make_unique<Impl>(Impl{kind, options, {}, {}})) {
  if (kind == ReportKind::kScanTargetTable || kind == ReportKind::kScanDomainTable) {
    Thresholds rules;
    rules.target = {options.report.e_value, options.report.score};
    rules.domain = {options.report_domain.e_value, options.report_domain.score};
    rules.include_target = {options.include.e_value, options.include.score};
    rules.include_domain = {options.include_domain.e_value, options.include_domain.score};
    rules.cutoffs = static_cast<hmmjit::ModelCutoffs>(options.cutoffs);
    impl_->scan.emplace(rules);
  }
}
Report Report::to_file(ReportKind kind, const std::string& path, const ReportOptions& options) {
  Report out(kind, options);
  out.impl_->file = value(OutputFile::create(path));
  return out;
}
Report::~Report() = default;
Report::Report(Report&&) noexcept = default;
Report& Report::operator=(Report&&) noexcept = default;

void Report::add_text(const std::string& text) {
  impl_->text += text;
  impl_->flush();
}

void Report::add(const ModelResult& given) {
  if (impl_->completed) throw Error(ErrorCode::kUsage, "this report is complete");
  const hmmjit::ModelResult& result = given.impl()->result;
  const ReportOptions& o = impl_->options;
  std::string& text = impl_->text;
  switch (impl_->kind) {
    case ReportKind::kMain:
      append_model_report(text, result, {o.prefer_accession, o.alignments, o.text_width},
                          {o.F1, o.F2, o.F3, o.bias_filter},
                          {result.cpu_seconds, 0, result.seconds});
      break;
    case ReportKind::kTargetTable:
      if (!impl_->begun) append_target_table_header(text, result.model, result.hits);
      append_target_table(text, result.model, result.hits);
      break;
    case ReportKind::kDomainTable:
      if (!impl_->begun) append_domain_table_header(text, result.model, result.hits);
      append_domain_table(text, result.model, result.hits);
      break;
    case ReportKind::kPfamTable:
      append_pfam_table(text, result.hits);
      break;
    case ReportKind::kAlignment:
      append_stockholm(text, result.model, result.hits, o.text_width == 0 ? 0 : kAlignmentColumns,
                       std::string("libhmmjit ") + HMMJIT_VERSION);
      break;
    case ReportKind::kTsv:
      if (!impl_->begun) append_tsv_header(text);
      append_tsv(text, result);
      break;
    case ReportKind::kJson:
      impl_->totals.add(result);
      append_json(text, result, o.alignments);
      break;
    case ReportKind::kA3m:
      append_a3m(text, result.model, result.hits);
      break;
    case ReportKind::kScanTargetTable:
    case ReportKind::kScanDomainTable:
      impl_->scan->add(result);
      break;
  }
  impl_->begun = true;
  impl_->flush();
}

void Report::complete(const RunInfo& info) {
  if (impl_->completed) throw Error(ErrorCode::kUsage, "this report is complete");
  impl_->completed = true;
  std::string& text = impl_->text;
  RunDescription run;
  run.program = info.program;
  run.version = info.version.empty() ? HMMJIT_VERSION : info.version;
  run.query_file = info.query_file;
  run.target_file = info.target_file;
  run.option_settings = info.settings;
  run.folder = info.folder;
  run.date = info.date;
  run.scan = impl_->scan.has_value();
  switch (impl_->kind) {
    case ReportKind::kMain:
      text += "[ok]\n";
      break;
    case ReportKind::kScanTargetTable:
      impl_->scan->append(&text, nullptr);
      append_table_trailer(text, run);
      break;
    case ReportKind::kScanDomainTable:
      impl_->scan->append(nullptr, &text);
      append_table_trailer(text, run);
      break;
    case ReportKind::kTargetTable:
    case ReportKind::kDomainTable:
    case ReportKind::kPfamTable:
      append_table_trailer(text, run);
      break;
    case ReportKind::kJson:
      append_json_run(text, run, impl_->totals);
      break;
    case ReportKind::kAlignment:
    case ReportKind::kTsv:
    case ReportKind::kA3m:
      break;
  }
  if (!impl_->file) return;
  impl_->flush();
  check(impl_->file->flush());
  check(impl_->file->commit());
}

std::string Report::take_text() {
  if (impl_->file) throw Error(ErrorCode::kUsage, "this report is a file", impl_->file->path());
  return std::exchange(impl_->text, {});
}

std::string report_text(ReportKind kind, const SearchResults& results, const ReportOptions& options,
                        const RunInfo& run) {
  return guarded([&] {
    Report report(kind, options);
    for (const ModelResult& result : results.models) report.add(result);
    report.complete(run);
    return report.take_text();
  });
}

}  // namespace hmmjit::v0
