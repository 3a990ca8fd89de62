#include "search_inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "core/diagnostics.hpp"
#include "core/mutex.hpp"
#include "io/blast_database.hpp"
#include "io/byte_source.hpp"
#include "io/target_database.hpp"
#include "parts/model_index.hpp"
#include "run_context.hpp"
#include "search/reader_source.hpp"

namespace hmmjit::tools {
namespace {

// Protein targets. Warns if the first ones are plainly nucleotides.
class Proteins final : public ForwardingSource {
 public:
  Proteins(std::unique_ptr<TargetSource> source, std::string file, ModelFile::Warn warn)
      : ForwardingSource(std::move(source)), file_(std::move(file)), warn_(std::move(warn)) {}
  Result<bool> next(TargetBlock& block, std::size_t residues) override {
    auto more = source_->next(block, residues);
    if (!std::exchange(seen_, true) && looks_like_nucleotides(block))
      warn_(fmt::format("{} looks like DNA, and proteins are searched for; translate it first",
                        file_));
    return more;
  }
  std::shared_ptr<const ResidentTargets> resident() const override { return source_->resident(); }

 private:
  static bool looks_like_nucleotides(const TargetBlock& block) {
    constexpr std::uint64_t kEnough = 60, kMany = 4000;
    std::array<std::uint64_t, 256> counts{};
    std::uint64_t residues = 0, nucleotides = 0;
    for (std::size_t i = 0; i < block.size() && residues < kMany; ++i) {
      for (const Residue code : block[i].residues) ++counts[code];
      residues += static_cast<std::uint64_t>(block.length(i));
    }
    for (const unsigned char c : std::string_view("ACGTNU"))
      nucleotides += counts[amino_alphabet().digit[c]];
    return residues >= kEnough && nucleotides * 100 >= residues * 98;
  }

  std::string file_;
  ModelFile::Warn warn_;
  bool seen_ = false;
};

bool look_at(const std::string& path, struct stat& info) {
  return (path == "-" ? ::fstat(STDIN_FILENO, &info) : ::stat(path.c_str(), &info)) == 0;
}

bool warnings_dropped = false;

// "a, b, c and 12 more"
std::string listed(const std::vector<std::string>& names, std::size_t count) {
  return fmt::format("{}{}", fmt::join(names, ", "),
                     count > names.size() ? fmt::format(" and {} more", count - names.size()) : "");
}

}  // namespace

void drop_warnings() { warnings_dropped = true; }

void warn(const std::string& text) {
  if (warnings_dropped) return;
  static Mutex mutex;
  static std::set<std::string> said;
  const MutexLock lock(mutex);
  if (said.insert(text).second) diagnose("hmmjit: warning: {}\n", text);
}

Result<std::string> head_of(const std::string& path) {
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path));
  BufferedInput input(std::move(source));
  HMMJIT_ASSIGN(const std::string_view head, input.peek());
  return std::string(head);
}

