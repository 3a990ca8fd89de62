// `hmmjit db`: makes, describes and checks target databases (docs/database-format.md).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <ranges>
#include <set>

#include "core/memory.hpp"
#include "core/numbers.hpp"
#include "core/output_file.hpp"
#include "core/text_fields.hpp"
#include "core/trace.hpp"
#include "hmmjit/command.hpp"
#include "hmmjit/fields.hpp"
#include "hmmjit/output_names.hpp"
#include "hmmjit/search_inputs.hpp"
#include "io/sequence_file.hpp"
#include "io/target_database.hpp"
#include "io/text_output.hpp"
#include "model/residue_copies.hpp"
#include "nucleotide/search.hpp"
#include "report/fasta.hpp"
#include "search/database_builder.hpp"
#include "search/kept_targets.hpp"
#include "search/reader_source.hpp"

namespace hmmjit::tools {
namespace {

const Alphabet& named_alphabet(std::string_view name) {
  return name == "dna" ? dna_alphabet() : name == "rna" ? rna_alphabet() : amino_alphabet();
}

Result<DatabaseSummary> build(const std::vector<std::string>& targets, const Alphabet& alphabet,
                              const std::string& output, const ParsedOptions& given) {
  SequenceFormatOptions options{.alphabet = alphabet};
  HMMJIT_ASSIGN(options.format, asserted_format(given, "--tformat"));
  if (std::ranges::count(targets, "-") > 1)
    return fail(ErrorCode::kUsage, "standard input is named more than once");
  std::vector<DatabaseInput> inputs;
  for (const std::string& path : targets) {
    inputs.push_back({path == "-" ? std::string("standard input") : path,
                      [&options, &path] { return open_target_file(path, options); },
                      is_regular_file(find_sequence_file(path))});
  }
  const int threads = given.is_set("--cpu") ? given.integer("--cpu") : 0;
  return build_database(inputs, alphabet, output, fmt::format("hmmjit {}", HMMJIT_VERSION),
                        threads);
}

// The first input's name, with .hjdb instead of .gz or .zst.
Result<std::string> default_output(std::string name) {
  if (name == "-")
    return fail(ErrorCode::kUsage, "no name for the database of standard input", {}, "add -o FILE");
  for (const std::string_view suffix : {".gz", ".zst"}) {
    if (name.ends_with(suffix)) name.erase(name.size() - suffix.size());
  }
  return name + ".hjdb";
}

Result<int> build_and_report(const ParsedOptions& options, const Alphabet& alphabet) {
  const std::vector<std::string>& targets = options.arguments();
  std::string output(options.text("--output"));
  if (output.empty()) {
    HMMJIT_ASSIGN(output, default_output(targets.front()));
  }
  std::vector<NamedFile> inputs;
  for (const std::string& path : targets)
    inputs.push_back({"sequence file", find_sequence_file(path)});
  const NamedFile outputs[] = {{"-o", output}};
  HMMJIT_TRY(check_outputs(outputs, inputs));
  const double begun = Trace::now();
  HMMJIT_ASSIGN(const DatabaseSummary summary, build(targets, alphabet, output, options));
  if (!options.is_set("--quiet")) {
    const double seconds = Trace::now() - begun;
    fmt::print("{}: {} targets, {} residues, {} bytes, in {:.2f} s ({:.0f} M residues/s)\n", output,
               summary.targets, summary.residues, summary.file_bytes, seconds,
               static_cast<double>(summary.residues) / 1e6 / std::max(seconds, 1e-9));
  }
  return 0;
}

Result<int> run_build(const ParsedOptions& options) {
  return build_and_report(options, named_alphabet(options.text("--alphabet")));
}

// Joins databases without parsing sequences again.
Result<int> run_join(const ParsedOptions& options) {
  if (!options.is_set("--output"))
    return fail(ErrorCode::kUsage, "-o is missing", {}, "give the file to write");
  const Alphabet* alphabet = nullptr;
  for (const std::string& path : options.arguments()) {
    HMMJIT_ASSIGN(const auto database, TargetDatabase::open(find_sequence_file(path)));
    alphabet = database->summary().alphabet;
  }
  return build_and_report(options, *alphabet);
}

Result<int> run_info(const ParsedOptions& options) {
  const std::string path = find_sequence_file(options.arguments()[0]);
  HMMJIT_ASSIGN(const auto database, TargetDatabase::open(path));
  const DatabaseSummary& s = database->summary();
  std::uint32_t median = 0;
  if (s.targets > 0) {
    HMMJIT_ASSIGN(median, database->length_at_rank(s.targets / 2));
  }
  HMMJIT_ASSIGN(const std::string about, database->about());
  Json fields{
      {"file", path},
      {"format_version", s.version},
      {"identity", fmt::format("{:016x}", s.identity)},
      {"alphabet", s.alphabet->name},
      {"targets", s.targets},
      {"residues", s.residues},
      {"longest", s.longest},
      {"median", median},
      {"shortest", s.shortest},
      {"file_bytes", s.file_bytes},
      {"bytes_per_residue",
       s.residues > 0 ? static_cast<double>(s.file_bytes) / static_cast<double>(s.residues) : 0.0}};
  for (const DatabaseSection& section : s.sections) {
    fields["sections"].push_back({{"name", section.name},
                                  {"offset", section.offset},
                                  {"bytes", section.bytes},
                                  {"checksum", fmt::format("{:016x}", section.checksum)}});
  }
  Json sources = Json::array();
  for (const std::string& line : split_list(about, '\n')) {
    const std::size_t blank = std::min(line.find(' '), line.size());
    const std::string key = line.substr(0, blank);
    const std::string value = line.substr(std::min(blank + 1, line.size()));
    if (key == "source") {
      sources.push_back(value);
    } else {
      fields[key] = value;
    }
  }
  fields["sources"] = sources;
  print_fields(fields, options.is_set("--json"));
  return 0;
}

// A request for a sequence by its name, or for a part of it by "name/from-to".
struct Wanted {
  std::string word;              // as given
  std::size_t from = 0, to = 0;  // 1-based and inclusive; 0: all
  bool found = false;
};
using WantedByName = std::multimap<std::string, Wanted, std::less<>>;

// The part that `word` requests, unless `word` is itself a name.
std::optional<WantedByName::value_type> part_of(const std::string& word) {
  const std::size_t slash = word.rfind('/');
  const std::size_t dash = word.find('-', std::min(slash, word.size()));
  if (dash == word.npos) return std::nullopt;
  const auto from = parse_int(std::string_view(word).substr(slash + 1, dash - slash - 1));
  const auto to = parse_int(std::string_view(word).substr(dash + 1));
  if (!from || !to || *from <= 0 || *to <= 0) return std::nullopt;
  return WantedByName::value_type(word.substr(0, slash), {word, static_cast<std::size_t>(*from),
                                                          static_cast<std::size_t>(*to)});
}

// Names from the command line and from a file (one per line).
Result<std::vector<std::string>> wanted_names(const ParsedOptions& options) {
  std::vector<std::string> names(options.arguments().begin() + 1, options.arguments().end());
  if (options.is_set("--file")) {
    HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(options.path("--file")));
    BufferedInput input(std::move(source));
    std::string_view line;
    for (;;) {
      HMMJIT_ASSIGN(const bool more, input.line(&line));
      if (!more) break;
      const std::string_view word = take_word(&line);
      if (!word.empty() && !word.starts_with('#')) names.emplace_back(word);
    }
  }
  if (names.empty())
    return fail(ErrorCode::kUsage, "no name of a sequence is given", {},
                "give names, or a file of them with -f");
  return names;
}

Status for_each_block(TargetSource& source, const std::function<Status(const TargetBlock&)>& take) {
  constexpr std::size_t kBlockResidues = std::size_t{1} << 20;
  for (;;) {
    TargetBlock block;
    HMMJIT_ASSIGN(const bool more, source.next(block, kBlockResidues));
    if (!more) return {};
    HMMJIT_TRY(take(block));
  }
}

// The requests, by name; parts of one sequence keep the order of the words. A sequence may itself
// be called a/2-3: words that are such names request no parts.
Result<WantedByName> find_parts(const std::vector<std::string>& words,
                                std::unique_ptr<TargetSource>& source) {
  std::set<std::string, std::less<>> like_parts, names;
  std::ranges::copy_if(words, std::inserter(like_parts, like_parts.end()),
                       [](const std::string& word) { return part_of(word).has_value(); });
  if (!like_parts.empty()) {
    if (!source->rewindable()) source = keep_targets(std::move(source), available_memory() / 2);
    HMMJIT_TRY(for_each_block(*source, [&](const TargetBlock& block) -> Status {
      for (std::size_t i = 0; i < block.size(); ++i) {
        if (like_parts.contains(block[i].name)) names.emplace(block[i].name);
      }
      return {};
    }));
    HMMJIT_TRY(source->rewind());
  }
  WantedByName wanted;
  for (const std::string& word : words) {
    const auto part = names.contains(word) ? std::nullopt : part_of(word);
    wanted.insert(part.value_or(WantedByName::value_type(word, {.word = word})));
  }
  return wanted;
}

Result<int> run_fetch(const ParsedOptions& options) {
  const std::string input = find_sequence_file(options.arguments()[0]);
  std::vector<NamedFile> inputs = {{"sequence file", input}};
  if (options.is_set("--file")) inputs.push_back({"--file", options.path("--file")});
  HMMJIT_TRY(check_inputs(inputs));
  HMMJIT_ASSIGN(const std::vector<std::string> words, wanted_names(options));
  HMMJIT_ASSIGN(const std::optional<SequenceFormat> format, asserted_format(options, "--tformat"));
  const Alphabet* alphabet = &named_alphabet(options.text("--alphabet"));
  HMMJIT_ASSIGN(const bool is_database, is_target_database_file(input));
  if (is_database) {
    HMMJIT_ASSIGN(const auto database, TargetDatabase::open(input));
    alphabet = database->summary().alphabet;
  }
  HMMJIT_ASSIGN(std::unique_ptr<TargetSource> source,
                open_target_file(input, {.alphabet = *alphabet, .format = format}));
  std::vector<NamedFile> outputs;
  if (options.is_set("--output")) outputs.push_back({"-o", options.path("--output")});
  HMMJIT_TRY(check_outputs(with_standard_output(outputs, options), inputs));
  HMMJIT_ASSIGN(std::optional<TextOutput> file, create_file(options, "--output"));
  HMMJIT_ASSIGN(WantedByName wanted, find_parts(words, source));
  HMMJIT_TRY(for_each_block(*source, [&](const TargetBlock& block) -> Status {
    std::string text;
    ResidueCopies copies;
    for (std::size_t i = 0; i < block.size(); ++i) {
      const TargetView target = block[i];
      const auto [first, last] = wanted.equal_range(target.name);
      if (first == last) continue;
      copies.clear();
      HMMJIT_ASSIGN(const std::span<const Residue> residues, copies.of(block, i, *alphabet));
      for (Wanted& part : std::ranges::subrange(first, last) | std::views::values) {
        std::size_t from = part.from == 0 ? 1 : part.from;
        std::size_t to = part.to == 0 ? residues.size() : part.to;
        if (std::max(part.from, part.to) > residues.size())
          return fail(ErrorCode::kInput,
                      fmt::format("{} has {} residues; {}-{} is not in it", target.name,
                                  residues.size(), from, to),
                      input, fmt::format("ask for a part of 1-{}", residues.size()));
        const bool bottom = part.from > part.to;  // the strand, as in nhmmer's tables
        if (bottom && alphabet->type == AlphabetType::kAmino)
          return fail(ErrorCode::kInput, fmt::format("{}: a protein has one strand", part.word),
                      input, "name the smaller position first");
        if (bottom) std::swap(from, to);
        part.found = true;
        (text += '>') += target.name;
        if (part.from > 0) text += fmt::format("/{}-{}", part.from, part.to);
        if (!target.description.empty()) (text += ' ') += target.description;
        const auto top = residues.subspan(from - 1, to - from + 1);
        text += '\n';
        if (bottom)
          append_fasta(text, nucleotide::reverse_complement(top), *alphabet);
        else
          append_fasta(text, top, *alphabet);
      }
    }
    if (file) {
      file->write(text);
      return {};
    }
    std::fwrite(text.data(), 1, text.size(), stdout);
    return flush_standard_output();
  }));
  std::vector<std::string> missing;
  for (const Wanted& one : wanted | std::views::values) {
    if (!one.found) missing.push_back(one.word);
  }
  if (!missing.empty()) {
    const std::size_t count = missing.size();
    missing.resize(std::min<std::size_t>(count, 5));
    return fail(ErrorCode::kInput,
                fmt::format("{} of {} names not found: {}{}", count, wanted.size(),
                            fmt::join(missing, ", "), count > missing.size() ? ", ..." : ""),
                input, "names are the first words of the sequences' headers");
  }
  if (file) HMMJIT_TRY(file->commit());
  return 0;
}

Result<int> run_verify(const ParsedOptions& options) {
  const std::string path = find_sequence_file(options.arguments()[0]);
  const double begun = Trace::now();
  HMMJIT_ASSIGN(const auto database, TargetDatabase::open(path));
  HMMJIT_TRY(database->verify());
  if (!options.is_set("--quiet")) {
    const DatabaseSummary& s = database->summary();
    fmt::print("{}: whole; {} targets, {} residues, identity {:016x}, {:.2f} s\n", path, s.targets,
               s.residues, s.identity, Trace::now() - begun);
  }
  return 0;
}

}  // namespace

