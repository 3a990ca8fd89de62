// Reads target sequences in FASTA and every other format that hmmsearch accepts.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/error.hpp"
#include "core/hidden.hpp"
#include "io/byte_source.hpp"
#include "io/sequence_format.hpp"
#include "model/targets.hpp"

namespace hmmjit {

/// Returns `path` if it is a file or a BLAST database, else its path in the first directory of the
/// environment variable BLASTDB that contains it, else `path`.
std::string find_sequence_file(const std::string& path);

struct SequenceFormatOptions {
  const Alphabet& alphabet;
  /// Unset: recognised by name and content.
  std::optional<SequenceFormat> format = std::nullopt;
  /// The model that determines the alphabet; errors name it if the sequences have another one.
  std::string model = {};
  /// Refuses '.', '_' and '~' in unaligned sequences like '-', as HMMER's text mode does.
  bool text_mode = false;
  /// Lines of a FASTA file before the part of it that is read, for the positions of errors.
  std::uint64_t lines_before = 0;
};

/// Opens `path`, a result of find_sequence_file ("-": standard input). Opens a BLAST database, and
/// sets `options.format` to kNcbi, if that is asserted, or if no format is and only a BLAST
/// database has this name.
Result<std::unique_ptr<ByteSource>> open_sequence_source(const std::string& path,
                                                         SequenceFormatOptions& options);

/// Reads targets in file order. Every row of an alignment, without gaps, is a target. Unlike
/// hmmsearch, recognises alignments in compressed and standard input too. Targets may have up to
/// 2^31 - 4 residues. One thread per reader.
class SequenceReader {
 public:
  /// Looks for `path` as given, then in the directories of the environment variable BLASTDB; "-" is
  /// standard input. Fails with kInput if nothing can be read or no format fits.
  static Result<SequenceReader> open(const std::string& path, const SequenceFormatOptions& options);
  static Result<SequenceReader> open(std::unique_ptr<ByteSource> source,
                                     const SequenceFormatOptions& options);

  /// Appends whole targets to `block` until it is full (TargetBlock::full) or the input ends; sets
  /// its first index if it was empty. False at the end, if nothing was appended. After an error,
  /// the block holds the targets before the bad one: do not call again.
  Result<bool> read_block(TargetBlock& block, std::uint64_t max_residues,
                          std::uint64_t max_targets = std::numeric_limits<std::uint64_t>::max());

  /// Refuses longer targets with a kResources error that gives name and length; counts residues
  /// beyond the limit without storing them. Has no effect on alignments, which are read as a whole.
  void limit_targets(std::uint64_t residues);

  /// Restarts at the first target; kInput if the input is a pipe.
  Status rewind();
  /// The input, for decode_ahead() on any thread.
  ByteSource& source() const;
  /// Bytes that the input has delivered, after decompression.
  std::uint64_t bytes_read() const;

  /// The path opened (after the BLASTDB search) or "standard input".
  const std::string& name() const;
  SequenceFormat format() const;
  /// Number of targets delivered since the start or the last rewind.
  std::uint64_t targets_read() const;

 private:
  struct State;
  explicit SequenceReader(Hidden<State> state) : state_(std::move(state)) {}
  Hidden<State> state_;
};

}  // namespace hmmjit
