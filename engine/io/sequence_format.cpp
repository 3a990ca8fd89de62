#include "io/sequence_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/ascii.hpp"
#include "core/numbers.hpp"
#include "core/text_fields.hpp"

namespace hmmjit {
namespace {

using F = SequenceFormat;

constexpr std::pair<std::string_view, F> kFormats[] = {
    {"fasta", F::kFasta},
    {"hmmpgmd", F::kHmmpgmd},
    {"embl", F::kEmbl},
    {"uniprot", F::kEmbl},
    {"genbank", F::kGenbank},
    {"ddbj", F::kGenbank},
    {"stockholm", F::kStockholm},
    {"pfam", F::kPfam},
    {"a2m", F::kA2m},
    {"afa", F::kAlignedFasta},
    {"psiblast", F::kPsiBlast},
    {"selex", F::kSelex},
    {"clustal", F::kClustal},
    {"clustallike", F::kClustalLike},
    {"phylip", F::kPhylip},
    {"phylips", F::kPhylipSequential},
    {"ncbi", F::kNcbi},
};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), ascii_lower);
  return out;
}

// SELEX without blanks as gaps: each line has a name and one word of text, the lines of a block
// have equal lengths, and all blocks have the same first name and number of lines. Like HMMER,
// examines three blocks and allows one blank line between them. `cut`: the file may continue after
// `head`; ignores the last line of `head` then, unless it is the only one.
bool looks_like_selex(std::string_view head, bool cut) {
  std::string_view first_name;
  std::size_t blocks = 0, lines = 0, lines_before = 0, width = 0, seen = 0;
  while (!head.empty() && blocks < 3) {
    if (cut && seen > 0 && head.find('\n') == head.npos) break;
    std::string_view line = take_line(&head);
    for (const std::string_view annotation : {"#=RF", "#=CS", "#=SS", "#=SA"}) {
      if (line.starts_with(annotation)) return true;
    }
    if (line.starts_with('#')) continue;
    if (is_blank(line)) {
      if (lines_before > 0 && lines != lines_before) return false;
      if (lines > 0) ++blocks;
      lines_before = std::exchange(lines, 0);
      continue;
    }
    const std::string_view name = take_word(&line), text = take_word(&line);
    if (text.empty() || !is_blank(line)) return false;
    if (lines++ == 0) {
      width = text.size();
      if (blocks == 0) first_name = name;
      if (name != first_name) return false;
    }
    if (text.size() != width) return false;
    ++seen;
  }
  return seen > 0;
}

bool is_phylip_residue(char c) {
  return (c >= 'A' && c <= 'Z') || c == '-' || c == '*' || c == '?' || c == '.';
}

// The text of a PHYLIP file after the line of counts.
struct PhylipText {
  std::string_view text;
  bool cut;  // true if the file may continue after `text`
  std::uint64_t rows, columns;

  // The number of blocks if the text has this layout and width of names (0: names end at the first
  // blank); 0 if it does not fit. In an interleaved block, residues must be aligned; in sequential
  // layout, all rows must have the same number of lines.
  std::size_t blocks(bool interleaved, std::size_t name_width) const {
    std::string_view rest = text, first;
    std::uint64_t row = 0, done = 0, share = 0;  // done: columns of this row (or block) read so far
    std::size_t count = 1, lines = 0, lines_of_first = 0;
    while (!rest.empty() && row < rows) {
      if (cut && rest.find('\n') == rest.npos) return count;
      const std::string_view line = take_line(&rest);
      if (is_blank(line)) continue;
      std::string_view residues = line;
      if (done == 0) {
        const bool strict = name_width == kPhylipNameWidth || name_width == 0;
        if (name_width > 0 && is_blank(line.substr(0, name_width))) return 0;
        if (!strict && (line.size() <= name_width || !is_phylip_residue(line[name_width])))
          return 0;
        if (name_width == 0) take_word(&residues);
        residues.remove_prefix(std::min(name_width, residues.size()));
      }
      // With names of ten columns, HMMER counts all printable characters of the first block.
      const bool any = interleaved && name_width == kPhylipNameWidth && done == 0;
      const auto n = static_cast<std::uint64_t>(std::ranges::count_if(
          residues, [&](char c) { return any ? c > ' ' : is_phylip_residue(c); }));
      if (n == 0 || done + n > columns) return 0;
      if (!interleaved) {
        done += n;
        ++lines;
        if (done < columns) continue;
        if (row++ == 0) lines_of_first = lines;
        if (lines != lines_of_first && name_width != kPhylipNameWidth) return 0;
        done = lines = 0;
        continue;
      }
      if (row == 0) {
        share = n;
        first = line;
      }
      if (n != share ||
          !(any || name_width == 0 || aligned(first, line, done == 0 ? name_width : 0)))
        return 0;
      if (++row == rows && (done += share) < columns) {
        row = 0;
        ++count;
      }
    }
    return row == rows || cut ? count : 0;
  }

