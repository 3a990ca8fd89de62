#include "io/sequence_file.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>
#include <vector>

#include "core/text_fields.hpp"
#include "io/alignment_parser.hpp"
#include "io/blast_database.hpp"
#include "io/sequence_parsing.hpp"
#include "io/target_database.hpp"

namespace hmmjit {

using namespace sequence_parsing;

namespace sequence_parsing {
namespace {

constexpr std::string_view kGaps = "-._~";

}  // namespace

std::array<std::uint8_t, 256> residue_table(const Alphabet& alphabet) {
  std::array<std::uint8_t, 256> table = alphabet.digit;
  std::ranges::replace(table, kInvalidCode, kSpecial);
  return table;
}

std::array<std::uint8_t, 256> unaligned_table(const SequenceFormatOptions& options) {
  std::array<std::uint8_t, 256> table = residue_table(options.alphabet);
  for (char c : {' ', '\t', '\r', '\n'}) table[static_cast<unsigned char>(c)] = kIgnored;
  // hmmsearch refuses '-', an alignment gap, but accepts its synonyms '_' and '.'.
  for (char c : options.text_mode ? kGaps : std::string_view("-"))
    table[static_cast<unsigned char>(c)] = kSpecial;
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
      where, "allow more memory, or leave out the sequence");
}

std::unexpected<Error> illegal_character(const std::string& where, std::string_view target, char c,
                                         const Alphabet& alphabet, std::string_view model) {
  const auto byte = static_cast<unsigned char>(c);
  const std::string shown = byte >= 0x80 ? fmt::format("non-ASCII character (byte 0x{:02x})", byte)
                            : byte > ' ' && byte < 0x7f
                                ? fmt::format("illegal character {}", c)
                                : fmt::format("illegal character (byte 0x{:02x})", byte);
  std::string message =
      fmt::format("{} in {} sequence{}{}", shown, alphabet.name, target.empty() ? "" : " ", target);
  const bool gap = kGaps.contains(c);
  if (alphabet.type != AlphabetType::kAmino && !gap &&
      amino_alphabet().digit[byte] != kInvalidCode) {
    if (!model.empty()) message = fmt::format("model {} is {}: {}", model, alphabet.name, message);
    return fail(ErrorCode::kInput, std::move(message), where,
                "search proteins with models of proteins, or correct the record");
  }
  return fail(ErrorCode::kInput, std::move(message), where,
              gap ? "remove the gaps, or if it is an alignment, state its format"
                  : "correct or remove the record");
}

}  // namespace sequence_parsing

namespace {

// Delivers the rows of alignments as targets, without gaps.
class AlignedTargets final : public Parser {
 public:
  AlignedTargets(std::unique_ptr<AlignmentParser> parser, const Alphabet& alphabet)
      : parser_(std::move(parser)), alphabet_(alphabet) {}

  void reset() override {
    rows_.clear();
    next_ = 0;
    parser_->reset();
  }

  Status read(TargetBlock& block, std::uint64_t residues, std::uint64_t targets) override {
    while (!block.full(residues, targets)) {
      if (next_ == rows_.size()) {
        HMMJIT_ASSIGN(std::optional<ParsedAlignment> alignment, parser_->next());
        if (!alignment) return {};
        rows_ = std::move(alignment->rows);
        next_ = 0;
      }
      // Alignments may be large: free each row on delivery.
      AlignedRow row = std::exchange(rows_[next_++], {});
      std::erase_if(row.codes, [gap = alphabet_.gap(), missing = alphabet_.missing()](int code) {
        return code == gap || code == missing;
      });
      if (row.codes.size() > kLongestTarget)
        return too_long(fmt::format("line {}", row.line), row.name);
      block.begin_target(row.name, row.accession, row.description);
      block.append(row.codes);
      block.end_target();
    }
    return {};
  }

