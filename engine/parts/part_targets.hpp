// The targets of a part: a range of a database.
#pragma once

#include <memory>

#include "io/target_database.hpp"
#include "parts/part_format.hpp"
#include "search/target_source.hpp"

namespace hmmjit::parts {

/// Sets the targets of `place` from `place.part`. Fails as the database does.
Status place_targets(const TargetDatabase& database, PartPlace& place);

/// The targets of `place`, with their indices in the whole database. Reads only their bytes.
std::unique_ptr<TargetSource> open_range(std::shared_ptr<const TargetDatabase> database,
                                         const PartPlace& place);

}  // namespace hmmjit::parts
