#include "server_query.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <ranges>
#include <system_error>

#include "command.hpp"
#include "core/folder.hpp"
#include "core/memory.hpp"
#include "core/spool_file.hpp"
#include "io/byte_source.hpp"
#include "io/hmm_file.hpp"
#include "io/text_output.hpp"
#include "query_sequences.hpp"
#include "search_inputs.hpp"
#include "search_program.hpp"

namespace hmmjit::tools {
namespace {

constexpr std::string_view kQueryWord = "{query}";

std::string version_of(const struct stat& info) {
  return fmt::format("{} {} {} {} {}", info.st_dev, info.st_ino, info.st_mtim.tv_sec,
                     info.st_mtim.tv_nsec, info.st_size);
}

Result<bool> holds_profiles(const std::string& path) {
  HMMJIT_ASSIGN(const bool targets, is_target_database_file(path));
  return !targets && HmmReader::open(path).has_value();
}

// A compressed input can expand to a thousand times the size of the request.
Status check_sizes(const std::string& folder, std::uint64_t most) {
  HMMJIT_ASSIGN(const std::vector<std::string> names, names_in_folder(folder));
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    struct stat info {};
    if (::lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) continue;
    HMMJIT_ASSIGN(std::unique_ptr<ByteSource> source, open_byte_source(path));
    BufferedInput input(std::move(source));
    for (;;) {
      HMMJIT_ASSIGN(const std::string_view piece, input.peek());
      if (piece.empty()) break;
      input.skip(piece.size());
      if (input.offset() > most)
        return fail(ErrorCode::kInput, "too large when decompressed", path,
                    "raise the server's --max-request");
    }
  }
  return {};
}

// The search checks its bounds between models, not during the building of one. The program reports
// errors of the file.
Status check_lengths(const SearchProgram& program, const ParsedOptions& options,
                     std::size_t longest) {
  if (program.open_queries == nullptr) return {};
  const auto sequences = QuerySequences::open(options, options.arguments()[0]);
  while (sequences) {
    const auto sequence = (*sequences)->next();
    if (!sequence || !*sequence) break;
    const std::size_t length = (*sequence)->residues.size();
    if (length > longest)
      return fail(ErrorCode::kInput, fmt::format("a query of {} residues", length),
                  std::string((*sequence)->name),
                  fmt::format("the server takes {}; see its --longest-query", longest));
  }
  return {};
}

}  // namespace

bool names_rounds(std::string_view option) { return option == "--chkhmm" || option == "--chkali"; }

