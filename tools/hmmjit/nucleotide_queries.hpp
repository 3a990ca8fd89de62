// Queries of nhmmer: profiles, alignments or sequences of nucleotides.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "build/builder.hpp"
#include "io/alignment_file.hpp"
#include "io/hmm_file.hpp"
#include "model/targets.hpp"
#include "option_table.hpp"

namespace hmmjit::tools {

/// One thread at a time.
class NucleotideQueries {
 public:
  /// Opens `path` ("-": standard input), recognises its content, and reads its first profile, if
  /// any. Fails with kInput or kUsage.
  static Result<std::shared_ptr<NucleotideQueries>> open(const ParsedOptions& options,
                                                         const std::string& path);
  const Alphabet& alphabet() const { return *alphabet_; }
  /// True if next() builds models from alignments or sequences.
  bool builds() const { return !models_; }
  Result<std::optional<build::BuiltModel>> next();
  /// Reads the next query without building its model; false after the last.
  Result<bool> skip();

 private:
  NucleotideQueries(const ParsedOptions& options, std::string path)
      : options_(options), path_(std::move(path)) {}
  Status open_models(HmmReader reader);
  // `aligned`: rows of an alignment, each a query.
  Status open_sequences(std::optional<SequenceFormat> format, bool aligned);
  Status open_alignments(const std::optional<SequenceFormat>& format);
  Status set_alphabet(const Alphabet* found);
  Result<std::optional<Hmm>> next_model();
  Result<std::optional<MultipleAlignment>> next_alignment();

  const ParsedOptions& options_;
  std::string path_;
  const Alphabet* alphabet_ = nullptr;
  std::unique_ptr<Alphabet> with_background_;  // --bgfile
  std::optional<HmmReader> models_;
  std::optional<Hmm> first_model_;
  std::optional<AlignmentReader> alignments_;
  bool nameless_ = false;  // an alignment had no name
  TargetBlock sequences_;
  std::size_t read_ = 0;  // alignments or sequences
  build::Builder builder_;
};

/// Queries [first, last) of a share (--slice).
struct QueryRange {
  std::uint64_t first = 0, last = std::numeric_limits<std::uint64_t>::max();
};
/// With --slice, counts the queries of `path`. Fails with kUsage for a pipe.
Result<QueryRange> queries_of_slice(const ParsedOptions& options, const std::string& path);

/// True if a file begins like a profile file; false for pipes.
bool holds_profiles(const std::string& path);

/// Length of the longest expected hit (W): given, from a tail mass, or the model's.
int window_length(const ParsedOptions& options, const Hmm& hmm);

}  // namespace hmmjit::tools
