// One search: from the command line of its program to its outputs.
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

/// What {word}s in names of outputs stand for: parts of the name of the target file, or a query.
inline constexpr std::string_view kOutputWords[] = {"{target}", "{folder}", "{path}", "{query}"};

/// The parsed command line.
struct SearchRequest {
  SearchOptions search;
  ReportOptions report;
  DeviceChoice device;
  std::optional<PartRequest> part;
  std::optional<SequenceFormat> format;
};

/// The outputs that the command line names, and the file of a single part.
std::vector<NamedFile> outputs_of(const SearchProgram& program, const ParsedOptions& options,
                                  const std::optional<PartRequest>& part);
/// Fails with kUsage where files do not fit the program or outputs would be lost.
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
  /// Fails with kInput where there is no model, or none with the cutoffs asked for.
  Status open_models();
  /// Of the alphabet of the models, which must be open.
  Status open_targets();
  /// The targets of `options`, those of this search or of another one with the same models. Fails
  /// with kInput where nhmmer's are not plainly nucleotides.
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

/// Objects that outlive the search: threads of the GPU may still work when all results are written.
struct Run {
  const RunContext& context;
  std::optional<Trace> trace = {};
  std::shared_ptr<Session> session = {};
  std::unique_ptr<nucleotide::DeviceScan> scan = {};  // instead, for long targets
  gpu::Statistics earlier = {};                       // of a server's session
  bool uses_device() const {
    return scan != nullptr || (session != nullptr && session->devices() != nullptr);
  }
  std::optional<gpu::Statistics> device_statistics() const {
    return scan != nullptr ? std::optional(scan->statistics())
                           : session->device_statistics(earlier);
  }
  // The search has failed because of a wrong kernel and can be repeated on the CPU; it is being
  // repeated.
  bool repeatable = false, repeated = false;
};

/// Searches and writes all outputs. Where a GPU kernel computes wrong scores, the search is
/// repeated on the CPU. `afterwards`: of the process, once the outputs have their names; `joined`:
/// tables that several searches share.
Status search_and_repeat(const SearchProgram& program, const ParsedOptions& options, Run& run,
                         OutputFile::Afterwards afterwards = OutputFile::Afterwards::kProcessEnds,
                         JoinedOutputs* joined = nullptr);

/// Several target files: a search of each, one after the other, with outputs of its own.
Status search_each_target(const SearchProgram& program, const ParsedOptions& options,
                          const RunContext& context);

}  // namespace hmmjit::tools
