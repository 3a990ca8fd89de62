// One search, from its command line to its outputs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/trace.hpp"
#include "nucleotide/device_scan.hpp"
#include "output_names.hpp"
#include "part_search.hpp"
#include "report/report_writer.hpp"
#include "run_context.hpp"
#include "search/device_choice.hpp"
#include "search/search.hpp"
#include "search/session.hpp"
#include "search_inputs.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {

/// Words in names of outputs: parts of the target file's name, or the query.
inline constexpr std::string_view kOutputWords[] = {"{target}", "{folder}", "{path}", "{query}"};

/// The parsed command line.
struct SearchRequest {
  SearchOptions search;
  ReportOptions report;
  DeviceChoice device;
  std::optional<PartRequest> part;
  std::optional<SequenceFormat> format;
};

/// The outputs on the command line, the file of a single part, and those of jackhmmer's rounds.
std::vector<NamedFile> outputs_of(const SearchProgram& program, const ParsedOptions& options,
                                  const std::optional<PartRequest>& part);
/// Fails with kUsage if files do not suit the program, or outputs would be lost.
Status check_files(const SearchProgram& program, const ParsedOptions& options,
                   const std::optional<PartRequest>& part);
/// Checks the command line; opens nothing.
Result<SearchRequest> make_request(const SearchProgram& program, const ParsedOptions& options,
                                   const RunContext& context);

/// The models or query sequences of a search, and its targets.
class SearchInputs {
 public:
  SearchInputs(const SearchProgram& program, const ParsedOptions& options,
               const RunContext& context, const SearchRequest& request, ModelFile& models)
      : program_(program),
        options_(options),
        context_(context),
        request_(request),
        model_file_(models) {}
  /// Fails with kInput without a model, or without a model with the requested cutoffs.
  Status open_models();
  /// Opens targets with the models' alphabet. Call open_models() first.
  Status open_targets();
  /// The targets of `options`: of this search, or of another search with the same models. Fails
  /// with kInput if nhmmer's targets are not plainly nucleotides.
  Result<std::unique_ptr<TargetSource>> targets_of(const ParsedOptions& options) const;
  ModelSource profiles();
  SequenceQueries* queries() { return queries_ ? &*queries_ : nullptr; }
  ModelFile& model_file() { return model_file_; }
  const Alphabet& alphabet() const { return *alphabet_; }

  std::unique_ptr<TargetSource> targets;

 private:
  const SearchProgram& program_;
  const ParsedOptions& options_;
  const RunContext& context_;
  const SearchRequest& request_;
  ModelFile& model_file_;
  const Alphabet* alphabet_ = &amino_alphabet();
  std::optional<ModelsToSearch> models_;
  std::string model_name_;  // of the first one
  std::optional<SequenceQueries> queries_;
};

/// Objects that outlive the search: GPU threads may still run when all results are written.
struct Run {
  const RunContext& context;
  std::optional<Trace> trace = {};
  std::shared_ptr<Session> session = {};
  std::unique_ptr<nucleotide::DeviceScan> scan = {};  // for long targets, instead of the session
  gpu::Statistics earlier = {};                       // of a server's session, before this run
  bool uses_device() const {
    return scan != nullptr || (session != nullptr && session->devices() != nullptr);
  }
  std::optional<gpu::Statistics> device_statistics() const {
    return scan != nullptr ? std::optional(scan->statistics())
                           : session->device_statistics(earlier);
  }
  // repeatable: the search failed because of a wrong kernel, and can run again on the CPU.
  // repeated: it runs again.
  bool repeatable = false, repeated = false;
};

/// Searches and writes all outputs. If a GPU kernel computes wrong scores, searches again on the
/// CPU. `afterwards`: what the process does once the outputs have their names. `joined`: tables
/// shared with other searches.
Status search_and_repeat(const SearchProgram& program, const ParsedOptions& options, Run& run,
                         OutputFile::Afterwards afterwards = OutputFile::Afterwards::kProcessEnds,
                         JoinedOutputs* joined = nullptr);

/// Searches several target files, one after the other, each with its own outputs.
Status search_each_target(const SearchProgram& program, const ParsedOptions& options,
                          const RunContext& context);

}  // namespace hmmjit::tools
