// Internals shared by the sequence format parsers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io/byte_source.hpp"
#include "io/sequence_file.hpp"

namespace hmmjit::sequence_parsing {

/// Longest target, in residues: the engine computes with L + 3 as an int.
inline constexpr std::uint64_t kLongestTarget = 2147483644u;

/// Longest FASTA header line, and longest line of EMBL and GenBank files, in bytes. hmmsearch has
/// no limit; NCBI's nr has lines of a few hundred kilobytes.
inline constexpr std::size_t kLongestHeader = std::size_t{16} << 20;

/// Parser of one format.
class Parser {
 public:
  virtual ~Parser() = default;
  /// Appends whole targets to `block` until it is full or the input ends.
  virtual Status read(TargetBlock& block, std::uint64_t residues, std::uint64_t targets) = 0;
  /// Call it after the input is rewound.
  virtual void reset() = 0;
  /// See SequenceReader::limit_targets.
  void limit_targets(std::uint64_t residues) { longest_ = std::min(residues, kLongestTarget); }
  /// See SequenceFormatOptions::model.
  void name_model(std::string model) { model_ = std::move(model); }

 protected:
  std::uint64_t longest_ = kLongestTarget;
  std::string model_;
};

/// `file_header`: a line that begins with '#' precedes the first record.
std::unique_ptr<Parser> make_fasta_parser(BufferedInput& input,
                                          const SequenceFormatOptions& options, bool file_header);
/// EMBL/UniProt and GenBank/DDBJ.
std::unique_ptr<Parser> make_flat_parser(BufferedInput& input, const SequenceFormatOptions& options,
                                         SequenceFormat format);
/// Reads the source of io/blast_database.hpp.
std::unique_ptr<Parser> make_blast_parser(BufferedInput& input, const Alphabet& alphabet);

// Classes of characters that are no residues (residue codes are below 32).
inline constexpr std::uint8_t kIgnored = 0x40;  ///< bit: skip the character
inline constexpr std::uint8_t kSpecial = 0x80;  ///< bit: record start or illegal

/// Character classes of aligned rows: residue codes of the alphabet; kSpecial for everything else.
std::array<std::uint8_t, 256> residue_table(const Alphabet& alphabet);
/// Character classes of unaligned formats: the alphabet without '-'; white space is ignored.
std::array<std::uint8_t, 256> unaligned_table(const SequenceFormatOptions& options);

/// A NUL byte in a target's name, accession or description is an error: C strings end there, so
/// different names would become equal, and readers of the results would fail.
inline bool has_nul(std::string_view text) { return text.find('\0') != text.npos; }
std::unexpected<Error> nul_byte(const std::string& where, std::string_view name);
std::unexpected<Error> too_long(const std::string& where, std::string_view name);
/// The error for a target with more residues than limit_targets allows.
std::unexpected<Error> does_not_fit(const std::string& where, std::string_view name,
                                    std::uint64_t residues);
/// "illegal character c" at `where`, which names file and line. `model`: see SequenceFormatOptions.
std::unexpected<Error> illegal_character(const std::string& where, std::string_view target, char c,
                                         const Alphabet& alphabet, std::string_view model = {});

}  // namespace hmmjit::sequence_parsing