Result<std::shared_ptr<const Database>> Database::open(const std::string& path,
                                                       std::uint64_t memory) {
  auto database = std::make_shared<Database>();
  database->path = path;
  std::string file = find_sequence_file(path);
  // The pressed form replaces a file of profiles.
  if (const auto models = HmmReader::open(path); models && models->name() != path)
    file = models->name();
  struct stat info {};
  database->descriptor = Descriptor(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  const int descriptor = database->descriptor.get();
  const bool regular = descriptor >= 0 && ::fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
  database->version = version_of(info);
  database->place =
      regular ? fmt::format("/proc/self/fd/{}", descriptor) : file;  // BLAST: a prefix
  if (regular) {
    HMMJIT_ASSIGN(const bool profiles, holds_profiles(database->place));
    if (profiles) {
      HMMJIT_ASSIGN(database->models,
                    load_models(file, memory > 0 ? memory : available_memory() / 4));
      return database;
    }
  }
  HMMJIT_ASSIGN(database->targets, keep_target_file(file, {.alphabet = amino_alphabet()}, memory));
  return database;
}

bool Database::replaced() const {
  struct stat info {};
  std::string file = find_sequence_file(path);
  if (const std::string pressed = path + ".h3m";
      targets == nullptr && ::access(pressed.c_str(), F_OK) == 0)
    file = pressed;
  return ::stat(file.c_str(), &info) != 0 || (S_ISREG(info.st_mode) && version_of(info) != version);
}

std::uint64_t Database::bytes() const {
  if (targets != nullptr) return targets->bytes();
  std::uint64_t sum = 0;
  if (models != nullptr) {
    for (const auto& model : *models) sum += model->bytes();
  }
  return sum;
}

Result<TemporaryFolder> TemporaryFolder::create(const std::string& parent) {
  TemporaryFolder folder;
  std::string name = parent + "/hmmjit-serve-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr)
    return fail(ErrorCode::kOutput, fmt::format("cannot make a folder: {}", std::strerror(errno)),
                parent, "set TMPDIR to a folder with room");
  folder.path_ = std::move(name);
  return folder;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Result<std::string> Query::input_path(std::string_view input, std::string_view ending) const {
  const bool known =
      input == "query" || std::ranges::find(kInputOptions, input) != std::end(kInputOptions);
  const auto& pressed = kPressedSuffixes;
  if (!known || !(ending.empty() || std::ranges::find(pressed, ending) != std::end(pressed)))
    return fail(ErrorCode::kUsage, "no such input", fmt::format("{}{}", input, ending));
  return fmt::format("{}/{}{}", folder(), input, ending);
}

bool Query::prepare(const std::string& name, const std::vector<std::string>& words,
                    std::string client_folder, const Databases& databases) {
  const Status status = make_options(name, words, std::move(client_folder), databases);
  if (!status) end_with(status.error());
  return status.has_value();
}

Status Query::make_options(const std::string& name, const std::vector<std::string>& words,
                           std::string client_folder, const Databases& databases) {
  auto spec = find_command(name);
  if (!spec || spec->program == nullptr || !served(*spec->program))
    return fail(ErrorCode::kUsage, fmt::format("no query \"{}\"", name));
  command_ = *std::move(spec);
  client_folder_ = std::move(client_folder);
  // The server's environment must not decide for its clients.
  HMMJIT_ASSIGN(const ParsedOptions given, parse_options(command_->options, words, false));
  HMMJIT_TRY(check_served(given));
  if (given.arguments().size() != 2 || given.is_set("-h"))
    return fail(ErrorCode::kUsage, "a query takes a file of queries and a database");
  const SearchProgram& program = *command_->program;
  const std::size_t of_database = program.by_sequence ? 0 : 1;
  const std::string& wanted = given.arguments()[of_database];
  const auto found = databases.find(wanted);
  if (found == databases.end())
    return fail(ErrorCode::kInput, "the server has no such database", wanted,
                fmt::format("it has {}", fmt::join(std::views::keys(databases), ", ")));
  database_ = found->second;
  if (program.by_sequence != (database_->targets == nullptr))
    return fail(ErrorCode::kInput,
                program.by_sequence ? "these are sequences" : "these are profiles", wanted,
                program.by_sequence ? "name a database of profiles" : "name one of sequences");

  std::vector<std::string> arguments = {fmt::format("{}/query", folder()), database_->place};
  if (program.by_sequence) std::ranges::reverse(arguments);
  shown_ = {{arguments[0], given.arguments()[0]}, {arguments[1], given.arguments()[1]}};
  std::vector<NamedFile> files;
  for (std::size_t i = 0; i < command_->options.size(); ++i) {
    const OptionSpec& option = command_->options[i];
    if (option.absent || !given.is_set(option.name)) continue;
    const std::string value(given.text(option.name));
    const bool rounds = names_rounds(option.name);
    if (std::ranges::find(kInputOptions, option.name) != std::end(kInputOptions)) {
      files.push_back({std::string(option.name), fmt::format("{}/{}", folder(), option.name)});
    } else if (option.type == ValueType::kFile || rounds) {
      const std::string place = fmt::format("{}/{}.out", folder(), i);
      if (::mkdir(place.c_str(), 0700) != 0)
        return fail(ErrorCode::kOutput, std::strerror(errno), place);
      const bool by_query = value.find(kQueryWord) != value.npos;
      files.push_back({std::string(option.name),
                       rounds ? place + "/f"
                              : fmt::format("{}/f{}{}", place, by_query ? kQueryWord : "",
                                            compressed_suffix(value))});
    } else {
      continue;
    }
    shown_.emplace_back(files.back().path, value);
  }
  options_ = given.on_files(std::move(arguments), files);
  report_ = Descriptor(open_unnamed_file(folder()));
  if (!begun()) return fail(ErrorCode::kOutput, std::strerror(errno), folder());
  return {};
}

std::string Query::as_shown(std::string text) const {
  for (const auto& [place, name] : shown_) text = replaced(text, place, name);
  return text;
}

std::string Query::report() const { return fmt::format("/proc/self/fd/{}", report_.get()); }

void Query::say(std::string_view text) {
  std::string shown = as_shown(std::string(text));
  const std::lock_guard lock(mutex_);
  messages_ += shown;
}

std::string Query::take_messages() {
  const std::lock_guard lock(mutex_);
  return std::exchange(messages_, {});
}

std::string Query::command() const { return command_ ? std::string(command_->name) : ""; }

void Query::run(const QueryBounds& bounds, int running) {
  const auto begun = std::chrono::steady_clock::now();
  std::optional<Cancellation::Time> deadline;
  if (bounds.time.count() > 0) deadline = begun + bounds.time;
  std::optional<Cancellation> limit;
  RunContext context;
  context.say = [this](std::string_view text) { say(text); };
  context.warn = [this](const std::string& text) {
    if (options_->is_set("--hmmer-banner") && !options_->is_set("--verbose")) return;
    {
      const std::lock_guard lock(mutex_);
      if (!warned_.insert(text).second) return;
    }
    say(fmt::format("hmmjit: warning: {}\n", text));
  };
  context.folder = client_folder_;
  context.report = report_.get();
  context.request.emplace(RunContext::Request{
      nullptr, progress_, bounds.threads, running, bounds.memory,
      [this](const std::string& path, const Alphabet& alphabet) -> std::unique_ptr<TargetSource> {
        const bool kept = path == database_->place && alphabet.type == AlphabetType::kAmino;
        return kept && database_->targets ? database_->targets->open() : nullptr;
      },
      database_->models, bounds.session});
  Status status;
  try {
    limit.emplace(&cancellation_, deadline);
    context.request->cancellation = &*limit;
    status = check_sizes(folder(), bounds.input);
    if (status) status = check_lengths(*command_->program, *options_, bounds.longest_query);
    if (status) status = run_request(*command_->program, *options_, context);
  } catch (const std::bad_alloc&) {
    status = fail(ErrorCode::kResources, "out of memory", {}, "use fewer threads or a lower --mem");
  } catch (const std::exception& error) {
    status = fail(ErrorCode::kResources, error.what());
  }
  if (!status && status.error().code == ErrorCode::kInterrupted && !cancelled())
    status = fail(ErrorCode::kResources,
                  fmt::format("the query took longer than {} s", bounds.time.count()), {},
                  "ask for less, or raise the server's --time-limit");
  // The client writes its own outputs.
  if (!status && status.error().code == ErrorCode::kOutput)
    status = fail(ErrorCode::kResources, "the server " + status.error().message, {},
                  "its TMPDIR needs room for the outputs of all queries");
  seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (!status) end_with(status.error());
}

void Query::end_with(const Error& error) {
  exit_ = static_cast<int>(error.code);
  say(command_ ? failure_text(*command_, fmt::format("hmmjit {}", command_->name), error)
               : error.to_string() + "\n");
}

std::vector<Query::Output> Query::outputs() const {
  std::vector<Output> all;
  if (!options_) return all;
  for (std::size_t i = 0; i < command_->options.size(); ++i) {
    const std::string option(command_->options[i].name);
    if (!options_->given().is_set(option)) continue;
    const std::string place = fmt::format("{}/{}.out", folder(), i);
    const auto names = names_in_folder(place);
    for (const std::string& name : names ? *names : std::vector<std::string>()) {
      const std::string_view value = options_->given().text(option);
      std::string_view part = std::string_view(name).substr(1);  // 'f'
      if (!names_rounds(option)) part.remove_suffix(compressed_suffix(value).size());
      all.push_back({option, std::string(part), fmt::format("{}/{}", place, name)});
    }
  }
  return all;
}

}  // namespace hmmjit::tools
