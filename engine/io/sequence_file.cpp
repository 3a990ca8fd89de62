#include "io/sequence_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "core/numbers.hpp"
#include "io/blast_database.hpp"
#include "io/foreign_file.hpp"
#include "io/sequence_parsing.hpp"
#include "io/target_database.hpp"

namespace hmmjit {

using namespace sequence_parsing;

namespace sequence_parsing {

std::array<std::uint8_t, 256> unaligned_table(const Alphabet& alphabet) {
  std::array<std::uint8_t, 256> table;
  for (std::size_t c = 0; c < table.size(); ++c) {
    Residue code = alphabet.digit[c];
    table[c] = code == kInvalidCode ? kSpecial : code;
  }
  for (char c : {' ', '\t', '\r', '\n'}) table[static_cast<unsigned char>(c)] = kIgnored;
  table['-'] = kSpecial;  // a gap of alignments; its synonyms '_' and '.' are accepted
  return table;
}

std::unexpected<Error> nul_byte(const std::string& where, std::string_view name) {
  return fail(ErrorCode::kInput,
              fmt::format("NUL byte in the header of record {}", name.substr(0, name.find('\0'))),
              where, "correct or remove the record");
}

std::unexpected<Error> too_long(const std::string& where, std::string_view name) {
  return fail(ErrorCode::kInput,
              fmt::format("sequence {} has more than {} residues", name, kLongestTarget), where,
              "split the sequence");
}

std::unexpected<Error> does_not_fit(const std::string& where, std::string_view name,
                                    std::uint64_t residues) {
  return fail(
      ErrorCode::kResources,
      fmt::format("sequence {} has {} residues, more than there is memory for", name, residues),
      where, "raise --mem, or leave out the sequence");
}

std::unexpected<Error> illegal_character(const std::string& where, std::string_view target, char c,
                                         const Alphabet& alphabet) {
  auto byte = static_cast<unsigned char>(c);
  std::string what;
  if (byte >= 0x80) {
    what = fmt::format("non-ASCII character (byte 0x{:02x})", byte);
  } else if (byte > ' ' && byte < 0x7f) {
    what = fmt::format("illegal character {}", c);
  } else {
    what = fmt::format("illegal character (byte 0x{:02x})", byte);
  }
  return fail(
      ErrorCode::kInput,
      fmt::format("{} in {} sequence{}{}", what, alphabet.name, target.empty() ? "" : " ", target),
      where,
      c == '-' ? "remove the gaps, or name the alignment format with --tformat (afa, a2m)"
               : "correct or remove the record");
}

}  // namespace sequence_parsing

namespace {

struct FormatName {
  std::string_view name;
  SequenceFormat format;
};
constexpr FormatName kFormats[] = {
    {"fasta", SequenceFormat::kFasta},
    {"hmmpgmd", SequenceFormat::kHmmpgmd},
    {"embl", SequenceFormat::kEmbl},
    {"uniprot", SequenceFormat::kEmbl},
    {"genbank", SequenceFormat::kGenbank},
    {"ddbj", SequenceFormat::kGenbank},
    {"stockholm", SequenceFormat::kStockholm},
    {"pfam", SequenceFormat::kPfam},
    {"a2m", SequenceFormat::kA2m},
    {"afa", SequenceFormat::kAlignedFasta},
    {"psiblast", SequenceFormat::kPsiBlast},
    {"selex", SequenceFormat::kSelex},
    {"clustal", SequenceFormat::kClustal},
    {"clustallike", SequenceFormat::kClustalLike},
    {"phylip", SequenceFormat::kPhylip},
    {"phylips", SequenceFormat::kPhylipSequential},
    {"ncbi", SequenceFormat::kNcbi},
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  }
  return out;
}

}  // namespace

std::string find_sequence_file(const std::string& path) {
  const auto there = [](const std::string& name) {
    return ::access(name.c_str(), F_OK) == 0 || is_blast_database(name);
  };
  if (path == "-" || there(path)) return path;
  const char* variable = std::getenv("BLASTDB");
  if (variable == nullptr) return path;
  std::string_view directories = variable;
  while (!directories.empty()) {
    std::size_t end = std::min(directories.find(':'), directories.size());
    std::string candidate = fmt::format("{}/{}", directories.substr(0, end), path);
    if (end > 0 && there(candidate)) return candidate;
    directories.remove_prefix(std::min(end + 1, directories.size()));
  }
  return path;
}

