// hmmjit align: sequences aligned to a profile, as hmmalign does.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "align/alignment_formats.hpp"
#include "align/model_alignment.hpp"
#include "core/workers.hpp"
#include "hmmjit/command.hpp"
#include "io/alignment_file.hpp"
#include "io/hmm_file.hpp"
#include "io/sequence_file.hpp"
#include "io/text_output.hpp"
#include "output_names.hpp"
#include "parts/model_index.hpp"
#include "run_text.hpp"
#include "search_inputs.hpp"

namespace hmmjit::tools {
namespace {

constexpr std::string_view kLess = "Less common options";

constexpr OptionSpec kOptions[] = {
    {kBasic, "-h,--help", "", "show brief help on version and usage"},
    {kBasic, "-o", "f", "output alignment to file <f>, not stdout"},
    {kLess, "--mapali", "@f", "include alignment in file <f> (same ali that HMM came from)"},
    {kLess, "--trim", "", "trim terminal tails of nonaligned residues from alignment"},
    {kLess, "--amino", "", "assert <seqfile>, <hmmfile> both protein: no autodetection",
     excluding("--dna,--rna")},
    {kLess, "--dna", "", "assert <seqfile>, <hmmfile> both DNA: no autodetection",
     excluding("--amino,--rna")},
    {kLess, "--rna", "", "assert <seqfile>, <hmmfile> both RNA: no autodetection",
     excluding("--amino,--dna")},
    {kLess, "--informat", "s", "assert <seqfile> is in format <s>: no autodetection",
     offering(kSequenceFormatNames)},
    {kLess, "--outformat", "s=Stockholm", "output alignment in format <s>",
     offering("Stockholm,pfam,a2m,afa,psiblast,selex,clustal,clustallike,phylip,phylips")},
    {kLess, "--cpu", "n n>=0", "busy threads at most (0 and 1: one); default: all available cores",
     kOurs},
    banner_option(kLess),
};

// Reads the only model of a file.
Result<Hmm> read_model(const std::string& path, const ParsedOptions& options) {
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(path));
  reader.keep_subnormals();
  HMMJIT_ASSIGN(std::optional<Hmm> hmm, reader.next());
  if (!hmm)
    return fail(ErrorCode::kInput, "the file holds no profile", reader.name(), "give one profile");
  for (const auto& [option, alphabet] : {std::pair("--amino", &amino_alphabet()),
                                         {"--dna", &dna_alphabet()},
                                         {"--rna", &rna_alphabet()}}) {
    if (options.is_set(option) && hmm->alphabet != alphabet)
      return fail(
          ErrorCode::kInput,
          fmt::format("model {} is {}, not {}", hmm->name, hmm->alphabet->name, alphabet->name),
          reader.name(), fmt::format("leave out {}", option));
  }
  HMMJIT_ASSIGN(const std::optional<Hmm> second, reader.next());
  if (second)
    return fail(ErrorCode::kInput, "the file holds more than one profile", reader.name(),
                "take one out of it (hmmfetch)");
  return *std::move(hmm);
}

// Reads the alignment of --mapali. Removes the format from remedies: no option states it.
Result<MultipleAlignment> read_source(const std::string& path, const Hmm& hmm) {
  const auto of_source = [](Error error) {
    constexpr std::string_view kFormat = ", or state its format";
    if (error.remedy.ends_with(kFormat)) error.remedy.resize(error.remedy.size() - kFormat.size());
    return std::unexpected(std::move(error));
  };
  auto reader = AlignmentReader::open(path, {.alphabet = hmm.alphabet});
  if (!reader) return of_source(reader.error());
  auto source = reader->next();
  if (!source) return of_source(source.error());
  if (!*source)
    return fail(ErrorCode::kInput, "no alignment in the file", reader->name(), "check --mapali");
  HMMJIT_TRY(align::check_source(hmm, **source));
  return **std::move(source);
}

// A block of sequences, large enough to fill vectors, and their paths.
struct Work {
  TargetBlock block;
  Result<std::vector<align::SequencePath>> paths = {};