bool is_regular_file(const std::string& path) {
  struct stat info {};
  return path != "-" && ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool is_pipe(const std::string& path) {
  struct stat info {};
  return look_at(path, info) && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

Status check_inputs(std::span<const NamedFile> inputs) {
  std::map<std::pair<dev_t, ino_t>, const NamedFile*> streams;
  for (const NamedFile& input : inputs) {
    struct stat info {};
    if (!look_at(input.path, info) || (input.path != "-" && !S_ISFIFO(info.st_mode))) continue;
    const auto [found, is_new] = streams.emplace(std::pair(info.st_dev, info.st_ino), &input);
    if (is_new) continue;
    if (input.option.starts_with('-') && found->second->option == input.option)
      return fail(ErrorCode::kUsage,
                  fmt::format("{} {} is a stream, which cannot be read for each target file",
                              input.option, input.path),
                  {}, "give a file");
    return fail(ErrorCode::kUsage,
                fmt::format("{} {} and {} {} cannot both come from one stream",
                            found->second->option, found->second->path, input.option, input.path),
                {}, "give one of them as a file");
  }
  return {};
}

std::string find_profile_database(const std::string& path) {
  const auto there = [](const std::string& name) {
    return ::access(name.c_str(), F_OK) == 0 || ::access((name + ".h3m").c_str(), F_OK) == 0;
  };
  const char* const folders = std::getenv("PFAMDB");
  if (folders == nullptr || path == "-" || there(path)) return path;
  for (const std::string& folder : split_list(folders, ':')) {
    const std::string candidate = fmt::format("{}/{}", folder, path);
    if (!folder.empty() && there(candidate)) return candidate;
  }
  return path;
}

std::vector<NamedFile> inputs_of(const SearchProgram& program, const ParsedOptions& options,
                                 const std::string& targets) {
  const std::string& models = options.arguments()[0];
  const std::string target_path = find_sequence_file(targets);
  std::vector<NamedFile> files;
  if (program.open_queries != nullptr && !program.long_targets) {
    files.push_back({"query file", models});
  } else {
    parts::add_profile_files(files, program.long_targets ? "query file" : "profile file",
                             program.by_sequence ? find_profile_database(models) : models);
  }
  files.push_back({"sequence file", target_path});
  for (const std::string& path : {models, target_path}) {
    if (!is_blast_database(path)) continue;
    for (const std::string_view suffix : kBlastSuffixes)
      files.push_back({"file of the BLAST database", path + std::string(suffix)});
  }
  for (const char* option : kInputOptions) {
    if (options.knows(option) && options.is_set(option))
      files.push_back({option, std::string(options.text(option))});
  }
  return files;
}

Result<HmmReader> ModelFile::open() {
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(path));
  if (path == "-") return reader;
  // The reader's name: a pressed database may replace the file.
  struct stat read {
  }, named{};
  if (::stat(reader.name().c_str(), &read) != 0 || !S_ISREG(read.st_mode)) return reader;
  if (reader.name() != path && ::stat(path.c_str(), &named) == 0 && named.st_mtime > read.st_mtime)
    warn(
        fmt::format("{0} is newer than {1}, which is read in its place; run hmmpress -f {0}, or "
                    "remove {0}.h3?",
                    path, reader.name()));
  if (reader.compression() == Compression::kNone)
    bytes_total = static_cast<std::uint64_t>(read.st_size);
  return reader;
}

Status ModelsToSearch::begin() {
  HMMJIT_ASSIGN(first_, read());
  if (first_) return {};
  if (skip_)
    return fail(ErrorCode::kInput, "no model of the file has the cutoffs asked for", reader_.name(),
                "search without --cut_*");
  return fail(ErrorCode::kInput, "no model in the file", reader_.name(), "give a profile HMM file");
}

Result<std::optional<Hmm>> ModelsToSearch::read() {
  constexpr std::size_t kNamed = 5;
  for (;;) {
    HMMJIT_ASSIGN(std::optional<Hmm> hmm, reader_.next());
    file_.bytes_read = reader_.offset();
    if (!hmm) {
      if (const std::size_t count = std::exchange(count_without_, 0); count > 0)
        file_.warn(fmt::format("{} no {} cutoffs: {}{}",
                               count == 1 ? fmt::format("model {} has", without_[0])
                                          : fmt::format("{} models have", count),
                               cutoff_name(thresholds_.cutoffs),
                               skip_ ? "not searched" : "searched with the default thresholds",
                               count == 1 ? "" : fmt::format(" ({})", listed(without_, count))));
      return hmm;
    }
    const bool asked = thresholds_.cutoffs != ModelCutoffs::kNone &&
                       (skip_ || thresholds_.missing == MissingCutoffs::kDefault);
    if (!asked || cutoff_of(*hmm, thresholds_)) return hmm;
    if (++count_without_ <= kNamed) without_.push_back(hmm->name);
    if (!skip_) return hmm;
  }
}

Status check_cutoffs(const ParsedOptions& options, const Thresholds& rules) {
  const std::string& path = options.arguments()[0];
  HMMJIT_ASSIGN(const MissingCutoffModels missing, models_without_cutoffs(path, rules));
  if (missing.without == 0) return {};
  return fail(ErrorCode::kInput,
              fmt::format("{} bit thresholds unavailable on {} of {} models: {}",
                          cutoff_name(rules.cutoffs), missing.without, missing.models,
                          listed(missing.names, missing.without)),
              path,
              fmt::format("{}search without --cut_*",
                          options.knows("--cut-missing")
                              ? "add --cut-missing skip or --cut-missing default, or "
                              : ""));
}

Result<double> count_models(const std::string& path, const Thresholds& rules, bool skip) {
  if (path == "-" || is_pipe(path))
    return fail(ErrorCode::kUsage, "the number of models in a pipe is not known before",
                "--as hmmscan", "add -Z with that number");
  if (skip) {
    HMMJIT_ASSIGN(const MissingCutoffModels found, models_without_cutoffs(path, rules));
    return static_cast<double>(found.models - found.without);
  }
  HMMJIT_ASSIGN(HmmReader reader, HmmReader::open(path));
  HMMJIT_ASSIGN(const std::size_t count, reader.count());
  return static_cast<double>(count);
}

Result<std::optional<SequenceFormat>> asserted_format(const ParsedOptions& options,
                                                      std::string_view option,
                                                      FileContent expected) {
  if (!options.knows(option) || !options.is_set(option)) return std::nullopt;
  HMMJIT_ASSIGN(const SequenceFormat format,
                parse_sequence_format(options.text(option), std::string(option), expected));
  return format;
}

Result<std::unique_ptr<TargetSource>> open_targets(const ParsedOptions& options,
                                                   const RunContext& context,
                                                   const std::string& file,
                                                   const SequenceFormatOptions& format) {
  std::unique_ptr<TargetSource> source;
  // A server reads its targets without an asserted format.
  if (context.request && !format.format) source = context.request->targets(file, format.alphabet);
  if (source == nullptr) {
    HMMJIT_ASSIGN(source, open_target_file(file, format));
  }
  // With nucleotides expected, the models are the mistake.
  if (format.alphabet.type == AlphabetType::kAmino && !options.knows("--watson"))
    source = std::make_unique<Proteins>(std::move(source), file, context.warn);
  if (options.is_set("--restrictdb_stkey") || options.is_set("--restrictdb_n")) {
    std::optional<std::uint64_t> count;
    if (options.is_set("--restrictdb_n"))
      count = static_cast<std::uint64_t>(options.integer("--restrictdb_n"));
    source = restrict_targets(std::move(source), format.alphabet,
                              options.path("--restrictdb_stkey"), count);
  }
  return source;
}

Status check_nucleotides(const std::string& file) {
  const std::string path = find_sequence_file(file);
  const auto database = is_target_database_file(path);
  if (!is_regular_file(path) || !database || *database) return {};
  HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path));
  BufferedInput input(std::move(source));
  HMMJIT_ASSIGN(std::string_view head, input.peek());
  const bool flat = head.starts_with("ID ") || head.starts_with("LOCUS ");
  if (!flat && !head.starts_with('>')) return {};
  HMMJIT_ASSIGN(const Alphabet* guess, guess_sequence_alphabet(input));
  if (guess != nullptr && guess->type != AlphabetType::kAmino) return {};
  return fail(ErrorCode::kInput,
              guess == nullptr ? "the first sequence does not tell whether this is DNA or RNA"
                               : "the targets are proteins, not DNA or RNA",
              file, guess == nullptr ? "add --dna or --rna" : "use hmmjit search or phmmer");
}

}  // namespace hmmjit::tools