 private:
  std::unique_ptr<AlignmentParser> parser_;
  const Alphabet& alphabet_;
  std::vector<AlignedRow> rows_;
  std::size_t next_ = 0;
};

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
    const std::string_view directory = take_up_to(&directories, ':');
    std::string candidate = fmt::format("{}/{}", directory, path);
    if (!directory.empty() && there(candidate)) return candidate;
  }
  return path;
}

struct SequenceReader::State {
  explicit State(std::unique_ptr<ByteSource> source) : input(std::move(source)) {}
  BufferedInput input;
  SequenceFormat format = SequenceFormat::kFasta;
  std::unique_ptr<Parser> parser;
  std::uint64_t targets_read = 0;
};

Result<std::unique_ptr<ByteSource>> open_sequence_source(const std::string& path,
                                                         SequenceFormatOptions& options) {
  if (!options.format && ::access(path.c_str(), F_OK) != 0 && is_blast_database(path))
    options.format = SequenceFormat::kNcbi;
  if (options.format == SequenceFormat::kNcbi) return open_blast_database(path, options.alphabet);
  return open_byte_source(path);
}

Result<SequenceReader> SequenceReader::open(const std::string& path,
                                            const SequenceFormatOptions& options) {
  SequenceFormatOptions known = options;
  HMMJIT_ASSIGN(auto source, open_sequence_source(find_sequence_file(path), known));
  return open(std::move(source), known);
}

Result<SequenceReader> SequenceReader::open(std::unique_ptr<ByteSource> source,
                                            const SequenceFormatOptions& options) {
  auto state = make_hidden<State>(std::move(source));
  BufferedInput& input = state->input;
  const std::string& name = input.name();
  HMMJIT_ASSIGN(const std::string_view head, input.peek());
  if (!options.format && is_target_database(head))
    return fail(ErrorCode::kInput, "a target database can only be searched, as a plain file", name,
                "name the .hjdb file itself, decompressed, or for queries use hmmjit db fetch");
  const auto format = format_of(name, head, options.format, FileContent::kSequences);
  if (!format) {
    for (const std::string_view suffix : kBlastSuffixes) {
      if (name.ends_with(suffix) && is_blast_database(name.substr(0, name.size() - 4)))
        return fail(ErrorCode::kInput, "one of the files of a BLAST database", name,
                    "name the database without the ending of its files");
    }
    return std::unexpected(format.error());
  }
  state->format = format->format;
  // hmmsearch accepts a file of line feeds only, and an empty one if an alignment format is
  // asserted.
  if (head.empty() && !is_alignment_format(state->format) && state->format != SequenceFormat::kNcbi)
    return fail(ErrorCode::kInput, "the sequence file is empty", name,
                "check whether what made it has failed");
  const Alphabet& alphabet = options.alphabet;
  switch (state->format) {
    case SequenceFormat::kFasta:
    case SequenceFormat::kHmmpgmd:
      state->parser = make_fasta_parser(input, options, state->format == SequenceFormat::kHmmpgmd);
      break;
    case SequenceFormat::kEmbl:
    case SequenceFormat::kGenbank:
      input.limit_lines(kLongestHeader);
      state->parser = make_flat_parser(input, options, state->format);
      break;
    case SequenceFormat::kNcbi:
      state->parser = make_blast_parser(input, alphabet);
      break;
    default:
      state->parser = std::make_unique<AlignedTargets>(
          make_alignment_parser(input, alphabet, *format, options.model), alphabet);
  }
  state->parser->name_model(options.model);
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

ByteSource& SequenceReader::source() const { return state_->input.source(); }
std::uint64_t SequenceReader::bytes_read() const { return state_->input.delivered(); }
const std::string& SequenceReader::name() const { return state_->input.name(); }
SequenceFormat SequenceReader::format() const { return state_->format; }
std::uint64_t SequenceReader::targets_read() const { return state_->targets_read; }

}  // namespace hmmjit
