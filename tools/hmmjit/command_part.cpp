// `hmmjit part`: describes, checks and counts the parts of a search.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "core/diagnostics.hpp"
#include "hmmjit/command_line.hpp"
#include "parts/model_index.hpp"
#include "parts/part_set.hpp"

namespace hmmjit::tools {
namespace {

using Json = nlohmann::ordered_json;

struct PartArguments {
  std::vector<std::string> parts;
  std::string part, models;
  bool json = false, quiet = false, array = false;
};

int report(const Error& error) { return report_failure("part", error); }

int run_info(const PartArguments& arguments) {
  const auto opened = parts::PartFile::open(arguments.part);
  if (!opened) return report(opened.error());
  const parts::PartFile& part = **opened;
  const parts::PartPlace& place = part.place();
  const parts::PartOrigin& origin = part.origin();
  std::string options;
  for (const auto& [name, value] : origin.options) {
    if (!options.empty()) options += ' ';
    options += name;
    if (!value.empty()) (options += ' ') += value;
  }
  if (arguments.json) {
    Json json;
    json["file"] = arguments.part;
    json["format_version"] = parts::kPartVersion;
    json["content"] = part.content().hex();
    json["search"] = part.search().hex();
    json["part"] = place.part.text();
    json["model_part"] = place.model_part.text();
    json["first_target"] = place.first_target;
    json["last_target"] = place.last_target;
    json["first_model"] = place.first_model;
    json["last_model"] = place.last_model;
    json["models"] = place.models;
    json["hits"] = part.hits();
    json["domains"] = part.domains();
    json["file_bytes"] = part.file_bytes();
    Json& settings = json["settings"];
    std::string_view text = part.settings_text();
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      const std::size_t colon = line.find(": ");
      settings[std::string(line.substr(0, colon))] = std::string(line.substr(colon + 2));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
    }
    json["model_file"] = origin.model_file;
    json["target_file"] = origin.target_file;
    json["options"] = options;
    json["program"] = origin.program;
    json["host"] = origin.host;
    json["device"] = origin.device;
    json["date"] = origin.date;
    fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  const auto line = [](std::string_view name, const std::string& value) {
    fmt::print("{:26} {}\n", name, value);
  };
  line("file", arguments.part);
  line("format", fmt::format("hmmjit part {}", parts::kPartVersion));
  line("part", place.part.text());
  line("targets", place.first_target == place.last_target
                      ? std::string("none")
                      : fmt::format("{} to {}", place.first_target + 1, place.last_target));
  if (place.model_part.of > 1) line("model part", place.model_part.text());
  line("models",
       fmt::format("{} to {} of {}", place.first_model + 1, place.last_model, place.models));
  line("reported targets", fmt::format("{}, with {} domains", part.hits(), part.domains()));
  line("content", part.content().hex());
  std::string_view text = part.settings_text();
  while (!text.empty()) {
    const std::string_view setting = text.substr(0, text.find('\n'));
    const std::size_t colon = setting.find(": ");
    line(setting.substr(0, colon), std::string(setting.substr(colon + 2)));
    text.remove_prefix(std::min(setting.size() + 1, text.size()));
  }
  line("model file", origin.model_file);
  line("target file", origin.target_file);
  line("options", options);
  line("made by", origin.program);
  line("on", origin.host + ", " + origin.device);
  line("date", origin.date);
  line("bytes", std::to_string(part.file_bytes()));
  return 0;
}

int run_verify(const PartArguments& arguments) {
  const auto paths = parts::find_parts(arguments.parts);
  if (!paths) return report(paths.error());
  int status = 0;
  for (const std::string& path : *paths) {
    const auto part = parts::PartFile::open(path);
    const Status whole = part ? (*part)->verify() : Status(std::unexpected(part.error()));
    if (!whole) {
      status = report(whole.error());
    } else if (!arguments.quiet) {
      fmt::print("{}: whole; part {}, {} targets reported, content {}\n", path,
                 (*part)->place().part.text(), (*part)->hits(), (*part)->content().hex());
    }
  }
  return status;
}

int run_missing(const PartArguments& arguments) {
  const auto paths = parts::find_parts(arguments.parts);
  if (!paths) return report(paths.error());
  const auto set = parts::PartSet::open(*paths);
  if (!set) return report(set.error());
  if (set->missing().empty()) return 0;
  fmt::print("{}\n", arguments.array ? parts::missing_array(set->missing())
                                     : parts::describe_missing(set->missing()));
  return static_cast<int>(ErrorCode::kInput);
}

int run_index(const PartArguments& arguments) {
  const auto index = parts::write_model_index(arguments.models);
  if (!index) return report(index.error());
  if (!arguments.quiet) fmt::print("{}\n", *index);
  return 0;
}

}  // namespace

int command_part(const std::vector<std::string>& arguments) {
  PartArguments given;
  CLI::App app{"Describes, checks and counts the parts that 'hmmjit search --part' makes.",
               "hmmjit part"};
  app.require_subcommand(1);
  CLI::App* info_command = app.add_subcommand("info", "describe a part");
  info_command->add_option("part", given.part, "part file")->required();
  info_command->add_flag("--json", given.json, "machine-readable output");
  CLI::App* verify_command =
      app.add_subcommand("verify", "check every byte of parts; exit status 3 on damage");
  verify_command->add_option("parts", given.parts, "part files, or folders of them")->required();
  verify_command->add_flag("--quiet", given.quiet, "say nothing of those that are whole");
  CLI::App* missing_command = app.add_subcommand(
      "missing", "name the parts that are still to be searched; exit status 3 if there are any");
  missing_command->add_option("parts", given.parts, "part files, or folders of them")->required();
  missing_command->add_flag("--array", given.array, "as numbers for sbatch --array: 3,17,40-42");
  CLI::App* index_command = app.add_subcommand(
      "index", "note where each model of a file begins, for search --model-part");
  index_command->add_option("hmmfile", given.models, "profile HMMs, not compressed")->required();
  index_command->add_flag("--quiet", given.quiet, "do not print the name of the index");
  if (const auto status = parse_command_line(app, arguments)) return *status;
  if (*info_command) return run_info(given);
  if (*index_command) return run_index(given);
  return *verify_command ? run_verify(given) : run_missing(given);
}

}  // namespace hmmjit::tools
