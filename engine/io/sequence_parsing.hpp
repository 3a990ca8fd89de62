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

/// Largest target: lengths are int throughout the engine.
inline constexpr std::uint64_t kLongestTarget = 2147483647u;

/// Bytes of the line that begins a FASTA record, and of a line of EMBL and GenBank files. hmmsearch
/// has no limit; the longest lines of NCBI's nr have some hundred kilobytes.
inline constexpr std::size_t kLongestHeader = std::size_t{16} << 20;

/// One parser per format; delivers whole targets.
class Parser {
 public:
  virtual ~Parser() = default;
  /// Appends targets to `block` until `block.residue_count() >= residues` or
  /// `block.size() >= targets` or the input ends.
  virtual Status read(TargetBlock& block, std::uint64_t residues, std::uint64_t targets) = 0;
  /// The input has been rewound.
  virtual void reset() = 0;
  /// As SequenceReader::limit_targets.
  void limit_targets(std::uint64_t residues) { longest_ = std::min(residues, kLongestTarget); }

 protected:
  std::uint64_t longest_ = kLongestTarget;
};

/// `file_header`: a line that begins with '#' comes before the first record.
std::unique_ptr<Parser> make_fasta_parser(BufferedInput& input, const Alphabet& alphabet,
                                          bool file_header);
/// EMBL/UniProt and GenBank/DDBJ.
std::unique_ptr<Parser> make_flat_parser(BufferedInput& input, const Alphabet& alphabet,
                                         SequenceFormat format);
/// `phylip_name_width`: columns of a PHYLIP row's name, 0 when it ends at the first blank.
std::unique_ptr<Parser> make_alignment_parser(BufferedInput& input, const Alphabet& alphabet,
                                              SequenceFormat format, std::size_t phylip_name_width);

/// The stream of io/blast_database.hpp.
std::unique_ptr<Parser> make_blast_parser(BufferedInput& input, const Alphabet& alphabet);

// Classes of input characters besides residue codes (all below 32).
inline constexpr std::uint8_t kIgnored = 0x40;  ///< bit: skip the character
inline constexpr std::uint8_t kSpecial = 0x80;  ///< bit: record start or illegal

/// Character classes of the unaligned formats: the alphabet without '-', white space ignored.
std::array<std::uint8_t, 256> unaligned_table(const Alphabet& alphabet);

/// In what is printed of a target a NUL byte is an error: text ends there in C, so that names could
/// become equal that are not, and what reads the results would break.
inline bool has_nul(std::string_view text) { return text.find('\0') != text.npos; }
std::unexpected<Error> nul_byte(const std::string& where, std::string_view name);
std::unexpected<Error> too_long(const std::string& where, std::string_view name);
/// Of a target of `residues` residues, more than limit_targets allows.
std::unexpected<Error> does_not_fit(const std::string& where, std::string_view name,
                                    std::uint64_t residues);
/// "illegal character c" at `where`, which names file and line.
std::unexpected<Error> illegal_character(const std::string& where, std::string_view target, char c,
                                         const Alphabet& alphabet);

}  // namespace hmmjit::sequence_parsing
