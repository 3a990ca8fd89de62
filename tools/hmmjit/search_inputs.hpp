// The input files of a search: models or queries, and targets.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/output_file.hpp"
#include "io/hmm_file.hpp"
#include "io/sequence_file.hpp"
#include "option_table.hpp"
#include "search/model_cutoffs.hpp"
#include "search/options.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {

struct RunContext;

/// Options that name a file to read.
inline constexpr const char* kInputOptions[] = {"--bgfile", "--clans", "--cut-file", "--mxfile",
                                                "--ssifile"};

/// The first bytes of a file, decompressed. Fails with kInput.
Result<std::string> head_of(const std::string& path);

bool is_regular_file(const std::string& path);
/// Whether the bytes of an input ("-": standard input) come when they come, and once only.
bool is_pipe(const std::string& path);
/// Fails with kUsage where two inputs are standard input or the same pipe, of which each would read
/// a part.
Status check_inputs(std::span<const NamedFile> inputs);

/// hmmscan looks for its database in the folders of the variable PFAMDB, too. `path` itself where
/// it or its pressed form exists, or where no folder has it.
std::string find_profile_database(const std::string& path);

/// Every file that the search of `targets` reads.
std::vector<NamedFile> inputs_of(const SearchProgram& program, const ParsedOptions& options,
                                 const std::string& targets);

/// A file of models.
struct ModelFile {
  using Warn = std::function<void(const std::string&)>;
  /// Warns where pressed files are read that are older than the file itself.
  Result<HmmReader> open();

  std::string path;
  Warn warn;
  /// For the progress display; 0 where it is unknown.
  std::atomic<std::uint64_t> bytes_read{0}, bytes_total{0};
};

/// Models as they are read, without those that lack the cutoffs asked for where these are skipped.
/// One thread at a time.
class ModelsToSearch {
 public:
  ModelsToSearch(HmmReader reader, const Thresholds& thresholds, bool skip, ModelFile& file)
      : reader_(std::move(reader)), thresholds_(thresholds), skip_(skip), file_(file) {}
  /// Reads the first model. Fails with kInput where there is none in `path`.
  Status begin(const std::string& path);
  const Hmm& first() const { return *first_; }  ///< until next()
  /// After the last model, warns of those without cutoffs.
  Result<std::optional<Hmm>> next() {
    return first_ ? std::exchange(first_, std::nullopt) : read();
  }

 private:
  Result<std::optional<Hmm>> read();

  HmmReader reader_;
  Thresholds thresholds_;
  bool skip_;
  ModelFile& file_;
  std::optional<Hmm> first_;
  std::vector<std::string> without_;  // names of the first models without cutoffs
  std::size_t count_without_ = 0;
};

/// Fails with kInput where models lack cutoffs: before hours of work, not after them.
Status check_cutoffs(const std::string& path, const Thresholds& rules);

/// hmmscan's Z; with `skip` models without the cutoffs of `rules` do not count. The models are
/// read once more for it.
Result<double> count_models(const std::string& path, const Thresholds& rules, bool skip);

/// The format that an option such as --tformat asserts, if it is given. Fails with kUsage for an
/// unknown name.
Result<std::optional<SequenceFormat>> asserted_format(
    const ParsedOptions& options, std::string_view option,
    FileContent expected = FileContent::kSequences);

/// Targets of one file, those of --restrictdb_* only. `file` as on the command line. Warns when
/// they are read as proteins and the first ones are plainly nucleotides.
Result<std::unique_ptr<TargetSource>> open_targets(const ParsedOptions& options,
                                                   const RunContext& context,
                                                   const std::string& file,
                                                   const SequenceFormatOptions& format);

/// Fails with kInput where the residues of `file` are not plainly nucleotides, as nhmmer does.
Status check_nucleotides(const std::string& file);

/// The same text once in the life of the process.
void warn(const std::string& text);

}  // namespace hmmjit::tools
