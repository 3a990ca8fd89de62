// `hmmjit part`: describes, checks and counts the parts of a search.
#include <fmt/format.h>

#include "hmmjit/command.hpp"
#include "hmmjit/fields.hpp"
#include "parts/model_index.hpp"
#include "parts/part_set.hpp"

namespace hmmjit::tools {
namespace {

Result<int> run_info(const ParsedOptions& given) {
  const std::string& path = given.arguments()[0];
  HMMJIT_ASSIGN(const parts::PartPtr opened, parts::PartFile::open(path));
  const parts::PartFile& part = *opened;
  const parts::PartPlace& place = part.place();
  const parts::PartOrigin& origin = part.origin();
  std::string options;
  for (const auto& [name, value] : origin.options)
    options +=
        fmt::format("{}{}{}{}", options.empty() ? "" : " ", name, value.empty() ? "" : " ", value);
  Json settings = Json::object();
  for (const std::string& line : split_list(part.settings_text(), '\n')) {
    const std::size_t colon = line.find(": ");
    settings[line.substr(0, colon)] = line.substr(colon + 2);
  }
  print_fields({{"file", path},
                {"format_version", parts::kPartVersion},
                {"content", part.content().hex()},
                {"search", part.search().hex()},
                {"part", place.part.text()},
                {"model_part", place.model_part.text()},
                {"first_target", place.first_target},
                {"last_target", place.last_target},
                {"first_model", place.first_model},
                {"last_model", place.last_model},
                {"models", place.models},
                {"hits", part.hits()},
                {"domains", part.domains()},
                {"file_bytes", part.file_bytes()},
                {"settings", settings},
                {"model_file", origin.model_file},
                {"target_file", origin.target_file},
                {"options", options},
                {"program", origin.program},
                {"host", origin.host},
                {"device", origin.device},
                {"date", origin.date}},
               given.is_set("--json"));
  return 0;
}

Result<int> run_verify(const ParsedOptions& options) {
  HMMJIT_ASSIGN(const std::vector<std::string> paths, parts::find_parts(options.arguments()));
  int status = 0;
  for (const std::string& path : paths) {
    const auto part = parts::PartFile::open(path);
    const Status whole = part ? (*part)->verify() : Status(std::unexpected(part.error()));
    if (!whole) {
      status = report_failure("hmmjit part verify", whole.error());
    } else if (!options.is_set("--quiet")) {
      fmt::print("{}: whole; part {}, {} targets reported, content {}\n", path,
                 (*part)->place().part.text(), (*part)->hits(), (*part)->content().hex());
    }
  }
  return status;
}

Result<int> run_missing(const ParsedOptions& options) {
  HMMJIT_ASSIGN(const std::vector<std::string> paths, parts::find_parts(options.arguments()));
  HMMJIT_ASSIGN(const parts::PartSet set, parts::PartSet::open(paths));
  if (set.missing().empty()) return 0;
  fmt::print("{}\n", options.is_set("--array") ? parts::missing_array(set.missing())
                                               : parts::describe_missing(set.missing()));
  return static_cast<int>(ErrorCode::kInput);
}

Result<int> run_index(const ParsedOptions& options) {
  HMMJIT_ASSIGN(const std::string index, parts::write_model_index(options.arguments()[0]));
  if (!options.is_set("--quiet")) fmt::print("{}\n", index);
  return 0;
}

}  // namespace

CommandSpec part_command() {
  const ArgumentSpec parts{"parts", "part files, or folders of them", true, true};
  CommandSpec out{"part", "describe, check and count the parts of a search", {}, {help_option()}};
  out.subcommands = {
      {"info", "describe a part", {{"part", "part file"}}, {kPrintJson}, run_info},
      {"verify",
       "check every byte of parts; exit status 3 on damage",
       {parts},
       {{kPlain, "--quiet", "", "say nothing of those that are whole"}},
       run_verify},
      {"missing",
       "name the parts that are still to be searched; exit status 3 if there are any",
       {parts},
       {{kPlain, "--array", "", "as numbers for sbatch --array: 3,17,40-42"}},
       run_missing},
      {"index",
       "note where each model of a file begins, for search --model-part",
       {{"hmmfile", "profile HMMs, not compressed"}},
       {{kPlain, "--quiet", "", "do not print the name of the index"}},
       run_index}};
  return out;
}

}  // namespace hmmjit::tools