CommandSpec db_command() {
  constexpr OptionSpec threads{kPlain, "--cpu", "n n>0", "threads; default: all cores"};
  constexpr OptionSpec output{kPlain, "--output,-o", "f", "file to write"};
  constexpr OptionSpec format{kPlain, "--tformat", "s",
                              "assert this sequence format: no autodetection",
                              offering(kSequenceFormatNames)};
  constexpr OptionTraits kAlphabets = one_of("amino,dna,rna");
  CommandSpec out{"db",
                  "make, describe and check databases of targets; print sequences by name",
                  {},
                  {help_option()}};
  out.subcommands = {
      {"build",
       "make a database of sequence files",
       {{"targets", "sequence files in any format that search reads, or databases; - for stdin",
         true, true}},
       {{kPlain, "--output,-o", "f",
         "file to write; default: the first input's name without .gz or .zst, + .hjdb"},
        {kPlain, "--alphabet", "s=amino", "amino, dna or rna", kAlphabets},
        format,
        threads,
        {kPlain, "--quiet", "", "no summary line"}},
       run_build},
      {"join",
       "make one database of several, as if built from all their inputs",
       {{"databases", "database files, in order", true, true}},
       {output, threads, {kPlain, "--quiet", "", "no summary line"}},
       run_join},
      {"info",
       "describe a database from its header",
       {{"database", "database file"}},
       {kPrintJson},
       run_info},
      {"verify",
       "check every byte of a database; exit status 3 on damage",
       {{"database", "database file"}},
       {{kPlain, "--quiet", "", "say nothing when it is whole"}},
       run_verify},
      {"fetch",
       "print sequences of a database or sequence file as FASTA",
       {{"database", "database, or sequence file"},
        {"names",
         "names, or name/from-to for a part (from > to: of the bottom strand); printed in the "
         "order of the file",
         false, true}},
       {{kPlain, "--file,-f", "@f",
         "file with a name at the beginning of each line but those with #; - for stdin"},
        output,
        {kPlain, "--alphabet", "s=amino", "of a sequence file: amino, dna or rna", kAlphabets},
        format},
       run_fetch}};
  return out;
}

}  // namespace hmmjit::tools
