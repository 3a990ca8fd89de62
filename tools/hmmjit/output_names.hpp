// Names of outputs, with the words {target}, {folder}, {path} and {query}.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/output_file.hpp"
#include "io/text_output.hpp"
#include "option_table.hpp"
#include "report/outputs.hpp"

namespace hmmjit::tools {

/// The files that each query can have of its own, with {query} in their names.
inline constexpr std::pair<std::string_view, OutputKind> kReportFiles[] = {
    {"-o", OutputKind::kMain},
    {"-A", OutputKind::kAlignment},
    {"--tblout", OutputKind::kTargets},
    {"--domtblout", OutputKind::kDomains},
    {"--pfamtblout", OutputKind::kPfam},
    {"--tsv", OutputKind::kTsv},
    {"--target-tsv", OutputKind::kTargetTsv},
    {"--json", OutputKind::kJson},
    {"--a3m", OutputKind::kA3m},
    {"--dfamtblout", OutputKind::kDfam},
    {"--aliscoresout", OutputKind::kColumnScores}};

/// The names of all output files on a command line, with their options.
std::vector<NamedFile> output_files(std::span<const OptionSpec> table,
                                    const ParsedOptions& options);

/// jackhmmer's file of one round, from 1 on: of models (--chkhmm) or alignments (--chkali).
NamedFile file_of_round(const ParsedOptions& options, std::string_view option, std::size_t round);

/// `outputs`, and standard output unless -o replaces it.
std::vector<NamedFile> with_standard_output(std::vector<NamedFile> outputs,
                                            const ParsedOptions& options);

/// Creates the file that the option names, if given. Fails with kOutput.
Result<std::optional<TextOutput>> create_file(const ParsedOptions& options,
                                              std::string_view option);

/// Fails with kUsage for a word in an output's name that is not one of `words`. Only outputs of
/// single models or queries (-o, --tblout, ...) may have {query}.
Status check_output_words(std::span<const NamedFile> outputs,
                          std::span<const std::string_view> words);

/// The options for the search of one target file. {target}: the file's name without folder and
/// extensions; {folder}: the name of its folder; {path}: its path without extensions.
ParsedOptions for_target(const ParsedOptions& options, const std::string& queries,
                         const std::string& target);

/// Fails with kUsage if outputs of two target files have the same name, except for devices and
/// names in `joined`. `outputs[i]`: of `targets[i]`.
Status check_target_outputs(std::span<const std::string> targets,
                            std::span<const std::vector<NamedFile>> outputs,
                            std::span<const std::string> joined);

}  // namespace hmmjit::tools
