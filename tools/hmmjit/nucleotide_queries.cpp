#include "nucleotide_queries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/ascii.hpp"
#include "core/numbers.hpp"
#include "core/text_fields.hpp"
#include "io/byte_source.hpp"
#include "io/sequence_file.hpp"
#include "model/numeric.hpp"
#include "nucleotide/search.hpp"
#include "query_options.hpp"
#include "search_inputs.hpp"
#include "search_options.hpp"

namespace hmmjit::tools {
namespace {

bool is_nucleic(const Alphabet* alphabet) {
  return alphabet != nullptr && alphabet->type != AlphabetType::kAmino;
}

// --dna or --rna; null: neither.
const Alphabet* asserted_alphabet(const ParsedOptions& options) {
  return options.is_set("--dna")   ? &dna_alphabet()
         : options.is_set("--rna") ? &rna_alphabet()
                                   : nullptr;
}

bool first_record_has_gaps(std::string_view fasta) {
  fasta = trim(fasta);
  if (!fasta.starts_with('>')) return false;
  fasta.remove_prefix(std::min(fasta.find_first_of("\r\n"), fasta.size()));
  return fasta.substr(0, fasta.find('>')).find_first_of("-_.~") != fasta.npos;
}

// --bgfile: the alphabet, then a probability for each residue; '#' begins a comment.
Result<Alphabet> read_background(const std::string& path, const Alphabet& alphabet) {
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path));
  BufferedInput input(std::move(source));
  input.limit_lines(4096);
  const auto wrong = [&](std::string what) {
    return fail(ErrorCode::kInput, std::move(what), input.where(),
                "write DNA or RNA, then a line for each residue with its probability");
  };
  Alphabet out = alphabet;
  std::array<bool, 4> given{};
  bool named = false;
  for (std::string_view line;;) {
    HMMJIT_ASSIGN(const bool more, input.line(&line));
    if (!more) break;
    line = line.substr(0, line.find('#'));
    const std::string_view word = take_word(&line);
    if (word.empty()) continue;
    if (!std::exchange(named, true)) {
      if (!equal_ignoring_case(word, alphabet.name))
        return wrong(fmt::format("frequencies of {} where queries are {}", word, alphabet.name));
      continue;
    }
    const Residue code =
        word.size() == 1 ? alphabet.digit[static_cast<unsigned char>(word[0])] : kInvalidCode;
    const std::optional<double> value = parse_real(take_word(&line));
    if (code >= 4 || given[code] || !value || !(*value >= 0) || *value > 1 || !is_blank(line))
      return wrong("no residue with its probability");
    given[code] = true;
    out.background[code] = static_cast<float>(*value);
  }
  const std::span<float> values(out.background.data(), 4);
  if (!std::ranges::all_of(given, std::identity())) return wrong("a residue has no probability");
  if (!(std::fabs(compensated_sum(values) - 1) <= 0.001f))
    return wrong("the probabilities do not sum to 1");
  normalise(values);
  return out;
}

}  // namespace

bool holds_profiles(const std::string& path) {
  return is_regular_file(path) && HmmReader::open(path).has_value();
}

Result<std::shared_ptr<NucleotideQueries>> NucleotideQueries::open(const ParsedOptions& options,
                                                                   const std::string& path) {
  std::shared_ptr<NucleotideQueries> out(new NucleotideQueries(options, path));
  HMMJIT_ASSIGN(std::optional<SequenceFormat> format, asserted_format(options, "--qformat"));
  if (format == SequenceFormat::kHmmpgmd || format == SequenceFormat::kNcbi)
    return fail(ErrorCode::kUsage,
                fmt::format("{} is not a valid query format", sequence_format_name(*format)),
                "--qformat", "use fasta, embl, genbank or an alignment format");
  bool aligned = format && is_alignment_format(*format);
  if (!format) {
    auto models = HmmReader::open(path);
    if (models) {
      HMMJIT_TRY(out->open_models(*std::move(models)));
      return out;
    }
    if (path == "-" || is_pipe(path))
      return fail(ErrorCode::kUsage, "the format of queries from a pipe must be stated", path,
                  "add --qformat, or give profiles");
    auto head = head_of(path);
    if (!head || head->starts_with("HMMER")) return std::unexpected(models.error());
    const std::string_view text = trim(*head);
    if (!text.starts_with('>')) {
      aligned = format_of(path, *head, std::nullopt, FileContent::kAlignments).has_value();
    } else if (path.ends_with(".a2m") && !options.is_set("--qsingle_seqs")) {
      aligned = true;
    }
  }
  if (aligned && !options.is_set("--qsingle_seqs")) {
    HMMJIT_TRY(out->open_alignments(format));
  } else {
    HMMJIT_TRY(out->open_sequences(format, aligned));
  }
  HMMJIT_ASSIGN(build::ScoreSystem system, make_score_system(options, *out->alphabet_));
  out->builder_.single = std::move(system);
  out->builder_.tail_mass = options.given_real("--w_beta").value_or(out->builder_.tail_mass);
  if (options.is_set("--w_length")) out->builder_.max_length = options.integer("--w_length");
  return out;
}

