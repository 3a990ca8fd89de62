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

/// Options that name an input file.
inline constexpr const char* kInputOptions[] = {"--bgfile", "--clans", "--cut-file", "--mxfile",
                                                "--ssifile"};

/// The first bytes of a file, decompressed. Fails with kInput.
Result<std::string> head_of(const std::string& path);

bool is_regular_file(const std::string& path);
/// True if an input ("-": standard input) may deliver late, and only once: a pipe or terminal.
bool is_pipe(const std::string& path);
/// Fails with kUsage if two inputs are standard input or the same pipe: each would read a part.
Status check_inputs(std::span<const NamedFile> inputs);

/// Searches the folders of the variable PFAMDB, like hmmscan. Returns `path` itself if it or its
/// pressed form exists, or if no folder has it.
std::string find_profile_database(const std::string& path);

/// All files that the search of `targets` reads.
std::vector<NamedFile> inputs_of(const SearchProgram& program, const ParsedOptions& options,
                                 const std::string& targets);

/// A file of models.
struct ModelFile {
  using Warn = std::function<void(const std::string&)>;
  /// Warns if it reads pressed files that are older than the file itself.
  Result<HmmReader> open();

  std::string path;
  Warn warn;
  /// For the progress display; 0: unknown.
  std::atomic<std::uint64_t> bytes_read{0}, bytes_total{0};
};

/// Reads models one by one; with `skip`, omits models without the requested cutoffs. One thread at
/// a time.
class ModelsToSearch {
 public:
  ModelsToSearch(HmmReader reader, const Thresholds& thresholds, bool skip, ModelFile& file)
      : reader_(std::move(reader)), thresholds_(thresholds), skip_(skip), file_(file) {}
  /// Reads the first model. Fails with kInput if there is none.
  Status begin();
  const Hmm& first() const { return *first_; }  ///< until next()
  /// The next model. After the last one, warns of models without cutoffs.
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

/// Fails with kInput if models lack cutoffs: before hours of work, not after.
Status check_cutoffs(const ParsedOptions& options, const Thresholds& rules);

/// Number of models, hmmscan's Z; with `skip`, without models that lack the cutoffs of `rules`.
/// Reads the whole file.
Result<double> count_models(const std::string& path, const Thresholds& rules, bool skip);

/// The format that an option such as --tformat asserts, if given. Fails with kUsage for an unknown
/// name.
Result<std::optional<SequenceFormat>> asserted_format(
    const ParsedOptions& options, std::string_view option,
    FileContent expected = FileContent::kSequences);

/// Opens the targets of `file`, named as on the command line, limited by --restrictdb_*. Warns if
/// the first protein targets are plainly nucleotides.
Result<std::unique_ptr<TargetSource>> open_targets(const ParsedOptions& options,
                                                   const RunContext& context,
                                                   const std::string& file,
                                                   const SequenceFormatOptions& format);

/// Like nhmmer, fails with kInput unless the residues of `file` are plainly nucleotides.
Status check_nucleotides(const std::string& file);

/// Prints a warning, but each text only once per process.
void warn(const std::string& text);
/// Warnings are not printed from now on. Call it before other threads start.
void drop_warnings();

}  // namespace hmmjit::tools
