// `hmmjit search --part`: a share of the targets, stored as a part file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "option_table.hpp"
#include "parts/model_index.hpp"
#include "parts/part_format.hpp"
#include "search/search.hpp"
#include "search/session.hpp"
#include "search_inputs.hpp"

namespace hmmjit::tools {

struct PartRequest {
  parts::Share part;        ///< several: one file for each
  parts::Share model_part;  ///< 1/1: all models
  std::string file;         ///< "{}" stands for the number of the part

  std::string path(std::uint32_t number) const;
  /// The share of the whole search.
  double fraction() const { return (1.0 + part.last - part.first) / part.of; }
};

/// Nothing where --part is not given. Fails with kUsage where other options do not go with it.
Result<std::optional<PartRequest>> make_part_request(const ParsedOptions& options);

struct PartSearch {
  const PartRequest& request;
  const ParsedOptions& options;
  SearchOptions search;
  ModelFile& models;
  Session& session;
  std::function<Status(const SearchStatistics&)>
      on_searched;  ///< after every part; of one that was complete, all 0
  std::optional<parts::ModelIndex> index = {};                 ///< of --model-part
};

/// Searches the parts that are not there yet. Files of other searches are never overwritten,
/// damaged ones are replaced. `repeatable`: see Session::leave_devices.
Status search_parts(PartSearch& work, bool& repeatable);

}  // namespace hmmjit::tools
