// Cutoffs from a table, and the models of a file that lack the cutoffs a search needs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "search/options.hpp"

namespace hmmjit {

/// Reads a table of bit score thresholds: name or accession of a model, score, and "full" or
/// "domain" for what must reach the score ("full" if there is no third column). "-" as score or
/// kind: no threshold. Further columns are ignored, as are lines that begin with '#' and a first
/// line of column names, so that KOfam's ko_list and BUSCO's scores_cutoff can be read. Columns are
/// separated by tabs, or by blanks in lines without tabs. Fails with kInput.
Result<CutoffTable> read_cutoff_table(const std::string& path);

struct MissingCutoffModels {
  std::uint64_t models = 0;        ///< in the file
  std::uint64_t without = 0;       ///< without these cutoffs
  std::vector<std::string> names;  ///< the first five of those
};

/// Reads only the headers of the models, which takes a second for 20,000 models as text; errors in
/// the rest of a model are not noticed. `path`: a regular file. `rules.cutoffs` is not kNone. Fails
/// with kInput.
Result<MissingCutoffModels> models_without_cutoffs(const std::string& path,
                                                   const Thresholds& rules);

}  // namespace hmmjit
