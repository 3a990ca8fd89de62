// Reading target sequences: FASTA and every other format hmmsearch accepts.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "io/byte_source.hpp"
#include "model/targets.hpp"

namespace hmmjit {

enum class SequenceFormat {
  kFasta,
  kHmmpgmd,  ///< FASTA under one line that begins with '#': what HMMER's search daemon loads
  kEmbl,     ///< and UniProt
  kGenbank,  ///< and DDBJ
  kStockholm,
  kPfam,  ///< Stockholm, one block
  kA2m,
  kAlignedFasta,
  kPsiBlast,
  kSelex,
  kClustal,
  kClustalLike,
  kPhylip,            ///< interleaved
  kPhylipSequential,  ///< "phylips"
  kNcbi,              ///< a protein database of BLAST (io/blast_database.hpp)
};

/// The name `--tformat` uses ("fasta", "afa", "clustallike", ...).
std::string_view sequence_format_name(SequenceFormat format);

/// Parses a `--tformat` name, in any case. kUsage for an unknown name and for the formats that are
/// not supported: FM indices, the requests sent to a search daemon.
Result<SequenceFormat> parse_sequence_format(std::string_view name);

/// `path` itself where it exists, as a file or as a database of BLAST, else in the first directory
/// of the environment variable BLASTDB that holds it, else `path`.
std::string find_sequence_file(const std::string& path);

struct SequenceFormatOptions {
  const Alphabet& alphabet;
  /// Unset: recognised by name and content.
  std::optional<SequenceFormat> format = std::nullopt;
};

/// The bytes of `path` ("-": standard input), which was found. Where options assert
/// SequenceFormat::kNcbi, or assert nothing and no file but a database of BLAST has this name, they
/// are those of that database, and options then assert kNcbi.
Result<std::unique_ptr<ByteSource>> open_sequence_source(
    const std::string& path, SequenceFormatOptions& options,
    ReadAhead read_ahead = ReadAhead::kCallers);

/// Reads targets in file order. Every row of an alignment is a target, its gaps removed.
/// Compressed input and standard input are read like plain files, alignment formats included
/// (hmmsearch needs --tformat there). Targets may have any length up to 2^31 - 1 residues.
/// One thread per reader.
class SequenceReader {
 public:
  /// Looks for `path` as given, then in the directories of the environment variable BLASTDB;
  /// "-" is standard input. kInput when nothing can be read or no format fits.
  static Result<SequenceReader> open(const std::string& path, const SequenceFormatOptions& options);
  static Result<SequenceReader> open(std::unique_ptr<ByteSource> source,
                                     const SequenceFormatOptions& options);

  SequenceReader(SequenceReader&&) noexcept;
  SequenceReader& operator=(SequenceReader&&) noexcept;
  ~SequenceReader();

  /// Appends whole targets to `block` until it holds at least `max_residues` residues or
  /// `max_targets` targets or the input ends; sets its first index when it was empty. False when
  /// nothing was appended: the end. After an error the reader is spent; the block then holds the
  /// targets before the bad one.
  Result<bool> read_block(TargetBlock& block, std::uint64_t max_residues,
                          std::uint64_t max_targets = std::numeric_limits<std::uint64_t>::max());

  /// From here on a target of more residues is an error with kResources that names it and its
  /// length: what it has beyond is counted, not kept. Formats of alignments are read whole, without
  /// this.
  void limit_targets(std::uint64_t residues);

  /// Back to the first target; kInput where the input is a pipe.
  Status rewind();
  bool rewindable() const;

  /// Path opened (after the BLASTDB search) or "standard input".
  const std::string& name() const;
  SequenceFormat format() const;
  /// Targets delivered since the start or the last rewind.
  std::uint64_t targets_read() const;

 private:
  struct State;
  explicit SequenceReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hmmjit
