// Reading multiple alignments with their annotation, for building models.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/error.hpp"
#include "io/byte_source.hpp"
#include "io/sequence_file.hpp"
#include "model/multiple_alignment.hpp"

namespace hmmjit {

struct AlignmentFileOptions {
  /// Unset: recognised by content, A2M by a name that ends in .a2m.
  std::optional<SequenceFormat> format = std::nullopt;
  /// Null: guessed from the letters of the first alignment, as HMMER does.
  const Alphabet* alphabet = nullptr;
};

/// Reads the alignments of one file in order: Stockholm (any number of them), or one in aligned
/// FASTA, A2M, PSI-BLAST, Clustal, SELEX or PHYLIP; plain, gzip or zstd compressed, from a file or
/// standard input ("-"). Of Stockholm, ID, AC, DE, GA, TC, NC, weights (WT), and the RF, MM,
/// SS_cons and SA_cons lines are kept; A2M tells its consensus columns, which become RF. One thread
/// per reader.
class AlignmentReader {
 public:
  /// Fails with kInput when nothing can be read or no format fits.
  static Result<AlignmentReader> open(const std::string& path, const AlignmentFileOptions& options);
  static Result<AlignmentReader> open(std::unique_ptr<ByteSource> source,
                                      const AlignmentFileOptions& options);

  AlignmentReader(AlignmentReader&&) noexcept;
  AlignmentReader& operator=(AlignmentReader&&) noexcept;
  ~AlignmentReader();

  /// The next alignment; nullopt after the last. After an error the reader is spent.
  Result<std::optional<MultipleAlignment>> next();
  const std::string& name() const;

 private:
  struct State;
  explicit AlignmentReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit
