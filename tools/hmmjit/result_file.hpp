// Result files of `hmmjit search`, read for `hmmjit report`.
#pragma once

#include <memory>
#include <vector>

#include "core/error.hpp"
#include "io/byte_source.hpp"
#include "report/html_page.hpp"

namespace hmmjit::tools {

/// Reads a file of --json or --tsv, recognised by its first bytes. Returns a page per target file,
/// with its name in Page::results. Fails with kInput for other, damaged or incomplete files.
Result<std::vector<Page>> read_results(std::unique_ptr<ByteSource> source);

}  // namespace hmmjit::tools
