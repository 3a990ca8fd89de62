// Finds the models of a file that lack the cutoffs a search needs, before it begins.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "search/options.hpp"

namespace hmmjit {

struct MissingCutoffModels {
  std::uint64_t models = 0;        ///< of the file
  std::uint64_t without = 0;       ///< of them, without these cutoffs
  std::vector<std::string> names;  ///< the first of those
};

/// Looks through the headers of all models of a file, which takes a second for 20,000 models as
/// text; errors in the rest of a model are not seen. `path`: a regular file. Fails with
/// kInput.
Result<MissingCutoffModels> models_without_cutoffs(const std::string& path, ModelCutoffs cutoffs);

}  // namespace hmmjit