Status NucleotideQueries::set_alphabet(const Alphabet* found) {
  if (found == nullptr)
    return fail(ErrorCode::kInput, "the letters do not tell whether queries are DNA or RNA", path_,
                "add --dna or --rna");
  if (!is_nucleic(found))
    return fail(ErrorCode::kInput, "the queries are proteins, not DNA or RNA", path_,
                "use hmmjit search or phmmer");
  alphabet_ = found;
  if (!options_.is_set("--bgfile")) return {};
  HMMJIT_ASSIGN(Alphabet own, read_background(options_.path("--bgfile"), *found));
  with_background_ = std::make_unique<Alphabet>(std::move(own));
  alphabet_ = with_background_.get();
  return {};
}

Status NucleotideQueries::open_models(HmmReader reader) {
  if (options_.is_set("--qsingle_seqs"))
    return fail(ErrorCode::kUsage, "--qsingle_seqs does not go with profiles as queries", path_,
                "leave it out");
  models_ = std::move(reader);
  path_ = models_->name();  // a pressed database may replace the file
  HMMJIT_ASSIGN(first_model_, models_->next());
  if (!first_model_)
    return fail(ErrorCode::kInput, "no model in the file", path_, "give a profile HMM file");
  const Alphabet* asserted = asserted_alphabet(options_);
  if (asserted != nullptr && is_nucleic(first_model_->alphabet) &&
      asserted != first_model_->alphabet)
    return fail(ErrorCode::kInput,
                fmt::format("model {} is {}", first_model_->name, first_model_->alphabet->name),
                path_, "leave out --dna and --rna");
  return set_alphabet(first_model_->alphabet);
}

Status NucleotideQueries::open_alignments(const std::optional<SequenceFormat>& format) {
  HMMJIT_ASSIGN(alignments_, AlignmentReader::open(path_, {.format = format,
                                                           .alphabet = asserted_alphabet(options_)}));
  // Letters of a file in another format mislead: report its syntax error first.
  if (!is_nucleic(&alignments_->alphabet())) HMMJIT_TRY(alignments_->next());
  return set_alphabet(&alignments_->alphabet());
}

Status NucleotideQueries::open_sequences(std::optional<SequenceFormat> format, bool aligned) {
  const bool single = options_.is_set("--qsingle_seqs");
  const Alphabet* found = asserted_alphabet(options_);
  if (found == nullptr && (path_ == "-" || is_pipe(path_))) found = &dna_alphabet();
  if (found == nullptr && single && !aligned) {
    HMMJIT_ASSIGN(const std::string head, head_of(path_));
    // nhmmer cannot guess the alphabet of a first record with gaps, and reads an alignment instead.
    if (first_record_has_gaps(head)) {
      aligned = true;
      format = SequenceFormat::kAlignedFasta;
    }
  }
  // nhmmer first tries FASTA as an alignment, and keeps the alphabet of the whole file.
  const bool either = !aligned && !format && !single;
  std::optional<AlignmentReader> rows;
  if (either || (aligned && found == nullptr)) {
    auto opened = AlignmentReader::open(path_, {.format = format, .alphabet = found});
    if (aligned && !opened) return std::unexpected(opened.error());
    if (opened) rows = *std::move(opened);
  }
  if (rows) found = &rows->alphabet();
  if (found == nullptr) {
    HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path_));
    BufferedInput input(std::move(source));
    HMMJIT_ASSIGN(found, guess_sequence_alphabet(input));
  }
  if (!is_nucleic(found)) {
    // As above. Read as proteins, which allow any letter.
    HMMJIT_ASSIGN(SequenceReader reader,
                  SequenceReader::open(path_, {.alphabet = amino_alphabet(), .format = format}));
    HMMJIT_TRY(reader.read_block(sequences_, 1));
  }
  HMMJIT_TRY(set_alphabet(found));
  if (either && rows) {
    const auto alignment = rows->next();
    if (alignment && *alignment && (*alignment)->rows() > 1)
      return fail(ErrorCode::kInput, "sequences of one length may be aligned or not", path_,
                  "state which: --qformat afa, or --qformat fasta");
  }
  HMMJIT_ASSIGN(SequenceReader reader,
                SequenceReader::open(path_, {.alphabet = *alphabet_, .format = format}));
  HMMJIT_TRY(reader.read_block(sequences_, std::numeric_limits<std::uint64_t>::max()));
  for (std::size_t n = 0; n < sequences_.size(); ++n) {
    if (sequences_.length(n) == 0)
      return fail(ErrorCode::kInput,
                  fmt::format("query sequence {} has no residues", sequences_[n].name), path_,
                  "remove it");
  }
  if (sequences_.size() == 0)
    return fail(ErrorCode::kInput, "no sequence in the file", path_, "check its format");
  return {};
}

