// All output files of one search, written as results arrive.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/output_file.hpp"
#include "core/spool_file.hpp"
#include "io/text_output.hpp"
#include "report/nucleotide_report.hpp"
#include "report/outputs.hpp"
#include "report/records.hpp"
#include "report/scan.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// The place of errors of standard output.
inline constexpr const char* kStandardOutput = "standard output";

/// The path of each kind of output. An output with an empty path is not wanted; the main report
/// then goes to standard output. A path with "{query}" gives each query a file of its own, which is
/// published when the query is complete.
struct ReportPaths {
  std::string main, alignment, targets, domains, pfam;
  std::string tsv = {}, json = {}, a3m = {}, target_tsv = {};
  int standard_output = 1;                    ///< the descriptor
  std::string dfam = {}, column_scores = {};  ///< of nucleotides
  std::string alignment_name = {};  ///< of `alignment` in the main report; empty: the path
};
/// `path` with the name of a query for "{query}"; a '/' of the name becomes '_'.
std::string path_of_query(std::string path, std::string_view query);

/// Tables that several searches write one after the other: a writer leaves them here unpublished
/// for the writer of the next search, unless `ends`.
struct JoinedOutputs {
  bool tsv = false, target_tsv = false, json = false;  ///< the tables that are joined
  bool begun = false, ends = false;
  std::vector<TextOutput> files = {};
};

/// Writes hmmsearch's outputs from the results of a search, in model order. Files appear under
/// their names only in `complete`; standard output is written as models complete.
class ReportWriter final : public ResultSink {
 public:
  /// `header`: the comment block that opens the main report. Fails with kOutput.
  static Result<std::unique_ptr<ReportWriter>> create(const ReportPaths& paths,
                                                      const ReportOptions& options,
                                                      const FilterOptions& filters,
                                                      std::string author,
                                                      const std::string& header,
                                                      JoinedOutputs* joined = nullptr);
  /// Sets the description of the run in files of single queries. Call it before the first result.
  void describe(const RunDescription& run) { run_ = run; }
  /// The other files of the run: a query whose own file would be one of them is an error.
  void protect(std::vector<NamedFile> files) { other_files_ = std::move(files); }

  std::shared_ptr<PreparedResult> prepare(const ModelResult& result) const override;
  Status receive(const ModelResult& result) override;
  bool takes_stored_hits() const override { return true; }
  /// A query of nhmmer or nhmmscan. `single`: its hits as targets with one domain each.
  Status receive(const NucleotideResult& result, const ModelResult& single,
                 const nucleotide::Options& options);

  /// With ReportOptions::scan_by_range: tells whether an earlier piece has the column names, and
  /// adds the tables of further targets.
  void begin_scan(bool begun) { scan_begun_ = begun; }
  Status receive_scan(ScanTables& tables, bool only_with_hits);
  /// Adds to the totals: the counts of models in another piece of the result, or of a query whose
  /// text comes through put().
  void count(const RunTotals& totals);
  /// jackhmmer formats the text of a query itself. Instead of receive(), in this order:
  /// begin_query, begin_model with the totals of the result, put for each text, count, end_query.
  Status begin_query(const std::string& name);
  /// `targets_header`: in the place of --tblout's own, if any.
  Status begin_model(const ModelResult& totals, std::string_view targets_header = {});
  Status put(OutputKind kind, std::string_view text);
  Status end_query();
  /// With RecordOptions::kept, before `complete`: for each reported domain whether it remains.
  void resolve(std::vector<bool> kept) { kept_ = std::move(kept); }
  /// Writes the trailers, then publishes all files and `others`, which are complete except for
  /// their names, together. With kProcessEnds signals stay blocked: the process is expected to end
  /// with success.
  Status complete(const RunDescription& run, std::span<OutputFile* const> others = {},
                  OutputFile::Afterwards afterwards = OutputFile::Afterwards::kProcessEnds);

 private:
  struct File {
    std::string path;
    bool by_query = false;  // the path has "{query}"
    bool joined = false;    // with the outputs of other searches
    bool begun = false;     // column names are written
    std::optional<TextOutput> file;  // none: not wanted, or between two queries
    std::optional<SpoolFile> held;   // text that waits until the kept domains are known
  };
  class Texts;
  class Counts;
  ReportWriter() = default;
  File& file_of(OutputKind kind) { return files_[static_cast<std::size_t>(kind)]; }
  const File& file_of(OutputKind kind) const { return files_[static_cast<std::size_t>(kind)]; }
  bool wanted(OutputKind kind) const { return file_of(kind).file || file_of(kind).by_query; }
  Outputs make_outputs(const ModelResult& result) const;
  // Writes the text that was held until the kept domains are known.
  Status release(OutputKind kind);
  Status write_trailer(OutputKind kind, const RunDescription& run, const RunTotals& totals);
  Status write_saved_alignment(std::size_t rows);

  std::array<File, kOutputKinds> files_;
  JoinedOutputs* joined_ = nullptr;
  OutputSettings settings_;
  std::string header_;
  int standard_output_ = 1;
  std::string alignment_name_, saved_as_;  // with and without "{query}"
  RunDescription run_;
  std::optional<ScanTables> scan_;
  RunTotals totals_, query_totals_;
  std::set<std::string> queries_;       // with files of their own
  std::vector<NamedFile> other_files_;  // which they must not be
  std::vector<bool> kept_;
  bool scan_begun_ = false;
};

}  // namespace hmmjit
