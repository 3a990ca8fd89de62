// Reports from results in memory.
#include "hmmjit/report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <utility>

#include "api/defaults.hpp"
#include "api/handles.hpp"
#include "api/iteration.hpp"
#include "api/results.hpp"
#include "api/structs.hpp"
#include "core/output_file.hpp"
#include "report/outputs.hpp"
#include "report/page_results.hpp"
#include "report/report_header.hpp"
#include "report/scan.hpp"

namespace hmmjit::v0 {

struct Report::Impl {
  ReportKind kind;
  hmmjit_report_options options;
  hmmjit::SearchOptions search;
  std::string page_title;
  std::optional<OutputFile> file = {};
  std::string text = {};  // not yet written or taken
  bool begun = false, completed = false;
  bool by_sequence = false;  // results of a scan
  RunTotals totals = {};
  std::optional<ScanTables> scan = {};
  std::optional<Page> page = {};

  void require_open() const {
    if (completed) throw Error(ErrorCode::kUsage, "this report is complete");
  }
  void flush() {
    if (!file) return;
    file->write(text);
    text.clear();
  }
  void add(const ModelResult& given);
  void complete(const hmmjit_run_info& info);
};

namespace {

// nullopt: a kind that is not written model by model.
std::optional<OutputKind> output_kind(ReportKind kind) {
  constexpr OutputKind kKinds[] = {OutputKind::kMain, OutputKind::kTargets,   OutputKind::kDomains,
                                   OutputKind::kPfam, OutputKind::kAlignment, OutputKind::kTsv,
                                   OutputKind::kJson, OutputKind::kA3m};
  static_assert(std::size(kKinds) == static_cast<int>(ReportKind::kA3m) + 1);
  if (kind == ReportKind::kDfamTable) return OutputKind::kDfam;
  return kind <= ReportKind::kA3m ? std::optional(kKinds[static_cast<int>(kind)]) : std::nullopt;
}

bool is_scan(ReportKind kind) {
  return kind == ReportKind::kScanTargetTable || kind == ReportKind::kScanDomainTable;
}

RunDescription describe(const hmmjit_run_info& info) {
  RunDescription run;
  run.program = info.program != nullptr ? info.program : "libhmmjit";
  run.version = text_of(info.version).empty() ? HMMJIT_VERSION : info.version;
  run.query_file = text_of(info.query_file);
  run.target_file = text_of(info.target_file);
  run.option_settings = text_of(info.settings);
  run.folder = text_of(info.folder);
  run.date = text_of(info.date);
  return run;
}

hmmjit_search_options search_of(const hmmjit_report_options& options) {
  const hmmjit_search_options search = read(options.search, SearchOptions());
  check_options(search);
  return search;
}

}  // namespace

ReportOptions::ReportOptions() noexcept : hmmjit_report_options(hmmjit_defaults::kReportOptions) {}

Report::Report(ReportKind kind, const hmmjit_report_options& options)
    : impl_(guarded([&] {
        check_choice(static_cast<std::int32_t>(kind), HMMJIT_REPORT_DFAM_TABLE, "kind of report");
        require(options.text_width == 0 || options.text_width >= kNarrowestText, "text_width",
                "120 columns or more, or 0 for no limit");
        auto impl = std::make_unique<Impl>(
            Impl{kind, options, to_options(search_of(options)), text_of(options.page_title)});
        impl->options.alignments = options.alignments != 0 && impl->search.keep_alignments;
        if (kind == ReportKind::kHtmlPage) impl->page.emplace();
        if (is_scan(kind)) impl->scan.emplace(impl->search.thresholds);
        return impl;
      })) {}
Report Report::to_file(ReportKind kind, const std::string& path,
                       const hmmjit_report_options& options) {
  Report out(kind, options);
  guarded([&] {
    check_output(path);
    out.impl_->file = value(OutputFile::create(path));
  });
  return out;
}
Report::~Report() = default;
Report::Report(Report&&) noexcept = default;
Report& Report::operator=(Report&&) noexcept = default;

void Report::add_text(const std::string& text) {
  guarded([&] {
    impl_->require_open();
    impl_->text += text;
    impl_->flush();
  });
}
void Report::add(const ModelResult& result) {
  guarded([&] { impl_->add(result); });
}
void Report::add(const IterativeSearch& search, std::size_t query) {
  guarded([&] {
    impl_->require_open();
    const IterativeSearch::Impl& rounds = *search.impl();
    if (query >= rounds.queries.size() || !rounds.queries[query].rounds->done())
      throw Error(ErrorCode::kUsage, "the rounds of the query are not done",
                  "query " + std::to_string(query));
    const auto append = [&](OutputKind kind, bool wanted, const char* option) {
      if (!wanted)
        throw Error(ErrorCode::kUsage, "the search in rounds was not asked for this output",
                    "query " + std::to_string(query), std::string("set ") + option);
      impl_->text += rounds.queries[query].rounds->text(kind).text;
      impl_->begun = true;
      impl_->flush();
    };
    switch (impl_->kind) {
      case ReportKind::kMain:
        return append(OutputKind::kMain, true, "");
      case ReportKind::kAlignment:
        return append(OutputKind::kAlignment, !rounds.options.alignment_path.empty(),
                      "alignment_file");
      case ReportKind::kA3m:
        return append(OutputKind::kA3m, rounds.options.tables.contains(OutputKind::kA3m), "a3m");
      case ReportKind::kPfamTable:
      case ReportKind::kScanTargetTable:
      case ReportKind::kScanDomainTable:
        throw Error(ErrorCode::kUsage, "a search in rounds has no such table");
      default:
        return impl_->add(*rounds.queries[query].result);
    }
  });
}
void Report::complete(const hmmjit_run_info& run) {
  guarded([&] { impl_->complete(run); });
}

void Report::Impl::add(const ModelResult& given) {
  require_open();
  const hmmjit::ModelResult& result = given.impl()->result;
  by_sequence |= given.impl()->scan;
  if (given.impl()->scan && (is_scan(kind) || kind == ReportKind::kAlignment ||
                             kind == ReportKind::kA3m || kind == ReportKind::kHtmlPage))
    throw Error(ErrorCode::kUsage, "a scan has no such report", "sequence " + result.model.name,
                "make another kind of report, or search");
  const bool alignments = options.alignments != 0 && result.alignments;
  if ((kind == ReportKind::kAlignment || kind == ReportKind::kA3m) && !result.alignments) {
    throw Error(ErrorCode::kUsage, "the search kept no alignments to be reported",
                "model " + result.model.name, "search with keep_alignments");
  }
  if (is_scan(kind) && !result.hits.Z_is_set) {
    throw Error(ErrorCode::kUsage,
                "tables by target need a search whose Z is the number of models, not of targets",
                "model " + result.model.name, "set Z of the search to the number of models");
  }
  const bool of_nhmmer = result.nucleotides.has_value();
  if (of_nhmmer
          ? is_scan(kind) || kind == ReportKind::kDomainTable || kind == ReportKind::kPfamTable
          : kind == ReportKind::kDfamTable)
    throw Error(ErrorCode::kUsage,
                of_nhmmer ? "nhmmer has no such table" : "only nhmmer has a table for Dfam",
                "model " + result.model.name, "make another kind of report");
  totals.add(result);
  totals.add_domains(result.hits.hits);
  if (const auto output = output_kind(kind)) {
    OutputSettings settings{{options.prefer_accession != 0, alignments, options.text_width},
                            search.filters,
                            std::string("libhmmjit ") + HMMJIT_VERSION};
    settings.report.records.by_sequence = given.impl()->scan;
    if (!begun) append_output_header(text, *output, result, settings.report.records);
    Outputs outputs;
    outputs.push_back(make_output(*output, result, settings));
    check(write_model(result, outputs, [this](OutputKind, std::string_view more) -> Status {
      text += more;
      return {};
    }));
  } else if (is_scan(kind)) {
    check(scan->add(result));
  } else {
    add_to_page(*page, result, alignments);
  }
  begun = true;
  flush();
}

void Report::Impl::complete(const hmmjit_run_info& info) {
  require_open();
  completed = true;
  RunDescription run = describe(info);
  run.scan = scan.has_value() || by_sequence;
  run.by_sequence = by_sequence;
  if (by_sequence)
    std::swap(run.query_file, run.target_file);  // a run description names the models first
  const auto append = [this](std::string_view more) -> Status {
    text += more;
    return {};
  };
  if (const auto output = output_kind(kind)) {
    append_output_trailer(text, *output, run, totals);
  } else if (scan) {
    (void)value(kind == ReportKind::kScanTargetTable
                    ? scan->write({.targets = append, .domains = {}})
                    : scan->write({.targets = {}, .domains = append}));
    append_table_trailer(text, run);
  } else if (page) {
    describe_run(*page, run, totals);
    if (!page_title.empty()) page->title = page_title;
    keep_best(*page, options.page_targets);
    text += make_html_page(*page);
    page.emplace();
  }
  if (!file) return;
  flush();
  check(file->flush());
  check(file->commit());
}

std::string Report::take_text() {
  return guarded([&] {
    if (impl_->file) throw Error(ErrorCode::kUsage, "this report is a file", impl_->file->path());
    return std::exchange(impl_->text, {});
  });
}

std::string main_report_header(const hmmjit_run_info& info, const hmmjit_report_options& options) {
  return guarded([&] {
    const hmmjit_search_options search = search_of(options);
    const RunDescription run = describe(info);
    const SearchOptions usual;
    std::vector<HeaderSetting> settings;
    const auto flag = [&](bool set, std::string_view option) {
      if (set) settings.push_back({option});
    };
    const auto given = [&](bool differs, std::string_view option, const auto& value) {
      if (differs) settings.push_back({option, fmt::format("{}", value)});
    };
    const auto threshold = [&](std::string_view e_value, std::string_view score, double chosen,
                               double normal, double bits) {
      given(std::isnan(bits) && chosen != normal, e_value, chosen);
      given(!std::isnan(bits), score, bits);
    };
    const bool filters = search.max_sensitivity == 0;
    flag(options.prefer_accession != 0, "--acc");
    flag(options.alignments == 0 || search.keep_alignments == 0, "--noali");
    flag(options.text_width == 0, "--notextw");
    given(options.text_width != 0 && options.text_width != kNarrowestText, "--textw",
          options.text_width);
    threshold("-E", "-T", search.E, usual.E, search.T);
    threshold("--domE", "--domT", search.domE, usual.domE, search.domT);
    threshold("--incE", "--incT", search.incE, usual.incE, search.incT);
    threshold("--incdomE", "--incdomT", search.incdomE, usual.incdomE, search.incdomT);
    flag(search.cutoffs == HMMJIT_CUT_GA, "--cut_ga");
    flag(search.cutoffs == HMMJIT_CUT_NC, "--cut_nc");
    flag(search.cutoffs == HMMJIT_CUT_TC, "--cut_tc");
    given(search.cutoffs == HMMJIT_CUT_TABLE, "--cut-file", "a table");
    flag(!filters, "--max");
    given(filters && search.F1 != usual.F1, "--F1", search.F1);
    given(filters && search.F2 != usual.F2, "--F2", search.F2);
    given(filters && search.F3 != usual.F3, "--F3", search.F3);
    flag(filters && search.bias_filter == 0, "--nobias");
    given(!text_of(search.first_target).empty(), "--restrictdb_stkey",
          text_of(search.first_target));
    given(search.target_count != -1, "--restrictdb_n", search.target_count);
    flag(search.null2 == 0, "--nonull2");
    given(search.Z != 0, "-Z", search.Z);
    given(search.domZ != 0, "--domZ", search.domZ);
    given(search.seed != usual.seed, "--seed", search.seed);
    given(search.threads > 0, "--cpu", search.threads);
    std::string header = ReportHeader::banner(
        run.program, "search profile(s) against a sequence database", run.version);
    header += ReportHeader::kRule;
    header += ReportHeader::line("query HMM file:", run.query_file);
    header += ReportHeader::line("target sequence database:", run.target_file);
    header += ReportHeader::settings("hmmsearch", settings);
    return (header += ReportHeader::kRule) += "\n";
  });
}

std::string report_text(ReportKind kind, const SearchResults& results) {
  return report_text(kind, results, ReportOptions(results.options));
}

std::string report_text(ReportKind kind, const SearchResults& results,
                        const hmmjit_report_options& options, const hmmjit_run_info& run) {
  return guarded([&] {
    Report report(kind, options);
    for (const ModelResult& result : results.models) report.add(result);
    report.complete(run);
    return report.take_text();
  });
}

}  // namespace hmmjit::v0
