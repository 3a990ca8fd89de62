#include "part_search.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "core/diagnostics.hpp"
#include "io/sequence_file.hpp"
#include "io/target_database.hpp"
#include "output_names.hpp"
#include "parts/part_reader.hpp"
#include "parts/part_writer.hpp"
#include "progress.hpp"
#include "run_text.hpp"
#include "search_options.hpp"

namespace hmmjit::tools {
namespace {

using parts::PartFile;
using parts::PartPlace;
using parts::PartPtr;
using parts::PartSettings;

// Options that do not affect results, only their destination or the use of the machine.
constexpr std::array kNotRecorded = {
    "-o",      "-A",     "--tblout",    "--domtblout",  "--pfamtblout", "--tsv",    "--target-tsv", "--json",
    "--a3m",   "--cpu",  "--mem",       "--device",     "--vram",       "--verify", "--stats",
    "--trace", "--part", "--part-file", "--model-part", "--quiet",      "--verbose",
    "--hmmer-banner"};

Result<std::shared_ptr<const TargetDatabase>> open_database(const std::string& name) {
  const std::string path = find_sequence_file(name);
  HMMJIT_ASSIGN(const bool is_database, is_target_database_file(path));
  struct stat info {};
  if (name == "-" || (::stat(path.c_str(), &info) == 0 && !is_database))
    return fail(ErrorCode::kUsage,
                "--part needs a target database, which knows how many targets the whole has", name,
                "make one with hmmjit db build");
  return TargetDatabase::open(path);
}

parts::PartOrigin make_origin(const PartSearch& work) {
  parts::PartOrigin origin;
  origin.program = fmt::format("hmmjit search (hmmjit {})", HMMJIT_VERSION);
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) origin.host = host.data();
  origin.device = host_filters_name();
  origin.date = date_text();
  origin.model_file = work.models.path;
  origin.target_file = work.options.arguments()[1];
  for (const OptionSpec& option : search_option_table()) {
    if (!work.options.is_set(option.name)) continue;
    if (std::ranges::find(kNotRecorded, option.name) != kNotRecorded.end()) continue;
    origin.options.emplace_back(option.name, option.type == ValueType::kNone
                                                 ? std::string_view()
                                                 : work.options.text(option.name));
  }
  return origin;
}

Result<HmmReader> open_models(const PartSearch& work, const PartPlace& place) {
  if (!work.index) return work.models.open();
  return parts::open_models_of(work.models.path, *work.index, place.first_model, place.last_model);
}

// Fails unless the models of `part` equal those of the file.
Status check_models(const PartSearch& work, const PartPlace& place, const PartPtr& part) {
  const auto other = [&](const std::string& what) {
    return fail(ErrorCode::kInput, "the file holds a part of a search with other models: " + what,
                part->path(), "give another --part-file, or remove the file");
  };
  std::optional<HmmReader> reader;
  if (part->place().first_model < part->place().last_model) {
    HMMJIT_ASSIGN(reader, open_models(work, place));
  }
  parts::PartCursor cursor(part);
  parts::ModelHead head;
  for (;;) {
    std::optional<Hmm> hmm;
    if (reader) {
      HMMJIT_ASSIGN(hmm, reader->next());
    }
    HMMJIT_ASSIGN(const bool more, cursor.next_model(head));
    if (!hmm && !more) return {};
    if (!hmm) return other("model " + head.name + " is not in " + work.models.path);
    if (!more) return other("model " + hmm->name + " is not in it");
    if (parts::model_digest(*hmm) != head.model)
      return other("model " + head.name + " is another one in " + work.models.path);
  }
}

// True if the file holds this part; false if it is missing or damaged.
Result<bool> is_complete(const PartSearch& work, const PartSettings& settings,
                         const PartPlace& place, const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  if (!S_ISREG(info.st_mode))
    return fail(ErrorCode::kOutput, "not a regular file", path, "give --part-file another name");
  auto part = PartFile::open(path);
  Status whole;
  if (part) whole = (*part)->verify();
  if (!part) whole = std::unexpected(part.error());
  if (!whole) {
    if (!PartFile::is_damage(whole.error())) return std::unexpected(whole.error());
    diagnose("hmmjit search: warning: {}; it is searched again\n", whole.error().to_string());
    return false;
  }
  const PartFile& found = **part;
  const auto other = [&](const std::string& what) {
    return fail(ErrorCode::kInput, "the file holds a part of another search: " + what, path,
                "give another --part-file, or remove the file");
  };
  if (const auto difference = parts::first_difference(found.settings_text(), settings.text()))
    return other(fmt::format("{} is {}, but {} now", difference->name, difference->value,
                             difference->other));
  if (!(found.place().part == place.part) || !(found.place().model_part == place.model_part))
    return other(fmt::format("part {} for model part {}", found.place().part.text(),
                             found.place().model_part.text()));
  HMMJIT_TRY(check_models(work, place, *part));
  return true;
}

Status search_part(PartSearch& work, const PartSettings& settings, const PartPlace& place,
                   std::shared_ptr<const TargetDatabase> database, const std::string& path,
                   bool& repeatable) {
  std::optional<ModelsToSearch> models;
  // A share of few models may have none.
  if (!work.index || place.first_model < place.last_model) {
    HMMJIT_ASSIGN(HmmReader reader, open_models(work, place));
    models.emplace(std::move(reader), work.search.thresholds, false, work.models);
    HMMJIT_TRY(models->begin());
    const Alphabet& alphabet = *models->first().alphabet;
    if (!same_codes(alphabet, alphabet_of(settings.alphabet)))
      return fail(ErrorCode::kInput,
                  fmt::format("the target database holds {} sequences, not {}",
                              alphabet_of(settings.alphabet).name, alphabet.name),
                  work.options.arguments()[1], "search the models and targets of one alphabet");
  }
  const ModelSource source = [&]() -> Result<std::optional<Query>> {
    if (!models) return std::nullopt;
    return models->next();
  };
  SearchProgress progress;
  std::optional<ProgressDisplay> display;
  if (!work.options.is_set("--quiet"))
    display.emplace(progress, work.models.bytes_read, work.models.bytes_total);
  const auto statistics = parts::search_part(work.session, work.search, source, std::move(database),
                                             {path, settings, place, make_origin(work)}, progress);
  display.reset();
  repeatable =
      !statistics && work.session.leave_devices(work.search, progress, statistics.error(), true);
  if (!statistics) return std::unexpected(statistics.error());
  return work.on_searched(*statistics);
}

}  // namespace