std::string_view sequence_format_name(SequenceFormat format) {
  for (const FormatName& f : kFormats) {
    if (f.format == format) return f.name;
  }
  return "unknown";
}

Result<SequenceFormat> parse_sequence_format(std::string_view name) {
  std::string wanted = lower(name);
  for (const FormatName& f : kFormats) {
    if (f.name == wanted) return f.format;
  }
  for (std::string_view refused : {"daemon", "fmindex"}) {
    if (wanted == refused) {
      return fail(ErrorCode::kUsage, fmt::format("sequence format {} is not supported", wanted),
                  "--tformat", "convert the database to FASTA");
    }
  }
  std::string known;
  for (const FormatName& f : kFormats)
    known += fmt::format("{}{}", known.empty() ? "" : " ", f.name);
  return fail(ErrorCode::kUsage, fmt::format("\"{}\" is not a sequence format", name), "--tformat",
              "use one of: " + known);
}

struct SequenceReader::State {
  State(std::unique_ptr<ByteSource> source, const Alphabet& a)
      : input(std::move(source)), alphabet(a) {}
  BufferedInput input;
  const Alphabet& alphabet;
  SequenceFormat format = SequenceFormat::kFasta;
  std::unique_ptr<Parser> parser;
  std::uint64_t targets_read = 0;
};

namespace {

bool blank(std::string_view line) { return line.find_first_not_of(" \t\r\f\v") == line.npos; }

std::vector<std::string_view> fields(std::string_view line) {
  std::vector<std::string_view> out;
  while (!blank(line)) {
    line.remove_prefix(line.find_first_not_of(" \t\r\f\v"));
    out.push_back(line.substr(0, line.find_first_of(" \t\r\f\v")));
    line.remove_prefix(out.back().size());
  }
  return out;
}

// The next line of `*rest`, without its LF.
std::string_view take_line(std::string_view* rest) {
  std::size_t end = std::min(rest->find('\n'), rest->size());
  std::string_view line = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return line;
}

bool is_alignment_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         std::string_view("-_.~*").find(c) != std::string_view::npos;
}

// SELEX: every line that is neither blank nor a comment has a name and one run of text, and
// every block names the same sequences. The last line of `head` may be cut short and is left out
// unless it is the only one.
bool looks_like_selex(std::string_view head) {
  std::vector<std::string_view> names;
  std::size_t in_block = 0;
  bool first_block = true;
  std::size_t sequences = 0;
  while (!head.empty()) {
    bool whole = head.find('\n') != head.npos;
    std::string_view line = take_line(&head);
    if (!whole && sequences > 0) break;
    if (blank(line)) {
      if (in_block > 0) {
        if (in_block != names.size()) return false;
        first_block = false;
      }
      in_block = 0;
      continue;
    }
    if (line.starts_with("#")) continue;
    std::vector<std::string_view> parts = fields(line);
    if (parts.size() != 2 || !std::ranges::all_of(parts[1], is_alignment_character)) return false;
    if (first_block) {
      names.push_back(parts[0]);
    } else if (in_block >= names.size() || names[in_block] != parts[0]) {
      return false;
    }
    ++in_block;
    ++sequences;
  }
  return sequences > 0;
}

constexpr std::size_t kPhylipNameWidth = 10;

// Whether `text`, after the line of counts, fits one reading of PHYLIP as far as it goes.
bool fits_phylip(std::string_view text, std::uint64_t rows, std::uint64_t columns, bool interleaved,
                 std::size_t name_width) {
  auto residues = [&](std::string_view line, bool named) {
    if (named && name_width > 0) {
      line.remove_prefix(std::min(name_width, line.size()));
    } else if (named) {
      line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
      line.remove_prefix(std::min(line.find_first_of(" \t"), line.size()));
    }
    return static_cast<std::uint64_t>(
        std::ranges::count_if(line, [](char c) { return c > ' ' && !(c >= '0' && c <= '9'); }));
  };
  std::uint64_t row = 0, done = 0, share = 0;  // done: columns read of this row (or block)
  while (!text.empty() && row < rows) {
    if (text.find('\n') == text.npos) break;  // the last line may be cut short
    std::string_view line = take_line(&text);
    if (blank(line)) continue;
    if (interleaved) {
      std::uint64_t n = residues(line, done == 0);
      if (row == 0) share = n;
      if (n == 0 || n != share || done + n > columns) return false;
      if (++row == rows) {
        done += share;
        if (done < columns) row = 0;
      }
    } else {
      std::uint64_t n = residues(line, done == 0);
      done += n;
      if (n == 0 || done > columns) return false;
      if (done == columns) {
        done = 0;
        ++row;
      }
    }
  }
  return true;
}

