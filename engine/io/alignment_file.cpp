#include "io/alignment_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "core/text_fields.hpp"
#include "io/alignment_parser.hpp"

namespace hmmjit {
namespace {

using F = SequenceFormat;

// The alphabet of a file that begins with `head`, from as few lines as possible; no value: needs
// more than `head`, unless that is the `whole` file. Like HMMER, counts all text but names and
// annotation.
std::optional<const Alphabet*> guess_alphabet(std::string_view head, bool whole,
                                              const RecognisedFormat& format) {
  if (!whole) head = head.substr(0, head.rfind('\n') + 1);
  const bool fasta = format.format == F::kAlignedFasta || format.format == F::kA2m;
  const bool phylip = format.format == F::kPhylip || format.format == F::kPhylipSequential;
  bool header = phylip || format.format == F::kClustal || format.format == F::kClustalLike;
  const std::size_t name_width = format.name_width == 0 ? kPhylipNameWidth : format.name_width;
  LetterCounts counts;
  for (std::uint64_t enough = 500; !head.empty();) {
    std::string_view line = take_line(&head);
    if (is_blank(line) || std::exchange(header, false)) continue;
    if (phylip) {
      line.remove_prefix(std::min(name_width, line.size()));
    } else if (fasta) {
      if (trim(line).starts_with('>')) continue;
    } else if (take_word(&line).starts_with('#')) {
      continue;
    }
    counts.add(line);
    if (counts.total() <= enough || enough > 50000) continue;
    if (const Alphabet* alphabet = counts.decide()) return alphabet;
    enough *= 10;
  }
  return whole ? std::optional(counts.decide()) : std::nullopt;
}

}  // namespace

struct AlignmentReader::State {
  BufferedInput input;
  const Alphabet* alphabet = nullptr;
  std::unique_ptr<AlignmentParser> parser = nullptr;
};

Result<AlignmentReader> AlignmentReader::open(const std::string& path,
                                              const AlignmentFileOptions& options) {
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path));
  return open(std::move(source), options);
}

Result<AlignmentReader> AlignmentReader::open(std::unique_ptr<ByteSource> source,
                                              const AlignmentFileOptions& options) {
  auto state = make_hidden<State>(BufferedInput(std::move(source)), options.alphabet);
  BufferedInput& input = state->input;
  HMMJIT_ASSIGN(const std::string_view head, input.peek());
  HMMJIT_ASSIGN(const RecognisedFormat format,
                format_of(input.name(), head, options.format, FileContent::kAlignments));
  if (state->alphabet == nullptr) {
    HMMJIT_ASSIGN(state->alphabet, guess_from_head(input, [&](std::string_view lines, bool whole) {
                    return guess_alphabet(lines, whole, format);
                  }));
  }
  if (state->alphabet == nullptr) {
    // Text in another format than the stated one has few letters: report the syntax error instead.
    HMMJIT_TRY(make_alignment_parser(input, amino_alphabet(), format)->next());
    return fail(ErrorCode::kInput, "the letters do not tell whether this is protein, DNA or RNA",
                input.name(), "state which it is");
  }
  state->parser = make_alignment_parser(input, *state->alphabet, format);
  return AlignmentReader(std::move(state));
}

Result<std::optional<MultipleAlignment>> AlignmentReader::next() {
  HMMJIT_ASSIGN(std::optional<ParsedAlignment> parsed, state_->parser->next());
  if (!parsed) return std::nullopt;
  MultipleAlignment out = std::move(parsed->annotation);
  out.alphabet = state_->alphabet;
  out.columns = parsed->rows.front().codes.size();
  if (out.columns == 0)
    return fail(ErrorCode::kInput, "an alignment without columns",
                fmt::format("{}:{}", name(), parsed->rows.front().line), "leave it out");
  out.residues.reserve(parsed->rows.size() * out.columns);
  for (AlignedRow& row : parsed->rows) {
    out.row_names.push_back(std::move(row.name));
    out.row_accessions.push_back(std::move(row.accession));
    out.row_descriptions.push_back(std::move(row.description));
    out.residues.insert(out.residues.end(), row.codes.begin(), row.codes.end());
    if (row.weight) out.weights.push_back(*row.weight);
    row = {};
  }
  return out;
}

const std::string& AlignmentReader::name() const { return state_->input.name(); }
const Alphabet& AlignmentReader::alphabet() const { return *state_->alphabet; }

}  // namespace hmmjit
