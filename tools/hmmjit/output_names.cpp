#include "output_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <ranges>

namespace hmmjit::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";

// The first "{word}" of a name from `at` on.
std::optional<std::string_view> next_word(std::string_view name, std::size_t& at) {
  while ((at = name.find('{', at)) != name.npos) {
    const std::size_t begin = at++;
    const std::size_t end = name.find_first_not_of(kLetters, at);
    if (end != name.npos && end > at && name[end] == '}')
      return name.substr(begin, end + 1 - begin);
  }
  return std::nullopt;
}

fs::path without_extensions(fs::path path) {
  for (const char* compressed : {".gz", ".zst"}) {
    if (path.extension() == compressed) path.replace_extension();
  }
  return path.replace_extension();
}

bool is_device(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

}  // namespace

std::vector<NamedFile> output_files(std::span<const OptionSpec> table,
                                    const ParsedOptions& options) {
  std::vector<NamedFile> files;
  for (const OptionSpec& option : table) {
    if (option.type == ValueType::kFile && options.is_set(option.name))
      files.push_back({std::string(option.name), std::string(options.text(option.name))});
  }
  return files;
}

NamedFile file_of_round(const ParsedOptions& options, std::string_view option, std::size_t round) {
  return {std::string(option), fmt::format("{}-{}{}", options.text(option), round,
                                           option == "--chkhmm" ? ".hmm" : ".sto")};
}

std::vector<NamedFile> with_standard_output(std::vector<NamedFile> outputs,
                                            const ParsedOptions& options) {
  if (options.first_given({"-o", "--output"}) == nullptr)
    outputs.push_back({"standard output", "/dev/stdout"});
  return outputs;
}

Result<std::optional<TextOutput>> create_file(const ParsedOptions& options,
                                              std::string_view option) {
  if (!options.is_set(option)) return std::nullopt;
  return TextOutput::create(std::string(options.text(option)));
}

Status check_output_words(std::span<const NamedFile> outputs,
                          std::span<const std::string_view> words) {
  for (const NamedFile& output : outputs) {
    std::size_t at = 0;
    while (const auto word = next_word(output.path, at)) {
      if (std::ranges::find(words, *word) == words.end())
        return fail(ErrorCode::kUsage, fmt::format("no word {} for the name {}", *word, output.path),
                    output.option,
                    words.empty() ? "leave the braces out"
                                  : fmt::format("the words are {}", fmt::join(words, ", ")));
      const auto by_query = std::views::keys(kReportFiles);
      if (*word == "{query}" && std::ranges::find(by_query, output.option) == by_query.end())
        return fail(ErrorCode::kUsage, "{query} in the name of a file of all queries",
                    output.option, fmt::format("it is for {}", fmt::join(by_query, ", ")));
    }
  }
  return {};
}

ParsedOptions for_target(const ParsedOptions& options, const std::string& queries,
                         const std::string& target) {
  const fs::path path = without_extensions(target);
  std::error_code unknown;
  const std::string folder = fs::absolute(target, unknown).parent_path().filename().string();
  return options.with(
      {queries, target},
      {{"{target}", path.filename().string()}, {"{folder}", folder}, {"{path}", path.string()}});
}

Status check_target_outputs(std::span<const std::string> targets,
                            std::span<const std::vector<NamedFile>> outputs,
                            std::span<const std::string> joined) {
  std::map<std::string, std::size_t> first;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    for (const NamedFile& output : outputs[i]) {
      if (std::ranges::find(joined, output.option) != joined.end() || is_device(output.path))
        continue;
      const auto [found, is_new] = first.emplace(output.path, i);
      if (!is_new && targets[found->second] != targets[i])
        return fail(ErrorCode::kUsage,
                    fmt::format("{} and {} would both be written to {}", targets[found->second],
                                targets[i], output.path),
                    output.option,
                    "write {target}, {folder} or {path} in its name, whichever tells them apart");
    }
  }
  return {};
}

}  // namespace hmmjit::tools