struct Recognised {
  SequenceFormat format;
  std::size_t phylip_name_width = kPhylipNameWidth;
};

Recognised phylip_kind(std::string_view text, std::uint64_t rows, std::uint64_t columns) {
  for (std::size_t width : {kPhylipNameWidth, std::size_t{0}}) {
    if (fits_phylip(text, rows, columns, true, width)) return {SequenceFormat::kPhylip, width};
    if (fits_phylip(text, rows, columns, false, width)) {
      return {SequenceFormat::kPhylipSequential, width};
    }
  }
  return {SequenceFormat::kPhylip};
}

// The format that name and first bytes show; nullopt when none fits.
std::optional<Recognised> recognise(std::string_view name, std::string_view head) {
  if (name.ends_with(".fa")) return Recognised{SequenceFormat::kFasta};
  if (name.ends_with(".gb")) return Recognised{SequenceFormat::kGenbank};
  std::string_view rest = head;
  std::string_view line;
  while (!rest.empty() && blank(line)) line = take_line(&rest);
  if (blank(line)) return std::nullopt;
  std::vector<std::string_view> words = fields(line);
  if (words[0].starts_with(">")) return Recognised{SequenceFormat::kFasta};
  if (line.starts_with("ID   ")) return Recognised{SequenceFormat::kEmbl};
  if (line.starts_with("LOCUS   ")) return Recognised{SequenceFormat::kGenbank};
  if (line.find("Genetic Sequence Data Bank") != line.npos)
    return Recognised{SequenceFormat::kGenbank};

  for (std::string_view suffix : {".gz", ".zst"}) {
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  }
  if (line.starts_with("# STOCKHOLM")) {
    return Recognised{name.ends_with(".pfam") ? SequenceFormat::kPfam : SequenceFormat::kStockholm};
  }
  if (line.starts_with("CLUSTAL")) return Recognised{SequenceFormat::kClustal};
  if (line.find("multiple sequence alignment") != line.npos)
    return Recognised{SequenceFormat::kClustalLike};
  std::optional<std::int64_t> rows, columns;
  if (words.size() == 2) {
    rows = parse_int(words[0]);
    columns = parse_int(words[1]);
  }
  if (rows && columns && *rows > 0 && *columns > 0) {
    return phylip_kind(rest, static_cast<std::uint64_t>(*rows),
                       static_cast<std::uint64_t>(*columns));
  }
  bool selex = looks_like_selex(head);
  if (selex && name.ends_with(".pb")) return Recognised{SequenceFormat::kPsiBlast};
  if (selex || name.ends_with(".slx") || name.ends_with(".selex")) {
    return Recognised{SequenceFormat::kSelex};
  }
  return std::nullopt;
}

}  // namespace

SequenceReader::SequenceReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
SequenceReader::SequenceReader(SequenceReader&&) noexcept = default;
SequenceReader& SequenceReader::operator=(SequenceReader&&) noexcept = default;
SequenceReader::~SequenceReader() = default;

Result<std::unique_ptr<ByteSource>> open_sequence_source(const std::string& path,
                                                         SequenceFormatOptions& options,
                                                         ReadAhead read_ahead) {
  if (!options.format && ::access(path.c_str(), F_OK) != 0 && is_blast_database(path))
    options.format = SequenceFormat::kNcbi;
  if (options.format == SequenceFormat::kNcbi) return open_blast_database(path);
  return open_byte_source(path, read_ahead);
}

Result<SequenceReader> SequenceReader::open(const std::string& path,
                                            const SequenceFormatOptions& options) {
  SequenceFormatOptions known = options;
  HMMJIT_ASSIGN(auto source,
                open_sequence_source(find_sequence_file(path), known, ReadAhead::kOwnThread));
  return open(std::move(source), known);
}

