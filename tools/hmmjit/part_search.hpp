// `hmmjit search --part`: searches a share of the targets and writes a part file.
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
  parts::Share part;        ///< one file per part
  parts::Share model_part;  ///< 1/1: all models
  std::string file;         ///< name of the file; "{}": the part's number

  std::string path(std::uint32_t number) const;
  /// The fraction of the whole search.
  double fraction() const { return (1.0 + part.last - part.first) / part.of; }
};

/// nullopt without --part. Fails with kUsage for options that exclude --part.
Result<std::optional<PartRequest>> make_part_request(const ParsedOptions& options);

struct PartSearch {
  const PartRequest& request;
  const ParsedOptions& options;
  SearchOptions search;
  ModelFile& models;
  Session& session;
  std::function<Status(const SearchStatistics&)>
      on_searched;  ///< after every part; all 0 for a part that was already complete
  std::optional<parts::ModelIndex> index = {};                 ///< of --model-part
};

/// Searches the missing parts. Replaces damaged files, but never overwrites files of other
/// searches. `repeatable`: see Session::leave_devices.
Status search_parts(PartSearch& work, bool& repeatable);

}  // namespace hmmjit::tools
