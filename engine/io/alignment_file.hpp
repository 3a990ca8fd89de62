// Reads multiple alignments with their annotation, for building models.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/hidden.hpp"
#include "io/byte_source.hpp"
#include "io/sequence_format.hpp"
#include "model/multiple_alignment.hpp"

namespace hmmjit {

struct AlignmentFileOptions {
  /// An alignment format. Unset: recognised by content; A2M by the suffix .a2m.
  std::optional<SequenceFormat> format = std::nullopt;
  /// Null: guessed from the letters in the file, as HMMER does.
  const Alphabet* alphabet = nullptr;
};

/// Reads the alignments of one file in order: any number in Stockholm and PHYLIP, one in aligned
/// FASTA, A2M, PSI-BLAST, Clustal and SELEX; plain, gzip or zstd compressed, from a file or
/// standard input ("-"). Keeps Stockholm's ID, AC, DE, GA, TC, NC, WT, RF, MM, SS_cons and SA_cons,
/// and SELEX's RF, MM and CS. The upper case of A2M and PSI-BLAST, which marks consensus columns,
/// becomes RF. Accepts and refuses what hmmbuild does (docs/differences.md). One thread per reader.
class AlignmentReader {
 public:
  /// Fails with kInput if nothing can be read or no format fits.
  static Result<AlignmentReader> open(const std::string& path, const AlignmentFileOptions& options);
  static Result<AlignmentReader> open(std::unique_ptr<ByteSource> source,
                                      const AlignmentFileOptions& options);

  /// The next alignment; nullopt after the last. Do not call it again after an error.
  Result<std::optional<MultipleAlignment>> next();
  const std::string& name() const;
  const Alphabet& alphabet() const;

 private:
  struct State;
  explicit AlignmentReader(Hidden<State> state) : state_(std::move(state)) {}
  Hidden<State> state_;
};

}  // namespace hmmjit
