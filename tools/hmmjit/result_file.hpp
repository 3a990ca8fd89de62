// Result files of `hmmjit search`, read for `hmmjit report`.
#pragma once

#include <memory>

#include "core/error.hpp"
#include "io/byte_source.hpp"
#include "report/html_page.hpp"

namespace hmmjit::tools {

/// Reads what --json or --tsv wrote, recognised by its first bytes. Fails with kInput where it is
/// neither, damaged, or not complete.
Result<Page> read_result(std::unique_ptr<ByteSource> source);

}  // namespace hmmjit::tools
