// Words in braces that the names of outputs may have: {target}, {folder}, {path}, {query}.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/output_file.hpp"
#include "io/text_output.hpp"
#include "option_table.hpp"

namespace hmmjit::tools {

/// The name of each output file on a command line, with the option that gives it.
std::vector<NamedFile> output_files(std::span<const OptionSpec> table,
                                    const ParsedOptions& options);

/// `outputs`, and standard output unless -o takes the text that goes there.
std::vector<NamedFile> with_standard_output(std::vector<NamedFile> outputs,
                                            const ParsedOptions& options);

/// A new file of the name that the option gives, if it is given. Fails with kOutput.
Result<std::optional<TextOutput>> create_file(const ParsedOptions& options,
                                              std::string_view option);

/// Fails with kUsage where an output's name has a word that none of `words` is; a name may have
/// {query} only where its option is a result of a single model or query (-o, --tblout, ...).
Status check_output_words(std::span<const NamedFile> outputs,
                          std::span<const std::string_view> words);

/// The options of a search of one target file: {target} is the file's name without folder and
/// extensions, {folder} the name of its folder, {path} the file's path without extensions.
ParsedOptions for_target(const ParsedOptions& options, const std::string& queries,
                         const std::string& target);

/// Fails with kUsage where outputs of two target files have one name, which belongs to neither a
/// device nor one of `joined`. `outputs[i]`: of `targets[i]`.
Status check_target_outputs(std::span<const std::string> targets,
                            std::span<const std::vector<NamedFile>> outputs,
                            std::span<const std::string> joined);

}  // namespace hmmjit::tools
