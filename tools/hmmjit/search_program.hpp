// The programs that search targets: one shared implementation, and descriptions of their
// differences.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "build/score_system.hpp"
#include "command_line.hpp"
#include "core/output_file.hpp"
#include "option_table.hpp"
#include "report/report_writer.hpp"
#include "run_text.hpp"
#include "search/device_choice.hpp"
#include "search/search.hpp"
#include "search/session.hpp"

namespace hmmjit::nucleotide {
class DeviceScan;
}
namespace hmmjit::tools {

struct RunContext;
class NucleotideQueries;
class QuerySequences;
struct ModelFile;

/// Queries that are sequences.
struct SequenceQueries {
  ModelSource models;  ///< empty if the program has its own search loop
  build::CalibrationOptions calibration;
  std::shared_ptr<QuerySequences> sequences;
  build::ScoreSystem system;
  const Alphabet* alphabet = &amino_alphabet();
  std::shared_ptr<NucleotideQueries> nucleotides;
};

struct Devices {
  Session& session;
  nucleotide::DeviceScan* scan;  ///< for long targets; null: CPU only
};

/// The input of a program with its own search loop: all files are open, nothing is read.
struct ProgramRun {
  const SearchProgram& program;
  const ParsedOptions& options;
  SearchOptions& search;
  ReportOptions& report;
  SequenceQueries* queries;  ///< null if queries are profiles
  ModelSource profiles;      ///< if queries are profiles
  ModelFile& model_file;
  std::shared_ptr<const ResidentModels> kept_models;  ///< of the profile file; may be null
  std::unique_ptr<TargetSource>& targets;
  Devices devices;
  ReportWriter& writer;
  SearchProgress& progress;
  /// The program's own complete files, which get their names together with the reports.
  std::vector<OutputFile>& further_files;
  /// Passes a result to the feature files (--gff, ...); empty: there are none.
  std::function<Status(const ModelResult&)> add_features;
};

/// SearchProgram::targets of a program that searches one or several sequence databases.
ArgumentSpec target_databases();

struct SearchProgram {
  std::string_view name;       ///< "search", after "hmmjit"
  std::string_view title;      ///< its purpose, for the header
  std::string_view reference;  ///< the HMMER program whose result lines it prints: "hmmsearch"
  ArgumentSpec queries, targets;
  std::string_view query_label;  ///< of the query file in the header: "query HMM file:"
  std::string_view target_label = "target sequence database:";
  bool by_sequence = false;  ///< the second file is the query (hmmscan)
  bool long_targets = false;  ///< both strands of nucleotides; a device runs SSV
  std::span<const OptionSpec> (*options)();
  /// Opens a file of query sequences; null if queries are profiles.
  Result<SequenceQueries> (*open_queries)(const ParsedOptions& options,
                                          const std::string& path) = nullptr;
  /// Searches and passes all text to the writer; null: one search, reported like hmmsearch's.
  Result<SearchStatistics> (*search)(ProgramRun& run) = nullptr;
};

/// A program that searches sequences against profiles, by sequence: hmmscan, nhmmscan.
SearchProgram scan_program(std::string_view name, std::string_view title,
                           std::string_view reference);

/// The names of outputs on a command line. Without a name, the main report goes to
/// `standard_output`.
ReportPaths report_paths(const ParsedOptions& options, int standard_output = 1);

/// The author in outputs of `program`.
Author author_of(const SearchProgram& program, const ParsedOptions& options);

/// True if a server may run `program`: it has the option --server.
bool served(const SearchProgram& program);
/// Fails with kUsage for options that no server accepts.
Status check_served(const ParsedOptions& options);
/// Runs `program` in the context of a request, like its command.
Status run_request(const SearchProgram& program, const ParsedOptions& options,
                   const RunContext& context);
/// Asks the server of --server to run `program`; returns the exit status.
Result<int> ask_server(const SearchProgram& program, const ParsedOptions& options);

/// Settings for the devices of `choice`. `positions`: of all models, if known. Also sets the
/// driver's environment variables: call it before the driver starts.
gpu::Settings gpu_settings(const DeviceChoice& choice, std::optional<double> positions,
                           Trace* trace);

CommandSpec command_of(const SearchProgram& program, std::string_view summary);

}  // namespace hmmjit::tools