  std::vector<TargetView> views() const {
    std::vector<TargetView> out;
    for (std::size_t n = 0; n < block.size(); ++n) out.push_back(block[n]);
    return out;
  }
};
Result<std::vector<Work>> read_sequences(const std::string& path, const Hmm& hmm,
                                         const ParsedOptions& options) {
  constexpr std::uint64_t kResidues = std::uint64_t{1} << 16, kSequences = 128;
  SequenceFormatOptions format{.alphabet = *hmm.alphabet, .model = hmm.name};
  HMMJIT_ASSIGN(format.format, asserted_format(options, "--informat"));
  HMMJIT_ASSIGN(SequenceReader reader, SequenceReader::open(path, format));
  std::vector<Work> out;
  for (;;) {
    Work work;
    HMMJIT_ASSIGN(const bool more, reader.read_block(work.block, kResidues, kSequences));
    if (!more) break;
    work.block.finish();
    out.push_back(std::move(work));
  }
  if (out.empty())
    return fail(ErrorCode::kInput, "no sequence in the file", reader.name(), "check its format");
  return out;
}

// Aligns blocks up to the first failure.
void align_blocks(const Hmm& hmm, int threads, std::vector<Work>& work) {
  const align::SequenceAligner aligner(hmm);
  std::atomic<std::size_t> failed = work.size();
  for_each_index(threads, work.size(), [&](std::size_t n) {
    if (n > failed) return;
    work[n].paths = aligner.align(work[n].views());
    if (!work[n].paths) failed = n;
  });
}

Author align_author(const ParsedOptions& options) {
  return {"align", "hmmalign", "align sequences to a profile HMM",
          options.is_set("--hmmer-banner")};
}

Result<int> run_align(const ParsedOptions& options) {
  const std::string& model_file = options.arguments()[0];
  const std::string& sequence_file = options.arguments()[1];
  HMMJIT_ASSIGN(
      const SequenceFormat format,
      parse_sequence_format(options.text("--outformat"), "--outformat", FileContent::kAlignments));
  std::vector<NamedFile> inputs;
  parts::add_profile_files(inputs, "profile file", model_file);
  inputs.push_back({"sequence file", sequence_file});
  if (options.is_set("--mapali")) inputs.push_back({"--mapali", options.path("--mapali")});
  HMMJIT_TRY(check_inputs(inputs));
  HMMJIT_TRY(check_outputs(with_standard_output(output_files(kOptions, options), options), inputs));

  HMMJIT_ASSIGN(const Hmm hmm, read_model(model_file, options));
  std::optional<MultipleAlignment> source;
  if (options.is_set("--mapali")) {
    HMMJIT_ASSIGN(source, read_source(options.path("--mapali"), hmm));
  }
  HMMJIT_ASSIGN(std::vector<Work> work, read_sequences(sequence_file, hmm, options));
  HMMJIT_ASSIGN(std::optional<TextOutput> file, create_file(options, "-o"));

  align_blocks(hmm, options.threads(), work);
  std::vector<TargetView> sequences;
  std::vector<align::SequencePath> paths;
  for (Work& part : work) {
    if (!part.paths) return std::unexpected(part.paths.error());
    std::ranges::copy(part.views(), std::back_inserter(sequences));
    std::ranges::move(*part.paths, std::back_inserter(paths));
    part.paths = {};
  }
  const auto write = [&](std::string_view text) {
    if (file)
      file->write(text);
    else
      fmt::print("{}", text);
  };
  align::write_alignment(write,
                         align::align_to_model(hmm, source ? &*source : nullptr, sequences, paths,
                                               options.is_set("--trim")),
                         format);
  if (file) {
    HMMJIT_TRY(file->commit());
  }
  return 0;
}

}  // namespace

CommandSpec align_command() {
  return {"align",
          "align sequences to a profile, as hmmalign does",
          {{"hmmfile", "file with one profile; - for standard input"},
           {"seqfile", "sequences to align; - for standard input"}},
          {std::begin(kOptions), std::end(kOptions)},
          run_align,
          {},
          [](const ParsedOptions& given) { return align_author(given).banner(); }};
}

}  // namespace hmmjit::tools