  static bool aligned(std::string_view a, std::string_view b, std::size_t from) {
    for (std::size_t i = from; i < std::max(a.size(), b.size()); ++i) {
      if ((i < a.size() && is_phylip_residue(a[i])) != (i < b.size() && is_phylip_residue(b[i])))
        return false;
    }
    return true;
  }

  // The width of names for which the text fits a layout; npos if there is none.
  std::size_t name_width(bool interleaved) const {
    if (blocks(interleaved, kPhylipNameWidth) > 0) return kPhylipNameWidth;
    constexpr std::size_t kWidest = 64;
    for (std::size_t width = cut ? 0 : kWidest; width > 0; --width) {
      if (blocks(interleaved, width) > 0) return width;
    }
    return std::string_view::npos;
  }
};

// Like HMMER, rejects text that fits both layouts, unless it is one block (the layouts are then
// equal), and accepts names of ten columns or of the width that leaves the right number of
// residues. Names that end at the first blank are an extension: many programs write them.
std::optional<RecognisedFormat> recognise_phylip(const PhylipText& text) {
  const std::size_t interleaved = text.name_width(true), none = std::string_view::npos;
  if (interleaved != none && text.blocks(true, interleaved) == 1)
    return {{F::kPhylip, interleaved}};
  const std::size_t sequential = text.name_width(false);
  if (interleaved != none && sequential != none) return std::nullopt;
  if (interleaved != none) return {{F::kPhylip, interleaved}};
  if (sequential != none) return {{F::kPhylipSequential, sequential}};
  if (text.blocks(true, 0) > 0) return {{F::kPhylip, 0}};
  if (text.blocks(false, 0) > 0) return {{F::kPhylipSequential, 0}};
  return std::nullopt;
}

