// hmmjit build: profiles from multiple alignments, like hmmbuild.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "build/aligned_rows.hpp"
#include "build/builder.hpp"
#include "build/hmm_writer.hpp"
#include "build/parameters.hpp"
#include "core/random_seed.hpp"
#include "core/trace.hpp"
#include "core/workers.hpp"
#include "hmmjit/command.hpp"
#include "io/alignment_file.hpp"
#include "io/text_output.hpp"
#include "output_names.hpp"
#include "query_options.hpp"
#include "report/main_report.hpp"
#include "report/report_header.hpp"
#include "report/text.hpp"
#include "run_text.hpp"
#include "search_inputs.hpp"

namespace hmmjit::tools {
namespace {

constexpr std::string_view kSingle = "Options for alignments of one sequence";
constexpr std::string_view kOther = "Other options";

constexpr OptionSpec kFirstOptions[] = {
    {kBasic, "-h,--help", "", "show brief help on version and usage"},
    {kBasic, "-n", "s", "name the HMM <s>"},
    {kBasic, "-o", "f", "direct summary output to file <f>, not stdout"},
    {kBasic, "-O", "f", "resave annotated, possibly modified alignments to file <f>"},
    {kBasic, "--amino", "", "input alignment is protein, not guessed", excluding("--dna,--rna")},
    {kBasic, "--dna", "", "input alignment is DNA, not guessed", excluding("--amino,--rna")},
    {kBasic, "--rna", "", "input alignment is RNA, not guessed", excluding("--amino,--dna")},
    {kConstruction, "--fast", "", "assign columns with >= symfrac residues as consensus (default)",
     excluding("--hand")},
    {kConstruction, "--hand", "", "manual construction (requires reference annotation)",
     excluding("--fast,--symfrac")},
    {kConstruction, "--symfrac", "x=0.5 0<=x<=1",
     "sets sym fraction controlling --fast construction", excluding("--hand")},
};
constexpr OptionSpec kLastOptions[] = {
    {kSingle, "--singlemx", "", "use substitution score matrix for single-sequence inputs"},
    {kSingle, "--mx", "s=BLOSUM62",
     "substitution score matrix (PAM30 to PAM240, BLOSUM45 to BLOSUM90; default for DNA: DNA1)",
     excluding("--mxfile")},
    {kSingle, "--mxfile", "@f", "read substitution score matrix from file <f>", excluding("--mx")},
    {kSingle, "--popen", "x 0<=x<0.5", "force gap open probability (0.02, DNA 0.03125)"},
    {kSingle, "--pextend", "x 0<=x<1", "force gap extend probability (0.4, DNA 0.75)"},
};
constexpr OptionSpec kExpertOptions[] = {
    cpu_option(kOther),
    {kOther, "--informat", "s", "assert input alignment file is in format <s>: no autodetection"},
    {kOther, "--seed", "n=42 n>=0", "set random number seed to <n> (0: one-time arbitrary seed)"},
    {kOther, "--w_beta", "x 0<=x<=1",
     "tail mass at which the window length of DNA and RNA models is determined"},
    {kOther, "--w_length", "n", "window length of DNA and RNA models"},
    {kOther, "--maxinsertlen", "n n>=5", "pretend all inserts are of length <= <n>"},
    banner_option(kOther),
};

std::vector<OptionSpec> build_options() {
  std::vector<OptionSpec> made;
  for (const std::span<const OptionSpec> part :
       {std::span<const OptionSpec>(kFirstOptions), alignment_options(),
        std::span<const OptionSpec>(kLastOptions), calibration_options(),
        std::span<const OptionSpec>(kExpertOptions)})
    made.insert(made.end(), part.begin(), part.end());
  return made;
}

struct Job {
  MultipleAlignment alignment;
  Result<build::BuiltModel> built = {};
  build::AlignedRows rows = {};
};

Author build_author(const ParsedOptions& options) {
  return {"build", "hmmbuild", "profile HMM construction from multiple sequence alignments",
          options.is_set("--hmmer-banner")};
}

std::string header(const std::string& output, const std::string& input,
                   const ParsedOptions& options, bool protein) {
  std::string out = build_author(options).banner();
  out += ReportHeader::kRule;
  out += ReportHeader::line("input alignment file:", input, 34);
  out += ReportHeader::line("output HMM file:", output, 34);
  out += ReportHeader::settings("hmmbuild", options.changed());
  (out += ReportHeader::kRule) += "\n";
  out += fmt::format("# {:3} {:20} {:>5} {:>5} {:>5}{} {:>8} {:>6} {}\n", "idx", "name", "nseq",
                     "alen", "mlen", protein ? "" : "     W", "eff_nseq", "re/pos", "description");
  out += fmt::format("#{:-<4} {:-<20} {:-<5} {:-<5} {:-<5}{} {:-<8} {:-<6} {:-<11}\n", "-", "-",
                     "-", "-", "-", protein ? "" : " -----", "-", "-", "-");
  return out;
}

Result<int> run_build(const ParsedOptions& options) {
  const double begin = Trace::now();
  const std::string& output = options.arguments()[0];
  const std::string& input = options.arguments()[1];
  if (output == "-")
    return fail(ErrorCode::kUsage, "the profile file cannot be standard output", {},
                "give it a name");
  if (options.is_set("-n") && !build::is_model_name(options.text("-n")))
    return fail(ErrorCode::kUsage, "the name is blank or has control characters", "-n",
                "give another one");
  std::vector<NamedFile> outputs = {{"profile file", output}};
  std::ranges::move(output_files(kFirstOptions, options), std::back_inserter(outputs));
  std::vector<NamedFile> inputs = {{"alignment file", input}};
  if (options.is_set("--mxfile")) inputs.push_back({"--mxfile", options.path("--mxfile")});
  HMMJIT_TRY(check_inputs(inputs));
  HMMJIT_TRY(check_outputs(with_standard_output(outputs, options), inputs));

  build::Builder builder;
  builder.alignment = make_alignment_options(options);
  if (options.is_set("--hand"))
    builder.alignment.columns = build::AlignmentOptions::Columns::kReference;
  builder.alignment.least_occupied = static_cast<float>(options.real("--symfrac"));
  if (options.is_set("--maxinsertlen"))
    builder.alignment.most_insertions = options.integer("--maxinsertlen");
  builder.calibration = make_calibration_options(options, random_seed());
  builder.open = options.given_real("--popen");
  builder.extend = options.given_real("--pextend");
  builder.tail_mass = options.given_real("--w_beta").value_or(builder.tail_mass);
  if (options.is_set("--w_length") && options.integer("--w_length") > 0)
    builder.max_length = options.integer("--w_length");

  AlignmentFileOptions file_options;
  if (options.is_set("--amino")) file_options.alphabet = &amino_alphabet();
  if (options.is_set("--dna")) file_options.alphabet = &dna_alphabet();
  if (options.is_set("--rna")) file_options.alphabet = &rna_alphabet();
  HMMJIT_ASSIGN(file_options.format,
                asserted_format(options, "--informat", FileContent::kAlignments));
  HMMJIT_ASSIGN(AlignmentReader reader, AlignmentReader::open(input, file_options));
  const bool protein = reader.alphabet().type == AlphabetType::kAmino;
  if (options.is_set("--singlemx")) {
    HMMJIT_ASSIGN(builder.single, make_score_system(options, reader.alphabet()));
    builder.open = builder.single->gap_open;
    builder.extend = builder.single->gap_extend;
  }
  HMMJIT_ASSIGN(TextOutput models, TextOutput::create(output));
  HMMJIT_ASSIGN(std::optional<TextOutput> rows_file, create_file(options, "-O"));
  HMMJIT_ASSIGN(std::optional<TextOutput> summary_file, create_file(options, "-o"));
  const auto summary = [&](const std::string& text) {
    if (summary_file)
      summary_file->write(text);
    else
      fmt::print("{}", text);
  };

  const int threads = options.threads();
  const std::string date = date_text();
  summary(header(output, input, options, protein));
  // Alignments in memory: enough for all threads.
  const auto batch = static_cast<std::size_t>(8 * threads);
  std::size_t number = 0;
  bool first_is_nameless = false;
  for (bool more = true; more;) {
    std::vector<Job> jobs;
    while (jobs.size() < batch) {
      HMMJIT_ASSIGN(std::optional<MultipleAlignment> alignment, reader.next());
      more = alignment.has_value();
      if (!more) break;
      const std::size_t index = number + jobs.size();
      if (options.is_set("-n")) {
        if (index > 0)
          return fail(ErrorCode::kUsage, "the file holds several alignments", "-n",
                      "leave it out, and name each alignment in its file (#=GF ID)");
        alignment->name = options.text("-n");
      } else {
        // An unnamed single alignment gets the file's name.
        const bool nameless = alignment->name.empty();
        if (nameless && index == 0) alignment->name = build::name_from_file(input);
        if (first_is_nameless || alignment->name.empty())
          return fail(ErrorCode::kInput,
                      fmt::format("alignment {} has no name", first_is_nameless ? 1 : index + 1),
                      reader.name(),
                      index == 0
                          ? "give it a name with -n, or each of several in the file (#=GF ID)"
                          : "name each alignment in its file (#=GF ID)");
        first_is_nameless = nameless;
      }
      jobs.push_back({*std::move(alignment)});
    }
    for_each_index(threads, jobs.size(), [&](std::size_t i) {
      jobs[i].built =
          builder.from_alignment(jobs[i].alignment, rows_file ? &jobs[i].rows : nullptr);
    });
    for (Job& job : jobs) {
      if (!job.built) return std::unexpected(job.built.error());
      const build::BuiltModel& built = *job.built;
      HMMJIT_TRY(build::check_writable(built));
      std::string text;
      append_hmm_text(text, built, build_author(options).model_tag(), date);
      models.write(text);
      if (rows_file && !job.rows.rows.empty()) {
        build::write_stockholm(
            [&](std::string_view part) { rows_file->write(part); }, job.rows,
            {job.alignment.name, job.alignment.accession, job.alignment.description});
      }
      std::string name;
      text::append(name, text::left(job.alignment.name, 20));  // bytes, as in hmmbuild
      summary(fmt::format("{:<5} {} {:5} {:5} {:5}{} {:>8.2f} {:>6.3f} {}\n", ++number, name,
                          job.alignment.rows(), job.alignment.columns, built.hmm.M,
                          protein ? "" : fmt::format(" {:5}", *built.hmm.max_length),
                          static_cast<double>(built.effective_sequences.value_or(1)),
                          build::mean_relative_entropy(built.hmm),
                          job.alignment.description.value_or("")));
    }
  }
  if (number == 0)
    return fail(ErrorCode::kInput, "no alignment in the file", reader.name(),
                "give a file with an alignment");
  std::string times = "\n";
  append_cpu_time(times, static_cast<double>(std::clock()) / CLOCKS_PER_SEC, Trace::now() - begin);
  summary(times);
  HMMJIT_TRY(flush_standard_output());
  std::vector<OutputFile*> files;
  for (TextOutput* file :
       {&models, summary_file ? &*summary_file : nullptr, rows_file ? &*rows_file : nullptr}) {
    if (file == nullptr) continue;
    HMMJIT_TRY(file->flush());
    files.push_back(&file->file());
  }
  HMMJIT_TRY(OutputFile::publish(files));
  return 0;
}

}  // namespace

CommandSpec build_command() {
  return {
      "build",
      "make profile(s) from multiple alignments, as hmmbuild does",
      {{"hmmfile_out", "profile file to write"}, {"msafile", "alignment(s); - for standard input"}},
      build_options(),
      run_build,
      {},
      [](const ParsedOptions& given) { return build_author(given).banner(); }};
}

}  // namespace hmmjit::tools
