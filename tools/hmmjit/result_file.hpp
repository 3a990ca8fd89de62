// Result files of `hmmjit search`, read for `hmmjit report`.
#pragma once

#include <memory>
#include <vector>

#include "core/error.hpp"
#include "io/byte_source.hpp"
#include "report/html_page.hpp"

namespace hmmjit::tools {

/// Reads what --json or --tsv wrote, recognised by its first bytes: a page for each target file,
/// named in Page::results. Fails with kInput where it is neither, damaged, or not complete.
Result<std::vector<Page>> read_results(std::unique_ptr<ByteSource> source);

}  // namespace hmmjit::tools
