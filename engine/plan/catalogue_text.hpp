// The kernel catalogue as a document.
#pragma once

#include <string>

namespace hmmjit::plan {

/// Markdown (docs/kernels.md): every entry of every stage with what it is, how long models it takes
/// on some devices of the table, and what it promises. Depends on nothing but the catalogue.
std::string catalogue_text();

}  // namespace hmmjit::plan
