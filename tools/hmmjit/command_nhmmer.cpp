// hmmjit nhmmer: DNA and RNA models, alignments and sequences against long sequences, both strands.
#include <optional>
#include <utility>
#include <vector>

#include "build/hmm_writer.hpp"
#include "hmmjit/command.hpp"
#include "nucleotide_options.hpp"
#include "nucleotide_queries.hpp"
#include "query_options.hpp"
#include "report/nucleotide_run.hpp"
#include "report/records.hpp"
#include "report/stockholm.hpp"
#include "search_inputs.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

Result<SequenceQueries> open_queries(const ParsedOptions& options, const std::string& path) {
  SequenceQueries queries;
  HMMJIT_ASSIGN(queries.nucleotides, NucleotideQueries::open(options, path));
  queries.alphabet = &queries.nucleotides->alphabet();
  return queries;
}

// What nhmmer writes besides the report writer's files.
struct FurtherFiles {
  std::optional<OutputFile> dfam, column_scores, models;

  Status begin(const ParsedOptions& options, bool builds) {
    for (const auto& [option, file] : {std::pair{"--dfamtblout", &dfam},
                                       {"--aliscoresout", &column_scores},
                                       {"--hmmout", &models}}) {
      if (!options.is_set(option) || (file == &models && !builds)) continue;
      HMMJIT_ASSIGN(*file, OutputFile::create(std::string(options.text(option))));
    }
    return {};
  }
  void end(std::vector<OutputFile>& all) {
    for (std::optional<OutputFile>* file : {&dfam, &column_scores, &models})
      if (*file) all.push_back(std::move(**file));
  }
};

class Nhmmer {
 public:
  explicit Nhmmer(ProgramRun& run)
      : run_(run),
        queries_(*run.queries->nucleotides),
        options_(make_nucleotide_options(run.options, run.search, false)) {}

  Result<SearchStatistics> search() {
    if (!run_.options.is_set("--dna") && !run_.options.is_set("--rna"))
      HMMJIT_TRY(check_nucleotides(run_.options.arguments()[1]));
    HMMJIT_TRY(files_.begin(run_.options, queries_.builds()));
    const NucleotideRun run{
        .options = options_,
        .next_query = [this] { return next_query(); },
        .receive = [this](const NucleotideResult& result,
                          const ModelResult& single) { return write(result, single); },
        .target_file = run_.options.arguments()[1]};
    auto statistics = run_nucleotides(run, *run_.targets, run_.progress);
    if (statistics) files_.end(run_.further_files);
    return statistics;
  }

 private:
  Result<std::optional<nucleotide::Query>> next_query() {
    HMMJIT_ASSIGN(std::optional<build::BuiltModel> built, queries_.next());
    if (!built) return std::nullopt;
    if (files_.models) {
      std::string text;
      append_hmm_text(text, *built, author_of(run_.options).model_tag(), date_text());
      files_.models->write(text);
    }
    const int length = window_length(run_.options, built->hmm);
    return make_nucleotide_query(std::move(built->hmm), length, run_.search.thresholds);
  }

  Status write(const NucleotideResult& result, const ModelResult& single) {
    std::string text;
    const auto put = [&](OutputKind kind) {
      return run_.writer.put(kind, std::exchange(text, {}));
    };
    HMMJIT_TRY(run_.writer.begin_query(single.model.name));
    append_nucleotide_table_header(text, result);
    HMMJIT_TRY(run_.writer.begin_model(single, std::exchange(text, {})));
    append_nucleotide_table(text, result);
    HMMJIT_TRY(put(OutputKind::kTargets));
    const ReportPaths& paths = run_.paths;
    if (!paths.tsv.empty()) append_tsv(text, single, run_.report.records);
    HMMJIT_TRY(put(OutputKind::kTsv));
    if (!paths.json.empty()) {
      append_json_model(text, single, run_.report.records);
      append_json_targets(text, single, run_.report.alignments, run_.report.records);
    }
    HMMJIT_TRY(put(OutputKind::kJson));
    std::size_t aligned = run_.report.aligned_targets;
    if (!paths.a3m.empty()) append_a3m(text, single, false, &aligned);
    HMMJIT_TRY(put(OutputKind::kA3m));
    append_nucleotide_report(text, result, run_.report, options_);
    if (!paths.alignment.empty()) {
      HMMJIT_ASSIGN(const std::size_t rows, write_alignment(single));
      text += rows == 0 ? "# No hits satisfy inclusion thresholds; no alignment saved\n"
                        : fmt::format(
                              "# Alignment of {} hits satisfying inclusion thresholds "
                              "saved to: {}\n",
                              rows, path_of_query(paths.alignment, single.model.name));
    }
    HMMJIT_TRY(put(OutputKind::kMain));
    if (files_.dfam) {
      append_dfam_table(text, result);
      files_.dfam->write(std::exchange(text, {}));
    }
    if (files_.column_scores) {
      append_column_scores(text, result);
      files_.column_scores->write(text);
    }
    if (run_.add_features) HMMJIT_TRY(run_.add_features(single));
    RunTotals totals;
    totals.add(single);
    totals.add_domains(single.hits.hits);
    run_.writer.count(totals);
    return run_.writer.end_query();
  }

  // The number of rows.
  Result<std::size_t> write_alignment(const ModelResult& single) {
    AlignmentColumns columns(single.model, {.targets = run_.report.aligned_targets,
                                            .all_nodes = false});
    HMMJIT_TRY(columns.measure(single.hits.hits));
    HMMJIT_ASSIGN(const std::size_t rows, columns.finish());
    if (rows == 0) return rows;  // no columns either
    StockholmRecord record(columns, single.model.name,
                           run_.report.text_width == 0 ? 0 : kAlignmentColumns,
                           author_of(run_.options).signature());
    HMMJIT_TRY(record.add(single.hits.hits));
    HMMJIT_TRY(record.write(
        [&](std::string_view text) { return run_.writer.put(OutputKind::kAlignment, text); }));
    return rows;
  }

  static Author author_of(const ParsedOptions& options);

  ProgramRun& run_;
  NucleotideQueries& queries_;
  const nucleotide::Options options_;
  FurtherFiles files_;
};

const SearchProgram& program() {
  static const SearchProgram nhmmer = [] {
    SearchProgram p;
    p.name = p.reference = "nhmmer";
    p.title = "search a DNA model, alignment, or sequence against a DNA database";
    p.queries = {"queryfile", "profile HMMs, alignments or sequences; - for standard input"};
    p.targets = target_databases();
    p.query_label = "query file:";
    p.options = nhmmer_option_table;
    p.open_queries = open_queries;
    p.search = [](ProgramRun& run) { return Nhmmer(run).search(); };
    return p;
  }();
  return nhmmer;
}

Author Nhmmer::author_of(const ParsedOptions& options) {
  return tools::author_of(program(), options);
}

}  // namespace

CommandSpec nhmmer_command() {
  return command_of(program(), "search DNA or RNA against long sequences, as nhmmer does");
}

}  // namespace hmmjit::tools
