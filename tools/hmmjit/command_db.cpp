// `hmmjit db`: makes, describes and checks target databases (docs/database-format.md).
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "core/diagnostics.hpp"
#include "core/numbers.hpp"
#include "core/output_file.hpp"
#include "hmmjit/command_line.hpp"
#include "io/sequence_file.hpp"
#include "io/target_database.hpp"
#include "io/text_output.hpp"
#include "model/residue_copies.hpp"
#include "report/fasta.hpp"
#include "search/database_builder.hpp"
#include "search/host_filters.hpp"
#include "search/reader_source.hpp"

namespace hmmjit::tools {
namespace {

using Json = nlohmann::ordered_json;

struct DatabaseArguments {
  std::vector<std::string> targets;
  std::vector<std::string> names;
  std::string database, output, format, alphabet = "amino", name_file;
  int threads = 0;
  bool json = false, quiet = false;
};

int report(const Error& error) { return report_failure("db", error); }

// Two readers of one pipe would share its bytes.
bool is_regular_file(const std::string& path) {
  struct stat info {};
  return path != "-" && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

Result<DatabaseSummary> build(const DatabaseArguments& arguments, const std::string& output) {
  const Alphabet& alphabet = arguments.alphabet == "dna"   ? dna_alphabet()
                             : arguments.alphabet == "rna" ? rna_alphabet()
                                                           : amino_alphabet();
  SequenceFormatOptions options{.alphabet = alphabet};
  if (!arguments.format.empty()) {
    HMMJIT_ASSIGN(options.format, parse_sequence_format(arguments.format, "--tformat"));
  }
  if (std::ranges::count(arguments.targets, "-") > 1)
    return fail(ErrorCode::kUsage, "standard input is named more than once");
  std::vector<DatabaseInput> inputs;
  for (const std::string& path : arguments.targets) {
    inputs.push_back({path == "-" ? std::string("standard input") : path,
                      [&options, &path] { return open_target_file(path, options); },
                      is_regular_file(find_sequence_file(path))});
  }
  return build_database(inputs, alphabet, output, fmt::format("hmmjit {}", HMMJIT_VERSION),
                        arguments.threads);
}

// Beside the first input, its name without what says that it is compressed.
Result<std::string> default_output(const DatabaseArguments& arguments) {
  std::string name = arguments.targets.front();
  if (name == "-")
    return fail(ErrorCode::kUsage, "no name for the database of standard input", {}, "add -o FILE");
  for (const std::string_view suffix : {".gz", ".zst"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - suffix.size());
  }
  return name + ".hjdb";
}

int run_build(const DatabaseArguments& arguments) {
  std::string output = arguments.output;
  if (output.empty()) {
    auto name = default_output(arguments);
    if (!name) return report(name.error());
    output = *std::move(name);
  }
  std::vector<NamedFile> inputs;
  for (const std::string& path : arguments.targets)
    inputs.push_back({"sequence file", find_sequence_file(path)});
  const NamedFile outputs[] = {{"-o", output}};
  if (const Status apart = check_outputs(outputs, inputs); !apart) return report(apart.error());
  const double begun = now_seconds();
  const auto summary = build(arguments, output);
  if (!summary) return report(summary.error());
  if (!arguments.quiet) {
    const double seconds = now_seconds() - begun;
    fmt::print("{}: {} targets, {} residues, {} bytes, in {:.2f} s ({:.0f} M residues/s)\n", output,
               summary->targets, summary->residues, summary->file_bytes, seconds,
               static_cast<double>(summary->residues) / 1e6 / std::max(seconds, 1e-9));
  }
  return 0;
}

std::vector<std::pair<std::string, std::string>> about_lines(std::string_view about) {
  std::vector<std::pair<std::string, std::string>> lines;
  while (!about.empty()) {
    const std::size_t end = std::min(about.find('\n'), about.size());
    const std::string_view line = about.substr(0, end);
    const std::size_t blank = std::min(line.find(' '), line.size());
    lines.emplace_back(line.substr(0, blank), line.substr(std::min(blank + 1, line.size())));
    about.remove_prefix(std::min(end + 1, about.size()));
  }
  return lines;
}

int run_info(const DatabaseArguments& arguments) {
  const auto database = TargetDatabase::open(arguments.database);
  if (!database) return report(database.error());
  const TargetDatabase& db = **database;
  const DatabaseSummary& s = db.summary();
  const Result<std::uint32_t> median = s.targets > 0 ? db.length_at_rank(s.targets / 2) : 0u;
  if (!median) return report(median.error());
  const Result<std::string> about = db.about();
  if (!about) return report(about.error());
  const double per_residue =
      s.residues > 0 ? static_cast<double>(s.file_bytes) / static_cast<double>(s.residues) : 0.0;
  if (arguments.json) {
    Json json;
    json["file"] = arguments.database;
    json["format_version"] = s.version;
    json["identity"] = fmt::format("{:016x}", s.identity);
    json["alphabet"] = std::string(s.alphabet->name);
    json["targets"] = s.targets;
    json["residues"] = s.residues;
    json["longest"] = s.longest;
    json["median"] = *median;
    json["shortest"] = s.shortest;
    json["file_bytes"] = s.file_bytes;
    json["bytes_per_residue"] = per_residue;
    for (const DatabaseSection& section : s.sections) {
      json["sections"].push_back({{"name", std::string(section.name)},
                                  {"offset", section.offset},
                                  {"bytes", section.bytes},
                                  {"checksum", fmt::format("{:016x}", section.checksum)}});
    }
    Json sources = Json::array();
    for (const auto& [key, value] : about_lines(*about)) {
      if (key == "source") {
        sources.push_back(value);
      } else {
        json[key] = value;
      }
    }
    json["sources"] = sources;
    fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  fmt::print("file          {}\n", arguments.database);
  fmt::print("format        hmmjit target database {}, {} alphabet\n", s.version, s.alphabet->name);
  fmt::print("identity      {:016x}\n", s.identity);
  fmt::print("targets       {}\n", s.targets);
  fmt::print("residues      {}\n", s.residues);
  fmt::print("lengths       {} to {}, median {}\n", s.shortest, s.longest, *median);
  fmt::print("bytes         {} ({:.3f} per residue)\n", s.file_bytes, per_residue);
  for (const auto& [key, value] : about_lines(*about)) fmt::print("{:13} {}\n", key, value);
  for (const DatabaseSection& section : s.sections)
    fmt::print("section       {:8} {:>14} bytes at {:>14}, checksum {:016x}\n", section.name,
               section.bytes, section.offset, section.checksum);
  return 0;
}

// A database of databases: nothing is parsed again.
int run_join(DatabaseArguments arguments) {
  for (const std::string& path : arguments.targets) {
    const auto database = TargetDatabase::open(find_sequence_file(path));
    if (!database) return report(database.error());
    const AlphabetType type = (*database)->summary().alphabet->type;
    arguments.alphabet = type == AlphabetType::kDna   ? "dna"
                         : type == AlphabetType::kRna ? "rna"
                                                      : "amino";
  }
  return run_build(arguments);
}

// What is asked for of one target: "name" all of it, "name/from-to" a part.
struct Wanted {
  std::size_t from = 0, to = 0;  // 1-based and inclusive; 0: all
  bool found = false;
};

// Names on the command line and, one a line, of a file.
Result<std::map<std::string, std::vector<Wanted>, std::less<>>> wanted_names(
    const DatabaseArguments& arguments) {
  std::vector<std::string> names = arguments.names;
  if (!arguments.name_file.empty()) {
    HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(arguments.name_file));
    BufferedInput input(std::move(source));
    std::string_view line;
    for (;;) {
      HMMJIT_ASSIGN(const bool more, input.line(&line));
      if (!more) break;
      const std::string_view word = line.substr(0, line.find_first_of(" \t\r"));
      if (!word.empty() && !word.starts_with('#')) names.emplace_back(word);
    }
  }
  if (names.empty())
    return fail(ErrorCode::kUsage, "no name of a sequence is given", {},
                "give names, or a file of them with -f");
  std::map<std::string, std::vector<Wanted>, std::less<>> wanted;
  for (const std::string& name : names) {
    const std::size_t slash = name.rfind('/');
    const std::size_t dash = name.find('-', std::min(slash, name.size()));
    if (slash != name.npos && dash != name.npos) {
      const auto from = parse_int(std::string_view(name).substr(slash + 1, dash - slash - 1));
      const auto to = parse_int(std::string_view(name).substr(dash + 1));
      if (from && to && *from > 0 && *to >= *from) {
        wanted[name.substr(0, slash)].push_back(
            {static_cast<std::size_t>(*from), static_cast<std::size_t>(*to)});
        continue;
      }
    }
    wanted[name].push_back({});
  }
  return wanted;
}

Status fetch(const DatabaseArguments& arguments) {
  HMMJIT_ASSIGN(auto wanted, wanted_names(arguments));
  const Alphabet* alphabet = arguments.alphabet == "dna"   ? &dna_alphabet()
                             : arguments.alphabet == "rna" ? &rna_alphabet()
                                                           : &amino_alphabet();
  if (const auto database = TargetDatabase::open(arguments.database))
    alphabet = (*database)->summary().alphabet;
  HMMJIT_ASSIGN(std::unique_ptr<TargetSource> source,
                open_target_file(arguments.database, {.alphabet = *alphabet}));
  const NamedFile outputs[] = {{"-o", arguments.output}},
                  inputs[] = {{"sequence file", arguments.database}};
  if (!arguments.output.empty()) HMMJIT_TRY(check_outputs(outputs, inputs));
  std::optional<TextOutput> file;
  if (!arguments.output.empty()) {
    HMMJIT_ASSIGN(file, TextOutput::create(arguments.output));
  }
  constexpr std::size_t kBlockResidues = std::size_t{1} << 20;
  for (;;) {
    TargetBlock block;
    HMMJIT_ASSIGN(const bool more, source->next(block, kBlockResidues));
    if (!more) break;
    std::string text;
    ResidueCopies copies;
    for (std::size_t i = 0; i < block.size(); ++i) {
      const TargetView target = block[i];
      const auto found = wanted.find(target.name);
      if (found == wanted.end()) continue;
      copies.clear();
      HMMJIT_ASSIGN(const std::span<const Residue> residues, copies.of(block, i, *alphabet));
      for (Wanted& part : found->second) {
        const std::size_t from = part.from == 0 ? 1 : part.from;
        const std::size_t to = part.to == 0 ? residues.size() : part.to;
        if (to > residues.size())
          return fail(ErrorCode::kInput,
                      fmt::format("{} has {} residues; {}-{} is not in it", target.name,
                                  residues.size(), from, to),
                      arguments.database);
        part.found = true;
        ((text += '>') += target.name);
        if (part.from > 0) fmt::format_to(std::back_inserter(text), "/{}-{}", from, to);
        if (!target.description.empty()) (text += ' ') += target.description;
        append_fasta(text += '\n', residues.subspan(from - 1, to - from + 1), *alphabet);
      }
    }
    if (file) {
      file->write(text);
    } else if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
      if (standard_output_unread()) return {};  // `| head`: the program ends as others do there
      return fail(ErrorCode::kOutput, "cannot write", "standard output");
    }
  }
  std::vector<std::string> missing;
  for (const auto& [name, parts] : wanted) {
    if (!parts.front().found) missing.push_back(name);
  }
  if (!missing.empty()) {
    const std::size_t count = missing.size();
    missing.resize(std::min<std::size_t>(count, 5));
    return fail(ErrorCode::kInput,
                fmt::format("{} of {} names not found: {}{}", count, wanted.size(),
                            fmt::join(missing, ", "), count > missing.size() ? ", ..." : ""),
                arguments.database, "names are the first words of the sequences' headers");
  }
  return file ? file->commit() : Status{};
}

int run_verify(const DatabaseArguments& arguments) {
  const double begun = now_seconds();
  const auto database = TargetDatabase::open(arguments.database);
  if (!database) return report(database.error());
  if (const Status status = (*database)->verify(); !status) return report(status.error());
  if (!arguments.quiet) {
    const DatabaseSummary& s = (*database)->summary();
    fmt::print("{}: whole; {} targets, {} residues, identity {:016x}, {:.2f} s\n",
               arguments.database, s.targets, s.residues, s.identity, now_seconds() - begun);
  }
  return 0;
}

}  // namespace

int command_db(const std::vector<std::string>& arguments) {
  DatabaseArguments given;
  CLI::App app{
      "Makes, describes and checks target databases, digitised, memory-mapped, ready for "
      "'hmmjit search' in milliseconds; prints sequences by name.",
      "hmmjit db"};
  app.require_subcommand(1);
  CLI::App* build_command = app.add_subcommand("build", "make a database of sequence files");
  build_command
      ->add_option("targets", given.targets,
                   "sequence files in any format that search reads, or databases; - for stdin")
      ->required();
  build_command->add_option("-o,--output", given.output,
                            "file to write [first input's name + .hjdb]");
  build_command->add_option("--alphabet", given.alphabet, "amino, dna or rna [amino]")
      ->check(CLI::IsMember({"amino", "dna", "rna"}));
  build_command->add_option("--tformat", given.format,
                            "assert this sequence format: no autodetection");
  const auto add_threads = [&given](CLI::App* command) {
    command->add_option("--cpu", given.threads, "threads, 1 or more [all cores]")
        ->check(CLI::Range(1, 1 << 16));
  };
  add_threads(build_command);
  build_command->add_flag("--quiet", given.quiet, "no summary line");
  CLI::App* join_command =
      app.add_subcommand("join", "make one database of several, as if built from all their inputs");
  join_command->add_option("databases", given.targets, "database files, in order")->required();
  join_command->add_option("-o,--output", given.output, "file to write")->required();
  add_threads(join_command);
  join_command->add_flag("--quiet", given.quiet, "no summary line");
  CLI::App* info_command = app.add_subcommand("info", "describe a database from its header");
  info_command->add_option("database", given.database, "database file")->required();
  info_command->add_flag("--json", given.json, "machine-readable output");
  CLI::App* verify_command =
      app.add_subcommand("verify", "check every byte of a database; exit status 3 on damage");
  verify_command->add_option("database", given.database, "database file")->required();
  verify_command->add_flag("--quiet", given.quiet, "say nothing when it is whole");
  CLI::App* fetch_command =
      app.add_subcommand("fetch", "print sequences of a database or sequence file as FASTA");
  fetch_command->add_option("database", given.database, "database, or sequence file")->required();
  fetch_command->add_option("names", given.names,
                            "names, or name/from-to for a part; printed in the order of the file");
  fetch_command->add_option("-f,--file", given.name_file,
                            "file with a name at the beginning of each line; - for stdin");
  fetch_command->add_option("-o,--output", given.output, "file to write [standard output]");
  fetch_command
      ->add_option("--alphabet", given.alphabet, "of a sequence file: amino, dna or rna [amino]")
      ->check(CLI::IsMember({"amino", "dna", "rna"}));
  if (const auto status = parse_command_line(app, arguments)) return *status;
  if (*fetch_command) {
    const Status status = fetch(given);
    return status ? 0 : report(status.error());
  }
  if (*build_command) return run_build(given);
  if (*join_command) return run_join(given);
  return *info_command ? run_info(given) : run_verify(given);
}

}  // namespace hmmjit::tools
