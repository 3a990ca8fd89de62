// The outputs of a search. Each formats a model's hits lot by lot; write_model loops over all of
// them.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/main_report.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// Kinds of output, in the order of writing.
enum class OutputKind {
  kTargets,
  kDomains,
  kPfam,
  kDfam,          // nucleotides only
  kColumnScores,  // nucleotides only
  kTsv,
  kTargetTsv,
  kJson,
  kA3m,
  kAlignment,
  kMain
};
inline constexpr std::size_t kOutputKinds = 11;
inline constexpr std::array<OutputKind, kOutputKinds> kAllOutputs = {
    OutputKind::kTargets,      OutputKind::kDomains,   OutputKind::kPfam,      OutputKind::kDfam,
    OutputKind::kColumnScores, OutputKind::kTsv,       OutputKind::kTargetTsv, OutputKind::kJson,
    OutputKind::kA3m,          OutputKind::kAlignment, OutputKind::kMain};

struct OutputSettings {
  ReportOptions report;
  FilterOptions filters;
  std::string author;  ///< of the alignments
};

/// The text of one model in one output.
class Output {
 public:
  using Write = std::function<Status(std::string_view)>;

  explicit Output(OutputKind kind) : kind_(kind) {}
  virtual ~Output() = default;
  OutputKind kind() const { return kind_; }
  /// Number of passes over the hits.
  virtual int passes() const { return 1; }
  /// True if format() of this pass depends on its lot alone: threads may format lots concurrently.
  virtual bool independent(int) const { return false; }
  /// The text before the first pass.
  virtual void begin(std::string&) const {}
  /// Fails with kOutput.
  virtual Status format(int pass, const HitLot& lot, std::string& out) = 0;
  /// The text after a pass.
  virtual Status end(int, const Write&) { return {}; }
  /// Number of rows of the alignment, after the last pass.
  virtual std::size_t rows() const { return 0; }

 private:
  OutputKind kind_;
};
using Outputs = std::vector<std::unique_ptr<Output>>;

/// `result` and `settings` must outlive the output. Does not use the hits of `result`.
std::unique_ptr<Output> make_output(OutputKind kind, const ModelResult& result,
                                    const OutputSettings& settings);

/// Writes a model to all outputs, lot by lot. `write` receives the text of each kind in order.
/// Fails as `write` does, with kOutput, and if stored hits cannot be read.
Status write_model(const ModelResult& result, std::span<const std::unique_ptr<Output>> outputs,
                   const std::function<Status(OutputKind, std::string_view)>& write);

/// The text before a file's first model, which determines the column widths.
void append_output_header(std::string& out, OutputKind kind, const ModelResult& first,
                          const RecordOptions& records = {});
/// The text after the last model.
void append_output_trailer(std::string& out, OutputKind kind, const RunDescription& run,
                           const RunTotals& totals);

}  // namespace hmmjit
