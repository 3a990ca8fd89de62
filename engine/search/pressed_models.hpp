// A pressed profile database and few sequences: the models that pass the MSV filter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "model/targets.hpp"
#include "search/search.hpp"

namespace hmmjit {

/// The models of a database with which some sequence passes the MSV filter.
struct PassedModels {
  std::uint64_t models = 0, nodes = 0;  ///< of the whole database
  std::vector<std::size_t> indices;     ///< of those that passed, in the order of `source`
  ModelSource source;
  FilterTimes times;
};

/// Filters all models with the scores that hmmpress has stored in F.h3f, as hmmscan does, which
/// takes a tenth of the time of setting them up. Nullopt if `path` is not a pressed database or its
/// files do not belong together, or if setting up all models is faster. The source fails with
/// kInput if a model is not the one of F.h3f.
Result<std::optional<PassedModels>> filter_pressed(const std::string& path,
                                                   const TargetBlock& sequences,
                                                   const SearchOptions& options);

}  // namespace hmmjit