Result<std::optional<Hmm>> NucleotideQueries::next_model() {
  if (first_model_) return std::exchange(first_model_, std::nullopt);
  return models_->next();
}

Result<std::optional<build::BuiltModel>> NucleotideQueries::next() {
  if (models_) {
    HMMJIT_ASSIGN(std::optional<Hmm> hmm, next_model());
    if (!hmm) return std::nullopt;
    HMMJIT_TRY(nucleotide::check(hmm->name, hmm->M, 0));
    HMMJIT_TRY(build::calibrate_if_needed(*hmm));  // like HMMER, without --bgfile
    hmm->alphabet = alphabet_;
    build::BuiltModel model;
    model.hmm = *std::move(hmm);
    return model;
  }
  if (alignments_) {
    HMMJIT_ASSIGN(const std::optional<MultipleAlignment> alignment, next_alignment());
    if (!alignment) return std::nullopt;
    build::Builder builder = builder_;
    if (!options_.is_set("--singlemx")) builder.single.reset();
    HMMJIT_ASSIGN(build::BuiltModel built, builder.from_alignment(*alignment));
    // Unlike hmmbuild, nhmmer gives no effective number to a model of a single sequence.
    if (builder.single && alignment->rows() == 1) built.effective_sequences.reset();
    return built;
  }
  if (read_ == sequences_.size()) return std::nullopt;
  const TargetView query = sequences_[read_++];
  HMMJIT_TRY(nucleotide::check(query.name, query.length(), 0));
  HMMJIT_ASSIGN(build::BuiltModel built,
                builder_.from_sequence(std::string(query.name), query.residues));
  return built;
}

Result<bool> NucleotideQueries::skip() {
  if (models_) {
    HMMJIT_ASSIGN(const std::optional<Hmm> hmm, next_model());
    return hmm.has_value();
  }
  if (alignments_) {
    HMMJIT_ASSIGN(const std::optional<MultipleAlignment> alignment, next_alignment());
    return alignment.has_value();
  }
  if (read_ == sequences_.size()) return false;
  ++read_;
  return true;
}

Result<QueryRange> queries_of_slice(const ParsedOptions& options, const std::string& path) {
  if (!options.is_set("--slice")) return QueryRange{};
  HMMJIT_ASSIGN(const parts::Share share, slice_of(options));
  if (path == "-" || is_pipe(path))
    return fail(ErrorCode::kUsage, "the queries of a slice are read twice", path,
                "give a file instead of a pipe");
  HMMJIT_ASSIGN(const std::shared_ptr<NucleotideQueries> queries,
                NucleotideQueries::open(options, path));
  std::uint64_t count = 0;
  for (;; ++count) {
    HMMJIT_ASSIGN(const bool more, queries->skip());
    if (!more) break;
  }
  return QueryRange{count * (share.first - 1) / share.of, count * share.last / share.of};
}

Result<std::optional<MultipleAlignment>> NucleotideQueries::next_alignment() {
  HMMJIT_ASSIGN(std::optional<MultipleAlignment> alignment, alignments_->next());
  if (!alignment) return std::nullopt;
  const bool nameless = alignment->name.empty();
  ++read_;
  // nhmmer names one unnamed alignment after the file.
  if (nameless) alignment->name = path_ == "-" ? path_ : build::name_from_file(path_);
  if (alignment->name.empty() || (nameless && std::exchange(nameless_, true)))
    return fail(ErrorCode::kInput, fmt::format("alignment {} has no name", read_), path_,
                "name each alignment in its file (#=GF ID)");
  alignment->alphabet = alphabet_;
  return alignment;
}

int window_length(const ParsedOptions& options, const Hmm& hmm) {
  if (options.is_set("--w_length")) return options.integer("--w_length");
  const double beta = options.given_real("--w_beta").value_or(0);
  if (beta > 0) return max_length(hmm, beta);
  return hmm.max_length ? *hmm.max_length : max_length(hmm, 1e-7);
}

}  // namespace hmmjit::tools