// nullopt if no format fits.
std::optional<RecognisedFormat> recognise(std::string_view name, std::string_view head,
                                          bool aligned) {
  if (!aligned && name.ends_with(".fa")) return {{F::kFasta}};
  if (!aligned && name.ends_with(".gb")) return {{F::kGenbank}};
  std::string_view rest = head, line;
  while (!rest.empty() && is_blank(line)) line = take_line(&rest);
  if (is_blank(line)) return std::nullopt;
  if (!aligned) {
    if (trim(line).starts_with('>')) return {{F::kFasta}};
    if (line.starts_with("ID   ")) return {{F::kEmbl}};
    if (line.starts_with("LOCUS   ") || line.contains("Genetic Sequence Data Bank"))
      return {{F::kGenbank}};
  }
  for (const std::string_view suffix : {".gz", ".zst"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  const auto suffix = [&](std::initializer_list<std::string_view> suffixes) {
    return std::ranges::any_of(suffixes, [&](auto each) { return name.ends_with(each); });
  };
  if (line.starts_with("# STOCKHOLM")) return {{suffix({".pfam"}) ? F::kPfam : F::kStockholm}};
  if (line.starts_with('>')) return {{suffix({".a2m"}) ? F::kA2m : F::kAlignedFasta}};
  if (line.starts_with("CLUSTAL")) return {{F::kClustal}};
  if (line.contains("multiple sequence alignment")) return {{F::kClustalLike}};
  constexpr std::size_t kWholeFile = std::size_t{1} << 19;  // longer heads may be truncated
  const bool cut = head.size() >= kWholeFile;
  const auto rows = parse_int(take_word(&line)), columns = parse_int(take_word(&line));
  if (rows && columns && *rows > 0 && *columns > 0) {
    if (suffix({".ph", ".phy", ".phyi"})) return {{F::kPhylip}};
    if (suffix({".phys"})) return {{F::kPhylipSequential}};
    return recognise_phylip(
        {rest, cut, static_cast<std::uint64_t>(*rows), static_cast<std::uint64_t>(*columns)});
  }
  if (suffix({".slx", ".selex"})) return {{F::kSelex}};
  if (looks_like_selex(head, cut)) return {{suffix({".pb"}) ? F::kPsiBlast : F::kSelex}};
  return std::nullopt;
}

}  // namespace

std::string_view sequence_format_name(SequenceFormat format) {
  for (const auto& [name, value] : kFormats) {
    if (value == format) return name;
  }
  return "unknown";
}

Result<SequenceFormat> parse_sequence_format(std::string_view name, std::string where,
                                             FileContent expected) {
  const bool aligned = expected == FileContent::kAlignments;
  const std::string wanted = lower(name);
  std::string known;
  for (const auto& [each, format] : kFormats) {
    if (aligned && !is_alignment_format(format)) continue;
    if (each == wanted) return format;
    known += fmt::format(" {}", each);
  }
  if (!aligned && (wanted == "daemon" || wanted == "fmindex"))
    return fail(ErrorCode::kUsage, fmt::format("sequence format {} is not supported", wanted),
                std::move(where), "convert the database to FASTA");
  return fail(ErrorCode::kUsage,
              fmt::format("\"{}\" is not {} format", name, aligned ? "an alignment" : "a sequence"),
              std::move(where), "use one of:" + known);
}

bool is_alignment_format(SequenceFormat format) {
  return format >= F::kStockholm && format <= F::kPhylipSequential;
}

Result<RecognisedFormat> format_of(const std::string& name, std::string_view head,
                                   std::optional<SequenceFormat> asserted, FileContent expected) {
  const bool aligned = expected == FileContent::kAlignments;
  const auto other = [&](const ForeignFile& file) {
    return fail(
        ErrorCode::kInput,
        fmt::format("the file holds no {}: {}", aligned ? "alignment" : "sequences", file.what),
        name, std::string(file.remedy));
  };
  if (asserted == F::kNcbi) return RecognisedFormat{F::kNcbi};
  if (const auto foreign = recognise_foreign_file(head)) return other(*foreign);
  const auto found = asserted ? RecognisedFormat{*asserted} : recognise(name, head, aligned);
  // A suffix may be wrong. Alignments in files named .fa get the FASTA reader's error, which asks
  // for the format.
  if (!found || (found->format == F::kFasta && !head.starts_with('#') &&
                 !trim(head.substr(0, 4096)).starts_with('>'))) {
    if (auto file = recognise_other_file(head)) {
      if (aligned) file->remedy = "give a multiple alignment";
      return other(*file);
    }
  }
  if (found) return *found;
  const std::string_view kind = aligned ? "alignment" : "sequence";
  if (is_blank(head))
    return fail(ErrorCode::kInput, fmt::format("the {} file is empty", kind), name,
                "check whether what made it has failed");
  return fail(ErrorCode::kInput, fmt::format("the {} file is in no known format", kind), name,
              "check the file, or state its format");
}

std::optional<ForeignFile> recognise_foreign_file(std::string_view head) {
  using namespace std::string_view_literals;
  struct Kind {
    std::string_view magic;
    ForeignFile file;
  };
  // An FM index has no signature. Its first bytes: directions, DNA, 4 letters, 2 bits a letter.
  constexpr ForeignFile kFmIndex{"it is an FM index of makehmmerdb",
                                 "search the sequence file that it was made from"};
  static constexpr Kind kKinds[] = {
      {"\xfd"
       "7zXZ\0"sv,
       {"it is compressed with xz", "decompress it on the way: xzcat FILE | ... -"}},
      {"\x04\x22\x4d\x18"sv,
       {"it is compressed with lz4", "decompress it on the way: lz4cat FILE | ... -"}},
      {"\x1f\x8b"sv, {"it is compressed twice", "decompress it once: zcat FILE | ... -"}},
      {"\x28\xb5\x2f\xfd"sv,
       {"it is compressed twice", "decompress it once: zstdcat FILE | ... -"}},
      {"PK\x03\x04"sv, {"it is a ZIP archive", "unpack it on the way: unzip -p FILE | ... -"}},
      {"7z\xbc\xaf\x27\x1c"sv, {"it is a 7-Zip archive", "unpack it first"}},
      {"Rar!\x1a\x07"sv, {"it is a RAR archive", "unpack it first"}},
      {"\0\0\4\2"sv, kFmIndex},
      {"\1\0\4\2"sv, kFmIndex},
      {"%PDF-"sv, {"it is a PDF document", "fetch the data themselves"}},
      {"{\\rtf"sv,
       {"it is a document of a word processor (RTF)", "save it there as plain text (ASCII)"}},
      {"version https://git-lfs"sv,
       {"it is a Git LFS pointer, not the file itself", "fetch it: git lfs pull"}},
      {"\xef\xbb\xbf"sv,
       {"it begins with a UTF-8 byte order mark", "remove its first three bytes"}},
      {"\xff\xfe"sv, {"it is UTF-16 text", "convert it to ASCII: iconv -f UTF-16 FILE | ... -"}},
      {"\xfe\xff"sv, {"it is UTF-16 text", "convert it to ASCII: iconv -f UTF-16 FILE | ... -"}},
  };
  for (const Kind& kind : kKinds) {
    if (head.starts_with(kind.magic)) return kind.file;
  }
  if (head.starts_with("BZh") && head.size() > 6 && head.substr(4, 3) == "1AY")
    return ForeignFile{"it is compressed with bzip2",
                       "decompress it on the way: bzcat FILE | ... -"};
  // NULs fill the header of an archive. Without them, the letters may be part of "mustard".
  if (head.size() > 262 && head.substr(257, 5) == "ustar" && head.substr(0, 257).contains('\0'))
    return ForeignFile{"it is a tar archive", "unpack it first: tar -xf FILE"};
  const std::string start = lower(trim(head.substr(0, 64)));
  if (start.starts_with("<!doctype html") || start.starts_with("<html"))
    return ForeignFile{"it is an HTML page, such as a server sends instead of a file",
                       "look at it, and fetch the file again"};
  if (head.starts_with('@')) {  // @name, residues, +, qualities
    std::string_view rest = head;
    take_line(&rest);
    take_line(&rest);
    if (rest.starts_with('+'))
      return ForeignFile{"it is a FASTQ file", "convert it to FASTA, and nucleotides to proteins"};
  }
  return std::nullopt;
}

std::optional<ForeignFile> recognise_other_file(std::string_view head) {
  if (const auto foreign = recognise_foreign_file(head)) return foreign;
  const std::string start = lower(trim(head.substr(0, 64)));
  if (start.starts_with("hmmer3/") || start.starts_with("hmmer2."))
    return ForeignFile{"it is a profile HMM file",
                       "the profile file comes first, the sequences after it"};
  if (start.starts_with('>'))
    return ForeignFile{"it is a FASTA file",
                       "the profile file comes first, the sequences after it"};
  if (start.starts_with("# stockholm"))
    return ForeignFile{"it is an alignment",
                       "build a profile from the alignment with hmmbuild first"};
  return std::nullopt;
}

void LetterCounts::add(std::string_view text) {
  for (const char c : text) {
    const auto letter = static_cast<unsigned char>((c & ~0x20) - 'A');
    if (letter < counts_.size() && c >= 'A') {
      ++counts_[letter];
      ++total_;
    }
  }
}

const Alphabet* LetterCounts::decide() const {
  const auto count = [&](std::string_view letters) {
    std::uint64_t sum = 0;
    for (const char c : letters) sum += counts_[static_cast<std::size_t>(c - 'A')];
    return sum;
  };
  const auto all_of = [&](std::string_view letters) {
    return std::ranges::all_of(letters, [&](char c) { return count({&c, 1}) > 0; });
  };
  const auto almost_all = [&](std::uint64_t n) {
    return static_cast<double>(total_ - n) <= 0.02 * static_cast<double>(total_);
  };
  if (total_ <= 10) return nullptr;
  if (total_ > 2000 && count("N") == total_) return &dna_alphabet();
  if (count("EFIJLOPQZ") > 0) return &amino_alphabet();
  if (almost_all(count("ACGTN")) && all_of("ACGT")) return &dna_alphabet();
  if (almost_all(count("ACGUN")) && all_of("ACGU")) return &rna_alphabet();
  return nullptr;
}

Result<const Alphabet*> guess_from_head(
    BufferedInput& input,
    const std::function<std::optional<const Alphabet*>(std::string_view head, bool whole)>& guess) {
  constexpr std::size_t kMost = std::size_t{256} << 20;
  for (std::size_t least = 1;;) {
    HMMJIT_ASSIGN(const std::string_view head, input.peek(least));
    const bool whole = head.size() < least || head.size() >= kMost;
    if (const auto found = guess(head, whole)) return *found;
    if (whole) return nullptr;
    least = 2 * head.size();
  }
}

Result<const Alphabet*> guess_sequence_alphabet(BufferedInput& input) {
  constexpr std::uint64_t kEnough = 4000;
  return guess_from_head(input, [](std::string_view head, bool whole) {
    head = trim(head);
    const bool fasta = head.starts_with('>');
    LetterCounts counts;
    bool first_ended = false;
    // Flat files have annotation first.
    for (bool residues = fasta, begun = false;
         !head.empty() && !first_ended && counts.total() < kEnough;) {
      // FASTA may have line ends of CR alone.
      std::string_view line = head.substr(0, head.find_first_of("\r\n"));
      if (!fasta && !whole && line.size() == head.size()) break;  // cut
      head.remove_prefix(std::min(line.size() + 1, head.size()));
      if (fasta && line.starts_with('>')) {
        first_ended = std::exchange(begun, true);
      } else if (line.starts_with("//")) {
        first_ended = true;
      } else if (residues) {
        counts.add(line.substr(0, kEnough - counts.total()));
      } else {
        const std::string_view word = take_word(&line);
        residues = word == "SQ" || word == "ORIGIN";
      }
    }
    const bool enough = whole || first_ended || counts.total() >= kEnough;
    return enough ? std::optional(counts.decide()) : std::nullopt;
  });
}

}  // namespace hmmjit