std::string PartRequest::path(std::uint32_t number) const {
  return replaced(file, "{}", std::to_string(number));
}

Result<std::optional<PartRequest>> make_part_request(const ParsedOptions& options) {
  if (!options.is_set("--part")) {
    if (const char* other = options.first_given({"--part-file", "--model-part"}))
      return fail(ErrorCode::kUsage, std::string(other) + " is of use with --part only", {},
                  "add --part I/N");
    return std::nullopt;
  }
  PartRequest request;
  HMMJIT_ASSIGN(request.part, parts::parse_share(options.text("--part"), "--part"));
  if (options.is_set("--model-part")) {
    HMMJIT_ASSIGN(request.model_part,
                  parts::parse_share(options.text("--model-part"), "--model-part"));
  }
  if (!options.is_set("--part-file"))
    return fail(ErrorCode::kUsage, "--part needs --part-file, the file that the part becomes");
  request.file = options.text("--part-file");
  if (request.part.first != request.part.last && request.file.find("{}") == request.file.npos)
    return fail(ErrorCode::kUsage, "several parts need several files", "--part-file",
                "write {} where the number of the part belongs");
  for (const NamedFile& output : output_files(search_option_table(), options)) {
    if (output.option == "--stats" || output.option == "--trace") continue;
    const bool merged = std::ranges::find(kNotRecorded, output.option) != kNotRecorded.end();
    return fail(ErrorCode::kUsage, output.option + " does not go with --part", {},
                merged ? "give it to hmmjit merge" : "");
  }
  if (const char* other = options.first_given({"--restrictdb_stkey", "--restrictdb_n", "--tformat",
                                               "--resolve-overlaps", "--clans", "--cut-missing"}))
    return fail(ErrorCode::kUsage, std::string(other) + " does not go with --part");
  if (const char* output = options.first_given({"--stats", "--trace"});
      output != nullptr && request.part.first != request.part.last)
    return fail(ErrorCode::kUsage, std::string(output) + " is of a single part");
  if (options.integer("--seed") == 0)
    return fail(ErrorCode::kUsage,
                "--seed 0 does not go with --part: random numbers would depend on the part", {},
                "give a seed, or leave it out");
  return request;
}

Status search_parts(PartSearch& work, bool& repeatable) {
  HMMJIT_ASSIGN(const std::shared_ptr<const TargetDatabase> database,
                open_database(work.options.arguments()[1]));
  PartSettings settings = parts::settings_of(work.search, database->summary());
  settings.scan = work.options.text("--as") == "hmmscan";
  PartPlace models;
  models.model_part = work.request.model_part;
  if (models.model_part.of > 1) {
    HMMJIT_ASSIGN(work.index, parts::read_model_index(work.models.path));
    std::tie(models.first_model, models.last_model) = work.index->models_of(models.model_part);
    models.models = work.index->models();
  }
  for (std::uint32_t number = work.request.part.first; number <= work.request.part.last; ++number) {
    const std::string path = work.request.path(number);
    PartPlace place = models;
    place.part = {number, number, work.request.part.of};
    HMMJIT_TRY(parts::place_targets(*database, place));
    HMMJIT_ASSIGN(const bool complete, is_complete(work, settings, place, path));
    if (!complete) {
      HMMJIT_TRY(search_part(work, settings, place, database, path, repeatable));
    } else {
      if (!work.options.is_set("--quiet")) diagnose("hmmjit search: {} is complete\n", path);
      HMMJIT_TRY(work.on_searched({}));
    }
    if (number == work.request.part.last) break;  // 2^32 - 1 has no successor
  }
  return {};
}

}  // namespace hmmjit::tools
