// The models of a pressed database that pass the MSV filter.
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

/// The models of a database that some sequences are searched with.
struct SelectedModels {
  std::uint64_t models = 0;  ///< of the database
  ModelSource source;
  /// If a filter has left models out: the indices of the others in the database, the nodes of all
  /// models, and the filter's times.
  std::optional<std::vector<std::size_t>> indices = {};
  std::uint64_t nodes = 0;
  FilterTimes times = {};
};

/// Selects the models with which some sequence passes the MSV filter. Like hmmscan, it takes the
/// filters from F.h3f, which takes a tenth of the time of setting models up. Nullopt if `path` is
/// not a pressed database or its files do not belong together, or if setting up all models is
/// faster. The source fails with kInput if a model is not the one of F.h3f.
Result<std::optional<SelectedModels>> filter_pressed(const std::string& path,
                                                     const TargetBlock& sequences,
                                                     const SearchOptions& options);

}  // namespace hmmjit
