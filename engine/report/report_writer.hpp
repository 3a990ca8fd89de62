// All output files of one search, written as results arrive.
#pragma once

#include <array>
#include <map>
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
#include "report/outputs.hpp"
#include "report/records.hpp"
#include "report/scan.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// The `where` of errors on standard output.
inline constexpr const char* kStandardOutput = "standard output";

/// The path of each kind of output. Empty: no such output, except that the main report goes to
/// standard output. With "{query}" in the path, each query gets a file, which is published when the
/// query is complete.
struct ReportPaths {
  std::map<OutputKind, std::string> files;
  int standard_output = 1;     ///< its descriptor
  std::string alignment_name;  ///< name for the alignment in the main report; empty: the path
};
/// `path` with "{query}" replaced by the query's name, in which '/' becomes '_'.
std::string path_of_query(std::string path, std::string_view query);

/// Tables that consecutive searches share: unless `ends`, a writer leaves them here, unpublished,
/// for the writer of the next search.
struct JoinedOutputs {
  std::set<OutputKind> kinds;  ///< which tables are shared
  bool begun = false, ends = false;
  std::vector<TextOutput> files = {};
};

/// Writes hmmsearch's outputs from a search's results, in model order. `complete` publishes the
/// files; standard output is written as models complete.
class ReportWriter final : public ResultSink {
 public:
  /// `header`: the comment block that opens the main report. Fails with kOutput.
  static Result<std::unique_ptr<ReportWriter>> create(const ReportPaths& paths,
                                                      const ReportOptions& options,
                                                      const FilterOptions& filters,
                                                      std::string author,
                                                      const std::string& header,
                                                      JoinedOutputs* joined = nullptr);
  /// Sets the description of the run for files of single queries. Call it before the first result.
  void describe(const RunDescription& run) { run_ = run; }
  /// The other files of the run, which no file of a query may overwrite.
  void protect(std::vector<NamedFile> files) { other_files_ = std::move(files); }

  std::shared_ptr<PreparedResult> prepare(const ModelResult& result) const override;
  Status receive(const ModelResult& result) override;
  bool takes_stored_hits() const override { return true; }

  /// For ReportOptions::scan_by_range. begin_scan: whether an earlier slice has the column names.
  /// receive_scan: adds the tables of further targets.
  void begin_scan(bool begun) { scan_begun_ = begun; }
  Status receive_scan(ScanTables& tables, bool only_with_hits);
  /// Adds the counts of another slice's models, or of a query written with put(), to the totals.
  void count(const RunTotals& totals);
  /// For jackhmmer, which formats a query's text itself. Instead of receive(), call in this order:
  /// begin_query, begin_model with the result's totals, put for each text, count, end_query.
  Status begin_query(const std::string& name);
  Status begin_model(const ModelResult& totals);
  Status put(OutputKind kind, std::string_view text);
  Status end_query();
  /// For RecordOptions::kept, before `complete`: for each reported domain, whether it remains.
  void resolve(std::vector<bool> kept) { kept_ = std::move(kept); }
  /// Writes the trailers, then publishes all files together with `others`, which are already
  /// complete. With kProcessEnds, signals are dropped from then on: the process ends with success.
  Status complete(const RunDescription& run, std::span<OutputFile* const> others = {},
                  OutputFile::Afterwards afterwards = OutputFile::Afterwards::kProcessEnds);

 private:
  struct File {
    std::string path;
    bool by_query = false;  // the path has "{query}"
    bool joined = false;    // shared with other searches
    bool begun = false;     // column names have been written
    std::optional<TextOutput> file;  // none: no output, or between two queries
    std::optional<SpoolFile> held;   // text held until the kept domains are known
  };
  class Texts;
  class Counts;
  ReportWriter() = default;
  File& file_of(OutputKind kind) { return files_[static_cast<std::size_t>(kind)]; }
  const File& file_of(OutputKind kind) const { return files_[static_cast<std::size_t>(kind)]; }
  bool wanted(OutputKind kind) const { return file_of(kind).file || file_of(kind).by_query; }
  Outputs make_outputs(const ModelResult& result) const;
  // Writes the held text once the kept domains are known.
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
  std::set<std::string> queries_;       // queries with files of their own
  std::vector<NamedFile> other_files_;  // which those must not overwrite
  std::vector<bool> kept_;
  bool scan_begun_ = false;
};

}  // namespace hmmjit