Result<SequenceReader> SequenceReader::open(std::unique_ptr<ByteSource> source,
                                            const SequenceFormatOptions& options) {
  auto state = std::make_unique<State>(std::move(source), options.alphabet);
  BufferedInput& input = state->input;
  std::size_t phylip_name_width = kPhylipNameWidth;
  HMMJIT_ASSIGN(const std::string_view head, input.peek());
  const auto empty = [&] {
    return fail(ErrorCode::kInput, "the sequence file is empty", input.name(),
                "check whether what made it has failed");
  };
  if (options.format) {
    state->format = *options.format;
  } else {
    if (is_target_database(head)) {
      return fail(ErrorCode::kInput, "a target database can be searched only as a plain file",
                  input.name(), "name the .hjdb file itself, decompressed");
    }
    if (head.empty()) return empty();
    std::optional<Recognised> found = recognise(input.name(), head);
    if (!found) {
      if (const auto foreign = recognise_foreign_file(head))
        return fail(ErrorCode::kInput, "the file holds no sequences: " + std::string(foreign->what),
                    input.name(), std::string(foreign->remedy));
      for (std::string_view suffix : {".pin", ".phr", ".psq", ".pal"}) {
        const std::string& name = input.name();
        if (name.ends_with(suffix) && is_blast_database(name.substr(0, name.size() - 4)))
          return fail(ErrorCode::kInput, "one of the files of a BLAST database", name,
                      "name the database without the ending of its files");
      }
      return fail(ErrorCode::kInput, "the sequence file is empty or in no known format",
                  input.name(), "check the file, or name its format with --tformat");
    }
    state->format = found->format;
    phylip_name_width = found->phylip_name_width;
  }
  // Downloads that failed often lie under the name of a FASTA file. Alignments are a matter of
  // --tformat, which the error of the FASTA reader names.
  if (state->format == SequenceFormat::kFasta && !head.starts_with('#')) {
    const auto foreign = recognise_foreign_file(head);
    if (foreign && head.find_first_not_of(" \t\r\n") != head.find('>'))
      return fail(ErrorCode::kInput, "the file holds no sequences: " + std::string(foreign->what),
                  input.name(), std::string(foreign->remedy));
  }
  // hmmsearch accepts line feeds alone in these formats, and a file of 0 bytes that is named as an
  // alignment.
  const bool unaligned =
      state->format == SequenceFormat::kFasta || state->format == SequenceFormat::kHmmpgmd ||
      state->format == SequenceFormat::kEmbl || state->format == SequenceFormat::kGenbank;
  if (unaligned && head.empty()) return empty();
  switch (state->format) {
    case SequenceFormat::kFasta:
    case SequenceFormat::kHmmpgmd:
      state->parser =
          make_fasta_parser(input, options.alphabet, state->format == SequenceFormat::kHmmpgmd);
      break;
    case SequenceFormat::kEmbl:
    case SequenceFormat::kGenbank:
      input.limit_lines(kLongestHeader);
      state->parser = make_flat_parser(input, options.alphabet, state->format);
      break;
    case SequenceFormat::kNcbi:
      state->parser = make_blast_parser(input, options.alphabet);
      break;
    default:
      state->parser =
          make_alignment_parser(input, options.alphabet, state->format, phylip_name_width);
  }
  return SequenceReader(std::move(state));
}

Result<bool> SequenceReader::read_block(TargetBlock& block, std::uint64_t max_residues,
                                        std::uint64_t max_targets) {
  std::size_t before = block.size();
  if (before == 0) block.set_first_index(state_->targets_read);
  Status status = state_->parser->read(block, max_residues, max_targets);
  state_->targets_read += block.size() - before;
  if (!status) return std::unexpected(status.error());
  return block.size() > before;
}

void SequenceReader::limit_targets(std::uint64_t residues) {
  state_->parser->limit_targets(residues);
}

Status SequenceReader::rewind() {
  HMMJIT_TRY(state_->input.rewind());
  state_->parser->reset();
  state_->targets_read = 0;
  return {};
}

bool SequenceReader::rewindable() const { return state_->input.source().rewindable(); }
const std::string& SequenceReader::name() const { return state_->input.name(); }
SequenceFormat SequenceReader::format() const { return state_->format; }
std::uint64_t SequenceReader::targets_read() const { return state_->targets_read; }

}  // namespace hmmjit
