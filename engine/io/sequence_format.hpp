// Formats of sequence and alignment files: their names, and recognition by name and content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "io/byte_source.hpp"
#include "model/alphabet.hpp"

namespace hmmjit {

enum class SequenceFormat {
  kFasta,
  kHmmpgmd,  ///< FASTA after a first line that begins with '#', as HMMER's search daemon loads it
  kEmbl,     ///< also UniProt
  kGenbank,  ///< also DDBJ
  kStockholm,
  kPfam,  ///< Stockholm in one block
  kA2m,
  kAlignedFasta,
  kPsiBlast,
  kSelex,
  kClustal,
  kClustalLike,
  kPhylip,            ///< interleaved
  kPhylipSequential,  ///< "phylips"
  kNcbi,              ///< a BLAST database (io/blast_database.hpp)
};

/// The format's name in options ("fasta", "afa", "clustallike", ...).
std::string_view sequence_format_name(SequenceFormat format);

enum class FileContent { kSequences, kAlignments };

/// Parses the name of a format, in any case. Fails with kUsage for unknown names, for FM indices
/// and requests to a search daemon (not supported), and, with kAlignments, for other than alignment
/// formats. `where`: the option, for errors.
Result<SequenceFormat> parse_sequence_format(std::string_view name, std::string where = {},
                                             FileContent expected = FileContent::kSequences);

bool is_alignment_format(SequenceFormat format);

/// Width, in columns, of row names in strict PHYLIP.
inline constexpr std::size_t kPhylipNameWidth = 10;

struct RecognisedFormat {
  SequenceFormat format = SequenceFormat::kFasta;
  /// PHYLIP: width of row names in columns; 0: up to the first blank.
  std::size_t name_width = kPhylipNameWidth;
};

/// The format of the file `name` that begins with `head`: `asserted`, or else recognised by HMMER's
/// rules. Fails with kInput for files that are empty, of another kind or in no known format.
Result<RecognisedFormat> format_of(const std::string& name, std::string_view head,
                                   std::optional<SequenceFormat> asserted, FileContent expected);

struct ForeignFile {
  std::string_view what;    ///< "it is compressed with bzip2"
  std::string_view remedy;  ///< the next step
};
/// Recognises content that no reader accepts from the first bytes of a file: archives, other
/// compression, web pages, UTF-16, byte order marks, ...
std::optional<ForeignFile> recognise_foreign_file(std::string_view head);
/// As recognise_foreign_file, and recognises profiles, FASTA files and alignments too: for readers
/// of none of these.
std::optional<ForeignFile> recognise_other_file(std::string_view head);

/// Decides between protein, DNA and RNA by the frequencies of letters; the rules are HMMER's.
class LetterCounts {
 public:
  void add(std::string_view text);
  std::uint64_t total() const { return total_; }
  /// Null if the frequencies are inconclusive.
  const Alphabet* decide() const;

 private:
  std::array<std::uint64_t, 26> counts_{};
  std::uint64_t total_ = 0;
};

/// Calls `guess` with longer and longer beginnings of `input`, up to 256 MiB, until it returns a
/// value; consumes no input. `whole`: no longer beginning will follow.
Result<const Alphabet*> guess_from_head(
    BufferedInput& input,
    const std::function<std::optional<const Alphabet*>(std::string_view head, bool whole)>& guess);
/// Guesses the alphabet of unaligned sequences from up to 4000 residues of the first one. Null if
/// these are inconclusive.
Result<const Alphabet*> guess_sequence_alphabet(BufferedInput& input);

}  // namespace hmmjit
